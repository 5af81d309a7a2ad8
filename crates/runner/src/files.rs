//! Looking at one file: which it is, what it holds where others could change that, and how the system would run it.
//! Everything is read from one open descriptor, so that what is described is what can be run.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Component, Path};

use countersign_model::{BoundFile, Digest};
use rustix::fs::{Access, AtFlags, CWD, Mode, OFlags};
use sha2::{Digest as _, Sha256};

/// Bigger files are told apart by what they are, not by what they hold: hashing is waited for.
const MAX_HASHED: u64 = 64 * 1024 * 1024;
/// As much of a first line as the system reads.
const MAX_FIRST_LINE: usize = 255;

#[derive(Debug)]
pub(crate) struct Looked {
    pub bound: BoundFile,
    pub file: File,
    pub form: Form,
}

/// How the system starts a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Elf,
    /// `#!` with the interpreter and its one argument.
    Script {
        interpreter: String,
        argument: Option<String>,
    },
    Other,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hash {
    Always,
    /// Only a script, and where somebody but the system's owner could change the file.
    Program,
}

/// Opens an absolute path none of whose parts is a link.
pub(crate) fn open_without_links(path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let step = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut here = rustix::fs::openat(CWD, "/", step, Mode::empty())?;
    let mut parts = path.components().filter(|part| *part != Component::RootDir).peekable();
    if parts.peek().is_none() {
        return Ok(rustix::fs::openat(CWD, "/", flags | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?);
    }
    while let Some(part) = parts.next() {
        let flags = if parts.peek().is_some() { step } else { flags | OFlags::NOFOLLOW | OFlags::CLOEXEC };
        here = rustix::fs::openat(here.as_fd(), part.as_os_str().as_bytes(), flags, Mode::empty())?;
    }
    Ok(here)
}

/// Looks at the regular file with this real path.
pub(crate) fn look(path: &Path, hash: Hash) -> io::Result<Looked> {
    // Without `NONBLOCK` a pipe that took the file's place would be waited for.
    let fd = open_without_links(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)?;
    let mut file = File::from(fd);
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    let text = path.to_str().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "its name is not UTF-8"))?;
    let form = form_of(&file)?;
    let script = matches!(form, Form::Script { .. });
    let wanted = hash == Hash::Always || script || others_write(&file, &meta);
    let digest = (wanted && meta.size() <= MAX_HASHED).then(|| digest_of(&mut file)).transpose()?;
    let id = format!("{}:{}@{}{:09}:{}", meta.dev(), meta.ino(), meta.ctime(), meta.ctime_nsec(), meta.size());
    Ok(Looked { bound: BoundFile { path: text.to_owned(), id, digest, pinned: false }, file, form })
}

fn others_write(file: &File, meta: &std::fs::Metadata) -> bool {
    let open_to_others = meta.uid() != 0 || meta.mode() & 0o022 != 0;
    // The system's owner can write everything: what only they can change counts as unchanging.
    let by_me = || {
        !rustix::process::geteuid().is_root()
            && rustix::fs::accessat(file, "", Access::WRITE_OK, AtFlags::EMPTY_PATH | AtFlags::EACCESS).is_ok()
    };
    open_to_others || by_me()
}

fn digest_of(file: &mut File) -> io::Result<Digest> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 128 * 1024];
    file.rewind()?;
    loop {
        let count = file.read(&mut buffer)?;
        if count == 0 {
            return Ok(Digest::from_bytes(hasher.finalize().into()));
        }
        hasher.update(buffer.get(..count).unwrap_or_default());
    }
}

fn form_of(file: &File) -> io::Result<Form> {
    let mut head = [0; MAX_FIRST_LINE];
    let count = file.read_at(&mut head, 0)?;
    let head = head.get(..count).unwrap_or_default();
    if head.starts_with(b"\x7fELF") {
        return Ok(Form::Elf);
    }
    let Some(line) = head.strip_prefix(b"#!").and_then(|rest| rest.split(|byte| *byte == b'\n').next()) else {
        return Ok(Form::Other);
    };
    let line = String::from_utf8_lossy(line);
    let line = line.trim_matches([' ', '\t', '\r']);
    let (interpreter, argument) = line.split_once([' ', '\t']).unwrap_or((line, ""));
    let argument = argument.trim();
    Ok(Form::Script {
        interpreter: interpreter.to_owned(),
        argument: (!argument.is_empty()).then(|| argument.to_owned()),
    })
}
