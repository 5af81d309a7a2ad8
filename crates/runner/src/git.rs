//! What a repository's own configuration makes `git` run. The files are read here; no `git` is started for it, since
//! that would already run some of it. The person's own configuration is theirs and not looked at.

mod config;
mod index;
mod settings;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use countersign_shell::Project;

use crate::environment::Inherited;
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
pub(crate) fn helpers(reading: &Reading, inherited: &Inherited) -> Vec<String> {
    let obeys = |call: &&Call| call.name() == "git" || call.obeys.iter().any(|project| project == Project::Git);
    let calls: Vec<&Call> = reading.calls.iter().filter(obeys).collect();
    let mut found = Found { home: inherited.get("HOME"), ..Found::default() };
    let mut folders: BTreeSet<&Path> = BTreeSet::new();
    for call in &calls {
        folders.extend(call.folders.iter().map(PathBuf::as_path));
        let asked = Asked::read(call);
        found.subcommands.extend(asked.subcommand);
        for folder in &call.folders {
            asked.git_folders.iter().for_each(|git| found.git_folder(&folder.join(git)));
            inherited.get("GIT_DIR").into_iter().for_each(|named| found.git_folder(&folder.join(named)));
        }
    }
    folders.iter().filter_map(|folder| repository(folder)).for_each(|git| found.git_folder(&git));
    found.sentences.truncate(MAX_SENTENCES);
    found.sentences
}

/// What one call says beside where it runs.
#[derive(Default)]
struct Asked {
    git_folders: Vec<PathBuf>,
    subcommand: Option<String>,
}

impl Asked {
    fn read(call: &Call) -> Self {
        let mut asked = Self::default();
        let mut words = call.texts();
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
            if let ("--git-dir", Some(value)) = (option, value) {
                asked.git_folders.push(PathBuf::from(value));
            }
        }
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

/// The git folder of exactly this directory.
fn repository_at(folder: &Path) -> Option<PathBuf> {
    let git = folder.join(".git");
    if git.is_file() { linked(&git) } else { git.is_dir().then_some(git) }
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
        self.links(&git, 0);
    }

    /// Repositories that lie in the work tree and are entered by `status` and `diff`: each has a folder of its own.
    fn links(&mut self, git: &Path, depth: usize) {
        let Some(tree) = git.file_name().filter(|name| *name == ".git").and(git.parent()) else {
            // Where the work tree is elsewhere, so are they: a link at all is one too many.
            if index::links(&git.join("index")).is_ok_and(|links| links.is_empty()) {
                return;
            }
            return self.say(format!(
                "`git` here works with repositories inside `{}`, which were not looked at",
                git.display()
            ));
        };
        let links = match index::links(&git.join("index")) {
            Ok(links) => links,
            Err(why) => return self.say(format!("the index of `{}` {why}", git.display())),
        };
        for link in links {
            let Some(inner) = repository_at(&tree.join(&link)) else { continue };
            if depth > MAX_INCLUDES || self.seen.len() > MAX_FILES {
                return self.say(format!("`{link}` is one repository too many to look at"));
            }
            self.config(&inner.join("config"), 0);
            self.config(&inner.join("config.worktree"), 0);
            self.links(&inner, depth + 1);
        }
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
