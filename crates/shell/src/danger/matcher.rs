//! One rule against one command.

use super::Scope;
use super::arguments::Given;
use super::checks;
use super::facts::{Facts, Piece};
use super::paths::fits;
use super::rule::{Condition, Table, Tests};
use super::test::passes;
use super::words::Heads;
use crate::pool::Slice;
use crate::word::Span;

/// Where the rule speaks, if it does: the word that says most.
pub fn matches(table: &Table, conditions: Slice, facts: &Facts<'_>, scope: &Scope<'_>) -> Option<Span> {
    let mut found = Found { at: facts.start(), consumed: 0 };
    for condition in table.conditions(conditions) {
        found = holds(table, *condition, found, facts, scope)?;
    }
    Some(found.at)
}

/// What the conditions before have found.
#[derive(Clone, Copy)]
struct Found {
    at: Span,
    /// How many operands the subcommand took.
    consumed: usize,
}

/// Apart from the loop over conditions: most rules are out at the first, and what each kind of condition needs would be
/// made ready for all of them.
#[inline(never)]
fn holds(table: &Table, condition: Condition, found: Found, facts: &Facts<'_>, scope: &Scope<'_>) -> Option<Found> {
    let operands = facts.operands.get(found.consumed..).unwrap_or_default();
    let some = |tests: Tests, pieces: &[Piece<'_>]| some(table, tests, pieces, scope);
    let unless = |bad: bool| if bad { None } else { Some(found.at) };
    let at = match condition {
        Condition::Subcommand(paths, heads) => {
            if !heads.meet(Heads::of(operands.first()?.text)) {
                return None;
            }
            let (consumed, at) = table.words(paths).find_map(|path| subcommand(path, facts))?;
            return Some(Found { at, consumed });
        }
        Condition::Without(options) => {
            unless(table.words(options).any(|option| facts.option_exactly(option).is_some()))?
        }
        Condition::All(options) => {
            let mut at = found.at;
            for option in table.words(options) {
                at = facts.option(option)?.span;
            }
            at
        }
        Condition::Any(options) => table.words(options).find_map(|option| facts.option(option))?.span,
        Condition::Value(options, tests) => {
            let asked = |given: &&Given<'_>| {
                table.words(options).any(|names| names.split('|').any(|name| facts.spells(given, name, true)))
            };
            let mut values = facts.options.iter().filter(asked).filter_map(|given| given.value);
            values.find(|value| passes(table, tests, value, scope))?.span
        }
        Condition::Bare => unless(!operands.is_empty() || facts.simple.more_arguments)?,
        Condition::Operand(tests) => some(tests, operands)?,
        Condition::First(tests) => some(tests, operands.get(..1).unwrap_or_default())?,
        Condition::Last(tests) => some(tests, operands.last().map_or(&[], std::slice::from_ref))?,
        Condition::Source(tests) => some(tests, operands.split_last().map_or(&[], |(_, before)| before))?,
        Condition::Argument(tests) => some(tests, facts.words.get(1..).unwrap_or_default())?,
        Condition::NoOperand(tests) => unless(some(tests, operands).is_some())?,
        Condition::Writes(tests) => some(tests, &facts.writes)?,
        Condition::Reads(tests) => some(tests, &facts.reads)?,
        Condition::Assigns(names, tests) => {
            let sets = |(name, piece): &&(&str, Piece<'_>)| {
                table.words(names).any(|pattern| fits(pattern, name))
                    && (tests.0.is_empty() || passes(table, tests, piece, scope))
            };
            facts.assignments.iter().find(sets)?.1.span
        }
        Condition::Code(tests) => some(tests, &facts.code)?,
        Condition::Check(check) => checks::holds(check, facts, scope)?,
    };
    Some(Found { at, ..found })
}

/// Where the first of these is that passes.
fn some(table: &Table, tests: Tests, pieces: &[Piece<'_>], scope: &Scope<'_>) -> Option<Span> {
    let mut before: Option<&Piece<'_>> = None;
    let mut pieces = pieces.iter();
    let found = pieces.find(|piece| {
        !before.replace(piece).is_some_and(|before| same(before, piece)) && passes(table, tests, piece, scope)
    });
    found.map(|piece| piece.span)
}

/// The same word again: what was said of the one holds for the other.
fn same(a: &Piece<'_>, b: &Piece<'_>) -> bool {
    a.text == b.text && a.word.map(|word| &word.value) == b.word.map(|word| &word.value)
}

/// How many operands a path such as `stash drop|clear` takes, when it leads here.
fn subcommand(path: &str, facts: &Facts<'_>) -> Option<(usize, Span)> {
    let mut position = 0;
    let mut at = facts.start();
    let mut anywhere = false;
    for step in path.split(' ') {
        if step == "**" {
            anywhere = true;
            continue;
        }
        let fits = |piece: &Piece<'_>| step.split('|').any(|word| fits(word, piece.text));
        let rest = facts.operands.get(position..)?;
        let skipped = if anywhere { rest.iter().position(fits)? } else { usize::from(!rest.first().is_some_and(fits)) };
        if skipped > 0 && !anywhere {
            return None;
        }
        at = rest.get(skipped)?.span;
        position += skipped + 1;
        anywhere = false;
    }
    Some((position, at))
}
