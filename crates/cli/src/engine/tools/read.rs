//! Read: some lines of a file, with their numbers. However large the file or its lines are, only what is told is held.

use std::io::{BufRead, BufReader};

use super::super::confine::{Confined, Links};
use super::ReadArgs;

const DEFAULT_LINES: u64 = 2_000;
/// Of one line, in bytes.
const MAX_LINE: usize = 2_000;
const MAX_TOLD: usize = 256 * 1024;
const BUFFER: usize = 256 * 1024;

pub fn read(workspace: &Confined, args: &ReadArgs) -> Result<String, String> {
    let relative = workspace.relative(&args.file_path)?;
    let cannot = |error: std::io::Error| format!("`{}` cannot be read: {error}", args.file_path);
    let file = workspace.file(&relative, Links::Inside).map_err(cannot)?;
    let mut input = BufReader::with_capacity(BUFFER, file);
    let first = args.offset.unwrap_or(1).max(1);
    let last = first.saturating_add(args.limit.unwrap_or(DEFAULT_LINES));
    if input.fill_buf().map_err(cannot)?.iter().take(8192).any(|byte| *byte == 0) {
        return Err(format!("`{}` is not text", args.file_path));
    }
    let mut told = String::new();
    let mut number = 1;
    let mut line = Line::default();
    while number < last && told.len() < MAX_TOLD {
        if number < first {
            if !skip(&mut input).map_err(cannot)? {
                break;
            }
        } else {
            if !line.read(&mut input).map_err(cannot)? {
                break;
            }
            told.push_str(&format!("{number:>6}\t{}\n", line.shown()));
        }
        number += 1;
    }
    if told.is_empty() && first > 1 {
        return Err(format!("`{}` has fewer than {first} lines", args.file_path));
    }
    if !input.fill_buf().map_err(cannot)?.is_empty() {
        told.push_str(&format!("[more follows; read on with `offset` {number}]\n"));
    }
    Ok(told)
}

/// Past the next newline; whether there was anything.
fn skip(input: &mut impl BufRead) -> std::io::Result<bool> {
    let mut any = false;
    loop {
        let available = input.fill_buf()?;
        if available.is_empty() {
            return Ok(any);
        }
        any = true;
        match memchr::memchr(b'\n', available) {
            Some(end) => {
                input.consume(end + 1);
                return Ok(true);
            }
            None => {
                let all = available.len();
                input.consume(all);
            }
        }
    }
}

/// The beginning of one line, and how long it is in all.
#[derive(Default)]
struct Line {
    start: Vec<u8>,
    length: usize,
}

impl Line {
    fn read(&mut self, input: &mut impl BufRead) -> std::io::Result<bool> {
        self.start.clear();
        self.length = 0;
        let mut any = false;
        loop {
            let available = input.fill_buf()?;
            if available.is_empty() {
                return Ok(any);
            }
            any = true;
            let end = memchr::memchr(b'\n', available);
            let piece = available.get(..end.unwrap_or(available.len())).unwrap_or_default();
            let room = MAX_LINE.saturating_sub(self.start.len());
            self.start.extend_from_slice(piece.get(..room).unwrap_or(piece));
            self.length = self.length.saturating_add(piece.len());
            let used = piece.len() + usize::from(end.is_some());
            input.consume(used);
            if end.is_some() {
                return Ok(true);
            }
        }
    }

    fn shown(&self) -> String {
        let mut text = String::from_utf8_lossy(&self.start).into_owned();
        if self.length > self.start.len() {
            text.push_str(&format!(" [… {} bytes more]", self.length - self.start.len()));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt as _;

    fn told(folder: &std::path::Path, file: &str, offset: Option<u64>, limit: Option<u64>) -> Result<String, String> {
        let workspace = Confined::open(folder, None).unwrap();
        read(&workspace, &ReadArgs { file_path: file.to_owned(), offset, limit })
    }

    #[test]
    fn lines_are_numbered_and_what_follows_is_said() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a"), "one\ntwo\nthree").unwrap();
        assert_eq!(told(folder.path(), "a", None, None).unwrap(), "     1\tone\n     2\ttwo\n     3\tthree\n");
        let some = told(folder.path(), "a", Some(2), Some(1)).unwrap();
        assert_eq!(some, "     2\ttwo\n[more follows; read on with `offset` 3]\n");
        assert!(told(folder.path(), "a", Some(9), None).is_err());
        std::fs::write(folder.path().join("b"), b"\x7fELF\0\0").unwrap();
        assert!(told(folder.path(), "b", None, None).unwrap_err().contains("not text"));
        std::fs::write(folder.path().join("e"), "").unwrap();
        assert_eq!(told(folder.path(), "e", None, None).unwrap(), "");
    }

    #[test]
    fn a_file_of_two_gibibytes_is_read_a_line_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let file = std::fs::File::create(folder.path().join("big")).unwrap();
        file.write_at("x".repeat(10_000).as_bytes(), 0).unwrap();
        file.write_at(b"\nsecond\n", 10_000).unwrap();
        file.set_len(2 * 1024 * 1024 * 1024).unwrap();
        let some = told(folder.path(), "big", None, Some(2)).unwrap();
        assert!(some.contains("8000 bytes more") && some.contains("     2\tsecond\n"), "{some}");
    }
}
