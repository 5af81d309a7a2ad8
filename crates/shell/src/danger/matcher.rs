//! One rule against one command.

use super::Scope;
use super::checks;
use super::facts::{Facts, Piece};
use super::paths::fits;
use super::rule::{Rule, Tests};
use super::test::passes;
use crate::word::Span;

/// Where the rule speaks, if it does: the word that says most.
pub fn matches(rule: &Rule, facts: &Facts<'_>, scope: &Scope<'_>) -> Option<Span> {
    let mut at = facts.start();
    let consumed = if rule.subcommand.is_empty() {
        0
    } else {
        let (consumed, span) = rule.subcommand.iter().find_map(|path| subcommand(path, facts))?;
        at = span;
        consumed
    };
    for option in rule.none.iter() {
        if facts.option_exactly(option).is_some() {
            return None;
        }
    }
    for option in rule.all.iter() {
        at = facts.option(option)?.span;
    }
    if !rule.any.is_empty() {
        at = rule.any.iter().find_map(|option| facts.option(option))?.span;
    }
    if !rule.value_of.is_empty() {
        let value = |piece: &Piece<'_>| passes(&rule.value, piece, scope);
        let given = facts.options.iter().filter(|given| {
            rule.value_of.iter().any(|names| names.split('|').any(|name| facts.spells(given, name, true)))
        });
        at = given.filter_map(|given| given.value).find(value)?.span;
    }
    let operands = facts.operands.get(consumed..).unwrap_or_default();
    if rule.bare && (!operands.is_empty() || facts.simple.more_arguments) {
        return None;
    }
    let some = |tests: &Tests, pieces: &[Piece<'_>], at: &mut Span| {
        if tests.is_empty() {
            return true;
        }
        let found = pieces.iter().find(|piece| passes(tests, piece, scope));
        if let Some(piece) = found {
            *at = piece.span;
        }
        found.is_some()
    };
    let (before_last, last) = match operands.split_last() {
        Some((last, before)) => (before, std::slice::from_ref(last)),
        None => (operands, operands),
    };
    let found = some(&rule.operand, operands, &mut at)
        && some(&rule.also, operands, &mut at)
        && some(&rule.first, operands.get(..1).unwrap_or_default(), &mut at)
        && some(&rule.last, last, &mut at)
        && some(&rule.source, before_last, &mut at)
        && some(&rule.argument, facts.words.get(1..).unwrap_or_default(), &mut at);
    if !found || operands.iter().any(|piece| passes(&rule.not_operand, piece, scope)) {
        return None;
    }
    let touches = (rule.writes.is_empty() || some(&rule.writes, &facts.writes, &mut at))
        && (rule.reads.is_empty() || some(&rule.reads, &facts.reads, &mut at));
    if !touches {
        return None;
    }
    if !rule.assign.is_empty() {
        let named = |name: &str| rule.assign.iter().any(|pattern| fits(pattern, name));
        let fits = |(name, piece): &(&str, Piece<'_>)| {
            named(name) && (rule.assigned.is_empty() || passes(&rule.assigned, piece, scope))
        };
        at = facts.assignments.iter().find(|assignment| fits(assignment))?.1.span;
    }
    if !(rule.code.is_empty() && rule.code_also.is_empty()) {
        let code = &facts.code;
        if !(some(&rule.code, code, &mut at) && some(&rule.code_also, code, &mut at)) {
            return None;
        }
    }
    match rule.check {
        Some(check) => checks::holds(check, facts, scope),
        None => Some(at),
    }
}

/// How many operands a path such as `stash drop|clear` takes, when it leads here.
fn subcommand(path: &str, facts: &Facts<'_>) -> Option<(usize, Span)> {
    // Most paths are somewhere else: no need to take them apart.
    let first = facts.operands.first()?.text.as_bytes().first()?;
    if !path.contains('*') && !starts_some_word(path.as_bytes(), *first) {
        return None;
    }
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

/// Whether one of the alternatives of the path's first step starts with this byte.
fn starts_some_word(path: &[u8], first: u8) -> bool {
    let mut start = true;
    for byte in path {
        match byte {
            b' ' => return false,
            b'|' => start = true,
            byte if start && *byte == first => return true,
            _ => start = false,
        }
    }
    false
}
