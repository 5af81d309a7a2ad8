//! From a program word to the file it starts, the way a shell and the system look for it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD};

/// Where words are looked up.
#[derive(Debug)]
pub(crate) struct Lookup<'l> {
    /// A name of the working directory that cannot be redirected.
    pub here: PathBuf,
    pub search: Option<&'l OsStr>,
    pub home: Option<&'l OsStr>,
}

/// A file that was found, and whether the working directory had a part in finding it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Hit {
    pub path: PathBuf,
    pub relative: bool,
}

impl Lookup<'_> {
    /// The file that a program word starts.
    pub fn program(&self, word: &str) -> Option<Hit> {
        if word.contains('/') {
            let hit = self.place(word);
            return is_program(&hit.path).then_some(hit);
        }
        self.along_path(word, is_program)
    }

    /// The file that `source` reads: along `PATH`, then here.
    pub fn sourced(&self, word: &str) -> Option<Hit> {
        if word.contains('/') {
            return Some(self.place(word));
        }
        self.along_path(word, Path::is_file).or_else(|| Some(self.place(word)))
    }

    /// A path as the command has it.
    pub fn place(&self, word: &str) -> Hit {
        match (word.strip_prefix("~/"), self.home) {
            (Some(rest), Some(home)) => Hit { path: Path::new(home).join(rest), relative: false },
            _ => Hit { path: self.here.join(word), relative: !word.starts_with('/') },
        }
    }

    fn along_path(&self, word: &str, good: fn(&Path) -> bool) -> Option<Hit> {
        if word.is_empty() {
            return None;
        }
        // An empty part is the working directory, as it is for the shell.
        let parts = self.search?.as_bytes().split(|byte| *byte == b':');
        let hits = parts.map(|part| {
            let part = Path::new(OsStr::from_bytes(part));
            Hit { path: self.here.join(part).join(word), relative: !part.is_absolute() }
        });
        hits.into_iter().find(|hit| good(&hit.path))
    }
}

fn is_program(path: &Path) -> bool {
    path.is_file() && rustix::fs::accessat(CWD, path, Access::EXEC_OK, AtFlags::EACCESS).is_ok()
}
