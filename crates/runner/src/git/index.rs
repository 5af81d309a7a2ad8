//! Reads git's index for one thing: the repositories inside the work tree. Versions 2 to 4, as its documentation has
//! them; what is not understood is an error, since a repository may hide behind it.

use std::fs;
use std::path::Path;

const MAX_BYTES: u64 = 64 * 1024 * 1024;
/// The mode of an entry that is a commit of another repository.
const LINK: u32 = 0o160_000;
/// Times, device, inode, mode, owner and size; the mode stands at 24.
const STAT: usize = 40;
const HEADER: usize = 12;

/// The paths of inner repositories, from the top of the work tree.
pub(super) fn links(index: &Path) -> Result<Vec<String>, String> {
    let Ok(meta) = fs::metadata(index) else { return Ok(Vec::new()) };
    if meta.len() > MAX_BYTES || !meta.is_file() {
        return Err("is too large to be looked at".to_owned());
    }
    let bytes = fs::read(index).map_err(|error| format!("could not be looked at: {error}"))?;
    // Most have none, and the mode is hardly ever anything else.
    if !bytes.windows(4).any(|window| window == LINK.to_be_bytes()) && !bytes.windows(4).any(|window| window == b"link")
    {
        return Ok(Vec::new());
    }
    // Names of objects are 20 bytes long, or 32 in the newer format: only the right length reads to the end.
    [20, 32].into_iter().find_map(|hash| entries(&bytes, hash)).ok_or_else(|| "could not be understood".to_owned())
}

fn entries(bytes: &[u8], hash: usize) -> Option<Vec<String>> {
    let number = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let version = number(4)?;
    if bytes.get(..4)? != b"DIRC" || !(2..=4).contains(&version) {
        return None;
    }
    let (mut at, mut links, mut path) = (HEADER, Vec::new(), Vec::new());
    for _ in 0..number(8)? {
        let mode = number(at + 24)?;
        let flags = u16::from_be_bytes(bytes.get(at + STAT + hash..at + STAT + hash + 2)?.try_into().ok()?);
        let extended = version >= 3 && flags & 0x4000 != 0;
        let mut name = at + STAT + hash + 2 + if extended { 2 } else { 0 };
        if version == 4 {
            let (strip, used) = varint(bytes.get(name..)?)?;
            name += used;
            path.truncate(path.len().checked_sub(strip)?);
        } else {
            path.clear();
        }
        let length = bytes.get(name..)?.iter().position(|byte| *byte == 0)?;
        path.extend_from_slice(bytes.get(name..name + length)?);
        let end = name + length + 1;
        // Entries begin at multiples of eight, except in version 4.
        at = if version == 4 { end } else { at + (name + length - at + 8) / 8 * 8 };
        if mode == LINK {
            links.push(String::from_utf8(path.clone()).ok()?);
        }
    }
    // A split index keeps its entries in another file.
    let rest = bytes.get(at..bytes.len().checked_sub(hash)?)?;
    (!rest.starts_with(b"link")).then_some(links)
}

/// The number of bytes to take off the path before, in seven bits each.
fn varint(bytes: &[u8]) -> Option<(usize, usize)> {
    let mut value: usize = 0;
    for (at, byte) in bytes.iter().enumerate().take(8) {
        value = (value << 7) | usize::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Some((value, at + 1));
        }
        value += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn git(folder: &Path, words: &[&str]) {
        let plain = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"];
        let done = Command::new("git").args(plain).args(words).current_dir(folder).output().unwrap();
        assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
    }

    #[test]
    fn inner_repositories_are_found_in_every_version() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path();
        git(top, &["init", "-q", "."]);
        for (name, text) in [("a", "1"), ("folder-with-a-long-name-0123456789", "2"), ("z", "3")] {
            fs::write(top.join(name), text).unwrap();
        }
        git(top, &["init", "-q", "inner/one"]);
        git(&top.join("inner/one"), &["commit", "-q", "--allow-empty", "-m", "x"]);
        git(top, &["add", "."]);
        for version in ["2", "3", "4"] {
            git(top, &["update-index", "--index-version", version]);
            assert_eq!(links(&top.join(".git/index")), Ok(vec!["inner/one".to_owned()]), "{version}");
        }
        git(top, &["update-index", "--split-index"]);
        fs::write(top.join("later"), "4").unwrap();
        git(top, &["add", "later"]);
        assert!(links(&top.join(".git/index")).is_err());
    }

    #[test]
    fn an_index_without_them_and_none_at_all_have_none() {
        let folder = tempfile::tempdir().unwrap();
        git(folder.path(), &["init", "-q", "."]);
        fs::write(folder.path().join("a"), "1").unwrap();
        assert_eq!(links(&folder.path().join(".git/index")), Ok(vec![]));
        git(folder.path(), &["add", "a"]);
        assert_eq!(links(&folder.path().join(".git/index")), Ok(vec![]));
        fs::write(folder.path().join(".git/index"), b"DIRC\0\0\0\x02\0\0\0\x01\0\0\xe0\0").unwrap();
        assert!(links(&folder.path().join(".git/index")).is_err());
    }
}
