//! Arithmetic: `$((…))`, subscripts, `let`, both sides of `-eq`. Bash evaluates what a name holds, what that holds
//! in turn, and expands every subscript on the way, so text can become commands here without looking like any: a file
//! called `a[$(x)]` is enough. What is not known to be a number is therefore asked about.

use crate::expand::fields::Fields;
use crate::expand::text::is_pattern;
use crate::parse::Part;
use crate::reason::Risk;
use crate::word::{Dynamic, Source, Span, Value};

use super::env::Binding;
use super::numbers::{self, is_numeric};
use super::substitutions::alternatives;
use super::words::unknown;
use super::{Heres, Walker};

/// Names that hold names that hold names: more than this is not looked up, and said.
const MAX_LOOKUPS: usize = 8;
/// Variables of the shell whose every assignment is evaluated as arithmetic, or may be.
const EVALUATED: &[&str] = &["RANDOM", "SRANDOM", "SECONDS", "LINENO", "OPTIND", "HISTCMD", "EPOCHSECONDS", "BASHPID"];
/// Stand in arithmetic text for a number, and for text, that is only known when it runs.
const NUMBER: char = '\u{1}';
const TEXT: char = '\u{2}';

/// Which part of the header of `for ((…; …; …))` is evaluated: all of it once, the rest each time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Round {
    First,
    Again,
}

impl Walker<'_> {
    /// Arithmetic: a number, unless commands or unsafe names are evaluated on the way.
    pub(super) fn arithmetic(&mut self, parts: &[Part<'_>], heres: Heres<'_, '_>) -> Vec<Source> {
        self.arithmetic_in(parts, Round::First, heres).0
    }

    /// The same, with its text where nothing of it depends on run time.
    pub(super) fn arithmetic_in(
        &mut self,
        parts: &[Part<'_>],
        round: Round,
        heres: Heres<'_, '_>,
    ) -> (Vec<Source>, Option<String>) {
        let mut sources = vec![Source::Number];
        if let [Part::Text { text, .. }] = parts
            && is_numeric(text)
        {
            return (sources, Some(text.to_string()));
        }
        // What bash evaluates once every expansion is done, as far as it is known.
        let mut whole = String::new();
        for part in parts {
            if let Part::Text { text, .. } = part {
                whole.push_str(text);
                continue;
            }
            let mut fields = Fields::new(false, self.budget);
            self.parts(std::slice::from_ref(part), &mut fields, heres);
            self.expanded_operand(fields.single(), &mut whole, &mut sources);
        }
        let span = self.whole();
        let evaluated = match round {
            Round::First => whole.as_str(),
            Round::Again => whole.split_once(';').map_or("", |(_, rest)| rest),
        };
        self.evaluated_arithmetic(evaluated, span, &mut sources);
        let known = !whole.contains([NUMBER, TEXT]);
        (sources, known.then_some(whole))
    }

    /// What an expansion in arithmetic adds to the text that is evaluated.
    fn expanded_operand(&mut self, value: Value, whole: &mut String, sources: &mut Vec<Source>) {
        let span = self.whole();
        match value {
            Value::Known(text) | Value::Glob(text) => {
                if is_pattern(&text) {
                    self.hidden_number("arithmetic evaluates a file's name, which can be code", span);
                }
                whole.push_str(&text);
            }
            Value::Dynamic(dynamic) => {
                whole.push_str(&dynamic.prefix);
                whole.push(if numbers::all(&dynamic.sources) { NUMBER } else { TEXT });
                whole.push_str(&dynamic.suffix);
                self.unknown_operand(&dynamic, span, sources);
                for source in dynamic.sources {
                    if !matches!(source, Source::Variable(_) | Source::OneOf(_)) && !sources.contains(&source) {
                        sources.push(source);
                    }
                }
            }
        }
    }

    /// Text that depends on run time and is evaluated: fine as far as every text it may be is.
    fn unknown_operand(&mut self, dynamic: &Dynamic, span: Span, sources: &mut Vec<Source>) {
        if numbers::all(&dynamic.sources) {
            return;
        }
        let one = matches!(dynamic.sources.as_slice(), [Source::OneOf(_)]);
        let plain = |text: &&str| !is_pattern(text) && !text.contains(['$', '`']);
        if !one || !alternatives(&dynamic.sources).iter().all(plain) {
            self.hidden_number("arithmetic evaluates what this becomes, which can be code", span);
        }
        for text in alternatives(&dynamic.sources) {
            let text = format!("{}{text}{}", dynamic.prefix, dynamic.suffix);
            self.evaluated_arithmetic(&text, span, sources);
        }
    }

    /// Text that is evaluated as arithmetic.
    pub(super) fn evaluated_arithmetic(&mut self, text: &str, span: Span, sources: &mut Vec<Source>) {
        if is_numeric(text) {
            return;
        }
        if let Some(name) = self.evaluated_names(text, span, sources, 0) {
            let message = match name {
                "" => "arithmetic evaluates a name that is only known when it runs".to_owned(),
                name => format!("arithmetic evaluates what `{name}` holds, which is not known to be a number"),
            };
            self.find("evaluated_unknown", message, span, Risk::NeedsReview);
            sources.push(Source::Indirect);
        }
        let assigned: Vec<&str> = identifiers(text)
            .filter(|(at, name)| assigns(text, at + name.len()) != Assigns::Not)
            .map(|(_, name)| name)
            .collect();
        for name in assigned {
            self.env.bind(name, Binding::scalar(unknown(vec![Source::Number])));
        }
    }

    /// The first name in the text that holds something else than numbers; empty for one that is not known itself.
    fn evaluated_names<'n>(
        &mut self,
        text: &'n str,
        span: Span,
        sources: &mut Vec<Source>,
        lookups: usize,
    ) -> Option<&'n str> {
        if text.contains('[') && text.contains(['$', '`']) {
            self.evaluated_name(text, span);
            sources.push(Source::Indirect);
        }
        // From here on something may be skipped: `&&`, `||`, `?`, or brackets that hold such.
        let certain = text.find(['?', '(', '[', '&', '|']).unwrap_or(text.len());
        let mut first = None;
        let mut given: Vec<&str> = Vec::new();
        let mut ahead: Vec<(usize, &str)> = Vec::new();
        for (at, name) in identifiers(text) {
            if !self.budget.steps(1 + given.len() + ahead.len()) {
                return Some(name);
            }
            if name.contains([NUMBER, TEXT]) {
                first = first.or(Some(""));
                continue;
            }
            // What was assigned counts from the end of its expression on.
            ahead.retain(|(end, name)| {
                let over = *end <= at;
                if over && !given.contains(name) {
                    given.push(name);
                }
                !over
            });
            if at < certain && assigns(text, at + name.len()) == Assigns::Anew {
                let end = ahead.last().map_or_else(|| expression_end(text, at), |(end, _)| *end);
                if !ahead.iter().any(|(_, ahead)| *ahead == name) {
                    ahead.push((end, name));
                }
                continue;
            }
            if !given.contains(&name) && !self.holds_numbers(name, span, sources, lookups) {
                first = first.or(Some(name));
            }
        }
        first
    }

    /// Whether what a name holds is numbers, or names that hold numbers.
    fn holds_numbers(&mut self, name: &str, span: Span, sources: &mut Vec<Source>, lookups: usize) -> bool {
        if self.env.is_aliased() {
            return false;
        }
        let Some(binding) = self.env.get(name) else { return super::parameters::is_number(name) };
        let mut known = !binding.content;
        let values = std::iter::once(&binding.value).chain(binding.array.iter().flatten().map(|word| &word.value));
        let mut texts: Vec<String> = Vec::new();
        for value in values {
            match value {
                Value::Known(text) | Value::Glob(text) => self.held(text, &mut texts, &mut known),
                Value::Dynamic(dynamic) => {
                    known &= dynamic.is_whole()
                        && dynamic.sources.iter().all(|source| matches!(source, Source::Number | Source::OneOf(_)));
                    for text in alternatives(&dynamic.sources) {
                        self.held(text, &mut texts, &mut known);
                    }
                }
            }
        }
        if lookups >= MAX_LOOKUPS {
            return known && texts.is_empty();
        }
        for text in texts {
            known &= self.evaluated_names(&text, span, sources, lookups + 1).is_none();
        }
        known
    }

    /// Text that a name holds: looked at further unless it is a number.
    fn held(&self, text: &str, texts: &mut Vec<String>, known: &mut bool) {
        if is_numeric(text) {
            return;
        }
        *known &= !is_pattern(text) || text.contains(['$', '`']);
        if self.budget.bytes(text.len()) {
            texts.push(text.to_owned());
        } else {
            *known = false;
        }
    }

    /// A value given to a name that turns every value into a number.
    pub(super) fn assigned_number(&mut self, name: &str, value: &Value, span: Span) {
        if EVALUATED.contains(&name) || self.env.is_integer(name) {
            self.evaluated_operand(value, span);
        }
    }

    /// One side of a comparison of numbers in `[[ … ]]`, or any other text that is evaluated.
    pub(super) fn evaluated_operand(&mut self, value: &Value, span: Span) {
        let mut sources = Vec::new();
        match value {
            Value::Known(text) | Value::Glob(text) => {
                if is_pattern(text) && !text.contains(['$', '`']) {
                    self.hidden_number("this is evaluated, and what it becomes can be code", span);
                }
                self.evaluated_arithmetic(text, span, &mut sources);
            }
            Value::Dynamic(dynamic) if numbers::all(&dynamic.sources) => {
                let text = format!("{}{NUMBER}{}", dynamic.prefix, dynamic.suffix);
                self.evaluated_arithmetic(&text, span, &mut sources);
            }
            Value::Dynamic(dynamic) => self.unknown_operand(dynamic, span, &mut sources),
        }
    }

    /// A name that is looked up, with a subscript that is evaluated: what `-v` and `printf -v` take.
    pub(super) fn evaluated_reference(&mut self, value: &Value, span: Span) {
        match value {
            Value::Known(text) | Value::Glob(text) => self.evaluated_subscript(text, span),
            Value::Dynamic(dynamic) if numbers::all(&dynamic.sources) && !dynamic.prefix.contains('[') => {}
            Value::Dynamic(dynamic) => {
                if !matches!(dynamic.sources.as_slice(), [Source::OneOf(_)]) {
                    self.hidden_number("this name is looked up, and commands in its subscript would run", span);
                }
                for text in alternatives(&dynamic.sources) {
                    let text = format!("{}{text}{}", dynamic.prefix, dynamic.suffix);
                    self.evaluated_subscript(&text, span);
                }
            }
        }
    }

    fn evaluated_subscript(&mut self, text: &str, span: Span) {
        self.evaluated_name(text, span);
        let (name, subscript) = text.split_once('[').unwrap_or((text, ""));
        let subscript = subscript.strip_suffix(']').unwrap_or(subscript);
        if name.contains(['*', '?']) {
            self.hidden_number("a file's name is looked up, and commands in its subscript would run", span);
        }
        if !matches!(subscript, "" | "@") {
            self.evaluated_operand(&Value::Known(subscript.to_owned()), span);
        }
    }

    /// What is evaluated is not known, so nor is what it would run.
    pub(super) fn hidden_number(&mut self, message: &'static str, span: Span) {
        self.find("evaluated_unknown", message, span, Risk::NeedsReview);
    }
}

/// The names in arithmetic text, with where they start.
fn identifiers(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let within = |byte: &u8| *byte == b'_' || byte.is_ascii_alphanumeric() || matches!(byte, 1 | 2);
    let mut at = 0;
    std::iter::from_fn(move || {
        let bytes = text.as_bytes();
        while let Some(byte) = bytes.get(at).copied() {
            let start = at;
            if byte.is_ascii_digit() {
                while bytes.get(at).is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'#') {
                    at += 1;
                }
            } else if byte == b'_' || byte.is_ascii_alphabetic() || matches!(byte, 1 | 2) {
                while bytes.get(at).is_some_and(within) {
                    at += 1;
                }
                // Nothing but a number, or text that was looked at by itself.
                if at > start + 1 || byte > 2 {
                    return text.get(start..at).map(|name| (start, name));
                }
            } else {
                at += 1;
            }
        }
        None
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Assigns {
    Not,
    /// `=`: what it held does not matter.
    Anew,
    /// `+=`, `++`: what it held is evaluated.
    Further,
}

/// Whether the text after a name assigns to it.
fn assigns(text: &str, after: usize) -> Assigns {
    let rest = text.get(after..).unwrap_or_default().trim_start_matches([' ', '\t', '\n']).as_bytes();
    let end = rest.iter().take(3).take_while(|byte| b"+-*/%&|^<>=!".contains(byte)).count();
    match rest.get(..end).unwrap_or_default() {
        b"=" | [b'=', b'+' | b'-' | b'!'] | [b'=', b'+' | b'-' | b'!', _] => Assigns::Anew,
        b"+=" | b"-=" | b"*=" | b"/=" | b"%=" | b"&=" | b"|=" | b"^=" | b"<<=" | b">>=" => Assigns::Further,
        [b'+', b'+', ..] | [b'-', b'-', ..] | [_, b'=', b'+' | b'-' | b'!'] => Assigns::Further,
        _ => Assigns::Not,
    }
}

/// Where the expression ends that an assignment stands in: at the next comma or semicolon outside of brackets.
fn expression_end(text: &str, at: usize) -> usize {
    let mut depth = 0usize;
    for (offset, byte) in text.bytes().enumerate().skip(at) {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth = depth.saturating_sub(1),
            b',' | b';' if depth == 0 => return offset,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_from_numbers() {
        let names = |text| identifiers(text).map(|(_, name)| name).collect::<Vec<&str>>();
        assert_eq!(names("x + 0xff + 16#ab + y1*2 + _z[q]"), ["x", "y1", "_z", "q"]);
        assert_eq!(names("\u{1} + 1"), Vec::<&str>::new());
        assert_eq!(names("x\u{1} + \u{1}y"), ["x\u{1}", "\u{1}y"]);
    }

    #[test]
    fn assignments_are_told_from_comparisons() {
        for (text, expected) in [
            ("x=1", Assigns::Anew),
            ("x = -1", Assigns::Anew),
            ("x=!y", Assigns::Anew),
            ("x==1", Assigns::Not),
            ("x+=1", Assigns::Further),
            ("x++", Assigns::Further),
            ("x<<=1", Assigns::Further),
            ("x<=1", Assigns::Not),
            ("x!=1", Assigns::Not),
            ("x+1", Assigns::Not),
        ] {
            assert_eq!(assigns(text, 1), expected, "{text}");
        }
    }
}
