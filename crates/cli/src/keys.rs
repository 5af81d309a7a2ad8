//! What a person's keyboard sends, read by the byte. A key decides only where it came alone and plain: whatever else a
//! terminal can send (Ctrl and Alt, function keys and keypads, pasted text, what was typed ahead) is several bytes or a
//! control character, and is known by that, also where nobody has heard of the sequence.

use std::io;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{QueueSelector, tcflush};

/// How long the rest of a sequence may take to arrive after its ESC.
const REST: Duration = Duration::from_millis(50);
const CHUNK: usize = 4096;
/// The most that is taken as one paste; more is none.
const MAX_PASTE: usize = 128 * 1024;
const PASTE_START: &[u8] = b"\x1b[200~";
const PASTE_END: &[u8] = b"\x1b[201~";

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Key {
    /// A character without Ctrl, Alt or the like.
    Plain(char),
    /// With Ctrl: the lower-case letter.
    Ctrl(char),
    Up,
    Down,
    Left,
    Right,
    WordLeft,
    WordRight,
    Home,
    End,
    PageUp,
    PageDown,
    Enter,
    Escape,
    Backspace,
    Delete,
    Paste(String),
    Interrupt,
    /// Anything else.
    Other,
}

/// What arrived at once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Burst {
    pub keys: Vec<Key>,
}

impl Burst {
    /// The one character that was pressed, and nothing with it: the only thing that may decide.
    pub fn alone(&self) -> Option<char> {
        match self.keys.as_slice() {
            [Key::Plain(c)] => Some(*c),
            _ => None,
        }
    }

    pub fn interrupts(&self) -> bool {
        self.keys.contains(&Key::Interrupt)
    }
}

/// Makes keys of bytes. Remembers only a paste that goes on.
#[derive(Debug, Default)]
pub struct Decoder {
    paste: Option<Vec<u8>>,
}

impl Decoder {
    pub fn decode(&mut self, bytes: &[u8]) -> Burst {
        let mut keys = Vec::new();
        let mut rest = bytes;
        // A paste whose end never came would swallow this too.
        if rest == [3] {
            self.paste = None;
        }
        while !rest.is_empty() {
            if let Some(paste) = &mut self.paste {
                rest = continue_paste(paste, rest);
                if let Some(text) = ended(paste) {
                    keys.push(text);
                    self.paste = None;
                }
                continue;
            }
            if let Some(after) = rest.strip_prefix(PASTE_START) {
                self.paste = Some(Vec::new());
                rest = after;
                continue;
            }
            let (key, length) = first(rest);
            keys.push(key);
            rest = rest.get(length.max(1)..).unwrap_or_default();
        }
        Burst { keys }
    }
}

/// Takes bytes up to the end of the paste, and answers what is left.
fn continue_paste<'b>(paste: &mut Vec<u8>, bytes: &'b [u8]) -> &'b [u8] {
    for (at, byte) in bytes.iter().enumerate() {
        paste.push(*byte);
        if paste.ends_with(PASTE_END) {
            return bytes.get(at + 1..).unwrap_or_default();
        }
        // Too much: only its end is still looked for, and kept too long to be taken.
        if paste.len() > 2 * MAX_PASTE {
            paste.drain(..MAX_PASTE / 2);
        }
    }
    &[]
}

fn ended(paste: &[u8]) -> Option<Key> {
    let text = paste.strip_suffix(PASTE_END)?;
    let sound = text.len() <= MAX_PASTE;
    Some(std::str::from_utf8(text).ok().filter(|_| sound).map_or(Key::Other, |text| Key::Paste(text.to_owned())))
}

/// The first key of these bytes, and how many of them it is.
fn first(bytes: &[u8]) -> (Key, usize) {
    let Some(byte) = bytes.first() else { return (Key::Other, 0) };
    match byte {
        0x1b => sequence(bytes),
        0x03 => (Key::Interrupt, 1),
        b'\r' | b'\n' => (Key::Enter, 1),
        0x08 | 0x7f => (Key::Backspace, 1),
        control @ 0x01..=0x1a => (Key::Ctrl(char::from(control | 0x60)), 1),
        0x00..=0x1f => (Key::Other, 1),
        _ => character(bytes),
    }
}

fn character(bytes: &[u8]) -> (Key, usize) {
    for length in 1..=4 {
        let text = bytes.get(..length).and_then(|bytes| std::str::from_utf8(bytes).ok());
        if let Some(c) = text.and_then(|text| text.chars().next()) {
            return (if c.is_control() { Key::Other } else { Key::Plain(c) }, length);
        }
    }
    (Key::Other, 1)
}

/// What begins with ESC: the key alone, or a sequence to its end.
fn sequence(bytes: &[u8]) -> (Key, usize) {
    match bytes.get(1) {
        None => (Key::Escape, 1),
        Some(b'[') => csi(bytes),
        Some(b'O') => {
            let digits = bytes.iter().skip(2).take_while(|byte| byte.is_ascii_digit()).count();
            let plain = digits == 0;
            (bytes.get(2 + digits).filter(|_| plain).map_or(Key::Other, |end| arrow(*end)), 3 + digits)
        }
        // A terminal's answer, to the end of its string.
        Some(b']' | b'P' | b'_' | b'^' | b'X') => {
            let end = bytes.iter().skip(2).position(|byte| matches!(byte, 0x07 | 0x1b));
            let more = end.map_or(bytes.len(), |end| 3 + end);
            (Key::Other, more + usize::from(bytes.get(more) == Some(&b'\\')))
        }
        Some(0x1b) => (Key::Other, 1),
        // With Alt.
        Some(_) => {
            let (key, length) = first(bytes.get(1..).unwrap_or_default());
            let key = match key {
                Key::Plain('b') => Key::WordLeft,
                Key::Plain('f') => Key::WordRight,
                Key::Backspace => Key::Ctrl('w'),
                Key::Interrupt => Key::Interrupt,
                _ => Key::Other,
            };
            (key, 1 + length)
        }
    }
}

fn csi(bytes: &[u8]) -> (Key, usize) {
    // The Linux console's function keys are one byte longer than the standard says.
    if bytes.get(2) == Some(&b'[') {
        return (Key::Other, 4);
    }
    let inner = bytes.iter().skip(2).take_while(|byte| (0x20..=0x3f).contains(*byte)).count();
    let length = 3 + inner;
    let parameters = bytes.get(2..2 + inner).unwrap_or_default();
    let key = match (parameters, bytes.get(2 + inner)) {
        (b"", Some(end)) => arrow(*end),
        (b"1;5" | b"1;3", Some(b'C')) => Key::WordRight,
        (b"1;5" | b"1;3", Some(b'D')) => Key::WordLeft,
        (b"1" | b"7", Some(b'~')) => Key::Home,
        (b"4" | b"8", Some(b'~')) => Key::End,
        (b"3", Some(b'~')) => Key::Delete,
        (b"5", Some(b'~')) => Key::PageUp,
        (b"6", Some(b'~')) => Key::PageDown,
        // As terminals write them that report every key this way.
        (b"99;5", Some(b'u')) | (b"27;5;99", Some(b'~')) => Key::Interrupt,
        (b"27", Some(b'u')) => Key::Escape,
        _ => Key::Other,
    };
    (key, length)
}

fn arrow(end: u8) -> Key {
    match end {
        b'A' => Key::Up,
        b'B' => Key::Down,
        b'C' => Key::Right,
        b'D' => Key::Left,
        b'H' => Key::Home,
        b'F' => Key::End,
        _ => Key::Other,
    }
}

/// The keyboard of this process, in raw mode.
#[derive(Debug, Default)]
pub struct Keyboard {
    decoder: Decoder,
}

impl Keyboard {
    /// Forgets what was typed before the person could have seen what is asked now.
    pub fn forget(&mut self) {
        let _ = tcflush(io::stdin(), QueueSelector::IFlush);
        self.decoder = Decoder::default();
    }

    /// What arrives within this time. An end of the input is an error: nobody is there any more.
    pub fn next(&mut self, within: Duration) -> io::Result<Option<Burst>> {
        let mut bytes = Vec::new();
        let mut patience = within;
        while is_there(patience)? {
            let mut chunk = [0_u8; CHUNK];
            let read = rustix::io::read(io::stdin(), &mut chunk)?;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            bytes.extend_from_slice(chunk.get(..read).unwrap_or_default());
            if bytes.len() > 2 * MAX_PASTE {
                break;
            }
            patience = if is_unfinished(&bytes) { REST } else { Duration::ZERO };
        }
        if bytes.is_empty() {
            return Ok(None);
        }
        let burst = self.decoder.decode(&bytes);
        Ok(Some(burst).filter(|burst| !burst.keys.is_empty()))
    }
}

/// Whether the last ESC may go on.
fn is_unfinished(bytes: &[u8]) -> bool {
    let Some(at) = bytes.iter().rposition(|byte| *byte == 0x1b) else { return false };
    let tail = bytes.get(at..).unwrap_or_default();
    match tail.get(1) {
        None => true,
        Some(b'[') => tail.iter().skip(2).all(|byte| (0x20..=0x3f).contains(byte)),
        Some(b'O') => tail.len() < 3,
        Some(_) => false,
    }
}

fn is_there(within: Duration) -> io::Result<bool> {
    let stdin = io::stdin();
    let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
    let time = Timespec {
        tv_sec: i64::try_from(within.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(within.subsec_nanos()),
    };
    match poll(&mut fds, Some(&time)) {
        Ok(ready) => Ok(ready > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn keys(bytes: &[u8]) -> Vec<Key> {
        Decoder::default().decode(bytes).keys
    }

    fn alone(bytes: &[u8]) -> Option<char> {
        Decoder::default().decode(bytes).alone()
    }

    #[test]
    fn threat_99_only_a_plain_key_that_came_alone_decides() {
        assert_eq!((alone(b"a"), alone(b"A"), alone("é".as_bytes())), (Some('a'), Some('A'), Some('é')));
        for none in [
            &b"\x01"[..],
            b"\x13",
            b"\r",
            b"\n",
            b"\t",
            b"\x1ba",
            b"\x1b\x1ba",
            b"\x1b[97;5u",
            b"\x1b[97;3u",
            b"\x1b[97u",
            b"\x1b[97;1:3u",
            b"\x1b[27;5;97~",
            b"\x1bOa",
            b"\x1bOq",
            b"\x1bO5a",
            b"\x1b[a",
            b"\x1b[1;5a",
            b"\x1b[?1$a",
            b"\x1b[[a",
            b"\x1b[11~",
            b"\x1b[24;2~",
            b"\x1b[200~a\x1b[201~",
            b"\x1b[200~a",
            b"\x1b]10;rgb:a\x07",
            b"\x1bPa\x1b\\",
            b"aa",
            b"a\n",
            b"a\r",
            b"xa",
            b"\xc3a",
            b"\xe1",
            b"\x00a",
            b"",
        ] {
            assert_eq!(alone(none), None, "{none:?}");
        }
    }

    #[test]
    fn sequences_are_taken_whole_so_that_no_letter_of_one_is_left_over() {
        for (bytes, expected) in [
            (&b"\x1b[A\x1b[B\x1bOC\x1b[D"[..], vec![Key::Up, Key::Down, Key::Right, Key::Left]),
            (b"\x1b[H\x1b[4~\x1b[3~\x1b[5~", vec![Key::Home, Key::End, Key::Delete, Key::PageUp]),
            (b"\x1b[1;5C\x1bb", vec![Key::WordRight, Key::WordLeft]),
            (b"\x15\x17\x7f", vec![Key::Ctrl('u'), Key::Ctrl('w'), Key::Backspace]),
            (b"\x1b", vec![Key::Escape]),
            (b"\x03", vec![Key::Interrupt]),
            (b"\x1b[99;5u", vec![Key::Interrupt]),
            (b"\x1b]0;aaa\x1b\\", vec![Key::Other]),
            ("日".as_bytes(), vec![Key::Plain('日')]),
        ] {
            assert_eq!(keys(bytes), expected, "{bytes:?}");
        }
    }

    #[test]
    fn a_paste_is_one_however_it_arrives_and_does_not_swallow_ctrl_c() {
        let mut decoder = Decoder::default();
        assert_eq!(decoder.decode(b"\x1b[200~a\nb\x1b[2").keys, []);
        assert!(decoder.paste.is_some());
        assert_eq!(decoder.decode(b"01~").keys, [Key::Paste("a\nb".to_owned())]);
        assert_eq!(decoder.decode(b"\x1b[200~a").keys, []);
        assert_eq!(decoder.decode(b"a").keys, []);
        assert!(decoder.decode(b"\x03").interrupts() && decoder.paste.is_none());
        let mut long = b"\x1b[200~".to_vec();
        long.resize(3 * MAX_PASTE, b'x');
        long.extend_from_slice(PASTE_END);
        assert_eq!(keys(&long), [Key::Other]);
    }

    #[test]
    fn what_may_go_on_is_waited_for() {
        for (bytes, unfinished) in [
            (&b"\x1b"[..], true),
            (b"\x1b[", true),
            (b"\x1b[1;5", true),
            (b"\x1bO", true),
            (b"\x1b[A", false),
            (b"a", false),
        ] {
            assert_eq!(is_unfinished(bytes), unfinished, "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn whatever_arrives_only_one_printable_character_stands_alone(bytes in proptest::collection::vec(any::<u8>(), 0..12)) {
            if let Some(c) = alone(&bytes) {
                prop_assert_eq!(c.to_string().into_bytes(), bytes);
                prop_assert!(!c.is_control());
            }
        }

        #[test]
        fn nothing_behind_an_escape_decides(bytes in proptest::collection::vec(any::<u8>(), 0..12)) {
            let all = [&b"\x1b"[..], &bytes].concat();
            prop_assert_eq!(alone(&all), None);
        }
    }
}
