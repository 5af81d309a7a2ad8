//! Which programs a command would start, with which words and in which directory, as far as its text says. Only reads
//! text: nothing is looked up here.

use std::path::PathBuf;

use countersign_shell::{Options, Simple, Value, Via, Word, assess};

/// What the shell does itself, without a file.
const BUILTINS: &[&str] = &[
    ":",
    "[",
    "[[",
    "alias",
    "bg",
    "bind",
    "break",
    "builtin",
    "caller",
    "cd",
    "command",
    "compgen",
    "complete",
    "compopt",
    "continue",
    "declare",
    "dirs",
    "disown",
    "echo",
    "enable",
    "eval",
    "exec",
    "exit",
    "export",
    "false",
    "fc",
    "fg",
    "getopts",
    "hash",
    "help",
    "history",
    "jobs",
    "kill",
    "let",
    "local",
    "logout",
    "mapfile",
    "popd",
    "printf",
    "pushd",
    "pwd",
    "read",
    "readarray",
    "readonly",
    "return",
    "set",
    "shift",
    "shopt",
    "suspend",
    "test",
    "time",
    "times",
    "trap",
    "true",
    "type",
    "typeset",
    "ulimit",
    "umask",
    "unalias",
    "unset",
    "wait",
];
const SOURCING: &[&str] = &["source", "."];

#[derive(Debug, Default)]
pub(crate) struct Reading {
    pub calls: Vec<Call>,
    /// It goes to another directory, so a relative word may mean several files.
    pub moves: bool,
    /// It says itself where programs are looked for.
    pub sets_path: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub word: String,
    /// The words after the program; nothing for those that only running would tell.
    pub arguments: Vec<Option<String>>,
    pub kind: CallKind,
    /// From the working directory to where it runs; nothing when the text does not say.
    pub place: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallKind {
    Program,
    Source,
}

impl Call {
    /// The program's name without its directories.
    pub fn name(&self) -> &str {
        self.word.rsplit('/').next().unwrap_or(&self.word)
    }
}

/// `direct`: the words are given to the system, so that the outermost one is never the shell's own.
pub(crate) fn read(text: &str, direct: bool) -> Reading {
    let mut reading = Reading::default();
    let mut place = Some(PathBuf::new());
    for simple in assess(text, &Options::default()).commands {
        reading.sets_path |= sets_path(&simple);
        // On another machine or in a container other files are found.
        if simple.via.iter().any(|via| via.elsewhere) {
            continue;
        }
        let Some(word) = simple.argv.first().and_then(Word::known) else { continue };
        let by_shell = simple.via.last().map_or(!direct, |via: &Via| via.code);
        if by_shell && matches!(word, "cd" | "pushd" | "popd") {
            reading.moves = true;
            place = moved(place, &simple);
            continue;
        }
        let kind = match () {
            () if by_shell && SOURCING.contains(&word) => CallKind::Source,
            () if by_shell && BUILTINS.contains(&word) => continue,
            () => CallKind::Program,
        };
        let arguments = simple.argv.iter().skip(1).map(|word| word.known().map(str::to_owned)).collect();
        reading.calls.push(Call { word: word.to_owned(), arguments, kind, place: place.clone() });
    }
    reading
}

/// Where `cd` leads; nowhere that is known if it may not happen, happens elsewhere, or depends on run time.
fn moved(place: Option<PathBuf>, simple: &Simple) -> Option<PathBuf> {
    let here = &simple.place;
    if here.subshell || here.substitution || here.deferred || here.repeated || here.background {
        return None;
    }
    let words: Vec<_> = simple.argv.iter().skip(1).filter(|word| word.known() != Some("--")).collect();
    match words.as_slice() {
        [target] => {
            target.known().filter(|target| !target.starts_with(['-', '~', '+'])).and_then(|t| Some(place?.join(t)))
        }
        _ => None,
    }
}

fn sets_path(simple: &Simple) -> bool {
    let begins = |word: &Word| match &word.value {
        Value::Known(text) | Value::Glob(text) => text.starts_with("PATH="),
        Value::Dynamic(dynamic) => dynamic.prefix.starts_with("PATH="),
    };
    simple.assignments.iter().any(|assignment| assignment.name == "PATH") || simple.argv.iter().any(begins)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(text: &str) -> Vec<String> {
        let show = |call: Call| format!("{}@{}", call.word, call.place.map_or("?".into(), |p| p.display().to_string()));
        read(text, false).calls.into_iter().map(show).collect()
    }

    #[test]
    fn programs_are_found_where_they_run() {
        for (text, found) in [
            ("make all", &["make@"][..]),
            ("cd sub && make", &["make@sub"]),
            ("cd a && cd b && ./x; cd /c; y", &["./x@a/b", "y@/c"]),
            ("(cd a; x); y", &["x@?", "y@?"]),
            ("cd \"$D\" && x", &["x@?"]),
            ("cd && x", &["x@?"]),
            ("echo hi; [ -f x ] && true", &[]),
            ("env echo hi", &["env@", "echo@"]),
            ("bash -c 'echo hi; make'", &["bash@", "make@"]),
            ("ssh host make", &["ssh@"]),
            // Where `$X` is empty, the word after it is the program.
            ("$X a; ls *", &["a@", "ls@"]),
            ("source x.sh; . y.sh", &["source@", ".@"]),
        ] {
            assert_eq!(calls(text), found, "{text}");
        }
    }

    #[test]
    fn without_a_shell_the_first_word_is_a_program() {
        assert_eq!(read("echo hi", true).calls.len(), 1);
        assert_eq!(read("bash -c 'echo hi'", true).calls.len(), 1);
    }

    #[test]
    fn a_path_of_its_own_is_seen() {
        for text in ["PATH=/x make", "export PATH=/x:$PATH; make", "env PATH=/x make", "PATH=$HOME/x; make"] {
            assert!(read(text, false).sets_path, "{text}");
        }
        assert!(!read("MYPATH=/x make; echo PATH", false).sets_path);
    }
}
