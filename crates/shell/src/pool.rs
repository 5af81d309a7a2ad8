//! Text and lists that are pointed at by number instead of by address: what the tables of rules are made of.
//!
//! An address in a constant has to be put right whenever the program starts, a number never. The build script writes
//! the built-in tables as constants, and a user's are the same in memory.

use std::collections::HashMap;

/// A piece of the pool of text.
#[derive(Clone, Copy, Debug)]
pub struct Text {
    pub at: u32,
    pub len: u32,
}

/// A name to look for. Its first bytes stand beside it as a number, so that hardly a comparison looks into the pool.
#[derive(Clone, Copy, Debug)]
pub struct Name {
    pub head: u64,
    pub text: Text,
}

/// The first bytes as a number that orders as they do; a short name is filled up with zeros.
fn head(name: &[u8]) -> u64 {
    match name.first_chunk() {
        Some(first) => u64::from_be_bytes(*first),
        None => name.iter().chain(std::iter::repeat(&0)).take(8).fold(0, |head, byte| head << 8 | u64::from(*byte)),
    }
}

/// Finds a row by its name, where rows are in the order of their names.
#[inline]
pub fn find<'t, R>(rows: &'t [R], pool: &str, name: &str, name_of: impl Fn(&R) -> Name) -> Option<&'t R> {
    let name = name.as_bytes();
    let head = head(name);
    let order = |row: &R| {
        let known = name_of(row);
        known.head.cmp(&head).then_with(|| bytes(pool, known.text).cmp(name))
    };
    rows.binary_search_by(order).ok().and_then(|at| rows.get(at))
}

/// Some consecutive rows of one of the arrays.
#[derive(Clone, Copy, Debug, Default)]
pub struct Slice {
    pub from: u32,
    pub to: u32,
}

impl Slice {
    /// None: more than a table can hold.
    pub fn new(from: usize, to: usize) -> Option<Self> {
        Some(Self { from: u32::try_from(from).ok()?, to: u32::try_from(to).ok()? })
    }

    pub fn is_empty(self) -> bool {
        self.from == self.to
    }
}

#[inline]
pub fn cut(pool: &str, text: Text) -> &str {
    let at = text.at as usize;
    pool.get(at..at + text.len as usize).unwrap_or("")
}

/// For comparing: nothing to look at but the bytes that are compared.
#[inline]
pub fn bytes(pool: &str, text: Text) -> &[u8] {
    let at = text.at as usize;
    pool.as_bytes().get(at..at + text.len as usize).unwrap_or(&[])
}

#[inline]
pub fn part<T>(rows: &[T], slice: Slice) -> &[T] {
    rows.get(slice.from as usize..slice.to as usize).unwrap_or(&[])
}

/// A pool of text, and lists of words in it, as they are made. A text is in it once.
#[derive(Debug, Default)]
pub struct Pool {
    pub text: String,
    pub words: Vec<Text>,
    seen: HashMap<String, Text>,
}

impl Pool {
    /// None: more than a table can hold.
    pub fn text(&mut self, text: &str) -> Option<Text> {
        if let Some(known) = self.seen.get(text) {
            return Some(*known);
        }
        let row = Text { at: u32::try_from(self.text.len()).ok()?, len: u32::try_from(text.len()).ok()? };
        self.text.push_str(text);
        self.seen.insert(text.to_owned(), row);
        Some(row)
    }

    /// None: more than a table can hold.
    pub fn name(&mut self, name: &str) -> Option<Name> {
        Some(Name { head: head(name.as_bytes()), text: self.text(name)? })
    }

    /// None: more than a table can hold.
    pub fn words<W: AsRef<str>>(&mut self, words: impl IntoIterator<Item = W>) -> Option<Slice> {
        let from = self.words.len();
        for word in words {
            let text = self.text(word.as_ref())?;
            self.words.push(text);
        }
        Slice::new(from, self.words.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names that share their first bytes, that are shorter than those, and that differ only by zeros.
    #[test]
    fn a_name_is_found_whatever_it_begins_with() {
        let names =
            ["", "\0", "a", "a\0", "ab", "abcdefgh", "abcdefgh\0", "abcdefghi", "abcdefgz", "b", "é", "\u{10ffff}"];
        let mut pool = Pool::default();
        let rows: Vec<Name> = names.iter().map(|name| pool.name(name).unwrap()).collect();
        let found = |name: &str| find(&rows, &pool.text, name, |row| *row).map(|row| cut(&pool.text, row.text));
        for name in names {
            assert_eq!(found(name), Some(name), "{name:?}");
        }
        for name in ["\0\0", "aa", "a\0\0", "abcdefg", "abcdefgh\0\0", "abcdefghj", "c", "è"] {
            assert_eq!(found(name), None, "{name:?}");
        }
    }

    #[test]
    fn a_text_is_in_the_pool_once() {
        let mut pool = Pool::default();
        let words = pool.words(["one", "two", "one"]).unwrap();
        assert_eq!(part(&pool.words, words).iter().map(|text| cut(&pool.text, *text)).collect::<String>(), "onetwoone");
        assert_eq!(pool.text, "onetwo");
    }
}
