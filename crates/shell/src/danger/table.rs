//! The built-in rules and programs: constant tables made by the build script, found by program name.

use super::does::Known;
use super::effect::{Effects, Reversibility};
use super::format::Place;
use super::rule::{Condition, Does, Program, Rule, Speaks, Traits, family};
use super::words::{Check, Dialect, Heads, Kind, ScriptCheck, Test};
use std::borrow::Cow;

include!(concat!(env!("OUT_DIR"), "/dangers.rs"));

/// What is known under one program's name.
#[derive(Debug)]
pub struct Row {
    name: &'static str,
    /// Where in `PROGRAMS`.
    program: Option<u16>,
    /// Where in `RULES`.
    rules: &'static [u16],
    pub known: &'static [Known],
}

/// What is known under a name; under those of its family when there is nothing. A row holds its family's rules too.
pub fn row(name: &str) -> Option<&'static Row> {
    exactly(name).or_else(|| family(name).iter().flatten().find_map(|name| exactly(name)))
}

fn exactly(name: &str) -> Option<&'static Row> {
    ROWS.binary_search_by(|row| row.name.cmp(name)).ok().and_then(|at| ROWS.get(at))
}

fn numbered(rules: &'static [u16]) -> impl Iterator<Item = &'static Rule> {
    rules.iter().filter_map(|at| RULES.get(usize::from(*at)))
}

impl Row {
    pub fn rules(&self) -> impl Iterator<Item = &'static Rule> + use<> {
        numbered(self.rules)
    }

    pub fn program(&self) -> Option<&'static Program> {
        PROGRAMS.get(usize::from(self.program?))
    }
}

/// Rules for any program that does this.
pub fn at(place: Place) -> impl Iterator<Item = &'static Rule> {
    numbered(match place {
        Place::Any => ANY,
        Place::Assign => ASSIGN,
        Place::Writes => WRITES,
        Place::Reads => READS,
        Place::Script => SCRIPT,
    })
}

pub fn has_rule(id: &str) -> bool {
    RULES.iter().any(|rule| rule.id == id)
}
