//! How many columns text takes in a terminal, and where it must break. A guess too high is harmless: a line
//! ends early; one too low would push text off the screen.

/// Two columns each in most terminals: East Asian wide and full-width forms, and pictures.
const WIDE: &[(u32, u32)] = &[
    (0x1100, 0x115f),
    (0x231a, 0x23ff),
    (0x25fd, 0x27bf),
    (0x2b1b, 0x2b55),
    (0x2e80, 0xa4cf),
    (0xa960, 0xa97f),
    (0xac00, 0xd7a3),
    (0xf900, 0xfaff),
    (0xfe10, 0xfe6f),
    (0xff01, 0xff60),
    (0xffe0, 0xffe6),
    (0x16fe0, 0x18cff),
    (0x1aff0, 0x1b2ff),
    (0x1f000, 0x1ffff),
    (0x20000, 0x3fffd),
];

fn of_char(c: char) -> usize {
    let point = u32::from(c);
    if WIDE.iter().any(|(first, last)| (*first..=*last).contains(&point)) { 2 } else { 1 }
}

pub fn of(text: &str) -> usize {
    text.chars().map(of_char).sum()
}

/// The first byte that does not fit into so many columns; at least one character always does.
pub fn break_at(text: &str, columns: usize) -> usize {
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += of_char(c);
        if used > columns && at > 0 {
            return at;
        }
    }
    text.len()
}

/// The text, or its beginning and a `…` that says there is more.
pub fn cut(text: &str, columns: usize) -> String {
    if of(text) <= columns {
        return text.to_owned();
    }
    let room = columns.saturating_sub(1);
    let end = break_at(text, room);
    let head = text.get(..end).unwrap_or_default();
    if of(head) > room { "…".to_owned() } else { format!("{head}…") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_characters_take_two_columns() {
        assert_eq!((of("abc"), of("日本"), of("a🦀")), (3, 4, 3));
    }

    #[test]
    fn cutting_never_exceeds_and_never_is_silent() {
        for text in ["", "a", "hello world", "日本語のテキスト", "a日b本c"] {
            for columns in 1..30 {
                let cut = cut(text, columns);
                assert!(of(&cut) <= columns, "{cut} in {columns}");
                assert!(cut == text || cut.ends_with('…'), "{cut}");
            }
        }
    }

    #[test]
    fn a_break_always_gets_ahead() {
        assert_eq!(break_at("日本", 1), 3);
        assert_eq!(break_at("abc", 2), 2);
        assert_eq!(break_at("abc", 3), 3);
    }
}
