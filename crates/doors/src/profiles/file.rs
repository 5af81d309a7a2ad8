//! One profile's file on disk: what is in it now, who wrote it last, and writing it whole or not at all.

use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use countersign_model::{Digest, GrantId, sha256};
use serde::{Deserialize, Serialize};

const NAME: &str = "config.json";
/// What was last written or taken over: by it an edit is told from a change of the store, also after a restart.
const MARK: &str = ".exported.json";
const MAX_BYTES: u64 = 1024 * 1024;

/// The file as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Content {
    pub(super) text: String,
    pub(super) hash: Digest,
    pub(super) stamp: Stamp,
}

/// Enough to see that a file is not the one that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    inode: u64,
    size: u64,
    seconds: i64,
    nanos: i64,
}

impl Stamp {
    fn of(about: &Metadata) -> Self {
        Self { inode: about.ino(), size: about.size(), seconds: about.mtime(), nanos: about.mtime_nsec() }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Mark {
    pub(super) hash: Digest,
    /// The grants that the file showed.
    pub(super) grants: Vec<GrantId>,
}

#[derive(Clone, Debug)]
pub(super) struct ProfileFile {
    folder: PathBuf,
}

impl ProfileFile {
    pub(super) fn new(root: &Path, profile: &str) -> Self {
        Self { folder: root.join(profile) }
    }

    pub(super) fn path(&self) -> PathBuf {
        self.folder.join(NAME)
    }

    /// None where there is no file. Anything but a plain file of a bearable size is an error.
    pub(super) fn stamp(&self) -> io::Result<Option<Stamp>> {
        match std::fs::symlink_metadata(self.path()) {
            Ok(about) if !about.is_file() => Err(io::Error::other("it is no plain file")),
            Ok(about) if about.len() > MAX_BYTES => Err(io::Error::other("it is larger than 1 MiB")),
            Ok(about) => Ok(Some(Stamp::of(&about))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(super) fn read(&self) -> io::Result<Option<Content>> {
        let Some(stamp) = self.stamp()? else { return Ok(None) };
        let mut text = String::new();
        File::open(self.path())?.take(MAX_BYTES + 1).read_to_string(&mut text)?;
        Ok(Some(Content { hash: sha256(text.as_bytes()), text, stamp }))
    }

    pub(super) fn mark(&self) -> Option<Mark> {
        serde_json::from_slice(&std::fs::read(self.folder.join(MARK)).ok()?).ok()
    }

    pub(super) fn put_mark(&self, mark: &Mark) -> io::Result<()> {
        self.replace(MARK, &serde_json::to_vec(mark)?).map(|_| ())
    }

    /// Writes the file, unless somebody has written it since it was read: then nothing.
    pub(super) fn write(&self, text: &str, read: Option<&Content>) -> io::Result<Option<Stamp>> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        if self.stamp()? != read.map(|content| content.stamp) {
            return Ok(None);
        }
        self.replace(NAME, text.as_bytes()).map(Some)
    }

    /// How it is known is taken before it is in its place: whatever happens to it there is somebody else's doing.
    fn replace(&self, name: &str, bytes: &[u8]) -> io::Result<Stamp> {
        let temporary = self.folder.join(format!(".{name}.new"));
        let _ = std::fs::remove_file(&temporary);
        let mut file = OpenOptions::new().create_new(true).write(true).mode(0o600).open(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        let stamp = Stamp::of(&file.metadata()?);
        std::fs::rename(&temporary, self.folder.join(name))?;
        Ok(stamp)
    }
}

/// The profiles that have a folder.
pub(super) fn folders(root: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(root) else { return Vec::new() };
    let folders = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("countersign-profiles-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        path
    }

    #[test]
    fn a_file_that_somebody_wrote_meanwhile_is_not_written_over() {
        let root = folder("race");
        let file = ProfileFile::new(&root, "default");
        let written = file.write("one", None).unwrap();
        assert!(written.is_some() && file.stamp().unwrap() == written);
        let read = file.read().unwrap().unwrap();
        std::fs::write(file.path(), "theirs").unwrap();
        assert_eq!((file.write("two", Some(&read)).unwrap(), file.write("two", None).unwrap()), (None, None));
        assert_eq!(file.read().unwrap().unwrap().text, "theirs");
        assert_eq!(folders(&root), ["default"]);
        std::fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn a_link_or_a_pipe_is_not_read() {
        let root = folder("link");
        let file = ProfileFile::new(&root, "default");
        file.write("x", None).unwrap();
        std::fs::remove_file(file.path()).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", file.path()).unwrap();
        assert!(file.read().is_err());
        std::fs::remove_dir_all(root).unwrap();
    }
}
