//! The two ways out: stdout for machines, stderr for people; colours only on a terminal.

use std::fmt;
use std::io::{self, IsTerminal, Write};

use countersign_model::escape_line;
use serde_json::Value;

/// The reader of stdout went away.
#[derive(Debug)]
pub struct StdoutClosed;

impl fmt::Display for StdoutClosed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("stdout was closed")
    }
}

impl std::error::Error for StdoutClosed {}

/// Writes to stdout at once, so that a reader of a pipe sees each piece when it is there.
pub fn write(text: &str) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(StdoutClosed.into()),
        Err(error) => Err(anyhow::Error::new(error).context("stdout cannot be written to")),
    }
}

pub fn line(text: &str) -> anyhow::Result<()> {
    write(&format!("{text}\n"))
}

/// For the person; that nobody reads it is no failure of the command.
pub fn note(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// One line of JSON. What could trick a terminal is spelt as an escape, which means the same to a program.
pub fn json(value: &Value) -> String {
    let mut out = String::new();
    for c in value.to_string().chars() {
        let mut unit = [0u8; 4];
        let text: &str = c.encode_utf8(&mut unit);
        if c == '\u{7f}' || (!c.is_ascii() && escape_line(text) != text) {
            let mut units = [0u16; 2];
            for unit in c.encode_utf16(&mut units) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            out.push(c);
        }
    }
    out
}

/// Columns of the terminal that stdout is, if it is one.
pub fn columns() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    (io::stdout().is_terminal() && size.ws_col > 0).then_some(usize::from(size.ws_col))
}

/// Whether to paint, settled once for a stream.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    colour: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    Plain,
    Strong,
    Good,
    Faint,
    Warning,
    Underlined,
    Reversed,
}

impl Style {
    #[cfg(test)]
    pub const PLAIN: Self = Self { colour: false };

    pub fn of_stdout() -> Self {
        Self::of(io::stdout().is_terminal())
    }

    pub fn of_stderr() -> Self {
        Self::of(io::stderr().is_terminal())
    }

    fn of(is_terminal: bool) -> Self {
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self { colour: is_terminal && !set("NO_COLOR") && !dumb }
    }

    pub fn paint(self, text: &str, tone: Tone) -> String {
        let code = match tone {
            Tone::Strong => "1",
            Tone::Good => "1;32",
            Tone::Faint => "2",
            Tone::Warning => "1;31",
            Tone::Underlined => "4;31",
            Tone::Reversed => "7",
            Tone::Plain => return text.to_owned(),
        };
        if self.colour && !text.is_empty() { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_on_a_terminal_cannot_trick_it() {
        let value = serde_json::json!({"a": "x\u{1b}[2J\u{202e}y\u{7f}\u{9b}é"});
        let text = json(&value);
        assert!(!text.contains(['\u{1b}', '\u{202e}', '\u{7f}', '\u{9b}']), "{text}");
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }

    #[test]
    fn plain_style_paints_nothing() {
        assert_eq!(Style::PLAIN.paint("a", Tone::Warning), "a");
        assert_eq!(Style { colour: true }.paint("a", Tone::Strong), "\x1b[1ma\x1b[0m");
    }
}
