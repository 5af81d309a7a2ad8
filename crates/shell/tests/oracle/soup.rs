//! Tokens thrown together without any grammar. Few of these lines mean anything, but those that the engine calls safe
//! although a program nobody knows stands in them are where a misreading would show.

use crate::compare::Said;
use crate::generator::Dice;

const TOKENS: &[&str] = &[
    "'",
    "'",
    "\"",
    "\"",
    "`",
    "`",
    "\\",
    "$",
    "$(",
    "$((",
    "((",
    "))",
    ")",
    "(",
    "${x",
    "${x:-",
    "${x:",
    "${x#",
    "}",
    "{",
    "[",
    "]",
    "[[",
    "]]",
    " ",
    " ",
    " ",
    " ",
    ";",
    "; ",
    "|",
    "&&",
    "<<E\n",
    "\nE\n",
    "<<'E'\n",
    "\n",
    "#",
    " # ",
    "echo ",
    "echo ",
    "ls",
    "ls ",
    "a",
    "x=",
    "a[",
    "]=",
    "=(",
    "$'",
    "\\'",
    "\\\"",
    "case a in ",
    "esac",
    ";;",
    "if ",
    "then ",
    "fi",
    "for i in ",
    "do ",
    "done",
    "true",
    "=~ ",
    "-eq ",
    "!",
    "$[",
    "@(",
    "<(",
    "< ",
    "1",
    "<<< ",
];
/// The program stands apart, so that it is one wherever it is not text.
const PROGRAM: &[&str] = &["\nevil\n", ";evil;", "; evil #", "\nevil #"];

/// As many safe lines with a hidden program as asked for, out of at most so many.
pub fn safe_lines(seed: u64, wanted: usize, tried: usize) -> Vec<String> {
    let mut dice = Dice::new(seed);
    let mut lines = Vec::new();
    for _ in 0..tried {
        let mut line = String::from("echo ");
        for _ in 0..2 + dice.roll(6) {
            line.push_str(dice.pick(TOKENS));
        }
        line.push_str(dice.pick(PROGRAM));
        for _ in 0..1 + dice.roll(6) {
            line.push_str(dice.pick(TOKENS));
        }
        if Said::of(&line).is_safe() {
            lines.push(line);
        }
        if lines.len() >= wanted {
            break;
        }
    }
    lines
}
