//! Shells: `-c` text with its positional parameters, text on standard input, and the options that load more.

use crate::command::{Simple, Stdin};
use crate::expand::text::base_name;
use crate::reason::Risk;
use crate::syntax::reason;
use crate::word::{Source, Span, Value, Word};

use super::{Inner, Unwrapped, via};

const SHELLS: &[&str] = &[
    "sh", "bash", "dash", "zsh", "ksh", "ksh93", "mksh", "pdksh", "ash", "fish", "rbash", "yash", "posh", "oksh",
    "csh", "tcsh", "elvish", "xonsh", "nu", "bash5", "hush",
];
/// Long options with a value, and those that bring in another file or code.
const VALUED: &[&str] =
    &["--rcfile", "--init-file", "--init-command", "--command", "--profile", "--features", "--emulate"];
const LOADING: &[&str] = &["--rcfile", "--init-file", "--init-command", "--login", "--interactive"];
/// Options that only print and end.
const ASKING: &[&str] = &["--version", "--help", "--dump-strings", "--dump-po-strings"];

pub(crate) fn is_shell(name: &str) -> bool {
    SHELLS.contains(&base_name(name))
}

/// `$SHELL`, `$BASH` and `$0` in place of a program.
pub(super) fn names_shell(word: &Word) -> bool {
    match &word.value {
        Value::Dynamic(dynamic) if dynamic.prefix.is_empty() && dynamic.suffix.is_empty() => {
            dynamic.sources.iter().any(|source| match source {
                Source::Variable(name) => matches!(name.as_str(), "SHELL" | "BASH"),
                Source::Positional => true,
                _ => false,
            })
        }
        _ => false,
    }
}

#[derive(Default)]
struct Read {
    code: bool,
    stdin: bool,
    asking: bool,
    loading: Option<Span>,
    /// Code given by a long option of its own.
    codes: Vec<Word>,
    rest: usize,
}

pub(super) fn unwrap(name: &str, words: &[Word], simple: &Simple) -> Option<Unwrapped> {
    if !is_shell(name) {
        return None;
    }
    let read = options(words);
    if read.asking && !read.code {
        return None;
    }
    let rest = words.get(read.rest..).unwrap_or_default();
    let mut inner: Vec<Inner> = Vec::new();
    for word in read.codes {
        inner.push(Inner::Code { word, positional: None, placeholder: None });
    }
    let program = simple.argv.first()?;
    if read.code {
        if let Some((code, arguments)) = rest.split_first() {
            let mut positional = arguments.to_vec();
            if positional.is_empty() {
                positional.push(Word { span: program.span, value: Value::Known(name.to_owned()) });
            }
            inner.push(Inner::Code { word: code.clone(), positional: Some(positional), placeholder: None });
        }
    } else if inner.is_empty() && (read.stdin || reads_stdin(rest)) {
        // A shell of its own with nothing to read from is a person's shell, not a carrier.
        if matches!(simple.stdin, Stdin::Inherited) {
            return None;
        }
        inner.push(Inner::Stdin);
    }
    if inner.is_empty() {
        return None;
    }
    let message = format!("`{}` runs text as a program", base_name(name));
    let reasons = vec![reason("inline_code", message, program.span, Risk::NeedsReview)];
    Some(Unwrapped {
        via: via(name, false, false, true),
        transparent: false,
        own: None,
        inner,
        deferred: false,
        reasons,
    })
}

/// The option that makes a shell run more than it is given.
pub(crate) fn startup_files(name: &str, words: &[Word]) -> Option<Span> {
    if is_shell(name) { options(words).loading } else { None }
}

fn reads_stdin(rest: &[Word]) -> bool {
    match rest.first() {
        None => true,
        Some(word) => matches!(word.known(), Some("-" | "/dev/stdin" | "/proc/self/fd/0" | "/dev/fd/0")),
    }
}

fn options(words: &[Word]) -> Read {
    let mut read = Read::default();
    while let Some(word) = words.get(read.rest) {
        let Some(text) = word.known() else { return read };
        let long = text.split('=').next().unwrap_or(text);
        match text {
            "-" | "--" => {
                read.rest += 1;
                return read;
            }
            _ if text.starts_with("--") => {
                long_option(&mut read, long, text, words);
                continue;
            }
            _ if text.starts_with(['-', '+']) => {}
            _ => return read,
        }
        read.rest += 1;
        for letter in text.chars().skip(1) {
            match letter {
                'c' if text.starts_with('-') => read.code = true,
                's' => read.stdin = true,
                'i' | 'l' => {
                    read.loading.get_or_insert(word.span);
                }
                'o' | 'O' | 'C' => read.rest += 1,
                _ => {}
            }
        }
    }
    read
}

fn long_option(read: &mut Read, long: &str, text: &str, words: &[Word]) {
    let Some(word) = words.get(read.rest) else { return };
    read.rest += 1;
    if LOADING.contains(&long) {
        read.loading.get_or_insert(word.span);
    }
    read.asking |= ASKING.contains(&long);
    if !VALUED.contains(&long) {
        return;
    }
    let value = match text.split_once('=') {
        Some((_, value)) => Some(Word { span: word.span, value: Value::Known(value.to_owned()) }),
        None => {
            read.rest += 1;
            words.get(read.rest - 1).cloned()
        }
    };
    if matches!(long, "--command" | "--init-command") {
        read.codes.extend(value);
    }
}
