//! Characters that are drawn like an ASCII one in common typefaces. Data only.
//!
//! A short list on purpose: what UTS 39 calls confusable includes much that only a strange typeface confuses.

/// The ASCII character that `c` can be taken for.
pub(super) fn ascii_for(c: char) -> Option<char> {
    let point = u32::from(c);
    match point {
        // Fullwidth forms stand in the order of ASCII.
        0xFF01..=0xFF5E => char::from_u32(point - 0xFEE0),
        // Mathematical letters: alphabets of A to Z and a to z, one after the other.
        0x1D400..=0x1D6A3 => match (point - 0x1D400) % 52 {
            upper @ 0..26 => char::from_u32(0x41 + upper),
            lower => char::from_u32(0x61 + lower - 26),
        },
        0x1D7CE..=0x1D7FF => char::from_digit((point - 0x1D7CE) % 10, 10),
        _ => PAIRS.binary_search_by_key(&c, |(odd, _)| *odd).ok().and_then(|at| PAIRS.get(at)).map(|(_, ascii)| *ascii),
    }
}

/// INVARIANT: sorted by the first of each pair.
#[rustfmt::skip]
const PAIRS: &[(char, char)] = &[
    // Latin letters that are not ASCII, and clicks
    ('ı', 'i'), ('ǀ', '|'), ('ǃ', '!'), ('ɑ', 'a'), ('ɡ', 'g'), ('ɩ', 'i'), ('ɪ', 'i'),
    // Greek
    ('\u{37e}', ';'), ('Α', 'A'), ('Β', 'B'), ('Ε', 'E'), ('Ζ', 'Z'), ('Η', 'H'), ('Ι', 'I'), ('Κ', 'K'),
    ('Μ', 'M'), ('Ν', 'N'), ('Ο', 'O'), ('Ρ', 'P'), ('Τ', 'T'), ('Υ', 'Y'), ('Χ', 'X'), ('α', 'a'),
    ('γ', 'y'), ('ι', 'i'), ('ν', 'v'), ('ο', 'o'), ('ρ', 'p'), ('υ', 'u'), ('ϲ', 'c'), ('ϳ', 'j'), ('Ϲ', 'C'),
    // Cyrillic
    ('Ѕ', 'S'), ('І', 'I'), ('Ј', 'J'), ('А', 'A'), ('В', 'B'), ('Е', 'E'), ('З', '3'), ('К', 'K'), ('М', 'M'),
    ('Н', 'H'), ('О', 'O'), ('Р', 'P'), ('С', 'C'), ('Т', 'T'), ('У', 'Y'), ('Х', 'X'), ('Ь', 'b'), ('а', 'a'),
    ('б', '6'), ('е', 'e'), ('о', 'o'), ('р', 'p'), ('с', 'c'), ('у', 'y'), ('х', 'x'), ('ѕ', 's'), ('і', 'i'),
    ('ј', 'j'), ('ѡ', 'w'), ('Ѵ', 'V'), ('ѵ', 'v'), ('Ү', 'Y'), ('ү', 'y'), ('Һ', 'h'), ('һ', 'h'), ('Ӏ', 'I'),
    ('ӏ', 'l'), ('Ԁ', 'd'), ('ԁ', 'd'), ('Ԍ', 'G'), ('Ԛ', 'Q'), ('ԛ', 'q'), ('Ԝ', 'W'), ('ԝ', 'w'),
    // Armenian
    ('Լ', 'L'), ('Ս', 'U'), ('Տ', 'S'), ('Օ', 'O'), ('զ', 'q'), ('հ', 'h'), ('յ', 'j'), ('ո', 'n'), ('ս', 'u'),
    ('ց', 'g'), ('ք', 'p'), ('օ', 'o'),
    // Cherokee
    ('Ꭰ', 'D'), ('Ꭱ', 'R'), ('Ꭲ', 'T'), ('Ꭺ', 'A'), ('Ꭻ', 'J'), ('Ꭼ', 'E'), ('Ꮃ', 'W'), ('Ꮇ', 'M'),
    ('Ꮋ', 'H'), ('Ꮐ', 'G'), ('Ꮓ', 'Z'), ('Ꮩ', 'V'), ('Ꮪ', 'S'), ('Ꮮ', 'L'), ('Ꮯ', 'C'), ('Ꮲ', 'P'),
    ('Ꮶ', 'K'), ('Ᏼ', 'B'),
    // Small capitals, punctuation, letterlike signs, Roman numerals
    ('ᴄ', 'c'), ('ᴏ', 'o'), ('ᴠ', 'v'), ('ᴡ', 'w'), ('ᴢ', 'z'), ('․', '.'), ('⁄', '/'), ('\u{212a}', 'K'),
    ('ℯ', 'e'), ('Ⅰ', 'I'), ('Ⅴ', 'V'), ('Ⅹ', 'X'), ('Ⅼ', 'L'), ('Ⅽ', 'C'), ('Ⅾ', 'D'), ('Ⅿ', 'M'), ('ⅰ', 'i'),
    ('ⅴ', 'v'), ('ⅹ', 'x'), ('ⅼ', 'l'), ('ⅽ', 'c'), ('ⅾ', 'd'), ('ⅿ', 'm'), ('∕', '/'), ('∶', ':'), ('⧸', '/'),
    ('。', '.'), ('꞉', ':'), ('｡', '.'),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_every_pair_is_found() {
        assert!(PAIRS.is_sorted_by(|a, b| a.0 < b.0));
        for (odd, ascii) in PAIRS {
            assert_eq!(ascii_for(*odd), Some(*ascii));
            assert!(!odd.is_ascii() && ascii.is_ascii_graphic());
        }
        assert_eq!(ascii_for('ｇ'), Some('g'));
        assert_eq!(ascii_for('𝗀'), Some('g'));
        assert_eq!(ascii_for('𝟛'), Some('3'));
        assert_eq!(ascii_for('ж'), None);
    }
}
