//! What a command does something to: its words as objects, seen from where the text starts, and as a person reads them.

use crate::command::{Simple, Stdin};
use crate::danger::arguments::Arguments;
use crate::danger::facts::Piece;
use crate::word::Word;

use super::table::spells;
use super::template::{Hole, Take};

/// Longer names are cut.
const MAX_SHOWN_CHARS: usize = 80;
/// More are counted.
const MAX_LISTED: usize = 3;

/// A command's words, for filling holes.
pub(super) struct Objects<'a, 'w> {
    pub simple: &'a Simple,
    pub arguments: &'a Arguments<'w>,
    /// Operands that chose the form and are no objects.
    pub skip: usize,
    /// Where the text starts.
    pub start: Option<&'a str>,
    /// The program that lists what comes at run time.
    pub lister: Option<&'a str>,
}

impl Objects<'_, '_> {
    /// As a person reads it: quoted, joined and cut.
    pub fn shown(&self, hole: Hole<'_>, take: Take) -> Option<String> {
        let mut all: Vec<String> = self.pieces(hole).iter().map(|piece| self.quoted(piece, take)).collect();
        let placeholder = self.arguments.operands.iter().any(|piece| piece.text == "{}");
        if matches!(hole, Hole::Operands(_)) && self.simple.more_arguments && !placeholder {
            all.push(match self.lister {
                Some(lister) => format!("whatever {} lists", quote(lister)),
                None => "what is added when it runs".to_owned(),
            });
        }
        listed(&all)
    }

    /// As a program reads it.
    pub fn told(&self, hole: Hole<'_>, take: Take) -> Vec<String> {
        let known = |piece: &&Piece<'_>| !piece.word.is_some_and(Word::is_dynamic);
        let pieces = self.pieces(hole);
        pieces
            .iter()
            .filter(|piece| known(piece) && piece.text != "{}")
            .map(|piece| self.taken(piece.text, take, true))
            .collect()
    }

    fn pieces(&self, hole: Hole<'_>) -> Vec<Piece<'_>> {
        let operands = self.arguments.operands.get(self.skip..).unwrap_or_default();
        match hole {
            Hole::Operand(at) => operands.get(at - 1).into_iter().copied().collect(),
            Hole::Operands(from) => operands.get(from - 1..).unwrap_or_default().to_vec(),
            Hole::Last => operands.last().into_iter().copied().collect(),
            Hole::Value(spellings) => {
                let mut all = spellings.split('|');
                let given = all.find_map(|one| self.arguments.options.iter().rev().find(|given| spells(given, one)));
                given.and_then(|given| given.value).into_iter().collect()
            }
        }
    }

    fn quoted(&self, piece: &Piece<'_>, take: Take) -> String {
        if piece.text == "{}" {
            return match self.lister {
                Some(lister) => format!("each file that {} finds", quote(lister)),
                None => "each line that it is given".to_owned(),
            };
        }
        let unknown = piece.word.is_some_and(Word::is_dynamic) && piece.text.contains("$…");
        if unknown && piece.text.replace("$…", "").trim_matches('/').is_empty() {
            return "what is only known when it runs".to_owned();
        }
        quote(&self.taken(piece.text, take, false).replace("$…", "…"))
    }

    fn taken(&self, text: &str, take: Take, absolute: bool) -> String {
        match take {
            Take::Whole => text.to_owned(),
            Take::Host => host(text).to_owned(),
            Take::Path => self.path(text, absolute),
            Take::Base => text.trim_end_matches('/').rsplit('/').next().unwrap_or(text).to_owned(),
            Take::Name => name(text).to_owned(),
        }
    }

    pub fn path(&self, text: &str, absolute: bool) -> String {
        placed(self.simple, self.start, text, absolute)
    }
}

/// The words of a command as they are read; `pictures` are what they look like.
pub(super) fn pieces<'a>(simple: &'a Simple, pictures: &'a [String]) -> Vec<Piece<'a>> {
    let piece = |(word, text): (&'a Word, &'a String)| Piece { text, word: Some(word), span: word.span, seen: None };
    simple.argv.iter().zip(pictures).map(piece).collect()
}

/// A path from the folder that a command runs in: absolute, or as it is seen from where the text starts.
pub(super) fn placed(simple: &Simple, start: Option<&str>, text: &str, absolute: bool) -> String {
    let below = |path: &str| -> Option<String> {
        let rest = path.strip_prefix(start?)?.strip_prefix('/')?;
        (!absolute && !rest.is_empty()).then(|| rest.to_owned())
    };
    if text.starts_with(['/', '~', '$']) {
        return below(text).unwrap_or_else(|| text.to_owned());
    }
    let folder = match simple.runs_in.folders.as_slice() {
        [only] if !simple.runs_in.unknown => &**only,
        _ => "",
    };
    let folder = if !absolute && Some(folder) == start { "" } else { folder };
    let mut text = text;
    while let Some(rest) = text.strip_prefix("./") {
        text = rest;
    }
    match (folder, text) {
        ("" | ".", "") => ".".to_owned(),
        ("" | ".", text) => text.to_owned(),
        (folder, "." | "") => below(folder).unwrap_or_else(|| folder.to_owned()),
        (folder, text) => {
            let whole = format!("{}/{text}", folder.trim_end_matches('/'));
            below(&whole).unwrap_or(whole)
        }
    }
}

/// Which program lists what a command is fed.
pub(super) fn lister(simple: &Simple) -> Option<&str> {
    if let Some(via) = simple.via.iter().rev().find(|via| matches!(via.program.as_str(), "find" | "fd" | "fdfind")) {
        return Some(&via.program);
    }
    match &simple.stdin {
        Stdin::Pipe(programs) => programs.last().map(String::as_str),
        Stdin::Inherited | Stdin::File | Stdin::Here(_) => None,
    }
}

/// The host of a URL, or of `user@host:path`.
pub(super) fn host(text: &str) -> &str {
    let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let authority = rest.get(..end).unwrap_or(rest);
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    match host.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
        Some((inner, _)) => inner,
        None => host.split(':').next().unwrap_or(host),
    }
}

/// Whether a host is this machine itself.
pub(super) fn is_loopback(host: &str) -> bool {
    host == "localhost"
        || host == "::1"
        || host == "0.0.0.0"
        || host.ends_with(".localhost")
        || host.starts_with("127.")
}

/// A package without its version.
fn name(text: &str) -> &str {
    let end = text.char_indices().skip(1).find(|(_, c)| matches!(c, '@' | '=' | '<' | '>' | '~' | '!' | '['));
    end.and_then(|(end, _)| text.get(..end)).unwrap_or(text)
}

/// Between backticks, on one line.
pub(super) fn quote(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let mut shown: String = line.chars().take(MAX_SHOWN_CHARS).map(|c| if c == '`' { '\'' } else { c }).collect();
    if line.len() < text.trim_end().len() || line.chars().count() > MAX_SHOWN_CHARS {
        shown.push('…');
    }
    format!("`{shown}`")
}

/// `a`, `a and b`, `a, b and 3 more`.
pub(super) fn listed(all: &[String]) -> Option<String> {
    match all {
        [] => None,
        [one] => Some(one.clone()),
        [first @ .., last] if all.len() <= MAX_LISTED => Some(format!("{} and {last}", first.join(", "))),
        many => {
            let shown = many.get(..MAX_LISTED - 1).unwrap_or_default();
            Some(format!("{} and {} more", shown.join(", "), many.len() - shown.len()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_what_stands_before_the_path() {
        for (text, expected) in [
            ("https://get.example.sh/install?x=1", "get.example.sh"),
            ("https://token@git.example.com:8443/a.git", "git.example.com"),
            ("git@github.com:me/x.git", "github.com"),
            ("deploy@10.0.0.5", "10.0.0.5"),
            ("http://[::1]:80/", "::1"),
            ("example.com", "example.com"),
        ] {
            assert_eq!(host(text), expected, "{text}");
        }
    }

    #[test]
    fn a_package_is_named_without_its_version() {
        for (text, expected) in [
            ("left-pad@1.3.0", "left-pad"),
            ("@types/node@20", "@types/node"),
            ("django>=4", "django"),
            ("uvicorn[standard]", "uvicorn"),
            ("serde", "serde"),
        ] {
            assert_eq!(name(text), expected, "{text}");
        }
    }

    #[test]
    fn many_are_counted() {
        let names = |count: usize| (1..=count).map(|n| n.to_string()).collect::<Vec<_>>();
        assert_eq!(listed(&names(0)), None);
        assert_eq!(listed(&names(2)).unwrap(), "1 and 2");
        assert_eq!(listed(&names(3)).unwrap(), "1, 2 and 3");
        assert_eq!(listed(&names(6)).unwrap(), "1, 2 and 4 more");
    }
}
