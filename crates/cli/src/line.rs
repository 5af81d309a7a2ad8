//! One line that a person types: the editing is a crate's, the keys and what may be in the line are ours. Everything in
//! it can be seen as it is; what cannot does not get in.

use countersign_model::escape_line;
use tui_input::{Input, InputRequest};

use crate::keys::Key;
use crate::width;

/// As long as a command may be.
const MAX_BYTES: usize = 64 * 1024;

#[derive(Clone, Debug)]
pub struct Line {
    input: Input,
    only_digits: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Typed {
    /// Goes on.
    More,
    Entered,
    Left,
    Interrupted,
    /// This did not get in, and why.
    Refused(&'static str),
}

impl PartialEq for Line {
    fn eq(&self, other: &Self) -> bool {
        (self.text(), self.input.cursor(), self.only_digits) == (other.text(), other.input.cursor(), other.only_digits)
    }
}

impl Eq for Line {}

impl Line {
    pub fn new(text: &str) -> Self {
        Self { input: Input::new(text.to_owned()), only_digits: false }
    }

    pub fn of_digits() -> Self {
        Self { input: Input::default(), only_digits: true }
    }

    pub fn text(&self) -> &str {
        self.input.value()
    }

    pub fn take(&mut self, key: &Key) -> Typed {
        let request = match key {
            Key::Enter => return Typed::Entered,
            Key::Escape => return Typed::Left,
            Key::Interrupt => return Typed::Interrupted,
            Key::Plain(c) => return self.insert(c.encode_utf8(&mut [0; 4])),
            Key::Paste(text) => return self.paste(text),
            Key::Left | Key::Ctrl('b') => InputRequest::GoToPrevChar,
            Key::Right | Key::Ctrl('f') => InputRequest::GoToNextChar,
            Key::WordLeft => InputRequest::GoToPrevWord,
            Key::WordRight => InputRequest::GoToNextWord,
            Key::Home | Key::Ctrl('a') => InputRequest::GoToStart,
            Key::End | Key::Ctrl('e') => InputRequest::GoToEnd,
            Key::Backspace | Key::Ctrl('h') => InputRequest::DeletePrevChar,
            Key::Delete | Key::Ctrl('d') => InputRequest::DeleteNextChar,
            Key::Ctrl('w') => InputRequest::DeletePrevWord,
            Key::Ctrl('u') => InputRequest::DeleteFromStart,
            Key::Ctrl('k') => InputRequest::DeleteTillEnd,
            Key::Ctrl(_) | Key::Up | Key::Down | Key::PageUp | Key::PageDown | Key::Other => return Typed::More,
        };
        let _ = self.input.handle(request);
        Typed::More
    }

    /// Pasted text is text: a line end in it enters nothing.
    fn paste(&mut self, text: &str) -> Typed {
        let text = text.strip_suffix('\n').unwrap_or(text);
        self.insert(text.strip_suffix('\r').unwrap_or(text))
    }

    fn insert(&mut self, text: &str) -> Typed {
        if self.only_digits && !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Typed::More;
        }
        if !is_plain(text) {
            return Typed::Refused("what holds line ends or characters that cannot be seen is not taken");
        }
        if self.text().len() + text.len() > MAX_BYTES {
            return Typed::Refused("the line is full");
        }
        let (before, after) = self.parts();
        let cursor = self.input.cursor() + text.chars().count();
        let all = format!("{before}{text}{after}");
        self.input = Input::new(all).with_cursor(cursor);
        Typed::More
    }

    fn parts(&self) -> (&str, &str) {
        let text = self.text();
        let at = text.char_indices().nth(self.input.cursor()).map_or(text.len(), |(at, _)| at);
        (text.get(..at).unwrap_or_default(), text.get(at..).unwrap_or_default())
    }

    /// The part around the cursor that fits into so many columns, and the cursor's column in it.
    pub fn view(&self, columns: usize) -> (String, usize) {
        let (before, after) = self.parts();
        let room = columns.saturating_sub(1).max(1);
        let mut start = 0;
        let rest = |start: usize| before.get(start..).unwrap_or_default();
        let hidden = width::of(before) > room;
        let room_before = if hidden { room.saturating_sub(1) } else { room };
        while width::of(rest(start)) > room_before {
            start += rest(start).chars().next().map_or(1, char::len_utf8);
        }
        let head = if hidden { format!("…{}", rest(start)) } else { rest(start).to_owned() };
        let column = width::of(&head);
        let left = columns.saturating_sub(column);
        let tail = if left == 0 { String::new() } else { width::cut(after, left) };
        (format!("{head}{tail}"), column)
    }
}

/// Whether a terminal shows it as it is, on one line.
pub fn is_plain(text: &str) -> bool {
    escape_line(text) == text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::Decoder;
    use proptest::prelude::*;

    fn typed(start: &str, bytes: &[u8]) -> String {
        let mut line = Line::new(start);
        for key in Decoder::default().decode(bytes).keys {
            line.take(&key);
        }
        line.text().to_owned()
    }

    #[test]
    fn the_keys_of_a_line_editor_edit() {
        for (start, bytes, expected) in [
            ("touch one", &b"\x7f\x7f\x7ftwo"[..], "touch two"),
            ("touch one", b"\x15ls", "ls"),
            ("touch one", b"\x1b[D\x1b[D\x1b[D\x15ls ", "ls one"),
            ("touch one", b"\x01\x0bls", "ls"),
            ("touch one", b"\x17two", "touch two"),
            ("touch one", b"\x01x\x05y", "xtouch oney"),
            ("touch one", b"\x1b[Hx\x1b[Fy", "xtouch oney"),
            ("touch one", b"\x1b[1~\x1b[3~", "ouch one"),
            ("touch one", b"\x1bOD\x1bODX", "touch oXne"),
            ("touch one", b"\x1b[1;5D\x1b[1;5DX", "Xtouch one"),
            ("a", b"\x1b[A\x1b[B\x1bx\x18\x1b[15~\x1bOq", "a"),
            ("", "日本\u{8}語".as_bytes(), "日語"),
            ("日本", b"\x1b[D\x7f", "本"),
            ("", b"\x1b[200~ls -l\n\x1b[201~", "ls -l"),
        ] {
            assert_eq!(typed(start, bytes), expected, "{start} {bytes:?}");
        }
    }

    #[test]
    fn what_cannot_be_seen_does_not_get_in() {
        for bytes in
            ["\x1b[200~a\nb\x1b[201~", "\x1b[200~a\u{202e}b\x1b[201~", "\x1b[200~a\x1b[2Jb\x1b[201~", "\u{202e}"]
        {
            assert_eq!(typed("x", bytes.as_bytes()), "x", "{bytes:?}");
        }
        let mut number = Line::of_digits();
        for key in Decoder::default().decode(b"a4a8q2").keys {
            number.take(&key);
        }
        assert_eq!(number.text(), "482");
    }

    proptest! {
        #[test]
        fn any_keys_leave_a_line_that_can_be_seen_and_fits(
            start in "[a-z日 ]{0,30}",
            bytes in proptest::collection::vec(any::<u8>(), 0..60),
            columns in 1_usize..50,
        ) {
            let mut line = Line::new(&start);
            for key in Decoder::default().decode(&bytes).keys {
                line.take(&key);
            }
            prop_assert!(is_plain(line.text()), "{:?}", line.text());
            let (view, column) = line.view(columns);
            prop_assert!(width::of(&view) <= columns.max(3) && column <= columns.max(3), "{view:?} {column} {columns}");
        }
    }
}
