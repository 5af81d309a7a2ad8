//! The data folder: made for its owner alone, held by one gate at a time.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use rustix::fs::{FlockOperation, flock};

/// Held while this process is the gate of the folder; dropping it lets the next one in.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    _lock: File,
}

impl Folder {
    /// Makes the folder if it is not there (0700) and takes its lock.
    pub fn take(path: &Path) -> anyhow::Result<Self> {
        make_private(path)?;
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(path.join("lock"))
            .with_context(|| format!("cannot open the lock in `{}`", path.display()))?;
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            bail!(
                "a gate is already running on `{}`; use it as it is, stop it, or choose another folder with `--data`",
                path.display()
            );
        }
        Ok(Self { path: path.to_owned(), _lock: lock })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn database(&self) -> PathBuf {
        self.path.join("countersign.db")
    }

    pub fn socket(&self) -> PathBuf {
        self.path.join("gate.sock")
    }

    pub fn admin_key(&self) -> PathBuf {
        self.path.join("admin.key")
    }

    /// What the checkpoints left with a witness are signed by.
    pub fn witness_key(&self) -> PathBuf {
        Self::witness_key_in(&self.path)
    }

    pub fn witness_key_in(data: &Path) -> PathBuf {
        data.join("witness.key")
    }

    /// Writes a secret that only the owner can read, whole or not at all.
    pub fn write_secret(&self, path: &Path, secret: &str) -> anyhow::Result<()> {
        let temporary = path.with_extension("new");
        let _ = std::fs::remove_file(&temporary);
        let write = || {
            let mut file = OpenOptions::new().create_new(true).write(true).mode(0o600).open(&temporary)?;
            writeln!(file, "{secret}")?;
            file.sync_all()?;
            std::fs::rename(&temporary, path)
        };
        write().with_context(|| format!("cannot write `{}`", path.display()))
    }
}

fn make_private(path: &Path) -> anyhow::Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .with_context(|| format!("cannot make the data folder `{}`", path.display()))?;
    let about = std::fs::metadata(path).with_context(|| format!("cannot look at `{}`", path.display()))?;
    if about.uid() != rustix::process::geteuid().as_raw() {
        bail!("`{}` belongs to another user; choose a folder of your own with `--data`", path.display());
    }
    if about.permissions().mode() & 0o077 != 0 {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700))
            .with_context(|| format!("cannot make `{}` private", path.display()))?;
    }
    Ok(())
}
