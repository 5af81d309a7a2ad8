//! Where the text has gone with `cd`: a relative path means something else there, and a program finds other project
//! files. Owns no judgement of either.
//!
//! A `cd` may fail, and then the shell stays where it is. So every folder that a command may run in is kept: what is
//! said of a command must hold in all of them.

use std::rc::Rc;

use crate::command::RunsIn;
use crate::word::{Dynamic, Source, Value, Word};

/// Builtins that change the folder.
pub(super) const MOVERS: &[&str] = &["cd", "pushd", "popd"];
/// Variables that say where a mover leads.
pub(super) const STEERING: &[&str] = &["CDPATH", "DIRSTACK", "HOME", "OLDPWD", "PWD"];
/// More folders than this at once, or longer ones, are not followed: then it is not known where a command runs.
const MAX_FOLDERS: usize = 16;
const MAX_LENGTH: usize = 512;

/// The folders that commands may run in.
#[derive(Clone, Debug, Default)]
pub(super) struct Folders {
    /// With the one the text starts in where that is known; where it is not, commands may run there too.
    now: Vec<Rc<str>>,
    /// Every folder so far: `cd -` and `popd` go back to any of them.
    been: Vec<Rc<str>>,
    /// Nothing has moved yet, so `cd -` leads where the environment says.
    still: bool,
    /// They may run anywhere.
    unknown: bool,
}

impl Folders {
    /// `start`: the folder the text starts in, absolute, where it is known.
    pub(super) fn starting_in(start: Option<&str>) -> Self {
        let now: Vec<Rc<str>> = start.map(|folder| normal(folder).into()).into_iter().collect();
        Self { been: now.clone(), now, still: true, unknown: false }
    }

    pub(super) fn all(&self) -> &[Rc<str>] {
        &self.now
    }

    pub(super) fn are_unknown(&self) -> bool {
        self.unknown
    }

    pub(super) fn runs_in(&self) -> RunsIn {
        RunsIn { folders: self.now.clone(), unknown: self.unknown }
    }

    /// From here on it is not known where commands run.
    pub(super) fn lose(&mut self) {
        self.unknown = true;
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
            self.unknown |= self.still;
            self.now = self.been.clone();
            return;
        }
        let moved = match operand {
            Some(word) => self.targets(word),
            None => vec!["~".to_owned()],
        };
        self.enter(&moved);
    }

    /// One of these, whichever.
    pub(super) fn enter_any(&mut self, words: &[Word]) {
        let moved: Vec<String> = words.iter().flat_map(|word| self.targets(word)).collect();
        if !moved.is_empty() {
            self.enter(&moved);
        }
    }

    /// What is handed over may lie below these; commands still run where they did.
    pub(super) fn may_hold(&mut self, roots: &[Word]) {
        let unknown = self.unknown;
        self.enter_any(roots);
        self.unknown = unknown;
    }

    fn enter(&mut self, targets: &[String]) {
        self.still = false;
        let before = self.now.clone();
        for target in targets.iter().filter(|target| !target.is_empty()) {
            if is_rooted(target) || before.is_empty() {
                self.add(target);
            }
            if !is_rooted(target) {
                for folder in &before {
                    self.add(&joined(folder, target));
                }
                // Where the start is not known, it is none of these.
                if !before.iter().any(|folder| is_rooted(folder)) {
                    self.add(target);
                }
            }
        }
    }

    /// A step up is taken from the path as it was typed, or, with `-P` or where that leads nowhere, from where a link
    /// leads: both are meant.
    fn add(&mut self, folder: &str) {
        let typed = normal(folder);
        if typed != folder && folder.split('/').any(|step| step == "..") {
            self.keep(folder);
        }
        self.keep(&typed);
    }

    fn keep(&mut self, folder: &str) {
        let folder: Rc<str> = folder.into();
        self.unknown |= !add(&mut self.now, folder.clone());
        self.unknown |= !add(&mut self.been, folder);
    }

    /// After a branch that may or may not have run.
    pub(super) fn join(&mut self, before: &Self) {
        self.unknown |= before.unknown;
        self.still &= before.still;
        for folder in &before.now {
            self.unknown |= !add(&mut self.now, folder.clone());
        }
        for folder in &before.been {
            self.unknown |= !add(&mut self.been, folder.clone());
        }
    }

    /// What a word may mean as a folder. Where that is not all that it may mean, it is unknown from now on; what it
    /// looks like is kept all the same, since that may be a secret's folder.
    fn targets(&mut self, word: &Word) -> Vec<String> {
        let picture = word.picture();
        match &word.value {
            Value::Known(text) => {
                // `~+`, `~1`, `~name`: what they mean is for the shell to know.
                self.unknown |= text.starts_with('~') && !text.starts_with("~/") && text != "~";
                vec![picture]
            }
            Value::Glob(_) => {
                self.unknown = true;
                vec![picture]
            }
            Value::Dynamic(dynamic) => self.dynamic(dynamic, picture),
        }
    }

    fn dynamic(&mut self, dynamic: &Dynamic, picture: String) -> Vec<String> {
        let Dynamic { prefix, suffix, sources, .. } = dynamic;
        self.unknown |= [prefix, suffix].iter().any(|text| text.contains(['*', '?', '[', '{']));
        match sources.as_slice() {
            [Source::Variable(name)] if name == "PWD" && prefix.is_empty() => {
                let below = suffix.trim_start_matches('/');
                // `$PWD-x` is a folder beside this one.
                self.unknown |= below.len() == suffix.len() && !suffix.is_empty();
                vec![below.to_owned()]
            }
            [Source::Variable(name)] if name == "HOME" && prefix.is_empty() => vec![picture],
            _ => {
                let listed = |source: &Source| match source {
                    Source::OneOf(texts) => texts.iter().all(|text| !text.contains(['*', '?', '[', '~'])),
                    _ => false,
                };
                self.unknown |= !sources.iter().all(listed);
                let texts = super::substitutions::alternatives(sources).into_iter();
                let mut all: Vec<String> = texts.map(|text| format!("{prefix}{text}{suffix}")).collect();
                all.push(picture);
                all
            }
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
        } else if !(step == ".." && steps.is_empty() && path.starts_with('/')) {
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
