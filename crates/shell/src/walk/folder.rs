//! Where the text has gone with `cd`: a relative path means something else there. Owns no judgement of paths.

use std::rc::Rc;

use crate::word::{Source, Value, Word};

use super::substitutions::alternatives;

/// Builtins that change the folder.
pub(super) const MOVERS: &[&str] = &["cd", "pushd", "popd"];
/// More folders than this at once are not followed; the first ones are kept, and the unknown one.
const MAX_FOLDERS: usize = 12;
/// Longer than any path that can be entered.
const MAX_LENGTH: usize = 4096;

/// The folders that commands may run in, besides the one the text starts in.
#[derive(Clone, Debug, Default)]
pub(super) struct Folders {
    now: Vec<Rc<str>>,
    /// Every folder so far: `cd -` and `popd` go back to any of them.
    been: Vec<Rc<str>>,
}

impl Folders {
    pub(super) fn all(&self) -> &[Rc<str>] {
        &self.now
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
                add(&mut now, target.as_str().into());
                continue;
            }
            // Where nothing was entered before, this is relative to where the text starts.
            if self.now.is_empty() {
                add(&mut now, target.as_str().into());
            }
            for folder in &self.now {
                add(&mut now, joined(folder, target));
            }
        }
        self.now = now;
        for folder in &self.now {
            add(&mut self.been, folder.clone());
        }
    }

    /// After a branch that may or may not have run.
    pub(super) fn join(&mut self, before: &Self) {
        for folder in &before.now {
            add(&mut self.now, folder.clone());
        }
        for folder in &before.been {
            add(&mut self.been, folder.clone());
        }
    }
}

fn add(folders: &mut Vec<Rc<str>>, folder: Rc<str>) {
    if folders.len() < MAX_FOLDERS && folder.len() < MAX_LENGTH && !folders.contains(&folder) {
        folders.push(folder);
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
