//! The tables of rules and programs, the built-in one, which the build script made, and a user's: how things are looked
//! up in them. Knows nothing of what they mean.

use super::format::Place;
use super::rule::{Condition, Does, Numbers, Program, Row, Rule, Speaks, Table, Test, Tests, Words, family};
use super::words::{Check, Dialect, Heads, Kind, ScriptCheck, Traits};
use crate::effect::{Marks, Reversibility};
use crate::pool::{Name, Slice, Text, bytes, cut, find, part};
use std::borrow::Cow;
use std::ops::Deref;

include!(concat!(env!("OUT_DIR"), "/dangers.rs"));

/// What is built in under a name; under those of its family when there is nothing. A row holds its family's rules too.
pub fn row(name: &str) -> Option<Of<'static, Row>> {
    BUILT_IN.row(name).or_else(|| family(name).iter().flatten().find_map(|name| BUILT_IN.row(name)))
}

impl Table {
    /// What is known under exactly this name.
    pub fn row(&self, name: &str) -> Option<Of<'_, Row>> {
        find(&self.rows, &self.pool, name, |row| row.name).map(|row| self.of(row))
    }

    /// Rules for any program that does this.
    pub fn at(&self, place: Place) -> Numbers {
        self.places.get(place as usize).copied().unwrap_or_default()
    }

    pub fn numbered(&self, numbers: Numbers) -> impl Iterator<Item = Of<'_, Rule>> {
        let rules = &*self.rules;
        part(&self.numbers, numbers.0).iter().filter_map(|at| rules.get(usize::from(*at))).map(|row| self.of(row))
    }

    /// The ids of all rules.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.rules.iter().map(|rule| cut(&self.pool, rule.id))
    }

    pub fn conditions(&self, conditions: Slice) -> &[Condition] {
        part(&self.conditions, conditions)
    }

    pub fn tests(&self, tests: Tests) -> impl Iterator<Item = Of<'_, Test>> {
        part(&self.tests, tests.0).iter().map(|row| self.of(row))
    }

    pub fn words(&self, words: Words) -> impl ExactSizeIterator<Item = &str> + Clone {
        let pool = &*self.pool;
        part(&self.words, words.0).iter().map(|text| cut(pool, *text))
    }

    /// Those among the words that are this long: nearly every comparison ends with that.
    fn words_of(&self, words: Words, len: usize) -> impl Iterator<Item = &[u8]> {
        let pool = &*self.pool;
        part(&self.words, words.0).iter().filter(move |text| text.len as usize == len).map(|text| bytes(pool, *text))
    }

    /// Borrowed for as long as the program runs where the table is.
    fn said(&self, text: Text) -> Cow<'static, str> {
        match &self.pool {
            Cow::Borrowed(pool) => Cow::Borrowed(cut(pool, text)),
            Cow::Owned(pool) => Cow::Owned(cut(pool, text).to_owned()),
        }
    }

    pub fn of<'t, R>(&'t self, row: &'t R) -> Of<'t, R> {
        Of { table: self, row }
    }
}

/// A row, with the table that its numbers point into.
#[derive(Debug)]
pub struct Of<'t, R> {
    table: &'t Table,
    row: &'t R,
}

impl<R> Clone for Of<'_, R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R> Copy for Of<'_, R> {}

impl<R> Deref for Of<'_, R> {
    type Target = R;

    fn deref(&self) -> &R {
        self.row
    }
}

impl<'t> Of<'t, Row> {
    pub fn program(self) -> Option<Of<'t, Program>> {
        self.table.programs.get(usize::from(self.row.program?)).map(|row| self.table.of(row))
    }
}

impl Of<'_, Rule> {
    pub fn id(self) -> Cow<'static, str> {
        self.table.said(self.row.id)
    }

    pub fn reason(self) -> Cow<'static, str> {
        self.table.said(self.row.reason)
    }
}

impl<'t> Of<'t, Test> {
    /// Whether one of the words is this text.
    pub fn has(self, text: &str) -> bool {
        self.table.words_of(self.row.words, text.len()).any(|word| word == text.as_bytes())
    }

    pub fn words(self) -> impl Iterator<Item = &'t str> + Clone {
        self.table.words(self.row.words)
    }
}

impl<'t> Of<'t, Program> {
    /// Whether the option with this name and so many dashes takes a value.
    pub fn takes(self, name: &str, dashes: usize) -> bool {
        let spelled = |option: &[u8]| match option.split_at_checked(dashes) {
            Some((before, after)) => before.iter().all(|byte| *byte == b'-') && after == name.as_bytes(),
            None => false,
        };
        !name.starts_with('-') && self.table.words_of(self.row.takes, name.len() + dashes).any(spelled)
    }

    /// Whether the long option with this name takes two values; it is written with a `=`.
    pub fn takes_two(self, name: &str) -> bool {
        let spelled = |option: &[u8]| {
            option.strip_prefix(b"--").and_then(|option| option.strip_suffix(b"=")) == Some(name.as_bytes())
        };
        self.table.words_of(self.row.takes, name.len() + 3).any(spelled)
    }

    pub fn exact(self) -> impl Iterator<Item = &'t str> {
        self.table.words(self.row.exact)
    }

    pub fn writes(self) -> impl Iterator<Item = &'t str> {
        self.table.words(self.row.writes)
    }

    pub fn reads(self) -> Option<impl ExactSizeIterator<Item = &'t str>> {
        self.row.reads.map(|list| self.table.words(list))
    }

    pub fn code(self) -> impl Iterator<Item = &'t str> {
        self.table.words(self.row.code)
    }
}
