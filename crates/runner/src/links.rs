//! Names in a command that are links, and what they lead to. Whether that is secret is not decided here.

use std::fs;
use std::path::{Component, Path, PathBuf};

use countersign_shell::{Location, Source, Value, Word, glob_matches, secret_path};

use crate::environment::Inherited;
use crate::reading::{Named, Reading};

/// Files looked at in all.
const MAX_LOOKED: usize = 4096;
/// Files gone through below a folder.
const MAX_SWEPT: usize = 20_000;
/// Of which so many are kept; more lead nowhere that could be shown.
const MAX_LINKS: usize = 64;
/// Directories inside directories.
const MAX_DEPTH: usize = 32;

#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Absolute, each once.
    pub paths: Vec<String>,
    /// Not everything was looked at.
    pub too_many: bool,
    /// A file whose name a program takes for an option.
    pub option: Option<String>,
    looked: usize,
    swept: usize,
}

/// Looks at every name that a command may read.
pub(crate) fn look(reading: &Reading, inherited: &Inherited) -> Found {
    let mut found = Found::default();
    // Names that `git` lists are those of files it keeps; `ls` and `find` list all that are there, or those chosen.
    let lists = |named: &Named| ["ls", "dir", "find", "gfind", "fd", "fdfind"].iter().any(|name| named.is(name));
    let listers: Vec<&Named> = reading.named.iter().filter(|named| lists(named)).collect();
    let chosen: Vec<String> = listers.iter().flat_map(|named| named.choices()).collect();
    for named in &reading.named {
        let follows = named.follows_links();
        // What a variable of the environment holds is known here.
        for path in named.words.iter().flat_map(|word| held(word, inherited)) {
            named.folders.iter().for_each(|folder| found.keep(&folder.join(&path), false));
        }
        for word in &named.words {
            for (text, pattern) in texts(word) {
                for folder in &named.folders {
                    found.name(folder, &text, pattern, follows);
                }
            }
        }
        if named.searches_hidden() {
            // Secrets are among what it goes through.
            let given: Vec<&str> = named.texts().filter(|text| !text.starts_with('-')).collect();
            let below = given.iter().flat_map(|text| named.folders.iter().map(move |folder| folder.join(text)));
            let below: Vec<PathBuf> = below.filter(|path| path.is_dir()).collect();
            let roots = if below.is_empty() { named.folders.clone() } else { below };
            let chosen = named.choices();
            roots.iter().for_each(|root| found.below(root, 0, Sweep { root, names: Some(&chosen), links: false }));
        }
        let handed = named.listed && named.shows_contents();
        for folder in named.folders.iter().filter(|_| follows || handed) {
            // A folder that is itself reached by a link is read with all below it.
            if let Ok(real) = fs::canonicalize(folder)
                && real != plain(folder)
            {
                found.keep(&real, true);
            }
            let names = (handed && !listers.is_empty()).then_some(chosen.as_slice());
            found.below(folder, 0, Sweep { root: folder, names, links: true });
        }
    }
    found
}

/// Programs that print what files hold.
const SHOWING: &[&str] = &[
    "awk", "base64", "bat", "batcat", "cat", "cmp", "comm", "cut", "diff", "egrep", "fgrep", "gawk", "grep", "head",
    "hexdump", "jq", "less", "mawk", "more", "nl", "od", "paste", "rg", "sed", "sort", "strings", "tac", "tail",
    "uniq", "xxd", "yq", "zcat",
];

/// What a word names by a variable that is inherited.
fn held(word: &Word, inherited: &Inherited) -> Vec<String> {
    let Value::Dynamic(dynamic) = &word.value else { return Vec::new() };
    let text = |source: &Source| match source {
        Source::Variable(name) if name != "PWD" => {
            let value = inherited.get(name)?.to_str()?;
            Some(format!("{}{value}{}", dynamic.prefix, dynamic.suffix))
                .filter(|text| text.contains('/') && text.len() < 4096)
        }
        _ => None,
    };
    dynamic.sources.iter().filter_map(text).collect()
}

/// What a word may name, and whether as a pattern. `--file=x`, `-fx` and `HEAD:x` name a file in a part of the word.
fn texts(word: &Word) -> Vec<(String, bool)> {
    let parts = |text: &str| -> Vec<String> {
        let after = text.split_once(['=', ':']).map(|(_, rest)| rest);
        let attached = text.get(2..).filter(|_| text.starts_with('-'));
        let here = text.strip_prefix("~+").map(|rest| rest.trim_start_matches('/'));
        [Some(here.unwrap_or(text)), after, attached]
            .into_iter()
            .flatten()
            .filter(|part| !part.is_empty())
            .map(str::to_owned)
            .collect()
    };
    match &word.value {
        Value::Known(text) => parts(text).into_iter().map(|text| (text, false)).collect(),
        Value::Glob(text) => parts(text).into_iter().map(|text| (text, true)).collect(),
        Value::Dynamic(dynamic) => {
            let text = |source: &Source| match source {
                Source::OneOf(values) => {
                    values.iter().map(|value| format!("{}{value}{}", dynamic.prefix, dynamic.suffix)).collect()
                }
                Source::Variable(name) if name == "PWD" && dynamic.prefix.is_empty() => {
                    vec![dynamic.suffix.trim_start_matches('/').to_owned()]
                }
                _ => Vec::new(),
            };
            dynamic.sources.iter().flat_map(text).map(|text| (text.clone(), is_pattern(&text))).collect()
        }
    }
}

impl Named {
    fn is(&self, name: &str) -> bool {
        self.program.as_deref().is_some_and(|program| program.rsplit('/').next() == Some(name))
    }

    fn texts(&self) -> impl Iterator<Item = &str> {
        self.words.iter().filter_map(Word::known)
    }

    fn shows_contents(&self) -> bool {
        SHOWING.iter().any(|name| self.is(name))
    }

    /// The patterns by which it chooses files; none where it takes all of them.
    fn choices(&self) -> Vec<String> {
        let mut texts = self.texts().peekable();
        let mut chosen = Vec::new();
        while let Some(text) = texts.next() {
            match text.strip_prefix("--include=") {
                Some(pattern) => chosen.push(pattern.to_owned()),
                None if matches!(text, "-name" | "-iname" | "--include") => {
                    chosen.extend(texts.peek().map(ToString::to_string))
                }
                None => {}
            }
        }
        chosen
    }

    /// Whether it shows what files hold that are not chosen by name, hidden ones among them.
    fn searches_hidden(&self) -> bool {
        let program = self.program.as_deref().and_then(|program| program.rsplit('/').next()).unwrap_or_default();
        let (letters, names): (&str, &[&str]) = match program {
            "grep" | "egrep" | "fgrep" | "ggrep" => {
                ("rRd", &["--recursive", "--dereference-recursive", "--directories"])
            }
            "rg" | "ripgrep" => ("u.", &["--hidden", "--unrestricted"]),
            "ag" => ("u", &["--hidden", "--unrestricted"]),
            _ => return false,
        };
        let all = |text: &str| {
            let cluster = text.starts_with('-') && !text.starts_with("--") && text.contains(|c| letters.contains(c));
            cluster || names.iter().any(|name| text.len() > 3 && (name.starts_with(text) || text.starts_with(name)))
        };
        self.texts().any(all)
    }

    /// Whether it goes through links to what lies below them.
    fn follows_links(&self) -> bool {
        let program = self.program.as_deref().and_then(|program| program.rsplit('/').next()).unwrap_or_default();
        let (letter, names): (&str, &[&str]) = match program {
            "grep" | "egrep" | "fgrep" | "ggrep" | "zgrep" => ("Rd", &["--dereference-recursive", "--directories"]),
            "rg" | "ripgrep" | "fd" | "fdfind" => ("L", &["--follow"]),
            "find" | "gfind" => ("LH", &["-follow"]),
            "diff" | "colordiff" => ("r", &["--recursive"]),
            "ag" | "ack" | "ack-grep" => ("f", &["--follow"]),
            "tree" => ("l", &[]),
            _ => return false,
        };
        self.texts().any(|text| {
            let cluster = text.starts_with('-') && !text.starts_with("--") && text.contains(|c| letter.contains(c));
            cluster || names.iter().any(|name| text.len() > 3 && (name.starts_with(text) || text.starts_with(name)))
        })
    }
}

/// How a folder is gone through.
#[derive(Clone, Copy)]
struct Sweep<'s> {
    root: &'s Path,
    /// Files whose names tell that they are secret count, too: those that fit one of these, or all.
    names: Option<&'s [String]>,
    /// Links are gone through.
    links: bool,
}

impl Sweep<'_> {
    /// Whether this is a file that is meant, and one that is secret by its name.
    fn means(&self, name: &std::ffi::OsStr) -> bool {
        let (Some(chosen), Some(name)) = (self.names, name.to_str()) else { return self.names.is_some() };
        let fits = |pattern: &String| {
            let (pattern, name) = (pattern.to_lowercase(), name.to_lowercase());
            // For `find` and `grep` a pattern's start may stand for a dot.
            let undotted = name.replacen('.', "_", usize::from(name.starts_with('.')));
            glob_matches(&pattern, &name) || (!pattern.starts_with('.') && glob_matches(&pattern, &undotted))
        };
        (chosen.is_empty() || chosen.iter().any(fits)) && secret_path(name, &Location::default()).is_some()
    }
}

impl Found {
    fn name(&mut self, folder: &Path, text: &str, pattern: bool, follows: bool) {
        let path = folder.join(text);
        if !pattern {
            self.file(&path, follows);
            return;
        }
        let mut reached = vec![PathBuf::from("/")];
        for component in path.components() {
            let Component::Normal(step) = component else {
                if component == Component::ParentDir {
                    reached.iter_mut().for_each(|path| path.push(".."));
                }
                continue;
            };
            let step = step.to_string_lossy();
            if !is_pattern(&step) {
                reached.iter_mut().for_each(|path| path.push(&*step));
                continue;
            }
            reached = reached.iter().flat_map(|path| self.matching(path, &step)).collect();
        }
        // `*` and not `./*`: what it matches stands there as it is called.
        if is_pattern(text.split('/').next().unwrap_or_default()) {
            let begins =
                |path: &&PathBuf| path.strip_prefix(folder).is_ok_and(|name| name.to_string_lossy().starts_with('-'));
            let option = reached.iter().find(begins).and_then(|path| path.strip_prefix(folder).ok());
            self.option = self.option.take().or_else(|| option.map(|name| name.display().to_string()));
        }
        for path in reached {
            self.file(&path, follows);
        }
    }

    fn matching(&mut self, folder: &Path, pattern: &str) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
        // Extended patterns may stand for more than is matched here.
        let any = pattern.contains(['(', '{']) || pattern.contains("**");
        let mut found = Vec::new();
        for entry in entries.filter_map(Result::ok) {
            self.looked += 1;
            if self.looked > MAX_LOOKED {
                self.too_many = true;
                break;
            }
            if any || entry.file_name().to_str().is_none_or(|name| glob_matches(pattern, name)) {
                found.push(entry.path());
            }
        }
        found
    }

    fn file(&mut self, path: &Path, follows: bool) {
        self.looked += 1;
        if self.looked > MAX_LOOKED {
            self.too_many = true;
            return;
        }
        let Ok(real) = fs::canonicalize(path) else { return };
        let folder = real.is_dir();
        if real != plain(path) {
            self.keep(&real, folder);
        }
        if follows && folder {
            self.below(&real, 0, Sweep { root: &real, names: None, links: true });
        }
    }

    fn below(&mut self, folder: &Path, depth: usize, sweep: Sweep<'_>) {
        let Ok(entries) = fs::read_dir(folder) else { return };
        for entry in entries.filter_map(Result::ok) {
            self.swept += 1;
            if self.swept > MAX_SWEPT || depth > MAX_DEPTH {
                self.too_many = true;
                return;
            }
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_symlink() {
                // What stays inside is found by its own name.
                if sweep.links
                    && let Ok(real) = fs::canonicalize(entry.path())
                    && !real.starts_with(sweep.root)
                {
                    self.keep(&real, real.is_dir());
                }
            } else if kind.is_dir() {
                self.below(&entry.path(), depth + 1, sweep);
            } else if sweep.means(&entry.file_name()) {
                self.keep(&entry.path(), false);
            }
        }
    }

    /// A folder is kept with a `/` at its end.
    fn keep(&mut self, real: &Path, folder: bool) {
        let Some(text) = real.to_str() else {
            self.too_many = true;
            return;
        };
        let text = if folder { format!("{}/", text.trim_end_matches('/')) } else { text.to_owned() };
        if self.paths.contains(&text) {
            return;
        }
        if self.paths.len() >= MAX_LINKS {
            self.too_many = true;
            return;
        }
        self.paths.push(text);
    }
}

fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?', '[', '{', '('])
}

/// The path as it reads, without steps that change nothing.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => drop(plain.pop()),
            other => plain.push(other),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reading::{Start, read};

    fn links(folder: &Path, text: &str) -> Vec<String> {
        look(&read(text, Start { folder, home: None, direct: false }), &Inherited::of([])).paths
    }

    #[test]
    fn what_names_lead_to_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let here = fs::canonicalize(folder.path()).unwrap();
        fs::create_dir_all(here.join("sub/deep")).unwrap();
        fs::write(here.join("plain"), "x").unwrap();
        std::os::unix::fs::symlink("/etc/hostname", here.join("sub/notes")).unwrap();
        std::os::unix::fs::symlink("/etc", here.join("config")).unwrap();
        for text in [
            "cat sub/notes",
            "cat s*/n*",
            "cat ./sub/../sub/notes",
            "head --lines=1 sub/notes",
            "cat < sub/notes",
            "grep -R x .",
            "rg -L x",
            "diff -r sub x",
            "cd sub; cat notes",
            "cat config/hostname",
        ] {
            assert!(
                links(&here, text).contains(&"/etc/hostname".to_owned()) || text.contains("-R") || text.contains("-L"),
                "{text}: {:?}",
                links(&here, text)
            );
            assert!(!links(&here, text).is_empty(), "{text}");
        }
        for text in ["cat plain", "cat pl*", "grep -r x .", "cat missing", "ls sub"] {
            assert!(links(&here, text).is_empty(), "{text}: {:?}", links(&here, text));
        }
    }
}
