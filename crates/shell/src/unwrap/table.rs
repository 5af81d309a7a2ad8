//! The table of wrappers and interpreters, compiled from `rules/wrappers.toml`, which says what each field means.

use crate::expand::text::{base_name, without_version};
use crate::pool::{Name, Slice, Text, bytes, cut, find, part};
use std::ops::Deref;

/// A text of the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Said(Text);

impl Deref for Said {
    type Target = str;

    fn deref(&self) -> &'static str {
        cut(POOL, self.0)
    }
}

/// A list of words of the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List(Slice);

impl List {
    pub(crate) fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = &'static str> + Clone {
        part(&WORDS, self.0).iter().map(|text| cut(POOL, *text))
    }

    pub(crate) fn contains(self, word: &str) -> bool {
        let is = |text: &Text| text.len as usize == word.len() && bytes(POOL, *text) == word.as_bytes();
        part(&WORDS, self.0).iter().any(is)
    }
}

#[derive(Debug)]
pub(crate) struct Wrapper {
    pub flags: Said,
    pub values: Said,
    pub optional: Said,
    pub after: Said,
    pub until: Said,
    pub long: List,
    pub long_values: List,
    pub code: List,
    pub split: List,
    pub replace: List,
    pub review: List,
    pub globals: List,
    pub assignments: bool,
    pub permute: bool,
    pub numeric: bool,
    pub single_dash: bool,
    pub lenient: bool,
    pub transparent: bool,
    pub privileged: bool,
    pub elsewhere: bool,
    pub more: bool,
    pub deferred: bool,
    pub stdin: bool,
    pub operands: usize,
    pub inner: Shape,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Command,
    Code,
    Either,
    Each,
    First,
    None,
}

#[derive(Debug)]
pub(crate) struct Interpreter {
    pub short: Said,
    pub long: List,
    pub loose: List,
    /// Letters of options whose value is the next word.
    pub values: Said,
    /// What no plain argument holds.
    pub holds: List,
    pub also_a_tool: bool,
}

include!(concat!(env!("OUT_DIR"), "/wrappers.rs"));

/// The uses of a program as a wrapper: the words of its subcommand, longest first, and the grammar.
pub(crate) fn wrappers(program: &str) -> impl Iterator<Item = (List, &'static Wrapper)> {
    let uses = find(&INDEX, POOL, base_name(program), |row| row.0).map(|row| row.1).unwrap_or_default();
    part(&USES, uses).iter().filter_map(|(path, at)| Some((*path, WRAPPERS.get(usize::from(*at))?)))
}

pub(crate) fn interpreter(program: &str) -> Option<&'static Interpreter> {
    let name = base_name(program);
    let find = |name: &str| find(&INTERPRETER_NAMES, POOL, name, |row| row.0);
    let (_, at) = find(name).or_else(|| find(without_version(name)))?;
    INTERPRETERS.get(usize::from(*at))
}
