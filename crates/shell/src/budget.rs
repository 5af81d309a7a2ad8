//! What one text may make the engine build. A short line can stand for a very long one (`a=$a$a` forty times, braces
//! beside braces, code that carries itself): everything that is built for it is paid for here, before it is built.

use std::cell::Cell;

/// Bytes of values, words and inner texts: some for any text, and more the longer it is.
const BYTES: usize = 64 * 1024;
const BYTES_EACH: usize = 8;
/// Words, values and commands.
const STEPS: usize = 8 * 1024;
const STEPS_EACH: usize = 2;
/// Reading text as commands costs more than keeping it.
const PARSING: usize = 4;

/// Shared by everything that works on one text. Once something does not fit, nothing does any more.
#[derive(Debug)]
pub(crate) struct Budget {
    bytes: Cell<usize>,
    steps: Cell<usize>,
    spent: Cell<bool>,
}

impl Budget {
    pub(crate) fn of(text: &str) -> Self {
        Self {
            bytes: Cell::new(BYTES + BYTES_EACH * text.len()),
            steps: Cell::new(STEPS + STEPS_EACH * text.len()),
            spent: Cell::new(false),
        }
    }

    /// For what was taken from another budget already.
    pub(crate) fn paid(bytes: usize, words: usize) -> Self {
        let steps = words.saturating_mul(words.saturating_add(2)).saturating_add(STEPS);
        Self { bytes: Cell::new(bytes), steps: Cell::new(steps), spent: Cell::new(false) }
    }

    /// Whether so many more bytes may be built.
    #[must_use]
    pub(crate) fn bytes(&self, count: usize) -> bool {
        self.take(&self.bytes, count)
    }

    /// Whether so many more things may be made or looked at.
    #[must_use]
    pub(crate) fn steps(&self, count: usize) -> bool {
        self.take(&self.steps, count)
    }

    /// Whether this much text may still be read as commands.
    #[must_use]
    pub(crate) fn parse(&self, length: usize) -> bool {
        self.bytes(length.saturating_mul(PARSING))
    }

    pub(crate) fn is_spent(&self) -> bool {
        self.spent.get()
    }

    fn take(&self, from: &Cell<usize>, count: usize) -> bool {
        match from.get().checked_sub(count) {
            Some(left) if !self.spent.get() => {
                from.set(left);
                true
            }
            _ => {
                self.spent.set(true);
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_spent_stays_spent() {
        let budget = Budget::of("ls");
        assert!(budget.bytes(1000) && budget.steps(10) && budget.parse(1000));
        assert!(!budget.is_spent());
        assert!(!budget.bytes(usize::MAX));
        assert!(budget.is_spent() && !budget.bytes(0) && !budget.steps(1) && !budget.parse(usize::MAX));
    }
}
