//! What is no longer as it was when a person said yes.

use std::fmt;

use countersign_model::{Binding, BoundFile, BoundProgram};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Names or values of the inherited environment.
    Environment,
    /// Another directory lies where the command would run.
    Folder { path: String },
    /// A program word starts another file, or none.
    Program { word: String, now: Option<String> },
    /// A file holds something else, or was replaced.
    Contents { path: String },
    /// A file is gone.
    Gone { path: String },
    /// A file that was not there is given to a program to run.
    Appeared { path: String },
    /// A repository makes `git` run something that it did not.
    Helper(String),
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Environment => f.write_str("the inherited environment is another one"),
            Self::Folder { path } => write!(f, "the working directory `{path}` is another one"),
            Self::Program { word, now: Some(now) } => write!(f, "`{word}` is now `{now}`"),
            Self::Program { word, now: None } => write!(f, "`{word}` is not found any more"),
            Self::Contents { path } => write!(f, "the contents of `{path}` changed"),
            Self::Gone { path } => write!(f, "`{path}` is gone"),
            Self::Appeared { path } => write!(f, "`{path}` would be run too, and was not there"),
            Self::Helper(sentence) => f.write_str(sentence),
        }
    }
}

/// What differs between the binding that was approved and what is there now.
pub(crate) fn changes(approved: &Binding, now: &Binding) -> Vec<Change> {
    let mut found = Vec::new();
    if !approved.environment.ct_eq(&now.environment) {
        found.push(Change::Environment);
    }
    if approved.folder != now.folder {
        found.push(Change::Folder { path: approved.folder.path.clone() });
    }
    if let Some(shell) = &approved.shell {
        found.extend(file_change(shell, now.shell.as_ref()));
    }
    let pinned = approved.programs.iter().filter(|program| program.file.pinned);
    found.extend(pinned.filter_map(|program| program_change(program, now)));
    found.extend(meanwhile(approved, now));
    let new = |word: &str| !approved.programs.iter().any(|program| program.word == word);
    for program in now.programs.iter().filter(|program| new(&program.word)) {
        found.push(Change::Program { word: program.word.clone(), now: Some(program.file.path.clone()) });
    }
    let new = |path: &str| !approved.scripts.iter().any(|script| script.path == path);
    for script in now.scripts.iter().filter(|script| new(&script.path)) {
        found.push(Change::Appeared { path: script.path.clone() });
    }
    let helpers = now.helpers.iter().filter(|helper| !approved.helpers.contains(helper));
    found.extend(helpers.map(|helper| Change::Helper(helper.clone())));
    found
}

/// Of what was approved and could not be pinned: what is another now.
pub(crate) fn meanwhile(approved: &Binding, now: &Binding) -> Vec<Change> {
    let programs = approved.programs.iter().filter(|program| !program.file.pinned);
    let mut found: Vec<_> = programs.filter_map(|program| program_change(program, now)).collect();
    for script in &approved.scripts {
        found.extend(file_change(script, now.scripts.iter().find(|now| now.path == script.path)));
    }
    found
}

fn program_change(before: &BoundProgram, now: &Binding) -> Option<Change> {
    let after = now.programs.iter().find(|program| program.word == before.word).map(|program| &program.file);
    match after {
        Some(after) if after.path == before.file.path => file_change(&before.file, Some(after)),
        other => Some(Change::Program { word: before.word.clone(), now: other.map(|file| file.path.clone()) }),
    }
}

fn file_change(before: &BoundFile, after: Option<&BoundFile>) -> Option<Change> {
    let Some(after) = after else { return Some(Change::Gone { path: before.path.clone() }) };
    // Written anew with the same bytes is the same; without a digest only the very same file is.
    let same = match (&before.digest, &after.digest) {
        (Some(before), Some(after)) => before.ct_eq(after),
        _ => before.id == after.id,
    };
    (!same || before.pinned != after.pinned || before.path != after.path)
        .then(|| Change::Contents { path: before.path.clone() })
}
