//! The workspace as the only place that file tools reach. Names are resolved by the kernel below an open folder, so that
//! neither `..` nor a link nor a folder that is swapped meanwhile leads out.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use anyhow::Context;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::Errno;

use crate::exit::Usage;

const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC);

/// Whether links that stay inside may be followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// To read: what is inside is inside, by whichever name.
    Inside,
    /// To change: the file that was approved is the one by that name.
    None,
}

#[derive(Debug)]
pub struct Confined {
    root: OwnedFd,
    /// Absolute, without links.
    path: PathBuf,
    /// Folders inside that are nobody's workspace, such as our own store.
    closed: Vec<PathBuf>,
}

impl Confined {
    pub fn open(workspace: &Path, closed: Option<&Path>) -> anyhow::Result<Self> {
        let cannot = |why: &dyn std::fmt::Display| {
            Usage(format!(
                "the workspace `{}` cannot be used: {why}; name another with `--workspace`",
                workspace.display()
            ))
        };
        let path = std::fs::canonicalize(workspace).map_err(|error| cannot(&error))?;
        path.to_str().ok_or_else(|| cannot(&"its path is not valid text"))?;
        let root = openat(CWD, &path, FOLDER, Mode::empty()).map_err(|error| cannot(&error))?;
        let closed = closed.and_then(|folder| std::fs::canonicalize(folder).ok());
        Ok(Self { root, path, closed: closed.into_iter().collect() })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The name from the workspace on, or why there is none.
    pub fn relative(&self, given: &str) -> Result<PathBuf, String> {
        let outside = || format!("`{given}` is outside the workspace `{}`", self.path.display());
        if given.is_empty() || given.contains('\0') {
            return Err(format!("`{}` is no file name", given.replace('\0', "\\0")));
        }
        let given_path = Path::new(given);
        let inner = match given_path.strip_prefix(&self.path) {
            Ok(inner) => inner,
            Err(_) if given_path.is_absolute() => return Err(outside()),
            Err(_) => given_path,
        };
        let mut relative = PathBuf::new();
        for part in inner.components() {
            match part {
                Component::Normal(part) => relative.push(part),
                Component::CurDir => {}
                Component::ParentDir | Component::RootDir | Component::Prefix(_) => return Err(outside()),
            }
        }
        if self.is_closed(&self.path.join(&relative)) {
            return Err(format!("`{given}` belongs to the gate, not to the workspace"));
        }
        Ok(relative)
    }

    /// Opens what lies at this name, and nothing that a link or a race puts in its place.
    pub fn open_at(&self, relative: &Path, flags: OFlags, mode: Mode, links: Links) -> io::Result<OwnedFd> {
        let name = if relative.as_os_str().is_empty() { Path::new(".") } else { relative };
        let mut resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        if links == Links::None {
            resolve |= ResolveFlags::NO_SYMLINKS;
        }
        let opened = match openat2(&self.root, name, flags | OFlags::CLOEXEC, mode, resolve) {
            // A kernel without it: then no link is followed at all.
            Err(Errno::NOSYS) => self.walk(relative, flags, mode),
            opened => opened,
        };
        let opened = opened.map_err(|error| match error {
            Errno::XDEV => io::Error::other("it leads out of the workspace"),
            Errno::LOOP => io::Error::other("a link is in the way"),
            other => other.into(),
        })?;
        if self.closed.is_empty() {
            return Ok(opened);
        }
        // By whatever name it was reached.
        match std::fs::read_link(format!("/proc/self/fd/{}", opened.as_raw_fd())) {
            Ok(real) if !self.is_closed(&real) => Ok(opened),
            Ok(_) | Err(_) => Err(io::Error::other("it belongs to the gate, not to the workspace")),
        }
    }

    /// One component at a time, none of them a link.
    fn walk(&self, relative: &Path, flags: OFlags, mode: Mode) -> rustix::io::Result<OwnedFd> {
        let mut here = rustix::io::fcntl_dupfd_cloexec(&self.root, 0)?;
        let mut parts = relative.iter().peekable();
        while let Some(part) = parts.next() {
            if parts.peek().is_none() {
                return openat(&here, part, flags | OFlags::CLOEXEC | OFlags::NOFOLLOW, mode);
            }
            here = openat(&here, part, FOLDER | OFlags::NOFOLLOW, Mode::empty())?;
        }
        openat(&here, ".", flags | OFlags::CLOEXEC, mode)
    }

    /// A regular file, to be read. Nothing else: a pipe or a device could hold us up for ever.
    pub fn file(&self, relative: &Path, links: Links) -> io::Result<File> {
        let fd = self.open_at(relative, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty(), links)?;
        let file = File::from(fd);
        if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is no regular file")) }
    }

    /// The folder that a file is in, made if need be, with the file's own name.
    pub fn folder_of<'p>(&self, relative: &'p Path) -> io::Result<(OwnedFd, &'p OsStr)> {
        let name = relative.file_name().ok_or_else(|| io::Error::other("it names no file"))?;
        let parent = relative.parent().unwrap_or(Path::new(""));
        let mut made = PathBuf::new();
        let mut here = self.open_at(&made, FOLDER, Mode::empty(), Links::None)?;
        for part in parent.iter() {
            made.push(part);
            here = match self.open_at(&made, FOLDER, Mode::empty(), Links::None) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    match rustix::fs::mkdirat(here.as_fd(), part, Mode::from_raw_mode(0o755)) {
                        Ok(()) | Err(Errno::EXIST) => {}
                        Err(error) => return Err(error.into()),
                    }
                    self.open_at(&made, FOLDER, Mode::empty(), Links::None)?
                }
                opened => opened?,
            };
        }
        Ok((here, name))
    }

    fn is_closed(&self, path: &Path) -> bool {
        self.closed.iter().any(|folder| path.starts_with(folder))
    }
}

/// The workspace that was named, or where we are.
pub fn workspace(named: Option<&Path>) -> anyhow::Result<PathBuf> {
    match named {
        Some(named) => Ok(named.to_owned()),
        None => std::env::current_dir().context("the current directory cannot be named; give `--workspace DIR`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn place() -> (tempfile::TempDir, Confined) {
        let folder = tempfile::tempdir().unwrap();
        let inside = folder.path().join("w");
        fs::create_dir_all(inside.join("sub/data")).unwrap();
        fs::write(inside.join("sub/a"), "a").unwrap();
        fs::write(inside.join("sub/data/admin.key"), "k").unwrap();
        fs::write(folder.path().join("secret"), "s").unwrap();
        symlink("../secret", inside.join("out")).unwrap();
        symlink("/etc/passwd", inside.join("far")).unwrap();
        symlink("sub/a", inside.join("near")).unwrap();
        symlink("sub/data", inside.join("sly")).unwrap();
        symlink("..", inside.join("up")).unwrap();
        let confined = Confined::open(&inside, Some(&inside.join("sub/data"))).unwrap();
        (folder, confined)
    }

    #[test]
    fn names_that_lead_out_are_none() {
        let (folder, confined) = place();
        let inside = confined.path().to_owned();
        for good in ["sub/a", "./sub/./a", &inside.join("sub/a").display().to_string(), "."] {
            assert!(confined.relative(good).is_ok(), "{good}");
        }
        let upper = inside.display().to_string().to_uppercase() + "/sub/a";
        for bad in
            ["", "a\0b", "../secret", "sub/../../secret", "/etc/passwd", &upper, "sub/data/admin.key", "sub/data"]
        {
            assert!(confined.relative(bad).is_err(), "{bad}");
        }
        let beside = format!("{}x", inside.display());
        assert!(confined.relative(&beside).is_err());
        drop(folder);
    }

    #[test]
    fn links_that_lead_out_do_not_open_and_none_is_followed_to_change() {
        let (_folder, confined) = place();
        for out in ["out", "far", "up/secret", "up/w/sub/a", "sly/admin.key", "sub", "nothing"] {
            assert!(confined.file(Path::new(out), Links::Inside).is_err(), "{out}");
        }
        assert!(confined.file(Path::new("near"), Links::Inside).is_ok());
        assert!(confined.file(Path::new("near"), Links::None).is_err());
        assert!(confined.walk(Path::new("near"), OFlags::RDONLY, Mode::empty()).is_err());
        assert!(confined.walk(Path::new("sub/a"), OFlags::RDONLY, Mode::empty()).is_ok());
        assert!(confined.folder_of(Path::new("up/x")).is_err());
        assert!(confined.folder_of(Path::new("sub/new/deep/x")).is_ok());
    }

    #[test]
    fn threat_16_a_folder_that_is_swapped_all_the_time_never_leads_out() {
        use std::io::Read as _;
        use std::sync::atomic::{AtomicBool, Ordering};
        let folder = tempfile::tempdir().unwrap();
        let (inside, outside) = (folder.path().join("w"), folder.path().join("o"));
        for place in [inside.join("d"), outside.clone()] {
            fs::create_dir_all(&place).unwrap();
        }
        fs::write(inside.join("d/f"), "mine").unwrap();
        fs::write(outside.join("f"), "theirs").unwrap();
        let confined = Confined::open(&inside, None).unwrap();
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    fs::rename(inside.join("d"), inside.join("real")).unwrap();
                    symlink(&outside, inside.join("d")).unwrap();
                    fs::remove_file(inside.join("d")).unwrap();
                    fs::rename(inside.join("real"), inside.join("d")).unwrap();
                }
            });
            let mut seen = 0;
            for _ in 0..5_000 {
                for links in [Links::Inside, Links::None] {
                    let Ok(mut file) = confined.file(Path::new("d/f"), links) else { continue };
                    let mut text = String::new();
                    file.read_to_string(&mut text).unwrap();
                    assert_eq!(text, "mine");
                    seen += 1;
                }
            }
            over.store(true, Ordering::Relaxed);
            assert!(seen > 0);
        });
    }
}
