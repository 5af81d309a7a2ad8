//! Which files a call hands to a program to run: `bash x.sh`, `python3 tool.py`, `source x`, a `Makefile`.

use crate::lookup::{Hit, Lookup};
use crate::reading::{Call, CallKind};

const INTERPRETERS: &[&str] = &[
    "ash",
    "awk",
    "bash",
    "bun",
    "csh",
    "dash",
    "deno",
    "expect",
    "fish",
    "gawk",
    "guile",
    "java",
    "julia",
    "ksh",
    "lua",
    "mawk",
    "mksh",
    "node",
    "nodejs",
    "nu",
    "osascript",
    "perl",
    "php",
    "pwsh",
    "pypy",
    "python",
    "R",
    "rbash",
    "Rscript",
    "ruby",
    "sed",
    "sh",
    "tclsh",
    "tcsh",
    "ts-node",
    "tsx",
    "uv",
    "wish",
    "zsh",
];
/// Their program is an argument unless `-f` names a file.
const FILE_OPTION_ONLY: &[&str] = &["awk", "gawk", "mawk", "sed"];
/// After one of these the code is in the words, not in a file.
const CODE: &[&str] = &["-c", "-e", "-E", "-m", "-p", "-r", "--eval", "--print", "-pe", "-ne", "-command", "-Command"];
/// Where the option means a file to load first.
const LOADING: &[(&str, &[&str])] = &[("node", &["-r", "--require", "--import"]), ("tsx", &["-r", "--require"])];
const SUBCOMMANDS: &[&str] = &["run", "test", "exec"];

/// Programs that run what a file of this name says, the first one that is there.
const RECIPES: &[(&str, &[&str])] = &[
    ("make", &["GNUmakefile", "makefile", "Makefile"]),
    ("gmake", &["GNUmakefile", "makefile", "Makefile"]),
    ("just", &["justfile", "Justfile", ".justfile"]),
    ("ninja", &["build.ninja"]),
    ("rake", &["rakefile", "Rakefile", "rakefile.rb", "Rakefile.rb"]),
    ("task", &["Taskfile.yml", "taskfile.yml", "Taskfile.yaml", "taskfile.yaml"]),
];
const PACKAGE_RUNNERS: &[&str] = &["npm", "pnpm", "yarn"];
const PACKAGE_VERBS: &[&str] = &["run", "run-script", "start", "stop", "restart", "test", "t"];

pub(crate) fn scripts(call: &Call, lookup: &Lookup<'_>) -> Vec<Hit> {
    let words: Vec<&str> = call.texts().map_while(|word| word).collect();
    let found = match call.kind {
        CallKind::Source => words.first().and_then(|word| lookup.sourced(word)).into_iter().collect(),
        CallKind::Program => of_program(call.name(), &words, lookup),
    };
    found.into_iter().filter(|hit| hit.path.is_file()).collect()
}

fn of_program(name: &str, words: &[&str], lookup: &Lookup<'_>) -> Vec<Hit> {
    if let Some((_, names)) = RECIPES.iter().find(|(program, _)| *program == name) {
        return recipe(names, words, lookup);
    }
    if PACKAGE_RUNNERS.contains(&name) && words.first().is_some_and(|word| PACKAGE_VERBS.contains(word)) {
        return vec![lookup.place("package.json")];
    }
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
    let interpreter = [name, plain].into_iter().find(|name| INTERPRETERS.contains(name));
    interpreter.map(|interpreter| operands(interpreter, words, lookup)).unwrap_or_default()
}

/// `-f FILE` and `-C DIR` in their spellings, else the first default name that is there.
fn recipe(names: &[&str], words: &[&str], lookup: &Lookup<'_>) -> Vec<Hit> {
    let (mut files, mut folder) = (Vec::new(), None);
    let mut rest = words.iter().copied();
    while let Some(word) = rest.next() {
        let value = |options: &[&str], rest: &mut dyn Iterator<Item = &'_ str>| {
            let attached = options.iter().find_map(|option| {
                let after = word.strip_prefix(option)?;
                match (option.starts_with("--"), after.strip_prefix('=')) {
                    (_, Some(value)) => Some(value.to_owned()),
                    (false, None) if !after.is_empty() => Some(after.to_owned()),
                    _ => None,
                }
            });
            attached.or_else(|| options.contains(&word).then(|| rest.next().map(str::to_owned)).flatten())
        };
        if let Some(file) = value(&["-f", "--file", "--makefile", "--justfile", "--rakefile"], &mut rest) {
            files.push(file);
        } else if let Some(place) = value(&["-C", "--directory", "--working-directory"], &mut rest) {
            folder = Some(place);
        }
    }
    let within = |name: &str| folder.as_ref().map_or(name.to_owned(), |folder| format!("{folder}/{name}"));
    if files.is_empty() {
        let defaults = names.iter().map(|name| lookup.place(&within(name)));
        return defaults.into_iter().find(|hit| hit.path.is_file()).into_iter().collect();
    }
    files.iter().map(|file| lookup.place(&within(file))).collect()
}

/// The file an interpreter is told to run, and those that its options name before it. Which options take a value is
/// not known here, so a word after an option is taken for either: a file too many is only checked too.
fn operands(interpreter: &str, words: &[&str], lookup: &Lookup<'_>) -> Vec<Hit> {
    let loading = LOADING.iter().find(|(name, _)| *name == interpreter).map_or(&[][..], |(_, options)| options);
    let by_option_only = FILE_OPTION_ONLY.contains(&interpreter);
    let (mut found, mut after_option) = (Vec::new(), false);
    let mut words = words.iter().copied();
    while let Some(word) = words.next() {
        if word == "--" {
            found.extend(words.next().filter(|_| !by_option_only).map(|word| lookup.place(word)));
            break;
        }
        if by_option_only {
            let value = match word.strip_prefix("-f").or_else(|| word.strip_prefix("--file")) {
                Some("") => words.next(),
                Some(value) => Some(value.strip_prefix('=').unwrap_or(value)),
                None => None,
            };
            found.extend(value.map(|value| lookup.place(value)));
            continue;
        }
        if word.starts_with('-') && word.len() > 1 {
            if CODE.contains(&word) && !loading.contains(&word) {
                break;
            }
            found.extend(word.split_once('=').map(|(_, value)| lookup.place(value)));
            after_option = true;
            continue;
        }
        if SUBCOMMANDS.contains(&word) && matches!(interpreter, "bun" | "deno" | "uv") {
            continue;
        }
        found.push(lookup.place(word));
        if !after_option {
            break;
        }
        after_option = false;
    }
    found
}
