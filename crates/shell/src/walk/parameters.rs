//! Parameter expansion: `$x`, `${x:-y}`, `$@`, `${a[@]}` and the rest.

use crate::budget::Budget;
use crate::expand::fields::Fields;
use crate::expand::text::is_pattern;
use crate::parse::{Op, Parameter, Part};
use crate::reason::Risk;
use crate::word::{Dynamic, Source, Value, Word};

use super::arithmetic::Round;
use super::compounds::dynamic;
use super::env::Binding;
use super::{Heres, Walker};

/// Variables of the shell that hold numbers, whatever it was started with. Some can be given to it as text all the
/// same (`UID`, `EUID`, `PIPESTATUS`): giving them is asked about (`rules/env.toml`).
const NUMBERS: &[&str] = &[
    "RANDOM",
    "SECONDS",
    "LINENO",
    "UID",
    "EUID",
    "PPID",
    "BASHPID",
    "SRANDOM",
    "EPOCHSECONDS",
    "OPTIND",
    "SHLVL",
    "HISTCMD",
    "BASH_SUBSHELL",
    "BASH_VERSINFO",
    "PIPESTATUS",
];

/// Whether a name that this text does not set holds numbers.
pub(super) fn is_number(name: &str) -> bool {
    NUMBERS.contains(&name)
}

impl Walker<'_> {
    pub(super) fn parameter(&mut self, parameter: &Parameter<'_>, fields: &mut Fields<'_>, heres: Heres<'_, '_>) {
        if let Some(subscript) = &parameter.subscript {
            self.subscript(subscript, heres);
        }
        let quoted = parameter.quoted;
        if parameter.indirect {
            self.operand_parts(&parameter.op, heres);
            self.indirect(parameter);
            let source = if self.counts_elements(parameter) { Source::Number } else { Source::Indirect };
            return fields.unknown([source], quoted);
        }
        match &parameter.op {
            Op::None => self.plain(parameter, fields),
            Op::Length => fields.unknown([Source::Number], true),
            Op::Names => fields.unknown([Source::Indirect], quoted),
            Op::Transform(letter) => self.transform(*letter, parameter, fields),
            Op::Error { word } => {
                self.inspect(word, heres);
                self.plain(parameter, fields);
            }
            Op::Default { colon, word } => {
                let _default = self.default(parameter, *colon, word, fields, heres);
            }
            Op::AssignDefault { colon, word } => {
                let span = self.at(parameter.span);
                self.find("assigned_default", "assigns a variable on the way", span, Risk::NeedsReview);
                let bound = self.env.is_bound(parameter.name);
                let value = self.default(parameter, *colon, word, fields, heres);
                if !bound && let Some(value) = value {
                    self.assigned_number(parameter.name, &value, span);
                    self.env.bind(parameter.name, Binding::scalar(value));
                }
            }
            Op::Alternate { colon, word } => self.alternate(parameter, *colon, word, fields, heres),
            Op::Slice(_) | Op::Strip { .. } | Op::Replace { .. } | Op::Case(_) => {
                self.edited(parameter, fields, heres);
            }
        }
    }

    /// What stands between `[` and `]`: all elements, or arithmetic.
    pub(super) fn subscript(&mut self, parts: &[Part<'_>], heres: Heres<'_, '_>) {
        if !matches!(parts, [Part::Text { text, .. }] if matches!(&**text, "@" | "*")) {
            self.arithmetic(parts, heres);
        }
    }

    /// `${!x}` looks up the name that `x` holds, subscript and all. `${!x[@]}` and `${!x*}` only list names.
    fn indirect(&mut self, parameter: &Parameter<'_>) {
        if matches!(parameter.op, Op::Names) || matches!(subscript_text(parameter), Some("@" | "*")) {
            return;
        }
        let span = self.at(parameter.span);
        match self.current(parameter) {
            Value::Known(name) if !is_pattern(&name) || name.contains(['$', '`']) => {
                self.find("evaluated_content", "looks up whatever name the value holds", span, Risk::NeedsReview);
                self.evaluated_name(&name, span);
            }
            _ => self.hidden_number("looks up whatever name the value holds, and runs commands in its subscript", span),
        }
    }

    /// `${!a[@]}` of an array whose elements are in order: their numbers.
    fn counts_elements(&self, parameter: &Parameter<'_>) -> bool {
        matches!(subscript_text(parameter), Some("@" | "*"))
            && matches!(parameter.op, Op::None)
            && !self.env.is_aliased()
            && self.env.get(parameter.name).is_some_and(|binding| binding.array.is_some())
    }

    /// Looks inside the words of an operation whose result is unknown anyway.
    fn operand_parts(&mut self, op: &Op<'_>, heres: Heres<'_, '_>) {
        match op {
            Op::Default { word, .. }
            | Op::AssignDefault { word, .. }
            | Op::Error { word }
            | Op::Alternate { word, .. }
            | Op::Strip { pattern: word, .. }
            | Op::Case(word) => self.inspect(word, heres),
            Op::Slice(word) => {
                self.arithmetic(word, heres);
            }
            Op::Replace { pattern, with, .. } => {
                self.inspect(pattern, heres);
                self.inspect(with, heres);
            }
            Op::None | Op::Length | Op::Transform(_) | Op::Names => {}
        }
    }

    /// `$x` without an operation.
    fn plain(&mut self, parameter: &Parameter<'_>, fields: &mut Fields<'_>) {
        let quoted = parameter.quoted;
        let all = matches!(parameter.name, "@" | "*");
        if all || parameter.name.bytes().all(|byte| byte.is_ascii_digit()) {
            return self.positional(parameter, fields);
        }
        if let Some(words) = self.array_words(parameter) {
            let star = subscript_text(parameter) == Some("*");
            return push_words(fields, &words, quoted, star);
        }
        let value = self.variable(parameter.name);
        if parameter.subscript.is_some() {
            if self.env.get(parameter.name).is_some_and(|binding| binding.array.is_some()) {
                return fields.unknown(self.element_sources(parameter.name), quoted);
            }
            return fields.unknown(sources_of(&value), quoted);
        }
        if !quoted && self.env.get("IFS").is_some() && matches!(value, Value::Known(_)) {
            return fields.unknown(sources_of(&value), quoted);
        }
        fields.value(&value, quoted);
    }

    /// What a variable holds, as far as this text says.
    pub(super) fn variable(&self, name: &str) -> Value {
        if self.env.is_aliased() {
            return dynamic(Source::Indirect);
        }
        if let Some(binding) = self.env.get(name) {
            if !self.budget.bytes(binding.value.weight()) {
                return dynamic(Source::Indirect);
            }
            return binding.value.clone();
        }
        match name {
            "?" | "#" | "$" | "!" => dynamic(Source::Number),
            // Letters: arithmetic would take them for a name.
            "-" => dynamic(Source::BoundedOutput),
            "_" => dynamic(Source::Indirect),
            "IFS" => Value::Known(" \t\n".to_owned()),
            _ if NUMBERS.contains(&name) => dynamic(Source::Number),
            _ if self.env.is_bound(name) => dynamic(Source::Output),
            _ => dynamic(Source::Variable(name.to_owned())),
        }
    }

    /// Where any of the elements of an array may come from.
    fn element_sources(&self, name: &str) -> Vec<Source> {
        let words = self.env.get(name).and_then(|binding| binding.array.as_deref()).unwrap_or_default();
        let weight = words.iter().map(|word| word.value.weight()).sum();
        if !self.budget.bytes(weight) || !self.budget.steps(words.len()) {
            return vec![Source::Indirect];
        }
        let mut texts = Vec::new();
        let mut others = Vec::new();
        for word in words {
            match &word.value {
                Value::Known(text) | Value::Glob(text) => texts.push(text.clone()),
                Value::Dynamic(dynamic) => others.extend(dynamic.sources.iter().cloned()),
            }
        }
        others.push(Source::OneOf(texts));
        others
    }

    fn positional(&self, parameter: &Parameter<'_>, fields: &mut Fields<'_>) {
        let Some(words) = self.frame.positional.as_deref() else {
            return fields.unknown([Source::Positional], parameter.quoted);
        };
        match parameter.name.parse::<usize>() {
            Ok(index) if !in_place(words, index) => fields.unknown([Source::Positional], parameter.quoted),
            Ok(index) => {
                let empty = Value::Known(String::new());
                let value = words.get(index).map_or(&empty, |word| &word.value);
                fields.value(value, parameter.quoted);
            }
            Err(_) => push_words(fields, words.get(1..).unwrap_or_default(), parameter.quoted, parameter.name == "*"),
        }
    }

    /// The elements that `${a[@]}`, `${a[2]}` or `$a` of a known array mean.
    fn array_words(&self, parameter: &Parameter<'_>) -> Option<Vec<Word>> {
        if self.env.is_aliased() {
            return None;
        }
        let words = self.env.get(parameter.name)?.array.as_ref()?;
        let weight = words.iter().map(|word| word.value.weight()).sum();
        match subscript_text(parameter) {
            Some("@" | "*") if !self.budget.bytes(weight) || !self.budget.steps(words.len()) => None,
            Some("@" | "*") => Some(words.clone()),
            Some(index) => {
                let index = index.parse::<usize>().ok()?;
                in_place(words, index).then(|| words.get(index).cloned().into_iter().collect())
            }
            None if parameter.subscript.is_none() => Some(words.first().cloned().into_iter().collect()),
            None => None,
        }
    }

    /// `${x:-y}`; gives what `y` is, where that was needed as one value.
    fn default(
        &mut self,
        parameter: &Parameter<'_>,
        colon: bool,
        word: &[Part<'_>],
        fields: &mut Fields<'_>,
        heres: Heres<'_, '_>,
    ) -> Option<Value> {
        let value = self.current(parameter);
        match &value {
            Value::Known(text) if !text.is_empty() || !colon => {
                self.inspect(word, heres);
                fields.value(&value, parameter.quoted);
                None
            }
            Value::Known(_) => {
                self.parts(word, fields, heres);
                None
            }
            _ => {
                let default = self.single(word, heres);
                let mut sources = sources_of(&value);
                match &default {
                    Value::Known(text) if text.is_empty() => {}
                    other => sources.extend(sources_of(other)),
                }
                fields.unknown(sources, parameter.quoted);
                Some(default)
            }
        }
    }

    fn alternate(
        &mut self,
        parameter: &Parameter<'_>,
        colon: bool,
        word: &[Part<'_>],
        fields: &mut Fields<'_>,
        heres: Heres<'_, '_>,
    ) {
        match self.current(parameter) {
            Value::Known(text) if !text.is_empty() || !colon => self.parts(word, fields, heres),
            Value::Known(_) => self.inspect(word, heres),
            _ => {
                let mut sources = sources_of(&self.single(word, heres));
                if let Some(Source::OneOf(texts)) = sources.first_mut() {
                    texts.insert(0, String::new());
                }
                fields.unknown(sources, parameter.quoted);
            }
        }
    }

    pub(super) fn current(&self, parameter: &Parameter<'_>) -> Value {
        if parameter.subscript.is_some() || matches!(parameter.name, "@" | "*") {
            return dynamic(Source::Positional);
        }
        if let Ok(index) = parameter.name.parse::<usize>() {
            let known = self.frame.positional.as_deref().map(|words| words.get(index));
            return match known {
                _ if !self.frame.positional.as_deref().is_some_and(|words| in_place(words, index)) => {
                    dynamic(Source::Positional)
                }
                Some(Some(word)) if !self.budget.bytes(word.value.weight()) => dynamic(Source::Indirect),
                Some(Some(word)) => word.value.clone(),
                Some(None) => Value::Known(String::new()),
                None => dynamic(Source::Positional),
            };
        }
        self.variable(parameter.name)
    }

    /// `${x@Q}` and its kin; `@P` runs what the value holds.
    fn transform(&mut self, letter: char, parameter: &Parameter<'_>, fields: &mut Fields<'_>) {
        let value = self.current(parameter);
        if letter == 'P' {
            let span = self.at(parameter.span);
            self.prompt_expansion(&value, span);
        }
        let sources = match letter {
            'P' | 'A' | 'K' | 'k' => vec![Source::Indirect],
            _ => sources_of(&value),
        };
        fields.unknown(sources, parameter.quoted);
    }

    /// Substrings, stripping and replacing: worked out where everything is plain text.
    fn edited(&mut self, parameter: &Parameter<'_>, fields: &mut Fields<'_>, heres: Heres<'_, '_>) {
        let value = self.current(parameter);
        let result = match (&value, &parameter.op) {
            (Value::Known(text), Op::Slice(word)) => {
                let (_, known) = self.arithmetic_in(word, Round::First, heres);
                known.and_then(|word| slice(text, &word))
            }
            (Value::Known(text), Op::Strip { prefix, pattern }) => strip(text, *prefix, &self.single(pattern, heres)),
            (Value::Known(text), Op::Replace { all, pattern, with }) => {
                let (pattern, with) = (self.single(pattern, heres), self.single(with, heres));
                replace(text, *all, &pattern, &with, self.budget)
            }
            (Value::Known(text), Op::Case(word)) => {
                self.inspect(word, heres);
                if !self.budget.bytes(text.len() * 2) {
                    return fields.unknown([Source::Indirect], parameter.quoted);
                }
                let texts = vec![text.to_lowercase(), text.to_uppercase()];
                return fields.unknown([Source::OneOf(texts)], parameter.quoted);
            }
            (_, op) => {
                self.operand_parts(op, heres);
                None
            }
        };
        match result {
            Some(text) => fields.value(&Value::Known(text), parameter.quoted),
            None => fields.unknown(edited_sources(&value), parameter.quoted),
        }
    }
}

/// A value cut in ways not worked out: its alternatives no longer hold.
fn edited_sources(value: &Value) -> Vec<Source> {
    let sources = sources_of(value).into_iter();
    sources.map(|source| if let Source::OneOf(_) = source { Source::Indirect } else { source }).collect()
}

/// Whether this element is the one of that number: a pattern or an unquoted value before it may be any number of them.
fn in_place(words: &[Word], index: usize) -> bool {
    words.iter().take(index).skip(1).chain(words.first()).all(|word| match &word.value {
        Value::Known(_) => true,
        Value::Glob(_) => index == 0,
        Value::Dynamic(dynamic) => index == 0 || !may_be_several(dynamic),
    })
}

fn may_be_several(dynamic: &Dynamic) -> bool {
    dynamic.splits || dynamic.sources.contains(&Source::Indirect)
}

fn push_words(fields: &mut Fields<'_>, words: &[Word], quoted: bool, joined: bool) {
    for (index, word) in words.iter().enumerate() {
        if index > 0 && joined && quoted {
            fields.quoted(" ");
        } else if index > 0 {
            fields.end_field();
        }
        fields.value(&word.value, quoted);
    }
}

pub(super) fn sources_of(value: &Value) -> Vec<Source> {
    match value {
        Value::Known(text) | Value::Glob(text) => vec![Source::OneOf(vec![text.clone()])],
        Value::Dynamic(dynamic) => dynamic.sources.clone(),
    }
}

fn subscript_text<'p>(parameter: &'p Parameter<'_>) -> Option<&'p str> {
    match parameter.subscript.as_deref() {
        Some([Part::Text { text, .. }]) => Some(text),
        _ => None,
    }
}

fn slice(text: &str, word: &str) -> Option<String> {
    let (offset, length) = match word.split_once(':') {
        Some((offset, length)) => (offset, Some(length.trim().parse::<usize>().ok()?)),
        None => (word, None),
    };
    let count = text.chars().count();
    let offset = match offset.trim().parse::<i64>().ok()? {
        back if back < 0 => count.checked_sub(usize::try_from(back.unsigned_abs()).ok()?)?,
        forward => usize::try_from(forward).ok()?,
    };
    let rest = text.chars().skip(offset);
    Some(match length {
        Some(length) => rest.take(length).collect(),
        None => rest.collect(),
    })
}

fn strip(text: &str, prefix: bool, pattern: &Value) -> Option<String> {
    let pattern = plain(pattern)?;
    let stripped = if prefix { text.strip_prefix(pattern) } else { text.strip_suffix(pattern) };
    Some(stripped.unwrap_or(text).to_owned())
}

fn replace(text: &str, all: bool, pattern: &Value, with: &Value, budget: &Budget) -> Option<String> {
    let (pattern, Value::Known(with)) = (plain(pattern)?, with) else { return None };
    if pattern.is_empty() {
        return Some(text.to_owned());
    }
    let most = if all { text.len() / pattern.len() } else { 1 };
    let grown = text.len().saturating_add(most.saturating_mul(with.len()));
    budget.bytes(grown).then(|| if all { text.replace(pattern, with) } else { text.replacen(pattern, with, 1) })
}

fn plain(pattern: &Value) -> Option<&str> {
    match pattern {
        Value::Known(text) if !is_pattern(text) => Some(text),
        _ => None,
    }
}
