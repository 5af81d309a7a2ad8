//! The built-in rules and programs: constant tables made by the build script, found by program name.

use super::rule::{Check, Dialect, Kind, Program, Rule, ScriptCheck, Test, Trait};
use std::borrow::Cow;

include!(concat!(env!("OUT_DIR"), "/dangers.rs"));

fn rows(key: &str) -> &'static [u16] {
    RULES_OF
        .binary_search_by(|(name, _)| (*name).cmp(key))
        .ok()
        .and_then(|at| RULES_OF.get(at))
        .map_or(&[], |(_, rows)| rows)
}

/// Rules under a program's name, or under a key such as `(writes)`.
pub fn rules(key: &str) -> impl Iterator<Item = &'static Rule> {
    rows(key).iter().filter_map(|at| RULES.get(usize::from(*at)))
}

pub fn program(name: &str) -> Option<&'static Program> {
    let at = PROGRAM_OF.binary_search_by(|(known, _)| (*known).cmp(name)).ok()?;
    PROGRAMS.get(usize::from(PROGRAM_OF.get(at)?.1))
}

/// Other names to look under: `python` for `python3.12`, `mkfs.*` for `mkfs.ext4`.
pub fn family(name: &str) -> [Option<Cow<'_, str>>; 2] {
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.').trim_end_matches('-');
    let version = (bare.len() < name.len() && !bare.is_empty()).then_some(Cow::Borrowed(bare));
    let kind = name.split_once('.').filter(|(start, _)| !start.is_empty());
    [version, kind.map(|(start, _)| Cow::Owned(format!("{start}.*")))]
}
