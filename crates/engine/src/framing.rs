//! Lines: one JSON object each, at most 8 MiB. What is no line of the protocol is told once and skipped; the stream
//! goes on behind it.

use std::io::{self, BufRead};

/// The longest line, without its newline.
pub const MAX_LINE: usize = 8 * 1024 * 1024;
/// How much of a bad line an error repeats.
pub const MAX_ECHO: usize = 120;

/// One line as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// Text without its newline, not blank.
    Text(String),
    Bad(BadLine),
}

/// What is wrong with a line, before anybody asks what it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadLine {
    /// With its first bytes.
    TooLong(Vec<u8>),
    NotUtf8(Vec<u8>),
}

impl BadLine {
    pub fn message(&self) -> String {
        match self {
            Self::TooLong(start) => {
                format!("the line is longer than {MAX_LINE} bytes and was skipped; it starts with `{}`", echo(start))
            }
            Self::NotUtf8(bytes) => format!("the line is not UTF-8: `{}`", echo(bytes)),
        }
    }
}

/// The start of a bad line, in at most [`MAX_ECHO`] bytes and without anything that a terminal would act on.
pub(crate) fn echo(bytes: &[u8]) -> String {
    let start = bytes.get(..MAX_ECHO).unwrap_or(bytes);
    let mut out = String::new();
    for shown in String::from_utf8_lossy(start).chars().map(|c| if c.is_control() { '\u{b7}' } else { c }) {
        if out.len() + shown.len_utf8() > MAX_ECHO {
            break;
        }
        out.push(shown);
    }
    out
}

/// Reads lines from anything that is read by bytes. Holds one line at a time, however long the one it skips is.
///
/// ```
/// use countersign_engine::{Line, Lines};
///
/// let mut lines = Lines::new(&b"{\"type\":\"ping\"}\n\n  \n{\"type\":\"stop\"}"[..]);
/// assert_eq!(lines.next_line()?, Some(Line::Text("{\"type\":\"ping\"}".to_owned())));
/// // The last one has no newline: somebody died in the middle of it, so it is none.
/// assert_eq!(lines.next_line()?, None);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Lines<R> {
    input: R,
    line: Vec<u8>,
    max: usize,
}

impl<R: BufRead> Lines<R> {
    pub fn new(input: R) -> Self {
        Self::with_limit(input, MAX_LINE)
    }

    pub fn with_limit(input: R, max: usize) -> Self {
        Self { input, line: Vec::new(), max }
    }

    /// The next line that is not blank; `None` at the end, whatever half line stands there.
    pub fn next_line(&mut self) -> io::Result<Option<Line>> {
        loop {
            self.line.clear();
            let Some(too_long) = self.read_line()? else { return Ok(None) };
            if too_long {
                self.line.truncate(MAX_ECHO);
                return Ok(Some(Line::Bad(BadLine::TooLong(std::mem::take(&mut self.line)))));
            }
            match std::str::from_utf8(&self.line) {
                Ok(text) if text.trim().is_empty() => {}
                Ok(text) => return Ok(Some(Line::Text(text.to_owned()))),
                Err(_) => {
                    let start = self.line.get(..MAX_ECHO).unwrap_or(&self.line).to_vec();
                    return Ok(Some(Line::Bad(BadLine::NotUtf8(start))));
                }
            }
        }
    }

    /// Whether the line was too long; `None` at the end of the stream.
    fn read_line(&mut self) -> io::Result<Option<bool>> {
        let mut too_long = false;
        loop {
            let available = match self.input.fill_buf() {
                Ok(available) => available,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if available.is_empty() {
                return Ok(None);
            }
            let end = memchr::memchr(b'\n', available);
            let piece = available.get(..end.unwrap_or(available.len())).unwrap_or_default();
            too_long |= self.line.len() + piece.len() > self.max;
            if !too_long {
                self.line.extend_from_slice(piece);
            } else if self.line.len() < MAX_ECHO {
                let missing = MAX_ECHO - self.line.len();
                self.line.extend_from_slice(piece.get(..missing).unwrap_or(piece));
            }
            let used = piece.len() + usize::from(end.is_some());
            self.input.consume(used);
            if end.is_some() {
                return Ok(Some(too_long));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(bytes: &[u8], max: usize) -> Vec<Line> {
        let mut lines = Lines::with_limit(io::BufReader::with_capacity(3, bytes), max);
        std::iter::from_fn(|| lines.next_line().unwrap()).collect()
    }

    fn text(text: &str) -> Line {
        Line::Text(text.to_owned())
    }

    #[test]
    fn blank_lines_are_nothing_and_half_lines_too() {
        assert_eq!(all(b"a\n\n \t\r\n b\r\nhalf", 99), [text("a"), text(" b\r")]);
    }

    #[test]
    fn a_line_that_is_too_long_is_one_error_and_the_next_one_counts() {
        let long = "x".repeat(500);
        let lines = all(format!("{long}\nok\n{}\n{}\n", "y".repeat(10), "z".repeat(11)).as_bytes(), 10);
        let bad = |c: u8, count: usize| Line::Bad(BadLine::TooLong(vec![c; count]));
        assert_eq!(lines, [bad(b'x', MAX_ECHO), text("ok"), text("yyyyyyyyyy"), bad(b'z', 11)]);
        let Line::Bad(bad) = &lines[0] else { unreachable!() };
        assert!(bad.message().len() < 250);
    }

    #[test]
    fn what_is_not_text_is_one_error_and_its_echo_is_short_and_tame() {
        let lines = all(&[b"\x1b[2J\xff\xfe".as_slice(), &[0xc3; 400], b"\nok\n"].concat(), 4096);
        let Line::Bad(bad) = &lines[0] else { panic!("{lines:?}") };
        assert!(!bad.message().contains('\u{1b}') && bad.message().len() < 200, "{}", bad.message());
        assert_eq!(lines[1], text("ok"));
        assert_eq!(echo(&[b'a'; 500]).len(), MAX_ECHO);
    }
}
