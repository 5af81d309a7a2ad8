//! What several commands of one text do together.

use super::facts::{Facts, Piece, base_name};
use super::paths::Path;

use super::secrets::is_private;
use super::shells::starts_shell;
use super::words::{ScriptCheck, Trait};
use super::{Scope, find_program};
use crate::command::{RedirectKind, Simple, Stdin, Target};
use crate::word::{Source, Span, Value};
use std::collections::HashSet;

/// Where the check speaks.
pub fn holds(check: ScriptCheck, all: &[Facts<'_>], scope: &Scope<'_>) -> Option<Span> {
    match check {
        ScriptCheck::DownloadThenRun => written_then_run(all, Trait::Downloads),
        ScriptCheck::DecodeThenRun => written_then_run(all, Trait::Decodes),
        ScriptCheck::SecretsSent => secrets_sent(all),
        ScriptCheck::EvalUnknown => eval_unknown(all),
        ScriptCheck::RemoveAfterCd => remove_after_cd(all, scope),
        ScriptCheck::ForkBomb => fork_bomb(all),
        ScriptCheck::Shadow => shadow(all),
        ScriptCheck::PlantedCode => planted_code(all),
    }
}

/// Whether these commands can be what the checks look for: a single one hardly ever is.
pub fn may_speak_of(all: &[Simple]) -> bool {
    match all {
        [] => false,
        [only] => {
            let name = only.argv.first().and_then(crate::word::Word::known).map_or("", base_name);
            only.place.deferred || matches!(name, "eval" | "hash" | "enable" | "alias")
        }
        _ => true,
    }
}

fn strip(text: &str) -> &str {
    text.strip_prefix("./").unwrap_or(text)
}

/// A file that a download or a decoder fills, and that is then run.
fn written_then_run(all: &[Facts<'_>], filler: Trait) -> Option<Span> {
    if !all.iter().any(|facts| facts.has_trait(filler)) {
        return None;
    }
    let mut written: HashSet<&str> = HashSet::new();
    for facts in all {
        // Running comes after writing, so what is written is known when it is run.
        if let Some(span) = runs_one_of(facts, &written) {
            return Some(span);
        }
        let fed = matches!(&facts.simple.stdin, Stdin::Pipe(from) if from.iter().any(|name| find_program(base_name(name)).is_some_and(|program| program.traits.has(filler))));
        let descriptor = facts.name == "exec" || facts.words.is_empty();
        if facts.has_trait(filler) || fed || descriptor {
            written.extend(facts.writes.iter().map(|piece| strip(piece.text)));
        }
        if facts.has_trait(filler) && filler == Trait::Downloads {
            let by_url = facts.option("-O|--remote-name|--remote-name-all").is_some()
                || matches!(facts.name, "wget" | "aria2c" | "axel" | "fetch" | "git");
            for piece in facts.operands.iter().filter(|_| by_url) {
                let path = piece
                    .text
                    .split(['?', '#'])
                    .next()
                    .unwrap_or(piece.text)
                    .trim_end_matches('/')
                    .trim_end_matches(".git");
                written.insert(path.rsplit('/').next().unwrap_or(path));
            }
        }
        if matches!(facts.name, "mv" | "cp" | "install" | "ln")
            && let [from, to] = facts.operands.as_slice()
            && written.contains(strip(from.text))
        {
            written.insert(strip(to.text));
        }
    }
    None
}

fn runs_one_of(facts: &Facts<'_>, written: &HashSet<&str>) -> Option<Span> {
    if written.is_empty() {
        return None;
    }
    let is_written = |piece: &Piece<'_>| {
        let text = strip(piece.text);
        let name = text.starts_with('/').then(|| text.rsplit('/').next().unwrap_or(text));
        !text.is_empty() && (written.contains(text) || name.is_some_and(|name| written.contains(name)))
    };
    let program = facts.words.first()?;
    if program.text.contains('/') {
        let path = strip(program.text);
        // A file of a folder that was fetched as a whole.
        let mut folders = path.match_indices('/').filter_map(|(at, _)| path.get(..at));
        if is_written(program) || folders.any(|folder| written.contains(folder)) {
            return Some(program.span);
        }
    }
    let runs = facts.has_trait(Trait::Shell)
        || facts.has_trait(Trait::Interpreter)
        || matches!(facts.name, "source" | "." | "exec" | "make" | "dpkg" | "rpm" | "installer");
    if !runs {
        return None;
    }
    let read = facts.redirected(|kind| kind == RedirectKind::Read);
    facts.operands.iter().chain(&read).find(|piece| is_written(piece)).map(|piece| piece.span)
}

/// Whether the command brings secrets to light.
fn tells_secrets(facts: &Facts<'_>) -> bool {
    if facts.has_trait(Trait::PrintsSecrets) {
        // `env` with a command after it prints nothing of its own.
        return match facts.name {
            "env" | "export" | "set" | "declare" | "typeset" | "printenv" => {
                facts.operands.iter().all(|piece| piece.text.contains('=') || facts.name == "printenv")
            }
            "gpg" | "gpg2" => facts.option("--export-secret-keys|--export-secret-subkeys").is_some(),
            "kubectl" | "oc" => facts.operands.iter().any(|piece| piece.text.starts_with("secret")),
            "jq" => facts.operands.iter().any(|piece| piece.text.contains("env") || piece.text.contains("$ENV")),
            _ => true,
        };
    }
    facts.reads.iter().any(is_private)
}

/// Secrets through a pipe or a substitution into a program that can carry them away.
fn secrets_sent(all: &[Facts<'_>]) -> Option<Span> {
    if !all.iter().any(|facts| facts.has_trait(Trait::Sends)) {
        return None;
    }
    let secret = || all.iter().filter(|facts| tells_secrets(facts));
    let tellers: HashSet<&str> = secret().map(|facts| facts.name).collect();
    if tellers.is_empty() {
        return None;
    }
    let substituted = secret().any(|facts| facts.simple.place.substitution);
    all.iter().filter(|facts| facts.has_trait(Trait::Sends)).find_map(|facts| {
        if matches!(&facts.simple.stdin, Stdin::Pipe(from) if from.iter().any(|name| tellers.contains(base_name(name))))
        {
            return Some(facts.start());
        }
        if !substituted {
            return None;
        }
        let carries = |piece: &&Piece<'_>| match piece.word.map(|word| &word.value) {
            Some(Value::Dynamic(dynamic)) => dynamic.sources.iter().any(|source| {
                matches!(source, Source::Output | Source::BoundedOutput | Source::Names | Source::Process)
            }),
            _ => false,
        };
        facts.words.iter().skip(1).find(carries).map(|piece| piece.span)
    })
}

/// `eval` of what is unknown, but for tools that print settings for exactly that.
fn eval_unknown(all: &[Facts<'_>]) -> Option<Span> {
    let inside = || all.iter().filter(|facts| facts.simple.place.substitution && !facts.words.is_empty());
    let settings = inside().count() > 0 && inside().all(|facts| facts.has_trait(Trait::PrintsSettings));
    all.iter().filter(|facts| facts.name == "eval").find_map(|facts| {
        let unknown = |piece: &&Piece<'_>| match piece.word.map(|word| &word.value) {
            Some(Value::Dynamic(dynamic)) => dynamic.sources.iter().any(|source| match source {
                Source::Output | Source::Process => !settings,
                Source::Variable(_) | Source::Positional => dynamic.prefix.trim().is_empty(),
                Source::Indirect => true,
                Source::Number | Source::BoundedOutput | Source::Names | Source::OneOf(_) => false,
            }),
            _ => false,
        };
        facts.words.iter().skip(1).find(unknown).map(|piece| piece.span)
    })
}

/// `cd / && rm -rf *`: what is removed lies where the text has gone before.
fn remove_after_cd(all: &[Facts<'_>], scope: &Scope<'_>) -> Option<Span> {
    // Whether the text has gone there, and whether only a subshell has.
    let mut away: Option<bool> = None;
    for facts in all {
        let subshell = facts.simple.place.subshell;
        match facts.name {
            "cd" | "pushd" => {
                let there = match facts.operands.first() {
                    Some(place) => {
                        let path = Path::read(place);
                        (path.is_root_or_home() || path.is_system()) && path.is_outside(scope)
                    }
                    None => facts.name == "cd",
                };
                if there {
                    away = Some(subshell);
                } else if !subshell || away == Some(true) {
                    away = None;
                }
            }
            "rm" | "shred" | "find" if away.is_some_and(|inside| subshell || !inside) => {
                let recursive = facts.option("-r|-R|--recursive|-delete").is_some();
                if recursive && let Some(target) = facts.operands.first().or(facts.words.first()) {
                    return Some(target.span);
                }
            }
            _ => {}
        }
    }
    None
}

/// A function that feeds itself: `:(){ :|:& };:`.
fn fork_bomb(all: &[Facts<'_>]) -> Option<Span> {
    let feeds_itself = |facts: &&Facts<'_>| match &facts.simple.stdin {
        Stdin::Pipe(from) => {
            facts.simple.place.deferred && !facts.name.is_empty() && from.iter().any(|name| name == facts.name)
        }
        Stdin::Inherited | Stdin::File | Stdin::Here(_) => false,
    };
    let called: HashSet<&str> =
        all.iter().filter(|facts| !facts.simple.place.deferred).map(|facts| facts.name).collect();
    let starts_itself = |facts: &&Facts<'_>| {
        let deferred = facts.simple.place.deferred
            && facts.simple.place.background
            && (facts.program.is_none() || facts.name == ":");
        deferred && called.contains(facts.name)
    };
    all.iter().find(feeds_itself).or_else(|| all.iter().find(starts_itself)).map(Facts::start)
}

/// A program's name is given to something else, and then used.
fn shadow(all: &[Facts<'_>]) -> Option<Span> {
    all.iter().find_map(|facts| {
        let hashed = facts.name == "hash" && facts.option("-p").is_some();
        let enabled = facts.name == "enable" && facts.option("-f").is_some();
        let alias = facts.name == "alias"
            && facts
                .operands
                .iter()
                .any(|piece| piece.text.split_once('=').is_some_and(|(_, code)| super::code::destroys(code)));
        (hashed || enabled || alias).then(|| facts.start())
    })
}

/// So many files with a shell in them are a danger without a look at who uses them.
const MAX_PLANTED: usize = 16;

/// A text that starts a shell goes into a file, and another program is then told of that file.
fn planted_code(all: &[Facts<'_>]) -> Option<Span> {
    let starts = |text: &str| {
        text.lines().any(|line| !line.starts_with("#!") && starts_shell(line)) || super::code::destroys(text)
    };
    let mut planted: Vec<&str> = Vec::new();
    for facts in all {
        if planted.len() > MAX_PLANTED {
            return Some(facts.start());
        }
        let uses = |text: &str| planted.iter().any(|file| text.contains(file));
        let data = facts.has_trait(Trait::Prints) || matches!(facts.name, "cat" | "head" | "less" | "bat" | "tee");
        if !data && !planted.is_empty() {
            let assigned = facts.assignments.iter().map(|(_, piece)| piece);
            if let Some(piece) = facts.words.iter().chain(assigned).find(|piece| uses(piece.text)) {
                return Some(piece.span);
            }
        }
        if !matches!(facts.name, "echo" | "printf" | "cat" | "tee") {
            continue;
        }
        let here = facts.simple.redirects.iter().filter_map(|redirect| match &redirect.target {
            Target::Here(here) => here.text.as_deref(),
            Target::File(_) | Target::Descriptor => None,
        });
        let stdin = match &facts.simple.stdin {
            Stdin::Here(here) => here.text.as_deref(),
            Stdin::Inherited | Stdin::Pipe(_) | Stdin::File => None,
        };
        if facts.words.iter().skip(1).map(|piece| piece.text).chain(here).chain(stdin).any(starts) {
            planted.extend(
                facts
                    .writes
                    .iter()
                    .map(|piece| strip(piece.text))
                    .filter(|file| file.len() > 2 && *file != "/dev/null"),
            );
        }
    }
    None
}
