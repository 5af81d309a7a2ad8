//! Variables: which a command may set, which may be shown, which steer other programs.

use super::Told;
use super::args::{Piece, well_known};
use super::table::{
    CAT_ONLY, INFLUENTIAL, INFLUENTIAL_PREFIXES, PRINTABLE, SAFE, SECRET_ENDINGS, SECRET_PARTS, holds, words,
};
use crate::command::{Assignment, Simple};
use crate::word::{Source, Value, Word};

/// The assignments before a command, or alone.
pub(super) fn judge(simple: &Simple, told: &mut Told<'_>) {
    let program = simple.argv.first().and_then(Word::known);
    for assignment in &simple.assignments {
        if let Some(value) = &assignment.value {
            secret_variable(value, told);
        }
        let name = assignment.name.as_str();
        let fine = match program {
            None if simple.argv.is_empty() => is_name(name) && !influential(name),
            Some("read") if name == "IFS" => true,
            _ => harmless(assignment),
        };
        if !fine {
            told.say("sets_environment", format!("setting `{name}` may change what programs do"), assignment.span);
        }
    }
}

fn harmless(assignment: &Assignment) -> bool {
    let name = assignment.name.as_str();
    if holds(SAFE, name) || name.starts_with("LC_") {
        return true;
    }
    let value = assignment.value.as_ref().and_then(Word::known);
    if holds(CAT_ONLY, name) {
        return matches!(value, Some("" | "cat" | "/bin/cat" | "/usr/bin/cat"));
    }
    // Display letters only: no log file, no key file, no first command.
    name == "LESS"
        && value.is_some_and(|value| {
            value.chars().all(|c| matches!(c, '-' | ' ' | 'R' | 'F' | 'X' | 'S' | 'N' | 'i' | 'M' | 'r'))
        })
}

/// An operand that names a shell variable to be set, as of `read`.
pub(super) fn variable(piece: Piece<'_>, told: &mut Told<'_>) {
    let fine = piece.text.is_some_and(|name| is_name(name) && !influential(name));
    if !fine {
        told.say("sets_environment", "sets a variable that may change what programs do", piece.word.span);
    }
}

/// `echo "$GITHUB_TOKEN"`.
pub(super) fn secret_variable(word: &Word, told: &mut Told<'_>) {
    let Value::Dynamic(dynamic) = &word.value else { return };
    for source in &dynamic.sources {
        if let Source::Variable(name) = source
            && is_secret(name)
        {
            told.say("dumps_environment", format!("`{name}` looks like a secret"), word.span);
        }
    }
}

/// `printenv NAME`: shows a variable that tells nothing.
pub(super) fn printable(name: &str) -> bool {
    holds(PRINTABLE, name) || name.starts_with("LC_")
}

pub(super) fn is_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn influential(name: &str) -> bool {
    holds(INFLUENTIAL, name) || words(INFLUENTIAL_PREFIXES).any(|prefix| name.starts_with(prefix))
}

/// No ending of a secret's name is shorter.
const MIN_ENDING: usize = 3;

pub(super) fn is_secret(name: &str) -> bool {
    if name.len() >= MIN_ENDING {
        let upper = name.to_ascii_uppercase();
        if words(SECRET_ENDINGS).any(|ending| upper.ends_with(ending)) && !well_known(name) {
            return true;
        }
    }
    // Whole names are addresses.
    let whole = name.ends_with(['L', 'l', 'I', 'i']) && holds(SECRET_PARTS, &name.to_ascii_uppercase());
    whole
        || name
            .split(['_', '.', '-'])
            .any(|part| holds(SECRET_PARTS, part) || holds(SECRET_PARTS, &part.to_ascii_uppercase()))
}
