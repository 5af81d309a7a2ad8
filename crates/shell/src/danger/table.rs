//! The built-in rules and programs: constant tables made by the build script, found by program name.

use super::does::Known;
use super::effect::{Effects, Reversibility};
use super::format::Place;
use super::rule::{Condition, Does, Program, Rule, Speaks, Traits};
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

pub fn row(name: &str) -> Option<&'static Row> {
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

pub fn program(name: &str) -> Option<&'static Program> {
    row(name)?.program()
}

/// Other names to look under: `python` for `python3.12`, `mkfs.*` for `mkfs.ext4`.
pub fn family(name: &str) -> [Option<Cow<'_, str>>; 2] {
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.').trim_end_matches('-');
    let version = (bare.len() < name.len() && !bare.is_empty()).then_some(Cow::Borrowed(bare));
    let kind = name.split_once('.').filter(|(start, _)| !start.is_empty());
    [version, kind.map(|(start, _)| Cow::Owned(format!("{start}.*")))]
}
