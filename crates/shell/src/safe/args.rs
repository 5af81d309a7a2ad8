//! Reads a program's arguments by its grammar: options with their values, and operands. What the grammar does
//! not know is told, never skipped.

use super::Told;
use super::rows::{Check, Code, Grammar, Known, Style, Takes};
use super::table::{Found, Of};
use crate::word::{Dynamic, Source, Value, Word};

/// An option that was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key<'a> {
    Letter(char),
    Name(&'a str),
}

impl Key<'_> {
    /// `-l` and `--list`, as tables write them.
    pub(super) fn is(self, written: &str) -> bool {
        match (self, written.strip_prefix("--")) {
            (Key::Name(name), Some(wanted)) => name == wanted,
            (Key::Name(name), None) => written.strip_prefix('-') == Some(name),
            (Key::Letter(letter), None) => {
                let mut letters = written.chars().skip(1);
                letters.next() == Some(letter) && letters.next().is_none()
            }
            (Key::Letter(_), Some(_)) => false,
        }
    }
}

/// A value or an operand: known text, or a word that depends on run time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece<'a> {
    pub(super) word: &'a Word,
    /// The part of the word that counts: all of an operand, what follows `=` in an option. `None`: dynamic.
    pub(super) text: Option<&'a str>,
}

impl Piece<'_> {
    /// By itself, as if it had stood alone.
    pub(super) fn to_word(self) -> Word {
        let value = match (&self.word.value, self.text) {
            (Value::Known(_), Some(text)) => Value::Known(text.to_owned()),
            (Value::Glob(_), Some(text)) => Value::Glob(text.to_owned()),
            (other, _) => other.clone(),
        };
        Word { span: self.word.span, value }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Given<'a> {
    pub(super) key: Key<'a>,
    pub(super) word: &'a Word,
    pub(super) value: Option<Piece<'a>>,
}

#[derive(Debug, Default)]
pub(super) struct Args<'a> {
    pub(super) options: Vec<Given<'a>>,
    pub(super) operands: Vec<Piece<'a>>,
    /// `--` was given.
    pub(super) ended: bool,
    /// How many words were read: fewer than given only when reading stopped at a subcommand.
    pub(super) read: usize,
}

impl<'a> Args<'a> {
    pub(super) fn has(&self, written: &str) -> bool {
        self.options.iter().any(|given| given.key.is(written))
    }

    pub(super) fn has_any<'w>(&self, mut written: impl Iterator<Item = &'w str>) -> bool {
        written.any(|option| self.has(option))
    }

    /// Reads the words by the grammar. With `stop`, only up to the first operand, which is not read.
    pub(super) fn read(grammar: Of<'a, Grammar>, words: &'a [Word], stop: bool, told: &mut Told<'_>) -> Self {
        let mut reader = Reader { grammar, told, args: Args::default() };
        let mut at = 0;
        if grammar.check == Check::Tar {
            at = reader.old_bundle(words);
        }
        while let Some(word) = words.get(at) {
            at += 1;
            if reader.args.ended || grammar.style == Style::Raw {
                reader.args.operands.push(piece(word));
                continue;
            }
            let step = reader.step(word);
            match step {
                Step::Done => {}
                Step::Operand if stop => {
                    at -= 1;
                    break;
                }
                Step::Operand => reader.args.operands.push(piece(word)),
                Step::Value(known) => {
                    if known.takes == Takes::Pair {
                        at += 1;
                    }
                    reader.separate(known, word, words.get(at));
                    at += 1;
                }
                Step::Carries => {
                    let rest = words.get(at..).unwrap_or(&[]);
                    at += carried(rest).unwrap_or_else(|| {
                        reader.told.say("runs_programs", "runs a command that does not end", word.span);
                        rest.len()
                    });
                }
            }
        }
        let mut args = reader.args;
        args.read = at.min(words.len());
        args
    }
}

fn piece(word: &Word) -> Piece<'_> {
    let text = match &word.value {
        Value::Known(text) | Value::Glob(text) => Some(text.as_str()),
        Value::Dynamic(_) => None,
    };
    Piece { word, text }
}

/// How many words a carried command has, its end among them: `;`, or `+` after `{}`.
fn carried(words: &[Word]) -> Option<usize> {
    let mut before = "";
    for (at, word) in words.iter().enumerate() {
        let text = word.known().unwrap_or("");
        if text == ";" || (text == "+" && before == "{}") {
            return Some(at + 1);
        }
        before = text;
    }
    None
}

enum Step<'a> {
    Done,
    /// A command of its own follows.
    Carries,
    Operand,
    /// The next word is this option's value.
    Value(Of<'a, Known>),
}

struct Reader<'t, 'f, 'a> {
    grammar: Of<'a, Grammar>,
    told: &'t mut Told<'f>,
    args: Args<'a>,
}

impl<'a> Reader<'_, '_, 'a> {
    /// `tar tzf x`: the first word is letters without a dash, and their values follow in order.
    fn old_bundle(&mut self, words: &'a [Word]) -> usize {
        let Some(word) = words.first() else { return 0 };
        let Some(letters) = word.known().filter(|text| !text.is_empty() && !text.starts_with('-')) else { return 0 };
        let mut at = 1;
        for letter in letters.chars() {
            match self.grammar.letter(letter) {
                Some(known) if known.takes == Takes::Nothing => self.given(Key::Letter(letter), word, None),
                Some(known) if matches!(known.takes, Takes::Value | Takes::Path | Takes::Number) => {
                    self.separate(known, word, words.get(at));
                    at += 1;
                }
                Some(known) if let Takes::Denied(number) = known.takes => self.denied(word, number),
                _ => self.told.say("unknown_option", format!("not a known read-only option: `{letter}`"), word.span),
            }
        }
        at
    }

    fn step(&mut self, word: &'a Word) -> Step<'a> {
        match &word.value {
            Value::Known(text) => self.text(word, text),
            Value::Glob(text) => {
                // `--include=*.rs`: whatever it matches begins the same.
                if text.starts_with("--") && text.split(['*', '?', '[']).next().is_some_and(|known| known.contains('='))
                {
                    return self.text(word, text);
                }
                // A file's name may begin with a dash, too.
                let any_start = text.starts_with(['*', '?', '[']) && !self.grammar.harmless;
                if text.starts_with('-') || any_start {
                    self.told.say("dynamic_option", "a pattern that may become an option", word.span);
                }
                Step::Operand
            }
            Value::Dynamic(dynamic) => self.dynamic(word, dynamic),
        }
    }

    fn text(&mut self, word: &'a Word, text: &'a str) -> Step<'a> {
        let Some(rest) = text.strip_prefix('-') else {
            if self.grammar.plus && text.starts_with('+') {
                return if self.grammar.check == Check::Set {
                    self.cluster(word, text, &text.replacen('+', "", 1))
                } else {
                    Step::Operand
                };
            }
            return Step::Operand;
        };
        if rest.is_empty() {
            return Step::Operand;
        }
        if rest == "-" {
            self.args.ended = true;
            return Step::Done;
        }
        let name = rest.strip_prefix('-');
        if name.is_some() || self.grammar.style == Style::Single {
            let name = name.unwrap_or(rest);
            let (name, value) = match name.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (name, None),
            };
            return self.long(word, name, value.map(|value| Piece { word, text: Some(value) }));
        }
        if self.grammar.digits && rest.bytes().all(|byte| byte.is_ascii_digit()) {
            return Step::Done;
        }
        self.cluster(word, text, rest)
    }

    fn long(&mut self, word: &'a Word, name: &str, value: Option<Piece<'a>>) -> Step<'a> {
        let known = match self.grammar.long(name) {
            Found::One(known) => known,
            Found::Ambiguous => {
                self.told.say("unknown_option", format!("`--{name}` could stand for several options"), word.span);
                return Step::Done;
            }
            Found::Nothing => {
                self.told.say("unknown_option", format!("not a known read-only option: `{name}`"), word.span);
                return Step::Done;
            }
        };
        match (known.takes, value) {
            (Takes::Denied(number), _) => {
                self.denied(word, number);
                if self.grammar.denial(number).0 == Code::CarriesCommand {
                    return Step::Carries;
                }
            }
            (Takes::Nothing | Takes::Pair, Some(_)) => {
                self.told.say("unknown_option", format!("`{name}` takes no value"), word.span);
                return Step::Done;
            }
            (Takes::Value | Takes::Path | Takes::Number | Takes::Pair, None) => return Step::Value(known),
            (Takes::Nothing | Takes::Maybe, None) => self.given(Key::Name(known.name()), word, None),
            (Takes::Value | Takes::Path | Takes::Number | Takes::Maybe, Some(value)) => {
                self.value(known.takes, value);
                self.given(Key::Name(known.name()), word, Some(value));
            }
        }
        Step::Done
    }

    /// `-la`, `-n5`, `-ofile`: letters until one takes the rest.
    fn cluster(&mut self, word: &'a Word, whole: &'a str, letters: &str) -> Step<'a> {
        for (at, letter) in letters.char_indices() {
            let Some(known) = self.grammar.letter(letter) else {
                if self.grammar.digits && letter.is_ascii_digit() {
                    continue;
                }
                self.told.say("unknown_option", format!("not a known read-only option: `-{letter}`"), word.span);
                return Step::Done;
            };
            // All but the last letters come before `rest`; the prefix is one byte.
            let rest = whole.get(1 + at + letter.len_utf8()..).unwrap_or("");
            let key = Key::Letter(letter);
            match known.takes {
                Takes::Denied(number) => {
                    self.denied(word, number);
                    return Step::Done;
                }
                Takes::Nothing => self.given(key, word, None),
                Takes::Value | Takes::Path | Takes::Number | Takes::Pair if rest.is_empty() => {
                    return Step::Value(known);
                }
                Takes::Value | Takes::Path | Takes::Number | Takes::Pair | Takes::Maybe => {
                    let value = (!rest.is_empty()).then_some(Piece { word, text: Some(rest) });
                    if let Some(value) = value {
                        self.value(known.takes, value);
                    }
                    self.given(key, word, value);
                    return Step::Done;
                }
            }
        }
        Step::Done
    }

    fn separate(&mut self, known: Of<'a, Known>, word: &'a Word, value: Option<&'a Word>) {
        let mut letters = known.name().chars();
        let key = match (letters.next(), letters.next()) {
            (Some(letter), None) if self.grammar.style != Style::Single => Key::Letter(letter),
            _ => Key::Name(known.name()),
        };
        let Some(value) = value else {
            self.given(key, word, None);
            return;
        };
        if let Value::Dynamic(dynamic) = &value.value
            && dynamic.splits
            && !one_word(dynamic)
        {
            self.told.say("dynamic_option", "an unquoted value that may become more words", value.span);
        }
        let value = piece(value);
        self.value(known.takes, value);
        self.given(key, word, Some(value));
    }

    fn value(&mut self, takes: Takes, value: Piece<'a>) {
        if matches!(takes, Takes::Path | Takes::Pair) {
            self.told.path(value, super::paths::Touch::Contents);
        }
        if takes == Takes::Number && value.text.is_some_and(|text| !is_size(text)) {
            self.told.say("unknown_option", "a number was expected here", value.word.span);
        }
    }

    fn given(&mut self, key: Key<'a>, word: &'a Word, value: Option<Piece<'a>>) {
        self.args.options.push(Given { key, word, value });
    }

    fn denied(&mut self, word: &'a Word, number: u16) {
        self.told.deny(self.grammar, number, word.span);
    }

    fn dynamic(&mut self, word: &'a Word, dynamic: &'a Dynamic) -> Step<'a> {
        let prefix = dynamic.prefix.as_str();
        if let Some(rest) = prefix.strip_prefix('-') {
            return self.dynamic_option(word, dynamic, rest);
        }
        if self.grammar.harmless || cannot_be_option(dynamic) {
            return Step::Operand;
        }
        self.told.say("dynamic_option", "depends on run time and may become an option", word.span);
        Step::Operand
    }

    /// An option whose beginning is known: fine when only its value is not.
    fn dynamic_option(&mut self, word: &'a Word, dynamic: &'a Dynamic, rest: &'a str) -> Step<'a> {
        let whole_value = !dynamic.splits || one_word(dynamic) || self.grammar.harmless;
        let value = Piece { word, text: None };
        let long = rest.strip_prefix('-').or((self.grammar.style == Style::Single).then_some(rest));
        if let Some(name) = long {
            if let Some((name, _)) = name.split_once('=')
                && whole_value
            {
                return self.long(word, name, Some(value));
            }
        } else if self.grammar.digits && rest.is_empty() && dynamic.sources.iter().all(is_number) {
            return Step::Done;
        } else if whole_value {
            for letter in rest.chars() {
                match self.grammar.letter(letter).map(|known| known.takes) {
                    Some(Takes::Nothing) => self.given(Key::Letter(letter), word, None),
                    Some(takes @ (Takes::Value | Takes::Path | Takes::Number | Takes::Pair | Takes::Maybe)) => {
                        self.value(takes, value);
                        self.given(Key::Letter(letter), word, Some(value));
                        return Step::Done;
                    }
                    Some(Takes::Denied(number)) => {
                        self.denied(word, number);
                        return Step::Done;
                    }
                    None => break,
                }
            }
        }
        self.told.say("dynamic_option", "an option that depends on run time", word.span);
        Step::Done
    }
}

/// Whether a word that depends on run time surely is no option.
fn cannot_be_option(dynamic: &Dynamic) -> bool {
    let begins = !dynamic.prefix.is_empty();
    dynamic.sources.iter().enumerate().all(|(at, source)| {
        let first = at == 0 && !begins;
        match source {
            Source::BoundedOutput | Source::Names | Source::Number => true,
            Source::OneOf(values) => {
                values.iter().all(|value| !(first && value.starts_with('-') || dynamic.splits && value.contains(" -")))
            }
            Source::Variable(name) if well_known(name) => true,
            Source::Variable(_) | Source::Positional | Source::Output => !first && !dynamic.splits,
            Source::Process => true,
            Source::Indirect => false,
        }
    })
}

/// Never empty, never more than one word.
fn one_word(dynamic: &Dynamic) -> bool {
    dynamic.sources.iter().all(|source| match source {
        Source::Number | Source::BoundedOutput | Source::Names | Source::Process => true,
        Source::OneOf(values) => values.iter().all(|value| !value.is_empty() && !value.contains(char::is_whitespace)),
        Source::Variable(name) => well_known(name),
        Source::Positional | Source::Output | Source::Indirect => false,
    })
}

fn is_number(source: &Source) -> bool {
    match source {
        Source::Number => true,
        Source::OneOf(values) => {
            values.iter().all(|value| !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit()))
        }
        _ => false,
    }
}

/// Variables that every session sets to a path or a name.
pub(super) fn well_known(name: &str) -> bool {
    matches!(
        name,
        "HOME"
            | "PWD"
            | "OLDPWD"
            | "USER"
            | "LOGNAME"
            | "UID"
            | "EUID"
            | "HOSTNAME"
            | "TMPDIR"
            | "SHELL"
            | "LINENO"
            | "RANDOM"
            | "SECONDS"
    )
}

/// `10`, `+10`, `-1K`, `2MiB`.
fn is_size(text: &str) -> bool {
    let text = text.strip_prefix(['+', '-']).unwrap_or(text);
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    unit.len() < text.len() && unit.len() <= 3 && unit.chars().all(|c| c.is_ascii_alphabetic())
}
