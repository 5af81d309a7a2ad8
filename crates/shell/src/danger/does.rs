//! What commands do that are no danger by themselves: whether it can be undone, whether it writes or talks to others.

use super::facts::Facts;
use super::rule::Does;

/// A command of `rules/effects.toml`: a program's subcommand words and options, and what they do.
#[derive(Debug)]
pub struct Known {
    pub words: &'static [&'static str],
    pub does: Does,
}

/// What is known of this command: the entry that names most of it.
pub fn known(facts: &Facts<'_>) -> Option<Does> {
    let known = facts.row?.known.iter().filter(|known| fits(known.words, facts));
    known.max_by_key(|known| known.words.len()).map(|known| known.does)
}

fn fits(words: &[&str], facts: &Facts<'_>) -> bool {
    let mut operands = facts.operands.iter();
    words.iter().all(|word| {
        if word.starts_with('-') {
            facts.option_exactly(word).is_some()
        } else {
            operands.next().is_some_and(|piece| piece.text == *word)
        }
    })
}
