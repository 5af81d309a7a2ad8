//! Which paths hold secrets. Patterns on path components from `rules/paths.toml`; no file is ever looked at.

use super::table::{self, BARE, EXCUSED, Sensitive, SensitiveName};

/// How a command touches what it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Touch {
    /// Shows names or metadata.
    Names,
    Contents,
    /// Shows the contents of everything below.
    Tree,
}

/// Why this path should not be read without asking, if so.
pub(crate) fn sensitive(path: &str) -> Option<&'static str> {
    touched(path, Touch::Contents)
}

pub(super) fn touched(path: &str, touch: Touch) -> Option<&'static str> {
    touched_as_written(path, touch).or_else(|| {
        // On disks without case another spelling is the same file.
        let upper = path.bytes().any(|byte| byte.is_ascii_uppercase());
        if upper { touched_as_written(&path.to_ascii_lowercase(), touch) } else { None }
    })
}

fn touched_as_written(path: &str, touch: Touch) -> Option<&'static str> {
    // A URL or `--color=auto` style word has no business here, but costs nothing to look at either.
    let place = Place::of(path);
    // Some tools take a backslash for a separator, and a name that begins as a parent folder is a trick.
    if place.steps.iter().any(|step| step.len() > 2 && step.starts_with("..") && *step != "...") {
        return Some("looks like a path outside this folder");
    }
    if let Some(reason) = place.secret(touch) {
        return Some(reason);
    }
    let short = place.shortened();
    if let Some(short) = &short
        && let Some(reason) = short.secret(touch)
    {
        return Some(reason);
    }
    if touch == Touch::Tree && short.as_ref().unwrap_or(&place).holds_secrets() {
        return Some("a folder that holds keys, credentials and history");
    }
    None
}

/// Whether a path that starts in an unknown folder would lead to a secret in some: `shadow`, `../../etc/shadow`.
pub(super) fn secret_somewhere(path: &str) -> bool {
    let steps = path.split('/').filter(|step| !step.is_empty() && *step != ".");
    let above = steps.clone().take_while(|step| *step == "..").count();
    let rest: Vec<&str> = steps.skip(above).collect();
    let Some(last) = rest.last() else { return false };
    let named = |name: &str| name == *last || (is_glob(last) && pointed(last, Touch::Contents) && glob(last, name));
    let from_above = |anchor: &str| touched(&format!("{anchor}/{}", rest.join("/")), Touch::Contents).is_some();
    table::words(BARE).any(named) || (above > 0 && (from_above("") || from_above("~")))
}

/// Folders at the root whose files are of the system, of a home (held against the patterns) or where code is commonly
/// mounted. A secret mounted anywhere else has no name that could be known, so contents elsewhere are asked for.
const KNOWN_ROOTS: &[&str] = &[
    "etc",
    "proc",
    "sys",
    "usr",
    "var",
    "tmp",
    "private",
    "opt",
    "lib",
    "lib32",
    "lib64",
    "bin",
    "sbin",
    "dev",
    "run",
    "boot",
    "nix",
    "snap",
    "home",
    "Users",
    "root",
    "Applications",
    "Library",
    "System",
    "workspace",
    "workspaces",
    "work",
    "repo",
    "repos",
    "app",
    "src",
    "code",
    "project",
    "projects",
    "build",
    "testbed",
    "github",
];

/// Whether an absolute path leads where nothing is known of what is kept there.
pub(super) fn unknown_place(path: &str) -> bool {
    let path = path.strip_prefix("file://").unwrap_or(path);
    if !path.starts_with('/') {
        return false;
    }
    let mut steps: Vec<&str> = Vec::new();
    for step in path.split('/').filter(|step| !step.is_empty() && *step != ".") {
        match step {
            ".." => drop(steps.pop()),
            step => steps.push(step),
        }
    }
    steps.first().is_some_and(|first| !KNOWN_ROOTS.contains(first))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Anchor {
    Root,
    Home,
    Here,
}

/// A path as its steps from an anchor.
#[derive(Debug)]
struct Place<'a> {
    anchor: Anchor,
    steps: Vec<&'a str>,
}

impl<'a> Place<'a> {
    fn of(path: &'a str) -> Self {
        let path = path.strip_prefix("file://").unwrap_or(path);
        let mut steps: Vec<&str> = path.split('/').filter(|step| !step.is_empty() && *step != ".").collect();
        let first = steps.first().copied().unwrap_or("");
        let mut drop = 0;
        let mut anchor = Anchor::Here;
        if first.starts_with('~') || first == "$HOME" || first == "${HOME}" {
            (anchor, drop) = (Anchor::Home, 1);
        } else if path.starts_with('/') {
            anchor = Anchor::Root;
            match first {
                "root" => (anchor, drop) = (Anchor::Home, 1),
                "home" | "Users" if steps.len() > 1 => (anchor, drop) = (Anchor::Home, 2),
                _ => {}
            }
        }
        steps.drain(..drop);
        Self { anchor, steps }
    }

    /// The same without `..`, if it had any.
    fn shortened(&self) -> Option<Self> {
        if !self.steps.contains(&"..") {
            return None;
        }
        let mut anchor = self.anchor;
        let mut steps: Vec<&str> = Vec::new();
        for step in &self.steps {
            if *step != ".." {
                steps.push(step);
            } else if steps.last().is_some_and(|last| *last != "..") {
                steps.pop();
            } else if anchor == Anchor::Here {
                steps.push("..");
            } else {
                // Above the home is `/home`, above that `/`: both hold every home.
                anchor = Anchor::Root;
            }
        }
        // `~/../../etc/shadow` and `/home/../root/.ssh` are rooted again.
        if anchor == Anchor::Root {
            match steps.first() {
                Some(&"root") => {
                    anchor = Anchor::Home;
                    steps.drain(..1);
                }
                Some(&("home" | "Users")) if steps.len() > 1 => {
                    anchor = Anchor::Home;
                    steps.drain(..2);
                }
                _ => {}
            }
        }
        Some(Self { anchor, steps })
    }

    fn secret(&self, touch: Touch) -> Option<&'static str> {
        let last = self.steps.last()?;
        let reason =
            self.steps.iter().find_map(|step| named(step, touch)).or_else(|| extension(last)).or_else(|| {
                let heads = Heads::of(&self.steps, touch);
                let mut rules = Sensitive::all().iter().filter(|rule| heads.may_begin(rule.head));
                rules.find(|rule| self.fits(rule, touch)).map(Sensitive::reason)
            })?;
        let excused = table::words(EXCUSED).any(|excuse| glob(excuse, last));
        (!excused).then_some(reason)
    }

    fn fits(&self, rule: &Sensitive, touch: Touch) -> bool {
        let mut wanted = rule.components();
        if rule.rooted {
            return self.anchor == Anchor::Root && tail(wanted, &self.steps, rule, touch);
        }
        if wanted.clone().next() == Some("~") {
            wanted.next();
            return self.anchor == Anchor::Home && tail(wanted, &self.steps, rule, touch);
        }
        (0..self.steps.len()).any(|from| tail(wanted.clone(), self.steps.get(from..).unwrap_or(&[]), rule, touch))
    }

    /// Whether secrets live somewhere below.
    fn holds_secrets(&self) -> bool {
        match (self.anchor, self.steps.as_slice()) {
            (Anchor::Root | Anchor::Home, []) | (Anchor::Root, ["home" | "Users" | "proc"]) => return true,
            (Anchor::Here, _) => return false,
            _ => {}
        }
        Sensitive::all().iter().any(|rule| {
            let mut wanted = rule.components();
            let at_home = !rule.rooted && rule.components().next().is_some_and(|first| first.starts_with(['~', '.']));
            if rule.components().next() == Some("~") {
                wanted.next();
            }
            let anchored =
                if rule.rooted { self.anchor == Anchor::Root } else { self.anchor == Anchor::Home && at_home };
            anchored && self.steps.iter().all(|step| wanted.next().is_some_and(|want| want != "**" && glob(want, step)))
        })
    }
}

/// Which bytes the steps of a path begin with: most patterns are out at once.
struct Heads([u64; 4]);

impl Heads {
    fn of(steps: &[&str], touch: Touch) -> Self {
        let mut heads = Self([0; 4]);
        for step in steps.iter().filter(|step| **step != "..") {
            if is_glob(step) && (pointed(step, touch) || touch != Touch::Names) {
                return Self([u64::MAX; 4]);
            }
            let byte = step.bytes().next().unwrap_or(0);
            if let Some(bits) = heads.0.get_mut(usize::from(byte >> 6)) {
                *bits |= 1 << (byte & 63);
            }
        }
        heads
    }

    fn may_begin(&self, byte: u8) -> bool {
        byte == 0 || self.0.get(usize::from(byte >> 6)).is_some_and(|bits| bits >> (byte & 63) & 1 == 1)
    }
}

/// `server.pem`, and `*.pem` as the caller may write it.
fn extension(name: &str) -> Option<&'static str> {
    let (before, extension) = name.rsplit_once('.')?;
    let literal = extension.bytes().filter(|byte| byte.is_ascii_alphanumeric()).count();
    if is_glob(extension) && literal > 1 {
        return SensitiveName::extensions().iter().find(|row| glob(extension, row.name())).map(SensitiveName::reason);
    }
    if before.is_empty() { None } else { SensitiveName::extension(extension) }
}

/// Whether a pattern's components fit these steps to their end; a last `**` is the folder and all below.
fn tail(wanted: impl Iterator<Item = &'static str>, steps: &[&str], rule: &Sensitive, touch: Touch) -> bool {
    let mut steps = steps.iter();
    for want in wanted {
        if want == "**" {
            return true;
        }
        match steps.next() {
            Some(step) if one(want, step, rule, touch) => {}
            _ => return false,
        }
    }
    steps.next().is_none()
}

fn one(want: &str, step: &str, rule: &Sensitive, touch: Touch) -> bool {
    // `*.pem` written by the caller aims at what the pattern `*.pem` is for.
    if want == "*" || want == step || (!is_glob(step) && glob(want, step)) {
        return true;
    }
    // Among the files of a folder that is known to hold secrets, any pattern that fits one means it.
    let aimed = pointed(step, touch) || (rule.is_anchored() && touch != Touch::Names);
    is_glob(step) && aimed && (glob(step, want) || rule.samples().any(|sample| glob(step, sample)))
}

fn named(step: &str, touch: Touch) -> Option<&'static str> {
    if !is_glob(step) {
        return SensitiveName::find(step);
    }
    if !pointed(step, touch) {
        return None;
    }
    SensitiveName::all().iter().find(|row| glob(step, row.name())).map(SensitiveName::reason)
}

fn is_glob(step: &str) -> bool {
    step.bytes().any(|byte| matches!(byte, b'*' | b'?' | b'['))
}

/// Whether a glob aims at something: `*` and `*.rs` sweep, `.e*` and `id_*` aim. `.*` sweeps up hidden files,
/// which matters when contents are shown.
fn pointed(step: &str, touch: Touch) -> bool {
    if step.starts_with('.') && touch != Touch::Names {
        return true;
    }
    if step.strip_prefix("*.").is_some_and(|rest| !is_glob(rest)) {
        return false;
    }
    step.chars().filter(|c| !matches!(c, '*' | '?' | '[' | ']' | '.' | '!' | '^')).count() >= 2
}

/// Shell patterns without a regular expression: at most one place to go back to.
pub fn glob(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    if text.first() == Some(&b'.') && matches!(pattern.first(), Some(b'*' | b'?' | b'[')) {
        return false;
    }
    let (mut p, mut t) = (0, 0);
    let mut back: Option<(usize, usize)> = None;
    while t < text.len() {
        let fits = match pattern.get(p) {
            Some(b'*') => {
                back = Some((p, t));
                p += 1;
                continue;
            }
            Some(b'?') => Some(p + 1),
            Some(b'[') => class(pattern, p, text.get(t).copied().unwrap_or(0)),
            Some(byte) => (text.get(t) == Some(byte)).then_some(p + 1),
            None => None,
        };
        match (fits, back) {
            (Some(next), _) => {
                p = next;
                t += 1;
            }
            (None, Some((star, from))) => {
                back = Some((star, from + 1));
                p = star + 1;
                t = from + 1;
            }
            (None, None) => return false,
        }
    }
    pattern.get(p..).is_some_and(|rest| rest.iter().all(|byte| *byte == b'*'))
}

/// Where a class that holds this byte ends; `None` when it does not hold it.
fn class(pattern: &[u8], from: usize, byte: u8) -> Option<usize> {
    let mut at = from + 1;
    let negated = matches!(pattern.get(at), Some(b'!' | b'^'));
    if negated {
        at += 1;
    }
    let start = at;
    let mut found = false;
    loop {
        match (pattern.get(at), pattern.get(at + 1), pattern.get(at + 2)) {
            (None, _, _) => return (byte == b'[').then_some(from + 1),
            (Some(b']'), _, _) if at > start => return (found != negated).then_some(at + 1),
            (Some(low), Some(b'-'), Some(high)) if *high != b']' => {
                found |= (*low..=*high).contains(&byte);
                at += 3;
            }
            (Some(one), _, _) => {
                found |= *one == byte;
                at += 1;
            }
        }
    }
}
