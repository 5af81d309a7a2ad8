//! Programs that carry a command in a way of their own: `find -exec`, `fd -x`, `source`, `alias`, `crontab -`.

use crate::command::{Simple, Stdin};
use crate::expand::text::{base_name, split_assignment};
use crate::reason::Risk;
use crate::syntax::reason;
use crate::word::{Value, Word};

use super::{Inner, Unwrapped, via};

/// The programs that are looked at here.
pub(super) const NAMES: &[&str] = &["find", "gfind", "fd", "fdfind", "source", ".", "alias", "crontab"];

pub(super) fn unwrap(name: &str, words: &[Word], simple: &Simple) -> Option<Unwrapped> {
    match base_name(name) {
        "find" | "gfind" => find(name, words, simple),
        "fd" | "fdfind" => fd(name, words, simple),
        "source" | "." => source(name, words, simple),
        "alias" => alias(words, simple),
        "crontab" => crontab(words, simple),
        _ => None,
    }
}

fn find(name: &str, words: &[Word], simple: &Simple) -> Option<Unwrapped> {
    let mut own: Vec<Word> = simple.argv.first().cloned().into_iter().collect();
    let mut inner = Vec::new();
    let mut at = 0;
    while let Some(word) = words.get(at) {
        at += 1;
        if !matches!(word.known(), Some("-exec" | "-execdir" | "-ok" | "-okdir")) {
            own.push(word.clone());
            continue;
        }
        let start = at;
        let mut more = false;
        while let Some(word) = words.get(at) {
            at += 1;
            let ends = match word.known() {
                Some(";") => true,
                Some("+") => words.get(at.wrapping_sub(2)).and_then(Word::known) == Some("{}"),
                _ => false,
            };
            if ends {
                more = word.known() == Some("+");
                break;
            }
        }
        let closed = words.get(at - 1).and_then(Word::known).is_some_and(|text| text == ";" || more);
        let end = if closed { at - 1 } else { at };
        let command = words.get(start..end).unwrap_or_default().to_vec();
        let placeholder = Some("{}".to_owned());
        inner.push(Inner::Words { words: command, assignments: Vec::new(), more, placeholder });
    }
    carrier(name, inner, own)
}

fn fd(name: &str, words: &[Word], simple: &Simple) -> Option<Unwrapped> {
    let is_exec = |word: &Word| {
        word.known().is_some_and(|text| {
            matches!(text, "-x" | "-X" | "--exec" | "--exec-batch")
                || (text.starts_with('-') && !text.starts_with("--") && text.ends_with(['x', 'X']))
        })
    };
    let start = words.iter().position(is_exec)?;
    let mut own: Vec<Word> = simple.argv.first().cloned().into_iter().collect();
    own.extend_from_slice(words.get(..start).unwrap_or_default());
    let rest = words.get(start + 1..).unwrap_or_default();
    let end = rest.iter().position(|word| word.known() == Some(";")).unwrap_or(rest.len());
    let command = rest.get(..end).unwrap_or_default().to_vec();
    own.extend_from_slice(rest.get(end + 1..).unwrap_or_default());
    let placeholder = Some("{}".to_owned());
    let inner = vec![Inner::Words { words: command, assignments: Vec::new(), more: true, placeholder }];
    carrier(name, inner, own)
}

fn carrier(name: &str, inner: Vec<Inner>, own: Vec<Word>) -> Option<Unwrapped> {
    if inner.is_empty() {
        return None;
    }
    Some(Unwrapped {
        via: via(name, false, false, false),
        transparent: false,
        own: Some(own),
        inner,
        deferred: false,
        reasons: Vec::new(),
    })
}

/// `source /dev/stdin <<< …`: the text is at hand. A file is not.
fn source(name: &str, words: &[Word], simple: &Simple) -> Option<Unwrapped> {
    let file = words.first()?.known()?;
    let stdin = matches!(file, "/dev/stdin" | "/proc/self/fd/0" | "/dev/fd/0");
    if !stdin {
        return None;
    }
    let reasons = vec![reason("inline_code", "runs what it reads as a program", simple.span, Risk::NeedsReview)];
    code(name, vec![Inner::Stdin], false, reasons)
}

/// `alias ll='ls -l'`: runs when called.
fn alias(words: &[Word], simple: &Simple) -> Option<Unwrapped> {
    let mut inner = Vec::new();
    for word in words {
        if let Some((_, value)) = word.known().and_then(split_assignment) {
            let word = Word { span: word.span, value: Value::Known(value.to_owned()) };
            inner.push(Inner::Code { word, positional: None, placeholder: None });
        }
    }
    if inner.is_empty() {
        return None;
    }
    let message = "defines an alias, so a name no longer means what it says";
    code("alias", inner, true, vec![reason("shadowing", message, simple.span, Risk::NeedsReview)])
}

/// `crontab -` takes its table from standard input: the commands come after the five fields.
fn crontab(words: &[Word], simple: &Simple) -> Option<Unwrapped> {
    let from_stdin = words.iter().any(|word| word.known() == Some("-"));
    let Stdin::Here(here) = &simple.stdin else { return None };
    let text = here.text.as_deref().filter(|_| from_stdin)?;
    let mut inner = Vec::new();
    for line in text.lines().filter(|line| !line.trim_start().starts_with('#')) {
        let command = if line.starts_with('@') {
            line.split_once(char::is_whitespace).map(|(_, command)| command)
        } else {
            let fields: Vec<&str> = line.splitn(6, char::is_whitespace).collect();
            fields.get(5).copied()
        };
        if let Some(command) = command {
            let word = Word { span: simple.span, value: Value::Known(command.to_owned()) };
            inner.push(Inner::Code { word, positional: None, placeholder: None });
        }
    }
    let message = "installs commands that run again and again";
    code("crontab", inner, true, vec![reason("wrapper", message, simple.span, Risk::NeedsReview)])
}

fn code(name: &str, inner: Vec<Inner>, deferred: bool, reasons: Vec<crate::reason::Reason>) -> Option<Unwrapped> {
    (!inner.is_empty()).then(|| Unwrapped {
        via: via(name, false, false, true),
        transparent: false,
        own: None,
        inner,
        deferred,
        reasons,
    })
}
