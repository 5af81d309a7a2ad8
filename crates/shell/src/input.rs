//! Whether text can be shown to a person as it is: its length and its characters.

use crate::danger;
use crate::reason::{Layer, Reason, Risk};
use crate::word::Span;
use std::borrow::Cow;

/// Longer text is refused: nobody would read it.
pub const MAX_TEXT: usize = 16 * 1024;

/// Why the text cannot be shown at all.
pub(crate) fn unshowable(text: &str) -> Option<Reason> {
    let (message, span) = if text.len() > MAX_TEXT {
        ("the command is longer than 16 KiB, too long to show", Span { start: MAX_TEXT, end: text.len() })
    } else if let Some(at) = text.bytes().position(|byte| byte == 0) {
        ("the command holds a NUL character", Span { start: at, end: at + 1 })
    } else {
        return None;
    };
    Some(input_reason("unshowable", message, span, Risk::Dangerous))
}

/// Characters that show as nothing, as something else, or as a blank that is none to the shell.
pub(crate) fn strange_characters(text: &str) -> Option<Reason> {
    let plain = |byte: u8| matches!(byte, b' '..=b'~' | b'\n' | b'\t');
    if text.bytes().all(plain) {
        return None;
    }
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        // Joiners and variation selectors belong to the emoji before them.
        let joins = matches!(c, '\u{200d}' | '\u{fe0e}' | '\u{fe0f}') && is_symbol(before);
        if is_strange(c) && !joins {
            let message = format!("holds the character U+{:04X}, which does not show as what it is", u32::from(c));
            let span = Span { start: at, end: at + c.len_utf8() };
            return Some(input_reason("control_character", message, span, Risk::NeedsReview));
        }
        before = c;
    }
    None
}

fn is_symbol(c: char) -> bool {
    matches!(c, '\u{2190}'..='\u{2bff}' | '\u{3030}' | '\u{303d}' | '\u{fe0f}' | '\u{1f000}'..='\u{1faff}')
}

fn is_strange(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        _ if c.is_control() => true,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' => true,
        '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' => true,
        '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' => true,
        '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' => true,
        '\u{e0000}'..='\u{e0fff}' => true,
        '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{2800}' | '\u{3000}' => true,
        _ => false,
    }
}

pub(crate) fn input_reason(
    code: &'static str,
    message: impl Into<Cow<'static, str>>,
    span: Span,
    risk: Risk,
) -> Reason {
    Reason {
        code: Cow::Borrowed(code),
        message: message.into(),
        span,
        layer: Layer::Input,
        risk,
        does: danger::said(code),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strange_characters_are_found_and_emoji_are_not() {
        for text in ["ls\u{200b} -la", "ls\r", "ls\u{b}rm", "\u{202e}sl", "ls\u{e0061}", "a\u{a0}b", "ls\u{7f}"] {
            assert!(strange_characters(text).is_some(), "{text:?}");
        }
        for text in ["echo héllo", "echo ✔\u{fe0f} done", "echo 👨\u{200d}👩", "ls\n\tb", "echo 日本語"] {
            assert!(strange_characters(text).is_none(), "{text:?}");
        }
    }
}
