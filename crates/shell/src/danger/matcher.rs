//! One rule against one command.

use super::Scope;
use super::checks;
use super::facts::{Facts, Given, Piece};
use super::paths::fits;
use super::rule::{Condition, Table, Tests};
use super::test::passes;
use super::words::Heads;
use crate::pool::Slice;
use crate::word::Span;

/// Where the rule speaks, if it does: the word that says most.
pub fn matches(table: &Table, conditions: Slice, facts: &Facts<'_>, scope: &Scope<'_>) -> Option<Span> {
    let mut at = facts.start();
    let mut consumed = 0;
    let some = |tests: Tests, pieces: &[Piece<'_>]| {
        let tests = table.tests(tests);
        let mut before: Option<&Piece<'_>> = None;
        pieces
            .iter()
            .find(|piece| {
                !before.replace(piece).is_some_and(|before| same(before, piece)) && passes(&tests, piece, scope)
            })
            .map(|piece| piece.span)
    };
    for condition in table.conditions(conditions) {
        let operands = facts.operands.get(consumed..).unwrap_or_default();
        match *condition {
            Condition::Subcommand(paths, heads) => {
                if !heads.meet(Heads::of(operands.first()?.text)) {
                    return None;
                }
                (consumed, at) = table.words(paths).find_map(|path| subcommand(path, facts))?;
            }
            Condition::Without(options) => {
                if table.words(options).any(|option| facts.option_exactly(option).is_some()) {
                    return None;
                }
            }
            Condition::All(options) => {
                for option in table.words(options) {
                    at = facts.option(option)?.span;
                }
            }
            Condition::Any(options) => at = table.words(options).find_map(|option| facts.option(option))?.span,
            Condition::Value(options, tests) => {
                let asked = |given: &&Given<'_>| {
                    table.words(options).any(|names| names.split('|').any(|name| facts.spells(given, name, true)))
                };
                let mut values = facts.options.iter().filter(asked).filter_map(|given| given.value);
                let tests = table.tests(tests);
                at = values.find(|value| passes(&tests, value, scope))?.span;
            }
            Condition::Bare => {
                if !operands.is_empty() || facts.simple.more_arguments {
                    return None;
                }
            }
            Condition::Operand(tests) => at = some(tests, operands)?,
            Condition::First(tests) => at = some(tests, operands.get(..1).unwrap_or_default())?,
            Condition::Last(tests) => at = some(tests, operands.last().map_or(&[], std::slice::from_ref))?,
            Condition::Source(tests) => at = some(tests, operands.split_last().map_or(&[], |(_, before)| before))?,
            Condition::Argument(tests) => at = some(tests, facts.words.get(1..).unwrap_or_default())?,
            Condition::NoOperand(tests) => {
                if some(tests, operands).is_some() {
                    return None;
                }
            }
            Condition::Writes(tests) => at = some(tests, &facts.writes)?,
            Condition::Reads(tests) => at = some(tests, &facts.reads)?,
            Condition::Assigns(names, tests) => {
                let passes = |piece: &Piece<'_>| tests.0.is_empty() || passes(&table.tests(tests), piece, scope);
                let sets = |(name, piece): &&(&str, Piece<'_>)| {
                    table.words(names).any(|pattern| fits(pattern, name)) && passes(piece)
                };
                at = facts.assignments.iter().find(sets)?.1.span;
            }
            Condition::Code(tests) => at = some(tests, &facts.code)?,
            Condition::Check(check) => at = checks::holds(check, facts, scope)?,
        }
    }
    Some(at)
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
