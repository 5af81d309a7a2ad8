//! Tests of a whole command that no list of words can express: what feeds it, through what it is reached, what it hides.

use super::Scope;
use super::facts::{Facts, Piece, base_name};
use super::paths::{Base, Path};
use super::shells::{is_shell, starts_shell};
use super::table::{self, Of};
use super::test::has_output;
use super::words::{Check, Trait};
use crate::command::Stdin;
use crate::word::{Source, Span, Value};

/// Where the check speaks, if it does.
pub fn holds(check: Check, facts: &Facts<'_>, scope: &Scope<'_>) -> Option<Span> {
    let yes = |found: bool| found.then(|| facts.start());
    match check {
        Check::Privileged => yes(facts.simple.via.iter().any(|via| via.privileged)),
        Check::PipeIntoShell => yes(facts.has_trait(Trait::Shell) && reads_commands(facts) && piped(facts)),
        Check::PipeIntoInterpreter => {
            yes(facts.has_trait(Trait::Interpreter) && reads_commands(facts) && piped_unknown(facts))
        }
        Check::UnknownCode => unknown_code(facts),
        Check::UnknownScript => unknown_script(facts),
        Check::UnknownProgram => unknown_program(facts),
        Check::PatternProgram => pattern_program(facts),
        Check::UnknownRemoval => unknown_removal(facts, scope),
        Check::MoreRemovals => yes(facts.simple.more_arguments && reached_by(facts, &["xargs", "parallel"])),
        Check::FindAll => find_all(facts, scope),
        Check::BareShell => yes(bare_shell(facts)),
        Check::PlaceholderCode => placeholder_code(facts),
        Check::ShellArgument => is_escape_line(facts).or_else(|| shell_argument(facts)),
        Check::NetworkSocket => network_socket(facts),
        Check::RunsFromTemporary => runs_from_temporary(facts),
        Check::PlaceholderRemoval => yes(reached_by(facts, &["xargs", "parallel"])),
        Check::FedByShell => yes(fed_by_shell(facts)),
        Check::Piped => yes(piped(facts) && facts.operands.is_empty()),
        Check::PipedUnknown => yes(piped_unknown(facts)),
    }
}

fn reached_by(facts: &Facts<'_>, names: &[&str]) -> bool {
    facts.simple.via.iter().any(|via| names.contains(&base_name(&via.program)))
}

/// Takes its program from standard input: no script, no `-c`, or `-s`.
fn reads_commands(facts: &Facts<'_>) -> bool {
    if facts.option("-s").is_some() && facts.has_trait(Trait::Shell) {
        return true;
    }
    let code = facts
        .program
        .is_some_and(|program| program.code().any(|what| what.starts_with('-') && facts.option(what).is_some()));
    let other = ["-c|--command", "-m", "--version", "-V", "--help", "-h", "-n", "--check", "-v"];
    let interpreter = facts.has_trait(Trait::Interpreter);
    if code
        || other.iter().any(|option| {
            facts.option_exactly(option).is_some() && (interpreter || option.starts_with("-c") || option.contains("--"))
        })
    {
        return false;
    }
    match facts.operands.first() {
        None => true,
        Some(piece) => matches!(piece.text, "-" | "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0"),
    }
}

fn piped(facts: &Facts<'_>) -> bool {
    matches!(&facts.simple.stdin, Stdin::Pipe(_))
}

/// `sh -i | nc host port`
fn fed_by_shell(facts: &Facts<'_>) -> bool {
    matches!(&facts.simple.stdin, Stdin::Pipe(from) if from.iter().any(|name| is_shell(base_name(name))))
}

/// From anything but a text in the command itself or a file of this machine.
fn piped_unknown(facts: &Facts<'_>) -> bool {
    match &facts.simple.stdin {
        Stdin::Pipe(from) => {
            from.is_empty()
                || from.iter().any(|name| {
                    !matches!(base_name(name), "echo" | "printf" | "cat" | "sed" | "grep" | "head" | "tail")
                })
        }
        Stdin::Inherited | Stdin::File | Stdin::Here(_) => false,
    }
}

/// `bash -c "$(…)"`, `python -c "$(…)"`, `sh -c "$x"`: the code is whatever comes out.
fn unknown_code(facts: &Facts<'_>) -> Option<Span> {
    if !(facts.has_trait(Trait::Shell) || facts.has_trait(Trait::Interpreter)) {
        return None;
    }
    let given = facts.options.iter().filter(|given| {
        given.name == "c"
            || given.name == "command"
            || (facts.has_trait(Trait::Interpreter) && matches!(given.name, "e" | "eval" | "r"))
    });
    let whole = |piece: &Piece<'_>| match piece.word.map(|word| &word.value) {
        Some(Value::Dynamic(dynamic)) => {
            let outside = |source: &Source| matches!(source, Source::Output | Source::Process | Source::Indirect);
            dynamic.sources.iter().any(outside) && dynamic.prefix.trim().is_empty()
        }
        _ => false,
    };
    given.filter_map(|given| given.value).find(whole).map(|piece| piece.span)
}

/// `bash <(…)`, `source <(…)`, `. /dev/stdin` at the end of a pipe.
fn unknown_script(facts: &Facts<'_>) -> Option<Span> {
    let sources = matches!(facts.name, "source" | ".");
    if !(sources || facts.has_trait(Trait::Shell) || facts.has_trait(Trait::Interpreter)) {
        return None;
    }
    let script = facts.operands.first()?;
    let process = match script.word.map(|word| &word.value) {
        Some(Value::Dynamic(dynamic)) => dynamic.sources.contains(&Source::Process),
        _ => false,
    };
    let piped = sources && matches!(script.text, "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0") && piped(facts);
    let data = !sources
        && facts
            .program
            .is_some_and(|program| program.code().any(|what| what.starts_with('-') && facts.option(what).is_some()));
    ((process && !data && facts.option("-c").is_none() && facts.option_exactly("-m").is_none()) || piped)
        .then_some(script.span)
}

/// `$(…) -rf /`, `${!x} y`: the program itself is what another command prints.
fn unknown_program(facts: &Facts<'_>) -> Option<Span> {
    let program = facts.words.first()?;
    has_output(program).then_some(program.span)
}

/// `/b?n/rm`: nobody writes a program so but to hide it.
fn pattern_program(facts: &Facts<'_>) -> Option<Span> {
    let program = facts.words.first()?;
    let pattern = matches!(program.word.map(|word| &word.value), Some(Value::Glob(_)));
    (pattern && !matches!(program.text, "[" | "[[" | "?")).then_some(program.span)
}

/// An unknown program with the arguments that would empty a tree if it were `rm`.
fn unknown_removal(facts: &Facts<'_>, scope: &Scope<'_>) -> Option<Span> {
    let program = facts.words.first()?;
    let Some(Value::Dynamic(_)) = program.word.map(|word| &word.value) else { return None };
    let recursive = facts.option("-r|-R|--recursive").is_some();
    let target = facts.operands.iter().find(|piece| Path::read(piece).is_outside(scope))?;
    recursive.then_some(target.span)
}

/// `find` that removes: from a place outside, or everything there is.
fn find_all(facts: &Facts<'_>, scope: &Scope<'_>) -> Option<Span> {
    let remover = facts.words.windows(2).find(|pair| match pair {
        [option, program] => {
            matches!(option.text, "-exec" | "-execdir" | "-ok" | "-okdir" | "-x" | "-X" | "--exec" | "--exec-batch")
                && matches!(
                    base_name(program.text),
                    "rm" | "shred" | "unlink" | "truncate" | "srm" | "wipe" | "chmod" | "chown" | "mv"
                )
        }
        _ => false,
    });
    let deletes = facts.option("-delete").map(|given| given.span);
    let span = deletes.or_else(|| remover.and_then(|pair| pair.first()).map(|piece| piece.span))?;
    let changes_only = deletes.is_none()
        && remover
            .and_then(|pair| pair.get(1))
            .is_some_and(|program| matches!(base_name(program.text), "chmod" | "chown" | "mv"));
    // Operands before the first expression word are the places to start from.
    let places = facts.words.iter().skip(1).take_while(|piece| !piece.text.starts_with(['-', '(', '!']));
    let outside = |piece: &Piece<'_>| {
        let path = Path::read(piece);
        // The working folder is everything only without a filter.
        let here = path.base == Base::Relative && path.parts.is_empty() && !path.escapes;
        !here && path.is_outside(scope)
    };
    if let Some(place) = places.clone().find(|piece| outside(piece)) {
        return Some(place.span);
    }
    let narrow = facts.words.windows(2).any(|pair| match pair {
        [option, pattern] => match option.text {
            "-name" | "-iname" | "-path" | "-ipath" | "-wholename" | "-regex" | "-iregex" => {
                !pattern.text.chars().all(|c| matches!(c, '*' | '.' | '/' | '?'))
            }
            "-mtime" | "-mmin" | "-atime" | "-amin" | "-ctime" | "-cmin" | "-newer" | "-size" | "-user" | "-group"
            | "-perm" => true,
            _ => false,
        },
        _ => false,
    }) || facts.words.iter().any(|piece| matches!(piece.text, "-empty" | "-xtype"));
    let everywhere = places.clone().all(|piece| Path::read(piece).parts.is_empty());
    (!narrow && everywhere && !changes_only).then_some(span)
}

/// A shell with nothing to do but wait for orders, or with words that only come later, reached through something else.
fn bare_shell(facts: &Facts<'_>) -> bool {
    let via = &facts.simple.via;
    if !facts.has_trait(Trait::Shell) || via.is_empty() || via.iter().any(|via| via.elsewhere) {
        return false;
    }
    if facts.simple.more_arguments {
        return reached_by(facts, &["xargs", "parallel"]) && facts.option("-n").is_none();
    }
    facts.operands.is_empty()
        && facts.option("-c|--command").is_none()
        && facts.option_exactly("--version|--help").is_none()
        && matches!(facts.simple.stdin, Stdin::Inherited)
        && !via.iter().any(|via| via.code)
}

/// `xargs -I{} sh -c '{}'`: input becomes code.
fn placeholder_code(facts: &Facts<'_>) -> Option<Span> {
    if !reached_by(facts, &["xargs", "find", "fd", "fdfind", "parallel", "watch"]) {
        return None;
    }
    let shell = facts.has_trait(Trait::Shell);
    let interpreter = facts.has_trait(Trait::Interpreter);
    let given = facts
        .options
        .iter()
        .filter(|given| (shell && given.name == "c") || (interpreter && matches!(given.name, "c" | "e")));
    let code = given.filter_map(|given| given.value).find(|piece| piece.text.contains("{}"));
    let program = facts.words.first().filter(|piece| piece.text == "{}");
    code.or(program.copied()).map(|piece| piece.span)
}

/// A line such as `!/bin/sh`, meant for a program that was started before it.
fn is_escape_line(facts: &Facts<'_>) -> Option<Span> {
    let program = facts.words.first()?;
    let inner = program.text.strip_prefix('!')?;
    is_shell(base_name(inner)).then_some(program.span)
}

/// A shell handed to a program that is no shell, wrapper or reader of files: most such programs start it.
fn shell_argument(facts: &Facts<'_>) -> Option<Span> {
    let data = [Trait::Prints, Trait::Shell, Trait::Wraps].into_iter().any(|which| facts.has_trait(which));
    if data || facts.name.is_empty() {
        return None;
    }
    let reads_files = facts.program.and_then(Of::reads).is_some_and(|list| list.len() > 0);
    let found = facts.words.iter().skip(1).find(|piece| {
        let text = piece.text.strip_prefix("SHELL=").map_or(piece.text, |_| "");
        starts_shell(text) && !(reads_files && text.starts_with('/') && !text.contains(' '))
    });
    let named = || {
        // `grc bash`, but not `cargo run --bin sh`: an operand of its own, after a program nobody described.
        facts
            .operands
            .iter()
            .find(|piece| facts.program.is_none() && piece.text.starts_with('/') && is_shell(base_name(piece.text)))
    };
    found.or_else(named).map(|piece| piece.span)
}

/// `/dev/tcp/host/port` anywhere a file is opened.
fn network_socket(facts: &Facts<'_>) -> Option<Span> {
    let opens = |piece: &&Piece<'_>| piece.text.starts_with("/dev/tcp/") || piece.text.starts_with("/dev/udp/");
    facts.redirected(|_| true).iter().find(opens).map(|piece| piece.span)
}

/// A program, or a script of a shell, that lies where anybody may put files.
fn runs_from_temporary(facts: &Facts<'_>) -> Option<Span> {
    let program = facts.words.first()?;
    if !program.text.starts_with(['/', '~', '$', 'f']) {
        // No other path is one for throw-away files: `/tmp/x`, `$TMPDIR/x`, `file:///tmp/x`.
        return None;
    }
    let path = Path::read(program);
    let hidden = path.is_temporary() && !path.parts.is_empty() && path.name().starts_with('.');
    // A program that borrows a well-known name from a place for throw-away files.
    let borrowed =
        path.is_temporary() && table::row(base_name(program.text)).is_some_and(|row| row.program().is_some());
    (hidden || borrowed || path.is_under("/dev/shm")).then_some(program.span)
}
