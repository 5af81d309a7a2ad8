//! Takes keys and resume tokens of ours out of what a tool writes, however the bytes are cut into chunks.

use crate::token;

/// What stands in their place.
pub const SCRUBBED: &str = "[scrubbed]";

/// How one kind of secret looks: what it starts with, and how many bytes of which kind follow at least.
struct Shape {
    prefix: &'static [u8],
    least: usize,
    has: fn(u8) -> bool,
}

const SHAPES: [Shape; 2] = [
    // A key is its public id and 256 bits; a piece of one that is long enough to matter counts too.
    Shape { prefix: b"csk_", least: 40, has: |byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_') },
    Shape { prefix: token::PREFIX.as_bytes(), least: 36, has: |byte| byte.is_ascii_hexdigit() || byte == b'-' },
];

/// Works on a stream: what could be the beginning of a secret is held back until the next bytes tell.
///
/// ```
/// use countersign_engine::{SCRUBBED, Scrubber};
///
/// let key = format!("csk_{}_{}", "0".repeat(32), "A".repeat(43));
/// let (one, two) = key.split_at(3);
/// let mut scrubber = Scrubber::default();
/// let mut out = scrubber.push(format!("key: {one}").as_bytes());
/// out.extend(scrubber.push(format!("{two} end").as_bytes()));
/// out.extend(scrubber.end());
/// assert_eq!(out, format!("key: {SCRUBBED} end").into_bytes());
/// ```
#[derive(Debug, Default)]
pub struct Scrubber {
    /// Bytes that may be the beginning of a secret. INVARIANT: never more than the longest prefix and least length.
    held: Vec<u8>,
    /// Inside a secret of this shape that is already replaced.
    inside: Option<usize>,
}

enum Look {
    /// A secret's first bytes, this many of them.
    Secret {
        shape: usize,
        length: usize,
    },
    /// Only more bytes can tell.
    Unknown,
    No,
}

impl Scrubber {
    pub fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut input = std::mem::take(&mut self.held);
        input.extend_from_slice(bytes);
        let mut out = Vec::with_capacity(input.len());
        let mut rest = input.as_slice();
        while let Some(first) = rest.first().copied() {
            if let Some(shape) = self.inside.and_then(|at| SHAPES.get(at)) {
                let run = rest.iter().take_while(|byte| (shape.has)(**byte)).count();
                rest = rest.get(run..).unwrap_or_default();
                if !rest.is_empty() {
                    self.inside = None;
                }
                continue;
            }
            // Most bytes begin nothing: they go on in one piece.
            let plain = memchr::memchr2(b'c', b'a', rest).unwrap_or(rest.len());
            if plain > 0 {
                out.extend_from_slice(rest.get(..plain).unwrap_or_default());
                rest = rest.get(plain..).unwrap_or_default();
                continue;
            }
            match look(rest) {
                Look::Secret { shape, length } => {
                    out.extend_from_slice(SCRUBBED.as_bytes());
                    self.inside = Some(shape);
                    rest = rest.get(length..).unwrap_or_default();
                }
                Look::Unknown => {
                    self.held = rest.to_vec();
                    break;
                }
                Look::No => {
                    out.push(first);
                    rest = rest.get(1..).unwrap_or_default();
                }
            }
        }
        out
    }

    /// What was held back and turned out to be nothing.
    pub fn end(&mut self) -> Vec<u8> {
        self.inside = None;
        std::mem::take(&mut self.held)
    }
}

fn look(bytes: &[u8]) -> Look {
    for (index, shape) in SHAPES.iter().enumerate() {
        let seen = bytes.len().min(shape.prefix.len());
        if bytes.get(..seen) != shape.prefix.get(..seen) {
            continue;
        }
        let after = bytes.get(seen..).unwrap_or_default();
        let run = after.iter().take(shape.least).take_while(|byte| (shape.has)(**byte)).count();
        if run >= shape.least {
            return Look::Secret { shape: index, length: seen + run };
        }
        return if seen + run == bytes.len() { Look::Unknown } else { Look::No };
    }
    Look::No
}

/// A whole text at once.
pub fn scrub(text: &str) -> String {
    let mut scrubber = Scrubber::default();
    let mut bytes = scrubber.push(text.as_bytes());
    bytes.extend(scrubber.end());
    // Secrets are ASCII, so cutting them out leaves characters whole.
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ResumeToken;
    use proptest::prelude::*;

    fn key() -> String {
        format!("csk_{}_{}", "0a".repeat(16), "A-_z".repeat(10))
    }

    #[test]
    fn secrets_go_and_what_only_begins_like_one_stays() {
        let (key, token) = (key(), ResumeToken::from_random([0xab; 16]).to_string());
        for (text, expected) in [
            (format!("a {key} b"), format!("a {SCRUBBED} b")),
            (key.clone(), SCRUBBED.to_owned()),
            (format!("\"{token}\","), format!("\"{SCRUBBED}\",")),
            (format!("ccsk_csk_{key}x"), format!("c{SCRUBBED}")),
            ("csk_short apr-1234 a c ca cs csk".to_owned(), "csk_short apr-1234 a c ca cs csk".to_owned()),
            ("april acsk".to_owned(), "april acsk".to_owned()),
        ] {
            assert_eq!(scrub(&text), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn however_it_is_cut_the_outcome_is_the_same(cuts in prop::collection::vec(0usize..400, 0..12), noise in "[a-z_ csk-]{0,60}") {
            let text = format!("{noise}{} {noise} {}\n{noise}{}", key(), ResumeToken::from_random([7; 16]), key());
            let mut cuts: Vec<usize> = cuts.into_iter().map(|at| at.min(text.len())).collect();
            cuts.sort_unstable();
            let (mut scrubber, mut out, mut from) = (Scrubber::default(), Vec::new(), 0);
            for at in cuts.into_iter().chain([text.len()]) {
                out.extend(scrubber.push(&text.as_bytes()[from..at]));
                from = at;
            }
            out.extend(scrubber.end());
            let out = String::from_utf8(out).unwrap();
            prop_assert_eq!(&out, &scrub(&text));
            prop_assert!(!out.contains("csk_0a0a0a0a0a"), "{}", out);
        }
    }
}
