//! What is known to be a number, or text that arithmetic can only read as numbers: digits and signs, and no letter
//! that could begin a name. Which commands print nothing else is said of what they really print: `wc -l < x` prints
//! a number, `wc -l x` a name as well.

use std::borrow::Cow;

use crate::expand::text::base_name;
use crate::parse::{Command, Kind, List, Node, Op, Part, RedirectOp};
use crate::word::{Source, Value};

use super::Walker;
use super::words::literal;

/// Whether arithmetic finds no name in this text.
pub(super) fn is_numeric(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit() || b" \t\n+-.,:%".contains(&byte))
}

/// Whether everything that comes from these sources is numbers.
pub(super) fn all(sources: &[Source]) -> bool {
    sources.iter().all(|source| match source {
        Source::Number => true,
        Source::OneOf(texts) => texts.iter().all(|text| is_numeric(text)),
        _ => false,
    })
}

fn is_number(value: &Value) -> bool {
    match value {
        Value::Known(text) => is_numeric(text) && !text.contains([' ', '\t', '\n']),
        Value::Dynamic(dynamic) => dynamic.is_whole() && all(&dynamic.sources),
        Value::Glob(_) => false,
    }
}

impl Walker<'_> {
    /// Whether the list prints numbers and nothing else.
    pub(super) fn prints_numbers(&self, list: &List<'_>) -> bool {
        let mut prints = false;
        for item in &list.items {
            if item.background.is_some() {
                return false;
            }
            for pipeline in &item.chain {
                let silent = matches!(pipeline.stages.as_slice(), [only] if is_silent(only));
                if !silent && !self.stages_print_numbers(&pipeline.stages) {
                    return false;
                }
                prints |= !silent;
            }
        }
        prints
    }

    pub(super) fn stages_print_numbers(&self, stages: &[Command<'_>]) -> bool {
        let mut rest = stages;
        while let Some((last, before)) = rest.split_last() {
            let Some((name, words)) = plain(last) else { return false };
            if self.prints_number(&name, words) || (is_first_field(&name, words) && before.last().is_some_and(counts)) {
                return true;
            }
            if !keeps_numbers(&name, words) {
                return false;
            }
            rest = before;
        }
        false
    }

    fn prints_number(&self, name: &str, words: &[Node<'_>]) -> bool {
        let texts: Vec<Option<Cow<'_, str>>> = words.iter().map(literal).collect();
        let known: Option<Vec<&str>> = texts.iter().map(Option::as_deref).collect();
        match (name, known.as_deref()) {
            ("grep" | "egrep" | "fgrep", _) => counts_one(&texts, words),
            ("seq", _) => !words.is_empty() && words.iter().all(|word| self.number_word(word)),
            ("expr", _) => words.iter().zip(&texts).all(|(word, text)| {
                self.number_word(word)
                    || text.as_deref().is_some_and(|text| matches!(text, "+" | "-" | "*" | "/" | "%"))
            }),
            ("echo", _) => !words.is_empty() && words.iter().all(|word| self.number_word(word)),
            // From standard input; a file's name would be printed too.
            ("wc", Some(words)) => words.iter().all(|word| word.starts_with('-') && !word.starts_with("--files")),
            ("nproc", _) => true,
            ("id", Some(["-u" | "-g", ..])) => true,
            ("date", Some([format])) => format.strip_prefix('+').is_some_and(numeric_date),
            ("date", Some(["-u", format])) => format.strip_prefix('+').is_some_and(numeric_date),
            ("stat", Some(["-c", format, ..])) => numeric_stat(format),
            ("stat", Some([format, ..])) => format.strip_prefix("--format=").is_some_and(numeric_stat),
            ("git", Some(words)) => counts_commits(words),
            ("pgrep", Some(words)) => words.contains(&"-c"),
            ("tput", Some(["cols" | "lines" | "colors"])) => true,
            ("getconf", Some(["_NPROCESSORS_ONLN" | "PAGE_SIZE" | "PAGESIZE" | "LONG_BIT"])) => true,
            ("jq", Some(words)) => {
                let mut rest = words.iter().skip_while(|word| matches!(**word, "-r" | "-c" | "-e" | "-s"));
                let filter = rest.next().map_or("", |filter| filter.trim());
                filter == "length" || filter.ends_with("| length") || filter.ends_with("|length")
            }
            ("awk" | "gawk" | "mawk", Some([program] | [program, _])) => {
                matches!(program.replace(' ', "").as_str(), "END{printNR}")
            }
            _ => false,
        }
    }

    /// A word that is one number, whichever.
    fn number_word(&self, node: &Node<'_>) -> bool {
        match node.parts.as_slice() {
            [Part::Arithmetic(_)] => true,
            [Part::Parameter(parameter)] if !parameter.indirect => match parameter.op {
                Op::Length => true,
                Op::None if parameter.subscript.is_none() => is_number(&self.current(parameter)),
                _ => false,
            },
            _ => literal(node)
                .is_some_and(|text| !text.is_empty() && is_numeric(&text) && !text.contains([' ', '\t', '\n'])),
        }
    }
}

/// The program and its words, where nothing but its standard output is printed.
fn plain<'n, 'a>(command: &'n Command<'a>) -> Option<(String, &'n [Node<'a>])> {
    let Kind::Simple(node) = &command.kind else { return None };
    let quiet = command.redirects.iter().all(|redirect| match redirect.op {
        RedirectOp::Read | RedirectOp::HereDoc | RedirectOp::HereString => true,
        RedirectOp::Write | RedirectOp::Append => redirect.fd == Some(2),
        _ => false,
    });
    let (program, words) = node.words.split_first()?;
    let name = literal(program)?;
    quiet.then(|| (base_name(&name).to_owned(), words))
}

fn is_silent(command: &Command<'_>) -> bool {
    plain(command).is_some_and(|(name, _)| matches!(name.as_str(), "true" | ":" | "false" | "test" | "["))
}

/// `grep -c` of one file or of its standard input: of several, names are printed.
fn counts_one(texts: &[Option<Cow<'_, str>>], words: &[Node<'_>]) -> bool {
    let (mut counting, mut nameless, mut operands_only, mut pattern) = (false, false, false, false);
    let mut files = 0;
    let mut at = 0;
    while let (Some(text), Some(word)) = (texts.get(at), words.get(at)) {
        at += 1;
        match text.as_deref() {
            Some("--") if !operands_only => operands_only = true,
            Some("--count") if !operands_only => counting = true,
            Some("--no-filename") if !operands_only => nameless = true,
            Some("-e" | "-f") if !operands_only => {
                pattern = true;
                at += 1;
            }
            Some(option) if !operands_only && option.len() > 1 && option.starts_with('-') => {
                let letters = option.get(1..).unwrap_or_default();
                if !letters.chars().all(|letter| "cihwxvsqaEFGPzrR".contains(letter)) {
                    return false;
                }
                counting |= letters.contains('c');
                nameless |= letters.contains('h');
                // Below a folder there are several.
                files += 2 * usize::from(letters.contains(['r', 'R']));
            }
            known => {
                let one = known.is_some_and(|text| !text.contains(['*', '?', '[', '{'])) || is_quoted(word);
                // What is only known at run time could be an option.
                if known.is_none() && !operands_only || !one && pattern && !nameless {
                    return false;
                }
                files += usize::from(pattern);
                pattern = true;
            }
        }
    }
    counting && pattern && (files <= 1 || nameless)
}

/// One word, whatever it holds.
fn is_quoted(word: &Node<'_>) -> bool {
    word.parts.iter().all(|part| match part {
        Part::Text { quoted, .. } | Part::Backtick { quoted, .. } => *quoted,
        Part::Parameter(parameter) => parameter.quoted && !matches!(parameter.name, "@" | "*"),
        Part::Command(substitution) => substitution.quoted,
        Part::Process(_) | Part::Arithmetic(_) => true,
    })
}

/// `wc` and `du` of files that are named here: a number first, then a name without a line break.
fn counts(command: &Command<'_>) -> bool {
    plain(command).is_some_and(|(name, words)| {
        let named = words.iter().all(|word| literal(word).is_some_and(|text| !text.contains(['\n', '*', '?', '['])));
        let human = words.iter().filter_map(literal).any(|text| text.starts_with('-') && text.contains('h'));
        let summed = words.iter().filter_map(literal).any(|text| text.starts_with("-s") || text.ends_with('s'));
        named && !human && (name == "wc" || (name == "du" && summed))
    })
}

fn is_first_field(name: &str, words: &[Node<'_>]) -> bool {
    let texts: Vec<Cow<'_, str>> = words.iter().filter_map(literal).collect();
    let texts: Vec<&str> = texts.iter().map(|text| &**text).collect();
    match (name, texts.as_slice()) {
        ("cut", ["-f1"] | ["-d ", "-f1"] | ["-f1", "-d "] | ["-d", " ", "-f1"] | ["-d", " ", "-f", "1"]) => true,
        ("cut", ["-f1", "-d", " "] | ["-f", "1"] | ["-d ", "-f", "1"]) => true,
        ("awk", ["{print $1}" | "{ print $1 }" | "{print $1;}"]) => words.len() == 1,
        _ => false,
    }
}

/// Filters that leave numbers as they are.
fn keeps_numbers(name: &str, words: &[Node<'_>]) -> bool {
    let texts: Option<Vec<Cow<'_, str>>> = words.iter().map(literal).collect();
    let Some(texts) = texts else { return false };
    let texts: Vec<&str> = texts.iter().map(|text| &**text).collect();
    let option = |text: &&str| text.starts_with('-') && !text.contains(['/', '.']) && text.len() < 6;
    match (name, texts.as_slice()) {
        ("cat" | "xargs", []) => true,
        ("tr", ["-d", set]) => matches!(*set, " " | "\\n" | "\\r" | "\\t" | " \\n" | "[:space:]" | "[:blank:]"),
        ("sort" | "uniq", texts) => {
            texts.iter().all(|text| matches!(*text, "-n" | "-r" | "-u" | "-nr" | "-rn" | "-nu"))
        }
        ("head" | "tail", texts) => texts.iter().all(|text| option(text) || is_numeric(text)),
        _ => false,
    }
}

/// `%s`, `%Y%m%d`, `%F`: no conversion that prints letters.
fn numeric_date(format: &str) -> bool {
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        let fits = match c {
            '%' => chars.next().is_some_and(|c| {
                let c = if matches!(c, '-' | '_' | '0') { chars.next().unwrap_or(' ') } else { c };
                "sYmdHMSNjuwyIeklVUWGgCFTRD".contains(c)
            }),
            c => c.is_ascii_digit() || "-:. /".contains(c),
        };
        if !fits {
            return false;
        }
    }
    true
}

fn numeric_stat(format: &str) -> bool {
    let mut letters = format.split('%');
    letters.next() == Some("")
        && letters
            .all(|letter| matches!(letter.trim_end(), "s" | "Y" | "X" | "Z" | "W" | "a" | "u" | "g" | "h" | "i" | "b"))
}

fn counts_commits(words: &[&str]) -> bool {
    match words {
        ["rev-list", rest @ ..] => rest.contains(&"--count"),
        ["log" | "show", rest @ ..] => {
            let mut formats = rest.iter().filter(|word| word.starts_with("--format") || word.starts_with("--pretty"));
            let times = |format: Option<&&str>| matches!(format, Some(&("--format=%ct" | "--format=%at")));
            let alone = rest.iter().all(|word| matches!(*word, "-1" | "-s" | "HEAD") || word.starts_with("--format"));
            times(formats.next()) && formats.next().is_none() && alone
        }
        _ => false,
    }
}
