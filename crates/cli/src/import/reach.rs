//! How far an entry really reaches, found out by asking the engine that will judge by it: an import must not promise
//! what no entry does, nor let in a program that runs whatever it is given.

use countersign_shell::{Coverage, Entry, Offer, Options, Resolve, Risk, assess, cover};

use super::line::{Change, Wish};
use super::pattern::{Pattern, Word};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// As it reads.
    Whole,
    /// Not for all that it reads like.
    Part(String),
    /// For nothing at all.
    Nothing(String),
    /// For any code that an agent cares to write.
    Anything(String),
}

/// Where an entry with a wildcard for its program is tried.
const RUNNERS: [&str; 18] = [
    "bash",
    "sh",
    "zsh",
    "dash",
    "ksh",
    "fish",
    "python3",
    "python",
    "node",
    "deno",
    "bun",
    "perl",
    "ruby",
    "php",
    "lua",
    "pwsh",
    "Rscript",
    "osascript",
];
const FOLDERS: [&str; 5] = ["/usr/bin", "/bin", "/usr/local/bin", "/opt/homebrew/bin", "/usr/sbin"];
const PROBE: &str = "probe";

/// What becomes of a pattern that is to allow something. `why`: how it is less than the source already.
pub fn allow(pattern: &Pattern, why: Option<String>, to: impl Fn(String) -> Change) -> Wish {
    let mut whys: Vec<String> = why.into_iter().collect();
    match reach(pattern) {
        Reach::Whole => {}
        Reach::Part(part) => whys.push(part),
        Reach::Nothing(why) | Reach::Anything(why) => return Wish::Refuse(why),
    }
    if pattern.program().is_some_and(|program| program.example().contains('/')) {
        whys.push("counts where the gate itself sees which file is started; over HTTP it covers nothing".to_owned());
    }
    let why = (!whys.is_empty()).then(|| whys.join("; "));
    Wish::Change { changes: vec![to(pattern.spell())], why }
}

pub fn reach(pattern: &Pattern) -> Reach {
    let text = pattern.spell();
    let (Some(entry), Some(program)) = (Entry::parse(&text), pattern.program()) else {
        return Reach::Nothing("it is no entry".to_owned());
    };
    match program.known() {
        Some(name) if name.contains('/') && !name.starts_with('/') => {
            let why = "a path that is not absolute is no file that an entry could mean; write the whole path";
            Reach::Nothing(why.to_owned())
        }
        Some(name) => known(pattern, &entry, &name),
        None => wild(pattern, &entry, program),
    }
}

fn known(pattern: &Pattern, entry: &Entry, name: &str) -> Reach {
    if runs_scripts(pattern, entry, name) {
        return Reach::Anything(format!(
            "it would cover any script given to `{name}`; allow the script instead, as in `{name} tools/check **`"
        ));
    }
    let covered: Vec<bool> =
        endings(pattern).iter().map(|ending| covers(entry, &argv(pattern, name, ending))).collect();
    let (all, some) = (covered.iter().all(|covered| *covered), covered.contains(&true));
    if all {
        Reach::Whole
    } else if some && !runs_what_it_is_given(name) {
        Reach::Part(format!("not where `{name}` is told to run something else"))
    } else {
        Reach::Nothing(format!(
            "it would cover nothing: what `{name}` does here is dangerous or runs another command, and only an entry \
             of exactly its words, or one for the command inside, speaks for that"
        ))
    }
}

fn wild(pattern: &Pattern, entry: &Entry, program: &Word) -> Reach {
    let by_path = program.example().contains('/');
    let folders: &[&str] = if by_path { &FOLDERS } else { &[""] };
    // `python3.*` fits no plain name and is an interpreter's all the same.
    let start = program.start();
    let start = start.rsplit('/').next().unwrap_or_default();
    for runner in RUNNERS {
        let version =
            start.strip_prefix(runner).filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit() || c == '.'));
        let version = version.map(|_| format!("{start}0"));
        for folder in folders {
            for name in [Some(runner), version.as_deref()].into_iter().flatten() {
                let name = if by_path { format!("{folder}/{name}") } else { name.to_owned() };
                // Asking the engine costs more than seeing that the name does not fit.
                if program.may_be(&name) && runs_scripts(pattern, entry, &name) {
                    return Reach::Anything(format!("it would cover `{name}` too, with any script"));
                }
            }
        }
    }
    Reach::Whole
}

/// Whether the entry leaves open which script a shell or an interpreter is given.
fn runs_scripts(pattern: &Pattern, entry: &Entry, name: &str) -> bool {
    let arguments = || pattern.words.iter().skip(1);
    let given = arguments().any(|word| !word.is_wild() && !word.starts_with('-'));
    let any = pattern.open || pattern.is_bare() || arguments().any(Word::is_wild);
    !given
        && any
        && runs_what_it_is_given(name)
        && endings(pattern).iter().all(|ending| covers(entry, &argv(pattern, name, ending)))
}

/// Shells, interpreters and wrappers: the engine offers no entry for these.
fn runs_what_it_is_given(name: &str) -> bool {
    let probe = assess(&line(&[name.to_owned(), PROBE.to_owned()]), &options(None));
    matches!(probe.record().offer(Risk::NeedsReview, false), Offer::Refused(_))
}

/// What may follow the words: of a wrapper, two are needed for there to be a command inside.
fn endings(pattern: &Pattern) -> &'static [&'static [&'static str]] {
    if pattern.is_bare() || pattern.open { &[&[PROBE], &[PROBE, PROBE]] } else { &[&[]] }
}

/// A command that the pattern reads like, with this program.
fn argv(pattern: &Pattern, program: &str, ending: &[&str]) -> Vec<String> {
    let words = pattern.words.iter().skip(1).map(Word::example);
    [program.to_owned()].into_iter().chain(words).chain(ending.iter().map(|word| (*word).to_owned())).collect()
}

fn covers(entry: &Entry, argv: &[String]) -> bool {
    // Every program is where the entry would have it.
    let itself = |word: &str| word.starts_with('/').then(|| word.to_owned());
    let options = options(Some(&itself));
    cover(&assess(&line(argv), &options), std::slice::from_ref(entry), false, &options) == Coverage::Covered
}

fn options<'r>(resolve: Option<&'r Resolve<'r>>) -> Options<'r> {
    Options { resolve, ..Options::default() }
}

fn line(argv: &[String]) -> String {
    let quoted: Vec<String> = argv.iter().map(|word| format!("'{}'", word.replace('\'', r"'\''"))).collect();
    quoted.join(" ")
}

#[cfg(test)]
mod tests {
    use super::super::pattern::{Star, words};
    use super::*;

    fn reached(text: &str) -> Reach {
        let open = text.ends_with(" **");
        if text.starts_with('/') && !text.contains(' ') {
            return reach(&Pattern { words: vec![Word::glob(text)], open });
        }
        let words = words(text.trim_end_matches(" **"), Star::Wild).unwrap();
        reach(&Pattern { words, open })
    }

    #[test]
    fn plain_entries_reach_what_they_read_like() {
        for text in [
            "git **",
            "npm run test **",
            "npm ci --silent",
            "cargo build *",
            "/usr/bin/git",
            "git",
            "make **",
            "rm -rf ./build",
            "python3 tools/check.py **",
            "bash scripts/ci.sh",
            "bash -c 'npm ci'",
            "sudo npm ci",
            "npm*",
            "/home/ann/bin/*",
            "* --version",
        ] {
            assert_eq!(reached(text), Reach::Whole, "{text}");
        }
    }

    #[test]
    fn what_runs_any_script_is_known_for_it() {
        for text in [
            "bash **",
            "bash",
            "sh *",
            "python3 **",
            "python -u **",
            "node *",
            "/usr/bin/python3",
            "/bin/bash **",
            "/usr/bin/*",
            "/usr/**",
            "py* **",
            "* **",
            "b*",
            "*",
            "perl **",
            "python3.* **",
            "/usr/bin/python3.*",
            "php*",
            "/**",
        ] {
            assert!(matches!(reached(text), Reach::Anything(_)), "{text}: {:?}", reached(text));
        }
    }

    #[test]
    fn what_covers_nothing_is_not_promised() {
        for text in [
            "sudo **",
            "env **",
            "xargs **",
            "timeout **",
            "doas *",
            "./x.sh **",
            "bin/x",
            "mkfs.ext4 **",
            "sudo npm **",
        ] {
            assert!(matches!(reached(text), Reach::Nothing(_)), "{text}: {:?}", reached(text));
        }
        for text in ["docker run **", "kubectl exec **"] {
            assert!(matches!(reached(text), Reach::Part(_)), "{text}: {:?}", reached(text));
        }
    }
}
