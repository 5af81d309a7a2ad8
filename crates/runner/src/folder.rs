//! The working directory: found by its real name, held open, and inside the workspace where there is one.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use countersign_model::BoundFile;
use rustix::fs::{Access, AtFlags, OFlags};

use crate::bind::BindError;
use crate::files::open_without_links;

#[derive(Debug)]
pub(crate) struct Folder {
    pub path: PathBuf,
    pub bound: BoundFile,
    fd: OwnedFd,
}

impl Folder {
    /// The directory that this name leads to.
    pub fn find(cwd: &Path, workspace: Option<&Path>) -> Result<Self, BindError> {
        if !cwd.is_absolute() {
            return Err(BindError::RelativeFolder(cwd.to_path_buf()));
        }
        Self::open(&real(cwd)?, workspace)
    }

    /// The directory with this real name, and no other that a link leads to.
    pub fn open(path: &Path, workspace: Option<&Path>) -> Result<Self, BindError> {
        let text = path.to_str().ok_or_else(|| BindError::NotUtf8(path.to_path_buf()))?;
        let fd = open_without_links(path, OFlags::PATH | OFlags::DIRECTORY).map_err(|error| trouble(path, error))?;
        if let Some(workspace) = workspace
            && !path.starts_with(real(workspace)?)
        {
            let (folder, workspace) = (path.to_path_buf(), workspace.to_path_buf());
            return Err(BindError::Outside { folder, workspace });
        }
        rustix::fs::accessat(&fd, ".", Access::EXEC_OK, AtFlags::EACCESS)
            .map_err(|error| trouble(path, error.into()))?;
        let meta = std::fs::File::from(fd.try_clone().map_err(|error| trouble(path, error))?)
            .metadata()
            .map_err(|error| trouble(path, error))?;
        let id = format!("{}:{}", meta.dev(), meta.ino());
        let bound = BoundFile { path: text.to_owned(), id, digest: None, pinned: true };
        Ok(Self { path: path.to_path_buf(), bound, fd })
    }

    /// A name for the open directory that no link can redirect, valid in this process and in a child until it runs its
    /// program.
    pub fn held(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.fd.as_raw_fd()))
    }
}

pub(crate) fn real(path: &Path) -> Result<PathBuf, BindError> {
    std::fs::canonicalize(path).map_err(|error| trouble(path, error))
}

fn trouble(path: &Path, error: io::Error) -> BindError {
    let path = path.to_path_buf();
    match error.kind() {
        io::ErrorKind::NotFound => BindError::NoFolder(path),
        io::ErrorKind::NotADirectory => BindError::NotAFolder(path),
        io::ErrorKind::PermissionDenied => BindError::NoPermission(path),
        _ => BindError::Io { path, error },
    }
}
