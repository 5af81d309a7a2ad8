//! Looks at the files of a project that programs obey, and at where programs are found: what there could make a command
//! do more than its words say. Which files those are is the shell engine's knowledge (`rules/projects.toml`).

mod toolchain;

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use countersign_shell::{Harmless, Project, ProjectFile, Search, glob_matches};

use crate::environment::Inherited;
use crate::folder::Folder;
use crate::git;
use crate::lookup::Hit;
use crate::reading::Reading;

/// Longer files are not read, and not harmless.
const MAX_BYTES: u64 = 1024 * 1024;
const MAX_SENTENCES: usize = 64;
/// Directories whose files a version manager puts in the place of programs.
const STAND_INS: &[&str] = &["shims", ".volta", "volta"];

/// One sentence for each thing that is not harmless.
pub(crate) fn look(reading: &Reading, inherited: &Inherited) -> Vec<String> {
    let mut looks = Looks { inherited, seen: BTreeSet::new(), sentences: git::helpers(reading, inherited) };
    for call in &reading.calls {
        let mut projects: Vec<Project> = call.obeys.iter().collect();
        if call.only_reads && is_stand_in(&call.word, inherited) {
            projects.push(Project::VersionManager);
        }
        for project in projects {
            for folder in &call.folders {
                looks.project(&call.word, project, folder);
            }
        }
    }
    looks.sentences.truncate(MAX_SENTENCES);
    looks.sentences
}

/// Whether what this word starts is not the program but what chooses one.
fn is_stand_in(word: &str, inherited: &Inherited) -> bool {
    let search = inherited.get("PATH").map(std::env::split_paths).into_iter().flatten();
    let found = search.map(|folder| folder.join(word)).find(|file| file.is_file());
    found.is_some_and(|file| {
        file.components().any(|part| part.as_os_str().to_str().is_some_and(|name| STAND_INS.contains(&name)))
    })
}

/// What a person should know of a program that is called by its name alone: an agent could have put it there.
pub(crate) fn planted(word: &str, hit: &Hit, folder: &Folder, inherited: &Inherited) -> Option<String> {
    if word.contains('/') {
        return None;
    }
    let real = fs::canonicalize(&hit.path).ok()?;
    let home = inherited.get("HOME").map(Path::new);
    // A person who works in their home keeps programs there, too.
    let own = home.is_some_and(|home| home.starts_with(&folder.path));
    if hit.relative || (!own && real.starts_with(&folder.path)) {
        return Some(format!("`{word}` is `{}`, a file of the folder it works in", real.display()));
    }
    let open = real
        .parent()
        .and_then(|parent| parent.metadata().ok())
        .is_some_and(|meta| meta.permissions().mode() & 0o002 != 0);
    let changeable =
        fs::metadata(&real).is_ok_and(|meta| meta.permissions().mode() & 0o002 != 0 && meta.uid() != u32::MAX);
    (open || changeable).then(|| format!("`{word}` is `{}`, which anybody on this machine can change", real.display()))
}

struct Looks<'l> {
    inherited: &'l Inherited,
    seen: BTreeSet<(Project, PathBuf)>,
    sentences: Vec<String>,
}

impl Looks<'_> {
    fn project(&mut self, word: &str, project: Project, folder: &Path) {
        let Ok(folder) = fs::canonicalize(folder) else { return };
        if !self.seen.insert((project, folder.clone())) {
            return;
        }
        for file in project.files() {
            let levels: Vec<&Path> = match file.search {
                Search::Here => vec![folder.as_path()],
                Search::Upwards => folder.ancestors().collect(),
            };
            for level in levels {
                self.file(word, file, level);
            }
        }
    }

    fn file(&mut self, word: &str, file: &ProjectFile, level: &Path) {
        // The person's own settings are theirs, although they lie above the work.
        let home = self.inherited.get("HOME").map(Path::new);
        if matches!(file.harmless, Harmless::Always | Harmless::GitRepository) || home == Some(level) {
            return;
        }
        for path in present(level, file.path) {
            let why = match file.harmless {
                Harmless::Always | Harmless::GitRepository => None,
                Harmless::Absent => Some("can make it run what stands there".to_owned()),
                Harmless::Without(words) => without(&path, words),
                Harmless::PlainVersions => plain_versions(&path),
                Harmless::InstalledToolchain => toolchain::look(&path, self.inherited),
            };
            if let Some(why) = why {
                let sentence = format!("`{word}` obeys `{}`, which {why}", path.display());
                if !self.sentences.contains(&sentence) {
                    self.sentences.push(sentence);
                }
            }
        }
    }
}

/// The files of this name, which are none, one, or as many as fit a pattern. Links that lead nowhere count.
fn present(level: &Path, name: &str) -> Vec<PathBuf> {
    if !name.contains('*') {
        let path = level.join(name);
        return path.symlink_metadata().is_ok().then_some(path).into_iter().collect();
    }
    let entries = fs::read_dir(level).into_iter().flatten().filter_map(Result::ok);
    let fits = |entry: &fs::DirEntry| entry.file_name().to_str().is_some_and(|text| glob_matches(name, text));
    entries.filter(fits).map(|entry| entry.path()).collect()
}

pub(crate) fn contents(path: &Path) -> Result<String, String> {
    if !path.is_file() {
        return Err("is no plain file".to_owned());
    }
    let mut bytes = Vec::new();
    let read = fs::File::open(path).and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes));
    read.map_err(|error| format!("could not be looked at: {error}"))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err("is too long to be looked at".to_owned());
    }
    String::from_utf8(bytes).map_err(|_| "is no text".to_owned())
}

fn without(path: &Path, words: &[&str]) -> Option<String> {
    let text = match contents(path) {
        Ok(text) => text.to_lowercase(),
        Err(why) => return Some(why),
    };
    if text.contains('\\') {
        return Some("holds a backslash, by which a setting can be spelled in another way".to_owned());
    }
    words
        .iter()
        .find(|word| text.contains(**word))
        .map(|word| format!("speaks of `{word}` and can name programs to run"))
}

/// `nodejs 20.1.0`, `3.12`, `lts/iron`, `# why`.
fn plain_versions(path: &Path) -> Option<String> {
    let text = match contents(path) {
        Ok(text) => text,
        Err(why) => return Some(why),
    };
    let plain = |word: &str| {
        !word.contains("..")
            && !word.starts_with(['/', '.', '-'])
            && word.chars().all(|c| c.is_ascii_alphanumeric() || "._-+/".contains(c))
    };
    let line = |line: &str| line.starts_with('#') || line.split_whitespace().all(plain);
    (!text.lines().map(str::trim).all(line)).then(|| "names more than versions".to_owned())
}
