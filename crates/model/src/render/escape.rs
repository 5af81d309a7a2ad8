//! Which characters are not shown as themselves, and how they are spelled instead.
//!
//! Judges one character (and, for marks that draw over their neighbour, what stood before it). Knows nothing
//! of secrets, risks or sections.

use unicode_properties::{GeneralCategory, UnicodeGeneralCategory};

use super::document::Document;

/// Why a character is not shown as itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// Tab and newline: spelled out where they would not be seen, but no cause for alarm.
    Layout,
    Control,
    Hidden,
    Space,
    Unassigned,
    /// A combining mark without a letter to sit on, or one too many.
    Overlay,
    /// The source imitates a sign that only the renderer writes.
    Imitation,
}

/// How many combining marks a letter may carry (UTR 36).
const MAX_MARKS: u8 = 4;

/// What a text is written into: this decides about newlines, quotes and backslashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// Lines stay lines.
    Block,
    /// One line.
    Line,
    /// Inside `"…"`; a newline is spelled and also breaks the line, indented by so many spaces.
    Json { indent: usize },
    /// Inside `'…'`, as a shell reads it.
    Single,
    /// Inside `$'…'`, as a shell reads it.
    Dollar,
}

impl Style {
    /// Where a backslash is always doubled, no source text can look like an escape.
    fn doubles_backslash(self) -> bool {
        matches!(self, Self::Json { .. } | Self::Dollar)
    }

    /// A character that this style needs to write differently to stay inside its quotes.
    pub(super) fn quoted(self, c: char) -> Option<&'static str> {
        match (self, c) {
            (Self::Json { .. } | Self::Dollar, '\\') => Some("\\\\"),
            (Self::Json { .. }, '"') => Some("\\\""),
            (Self::Dollar, '\'') => Some("\\'"),
            (Self::Single, '\'') => Some("'\\''"),
            (Self::Json { .. } | Self::Dollar, '\t') => Some("\\t"),
            _ => None,
        }
    }

    pub(super) fn newline(self) -> String {
        match self {
            Self::Block => "\n".to_owned(),
            Self::Line | Self::Single | Self::Dollar => "\\n".to_owned(),
            Self::Json { indent } => format!("\\n\n{}", " ".repeat(indent)),
        }
    }

    /// The line breaks around a label that stands for many newlines.
    pub(super) fn around_padding(self) -> (&'static str, String) {
        match self {
            Self::Block => ("\n", "\n".to_owned()),
            Self::Line | Self::Single | Self::Dollar => ("", String::new()),
            Self::Json { indent } => ("", format!("\n{}", " ".repeat(indent))),
        }
    }
}

/// Shows a text in one line, with everything that is not plainly visible spelled out.
pub fn escape_line(text: &str) -> String {
    let mut line = Document::default();
    line.push_text(text, Style::Line, &[]);
    line.finish().text
}

/// Why `c` is never shown as itself, whatever stands around it.
pub(super) fn class(c: char) -> Option<Class> {
    match c {
        ' '..='~' => return None,
        '\t' | '\n' => return Some(Class::Layout),
        _ if is_default_ignorable(c) || is_blank(c) => return Some(Class::Hidden),
        _ => {}
    }
    match c.general_category() {
        GeneralCategory::Control => Some(Class::Control),
        GeneralCategory::Format | GeneralCategory::LineSeparator | GeneralCategory::ParagraphSeparator => {
            Some(Class::Hidden)
        }
        GeneralCategory::SpaceSeparator => Some(Class::Space),
        GeneralCategory::PrivateUse | GeneralCategory::Surrogate | GeneralCategory::Unassigned => {
            Some(Class::Unassigned)
        }
        _ => None,
    }
}

/// `\t`, `\n` and `\r` by their names, all else by number.
pub(super) fn spelled(c: char) -> String {
    match c {
        '\t' => "\\t".to_owned(),
        '\n' => "\\n".to_owned(),
        '\r' => "\\r".to_owned(),
        _ => format!("\\u{{{:x}}}", u32::from(c)),
    }
}

/// Whether `rest` starts with a sign that only the renderer writes: an escape, a fold, collapsed padding or a
/// masked value. The first character is then spelled, so that in plain text, too, each sign has one author.
pub(super) fn imitates(rest: &str, style: Style) -> bool {
    (rest.starts_with("\\u{") && !style.doubles_backslash())
        || rest.starts_with("[… ")
        || crate::mask::starts_like_a_label(rest)
}

/// Follows letters and the marks on them.
#[derive(Clone, Copy, Default)]
pub(super) struct Marks {
    /// Marks on the letter before; none when there is no letter to sit on.
    carried: Option<u8>,
}

impl Marks {
    /// Takes the next character; answers whether it is a mark that must not be drawn.
    pub(super) fn overlays(&mut self, c: char) -> bool {
        if c.is_ascii() || !is_mark(c) {
            self.carried = c.is_alphanumeric().then_some(0);
            return false;
        }
        match self.carried {
            Some(count) if count < MAX_MARKS => {
                self.carried = Some(count + 1);
                false
            }
            Some(_) | None => true,
        }
    }

    pub(super) fn reset(&mut self) {
        self.carried = None;
    }
}

pub(super) fn is_mark(c: char) -> bool {
    matches!(
        c.general_category(),
        GeneralCategory::NonspacingMark | GeneralCategory::EnclosingMark | GeneralCategory::SpacingMark
    )
}

/// Unicode's Default_Ignorable_Code_Point: drawn as nothing by a font that does not know better.
fn is_default_ignorable(c: char) -> bool {
    matches!(
        u32::from(c),
        0xAD | 0x34F
            | 0x61C
            | 0x115F..=0x1160
            | 0x17B4..=0x17B5
            | 0x180B..=0x180F
            | 0x200B..=0x200F
            | 0x202A..=0x202E
            | 0x2060..=0x206F
            | 0x3164
            | 0xFE00..=0xFE0F
            | 0xFEFF
            | 0xFFA0
            | 0xFFF0..=0xFFF8
            | 0x1BCA0..=0x1BCA3
            | 0x1D173..=0x1D17A
            | 0xE0000..=0xE0FFF
    )
}

/// Letters and symbols whose picture is empty: Braille blank, a note without a head, blank hieroglyphs,
/// Khitan filler.
fn is_blank(c: char) -> bool {
    matches!(u32::from(c), 0x2800 | 0x1D159 | 0x13441..=0x13442 | 0x16FE4)
}
