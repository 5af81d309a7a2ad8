//! What a repository's own configuration makes `git` run. The files are read here; no `git` is started for it, since
//! that would already run some of it. The person's own configuration is theirs and not looked at.

mod config;
mod settings;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::environment::Inherited;
use crate::folder::Folder;
use crate::reading::{Call, Reading};

/// Configuration files one inside the other.
const MAX_INCLUDES: usize = 8;
/// Files looked at in all: submodules and includes can be many.
const MAX_FILES: usize = 128;
const MAX_BYTES: u64 = 1024 * 1024;
const MAX_SENTENCES: usize = 64;
const MAX_VALUE: usize = 120;
/// Run by commands that only read, after they bring the index up to date.
const READING_HOOKS: &[&str] = &["post-index-change"];
/// Options of `git` itself that take the next word.
const VALUED: &[&str] = &["-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--super-prefix"];

/// One sentence for each setting that runs a program.
pub(crate) fn helpers(folder: &Folder, reading: &Reading, inherited: &Inherited) -> Vec<String> {
    let calls: Vec<&Call> = reading.calls.iter().filter(|call| call.name() == "git").collect();
    if calls.is_empty() {
        return Vec::new();
    }
    let mut found = Found { home: inherited.get("HOME"), ..Found::default() };
    let mut folders = BTreeSet::from([folder.path.clone()]);
    for call in &calls {
        let here = folder.path.join(call.place.as_deref().unwrap_or(Path::new("")));
        let mut asked = Asked::read(call, &here);
        folders.append(&mut asked.folders);
        found.subcommands.extend(asked.subcommand);
        asked.git_folders.into_iter().for_each(|git| found.git_folder(&git));
    }
    if let Some(named) = inherited.get("GIT_DIR") {
        found.git_folder(&folder.path.join(named));
    }
    folders.iter().filter_map(|folder| repository(folder)).for_each(|git| found.git_folder(&git));
    found.sentences.truncate(MAX_SENTENCES);
    found.sentences
}

/// What one call says of where it looks, and what it does.
#[derive(Default)]
struct Asked {
    folders: BTreeSet<PathBuf>,
    git_folders: Vec<PathBuf>,
    subcommand: Option<String>,
}

impl Asked {
    fn read(call: &Call, here: &Path) -> Self {
        let mut asked = Self::default();
        let mut here = here.to_path_buf();
        let mut words = call.arguments.iter().map(|word| word.as_deref());
        while let Some(Some(word)) = words.next() {
            let (option, attached) = match word.split_once('=') {
                Some((option, value)) if option.starts_with("--") => (option, Some(value)),
                _ => (word, None),
            };
            if !option.starts_with('-') {
                asked.subcommand = Some(option.to_owned());
                break;
            }
            let value = match attached {
                Some(value) => Some(value),
                None if VALUED.contains(&option) => words.next().flatten(),
                None => None,
            };
            match (option, value) {
                ("-C", Some(value)) => here = here.join(value),
                ("--git-dir", Some(value)) => asked.git_folders.push(here.join(value)),
                _ => {}
            }
        }
        asked.folders.insert(here);
        asked
    }
}

/// The git folder that a command in this directory uses: the nearest one upwards.
fn repository(folder: &Path) -> Option<PathBuf> {
    let folder = fs::canonicalize(folder).ok()?;
    folder.ancestors().find_map(|level| {
        let git = level.join(".git");
        if git.is_file() {
            return linked(&git);
        }
        let bare = |place: &Path| place.join("HEAD").exists() && place.join("objects").is_dir();
        [git, level.to_path_buf()].into_iter().find(|place| bare(place) || place.ends_with(".git") && place.is_dir())
    })
}

/// The folder that a `.git` file names: a worktree's or a submodule's.
fn linked(file: &Path) -> Option<PathBuf> {
    let text = contents(file).ok()?;
    let named = text.strip_prefix("gitdir:")?.trim();
    Some(file.parent()?.join(named))
}

fn contents(path: &Path) -> std::io::Result<String> {
    if !path.is_file() {
        return Err(std::io::ErrorKind::NotFound.into());
    }
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(std::io::Error::other("it is over 1 MiB"));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[derive(Default)]
struct Found<'f> {
    home: Option<&'f OsStr>,
    /// What the calls do, by their words: an alias among them runs something else.
    subcommands: Vec<String>,
    seen: BTreeSet<PathBuf>,
    sentences: Vec<String>,
}

impl Found<'_> {
    fn git_folder(&mut self, git: &Path) {
        let git = fs::canonicalize(git).unwrap_or_else(|_| git.to_path_buf());
        // A worktree keeps little of its own.
        let common = contents(&git.join("commondir")).ok().map(|text| git.join(text.trim()));
        let common = common.and_then(|path| fs::canonicalize(path).ok()).unwrap_or_else(|| git.clone());
        self.config(&common.join("config"), 0);
        self.config(&git.join("config.worktree"), 0);
        for hook in READING_HOOKS.iter().map(|hook| common.join("hooks").join(hook)).filter(|hook| hook.is_file()) {
            self.say(format!("`git` here runs the hook `{}`", hook.display()));
        }
        self.submodules(&common.join("modules"), 0);
    }

    /// `status` and `diff` look into submodules, each with a configuration of its own.
    fn submodules(&mut self, folder: &Path, depth: usize) {
        let Ok(entries) = fs::read_dir(folder) else { return };
        for entry in entries.filter_map(Result::ok).map(|entry| entry.path()).filter(|path| path.is_dir()) {
            if depth > MAX_INCLUDES || self.seen.len() > MAX_FILES {
                return;
            }
            if entry.join("HEAD").exists() {
                self.config(&entry.join("config"), 0);
                self.submodules(&entry.join("modules"), depth + 1);
            } else {
                self.submodules(&entry, depth + 1);
            }
        }
    }

    fn config(&mut self, file: &Path, depth: usize) {
        if !file.exists() || !self.seen.insert(file.to_path_buf()) {
            return;
        }
        if depth > MAX_INCLUDES || self.seen.len() > MAX_FILES {
            return self.say(format!("`{}` is one configuration too many to look at", file.display()));
        }
        let text = match contents(file) {
            Ok(text) => text,
            Err(error) => return self.say(format!("`{}` could not be looked at: {error}", file.display())),
        };
        let parsed = config::parse(&text);
        if let Some(line) = parsed.broken_at {
            self.say(format!("`{}` could not be understood at line {line}", file.display()));
        }
        for entry in &parsed.entries {
            if entry.is_include() {
                self.include(file, &entry.value, depth);
            } else if settings::runs(entry, &self.subcommands) {
                let value = shortened(&entry.value);
                self.say(format!("`git` here runs `{value}`: `{}` in `{}`", entry.name(), file.display()));
            }
        }
    }

    fn include(&mut self, from: &Path, named: &str, depth: usize) {
        let path = match (named.strip_prefix("~/"), self.home) {
            (Some(rest), Some(home)) => Path::new(home).join(rest),
            _ => from.parent().unwrap_or(Path::new("/")).join(named),
        };
        // Whatever its condition: it may hold when the command runs.
        self.config(&path, depth + 1);
    }

    fn say(&mut self, sentence: String) {
        if !self.sentences.contains(&sentence) {
            self.sentences.push(sentence);
        }
    }
}

fn shortened(value: &str) -> String {
    let mut short: String = value.chars().take(MAX_VALUE).collect();
    if short.len() < value.len() {
        short.push('…');
    }
    short
}
