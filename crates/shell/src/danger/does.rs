//! What commands do that are no danger by themselves: whether it can be undone, whether it writes or talks to others.

use super::facts::Facts;
use super::rule::Does;

/// What is known of this command: the entry that names most of it.
pub fn known(facts: &Facts<'_>) -> Option<Does> {
    let known = facts.row?.known().filter(|known| fits(known.words(), facts));
    known.max_by_key(|known| known.words().len()).map(|known| known.does)
}

fn fits<'t>(mut words: impl Iterator<Item = &'t str>, facts: &Facts<'_>) -> bool {
    let mut operands = facts.operands.iter();
    words.all(|word| {
        if word.starts_with('-') {
            facts.option_exactly(word).is_some()
        } else {
            operands.next().is_some_and(|piece| piece.text == word)
        }
    })
}
