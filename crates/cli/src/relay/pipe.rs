//! Bytes in order, a line at a time where somebody has to look and in large pieces where nobody has to.

use std::io::{self, Read};

use countersign_engine::MAX_LINE;

/// Also how much an engine's pipe is asked to hold.
pub const CHUNK: usize = 256 * 1024;

/// What is done with what comes.
pub trait Direction {
    /// Whether a line with these bytes in it needs looking at. A piece without is passed on as it is.
    fn concerns(&self, piece: &[u8]) -> bool;
    /// One line with its newline.
    fn line(&mut self, line: &[u8]);
    /// Whole lines that need no looking at, or a part of one that is too long for it.
    fn pass(&mut self, bytes: &[u8]);
    /// Whether nothing can be passed on any more.
    fn is_over(&self) -> bool;
    /// It waits for more to come, or has it in hand.
    fn idle(&self, waiting: bool);
    /// Whether a line that is too long to look at may pass; if not it is told, once, by its first bytes.
    fn too_long(&mut self, start: &[u8]) -> bool;
}

/// Until the end of the input. Holds at most one line.
pub fn run(mut input: impl Read, direction: &mut impl Direction) {
    let mut buffer = vec![0; CHUNK];
    // The beginning of a line whose end has not come, at the buffer's own.
    let mut held = 0;
    // In the middle of a line that is too long, and whether it passes.
    let mut overlong: Option<bool> = None;
    while !direction.is_over() {
        if held == buffer.len() {
            // INVARIANT: with room for one byte more than a line may have, a line that fills it is too long.
            buffer.resize(buffer.len().saturating_mul(2).min(MAX_LINE + 1), 0);
        }
        direction.idle(true);
        let read = input.read(buffer.get_mut(held..).unwrap_or_default());
        direction.idle(false);
        let count = match read {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        let mut filled = held + count;
        let mut fresh = buffer.get(held..filled).unwrap_or_default();
        if let Some(passes) = overlong {
            let end = memchr::memchr(b'\n', fresh).map(|at| at + 1);
            let (rest, after) = fresh.split_at(end.unwrap_or(fresh.len()));
            if passes {
                direction.pass(rest);
            }
            if end.is_some() {
                overlong = None;
            }
            let (from, left) = (filled - after.len(), after.len());
            buffer.copy_within(from..filled, 0);
            (held, filled) = (0, left);
            fresh = buffer.get(..filled).unwrap_or_default();
        }
        match memchr::memrchr(b'\n', fresh) {
            Some(last) => {
                let end = held + last + 1;
                whole_lines(buffer.get(..end).unwrap_or_default(), direction);
                buffer.copy_within(end..filled, 0);
                held = filled - end;
                if held < CHUNK {
                    // What one long line took is given back.
                    buffer.truncate(CHUNK);
                    buffer.shrink_to(CHUNK);
                }
            }
            None if filled > MAX_LINE => {
                let start = buffer.get(..filled).unwrap_or_default();
                let passes = direction.too_long(start);
                if passes {
                    direction.pass(start);
                }
                overlong = Some(passes);
                (buffer, held) = (vec![0; CHUNK], 0);
            }
            None => held = filled,
        }
    }
    // A half line that nobody looked at goes nowhere that looks.
    let half = buffer.get(..held).unwrap_or_default();
    if !half.is_empty() && !direction.concerns(half) {
        direction.pass(half);
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

        fn is_over(&self) -> bool {
            false
        }

        fn idle(&self, _: bool) {}

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
