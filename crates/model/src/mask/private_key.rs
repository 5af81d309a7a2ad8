//! PEM and PGP private key blocks.

use super::{Found, SecretKind, byte, run_end};

const BEGIN: &str = "-----BEGIN ";
const MAX_HEADER: usize = 64;
/// Lines that may stand between the header and the body; they are no secret.
const HEADER_LINES: [&[u8]; 5] = [b"Proc-Type:", b"DEK-Info:", b"Version:", b"Comment:", b"Hash:"];
/// Every line of a key body but the last is at least this long; words of a command are not, so a header
/// alone hides nothing.
const MIN_LINE: usize = 40;

pub(super) fn scan(text: &str, found: &mut Found) {
    let bytes = text.as_bytes();
    // Looking for a long word costs more to begin than most texts are long.
    if !bytes.contains(&b'-') {
        return;
    }
    for (at, _) in text.match_indices(BEGIN) {
        let name = at + BEGIN.len();
        let name_end = run_end(bytes, name, MAX_HEADER, |b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b' ');
        let header = bytes.get(name..name_end).unwrap_or_default();
        let private = header.ends_with(b"PRIVATE KEY") || header.ends_with(b"PRIVATE KEY BLOCK");
        if private && starts(bytes, name_end, b"-----") {
            add_body(bytes, name_end + 5, found);
        }
    }
}

fn add_body(bytes: &[u8], from: usize, found: &mut Found) {
    let Some(start) = body_start(bytes, from) else {
        return;
    };
    let mut end = start;
    let mut short_lines = 0;
    let mut at = start;
    loop {
        let line_end = run_end(bytes, at, usize::MAX, is_base64);
        let next = skip_breaks(bytes, line_end);
        if line_end - at >= MIN_LINE {
            end = line_end;
        } else {
            // The last line, and the checksum line of PGP: part of the key only right before its end.
            short_lines += 1;
            if starts(bytes, next, b"-----END") {
                end = line_end;
            }
        }
        if next == line_end || short_lines == 2 {
            break;
        }
        at = next;
    }
    found.add(start..end, SecretKind::PrivateKey);
}

fn body_start(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = skip_breaks(bytes, from);
    for _ in HEADER_LINES {
        if HEADER_LINES.iter().any(|line| starts(bytes, at, line)) {
            let line_end = run_end(bytes, at, 200, |b| b != b'\n' && b != b'\\');
            at = skip_breaks(bytes, line_end);
        }
    }
    let enough = run_end(bytes, at, MIN_LINE, is_base64) - at == MIN_LINE;
    enough.then_some(at)
}

/// Line breaks, also as `\n` and `\r` of a JSON or shell string, and spaces.
fn skip_breaks(bytes: &[u8], mut at: usize) -> usize {
    loop {
        match (byte(bytes, at), byte(bytes, at + 1)) {
            (b' ' | b'\t' | b'\r' | b'\n', _) => at += 1,
            (b'\\', b'n' | b'r') => at += 2,
            _ => return at,
        }
    }
}

fn starts(bytes: &[u8], at: usize, with: &[u8]) -> bool {
    bytes.get(at..).is_some_and(|rest| rest.starts_with(with))
}

fn is_base64(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=')
}
