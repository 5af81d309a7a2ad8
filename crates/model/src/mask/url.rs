//! Passwords in addresses: `scheme://user:PASSWORD@host`.

use super::{Found, SecretKind, named};

pub(super) fn scan(text: &str, found: &mut Found) {
    for (at, separator) in text.match_indices("://") {
        let start = at + separator.len();
        let rest = text.get(start..).unwrap_or_default();
        let ends = |c: char| c.is_whitespace() || matches!(c, '/' | '?' | '#' | '"' | '\'' | '`');
        let authority = rest.split(ends).next().unwrap_or_default();
        if let Some((from, to)) = password_of(authority)
            && authority.get(from..to).is_some_and(named::is_literal)
        {
            found.add(start + from..start + to, SecretKind::Password);
        }
    }
}

fn password_of(authority: &str) -> Option<(usize, usize)> {
    let (user_info, _) = authority.rsplit_once('@')?;
    let from = user_info.find(':')? + 1;
    let password = user_info.get(from..)?;
    // Readers disagree on which `@` ends the user part. What could be a host to one of them stays visible.
    let to = match password.split_once('@') {
        Some((first, rest)) if rest.contains('.') => from + first.len(),
        Some(_) | None => user_info.len(),
    };
    Some((from, to))
}
