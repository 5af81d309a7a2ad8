//! One command read for the rules: its program's name, its options with their values, its operands, the files it
//! touches, the variables it sets, the code it carries.
//!
//! A reader for rules that look for danger: where it is unsure it would rather see an option than miss one. It must not
//! be used to find a command safe.

use super::arguments::{self, Arguments, Given};
use super::rule::{Program, Row, Table};
use super::table::{self, Of};
use super::words::{Dialect, Trait};
use crate::command::{RedirectKind, Simple, Stdin, Target};
use crate::word::{Span, Value, Word};
use std::cell::Cell;

/// A piece of the command as the rules see it.
#[derive(Clone, Copy, Debug)]
pub struct Piece<'a> {
    pub text: &'a str,
    /// The word, where the piece is all of it.
    pub word: Option<&'a Word>,
    pub span: Span,
    /// What was found about it before: rules ask the same of the same words.
    pub seen: Option<&'a Seen>,
}

/// Answers about one word that stay the same while a text is judged, two bits for each question.
#[derive(Debug, Default)]
pub struct Seen(Cell<u16>);

/// A question about a word whose answer takes a while.
#[derive(Clone, Copy, Debug)]
pub enum Question {
    Outside,
    RootOrHome,
    System,
    Device,
    GitInternal,
    Secret,
    Private,
    Temporary,
}

impl Piece<'_> {
    /// The answer, found only once.
    pub fn once(&self, question: Question, answer: impl FnOnce() -> bool) -> bool {
        let Some(Seen(bits)) = self.seen else { return answer() };
        let known: u16 = 1 << (2 * question as u16);
        let yes = known << 1;
        if bits.get() & known == 0 {
            let found = if answer() { yes } else { 0 };
            bits.set(bits.get() | known | found);
        }
        bits.get() & yes != 0
    }
}

#[derive(Debug)]
pub struct Facts<'a> {
    pub simple: &'a Simple,
    /// What the tables have under its name.
    pub row: Option<Of<'static, Row>>,
    pub program: Option<Of<'a, Program>>,
    /// The program's base name; empty when there is none or it is unknown.
    pub name: &'a str,
    pub words: &'a [Piece<'a>],
    pub options: Vec<Given<'a>>,
    pub operands: Vec<Piece<'a>>,
    /// Files it would write and read, variables it sets, code it carries.
    pub writes: Vec<Piece<'a>>,
    pub reads: Vec<Piece<'a>>,
    pub assignments: Vec<(&'a str, Piece<'a>)>,
    pub code: Vec<Piece<'a>>,
}

/// Reads every command once. What words with unknown parts look like is kept apart, so that facts can borrow it.
pub fn with_facts<T>(all: &[Simple], own: Option<&Table>, work: impl FnOnce(&[Facts<'_>]) -> T) -> T {
    let words = || all.iter().flat_map(|simple| &simple.argv);
    let pictures: Vec<String> = words().filter(|word| word.is_dynamic()).map(Word::picture).collect();
    let mut unknown = pictures.iter();
    let seen: Vec<Seen> = words().map(|_| Seen::default()).collect();
    let mut seen = seen.iter();
    let pieces: Vec<Piece<'_>> = words()
        .map(|word| {
            let text = match &word.value {
                Value::Known(text) | Value::Glob(text) => text.as_str(),
                Value::Dynamic(_) => unknown.next().map_or("", String::as_str),
            };
            Piece { text, word: Some(word), span: word.span, seen: seen.next() }
        })
        .collect();
    let mut rest = pieces.as_slice();
    let mut facts: Vec<Facts<'_>> = Vec::with_capacity(all.len());
    for simple in all {
        let (words, after) = rest.split_at_checked(simple.argv.len()).unwrap_or((rest, &[]));
        rest = after;
        facts.push(Facts::read(simple, words, own));
    }
    work(&facts)
}

/// The last part of a path, without what Windows adds.
pub fn base_name(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.strip_suffix(".exe").unwrap_or(name)
}

impl<'a> Facts<'a> {
    fn read(simple: &'a Simple, words: &'a [Piece<'a>], own: Option<&'a Table>) -> Self {
        let name = words.first().map_or("", |word| base_name(word.text));
        let row = table::row(name);
        let mut facts = Self {
            simple,
            row,
            program: own.and_then(|own| own.row(name)).and_then(Of::program).or_else(|| row.and_then(Of::program)),
            name,
            words,
            options: Vec::new(),
            operands: Vec::new(),
            writes: Vec::new(),
            reads: Vec::new(),
            assignments: Vec::new(),
            code: Vec::new(),
        };
        let (known, limit) = (facts.program, facts.program.and_then(|program| program.operands));
        let Arguments { options, operands } = arguments::read(words, &known, limit.unwrap_or(usize::MAX));
        (facts.options, facts.operands) = (options, operands);
        facts.writes = facts.find_writes();
        facts.reads = facts.find_reads();
        facts.assignments = facts.find_assignments();
        facts.code = facts.find_code();
        facts
    }

    /// The option, if it is there under one of these spellings (`-r|--recursive`).
    pub fn option(&self, spellings: &str) -> Option<&Given<'a>> {
        self.options.iter().find(|given| spellings.split('|').any(|spelling| self.spells(given, spelling, true)))
    }

    pub fn option_exactly(&self, spellings: &str) -> Option<&Given<'a>> {
        self.options.iter().find(|given| spellings.split('|').any(|spelling| self.spells(given, spelling, false)))
    }

    pub fn spells(&self, given: &Given<'_>, spelling: &str, abbreviated: bool) -> bool {
        let bare = spelling.trim_start_matches('-');
        match self.program.map_or(Dialect::Gnu, |program| program.dialect) {
            Dialect::Single | Dialect::Keys => given.name == bare.trim_end_matches('='),
            Dialect::Gnu | Dialect::Tar => {
                let short = spelling.len() - bare.len() == 1 && bare.chars().count() == 1;
                if short || given.short {
                    return short == given.short && given.name == bare;
                }
                given.name == bare
                    || (abbreviated
                        && !given.name.is_empty()
                        && bare.starts_with(given.name)
                        && !self.exact(given.name))
            }
        }
    }

    fn exact(&self, name: &str) -> bool {
        self.program.is_some_and(|program| program.exact().any(|option| option.trim_start_matches('-') == name))
    }

    pub fn has_trait(&self, which: Trait) -> bool {
        self.program.is_some_and(|program| program.traits.has(which))
    }

    /// The files named by a list such as `["operands", "-o"]`.
    fn named(&self, list: impl Iterator<Item = &'a str>, to: &mut Vec<Piece<'a>>) {
        for what in list {
            match what {
                "operands" => to.extend(&self.operands),
                "rest" => to.extend(self.operands.iter().skip(1)),
                "first" => to.extend(self.operands.first()),
                "second" => to.extend(self.operands.get(1)),
                "last" if self.operands.len() > 1 => to.extend(self.operands.last()),
                "plus" => to.extend(self.operands.iter().filter(|piece| piece.text.starts_with('+'))),
                "sources" => to.extend(self.operands.iter().take(self.operands.len().saturating_sub(1))),
                option => {
                    let given = self.options.iter().filter(|given| self.spells(given, option, true));
                    to.extend(given.filter_map(|given| given.value));
                }
            }
        }
    }

    fn find_writes(&self) -> Vec<Piece<'a>> {
        let mut found = self
            .redirected(|kind| matches!(kind, RedirectKind::Write | RedirectKind::Append | RedirectKind::ReadWrite));
        if let Some(program) = self.program {
            self.named(program.writes(), &mut found);
        }
        found
    }

    fn find_reads(&self) -> Vec<Piece<'a>> {
        let mut found = self.redirected(|kind| matches!(kind, RedirectKind::Read | RedirectKind::ReadWrite));
        match self.program.and_then(Of::reads) {
            Some(list) => self.named(list, &mut found),
            None if self.has_trait(Trait::Prints) => {}
            None => found.extend(self.operands.iter().filter(|piece| piece.text.contains('/'))),
        }
        found
    }

    pub fn redirected(&self, which: impl Fn(RedirectKind) -> bool) -> Vec<Piece<'a>> {
        let mut found = Vec::new();
        for redirect in &self.simple.redirects {
            if let Target::File(word) = &redirect.target
                && which(redirect.kind)
            {
                // A redirection's picture is only borrowed where the word is whole; what is known before the
                // unknown part decides the rest.
                let text = match &word.value {
                    Value::Known(text) | Value::Glob(text) => text.as_str(),
                    Value::Dynamic(dynamic) => dynamic_path(dynamic),
                };
                found.push(Piece { text, word: Some(word), span: word.span, seen: None });
            }
        }
        found
    }

    /// `NAME` and value of everything that is set: in front of the command, or by `env`, `export` and the like.
    fn find_assignments(&self) -> Vec<(&'a str, Piece<'a>)> {
        let mut found: Vec<(&'a str, Piece<'a>)> = Vec::new();
        for assignment in &self.simple.assignments {
            let (text, word) = match &assignment.value {
                Some(word) => match &word.value {
                    Value::Known(text) | Value::Glob(text) => (text.as_str(), Some(word)),
                    Value::Dynamic(dynamic) => (dynamic.prefix.as_str(), Some(word)),
                },
                None => ("", None),
            };
            found.push((&assignment.name, Piece { text, word, span: assignment.span, seen: None }));
        }
        if matches!(self.name, "env" | "export" | "declare" | "typeset" | "local" | "readonly" | "sudo" | "doas") {
            for piece in self.words.iter().skip(1) {
                let Some((name, value)) = piece.text.split_once('=') else {
                    if self.name == "env" && !piece.text.starts_with('-') {
                        break;
                    }
                    continue;
                };
                if !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
                    found.push((name, Piece { text: value, word: piece.word, span: piece.span, seen: None }));
                }
            }
        }
        found
    }

    /// Code that the command carries: arguments of its program, or what it reads from a here document.
    fn find_code(&self) -> Vec<Piece<'a>> {
        let mut found = Vec::new();
        let Some(program) = self.program else { return found };
        self.named(program.code(), &mut found);
        if program.code().any(|what| what == "stdin") {
            let span = self.simple.span;
            let mut add = |text: &'a Option<std::sync::Arc<str>>| {
                if let Some(text) = text.as_deref() {
                    found.push(Piece { text, word: None, span, seen: None });
                }
            };
            if let Stdin::Here(here) = &self.simple.stdin {
                add(&here.text);
            }
            for redirect in &self.simple.redirects {
                if let Target::Here(here) = &redirect.target {
                    add(&here.text);
                }
            }
        }
        found
    }

    pub fn start(&self) -> Span {
        self.words.first().map_or(self.simple.span, |word| word.span)
    }
}

/// `$HOME/.bashrc` keeps its meaning without a copy of the text: the part after a lone leading `$HOME` is enough for
/// the path tests, which are told about the home folder by the word itself.
fn dynamic_path(dynamic: &crate::word::Dynamic) -> &str {
    if dynamic.prefix.is_empty() { &dynamic.suffix } else { &dynamic.prefix }
}
