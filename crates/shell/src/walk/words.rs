//! Words: from parts to what bash would make of them, as far as that is known.

use std::borrow::Cow;

use crate::expand::brace;
use crate::expand::fields::Fields;
use crate::parse::{Node, Part};
use crate::reason::Risk;
use crate::word::{Dynamic, Source, Value, Word};

use super::{Heres, Walker};

impl Walker<'_> {
    /// All words that one written word becomes.
    pub(super) fn words(&mut self, node: &Node<'_>, heres: Heres<'_, '_>) -> Vec<Word> {
        let span = self.at(node.span);
        if let [Part::Text { text, quoted }] = node.parts.as_slice()
            && (*quoted || !text.contains(['{', '*', '?', '[']))
        {
            if !self.budget.bytes(text.len()) || !self.budget.steps(1) {
                return Vec::new();
            }
            return vec![Word { span, value: Value::Known(text.clone().into_owned()) }];
        }
        let alternatives = match brace::expand(&node.parts, self.budget) {
            Ok(alternatives) => alternatives,
            Err(brace::TooMany) => {
                self.inspect(&node.parts, heres);
                self.find("brace_expansion", "these braces make more words than can be shown", span, Risk::NeedsReview);
                return vec![Word { span, value: unknown(vec![Source::Indirect]) }];
            }
        };
        let mut values = Vec::new();
        match alternatives {
            None => values.extend(self.fields(&node.parts, heres)),
            Some(alternatives) => {
                for parts in &alternatives {
                    values.extend(self.fields(parts, heres));
                }
            }
        }
        values.into_iter().map(|value| Word { span, value }).collect()
    }

    fn fields(&mut self, parts: &[Part<'_>], heres: Heres<'_, '_>) -> Vec<Value> {
        let mut fields = Fields::new(true, self.budget);
        self.parts(parts, &mut fields, heres);
        fields.finish()
    }

    /// The one value of parts that are not split: assignments, redirection targets, quotes.
    pub(super) fn single(&mut self, parts: &[Part<'_>], heres: Heres<'_, '_>) -> Value {
        let mut fields = Fields::new(false, self.budget);
        self.parts(parts, &mut fields, heres);
        fields.single()
    }

    /// Looks for commands inside parts whose value does not matter.
    pub(super) fn inspect(&mut self, parts: &[Part<'_>], heres: Heres<'_, '_>) {
        let plain = parts.iter().all(|part| matches!(part, Part::Text { .. }));
        if !plain {
            let mut fields = Fields::new(false, self.budget);
            self.parts(parts, &mut fields, heres);
        }
    }

    pub(super) fn parts(&mut self, parts: &[Part<'_>], fields: &mut Fields<'_>, heres: Heres<'_, '_>) {
        for part in parts {
            match part {
                Part::Text { text, quoted: true } => fields.quoted(text),
                Part::Text { text, quoted: false } if text.contains([' ', '\t', '\n']) => fields.expanded(text),
                Part::Text { text, quoted: false } => fields.literal(text),
                Part::Parameter(parameter) => self.parameter(parameter, fields, heres),
                Part::Command(substitution) => {
                    let value = self.substitution(substitution, heres);
                    fields.value(&value, substitution.quoted);
                }
                Part::Backtick { text, offset, quoted, span } => {
                    let value = self.backtick(text, *offset, *span);
                    fields.value(&value, *quoted);
                }
                Part::Process(substitution) => {
                    self.process(substitution, heres);
                    fields.unknown([Source::Process], true);
                }
                Part::Arithmetic(parts) => {
                    let sources = self.arithmetic(parts, heres);
                    fields.unknown(sources, true);
                }
            }
        }
    }

    /// The span of the text being walked, where nothing finer is known.
    pub(super) fn whole(&self) -> crate::word::Span {
        match self.frame.base {
            super::Base::Offset(start) => crate::word::Span { start, end: self.text.len() },
            super::Base::Fixed(span) => span,
        }
    }
}

/// The text of a word that has no expansions at all.
pub(super) fn literal<'n>(node: &'n Node<'_>) -> Option<Cow<'n, str>> {
    match node.parts.as_slice() {
        [Part::Text { text, .. }] => Some(Cow::Borrowed(text)),
        parts => {
            let mut out = String::new();
            for part in parts {
                let Part::Text { text, .. } = part else { return None };
                out.push_str(text);
            }
            Some(Cow::Owned(out))
        }
    }
}

pub(super) fn unknown(sources: Vec<Source>) -> Value {
    Value::Dynamic(Dynamic { prefix: String::new(), suffix: String::new(), sources, splits: false })
}
