//! Where the text has gone with `cd`: a relative path means something else there. Owns no judgement of paths.

use std::rc::Rc;

use crate::word::{Source, Value, Word};

use super::substitutions::alternatives;

/// Builtins that change the folder.
pub(super) const MOVERS: &[&str] = &["cd", "pushd", "popd"];
/// More folders than this at once, or longer ones, are not followed: then it is not known where a path leads.
const MAX_FOLDERS: usize = 8;
const MAX_LENGTH: usize = 256;

/// The folders that commands may run in, besides the one the text starts in.
#[derive(Clone, Debug, Default)]
pub(super) struct Folders {
    now: Vec<Rc<str>>,
    /// Every folder so far: `cd -` and `popd` go back to any of them.
    been: Vec<Rc<str>>,
    /// It is not known any more where commands run.
    lost: bool,
}

impl Folders {
    pub(super) fn all(&self) -> &[Rc<str>] {
        &self.now
    }

    pub(super) fn are_lost(&self) -> bool {
        self.lost
    }

    pub(super) fn go(&mut self, builtin: &str, arguments: &[Word]) {
        let mut operands = arguments.iter().skip_while(|word| {
            word.known().is_some_and(|text| text.len() > 1 && text.starts_with('-') && !text.starts_with("-/"))
        });
        let operand = operands.next();
        let back = match (builtin, operand.and_then(Word::known)) {
            ("popd", _) | (_, Some("-" | "~-")) => true,
            ("pushd", Some(text)) => text.starts_with(['+', '-']),
            ("pushd", None) => operand.is_none(),
            _ => false,
        };
        if back {
            self.now = self.been.clone();
            return;
        }
        let targets = match operand {
            Some(word) => targets(word),
            None => vec!["~".to_owned()],
        };
        self.enter(&targets);
    }

    /// One of these, whichever.
    pub(super) fn enter_any(&mut self, words: &[Word]) {
        let targets: Vec<String> = words.iter().flat_map(targets).collect();
        if !targets.is_empty() {
            self.enter(&targets);
        }
    }

    fn enter(&mut self, targets: &[String]) {
        let mut now: Vec<Rc<str>> = Vec::new();
        for target in targets {
            if is_rooted(target) {
                self.lost |= !add(&mut now, normal(target).into());
                continue;
            }
            // Where nothing was entered before, this is relative to where the text starts.
            if self.now.is_empty() {
                self.lost |= !add(&mut now, normal(target).into());
            }
            for folder in &self.now {
                self.lost |= !add(&mut now, normal(&joined(folder, target)).into());
            }
        }
        self.now = now;
        for folder in &self.now {
            self.lost |= !add(&mut self.been, folder.clone());
        }
    }

    /// After a branch that may or may not have run.
    pub(super) fn join(&mut self, before: &Self) {
        self.lost |= before.lost;
        for folder in &before.now {
            self.lost |= !add(&mut self.now, folder.clone());
        }
        for folder in &before.been {
            self.lost |= !add(&mut self.been, folder.clone());
        }
    }
}

/// Adds a folder; answers whether there was room.
fn add(folders: &mut Vec<Rc<str>>, folder: Rc<str>) -> bool {
    if folders.contains(&folder) {
        return true;
    }
    let room = folders.len() < MAX_FOLDERS && folder.len() < MAX_LENGTH;
    if room {
        folders.push(folder);
    }
    room
}

/// The path without empty steps and `.`; a plain step followed by `..` goes too, so that to and fro stays short.
fn normal(path: &str) -> String {
    let mut steps: Vec<&str> = Vec::new();
    for step in path.split('/').filter(|step| !step.is_empty() && *step != ".") {
        let plain = steps.last().is_some_and(|last| *last != ".." && !last.starts_with(['~', '$']));
        if step == ".." && plain {
            steps.pop();
        } else {
            steps.push(step);
        }
    }
    match path.starts_with('/') {
        true => format!("/{}", steps.join("/")),
        false if steps.is_empty() => ".".to_owned(),
        false => steps.join("/"),
    }
}

/// Whether a path does not depend on the folder it is used in.
pub(crate) fn is_rooted(path: &str) -> bool {
    path.starts_with(['/', '~']) || path.starts_with("$HOME") || path.starts_with("${HOME}")
}

pub(crate) fn joined(folder: &str, path: &str) -> Rc<str> {
    format!("{folder}/{path}").into()
}

fn targets(word: &Word) -> Vec<String> {
    match &word.value {
        Value::Dynamic(dynamic) if dynamic.sources.iter().any(|source| matches!(source, Source::OneOf(_))) => {
            let texts = alternatives(&dynamic.sources).into_iter();
            let mut all: Vec<String> =
                texts.map(|text| format!("{}{text}{}", dynamic.prefix, dynamic.suffix)).collect();
            all.push(word.picture());
            all
        }
        _ => vec![word.picture()],
    }
}
