//! Layer 2, shell syntax: what the way a command is written says, whatever its program does.

use std::borrow::Cow;

use crate::command::{Assignment, RedirectKind, Simple, Target};
use crate::danger;
use crate::reason::{Layer, Reason, Risk};
use crate::walk::Constructs;
use crate::word::{Source, Span, Value, Word};

/// Builtins that change variables or evaluate names.
pub(crate) const ASSIGNERS: &[&str] = &[
    "declare",
    "typeset",
    "local",
    "export",
    "readonly",
    "read",
    "mapfile",
    "readarray",
    "getopts",
    "printf",
    "set",
    "shift",
    "unset",
    "let",
    "test",
    "[",
    "wait",
];
/// Builtins that change how what follows is understood.
const CHANGERS: &[&str] =
    &["unset", "export", "set", "shopt", "hash", "alias", "unalias", "enable", "bind", "complete"];

/// Names of variables, and of pagers, by what they are for.
mod names {
    use crate::pool::{Slice, Text, bytes, part};

    include!(concat!(env!("OUT_DIR"), "/env.rs"));

    /// Whether a list holds this name; lists are in order.
    pub(super) fn holds(list: Slice, name: &str) -> bool {
        part(&WORDS, list).binary_search_by(|word| bytes(POOL, *word).cmp(name.as_bytes())).is_ok()
    }

    /// Whether a list holds a start of this name.
    pub(super) fn begins(list: Slice, name: &str) -> bool {
        part(&WORDS, list).iter().any(|start| name.as_bytes().starts_with(bytes(POOL, *start)))
    }
}

pub(crate) fn reason(code: &'static str, message: impl Into<Cow<'static, str>>, span: Span, risk: Risk) -> Reason {
    Reason {
        code: Cow::Borrowed(code),
        message: message.into(),
        span,
        layer: Layer::Syntax,
        risk,
        does: danger::said(code),
    }
}

pub(crate) fn judge(simple: &Simple, reasons: &mut Vec<Reason>, constructs: &mut Constructs) {
    let program = simple.argv.first().and_then(Word::known);
    for assignment in &simple.assignments {
        judge_assignment(assignment, program, reasons, constructs);
    }
    for redirect in &simple.redirects {
        let writes = matches!(redirect.kind, RedirectKind::Write | RedirectKind::Append | RedirectKind::ReadWrite);
        let Target::File(word) = &redirect.target else { continue };
        if writes && word.known() != Some("/dev/null") {
            constructs.file_redirect = true;
            reasons.push(reason("redirect", "writes to a file", redirect.span, Risk::NeedsReview));
        }
    }
    if let Some(name) = program {
        judge_builtin(name, simple, reasons, constructs);
    }
    if let Some(span) = crate::unwrap::inline_code(simple) {
        constructs.inline_code = true;
        reasons.push(reason("inline_code", "runs a program written on the command line", span, Risk::NeedsReview));
    }
}

fn judge_assignment(
    assignment: &Assignment,
    program: Option<&str>,
    reasons: &mut Vec<Reason>,
    constructs: &mut Constructs,
) {
    let name = assignment.name.as_str();
    if program == Some("read") && name == "IFS" {
        return;
    }
    let value = assignment.value.as_ref().and_then(Word::known);
    if is_dangerous_name(name) && !is_harmless_pager(name, value) {
        constructs.dangerous_assignment = true;
        let message = format!("`{name}` decides what other programs run, load or trust");
        reasons.push(reason("dangerous_variable", message, assignment.span, Risk::NeedsReview));
    }
}

/// Whether this name is known to change nothing of what ordinary programs run, load or trust.
pub fn is_ordinary_name(name: &str) -> bool {
    names::holds(names::ORDINARY, name) || names::begins(names::ORDINARY_PREFIXES, name)
}

/// Whether this name makes ordinary programs run or load something.
pub fn is_steering_name(name: &str) -> bool {
    names::holds(names::DANGEROUS, name) || names::begins(names::DANGEROUS_PREFIXES, name)
}

/// Whether assigning this name can make programs run, load or trust something else.
pub fn is_dangerous_name(name: &str) -> bool {
    names::holds(names::DANGEROUS, name)
        || names::holds(names::SENSITIVE, name)
        || names::begins(names::DANGEROUS_PREFIXES, name)
        || names::begins(names::SENSITIVE_PREFIXES, name)
}

fn is_harmless_pager(name: &str, value: Option<&str>) -> bool {
    names::holds(names::PAGERS, name) && value.is_some_and(|value| names::holds(names::HARMLESS_PAGERS, value))
}

fn judge_builtin(name: &str, simple: &Simple, reasons: &mut Vec<Reason>, constructs: &mut Constructs) {
    let span = simple.argv.first().map_or(simple.span, |word| word.span);
    let arguments = simple.argv.get(1..).unwrap_or_default();
    if CHANGERS.contains(&name) && !arguments.is_empty() && !(name == "set" && stops_sooner(arguments)) {
        let message = format!("`{name}` changes how what follows is understood");
        reasons.push(reason("shell_state", message, span, Risk::NeedsReview));
        constructs.shadowing |= matches!(name, "alias" | "hash" | "enable");
    }
    if matches!(name, "source" | ".") && !arguments.is_empty() {
        let message = "runs a file as if it were written here";
        reasons.push(reason("sourced_file", message, span, Risk::NeedsReview));
    }
    if let Some(span) = crate::unwrap::startup_files(name, arguments) {
        let message = "this shell also runs its startup files, or one named here";
        reasons.push(reason("startup_files", message, span, Risk::NeedsReview));
    }
    if !matches!(name, "export" | "declare" | "typeset" | "local" | "readonly" | "printf" | "read") {
        return;
    }
    for word in arguments {
        let text = match &word.value {
            Value::Known(text) | Value::Glob(text) => text.as_str(),
            Value::Dynamic(dynamic) => dynamic.prefix.as_str(),
        };
        let name = text.split(['=', '[', '+']).next().unwrap_or(text);
        if is_dangerous_name(name) {
            constructs.dangerous_assignment = true;
            let message = format!("`{name}` decides what other programs run, load or trust");
            reasons.push(reason("dangerous_variable", message, word.span, Risk::NeedsReview));
        }
    }
}

/// `set -euo pipefail`, `set -x`: fewer of the commands run, or they are shown; none means anything else.
fn stops_sooner(arguments: &[Word]) -> bool {
    let mut names = false;
    arguments.iter().all(|word| match word.known() {
        Some("pipefail" | "errexit" | "nounset" | "xtrace") if names => {
            names = false;
            true
        }
        Some(text) if !names => {
            let letters = text.strip_prefix(['-', '+']).unwrap_or_default();
            names = letters.ends_with('o');
            let known = letters.strip_suffix('o').unwrap_or(letters);
            !letters.is_empty() && known.bytes().all(|byte| matches!(byte, b'e' | b'u' | b'x'))
        }
        _ => false,
    }) && !names
}

/// A program spelled so that it does not read as what it is: `r''m`, `$'\x72m'`, `{rm,-rf,/}`.
pub(crate) fn disguised_program(raw: &str) -> bool {
    let plain = raw.strip_prefix('\\').unwrap_or(raw);
    let whole = |quote: char| {
        let inner = plain.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
        inner.is_some_and(|inner| !inner.is_empty() && !inner.contains(['\'', '"', '\\']))
    };
    let odd = plain.contains(['\'', '"', '\\', '{']) && !plain.contains(['$', '`', '(', '<']);
    (odd && !whole('\'') && !whole('"')) || plain.starts_with("$'")
}

/// The program is not known until it runs.
pub(crate) fn unknown_program(program: &Word, content: bool) -> Reason {
    let (message, risk) = match &program.value {
        Value::Known(_) | Value::Glob(_) => ("a pattern in place of a program hides which one runs", Risk::Dangerous),
        Value::Dynamic(dynamic) => {
            let path = dynamic.suffix.contains('/');
            let printed = dynamic.sources.iter().any(|source| match source {
                Source::Output | Source::Process | Source::Indirect => true,
                Source::BoundedOutput | Source::Names => !path,
                _ => false,
            });
            if content || printed {
                ("which program runs is only known from what another one prints", Risk::Dangerous)
            } else {
                ("which program runs is only known when it runs", Risk::NeedsReview)
            }
        }
    };
    reason("dynamic_program", message, program.span, risk)
}
