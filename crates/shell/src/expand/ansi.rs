//! `$'…'`: ANSI-C quoting.

/// Decodes the text between the quotes as bash does. Bytes that are no UTF-8 become the replacement character.
pub(crate) fn decode(raw: &str) -> String {
    let mut out: Vec<u8> = Vec::with_capacity(raw.len());
    let mut chars = raw.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\\' {
            push(&mut out, c);
            continue;
        }
        let Some(escape) = chars.next() else {
            out.push(b'\\');
            break;
        };
        let simple = match escape {
            'a' => Some(7),
            'b' => Some(8),
            'e' | 'E' => Some(27),
            'f' => Some(12),
            'n' => Some(b'\n'),
            'r' => Some(b'\r'),
            't' => Some(b'\t'),
            'v' => Some(11),
            '\\' | '\'' | '"' | '?' => u8::try_from(escape).ok(),
            _ => None,
        };
        if let Some(byte) = simple {
            out.push(byte);
            continue;
        }
        let value = match escape {
            'x' => digits(&mut chars, 16, 2),
            'u' => digits(&mut chars, 16, 4),
            'U' => digits(&mut chars, 16, 8),
            '0'..='7' => {
                let first = escape.to_digit(8).unwrap_or_default();
                let (rest, count) = digits(&mut chars, 8, 2).unwrap_or_default();
                Some((first * 8u32.pow(count) + rest, count + 1))
            }
            'c' => chars.next().map(|c| (u32::from(c) & 0x1f, 1)),
            _ => None,
        };
        match value {
            // Text after a NUL is dropped by bash.
            Some((0, _)) => break,
            Some((value, _)) if matches!(escape, 'u' | 'U') => {
                push(&mut out, char::from_u32(value).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            Some((value, _)) => out.push(u8::try_from(value & 0xff).unwrap_or_default()),
            None => {
                out.push(b'\\');
                push(&mut out, escape);
            }
        }
    }
    String::from_utf8(out).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// Up to `most` digits of the base: their value and how many there were.
fn digits(chars: &mut std::iter::Peekable<std::str::Chars<'_>>, base: u32, most: u32) -> Option<(u32, u32)> {
    let (mut value, mut count) = (0u32, 0);
    while count < most
        && let Some(digit) = chars.peek().and_then(|c| c.to_digit(base))
    {
        value = value.wrapping_mul(base).wrapping_add(digit);
        count += 1;
        chars.next();
    }
    (count > 0).then_some((value, count))
}

fn push(out: &mut Vec<u8>, c: char) {
    out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn decodes_as_bash_does() {
        for (raw, text) in [
            (r"\x72m", "rm"),
            (r"\162\155", "rm"),
            (r"\u0072m", "rm"),
            (r"a\nb", "a\nb"),
            (r"\'", "'"),
            (r"\z", r"\z"),
            (r"\cA", "\u{1}"),
            (r"a\0b", "a"),
            (r"\x", r"\x"),
        ] {
            assert_eq!(decode(raw), text, "{raw}");
        }
    }
}
