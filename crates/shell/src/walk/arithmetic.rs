//! Arithmetic: `$((…))`, subscripts, `let`, both sides of `-eq`. Bash evaluates what a name holds, what that holds
//! in turn, and expands every subscript on the way, so text can become commands here without looking like any.

use crate::expand::fields::Fields;
use crate::parse::Part;
use crate::reason::Risk;
use crate::word::{Source, Span, Value};

use super::env::Binding;
use super::substitutions::alternatives;
use super::words::unknown;
use super::{Heres, Walker};

/// Names that hold names that hold names: more than this is not looked up, and said.
const MAX_LOOKUPS: usize = 8;
/// Variables of the shell whose every assignment is evaluated as arithmetic, or may be.
const EVALUATED: &[&str] = &["RANDOM", "SRANDOM", "SECONDS", "LINENO", "OPTIND", "HISTCMD", "EPOCHSECONDS", "BASHPID"];

impl Walker<'_> {
    /// Arithmetic: a number, unless commands or unsafe names are evaluated on the way.
    pub(super) fn arithmetic(&mut self, parts: &[Part<'_>], heres: Heres<'_, '_>) -> Vec<Source> {
        let mut sources = vec![Source::Number];
        // What bash evaluates once every expansion is done, as far as it is known.
        let mut whole = String::new();
        for part in parts {
            if let Part::Text { text, .. } = part {
                whole.push_str(text);
                continue;
            }
            let mut fields = Fields::new(false);
            self.parts(std::slice::from_ref(part), &mut fields, heres);
            match fields.single() {
                Value::Known(text) | Value::Glob(text) => whole.push_str(&text),
                Value::Dynamic(dynamic) => {
                    let span = self.whole();
                    if self.holds_content(&dynamic.sources) {
                        let message = "arithmetic evaluates what is read, which can be code";
                        self.find("evaluated_content", message, span, Risk::NeedsReview);
                    }
                    for text in alternatives(&dynamic.sources) {
                        self.evaluated_arithmetic(text, span, &mut sources);
                    }
                    for source in dynamic.sources {
                        if !matches!(source, Source::Variable(_) | Source::OneOf(_)) && !sources.contains(&source) {
                            sources.push(source);
                        }
                    }
                    whole.push('0');
                }
            }
        }
        let span = self.whole();
        self.evaluated_arithmetic(&whole, span, &mut sources);
        sources
    }

    /// Text that is evaluated as arithmetic.
    pub(super) fn evaluated_arithmetic(&mut self, text: &str, span: Span, sources: &mut Vec<Source>) {
        self.evaluated_names(text, span, sources, 0);
        let assigned: Vec<&str> =
            identifiers(text).filter(|(at, name)| assigns(text, at + name.len())).map(|(_, name)| name).collect();
        for name in assigned {
            self.env.bind(name, Binding::scalar(unknown(vec![Source::Number])));
        }
    }

    fn evaluated_names(&mut self, text: &str, span: Span, sources: &mut Vec<Source>, lookups: usize) {
        if text.contains('[') && text.contains(['$', '`']) {
            self.evaluated_name(text, span);
            sources.push(Source::Indirect);
        }
        for (_, name) in identifiers(text) {
            let Some(binding) = self.env.get(name) else { continue };
            let content = binding.content;
            let values = std::iter::once(&binding.value).chain(binding.array.iter().flatten().map(|word| &word.value));
            let mut texts: Vec<String> = Vec::new();
            let mut hidden = content;
            for value in values {
                match value {
                    Value::Known(text) | Value::Glob(text) => texts.push(text.clone()),
                    Value::Dynamic(dynamic) => {
                        hidden |= dynamic.sources.iter().any(|s| matches!(s, Source::Output | Source::Indirect));
                        texts.extend(alternatives(&dynamic.sources).into_iter().map(str::to_owned));
                    }
                }
            }
            texts.retain(|text| !text.bytes().all(|byte| byte.is_ascii_digit()));
            if hidden || (lookups >= MAX_LOOKUPS && !texts.is_empty()) {
                let message = format!("arithmetic evaluates what `{name}` holds, which can be code");
                self.find("evaluated_content", message, span, Risk::NeedsReview);
                sources.push(Source::Indirect);
                continue;
            }
            for text in texts {
                self.evaluated_names(&text, span, sources, lookups + 1);
            }
        }
    }

    /// A value given to a name that turns every value into a number.
    pub(super) fn assigned_number(&mut self, name: &str, value: &Value, span: Span) {
        if !EVALUATED.contains(&name) && !self.env.is_integer(name) {
            return;
        }
        let mut sources = Vec::new();
        match value {
            Value::Known(text) | Value::Glob(text) => self.evaluated_arithmetic(text, span, &mut sources),
            Value::Dynamic(dynamic) => {
                for text in alternatives(&dynamic.sources) {
                    self.evaluated_arithmetic(text, span, &mut sources);
                }
                if dynamic.sources.iter().any(|source| !matches!(source, Source::Number | Source::OneOf(_))) {
                    let message = format!("`{name}` evaluates what it is given, which can be code");
                    self.find("evaluated_content", message, span, Risk::NeedsReview);
                }
            }
        }
    }

    /// One side of a comparison of numbers in `[[ … ]]`, or a name after `-v`.
    pub(super) fn evaluated_operand(&mut self, value: &Value, span: Span, is_name: bool) {
        let mut sources = Vec::new();
        match value {
            Value::Known(text) | Value::Glob(text) if is_name => self.evaluated_name(text, span),
            Value::Known(text) | Value::Glob(text) => self.evaluated_arithmetic(text, span, &mut sources),
            Value::Dynamic(dynamic) => {
                for text in alternatives(&dynamic.sources) {
                    let text = format!("{}{text}{}", dynamic.prefix, dynamic.suffix);
                    self.evaluated_arithmetic(&text, span, &mut sources);
                }
                let subscript = dynamic.prefix.contains('[')
                    && dynamic.sources.iter().any(|source| !matches!(source, Source::Number | Source::OneOf(_)));
                let named = is_name && !matches!(dynamic.sources.as_slice(), [Source::OneOf(_)]);
                if subscript || named || self.holds_content(&dynamic.sources) {
                    let message = "this is evaluated, and what it holds can be code";
                    self.find("evaluated_content", message, span, Risk::NeedsReview);
                }
            }
        }
    }
}

/// The names in arithmetic text, with where they start.
fn identifiers(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let bytes = text.as_bytes();
        while let Some(byte) = bytes.get(at).copied() {
            if byte.is_ascii_digit() {
                while bytes.get(at).is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'#') {
                    at += 1;
                }
            } else if byte == b'_' || byte.is_ascii_alphabetic() {
                let start = at;
                while bytes.get(at).is_some_and(|b| *b == b'_' || b.is_ascii_alphanumeric()) {
                    at += 1;
                }
                return text.get(start..at).map(|name| (start, name));
            } else {
                at += 1;
            }
        }
        None
    })
}

/// Whether the text after a name assigns to it.
fn assigns(text: &str, after: usize) -> bool {
    let rest = text.get(after..).unwrap_or_default().trim_start();
    let operator: String = rest.chars().take_while(|c| "+-*/%&|^<>=!".contains(*c)).take(3).collect();
    matches!(
        operator.as_str(),
        "=" | "+=" | "-=" | "*=" | "/=" | "%=" | "&=" | "|=" | "^=" | "<<=" | ">>=" | "++" | "--"
    )
}
