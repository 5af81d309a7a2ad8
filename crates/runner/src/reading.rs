//! Which programs a command would start, with which words and in which directory, as far as its text says. Only reads
//! text: nothing is looked up here.

use std::path::{Path, PathBuf};

use countersign_shell::{
    Location, Options, Projects, RedirectKind, Risk, Simple, Source, Target, Value, Via, Word, assess,
};

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
    /// It may run in more than one directory, so a relative word may mean several files.
    pub moves: bool,
    /// It says itself where programs are looked for.
    pub sets_path: bool,
    /// By its text it does nothing but read.
    pub only_reads: bool,
    /// Every command with the names it is given, those of the shell itself among them.
    pub named: Vec<Named>,
}

/// The words of one command that may be names of files, and where it may run.
#[derive(Debug, Clone)]
pub(crate) struct Named {
    pub program: Option<String>,
    pub words: Vec<Word>,
    pub folders: Vec<PathBuf>,
    /// Names come to it from what lists files.
    pub listed: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub word: String,
    /// The words after the program, and the files it reads from.
    pub arguments: Vec<Word>,
    pub kind: CallKind,
    /// Where it may run, absolute.
    pub folders: Vec<PathBuf>,
    /// It may run elsewhere too, which only running would tell.
    #[cfg(test)]
    pub anywhere: bool,
    /// Whose project files decide what it does.
    pub obeys: Projects,
    /// By its text it does nothing but read.
    pub only_reads: bool,
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

    /// The words after the program; nothing for those that only running would tell.
    pub fn texts(&self) -> impl Iterator<Item = Option<&str>> {
        self.arguments.iter().map(Word::known)
    }
}

/// What is known of where the text runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start<'s> {
    /// The working directory, absolute and without links.
    pub folder: &'s Path,
    pub home: Option<&'s Path>,
    /// The words are given to the system, so that the outermost one is never the shell's own.
    pub direct: bool,
}

pub(crate) fn read(text: &str, start: Start<'_>) -> Reading {
    let location = Location { folder: start.folder.to_str(), ..Location::default() };
    let assessed = assess(text, &Options { location, ..Options::default() });
    let mut reading = Reading { only_reads: assessed.risk == Risk::Safe, ..Reading::default() };
    for (index, simple) in assessed.commands.iter().enumerate() {
        reading.sets_path |= sets_path(simple);
        // On another machine or in a container other files are found.
        if simple.via.iter().any(|via| via.elsewhere) {
            continue;
        }
        let folders: Vec<PathBuf> = simple.runs_in.folders.iter().flat_map(|folder| start.folders(folder)).collect();
        let read = simple.redirects.iter().filter(|redirect| redirect.kind == RedirectKind::Read);
        let files = read.filter_map(|redirect| match &redirect.target {
            Target::File(word) => Some(word.clone()),
            Target::Descriptor | Target::Here(_) => None,
        });
        let words: Vec<Word> = simple.argv.iter().skip(1).cloned().chain(files).collect();
        let program = simple.argv.first().and_then(Word::known).map(str::to_owned);
        let in_place = |word: &Word| word.known().is_some_and(|text| text.contains("{}"));
        let carried = simple.via.last().is_some_and(|via| !via.code);
        let listed = simple.more_arguments || words.iter().any(|word| is_listed(word) || (carried && in_place(word)));
        reading.named.push(Named { program, words: words.clone(), folders: folders.clone(), listed });
        let Some(word) = simple.argv.first().and_then(Word::known) else { continue };
        let by_shell = simple.via.last().map_or(!start.direct, |via: &Via| via.code);
        let kind = match () {
            () if by_shell && SOURCING.contains(&word) => CallKind::Source,
            () if by_shell && BUILTINS.contains(&word) => continue,
            () => CallKind::Program,
        };
        reading.moves |= simple.runs_in.unknown || folders.iter().any(|folder| folder != start.folder);
        reading.calls.push(Call {
            word: word.to_owned(),
            arguments: words,
            kind,
            folders,
            #[cfg(test)]
            anywhere: simple.runs_in.unknown,
            obeys: assessed
                .obeyed
                .iter()
                .find(|obeyed| obeyed.command == index)
                .map(|o| o.projects)
                .unwrap_or_default(),
            only_reads: assessed.only_reads(index),
        });
    }
    reading
}

/// Whether a word is what some command lists.
fn is_listed(word: &Word) -> bool {
    let listed = |source: &Source| matches!(source, Source::BoundedOutput | Source::Names);
    matches!(&word.value, Value::Dynamic(dynamic) if dynamic.sources.iter().any(listed))
}

impl Start<'_> {
    /// A directory as the text has it. One that begins with `~` is the home's, unless it was quoted: then both are meant.
    fn folders(&self, text: &str) -> Vec<PathBuf> {
        let below = ["~", "$HOME", "${HOME}"].iter().find_map(|home| text.strip_prefix(home));
        let Some(below) = below.filter(|below| below.is_empty() || below.starts_with('/')) else {
            return vec![self.folder.join(text)];
        };
        let literal = self.folder.join(text);
        let below = below.trim_start_matches('/');
        let home = self.home.map(|home| if below.is_empty() { home.to_path_buf() } else { home.join(below) });
        home.into_iter().chain(literal.exists().then_some(literal)).collect()
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

    fn reading(text: &str, direct: bool) -> Reading {
        read(text, Start { folder: Path::new("/w"), home: Some(Path::new("/home/a")), direct })
    }

    fn calls(text: &str) -> Vec<String> {
        let show = |call: Call| {
            let folders: Vec<String> = call.folders.iter().map(|folder| folder.display().to_string()).collect();
            format!("{}@{}{}", call.word, folders.join(","), if call.anywhere { ",?" } else { "" })
        };
        reading(text, false).calls.into_iter().map(show).collect()
    }

    #[test]
    fn programs_are_found_where_they_may_run() {
        for (text, found) in [
            ("make all", &["make@/w"][..]),
            ("cd sub && make", &["make@/w,/w/sub"]),
            ("cd /c; y", &["y@/w,/c"]),
            ("(cd a; x); y", &["x@/w,/w/a", "y@/w"]),
            ("command cd a; x", &["cd@/w", "x@/w,/w/a"]),
            ("cd $PWD/a; x", &["x@/w,/w/a"]),
            ("cd nowhere; cd a; x", &["x@/w,/w/nowhere,/w/a,/w/nowhere/a"]),
            ("cd && x", &["x@/w,/home/a"]),
            ("git -C a status", &["git@/w,/w/a"]),
            ("echo hi; [ -f x ] && true", &[]),
            ("env echo hi", &["env@/w", "echo@/w"]),
            ("bash -c 'echo hi; make'", &["bash@/w", "make@/w"]),
            ("ssh host make", &["ssh@/w"]),
            // Where `$X` is empty, the word after it is the program.
            ("$X a; ls *", &["a@/w", "ls@/w"]),
            ("source x.sh; . y.sh", &["source@/w", ".@/w"]),
        ] {
            assert_eq!(calls(text), found, "{text}");
        }
        for text in ["cd \"$D\" && x", "cd a*; x", "cd -; x", "OLDPWD=a; cd -; x", "git -C a* status", "cd ~b; x"] {
            assert!(calls(text).iter().all(|call| call.ends_with(",?")), "{text}: {:?}", calls(text));
        }
    }

    #[test]
    fn without_a_shell_the_first_word_is_a_program() {
        assert_eq!(reading("echo hi", true).calls.len(), 1);
        assert_eq!(reading("bash -c 'echo hi'", true).calls.len(), 1);
    }

    #[test]
    fn a_path_of_its_own_is_seen() {
        for text in ["PATH=/x make", "export PATH=/x:$PATH; make", "env PATH=/x make", "PATH=$HOME/x; make"] {
            assert!(reading(text, false).sets_path, "{text}");
        }
        assert!(!reading("MYPATH=/x make; echo PATH", false).sets_path);
    }
}
