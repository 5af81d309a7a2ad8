//! Words that can be taken for other words: mixed scripts, and letters that pass for ASCII.
//!
//! Follows the "highly restrictive" level of UTS 39 for scripts. Finds; what is shown of it is decided by
//! the caller.

use std::ops::Range;

use unicode_script::{Script, UnicodeScript};

use super::lookalikes::ascii_for;
use super::punycode;

/// Scripts that are written together in one word.
const TOGETHER: [&[Script]; 3] = [
    &[Script::Latin, Script::Han, Script::Hiragana, Script::Katakana],
    &[Script::Latin, Script::Han, Script::Bopomofo],
    &[Script::Latin, Script::Han, Script::Hangul],
];

/// In UTF-8 bytes, several times what DNS allows.
const MAX_HOST: usize = 1024;
/// Hosts looked at in one word; each costs a walk over the word's suspects.
const MAX_HOSTS: usize = 8;

/// A part of a text that is not what it may look like.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Suspect {
    pub range: Range<usize>,
    pub why: Why,
    /// The host it stands in, as it goes over the wire.
    pub punycode: Option<String>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Why {
    Mixed(Vec<&'static str>),
    LooksLike(String),
    /// A host in another script, honest or not: people read it, machines use its other name.
    ForeignHost,
}

/// Every suspect part of a text, in order. At most `named` of them carry their punycode.
pub(super) fn suspects(text: &str, named: usize) -> Vec<Suspect> {
    if text.is_ascii() {
        return Vec::new();
    }
    let written_in = scripts_really_used(text);
    let mut all = Vec::new();
    for (word_start, word) in parts(text, char::is_whitespace) {
        if word.is_ascii() {
            continue;
        }
        let addressed = word.contains(['.', '/', ':', '@', '\\', '=']);
        let first = all.len();
        for (start, token) in parts(word, |c| c.is_ascii() && !c.is_ascii_alphanumeric()) {
            if let Some(why) = judge(token, addressed, &written_in) {
                let start = word_start + start;
                all.push(Suspect { range: start..start + token.len(), why, punycode: None });
            }
        }
        if first < named {
            name_hosts(word_start, word, &mut all, first);
        }
    }
    all.sort_by_key(|suspect| suspect.range.start);
    all
}

fn judge(token: &str, addressed: bool, written_in: &[Script]) -> Option<Why> {
    if token.is_ascii() {
        return None;
    }
    let scripts = scripts_of(token);
    if !written_together(&scripts) {
        return Some(Why::Mixed(scripts.iter().map(|script| script.full_name()).collect()));
    }
    let looks_like = skeleton(token)?;
    // In a sentence that really is in that script, a word of such letters is just a word.
    let prose = !addressed && scripts.iter().all(|script| written_in.contains(script));
    // Full stops and slashes of other scripts deceive in an address, not in a sentence.
    let letters = token.chars().any(|c| !c.is_ascii() && c.is_alphanumeric());
    let deceives = if letters { scripts.is_empty() || !prose } else { addressed };
    deceives.then_some(Why::LooksLike(looks_like))
}

/// The ASCII text that a token passes for, when it does so whole.
fn skeleton(token: &str) -> Option<String> {
    let as_ascii = |c: char| if c.is_ascii() { Some(c) } else { ascii_for(c) };
    let skeleton: String = token.chars().map(as_ascii).collect::<Option<_>>()?;
    skeleton.contains(|c: char| c.is_ascii_alphanumeric()).then_some(skeleton)
}

fn scripts_of(token: &str) -> Vec<Script> {
    let mut scripts = Vec::new();
    for script in token.chars().map(|c| c.script()) {
        let counts = !matches!(script, Script::Common | Script::Inherited | Script::Unknown);
        if counts && !scripts.contains(&script) {
            scripts.push(script);
        }
    }
    scripts
}

fn written_together(scripts: &[Script]) -> bool {
    let within = |group: &&[Script]| scripts.iter().all(|script| group.contains(script));
    scripts.len() <= 1 || TOGETHER.iter().any(within)
}

/// Scripts with at least one word that cannot be taken for ASCII. Latin is never among them: fullwidth and
/// other odd Latin letters have no sentence to excuse them.
fn scripts_really_used(text: &str) -> Vec<Script> {
    let mut used = Vec::new();
    for c in text.chars().filter(|c| c.is_alphabetic() && !c.is_ascii()) {
        let script = c.script();
        if script != Script::Latin && ascii_for(c).is_none() && !used.contains(&script) {
            used.push(script);
        }
    }
    used
}

/// Gives the suspects of a word the punycode of the host they stand in, and finds hosts that are only foreign.
fn name_hosts(word_start: usize, word: &str, all: &mut Vec<Suspect>, first: usize) {
    let in_host = |c: char| !c.is_ascii() || c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
    let hosts = parts(word, |c| !in_host(c)).into_iter().filter(|(_, run)| {
        let host = run.trim_matches('.');
        !host.is_ascii() && host.len() <= MAX_HOST && is_host(host)
    });
    for (start, run) in hosts.take(MAX_HOSTS) {
        let host = run.trim_matches('.');
        let Some(punycode) = punycode::host(host) else {
            continue;
        };
        let range = word_start + start..word_start + start + run.len();
        let mut known = false;
        for suspect in all.iter_mut().skip(first) {
            if range.contains(&suspect.range.start) {
                suspect.punycode = Some(punycode.clone());
                known = true;
            }
        }
        let before = word.get(..start).unwrap_or_default();
        if !known && (before.ends_with("//") || before.ends_with('@')) {
            all.push(Suspect { range, why: Why::ForeignHost, punycode: Some(punycode) });
        }
    }
}

fn is_host(text: &str) -> bool {
    let top = text.rsplit('.').next().unwrap_or_default();
    text.contains('.') && !text.contains("..") && top.chars().count() >= 2 && !top.chars().all(|c| c.is_ascii_digit())
}

/// The parts of a text between separators, with their byte offsets; empty ones are left out.
fn parts(text: &str, separates: impl Fn(char) -> bool) -> Vec<(usize, &str)> {
    let mut parts = Vec::new();
    let mut start = 0;
    for part in text.split(&separates) {
        if !part.is_empty() {
            parts.push((start, part));
        }
        let separator = text.get(start + part.len()..).and_then(|rest| rest.chars().next());
        start += part.len() + separator.map_or(0, char::len_utf8);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whys(text: &str) -> Vec<(&str, Why)> {
        let all = suspects(text, 3);
        all.into_iter().map(|s| (text.get(s.range).unwrap(), s.why)).collect()
    }

    #[test]
    fn threat_07_mixed_and_look_alike_words_are_found() {
        let latin_cyrillic = || Why::Mixed(vec!["Latin", "Cyrillic"]);
        assert_eq!(whys("curl https://p\u{430}ypal.com/x"), [("p\u{430}ypal", latin_cyrillic())]);
        assert_eq!(whys("rm -rf /hom\u{435}/me"), [("hom\u{435}", latin_cyrillic())]);
        assert_eq!(whys("cd аррӏе"), [("аррӏе", Why::LooksLike("apple".into()))]);
        assert_eq!(whys("ｇｉｔ push"), [("ｇｉｔ", Why::LooksLike("git".into()))]);
        assert_eq!(whys("see 𝗀𝗈𝗈𝗀𝗅𝖾.com"), [("𝗀𝗈𝗈𝗀𝗅𝖾", Why::LooksLike("google".into()))]);
        assert_eq!(whys("https://good.com∕x.evil.example"), [("com∕x", Why::LooksLike("com/x".into()))]);
        assert_eq!(whys("ꓮ ο.gr"), [("ο", Why::LooksLike("o".into()))]);
    }

    #[test]
    fn threat_07_honest_writing_is_left_alone() {
        for text in [
            "plain text",
            "grüße aus münchen",
            "привет, а у нас оса",
            "γειά σου ο κόσμος",
            "日本語とABCテスト",
            "한국어 漢字abc",
            "naïve café",
            "echo 'приветworld'".trim_end_matches("world'"),
            "OK！ 你好。",
            "schön.txt",
        ] {
            assert_eq!(whys(text), [], "{text}");
        }
    }

    #[test]
    fn threat_07_hosts_get_their_punycode() {
        let punycode = |text| suspects(text, 3).into_iter().next().and_then(|s| s.punycode);
        assert_eq!(punycode("curl https://p\u{430}ypal.com/x").as_deref(), Some("xn--pypal-4ve.com"));
        assert_eq!(punycode("ssh me@bücher.example").as_deref(), Some("xn--bcher-kva.example"));
        assert_eq!(punycode("cat hom\u{435}/x"), None);
    }
}
