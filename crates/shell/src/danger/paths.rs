//! What a path in a command stands for, read from its text alone: the file system is never asked.

use super::Scope;
use super::facts::Piece;
use super::parts::Parts;
use super::rule::Test;
use super::table::Of;
use super::words::Heads;
use crate::word::{Dynamic, Source, Value};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    Root,
    Home,
    Relative,
    /// Starts with something unknown.
    Unknown,
    /// Starts with the output of a command that prints a path: somewhere, but not everywhere.
    Bounded,
}

/// A path without `.`, `..` and double slashes.
#[derive(Debug)]
pub struct Path<'a> {
    pub base: Base,
    pub parts: Parts<'a>,
    /// Leaves the folder it starts in.
    pub escapes: bool,
    text: &'a str,
    /// What the parts begin with: most entries are out at once.
    heads: Heads,
}

const NONE: &str = "";

impl<'a> Path<'a> {
    pub fn read(piece: &Piece<'a>) -> Self {
        let text = piece.text.strip_prefix("file://").unwrap_or(piece.text);
        let dynamic = match piece.word.map(|word| &word.value) {
            Some(Value::Dynamic(dynamic)) => Some(dynamic),
            _ => None,
        };
        let (base, rest) = base(text, dynamic);
        let mut path = Self { base, parts: Parts::default(), escapes: false, text, heads: Heads::NONE };
        let mut rest = Some(rest);
        while let Some(part) = next_part(&mut rest) {
            match part {
                "" | "." => {}
                ".." => {
                    if path.parts.pop().is_none() {
                        match path.base {
                            Base::Home => path.base = Base::Root,
                            Base::Relative | Base::Bounded => path.escapes = true,
                            Base::Root | Base::Unknown => {}
                        }
                    }
                }
                part => path.parts.push(part),
            }
        }
        path.find_home();
        path.heads = path.parts.iter().fold(Heads::NONE, |heads, part| heads.or(Heads::of_part(part)));
        path
    }

    /// `/home/alice/x`, `/Users/alice/x` and `/root/x` are somebody's home folder.
    fn find_home(&mut self) {
        if self.base != Base::Root {
            return;
        }
        let inside = match &*self.parts {
            ["root", ..] => 1,
            ["home" | "Users", user, ..] if *user != "*" => 2,
            ["var", "root", ..] => 2,
            _ => return,
        };
        self.base = Base::Home;
        self.parts.skip(inside);
    }

    pub fn name(&self) -> &'a str {
        self.parts.last().copied().unwrap_or(NONE)
    }

    /// Whether its last part is one of the names of a test `name`; a pattern such as `*.json` names no file.
    pub fn is_named(&self, test: Of<'_, Test>) -> bool {
        let name = self.name();
        let vague = name.bytes().take(2).any(|byte| matches!(byte, b'*' | b'?' | b'['));
        if !test.heads.meet(Heads::of(name)) || vague {
            return false;
        }
        let plain = !is_pattern(name);
        test.words().any(|entry| match entry.strip_prefix('*') {
            Some(end) if plain && !is_pattern(end) => name.ends_with(end),
            _ => fits(entry, name),
        })
    }

    /// Whether it is, or lies below, one of the places of a test `under`.
    pub fn is_under_one(&self, test: Of<'_, Test>) -> bool {
        // Nothing but an anchor is beside its own heads: `/` and `~` are tested as entries.
        (self.heads.meet(test.heads) || test.heads == Heads::ANY) && test.words().any(|entry| self.is_under(entry))
    }

    /// Equal to, or below, an entry such as `~/.ssh` or `/etc/cron.*`.
    pub fn is_under(&self, entry: &str) -> bool {
        let (base, rest) = match entry.as_bytes().first() {
            Some(b'~') => (Base::Home, entry.get(2..).unwrap_or(NONE)),
            Some(b'/') => (Base::Root, entry.get(1..).unwrap_or(NONE)),
            _ => (Base::Relative, entry),
        };
        if !rest.is_empty() && !self.heads.meet(Heads::of(rest)) {
            return false;
        }
        if base == Base::Relative {
            // Anywhere: `.git/hooks` also in `/repo/.git/hooks/x` and in `~/x/.git/hooks`.
            return (0..self.parts.len()).any(|at| begins(self.parts.get(at..).unwrap_or_default(), rest));
        }
        // With an unknown folder in front, it may well be the home folder.
        let alike = self.base == base || (base == Base::Home && self.base == Base::Unknown);
        alike && begins(&self.parts, rest)
    }

    /// A whole tree, or all of somebody's files.
    pub fn is_root_or_home(&self) -> bool {
        let all = |part: &str| {
            !part.is_empty() && part.chars().all(|c| matches!(c, '*' | '.' | '?' | '[' | ']' | '!' | '{' | '}' | ','))
        };
        match (self.base, &*self.parts) {
            (Base::Root | Base::Home, []) => true,
            (Base::Root | Base::Home, [only]) if all(only) => true,
            (Base::Root, [top]) => TOPS.contains(top),
            (Base::Root, [top, only]) => TOPS.contains(top) && all(only),
            // `$x/`, where the variable may well be empty; `$x` alone is any file.
            (Base::Unknown, []) => self.text.ends_with('/'),
            (Base::Unknown, [only]) if all(only) => true,
            _ => false,
        }
    }

    pub fn is_system(&self) -> bool {
        let (Base::Root, [top, rest @ ..]) = (self.base, &*self.parts) else {
            return false;
        };
        match (*top, rest) {
            ("var", ["tmp" | "folders", ..]) | ("run", ["user", ..]) => false,
            ("dev", _) => false,
            ("proc", ["self", "oom_score_adj" | "coredump_filter", ..]) => false,
            (
                "Library" | "System" | "Applications" | "bin" | "boot" | "etc" | "lib" | "lib32" | "lib64" | "libx32",
                _,
            ) => true,
            ("opt" | "sbin" | "srv" | "usr" | "var" | "sys" | "proc" | "run" | "efi" | "nix", _) => true,
            _ => false,
        }
    }

    pub fn is_temporary(&self) -> bool {
        match (self.base, &*self.parts) {
            (Base::Root, ["tmp", ..] | ["var", "tmp", ..] | ["dev", "shm", ..] | ["private", "tmp", ..]) => true,
            _ => self.text.starts_with("$TMPDIR") || self.text.starts_with("$TEMP"),
        }
    }

    /// A disk, or the memory.
    pub fn is_device(&self) -> bool {
        let (Base::Root, ["dev", name, ..]) = (self.base, &*self.parts) else {
            return false;
        };
        const STARTS: &[&str] = &[
            "sd", "hd", "vd", "xvd", "nvme", "mmcblk", "disk", "rdisk", "md", "dm-", "mapper", "zvol", "mem", "kmem",
            "port", "sr", "nbd", "block", "bcache", "drbd", "ram", "mtd", "loop", "vg", "ubi",
        ];
        STARTS.iter().any(|start| name.starts_with(start))
    }

    /// Files by which git keeps what it knows; not the few that people edit.
    pub fn is_git_internal(&self) -> bool {
        let Some(at) = self.parts.iter().position(|part| *part == ".git") else { return false };
        let rest = self.parts.get(at + 1..).unwrap_or_default();
        !(self.name().ends_with(".lock")
            || matches!(rest, ["info", ..] | ["description"] | ["COMMIT_EDITMSG"] | ["MERGE_MSG"]))
    }

    /// Removing it would remove more than a part of the work at hand.
    pub fn is_outside(&self, scope: &Scope<'_>) -> bool {
        match self.base {
            Base::Unknown => true,
            Base::Bounded => self.escapes || self.parts.is_empty() || self.is_everything(),
            Base::Root | Base::Home => !scope.workspace.is_some_and(|workspace| inside(self.text, workspace)),
            Base::Relative => self.escapes || self.is_everything() || self.parts.contains(&".git"),
        }
    }

    fn is_everything(&self) -> bool {
        let all =
            |part: &&str| part.chars().all(|c| matches!(c, '*' | '.' | '?' | '{' | '}' | ',' | '[' | ']' | '!' | '^'));
        self.parts.iter().all(all) && !(self.parts.len() == 1 && self.parts.first() == Some(&"{}"))
    }
}

const TOPS: &[&str] = &[
    "bin",
    "boot",
    "dev",
    "etc",
    "home",
    "lib",
    "lib32",
    "lib64",
    "media",
    "mnt",
    "opt",
    "proc",
    "root",
    "run",
    "sbin",
    "srv",
    "sys",
    "usr",
    "var",
    "Users",
    "System",
    "Library",
    "Applications",
    "Volumes",
    "private",
    "nix",
    "efi",
];

fn base<'a>(text: &'a str, dynamic: Option<&Dynamic>) -> (Base, &'a str) {
    if let Some(rest) = text.strip_prefix('~') {
        // `~alice/x` is a home folder too.
        return (Base::Home, rest.find('/').map_or(NONE, |at| rest.get(at..).unwrap_or(NONE)));
    }
    if text.starts_with('/') {
        return (Base::Root, text);
    }
    if let Some(dynamic) = dynamic
        && dynamic.prefix.is_empty()
    {
        let rest = dynamic.suffix.len();
        let rest = text.get(text.len().saturating_sub(rest)..).unwrap_or(NONE);
        // `$x.txt` and `$x-y` are no folder and something below it.
        let rest = if rest.is_empty() || rest.starts_with('/') { rest } else { NONE };
        return match dynamic.sources.as_slice() {
            [Source::Variable(name)] if name == "HOME" => (Base::Home, rest),
            [Source::Variable(name)] if name == "PWD" => (Base::Relative, rest),
            [Source::BoundedOutput | Source::Names] => (Base::Bounded, rest),
            [Source::Number] => (Base::Relative, text),
            [Source::OneOf(values)] if values.iter().all(|value| lies_here(value)) => (Base::Relative, text),
            _ => (Base::Unknown, rest),
        };
    }
    for home in ["$HOME", "${HOME}", "$env:USERPROFILE", "%USERPROFILE%"] {
        if let Some(rest) = text.strip_prefix(home) {
            return (Base::Home, rest);
        }
    }
    // Part of a word: what is unknown in it shows as `$`.
    if text.starts_with('$') {
        return (Base::Unknown, text.find('/').map_or(NONE, |at| text.get(at..).unwrap_or(NONE)));
    }
    (Base::Relative, text)
}

/// A name in the folder at hand, or a pattern of names there with something known in each part.
fn lies_here(value: &str) -> bool {
    let named = |part: &str| part.bytes().any(|byte| byte.is_ascii_alphanumeric());
    let mut parts = value.trim_end_matches('/').split('/').filter(|part| *part != ".");
    !value.starts_with(['/', '~', '$', '-'])
        && parts.clone().next().is_some_and(named)
        && parts.all(|part| part != ".." && part != ".git")
}

fn inside(text: &str, workspace: &str) -> bool {
    let workspace = workspace.trim_end_matches('/');
    let Some(rest) = text.strip_prefix(workspace) else { return false };
    let mut depth = 0_i32;
    let mut named = false;
    for part in rest.split('/') {
        match part {
            "" | "." => {}
            ".." => depth -= 1,
            part => {
                depth += 1;
                named |= !part.chars().all(|c| matches!(c, '*' | '.' | '?'));
            }
        }
        if depth < 0 {
            return false;
        }
    }
    !workspace.is_empty() && rest.starts_with('/') && depth > 0 && named && !rest.split('/').any(|part| part == ".git")
}

/// The parts start with those of an entry.
fn begins(parts: &[&str], entry: &str) -> bool {
    let (wanted, part) = (entry.as_bytes().first(), parts.first().and_then(|part| part.as_bytes().first()));
    let plain = |byte: Option<&u8>| !matches!(byte, Some(b'*' | b'?' | b'['));
    if wanted != part && plain(wanted) && plain(part) && wanted.is_some() {
        return false;
    }
    let mut parts = parts.iter();
    let mut rest = Some(entry);
    while let Some(wanted) = next_part(&mut rest) {
        if !wanted.is_empty() && !parts.next().is_some_and(|part| fits(wanted, part)) {
            return false;
        }
    }
    true
}

/// What stands before the next slash. Parts are short: looking byte by byte is faster than a search that is prepared.
fn next_part<'a>(rest: &mut Option<&'a str>) -> Option<&'a str> {
    let text = (*rest)?;
    let Some(slash) = text.bytes().position(|byte| byte == b'/') else { return rest.take() };
    *rest = text.get(slash + 1..);
    text.get(..slash)
}

fn is_pattern(text: &str) -> bool {
    text.bytes().any(|byte| matches!(byte, b'*' | b'?' | b'['))
}

/// Whether a name and a pattern could be the same file; either side may hold `*` and `?`.
pub fn fits(wanted: &str, part: &str) -> bool {
    // Nearly every comparison ends here: the first bytes differ and neither stands for others.
    let (first, other) = (wanted.as_bytes().first(), part.as_bytes().first());
    let plain = |byte: Option<&u8>| !matches!(byte, Some(b'*' | b'?' | b'['));
    if first != other && plain(first) && plain(other) {
        return false;
    }
    if wanted == part {
        return true;
    }
    // A pattern does not reach names that start with a dot, unless it says so.
    if part.starts_with(['*', '?', '[']) && wanted.starts_with('.') {
        return false;
    }
    match (is_pattern(wanted), is_pattern(part)) {
        (true, false) => glob(wanted.as_bytes(), part.as_bytes()),
        (false, true) => glob(part.as_bytes(), wanted.as_bytes()),
        // Two patterns: what is constant at their starts and at their ends decides.
        (true, true) => {
            let special = ['*', '?', '[', ']'];
            let head = |text: &str| text.find(special).unwrap_or(text.len());
            let tail = |text: &str| text.rfind(special).map_or(0, |at| at + 1);
            let (a, b) = (wanted.get(..head(wanted)).unwrap_or(NONE), part.get(..head(part)).unwrap_or(NONE));
            let (c, d) = (wanted.get(tail(wanted)..).unwrap_or(NONE), part.get(tail(part)..).unwrap_or(NONE));
            (a.starts_with(b) || b.starts_with(a)) && (c.ends_with(d) || d.ends_with(c))
        }
        (false, false) => false,
    }
}

/// `*`, `?` and `[…]` (as any one character), in linear time for one star and quadratic at worst.
pub fn glob(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    loop {
        match (pattern.get(p), text.get(t)) {
            (None, None) => return true,
            (Some(b'*'), _) => {
                star = Some((p + 1, t));
                p += 1;
                continue;
            }
            (Some(b'?'), Some(_)) => {
                p += 1;
                t += 1;
                continue;
            }
            (Some(b'['), Some(_)) => {
                let close = pattern.iter().skip(p + 2).position(|byte| *byte == b']');
                if let Some(close) = close {
                    p += close + 3;
                    t += 1;
                    continue;
                }
            }
            (Some(wanted), Some(byte)) if wanted == byte => {
                p += 1;
                t += 1;
                continue;
            }
            _ => {}
        }
        let Some((after, from)) = star else { return false };
        if from >= text.len() {
            return false;
        }
        star = Some((after, from + 1));
        p = after;
        t = from + 1;
    }
}
