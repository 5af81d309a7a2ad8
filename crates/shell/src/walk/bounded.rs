//! Whether the output of commands is bounded: paths, refs, dates or counts, never the content of files. Looks at
//! the written words; whether the commands are safe is asked elsewhere.

use std::borrow::Cow;

use crate::expand::text::base_name;
use crate::parse::{Command, Kind, List, Node};

use super::words::literal;

/// Programs whose output is bounded whatever their operands.
const SOURCES: &[&str] = &[
    "date", "pwd", "basename", "dirname", "realpath", "readlink", "wc", "nproc", "uname", "which", "ls", "seq", "expr",
    "getconf", "arch", "tty",
];
/// Subcommands of git that print names and numbers.
const GIT: &[&str] =
    &["ls-files", "rev-parse", "merge-base", "describe", "rev-list", "symbolic-ref", "name-rev", "ls-tree"];
/// Programs that print nothing that matters before the last command.
const SILENT: &[&str] = &["cd", "test", "[", "true", ":", "false", "set", "pushd"];
/// Programs that pass on lines they were given.
const FILTERS: &[&str] = &["sort", "uniq", "head", "tail", "tac", "cut"];

/// Whether everything the list prints is bounded.
pub(super) fn list(list: &List<'_>) -> bool {
    let mut prints = false;
    for item in &list.items {
        for pipeline in &item.chain {
            if let [only] = pipeline.stages.as_slice()
                && program(only).is_some_and(|name| SILENT.contains(&&*name))
            {
                continue;
            }
            if !stages(&pipeline.stages) {
                return false;
            }
            prints = true;
        }
    }
    prints
}

/// Whether what the last of these stages prints is bounded.
pub(super) fn stages(stages: &[Command<'_>]) -> bool {
    let mut rest = stages.iter().rev();
    while let Some(stage) = rest.next() {
        let Some(words) = words(stage) else { return false };
        let Some(name) = words.first().and_then(|word| word.as_deref()) else { return false };
        let name = base_name(name);
        let arguments = words.get(1..).unwrap_or_default();
        if source(name, arguments) {
            return true;
        }
        if !filter(name, arguments) || rest.len() == 0 {
            return false;
        }
    }
    false
}

fn source(name: &str, arguments: &[Option<Cow<'_, str>>]) -> bool {
    let mut words = arguments.iter().flatten().map(|word| &**word);
    match name {
        "git" => git(words.skip_while(|word| word.starts_with('-'))),
        "rg" | "grep" => words.any(lists_names),
        // Names only, unless told to run something.
        "find" | "fd" | "fdfind" => !words.any(runs),
        "command" => words.next() == Some("-v"),
        "mktemp" => words.any(|word| word == "-u"),
        "echo" | "printf" => arguments.iter().all(Option::is_some),
        _ => SOURCES.contains(&name),
    }
}

fn git<'w>(mut words: impl Iterator<Item = &'w str>) -> bool {
    match words.next() {
        Some("branch") => words.any(|word| word == "--show-current"),
        Some("diff") => words.any(|word| matches!(word, "--name-only" | "--name-status")),
        // A format of one's own can print messages.
        Some(subcommand) if GIT.contains(&subcommand) => {
            !words.any(|word| word.starts_with("--format") || word.starts_with("--pretty"))
        }
        _ => false,
    }
}

/// `-l`, `-c` and their long forms; letters that take a value end what can be read of a cluster.
fn lists_names(word: &str) -> bool {
    if matches!(word, "--files" | "--files-with-matches" | "--files-without-match" | "--count") {
        return true;
    }
    let Some(letters) = word.strip_prefix('-') else { return false };
    letters.contains(['l', 'L', 'c']) && letters.chars().all(|letter| "lLcrRinwvsqhHaIEFGPzUuS".contains(letter))
}

fn runs(word: &str) -> bool {
    let short = word.starts_with('-') && !word.starts_with("--") && word.contains(['x', 'X']);
    short || word.starts_with("-ok") || word.starts_with("--exec")
}

/// A filter that reads nothing but its standard input.
fn filter(name: &str, arguments: &[Option<Cow<'_, str>>]) -> bool {
    let operands = arguments
        .iter()
        .filter(|word| !word.as_deref().is_some_and(|word| word.starts_with(['-', '+']) || number(word)))
        .count();
    let elsewhere = arguments.iter().flatten().any(|word| {
        word.starts_with("--") && (word.contains("files0") || word.contains("rec") || word.contains("dir"))
            || (name == "grep"
                && word.starts_with('-')
                && !word.starts_with("--")
                && word.contains(['r', 'R', 'd', 'f']))
    });
    match name {
        "tr" => true,
        "grep" => operands <= 1 && !elsewhere && arguments.iter().all(Option::is_some),
        _ => FILTERS.contains(&name) && operands == 0 && !elsewhere,
    }
}

fn number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
}

fn program<'n>(command: &'n Command<'_>) -> Option<Cow<'n, str>> {
    match &command.kind {
        Kind::Simple(node) => literal(node.words.first()?),
        _ => None,
    }
}

fn words<'n>(command: &'n Command<'_>) -> Option<Vec<Option<Cow<'n, str>>>> {
    match &command.kind {
        Kind::Simple(node) => Some(node.words.iter().map(|word: &Node<'_>| literal(word)).collect()),
        _ => None,
    }
}
