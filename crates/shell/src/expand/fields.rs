//! Puts the pieces of a word together into the words it becomes.

use crate::budget::Budget;
use crate::expand::text::is_pattern;
use crate::word::{Dynamic, Source, Value};

/// Collects pieces left to right; unquoted blanks end one field and begin the next.
#[derive(Debug)]
pub(crate) struct Fields<'b> {
    budget: &'b Budget,
    done: Vec<Value>,
    /// Splits unquoted text and expands patterns: off for assignments, quotes and redirection targets.
    split: bool,
    before: String,
    after: String,
    sources: Vec<Source>,
    splits: bool,
    pattern: bool,
    /// Something stands here, if only empty quotes.
    present: bool,
}

impl<'b> Fields<'b> {
    pub(crate) fn new(split: bool, budget: &'b Budget) -> Self {
        Self {
            budget,
            done: Vec::new(),
            split,
            before: String::new(),
            after: String::new(),
            sources: Vec::new(),
            splits: false,
            pattern: false,
            present: false,
        }
    }

    /// Text as it stands: never split, never a pattern.
    pub(crate) fn quoted(&mut self, text: &str) {
        self.present = true;
        self.append(text);
    }

    /// Literal text of the word itself, outside quotes.
    pub(crate) fn literal(&mut self, text: &str) {
        self.present |= !text.is_empty();
        self.pattern |= self.split && is_pattern(text);
        self.append(text);
    }

    /// Text that an unquoted expansion gave.
    pub(crate) fn expanded(&mut self, text: &str) {
        if !self.split {
            return self.quoted(text);
        }
        let mut first = true;
        for chunk in text.split([' ', '\t', '\n']) {
            if !first {
                self.end_field();
            }
            first = false;
            self.literal(chunk);
        }
    }

    pub(crate) fn unknown(&mut self, sources: impl IntoIterator<Item = Source>, quoted: bool) {
        self.present = true;
        self.after.clear();
        self.splits |= self.split && !quoted;
        for source in sources {
            let source = if self.affords(&source) { source } else { Source::Indirect };
            if !self.sources.contains(&source) {
                self.sources.push(source);
            }
        }
    }

    /// Sources are compared with each other and their texts are kept: both is paid for.
    fn affords(&self, source: &Source) -> bool {
        self.budget.steps(1 + self.sources.len()) && self.budget.bytes(source.weight())
    }

    pub(crate) fn value(&mut self, value: &Value, quoted: bool) {
        match value {
            Value::Known(text) if quoted => self.quoted(text),
            Value::Known(text) => self.expanded(text),
            // A variable holds what the pattern became: names of files, or itself.
            Value::Glob(text) => self.unknown([Source::OneOf(vec![text.clone()])], quoted),
            Value::Dynamic(dynamic) => {
                self.quoted(&dynamic.prefix);
                self.unknown(dynamic.sources.iter().cloned(), quoted);
                self.append(&dynamic.suffix);
            }
        }
    }

    /// Ends the field here; an empty one that nothing stands for vanishes.
    pub(crate) fn end_field(&mut self) {
        if !self.present {
            return;
        }
        let before = std::mem::take(&mut self.before);
        let after = std::mem::take(&mut self.after);
        let sources = std::mem::take(&mut self.sources);
        let value = if !sources.is_empty() {
            Value::Dynamic(Dynamic { prefix: before, suffix: after, sources, splits: self.splits })
        } else if self.pattern {
            Value::Glob(before)
        } else {
            Value::Known(before)
        };
        if self.budget.steps(1) {
            self.done.push(value);
        }
        self.splits = false;
        self.pattern = false;
        self.present = false;
    }

    pub(crate) fn finish(mut self) -> Vec<Value> {
        self.end_field();
        self.done
    }

    /// Everything as one value, for where no splitting happens: `$*` and `${a[@]}` are joined there.
    pub(crate) fn single(mut self) -> Value {
        self.end_field();
        match self.done.len() {
            0 if self.budget.is_spent() => spent(),
            0 => Value::Known(String::new()),
            1 => self.done.pop().unwrap_or_else(spent),
            _ => {
                let mut joined = Fields::new(false, self.budget);
                for (at, value) in self.done.iter().enumerate() {
                    if at > 0 {
                        joined.quoted(" ");
                    }
                    joined.value(value, true);
                }
                joined.end_field();
                joined.done.pop().unwrap_or_else(spent)
            }
        }
    }

    fn append(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        if !self.budget.bytes(text.len()) {
            if !self.sources.contains(&Source::Indirect) {
                self.sources.push(Source::Indirect);
            }
        } else if self.sources.is_empty() {
            self.before.push_str(text);
        } else {
            self.after.push_str(text);
        }
    }
}

/// A value that is not built any more.
fn spent() -> Value {
    Value::Dynamic(Dynamic {
        prefix: String::new(),
        suffix: String::new(),
        sources: vec![Source::Indirect],
        splits: false,
    })
}
