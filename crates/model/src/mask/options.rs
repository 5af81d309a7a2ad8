//! Options that take a password only for certain programs (`mysql -pX`, `curl -u user:X`).
//!
//! Words are split at blanks alone: this is a search for values to hide, not a parser of commands.

use super::{Found, SecretKind, named};

/// Where the value stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// `-pX`
    Attached,
    /// `-p X`
    Next,
    Both,
}

struct PasswordOption {
    program: &'static str,
    /// A word that must have come before: `-p` of `docker run` is a port.
    after: Option<&'static str>,
    option: &'static str,
    place: Place,
    /// `user:password`: only what follows the colon is secret.
    after_colon: bool,
}

const fn row(program: &'static str, option: &'static str, place: Place) -> PasswordOption {
    PasswordOption { program, after: None, option, place, after_colon: false }
}

const fn login(program: &'static str) -> PasswordOption {
    PasswordOption { after: Some("login"), ..row(program, "-p", Place::Next) }
}

const fn user(option: &'static str) -> PasswordOption {
    PasswordOption { after_colon: true, ..row("curl", option, Place::Both) }
}

const OPTIONS: &[PasswordOption] = &[
    row("mysql", "-p", Place::Attached),
    row("mysqldump", "-p", Place::Attached),
    row("mysqladmin", "-p", Place::Attached),
    row("mysqlimport", "-p", Place::Attached),
    row("mariadb", "-p", Place::Attached),
    row("mariadb-dump", "-p", Place::Attached),
    row("7z", "-p", Place::Attached),
    row("7za", "-p", Place::Attached),
    row("sshpass", "-p", Place::Both),
    row("mongo", "-p", Place::Both),
    row("mongosh", "-p", Place::Both),
    row("mongodump", "-p", Place::Both),
    row("redis-cli", "-a", Place::Next),
    row("ldapsearch", "-w", Place::Next),
    row("ldapmodify", "-w", Place::Next),
    row("ldapadd", "-w", Place::Next),
    row("zip", "-P", Place::Next),
    login("docker"),
    login("podman"),
    login("nerdctl"),
    user("-u"),
    user("--user"),
];

struct Word<'a> {
    start: usize,
    text: &'a str,
}

pub(super) fn scan(text: &str, found: &mut Found) {
    let mut start = 0;
    for line in text.split('\n') {
        scan_line(words(line, start), found);
        start += line.len() + 1;
    }
}

fn words(line: &str, start: usize) -> impl Iterator<Item = Word<'_>> {
    let mut at = start;
    line.split([' ', '\t']).filter_map(move |text| {
        let start = at;
        at += text.len() + 1;
        (!text.is_empty()).then_some(Word { start, text })
    })
}

fn scan_line<'a>(words: impl Iterator<Item = Word<'a>>, found: &mut Found) {
    let mut program = "";
    let mut logging_in = false;
    let mut expected: Option<&PasswordOption> = None;
    for word in words {
        if let Some(option) = expected.take() {
            add(word.start, word.text, option, found);
            continue;
        }
        let name = word.text.trim_matches(['"', '\'', '(', '`', '$']);
        let name = name.rsplit('/').next().unwrap_or(name);
        if let Some(row) = OPTIONS.iter().find(|row| row.program == name) {
            (program, logging_in) = (row.program, false);
            continue;
        }
        logging_in |= name == "login";
        let of_program = |row: &&PasswordOption| row.program == program && (row.after.is_none() || logging_in);
        for row in OPTIONS.iter().filter(of_program) {
            let Some(rest) = word.text.strip_prefix(row.option) else {
                continue;
            };
            if rest.is_empty() {
                expected = (row.place != Place::Attached).then_some(row);
            } else if row.place != Place::Next {
                add(word.start + row.option.len(), rest, row, found);
            }
        }
        if word.text.ends_with([';', '|', '&']) {
            program = "";
        }
    }
}

fn add(start: usize, text: &str, option: &PasswordOption, found: &mut Found) {
    let (mut start, mut text) = (start, text);
    if option.after_colon {
        let Some((user, password)) = text.split_once(':') else {
            return;
        };
        start += user.len() + 1;
        text = password;
    }
    let unquoted = text.trim_start_matches(['"', '\'', '=']);
    start += text.len() - unquoted.len();
    // What ends a command, a substitution or a quote is never part of the value: it must stay visible.
    let ends = ['"', '\'', ';', '|', '&', '<', '>', '(', ')', '`'];
    let value = unquoted.split(ends).next().unwrap_or_default();
    if named::is_literal(value) && !value.starts_with('-') {
        found.add(start..start + value.len(), SecretKind::Password);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mask::find;

    #[test]
    fn threat_67_every_row_hides_its_value_and_no_other_programs() {
        for row in OPTIONS {
            let user = if row.after_colon { "me:" } else { "" };
            let blank = if row.place == Place::Attached { "" } else { " " };
            let rest = format!("{} {}{blank}{user}hunter2 x", row.after.unwrap_or("y"), row.option);
            let text = format!("/usr/bin/{} {rest}", row.program);
            let found = find(&text);
            let values: Vec<_> = found.iter().map(|r| text.get(r.start..r.end).unwrap()).collect();
            assert_eq!(values, ["hunter2"], "{text}");
            assert_eq!(find(&format!("tool {rest}")), [], "{rest}");
            assert_eq!(find(&format!("{} x | tool {rest}", row.program)), [], "{rest}");
        }
    }
}
