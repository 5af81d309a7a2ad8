//! What a `sed` script does: only editing the stream, or writing files and running commands too. A small parser
//! of the script language; what it does not follow is not safe.

use super::check::Verdict;

/// Judges a whole script (several `-e` joined by newlines).
pub(super) fn script(text: &str) -> Verdict {
    let mut script = Script { bytes: text.as_bytes(), at: 0 };
    script.commands()
}

struct Script<'a> {
    bytes: &'a [u8],
    at: usize,
}

const STRANGE: (&str, &str) = ("unknown_script", "a sed script that cannot be followed");

impl Script<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn skip(&mut self, wanted: impl Fn(u8) -> bool) {
        while self.peek().is_some_and(&wanted) {
            self.at += 1;
        }
    }

    fn line(&mut self) {
        self.skip(|byte| byte != b'\n');
    }

    fn commands(&mut self) -> Verdict {
        loop {
            self.skip(|byte| byte.is_ascii_whitespace() || byte == b';');
            if self.peek().is_none() {
                return Ok(());
            }
            if self.peek() == Some(b'#') {
                self.line();
                continue;
            }
            self.addresses()?;
            self.command()?;
        }
    }

    fn addresses(&mut self) -> Verdict {
        if self.address()? {
            self.skip(blank);
            if self.peek() == Some(b',') {
                self.at += 1;
                self.skip(blank);
                if matches!(self.peek(), Some(b'+' | b'~')) {
                    self.at += 1;
                }
                if !self.address()? {
                    return Err(STRANGE);
                }
            }
        }
        self.skip(|byte| blank(byte) || byte == b'!');
        Ok(())
    }

    fn address(&mut self) -> Result<bool, (&'static str, &'static str)> {
        match self.peek() {
            Some(b'0'..=b'9') => {
                self.skip(|byte| byte.is_ascii_digit());
                if self.peek() == Some(b'~') {
                    self.at += 1;
                    self.skip(|byte| byte.is_ascii_digit());
                }
            }
            Some(b'$') => self.at += 1,
            Some(b'/') => {
                self.at += 1;
                self.until(b'/', true)?;
                self.skip(|byte| matches!(byte, b'I' | b'M'));
            }
            Some(b'\\') => {
                self.at += 1;
                let end = self.next().filter(|byte| byte.is_ascii_punctuation() && *byte != b'\\').ok_or(STRANGE)?;
                self.until(end, true)?;
                self.skip(|byte| matches!(byte, b'I' | b'M'));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Past the next bare `end`. In a pattern, an end inside brackets is read differently by different seds.
    fn until(&mut self, end: u8, pattern: bool) -> Verdict {
        let mut open: Option<usize> = None;
        loop {
            let byte = self.next().ok_or(STRANGE)?;
            match byte {
                b'\\' => {
                    self.next().ok_or(STRANGE)?;
                }
                _ if byte == end => return if open.is_some() { Err(STRANGE) } else { Ok(()) },
                b'\n' if pattern => return Err(STRANGE),
                b'[' if pattern && open.is_none() => {
                    if self.peek() == Some(b'^') {
                        self.at += 1;
                    }
                    open = Some(self.at);
                }
                // A `]` right after the opening is part of the class; `[:alpha:]` inside ends with its own.
                b']' if open.is_some_and(|from| self.at > from + 1) => open = None,
                b'[' if matches!(self.peek(), Some(b':' | b'.' | b'=')) => self.named_class(),
                _ => {}
            }
        }
    }

    fn named_class(&mut self) {
        let Some(kind) = self.next() else { return };
        let from = self.at;
        while let Some(byte) = self.next() {
            if byte == kind && self.peek() == Some(b']') {
                self.at += 1;
                return;
            }
            if !byte.is_ascii_alphabetic() {
                break;
            }
        }
        self.at = from;
    }

    fn command(&mut self) -> Verdict {
        match self.next().ok_or(STRANGE)? {
            b'{' => return Ok(()),
            b'}' | b'=' | b'd' | b'D' | b'g' | b'G' | b'h' | b'H' | b'n' | b'N' | b'p' | b'P' | b'x' | b'z' | b'F' => {}
            b'q' | b'Q' | b'l' | b'L' => {
                self.skip(blank);
                self.skip(|byte| byte.is_ascii_digit());
            }
            b':' | b'b' | b't' | b'T' => {
                self.skip(blank);
                self.skip(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'));
            }
            b'a' | b'i' | b'c' => {
                self.text();
                return Ok(());
            }
            b's' => {
                let end = self.delimiter()?;
                self.until(end, true)?;
                self.until(end, false)?;
                self.flags()?;
            }
            b'y' => {
                let end = self.delimiter()?;
                self.until(end, false)?;
                self.until(end, false)?;
            }
            b'e' => return Err(("runs_programs", "the sed command `e` runs a program")),
            b'w' | b'W' => return Err(("writes_files", "the sed command `w` writes a file")),
            b'r' | b'R' => return Err(("sensitive_path", "the sed command `r` reads another file")),
            _ => return Err(STRANGE),
        }
        self.skip(blank);
        match self.peek() {
            None | Some(b';' | b'\n' | b'}' | b'#') => Ok(()),
            Some(_) => Err(STRANGE),
        }
    }

    fn delimiter(&mut self) -> Result<u8, (&'static str, &'static str)> {
        self.next()
            .filter(|byte| {
                byte.is_ascii_graphic() && !byte.is_ascii_alphanumeric() && !matches!(byte, b'\\' | b'[' | b';' | b'#')
            })
            .ok_or(STRANGE)
    }

    fn flags(&mut self) -> Verdict {
        loop {
            match self.peek() {
                Some(b'g' | b'p' | b'i' | b'I' | b'm' | b'M' | b'0'..=b'9') => self.at += 1,
                Some(b'e') => return Err(("runs_programs", "the sed flag `e` runs the result as a command")),
                Some(b'w') => return Err(("writes_files", "the sed flag `w` writes a file")),
                _ => return Ok(()),
            }
        }
    }

    /// The text of `a`, `i`, `c`: to the end of a line that does not end in a backslash.
    fn text(&mut self) {
        while let Some(byte) = self.next() {
            match byte {
                b'\\' => {
                    self.next();
                }
                b'\n' => return,
                _ => {}
            }
        }
    }
}

fn blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}
