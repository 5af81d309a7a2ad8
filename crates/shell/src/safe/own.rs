//! Programs that a user says only read: which may be described at all. A table says what options and operands do; it is
//! no place to say that what runs other programs, or the gate itself, is harmless.

use super::format::{Entry, File, Problem};
use super::paths::glob;
use super::rows::Rows;
use super::table::Table;
use crate::command::Simple;
use crate::danger;
use crate::expand::text::without_version;
use crate::unwrap;
use crate::word::Word;

/// The longest name of a program.
const MAX_NAME: usize = 64;

/// Part of the shell itself: they change what it does next, which no table follows.
const SHELL_WORDS: &str = "alias bg bind break builtin caller case cd command compgen complete compopt continue coproc declare dirs \
    disown do done echo elif else enable esac eval exec exit export false fc fg fi for function getopts hash \
    help history if in jobs kill let local logout mapfile popd printf pushd pwd read readarray readonly return \
    select set setopt shift shopt source suspend test then time times trap true type typeset ulimit umask \
    unalias unset unsetopt until wait while zmodload";

/// Give other rights, beside those that are wrappers.
const PRIVILEGE: &str = "beesu calife chsh dzdo gksu gpasswd gsudo kdesu lxsudo machinectl newgrp passwd pfexec please pmexec runas \
    sg ssu sudoedit suexec super userv usermod visudo";

/// Run what a project, a package or a model says: known by their version only, and meant to stay so.
const RUNNERS: &str = "aider amp ant bazel bazelisk buck buck2 bundle bundler bunx cabal claude cmake codex composer configure corepack \
    cpan ctest cursor-agent dagger earthly gemini goose gradle grunt gulp just lein mix mvn ninja nox npx openclaw opencode \
    pants rake rebar3 sbt scons stack task tox turbo xcodebuild";

/// Whether this is a command of one of these programs.
pub(crate) fn is_own(simple: &Simple, own: &Rows) -> bool {
    let name = simple.argv.first().and_then(Word::known).and_then(super::bare_name);
    name.is_some_and(|name| Table::Own(own).find(name).is_some())
}

/// Whether the engine has a table of its own for this program.
pub(crate) fn is_built_in(name: &str) -> bool {
    Table::BuiltIn.find(name).is_some()
}

/// Whether that table knows more than a few whole forms.
fn is_described(name: &str) -> bool {
    Table::BuiltIn.find(name).is_some_and(|program| !program.is_sketch())
}

/// Refuses programs that a user's table must not speak for.
pub(crate) fn check(file: &File) -> Result<(), Problem> {
    for program in &file.programs {
        let entry = program.get_ref();
        for name in &entry.names {
            if let Some(why) = refusal(name.get_ref()) {
                return Err(Problem::new(name.span(), format!("program `{}` {why}", name.get_ref())));
            }
            wraps(name.get_ref(), entry).map_err(|message| Problem::new(name.span(), message))?;
        }
        if entry.matches.is_empty() {
            let name = entry.names.first().map_or("", |name| name.get_ref());
            let message = format!("program `{name}` needs at least one `match` example: a command that is safe");
            return Err(Problem::new(entry.place(program.span()), message));
        }
    }
    Ok(())
}

/// Why a table may not speak for this program.
fn refusal(name: &str) -> Option<&'static str> {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'+' | b'-');
    if name.is_empty() || name.len() > MAX_NAME || name.starts_with(['-', '.']) || !name.bytes().all(word) {
        return Some("is no name of a program; write it as it is called, without folder and arguments");
    }
    // `Sudo`, `bash.exe` and `python3.12` are what they look like.
    let lower = name.to_ascii_lowercase();
    let bare = lower.strip_suffix(".exe").unwrap_or(&lower);
    let any = |is: &dyn Fn(&str) -> bool| [name, bare, without_version(bare)].into_iter().any(is);
    let either = |is: &dyn Fn(&str) -> bool| is(name) || is(bare);
    if any(&|name| name == "countersign") {
        return Some("is the gate itself, for which no table speaks; leave it out");
    }
    if any(&|name| listed(PRIVILEGE, name)) {
        return Some("gives other rights, so no list of options makes it a reader; leave it out");
    }
    if any(&unwrap::is_shell) || any(&unwrap::runs_code) || any(&danger::runs_what_it_is_given) {
        return Some("runs the code or command it is given, so no list of options makes it a reader; leave it out");
    }
    if any(&unwrap::is_wrapper) || either(&unwrap::is_carrier) {
        return Some("runs other commands, which are judged by themselves; leave it out");
    }
    if either(&is_described) {
        return Some("is built in, and a table of your own may only add; use an allowlist entry or leave it out");
    }
    if either(&|name| listed(RUNNERS, name)) {
        return Some("runs code of the project, of packages or of an agent, whatever its options are; leave it out");
    }
    either(&|name| listed(SHELL_WORDS, name)).then_some("is part of the shell itself; leave it out")
}

fn listed(words: &str, name: &str) -> bool {
    words.split_whitespace().any(|word| word == name)
}

/// A program that runs other commands by one of its subcommands (`poetry run`) is described without that one.
fn wraps(name: &str, entry: &Entry) -> Result<(), String> {
    for path in unwrap::carrying_subcommands(name) {
        let path: Vec<&str> = path.iter().collect();
        let whole = format!("`{name} {}` runs other commands", path.join(" "));
        if entry.subs.is_empty() {
            return Err(format!("{whole}; describe the subcommands of `{name}` that read, one by one"));
        }
        for sub in entry.subs.iter().flat_map(|sub| &sub.get_ref().names) {
            let fits = |(given, path): (&str, &&str)| given == *path || (given.contains('*') && glob(given, path));
            if sub.get_ref().split_whitespace().zip(&path).all(fits) {
                return Err(format!("{whole}, and subcommand `{}` would speak for it; leave that out", sub.get_ref()));
            }
        }
    }
    Ok(())
}
