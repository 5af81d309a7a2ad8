//! Values that are secret because of the name before them: `password=x`, `"token": "x"`, `--api-key x`,
//! `Authorization: Bearer x`.

use super::{Found, SecretKind, byte, run_end};

/// Endings of names, written without `-`, `_` and `.`.
const ENDINGS: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "accesskey",
    "secretkey",
    "privatekey",
    "signingkey",
    "encryptionkey",
    "authkey",
];
/// Last parts of a longer name (`DB_PASS`). Alone they are other things: `PWD` is a folder.
const LAST_PARTS: &[&str] = &["pass", "pwd", "pw"];
/// Values that are a type, a keyword or an empty place, not a secret.
const NOT_VALUES: &[&str] = &[
    "null",
    "none",
    "nil",
    "true",
    "false",
    "undefined",
    "string",
    "str",
    "bool",
    "boolean",
    "int",
    "number",
    "any",
    "bytes",
    "required",
    "optional",
];
const SCHEMES: &[&str] = &["bearer", "basic", "token"];
const MAX_BLANKS: usize = 4;
const MIN_CREDENTIAL: usize = 6;
const MIN_BARE_BEARER: usize = 20;

/// What kind of secret a name promises, if any.
pub(super) fn kind_of(name: &str) -> Option<SecretKind> {
    let name = name.trim_start_matches('-');
    let last = name.rsplit(['-', '_', '.']).next().unwrap_or_default();
    let last_part = name.len() > last.len() && LAST_PARTS.iter().any(|part| last.eq_ignore_ascii_case(part));
    let named = last_part || name.eq_ignore_ascii_case("pass") || ENDINGS.iter().any(|ending| ends_with(name, ending));
    // Every word of a text comes here and hardly one is such a name.
    if !named {
        return None;
    }
    let compact = name.to_ascii_lowercase().replace(['-', '_', '.'], "");
    Some(if compact.ends_with("secretaccesskey") {
        SecretKind::AwsSecret
    } else if last_part || compact.contains("pass") {
        SecretKind::Password
    } else {
        SecretKind::Secret
    })
}

/// Whether a name without its `-`, `_` and `.` ends so, in any case.
fn ends_with(name: &str, ending: &str) -> bool {
    let mut letters = name.bytes().rev().filter(|b| !matches!(b, b'-' | b'_' | b'.'));
    ending.bytes().rev().all(|expected| letters.next().is_some_and(|b| b.to_ascii_lowercase() == expected))
}

/// Whether a value is written out, rather than taken from a variable, a file, a substitution or a template.
pub(super) fn is_literal(value: &str) -> bool {
    let elsewhere = value.starts_with(['$', '%', '<', '{', '*', '@', '[', '('])
        || ["$(", "${", "`", "://"].iter().any(|part| value.contains(part));
    let lower = value.to_ascii_lowercase();
    // Text that could be more commands stays visible, whatever stands before it.
    let commands = value.contains(char::is_whitespace) && value.contains([';', '|', '&', '<', '>']);
    !(value.is_empty()
        || elsewhere
        || commands
        || value.contains('\n')
        || is_path(value)
        || NOT_VALUES.contains(&lower.as_str()))
}

/// `./x`, `~/x`, `/run/x`: where a secret is, not the secret.
fn is_path(value: &str) -> bool {
    if ["./", "../", "~/"].iter().any(|start| value.starts_with(start)) {
        return true;
    }
    let folder = value.strip_prefix('/').and_then(|rest| rest.split_once('/'));
    folder.is_some_and(|(first, _)| !first.is_empty() && first.bytes().all(|b| b.is_ascii_lowercase()))
}

pub(super) fn scan(text: &str, found: &mut Found) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let end = run_end(bytes, at, usize::MAX, is_name);
        if end == at {
            at += 1;
            continue;
        }
        let name = text.get(at..end).unwrap_or_default();
        let tail = name.len().checked_sub("authorization".len()).and_then(|from| name.get(from..));
        if tail.is_some_and(|tail| tail.eq_ignore_ascii_case("authorization")) {
            authorization(text, end, found);
        } else if name.eq_ignore_ascii_case("bearer") {
            bare_bearer(bytes, end, found);
        } else if let Some(kind) = kind_of(name) {
            named_value(text, name, end, kind, found);
        }
        at = end;
    }
}

fn named_value(text: &str, name: &str, name_end: usize, kind: SecretKind, found: &mut Found) {
    let bytes = text.as_bytes();
    let value = match separator(bytes, name_end) {
        Some(separator) => value_at(text, separator.end)
            .filter(|value| value.quoted || separator.tight || is_surely_secret(value.text)),
        None if name.starts_with('-') => {
            let start = skip_blanks(bytes, name_end);
            value_at(text, start)
                .filter(|value| start > name_end && !value.text.contains('='))
                .filter(|value| value.quoted || !value.text.starts_with('-'))
        }
        None => None,
    };
    let Some(value) = value else { return };
    let counted = kind == SecretKind::Secret && value.text.bytes().all(|b| b.is_ascii_digit());
    if is_literal(value.text) && !counted {
        found.add(value.start..value.start + value.text.len(), kind);
    }
}

struct Separator {
    end: usize,
    /// `name=value` without blanks: an environment, a query or an option, hardly prose or code.
    tight: bool,
}

fn separator(bytes: &[u8], name_end: usize) -> Option<Separator> {
    let quoted = skip_quote(bytes, name_end);
    let at = skip_blanks(bytes, quoted);
    let end = match (byte(bytes, at), byte(bytes, at + 1)) {
        (b'=', b'=') | (b':', b':') => return None,
        (b'=', b'>') | (b':', b'=') => at + 2,
        (b'=' | b':', _) => at + 1,
        _ => return None,
    };
    let start = skip_blanks(bytes, end);
    let tight = byte(bytes, at) == b'=' && at == name_end && start == at + 1;
    Some(Separator { end: start, tight })
}

struct Value<'a> {
    start: usize,
    text: &'a str,
    quoted: bool,
}

fn value_at(text: &str, at: usize) -> Option<Value<'_>> {
    let bytes = text.as_bytes();
    let start = skip_quote(bytes, at);
    let rest = text.get(start..)?;
    if start > at {
        let quote = char::from(byte(bytes, start - 1));
        let inside = rest.split([quote, '\n']).next().unwrap_or_default();
        let closed = rest.get(inside.len()..)?.starts_with(quote);
        // In `\"x\"` the backslash before the closing quote belongs to the quote.
        let text = if start - at == 2 { inside.strip_suffix('\\').unwrap_or(inside) } else { inside };
        return closed.then_some(Value { start, text, quoted: true });
    }
    let ends = |c: char| c.is_whitespace() || "\"'`;|&<>(){}[],\\".contains(c);
    let text = rest.split(ends).next().unwrap_or_default();
    // `f(`, `a[`, `$(`: an expression, not a value.
    let called = rest.get(text.len()..)?.starts_with(['(', '[', '{']);
    (!called).then_some(Value { start, text, quoted: false })
}

/// After `name: ` or `name = ` stands prose or code as often as a secret; a secret has more than letters.
fn is_surely_secret(value: &str) -> bool {
    let wordlike = |b: u8| b.is_ascii_alphabetic() || matches!(b, b'_' | b'.' | b'-');
    value.len() >= MIN_CREDENTIAL && !value.bytes().all(wordlike)
}

fn authorization(text: &str, name_end: usize, found: &mut Found) {
    let bytes = text.as_bytes();
    let Some(separator) = separator(bytes, name_end) else {
        return;
    };
    let scheme = skip_quote(bytes, separator.end);
    let scheme_end = run_end(bytes, scheme, 8, |b| b.is_ascii_alphabetic());
    let word = text.get(scheme..scheme_end).unwrap_or_default();
    let start = skip_blanks(bytes, scheme_end);
    let known = SCHEMES.iter().any(|known| word.eq_ignore_ascii_case(known));
    let (start, least) = if known && start > scheme_end { (start, MIN_CREDENTIAL) } else { (scheme, MIN_BARE_BEARER) };
    let end = run_end(bytes, start, usize::MAX, is_credential);
    if end - start >= least {
        found.add(start..end, SecretKind::Authorization);
    }
}

fn bare_bearer(bytes: &[u8], name_end: usize, found: &mut Found) {
    let start = skip_blanks(bytes, name_end);
    let end = run_end(bytes, start, usize::MAX, is_credential);
    let value = bytes.get(start..end).unwrap_or_default();
    if value.len() >= MIN_BARE_BEARER && value.iter().any(u8::is_ascii_digit) {
        found.add(start..end, SecretKind::Authorization);
    }
}

fn skip_blanks(bytes: &[u8], at: usize) -> usize {
    run_end(bytes, at, MAX_BLANKS, |b| b == b' ' || b == b'\t')
}

/// A quote, also as `\"` inside another string.
fn skip_quote(bytes: &[u8], at: usize) -> usize {
    match (byte(bytes, at), byte(bytes, at + 1)) {
        (b'"' | b'\'', _) => at + 1,
        (b'\\', b'"' | b'\'') => at + 2,
        _ => at,
    }
}

fn is_name(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.')
}

fn is_credential(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_' | b'~' | b'+' | b'/' | b'=')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mask::find;

    #[test]
    fn threat_67_every_name_hides_its_value_and_names_that_only_start_so_do_not() {
        let last_parts = LAST_PARTS.iter().map(|part| format!("db_{part}"));
        for name in ENDINGS.iter().map(|ending| (*ending).to_owned()).chain(last_parts) {
            for text in
                [format!("{name}=v4lue"), format!("MY_{}='v4lue'", name.to_uppercase()), format!("--{name} v4lue")]
            {
                let found = find(&text);
                let values: Vec<_> = found.iter().map(|r| text.get(r.start..r.end).unwrap()).collect();
                assert_eq!(values, ["v4lue"], "{text}");
            }
            assert_eq!(find(&format!("--{name}-file v4lue {name}_name=v4lue {name}s=v4lue")), [], "{name}");
        }
    }

    #[test]
    fn threat_67_what_stands_for_a_value_is_not_one() {
        for text in NOT_VALUES.iter().copied().chain(["$X", "${X}", "<x>", "{{x}}", "@file", "/run/x", "a`b`"]) {
            assert!(!is_literal(text), "{text}");
        }
    }
}
