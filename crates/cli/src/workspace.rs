//! A workspace and its `.agents/terminal.json`: finding it, reading it with suspicion, and writing what the gate says
//! should be in it.

use std::fs::{self, File};
use std::io::{Read, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use anyhow::Context;
use countersign_model::{MAX_TERMINAL_FILE, escape_line};
use rustix::fs::{AtFlags, CWD, FlockOperation, Mode, OFlags, flock, mkdirat, openat, renameat, unlinkat};

use serde_json::Value;

use crate::client::{Request, encode};
use crate::exit::Usage;
use crate::locate::Caller;

const FOLDER: &str = ".agents";
const FILE: &str = "terminal.json";
const LOCK: &str = ".terminal.lock";
const OWN: OFlags = OFlags::NOFOLLOW.union(OFlags::CLOEXEC);
const OURS: Mode = Mode::from_raw_mode(0o600);

#[derive(Debug)]
pub struct Workspace {
    /// Without links.
    pub path: String,
    /// The text of its file; text that means nothing where the file is there and cannot be taken as it is.
    pub file: Option<String>,
}

impl Workspace {
    /// The named folder, else the nearest one around `here` that has a file of its own.
    pub fn find(named: Option<&Path>, here: &Path) -> anyhow::Result<Option<Self>> {
        if let Some(named) = named {
            return Self::at(named).map(Some);
        }
        // A place that is not there has no workspace around it; whoever runs something there is told so.
        let Ok(here) = fs::canonicalize(here) else { return Ok(None) };
        let found = here.ancestors().find(|folder| folder.join(FOLDER).join(FILE).symlink_metadata().is_ok());
        found.map(Self::at).transpose()
    }

    pub fn at(folder: &Path) -> anyhow::Result<Self> {
        let real = fs::canonicalize(folder)
            .map_err(|error| Usage(format!("the workspace `{}` cannot be used: {error}", folder.display())))?;
        if !real.is_dir() {
            return Err(Usage(format!("the workspace `{}` is not a directory", folder.display())).into());
        }
        let path = real.to_str().ok_or_else(|| Usage("the workspace's path is not valid text; rename it".into()))?;
        Ok(Self { file: read(&real), path: path.to_owned() })
    }

    /// The file as it must be for a person to trust it.
    pub fn trustworthy(&self) -> anyhow::Result<&str> {
        let place = Path::new(&self.path).join(FOLDER).join(FILE);
        let text = self.file.as_deref().ok_or_else(|| Usage(format!("there is no `{}` to trust", place.display())))?;
        let read = countersign_model::TerminalFile::parse(text);
        match read.problems.first() {
            None => Ok(text),
            Some(problem) => {
                let place = format!("`{}`, line {}", place.display(), problem.line);
                Err(Usage(format!("{place}: {}; nothing is trusted", problem.message)).into())
            }
        }
    }
}

/// Whoever may write the file decides what is in it: one that belongs to somebody else, is no plain file, or is too
/// long is taken for one that says nothing sensible.
fn read(workspace: &Path) -> Option<String> {
    let path = workspace.join(FOLDER).join(FILE);
    let Ok(about) = path.symlink_metadata() else { return None };
    let own = [0, rustix::process::geteuid().as_raw()].contains(&about.uid());
    let fits = about.len() <= MAX_TERMINAL_FILE as u64;
    if !own || !about.is_file() || !fits {
        return Some(String::new());
    }
    let mut bytes = Vec::new();
    let limit = MAX_TERMINAL_FILE as u64 + 1;
    let taken = File::open(&path).and_then(|file| file.take(limit).read_to_end(&mut bytes));
    // Replacement characters make it another text than any that was trusted.
    Some(taken.map(|_| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default())
}

/// Writes what the gate trusts for this workspace, under a lock: of two writers at once the later one writes what holds
/// both entries. An agent may have put links there, so none is followed.
///
/// What somebody else wrote there since the question was asked stays: then nothing is written, and the error says so.
pub fn write_trusted(caller: &Caller, asked: &Workspace, remembered: &[String]) -> anyhow::Result<()> {
    let workspace = asked.path.as_str();
    let folder = open_folder(workspace).with_context(|| format!("`{workspace}/{FOLDER}` is no folder of its own"))?;
    let lock = openat(&folder, LOCK, OFlags::CREATE | OFlags::RDWR | OWN, OURS)
        .context("the workspace's lock cannot be made")?;
    flock(&lock, FlockOperation::LockExclusive).context("the workspace's lock cannot be taken")?;
    #[derive(serde::Deserialize)]
    struct Trusted {
        text: String,
    }
    let trusted: Trusted = caller.call(Request::get(format!("/v1/trusts/file?workspace={}", encode(workspace))))?;
    let now = read(Path::new(workspace));
    if now != asked.file && !holds_all_of(&trusted.text, now.as_deref()) {
        let entries = remembered.iter().map(|entry| format!("`{}`", escape_line(entry))).collect::<Vec<_>>().join(", ");
        anyhow::bail!(
            "`{workspace}/{FOLDER}/{FILE}` was changed meanwhile, and is left as it is; look at it, add {entries} to its `commandWhitelist`, and run `countersign trust {workspace}`"
        );
    }
    replace(&folder, &trusted.text).with_context(|| format!("`{workspace}/{FOLDER}/{FILE}` cannot be written"))
}

/// Whether nothing of what is there would be lost: the same but for a whitelist that has grown. One that was removed
/// is a change too.
fn holds_all_of(text: &str, there: Option<&str>) -> bool {
    const LIST: &str = "commandWhitelist";
    let parse = |text: &str| serde_json::from_str::<serde_json::Map<String, Value>>(text).ok();
    let (Some(mut new), Some(mut old)) = (parse(text), there.and_then(parse)) else { return false };
    let entries = |fields: &mut serde_json::Map<String, Value>| match fields.remove(LIST) {
        Some(Value::Array(entries)) => Some(entries),
        Some(_) => None,
        None => Some(Vec::new()),
    };
    let (Some(wider), Some(narrower)) = (entries(&mut new), entries(&mut old)) else { return false };
    new == old && narrower.iter().all(|entry| wider.contains(entry))
}

fn open_folder(workspace: &str) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OWN;
    let outer = openat(CWD, workspace, flags, Mode::empty())?;
    match mkdirat(&outer, FOLDER, Mode::from_raw_mode(0o755)) {
        Ok(()) | Err(rustix::io::Errno::EXIST) => openat(&outer, FOLDER, flags, Mode::empty()),
        Err(error) => Err(error),
    }
}

fn replace(folder: &OwnedFd, text: &str) -> std::io::Result<()> {
    let beside = format!("{FILE}.{}", std::process::id());
    // Left behind by a process of this number that was killed.
    let _ = unlinkat(folder, &beside, AtFlags::empty());
    let new =
        openat(folder, &beside, OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OWN, Mode::from_raw_mode(0o644))?;
    let mut new = File::from(new);
    new.write_all(text.as_bytes())?;
    new.sync_all()?;
    Ok(renameat(folder, &beside, folder, FILE)?)
}

#[cfg(test)]
mod tests {
    use super::holds_all_of;

    #[test]
    fn only_a_whitelist_that_has_grown_loses_nothing() {
        let new = r#"{"commandBlacklist": ["rm"], "commandWhitelist": ["a", "b", "c"]}"#;
        for kept in [r#"{"commandBlacklist":["rm"],"commandWhitelist":["b"]}"#, r#"{"commandBlacklist":["rm"]}"#, new] {
            assert!(holds_all_of(new, Some(kept)), "{kept}");
        }
        for lost in [
            r#"{"commandBlacklist":["rm","dd"],"commandWhitelist":["a"]}"#,
            r#"{"commandBlacklist":["rm"],"commandWhitelist":["a","z"]}"#,
            r#"{"commandBlacklist":["rm"],"commandWhitelist":"a"}"#,
            r#"{"commandBlacklist":["rm"],"commandTimeoutSeconds":9}"#,
            "{",
            "",
        ] {
            assert!(!holds_all_of(new, Some(lost)), "{lost}");
        }
        assert!(!holds_all_of(new, None));
    }
}
