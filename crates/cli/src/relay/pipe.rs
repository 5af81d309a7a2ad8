//! Bytes in order, a line at a time where somebody has to look and in large pieces where nobody has to.

use std::io::{self, Read};

use countersign_engine::MAX_LINE;

const CHUNK: usize = 64 * 1024;

/// What is done with what comes.
pub trait Direction {
    /// Whether a line with these bytes in it needs looking at. A piece without is passed on as it is.
    fn concerns(&self, piece: &[u8]) -> bool;
    /// One line with its newline.
    fn line(&mut self, line: &[u8]);
    /// Whole lines that need no looking at, or a part of one that is too long for it.
    fn pass(&mut self, bytes: &[u8]);
    /// Whether a line that is too long to look at may pass; if not it is told, once, by its first bytes.
    fn too_long(&mut self, start: &[u8]) -> bool;
}

/// Until the end of the input. Holds at most one line.
pub fn run(mut input: impl Read, direction: &mut impl Direction) {
    let mut held: Vec<u8> = Vec::with_capacity(2 * CHUNK);
    let mut buffer = vec![0; CHUNK];
    // In the middle of a line that is too long, and whether it passes.
    let mut overlong: Option<bool> = None;
    loop {
        let count = match input.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        let mut piece = buffer.get(..count).unwrap_or_default();
        if let Some(passes) = overlong {
            let end = memchr::memchr(b'\n', piece).map(|at| at + 1);
            let (rest, after) = piece.split_at(end.unwrap_or(piece.len()));
            if passes {
                direction.pass(rest);
            }
            if end.is_some() {
                overlong = None;
            }
            piece = after;
        }
        let Some(last) = memchr::memrchr(b'\n', piece) else {
            held.extend_from_slice(piece);
            if held.len() > MAX_LINE {
                let passes = direction.too_long(&held);
                if passes {
                    direction.pass(&held);
                }
                overlong = Some(passes);
                held = Vec::with_capacity(2 * CHUNK);
            }
            continue;
        };
        let (lines, rest) = piece.split_at(last + 1);
        if held.is_empty() {
            whole_lines(lines, direction);
        } else {
            held.extend_from_slice(lines);
            let lines = std::mem::take(&mut held);
            whole_lines(&lines, direction);
            if lines.capacity() <= 4 * CHUNK {
                held = lines;
                held.clear();
            }
        }
        held.extend_from_slice(rest);
    }
    // A half line that nobody looked at goes nowhere that looks.
    if !held.is_empty() && overlong.is_none() && !direction.concerns(&held) {
        direction.pass(&held);
    }
}

fn whole_lines(lines: &[u8], direction: &mut impl Direction) {
    if !direction.concerns(lines) {
        return direction.pass(lines);
    }
    // Neighbours that need no looking at go together.
    let mut from = 0;
    let mut at = 0;
    for end in memchr::memchr_iter(b'\n', lines) {
        let line = lines.get(at..=end).unwrap_or_default();
        if direction.concerns(line) {
            let before = lines.get(from..at).unwrap_or_default();
            if !before.is_empty() {
                direction.pass(before);
            }
            direction.line(line);
            from = end + 1;
        }
        at = end + 1;
    }
    let before = lines.get(from..).unwrap_or_default();
    if !before.is_empty() {
        direction.pass(before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Seen {
        passed: Vec<u8>,
        looked: Vec<String>,
        long: usize,
    }

    impl Direction for Seen {
        fn concerns(&self, piece: &[u8]) -> bool {
            memchr::memmem::find(piece, b"look").is_some()
        }

        fn line(&mut self, line: &[u8]) {
            self.looked.push(String::from_utf8(line.to_vec()).unwrap());
            self.passed.extend_from_slice(line);
        }

        fn pass(&mut self, bytes: &[u8]) {
            self.passed.extend_from_slice(bytes);
        }

        fn too_long(&mut self, _: &[u8]) -> bool {
            self.long += 1;
            true
        }
    }

    /// Gives a few bytes at a time.
    struct Slowly<'s>(&'s [u8], usize);

    impl Read for Slowly<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let count = self.1.min(self.0.len()).min(buffer.len());
            buffer[..count].copy_from_slice(&self.0[..count]);
            self.0 = &self.0[count..];
            Ok(count)
        }
    }

    #[test]
    fn every_byte_passes_in_order_however_it_comes() {
        let text = b"a\n\n\r\n{look}\nb\xff\xfe\nlook again\n\nc\nhalf";
        for step in [1, 2, 3, 7, 1000] {
            let mut seen = Seen::default();
            run(Slowly(text, step), &mut seen);
            assert_eq!(seen.passed, text, "{step}");
            assert_eq!(seen.looked, ["{look}\n", "look again\n"], "{step}");
        }
    }

    #[test]
    fn a_line_without_end_is_held_only_so_far() {
        let mut text = vec![b'x'; MAX_LINE + 3 * CHUNK];
        text.extend_from_slice(b"look\nlook\nend\n");
        let mut seen = Seen::default();
        run(text.as_slice(), &mut seen);
        assert_eq!((seen.long, seen.looked.as_slice()), (1, &["look\n".to_owned()][..]));
        assert!(seen.passed == text);
    }
}
