//! The table of wrappers and interpreters, compiled from `rules/wrappers.toml`, which says what each field means.

use crate::expand::text::{base_name, without_version};

#[derive(Debug)]
pub(crate) struct Wrapper {
    pub flags: &'static str,
    pub values: &'static str,
    pub optional: &'static str,
    pub after: &'static str,
    pub until: &'static str,
    pub long: &'static [&'static str],
    pub long_values: &'static [&'static str],
    pub code: &'static [&'static str],
    pub split: &'static [&'static str],
    pub replace: &'static [&'static str],
    pub review: &'static [&'static str],
    pub globals: &'static [&'static str],
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
    #[cfg_attr(not(test), expect(dead_code, reason = "run by the tests"))]
    pub examples: &'static [&'static str],
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
    pub short: &'static str,
    pub long: &'static [&'static str],
    pub loose: &'static [&'static str],
    pub also_a_tool: bool,
    #[cfg_attr(not(test), expect(dead_code, reason = "run by the tests"))]
    pub examples: &'static [&'static str],
    #[cfg_attr(not(test), expect(dead_code, reason = "run by the tests"))]
    pub plain: &'static [&'static str],
}

/// The words of a subcommand and the number of its grammar.
type Use = (&'static [&'static str], usize);

include!(concat!(env!("OUT_DIR"), "/wrappers.rs"));

/// The uses of a program as a wrapper: the words of its subcommand, longest first, and the grammar.
pub(crate) fn wrappers(program: &str) -> impl Iterator<Item = (&'static [&'static str], &'static Wrapper)> {
    let name = base_name(program);
    let uses = INDEX.binary_search_by_key(&name, |(known, _)| known).ok().and_then(|at| INDEX.get(at));
    uses.into_iter().flat_map(|(_, uses)| uses.iter()).filter_map(|(path, at)| Some((*path, WRAPPERS.get(*at)?)))
}

pub(crate) fn interpreter(program: &str) -> Option<&'static Interpreter> {
    let name = base_name(program);
    let find = |name: &str| INTERPRETER_NAMES.binary_search_by_key(&name, |(known, _)| known).ok();
    let (_, at) = INTERPRETER_NAMES.get(find(name).or_else(|| find(without_version(name)))?)?;
    INTERPRETERS.get(*at)
}

#[cfg(test)]
pub(crate) fn all() -> (&'static [Wrapper], &'static [Interpreter]) {
    (WRAPPERS, INTERPRETERS)
}
