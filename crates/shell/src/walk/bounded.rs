//! Whether the output of commands is bounded: paths, refs, dates or counts, never the content of files. Looks at
//! the written words; whether the commands are safe is asked elsewhere.

use std::borrow::Cow;

use crate::expand::text::base_name;
use crate::parse::{Command, Kind, List, Node, Part, SimpleNode};

use super::words::literal;

/// Programs that print paths, dates or counts.
const SOURCES: &[&str] = &["pwd", "basename", "dirname", "realpath", "wc", "nproc", "uname", "which", "ls", "getconf"];
/// Subcommands of git that print names and numbers.
const GIT: &[&str] =
    &["ls-files", "rev-parse", "merge-base", "describe", "rev-list", "symbolic-ref", "name-rev", "ls-tree"];
/// Programs that print nothing that matters before the last command.
const SILENT: &[&str] = &["cd", "test", "[", "true", ":", "false"];

/// Programs that compare what they read, and no option of which does anything else.
const COMPARE: &[&str] = &["diff", "colordiff", "comm", "cmp", "join", "paste"];
/// Programs that print files or parts of them; which, is judged elsewhere.
const SHOW: &[&str] = &[
    "awk", "cat", "column", "comm", "cut", "diff", "fd", "find", "fold", "git", "grep", "head", "hexdump", "join",
    "jq", "ls", "nl", "od", "paste", "printf", "rg", "sed", "sort", "strings", "tac", "tail", "tr", "uniq", "unzip",
    "wc", "xxd", "yq", "zcat", "echo", "seq", "tar", "fdfind", "gunzip", "gzip",
];

/// Programs that run the statements they read.
const DATABASES: &[&str] =
    &["psql", "mysql", "mariadb", "sqlite3", "mongosh", "mongo", "cqlsh", "clickhouse-client", "cockroach", "sqlcmd"];

/// Whether this command is handed what others print, and does nothing but compare what it is given.
pub(super) fn compares(node: &SimpleNode<'_>) -> bool {
    let handed = |word: &Node<'_>| word.parts.iter().any(|part| matches!(part, Part::Process(_)));
    node.words.iter().any(handed)
        && node.words.first().and_then(literal).is_some_and(|name| COMPARE.contains(&base_name(&name)))
}

/// Whether the list is one pipeline of programs that show files.
pub(super) fn shows_files(list: &List<'_>) -> bool {
    let [item] = list.items.as_slice() else { return false };
    let [pipeline] = item.chain.as_slice() else { return false };
    item.background.is_none()
        && pipeline.stages.iter().all(|stage| program(stage).is_some_and(|name| SHOW.contains(&base_name(&name))))
}

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

/// Whether names of files may be among what a bounded list prints.
pub(super) fn names_files(list: &List<'_>) -> bool {
    list.items.iter().flat_map(|item| &item.chain).any(|pipeline| !pipeline.stages.iter().any(prints_words))
}

/// Prints what holds neither blanks nor brackets: refs, hashes, the name of the machine.
fn prints_words(stage: &Command<'_>) -> bool {
    let Some(words) = words(stage) else { return false };
    let mut known = words.iter().map(|word| word.as_deref());
    let mut git = |wanted: &[&str]| known.next().flatten().is_some_and(|word| wanted.contains(&word));
    match program(stage).as_deref().map(base_name) {
        Some("git") => {
            git(&["git"])
                && git(&["rev-parse", "merge-base", "describe", "rev-list", "symbolic-ref", "branch", "log"])
                && !words.iter().flatten().any(|word| word.starts_with("--show-") && word != "--show-current")
        }
        Some(name) => {
            matches!(name, "uname" | "nproc" | "getconf" | "date" | "pgrep" | "pidof" | "seq" | "expr")
                || SILENT.contains(&name)
        }
        None => false,
    }
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
    if smuggles(arguments) {
        return false;
    }
    let mut words = arguments.iter().flatten().map(|word| &**word);
    match name {
        "git" => git(words.skip_while(|word| word.starts_with('-'))),
        "rg" | "grep" => words.any(lists_names),
        // Names only, unless told to run something or to print in a way of one's own.
        "find" | "fd" | "fdfind" => !words.any(|word| runs(word) || word.contains("printf")),
        "command" => words.next() == Some("-v"),
        // Numbers, unless names or whole commands are asked for.
        "pgrep" | "pidof" => !words.any(|word| {
            word.starts_with("--list") || word.starts_with("--delimiter") || is_cluster(word, &['l', 'a', 'd', 'S'])
        }),
        "mktemp" => words.any(|word| word == "-u"),
        "date" => words.all(|word| !word.starts_with('+') || word.starts_with("+%")),
        "readlink" => words.any(|word| matches!(word, "-f" | "-e" | "-m")),
        "seq" => arguments.iter().all(|word| word.as_deref().is_some_and(number)),
        "expr" => {
            arguments.iter().all(|word| word.as_deref().is_some_and(|word| number(word) || "+-*/%".contains(word)))
        }
        // How a program calls itself.
        _ if matches!(arguments, [Some(only)] if only == "--version") => true,
        _ => SOURCES.contains(&name),
    }
}

/// Whether the words could make a program print something that reads as an option: `date +--x`, `basename /--x`,
/// `grep --label=--x`, or a format.
fn smuggles(arguments: &[Option<Cow<'_, str>>]) -> bool {
    let mut operands_only = false;
    for word in arguments.iter().flatten() {
        if matches!(&**word, "--format=%h" | "--format=%H" | "--pretty=%h" | "--pretty=%H" | "--format=%ct") {
            continue;
        }
        let inside = word.as_bytes().windows(2).any(|pair| {
            matches!(pair, [before, b'-'] if !before.is_ascii_alphanumeric() && !matches!(before, b'_' | b'.' | b'*' | b'-'))
        });
        if inside || word.contains("format") || word.starts_with("--label") || (operands_only && word.starts_with('-'))
        {
            return true;
        }
        operands_only |= word == "--";
    }
    false
}

fn git<'w>(mut words: impl Iterator<Item = &'w str>) -> bool {
    match words.next() {
        Some("branch") => words.any(|word| word == "--show-current"),
        // Nothing but hashes and times.
        Some("log") => {
            let mut formats =
                words.filter_map(|word| word.strip_prefix("--format=").or(word.strip_prefix("--pretty=")));
            formats.next().is_some_and(|format| matches!(format, "%h" | "%H" | "%ct" | "%at" | "%T" | "%t"))
                && formats.next().is_none()
        }
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

/// Letters after one dash, one of these among them.
fn is_cluster(word: &str, letters: &[char]) -> bool {
    word.starts_with('-') && !word.starts_with("--") && word.contains(letters)
}

fn runs(word: &str) -> bool {
    is_cluster(word, &['x', 'X']) || word.starts_with("-ok") || word.starts_with("--exec")
}

/// A filter that reads nothing but its standard input, and keeps the beginning of each line.
fn filter(name: &str, arguments: &[Option<Cow<'_, str>>]) -> bool {
    let Some(words) = arguments.iter().map(Option::as_deref).collect::<Option<Vec<&str>>>() else { return false };
    let short = |letters: &[char]| {
        words.iter().any(|word| word.starts_with('-') && !word.starts_with("--") && word.contains(letters))
    };
    let long = words.iter().any(|word| word.starts_with("--"));
    let operands = words.iter().filter(|word| !word.starts_with(['-', '+']) && !number(word)).count();
    match name {
        "sort" | "uniq" => operands == 0 && !long && !short(&['o', 'T', 'S', 's', 'f', 'w']),
        "head" | "tail" => operands == 0 && !long && !short(&['c']),
        "cut" => operands == 0 && words.contains(&"-f1"),
        "tr" => matches!(words.as_slice(), ["-d", " " | "\\n" | "\\r" | "[:space:]" | "[:blank:]"]),
        "grep" => operands <= 1 && !long && !short(&['r', 'R', 'd', 'f', 'o']),
        _ => false,
    }
}

/// What is piped into a client of a database, when all of it is written out: statements, as if in a heredoc.
pub(super) fn statements(stages: &[Command<'_>]) -> Option<String> {
    let [from, to] = stages else { return None };
    let name = program(to)?;
    DATABASES.contains(&base_name(&name)).then(|| printed_by(from)).flatten()
}

/// What `echo` or `printf` prints, when every word of it is written out.
pub(super) fn printed(list: &List<'_>) -> Option<String> {
    let [item] = list.items.as_slice() else { return None };
    let [pipeline] = item.chain.as_slice() else { return None };
    let [stage] = pipeline.stages.as_slice() else { return None };
    if item.background.is_some() { None } else { printed_by(stage) }
}

fn printed_by(stage: &Command<'_>) -> Option<String> {
    if !stage.redirects.is_empty() {
        return None;
    }
    let words = words(stage)?.into_iter().collect::<Option<Vec<Cow<'_, str>>>>()?;
    let (program, arguments) = words.split_first()?;
    match (base_name(program), arguments) {
        ("echo", [first, ..]) if is_escape_option(first) => None,
        ("echo", arguments) => {
            let skip = usize::from(arguments.first().is_some_and(|word| word == "-n"));
            Some(arguments.get(skip..).unwrap_or_default().join(" "))
        }
        ("printf", [format, arguments @ ..]) if !format.starts_with('-') => formatted(format, arguments),
        _ => None,
    }
}

/// `-e` and `-E`, which change what backslashes mean.
fn is_escape_option(word: &str) -> bool {
    word.strip_prefix('-').is_some_and(|letters| {
        letters.contains(['e', 'E']) && letters.chars().all(|letter| matches!(letter, 'n' | 'e' | 'E'))
    })
}

/// `printf` with nothing but `%s` and `%%`, applied once.
fn formatted(format: &str, arguments: &[Cow<'_, str>]) -> Option<String> {
    let format = crate::expand::ansi::decode(format);
    let mut arguments = arguments.iter();
    let mut out = String::new();
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        match c {
            '%' => match chars.next()? {
                's' => out.push_str(arguments.next().map_or("", |word| word)),
                '%' => out.push('%'),
                _ => return None,
            },
            other => out.push(other),
        }
    }
    arguments.next().is_none().then_some(out)
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
