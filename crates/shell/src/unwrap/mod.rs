//! Programs that run other commands: which command, with which words, and what that adds. Owns the reading of a
//! wrapper's own arguments; walking what is found inside is the walker's.

mod carriers;
mod options;
mod shells;
mod table;
#[cfg(test)]
mod tests;

use crate::command::{Assignment, Simple, Stdin, Via};
use crate::parse::{Kind, Parsed, Part};
use crate::reason::{Reason, Risk};
use crate::syntax::reason;
use crate::word::{Span, Value, Word};
pub(crate) use shells::{is_shell, startup_files};
use table::{List, Shape, Wrapper};

/// A command that runs others.
#[derive(Debug)]
pub(crate) struct Unwrapped {
    pub via: Via,
    /// Adds nothing of its own.
    pub transparent: bool,
    /// What is left of its own words without the inner command, for the safe layer to judge (`find`).
    pub own: Option<Vec<Word>>,
    pub inner: Vec<Inner>,
    pub deferred: bool,
    pub reasons: Vec<Reason>,
}

#[derive(Debug)]
pub(crate) enum Inner {
    Words {
        words: Vec<Word>,
        assignments: Vec<Assignment>,
        more: bool,
        placeholder: Option<String>,
    },
    /// Shell text, with `$0`, `$1`, … where the wrapper sets them.
    Code {
        word: Word,
        positional: Option<Vec<Word>>,
        placeholder: Option<String>,
    },
    /// Shell text on standard input.
    Stdin,
}

/// What this command runs, if it is one that runs others.
pub(crate) fn unwrap(simple: &Simple) -> Option<Unwrapped> {
    let (program, words) = simple.argv.split_first()?;
    let name = match &program.value {
        Value::Known(text) => text.as_str(),
        // `$SHELL -c …`, `$0 -c …`
        Value::Dynamic(_) if shells::names_shell(program) => "bash",
        Value::Glob(_) | Value::Dynamic(_) => return None,
    };
    if let Some(unwrapped) = shells::unwrap(name, words, simple).or_else(|| carriers::unwrap(name, words, simple)) {
        return Some(unwrapped);
    }
    for (path, wrapper) in table::wrappers(name) {
        if let Some(rest) = subcommand(path, wrapper, words)
            && let Some(unwrapped) = by_table(name, wrapper, rest, simple)
        {
            return Some(unwrapped);
        }
    }
    None
}

/// Whether whatever follows this program's name may be another command. A program that wraps in one of its subcommands
/// alone, as `docker` does in `docker exec`, is none.
pub(crate) fn is_wrapper(program: &str) -> bool {
    table::wrappers(program).any(|(subcommand, _)| subcommand.is_empty())
}

/// Whether this program runs the code it is given, and is for nothing else.
pub(crate) fn is_interpreter(program: &str) -> bool {
    table::interpreter(program).is_some_and(|interpreter| !interpreter.also_a_tool)
}

/// Whether this program runs code it is given, whatever else it is for.
pub(crate) fn runs_code(program: &str) -> bool {
    table::interpreter(program).is_some()
}

/// Whether this program carries commands in a way of its own.
pub(crate) fn is_carrier(program: &str) -> bool {
    carriers::NAMES.contains(&program)
}

/// The subcommands by which a program runs other commands.
pub(crate) fn carrying_subcommands(program: &str) -> impl Iterator<Item = List> {
    table::wrappers(program).map(|(path, _)| path).filter(|path| !path.is_empty())
}

/// Inline code given to an interpreter.
pub(crate) fn inline_code(simple: &Simple) -> Option<Span> {
    let (program, words) = simple.argv.split_first()?;
    let interpreter = table::interpreter(program.known()?)?;
    let mut is_value = false;
    let mut script = false;
    for word in words {
        let text = match &word.value {
            Value::Known(text) => text.as_str(),
            Value::Dynamic(dynamic) => dynamic.prefix.as_str(),
            Value::Glob(_) => {
                script = true;
                continue;
            }
        };
        if interpreter.holds.iter().any(|piece| text.contains(piece)) {
            return Some(word.span);
        }
        if std::mem::take(&mut is_value) {
            continue;
        }
        let letters = text.strip_prefix('-').unwrap_or_default();
        is_value = letters.ends_with(|letter| interpreter.values.contains(letter));
        let loose = interpreter.loose.iter().any(|start| text.starts_with(start));
        if loose || is_code_option(interpreter, text) {
            return Some(word.span);
        }
        if matches!(text, "-" | "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0") {
            return Some(word.span);
        }
        script |= !text.starts_with('-') || text == "-m" || text.starts_with("--");
        // What follows the script belongs to the script; editors and builders have no script.
        if !text.starts_with(['-', '+', '/']) && interpreter.loose.is_empty() && &*interpreter.short != "E" {
            return None;
        }
    }
    // Without a script it reads one from where its input comes from.
    let fed = matches!(simple.stdin, Stdin::Pipe(_) | Stdin::Here(_) | Stdin::File);
    (fed && !script && !interpreter.also_a_tool && interpreter.loose.is_empty()).then_some(program.span)
}

fn is_code_option(interpreter: &table::Interpreter, text: &str) -> bool {
    if let Some(long) = text.strip_prefix("--") {
        let name = long.split('=').next().unwrap_or(long);
        return interpreter.long.iter().any(|known| name.len() > 1 && known.starts_with(name));
    }
    let Some(letters) = text.strip_prefix('-') else { return false };
    letters.chars().take_while(char::is_ascii_alphanumeric).any(|letter| interpreter.short.contains(letter))
}

/// The words after the subcommand, when it is this one.
fn subcommand<'w>(path: List, wrapper: &Wrapper, words: &'w [Word]) -> Option<&'w [Word]> {
    let mut at = 0;
    for name in path.iter() {
        loop {
            let text = words.get(at)?.known()?;
            if text == name {
                at += 1;
                break;
            }
            let option = text.strip_prefix("--").or_else(|| text.strip_prefix('-'))?;
            let takes_value = wrapper.globals.contains(option);
            at += if takes_value { 2 } else { 1 };
        }
    }
    words.get(at..)
}

fn by_table(name: &str, wrapper: &'static Wrapper, words: &[Word], simple: &Simple) -> Option<Unwrapped> {
    // `command -v` and `command -V` look up, they do not run.
    if name == "command"
        && words.first().and_then(Word::known).is_some_and(|text| text.starts_with(['-']) && text.contains(['v', 'V']))
    {
        return None;
    }
    let read = options::read(wrapper, words);
    let mut rest = words.get(read.rest..).unwrap_or_default();
    if !wrapper.until.is_empty() {
        let end = rest.iter().position(|word| word.known().is_some_and(|text| text.starts_with(&*wrapper.until)));
        rest = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
    }
    let missing = !wrapper.after.is_empty() && !words.iter().any(|word| word.known() == Some(&*wrapper.after));
    if missing {
        rest = &[];
    }
    let mut inner = inner_of(wrapper, &read, rest);
    if wrapper.stdin {
        inner.push(Inner::Stdin);
    }
    if inner.is_empty() {
        return None;
    }
    let mut reasons = Vec::new();
    let program_span = simple.argv.first().map_or(simple.span, |word| word.span);
    if let Some(span) = read.unknown {
        let message = format!("`{name}` has no such option that is known here, so what it runs may be read wrong");
        reasons.push(reason("uninspectable", message, span, Risk::NeedsReview));
    }
    if let Some(span) = read.review {
        let message = format!("this option changes what `{name}` runs or touches");
        reasons.push(reason("wrapper_option", message, span, Risk::NeedsReview));
    }
    if !wrapper.transparent {
        reasons.push(reason("wrapper", wrapper_message(name, wrapper), program_span, Risk::NeedsReview));
    }
    let code = inner.iter().any(|inner| !matches!(inner, Inner::Words { .. }));
    Some(Unwrapped {
        via: via(name, wrapper.privileged, wrapper.elsewhere, code),
        transparent: wrapper.transparent && reasons.is_empty(),
        own: None,
        inner,
        deferred: wrapper.deferred,
        reasons,
    })
}

fn wrapper_message(name: &str, wrapper: &Wrapper) -> String {
    let what = match (wrapper.privileged, wrapper.elsewhere, wrapper.deferred) {
        (true, _, _) => "runs it with other rights",
        (_, true, _) => "runs it somewhere else",
        (_, _, true) => "runs it later",
        _ => "runs another command",
    };
    format!("`{name}` {what}")
}

fn inner_of(wrapper: &Wrapper, read: &options::Read, rest: &[Word]) -> Vec<Inner> {
    let placeholder = read.placeholder.clone();
    let code = |word: &Word| Inner::Code { word: word.clone(), positional: None, placeholder: placeholder.clone() };
    let mut inner: Vec<Inner> = read.codes.iter().map(code).collect();
    let mut words = read.split.clone();
    words.extend_from_slice(rest);
    let shape = match (wrapper.inner, words.as_slice()) {
        (Shape::Either, [one]) if one.known().is_some_and(|text| text.contains([' ', ';', '|', '&', '\n'])) => {
            Shape::Code
        }
        (Shape::Either, _) => Shape::Command,
        (shape, _) => shape,
    };
    match shape {
        _ if words.is_empty() => {}
        Shape::Command | Shape::Either => {
            let assignments = read.assignments.clone();
            inner.push(Inner::Words { words, assignments, more: wrapper.more, placeholder });
        }
        Shape::Code => inner.extend(joined(&words).as_ref().map(code)),
        Shape::Each => inner.extend(words.iter().map(code)),
        Shape::First => inner.extend(words.first().map(code)),
        Shape::None => {}
    }
    inner
}

/// Words joined by blanks into one shell text, as `eval` and `ssh` do.
pub(crate) fn joined(words: &[Word]) -> Option<Word> {
    let (first, last) = (words.first()?, words.last()?);
    if let [one] = words {
        return Some(one.clone());
    }
    let span = Span { start: first.span.start, end: last.span.end.max(first.span.end) };
    // The walker has paid for keeping these words once more.
    let length = words.iter().map(|word| word.value.weight() + 1).sum();
    let paid = crate::budget::Budget::paid(length, words.len());
    let mut fields = crate::expand::fields::Fields::new(false, &paid);
    for (index, word) in words.iter().enumerate() {
        if index > 0 {
            fields.quoted(" ");
        }
        match &word.value {
            // As code it is a pattern still, or names: either way it is read again.
            Value::Glob(text) => fields.quoted(text),
            value => fields.value(value, true),
        }
    }
    Some(Word { span, value: fields.single() })
}

fn via(name: &str, privileged: bool, elsewhere: bool, code: bool) -> Via {
    let program = crate::expand::text::base_name(name).to_owned();
    Via { program, privileged, elsewhere, code }
}

/// The words of text that is one plain command without expansions.
fn plain_words(parsed: &Parsed<'_>) -> Option<Vec<String>> {
    if parsed.fault.is_some() {
        return None;
    }
    let [item] = parsed.list.items.as_slice() else { return None };
    let [pipeline] = item.chain.as_slice() else { return None };
    let [command] = pipeline.stages.as_slice() else { return None };
    let Kind::Simple(node) = &command.kind else { return None };
    if item.background.is_some() || !command.redirects.is_empty() {
        return None;
    }
    let text = |parts: &[Part<'_>]| -> Option<String> {
        let mut out = String::new();
        for part in parts {
            let Part::Text { text, .. } = part else { return None };
            out.push_str(text);
        }
        Some(out)
    };
    let mut words = Vec::new();
    for assign in &node.assigns {
        let crate::parse::AssignValue::Word(value) = &assign.value else { return None };
        words.push(format!("{}={}", assign.name, text(&value.parts)?));
    }
    for word in &node.words {
        words.push(text(&word.parts)?);
    }
    Some(words)
}
