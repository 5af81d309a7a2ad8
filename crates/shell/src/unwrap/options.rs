//! Reads the options of a wrapper by its grammar, up to the command it runs.

use crate::command::Assignment;
use crate::expand::text::split_assignment;
use crate::word::{Span, Value, Word};

use super::table::Wrapper;

/// What the options of a wrapper said.
#[derive(Debug, Default)]
pub(super) struct Read {
    /// Where the inner command starts in the words given.
    pub rest: usize,
    pub codes: Vec<Word>,
    /// Words put in front of the rest (`env -S`).
    pub split: Vec<Word>,
    pub assignments: Vec<Assignment>,
    pub placeholder: Option<String>,
    /// The first option that is not known, and the first that is never waved through.
    pub unknown: Option<Span>,
    pub review: Option<Span>,
}

enum Found {
    Flag,
    Value,
    Optional,
    Unknown,
}

struct Reader<'w> {
    wrapper: &'static Wrapper,
    words: &'w [Word],
    at: usize,
    operands: usize,
    read: Read,
}

pub(super) fn read(wrapper: &'static Wrapper, words: &[Word]) -> Read {
    let mut reader = Reader { wrapper, words, at: 0, operands: 0, read: Read::default() };
    reader.run();
    reader.read.rest = reader.at;
    reader.read
}

impl Reader<'_> {
    fn run(&mut self) {
        while let Some(word) = self.words.get(self.at) {
            let text = match &word.value {
                Value::Known(text) => text.as_str(),
                Value::Glob(_) | Value::Dynamic(_) => {
                    if self.operand() {
                        continue;
                    }
                    return;
                }
            };
            if text == "--" || (!self.wrapper.after.is_empty() && text == &*self.wrapper.after) {
                self.at += 1;
                if self.operands < self.wrapper.operands && self.wrapper.after.is_empty() {
                    self.take_operands();
                }
                return;
            }
            if text == "-" && (self.wrapper.assignments || self.wrapper.permute) {
                self.at += 1;
                continue;
            }
            if text.len() > 1 && text.starts_with('-') {
                self.option(text, word);
                continue;
            }
            if self.wrapper.assignments && self.assignment(text, word) {
                continue;
            }
            if !self.operand() {
                return;
            }
        }
    }

    fn take_operands(&mut self) {
        while self.operands < self.wrapper.operands && self.at < self.words.len() {
            self.operands += 1;
            self.at += 1;
        }
    }

    /// Takes the word as one that stands before the command; answers whether reading goes on.
    fn operand(&mut self) -> bool {
        if !self.wrapper.after.is_empty() {
            self.at += 1;
            return true;
        }
        if self.operands >= self.wrapper.operands {
            return false;
        }
        self.operands += 1;
        self.at += 1;
        if self.operands < self.wrapper.operands || self.wrapper.permute {
            return true;
        }
        if self.words.get(self.at).and_then(Word::known) == Some("--") {
            self.at += 1;
        }
        false
    }

    fn assignment(&mut self, text: &str, word: &Word) -> bool {
        let Some((name, value)) = split_assignment(text) else { return false };
        let value = Word { span: word.span, value: Value::Known(value.to_owned()) };
        self.read.assignments.push(Assignment { span: word.span, name: name.to_owned(), value: Some(value) });
        self.at += 1;
        true
    }

    fn option(&mut self, text: &str, word: &Word) {
        self.at += 1;
        if let Some(long) = text.strip_prefix("--") {
            return self.long(long, word);
        }
        let body = text.strip_prefix('-').unwrap_or(text);
        if self.wrapper.single_dash {
            return self.long(body, word);
        }
        if self.wrapper.numeric && body.bytes().all(|byte| byte.is_ascii_digit()) {
            return;
        }
        // Whole words such as `-run` before letters.
        if body.len() > 1 && self.wrapper.code.contains(body) {
            return self.value(body, None, word);
        }
        for (index, letter) in body.char_indices() {
            let after = body.get(index + letter.len_utf8()..).unwrap_or_default();
            let name = letter.to_string();
            match self.short(letter, &name) {
                Found::Flag => self.review(&name, word),
                Found::Value => {
                    let attached = (!after.is_empty()).then_some(after);
                    return self.value(&name, attached, word);
                }
                Found::Optional => {
                    if self.wrapper.replace.contains(&name) {
                        let text = if after.is_empty() { "{}" } else { after };
                        self.read.placeholder = Some(text.to_owned());
                    }
                    if !self.wrapper.flags.contains(letter) || after.starts_with('=') {
                        return self.review(&name, word);
                    }
                }
                Found::Unknown => {
                    if !self.wrapper.lenient {
                        self.read.unknown.get_or_insert(word.span);
                    }
                    return;
                }
            }
        }
    }

    fn short(&self, letter: char, name: &str) -> Found {
        let wrapper = self.wrapper;
        if wrapper.values.contains(letter) || wrapper.code.contains(name) || wrapper.split.contains(name) {
            Found::Value
        } else if wrapper.optional.contains(letter) {
            Found::Optional
        } else if wrapper.flags.contains(letter) || wrapper.review.contains(name) {
            Found::Flag
        } else {
            Found::Unknown
        }
    }

    fn long(&mut self, text: &str, word: &Word) {
        let (name, attached) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (text, None),
        };
        let wrapper = self.wrapper;
        let valued = [wrapper.long_values, wrapper.code, wrapper.split];
        let lists = [wrapper.long, wrapper.long_values, wrapper.code, wrapper.split];
        // An abbreviation means what it abbreviates when only one option begins so.
        let exact = lists.iter().any(|list| list.contains(name));
        let mut candidates = lists.iter().flat_map(|list| list.iter()).filter(|known| known.starts_with(name));
        let resolved = if exact {
            Some(name)
        } else {
            let first = candidates.next();
            if candidates.all(|other| Some(other) == first) { first } else { None }
        };
        let Some(resolved) = resolved else {
            if !wrapper.lenient {
                self.read.unknown.get_or_insert(word.span);
            }
            return;
        };
        if valued.iter().any(|list| list.contains(resolved)) {
            self.value(resolved, attached, word);
        } else {
            self.review(resolved, word);
        }
    }

    /// Handles an option with a value, attached or in the next word.
    fn value(&mut self, name: &str, attached: Option<&str>, word: &Word) {
        self.review(name, word);
        let value = match attached {
            Some(text) => Some(Word { span: word.span, value: Value::Known(text.to_owned()) }),
            None => {
                let next = self.words.get(self.at).cloned();
                self.at += 1;
                next
            }
        };
        let Some(value) = value else { return };
        if self.wrapper.code.contains(name) {
            self.read.codes.push(value);
        } else if self.wrapper.split.contains(name) {
            self.split(&value);
        } else if self.wrapper.replace.contains(name) {
            self.read.placeholder = value.known().map(str::to_owned);
        }
    }

    /// `env -S`: blanks separate, quotes and escapes hold together; what is unclear is said to be unknown.
    fn split(&mut self, value: &Word) {
        let Some(text) = value.known() else {
            self.read.unknown.get_or_insert(value.span);
            self.read.split.push(value.clone());
            return;
        };
        let parsed = crate::parse::parse(text, 0);
        let words = super::plain_words(&parsed);
        match words {
            Some(words) => {
                let known = |text| Word { span: value.span, value: Value::Known(text) };
                for text in words {
                    match split_assignment(&text) {
                        Some(_) if self.read.split.is_empty() => {
                            self.assignment(&text, value);
                            self.at -= 1;
                        }
                        _ => self.read.split.push(known(text)),
                    }
                }
            }
            None => {
                self.read.unknown.get_or_insert(value.span);
                self.read.codes.push(value.clone());
            }
        }
    }

    fn review(&mut self, name: &str, word: &Word) {
        if self.wrapper.review.contains(name) {
            self.read.review.get_or_insert(word.span);
        }
    }
}
