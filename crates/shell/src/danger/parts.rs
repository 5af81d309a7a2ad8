//! The parts of one path: a short list that is made for nearly every word of every command.

/// How many parts nearly every path has at most.
const FEW: usize = 12;

/// The parts of a path; no memory is asked for while they are few.
#[derive(Debug, Default)]
pub struct Parts<'a> {
    few: [&'a str; FEW],
    /// Used of `few`, from the first that is not skipped.
    len: usize,
    skipped: usize,
    /// All of them, once they are many.
    many: Vec<&'a str>,
}

impl<'a> Parts<'a> {
    pub fn push(&mut self, part: &'a str) {
        match self.few.get_mut(self.len) {
            Some(place) if self.many.is_empty() => {
                *place = part;
                self.len += 1;
            }
            _ => {
                if self.many.is_empty() {
                    self.many.extend(self.few);
                    self.len = 0;
                }
                self.many.push(part);
            }
        }
    }

    /// Leaves out the first ones; nothing is popped after that.
    pub fn skip(&mut self, count: usize) {
        self.skipped = count;
    }

    pub fn pop(&mut self) -> Option<&'a str> {
        if let Some(part) = self.many.pop() {
            return Some(part);
        }
        self.len = self.len.checked_sub(1)?;
        self.few.get(self.len).copied()
    }
}

impl<'a> std::ops::Deref for Parts<'a> {
    type Target = [&'a str];

    fn deref(&self) -> &[&'a str] {
        let all = if self.many.is_empty() { self.few.get(..self.len).unwrap_or_default() } else { &self.many };
        all.get(self.skipped..).unwrap_or_default()
    }
}
