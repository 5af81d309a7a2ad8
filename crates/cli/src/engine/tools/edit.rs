//! Write and Edit: a file is replaced as a whole, by a new one beside it. So nobody sees half of it, and a hard link of
//! the old one outside the workspace keeps what it had.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, openat, renameat, statat, unlinkat};
use rustix::io::Errno;
use similar::TextDiff;

use super::super::confine::{Confined, Links};
use super::{EditArgs, WriteArgs};

const MAX_EDITED: u64 = 16 * 1024 * 1024;
const MAX_DIFF: usize = 256 * 1024;
/// A diff is for reading; past this it may be longer than need be.
const DIFF_TIME: Duration = Duration::from_millis(500);
static NUMBER: AtomicU64 = AtomicU64::new(0);

pub fn write(workspace: &Confined, args: &WriteArgs) -> Result<String, String> {
    let relative = workspace.relative(&args.file_path)?;
    replace(workspace, &relative, args.content.as_bytes(), None)
        .map_err(|error| format!("`{}` cannot be written: {error}", args.file_path))?;
    Ok(format!("wrote {} bytes to {}", args.content.len(), relative.display()))
}

pub fn edit(workspace: &Confined, args: &EditArgs) -> Result<String, String> {
    let relative = workspace.relative(&args.file_path)?;
    let cannot = |error: std::io::Error| format!("`{}` cannot be edited: {error}", args.file_path);
    if args.old_string.is_empty() || args.old_string == args.new_string {
        return Err("`old_string` is the text to replace, and `new_string` another".to_owned());
    }
    let mut file = workspace.file(&relative, Links::None).map_err(cannot)?;
    let about = file.metadata().map_err(cannot)?;
    if about.len() > MAX_EDITED {
        return Err(format!("`{}` is larger than {MAX_EDITED} bytes; edit it with a program", args.file_path));
    }
    let mut old = String::new();
    file.read_to_string(&mut old).map_err(cannot)?;
    let matches = old.matches(&args.old_string).count();
    match matches {
        0 => {
            return Err(format!(
                "`old_string` does not occur in `{}`; read it and copy the text exactly",
                args.file_path
            ));
        }
        2.. if !args.replace_all => {
            return Err(format!(
                "`old_string` occurs {matches} times in `{}`; give more of the text around it, or `replace_all`",
                args.file_path
            ));
        }
        _ => {}
    }
    let new = old.replace(&args.old_string, &args.new_string);
    replace(workspace, &relative, new.as_bytes(), Some(&file)).map_err(cannot)?;
    Ok(diff(&old, &new, &relative))
}

fn diff(old: &str, new: &str, relative: &Path) -> String {
    let name = relative.display();
    let diff = TextDiff::configure().timeout(DIFF_TIME).diff_lines(old, new);
    let mut text = diff.unified_diff().header(&format!("a/{name}"), &format!("b/{name}")).to_string();
    if text.len() > MAX_DIFF {
        text.truncate(text.floor_char_boundary(MAX_DIFF));
        text.push_str("\n[the rest is left out]\n");
    }
    text
}

/// `seen`: the file that the new contents were made from; if another is there by now, it is left alone.
fn replace(workspace: &Confined, relative: &Path, contents: &[u8], seen: Option<&File>) -> std::io::Result<()> {
    let other = std::io::Error::other;
    let (folder, name) = workspace.folder_of(relative)?;
    let there = match statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(there) if FileType::from_raw_mode(there.st_mode) == FileType::RegularFile => Some(there),
        Ok(_) => return Err(other("it is no regular file")),
        Err(Errno::NOENT) => None,
        Err(error) => return Err(error.into()),
    };
    if let Some(seen) = seen {
        let about = seen.metadata()?;
        let same = there.is_some_and(|there| {
            (there.st_dev, there.st_ino, there.st_size, there.st_mtime_nsec)
                == (about.dev(), about.ino(), about.size() as i64, about.mtime_nsec() as _)
        });
        if !same {
            return Err(other("it changed meanwhile; read it again"));
        }
    }
    let beside = format!(".countersign-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut new = File::from(openat(&folder, &beside, flags, Mode::from_raw_mode(0o644))?);
    let written = (|| {
        new.write_all(contents)?;
        if let Some(there) = there {
            new.set_permissions(std::fs::Permissions::from_mode(there.st_mode & 0o777))?;
        }
        Ok(renameat(&folder, &beside, &folder, name)?)
    })();
    if written.is_err() {
        let _ = unlinkat(&folder, &beside, AtFlags::empty());
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn place() -> (tempfile::TempDir, Confined) {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("w")).unwrap();
        let workspace = Confined::open(&folder.path().join("w"), None).unwrap();
        (folder, workspace)
    }

    fn edited(workspace: &Confined, old: &str, new: &str, replace_all: bool) -> Result<String, String> {
        let (old_string, new_string) = (old.to_owned(), new.to_owned());
        edit(workspace, &EditArgs { file_path: "a".into(), old_string, new_string, replace_all })
    }

    #[test]
    fn only_one_exact_match_is_replaced_unless_all_are_meant() {
        let (_folder, workspace) = place();
        let path = workspace.path().join("a");
        fs::write(&path, "one\ntwo\ntwo\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        for (old, new) in [("three", "x"), ("two", "x"), ("", "x"), ("one", "one"), ("ONE", "x")] {
            assert!(edited(&workspace, old, new, false).is_err(), "{old}");
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), "one\ntwo\ntwo\n");
        let told = edited(&workspace, "one\ntwo", "1\n2", false).unwrap();
        assert_eq!(told, "--- a/a\n+++ b/a\n@@ -1,3 +1,3 @@\n-one\n-two\n+1\n+2\n two\n");
        edited(&workspace, "2", "b", true).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "1\nb\ntwo\n");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o755);
    }

    #[test]
    fn writing_makes_folders_and_goes_through_no_link_of_either_kind() {
        let (folder, workspace) = place();
        let outside = folder.path().join("outside");
        fs::write(&outside, "kept").unwrap();
        fs::hard_link(&outside, workspace.path().join("hard")).unwrap();
        std::os::unix::fs::symlink(&outside, workspace.path().join("soft")).unwrap();
        fs::create_dir(workspace.path().join("d")).unwrap();
        let write = |path: &str| write(&workspace, &WriteArgs { file_path: path.into(), content: "new".into() });
        write("deep/er/file").unwrap();
        assert_eq!(fs::read_to_string(workspace.path().join("deep/er/file")).unwrap(), "new");
        write("hard").unwrap();
        assert!(write("soft").is_err() && write("d").is_err() && write(".").is_err() && write("../x").is_err());
        assert_eq!(fs::read_to_string(&outside).unwrap(), "kept");
        let left: Vec<_> = fs::read_dir(workspace.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left.len(), 4, "{left:?}");
    }
}
