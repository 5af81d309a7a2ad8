//! Layer 1, allowlist: whether entries speak for an assessed text. Token by token on parsed commands, never on
//! text; what is not plainly covered is not covered.

use crate::assess::{Assessment, Options, Part, Resolve, assess};
use crate::entry::{Entry, Token, Tokens};
use crate::reason::Risk;

/// Whether the entries speak for the text.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Coverage {
    Covered,
    /// The command that nothing covers, by its place in `commands`; `None` when the text as a whole cannot be.
    Uncovered(Option<usize>),
}

/// What the built-in defaults answer: security allowlist, ask on-miss, safe commands allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    Allow,
    Ask,
    Deny,
}

/// Whether the entries speak for everything in the text. `allow_safe`: commands that are safe need no entry.
pub fn cover(assessment: &Assessment, entries: &[Entry], allow_safe: bool, options: &Options<'_>) -> Coverage {
    if !assessment.coverable {
        return Coverage::Uncovered(None);
    }
    let commands = assessment.commands.iter().zip(&assessment.parts).map(|(simple, part)| {
        let argv: Tokens<'_> = simple.argv.iter().map(Token::from).collect();
        (argv, simple.more_arguments, *part)
    });
    cover_all(commands, entries.iter(), allow_safe, options.resolve)
}

/// The same for commands in any form; nothing at all is covered by nothing.
pub(crate) fn cover_all<'w, 'e>(
    commands: impl Iterator<Item = (Tokens<'w>, bool, Part)>,
    entries: impl Iterator<Item = &'e Entry> + Clone,
    allow_safe: bool,
    resolve: Option<&Resolve<'_>>,
) -> Coverage {
    let mut spoken_for: Vec<bool> = Vec::new();
    for (index, (argv, more, part)) in commands.enumerate() {
        let carried = part.role.carried_by.and_then(|at| spoken_for.get(at)).copied().unwrap_or(false);
        let matches = |entry: &Entry| entry.matches(&argv, more, resolve);
        let exactly = carried || (part.role.carrier && entries.clone().any(|entry| entry.is_exact() && matches(entry)));
        spoken_for.push(exactly);
        let harmless = part.risk.is_none() && (allow_safe || part.role.bare || part.role.transparent);
        let exact_only = part.exact_only || part.risk == Some(Risk::Dangerous) || part.role.carrier;
        let spoken = || entries.clone().any(|entry| (!exact_only || entry.is_exact()) && matches(entry));
        if !(exactly || harmless || spoken()) {
            return Coverage::Uncovered(Some(index));
        }
    }
    if spoken_for.is_empty() { Coverage::Uncovered(None) } else { Coverage::Covered }
}

/// The answer of the built-in defaults to a text, with these entries allowed.
#[must_use]
pub fn verdict(assessment: &Assessment, entries: &[Entry], options: &Options<'_>) -> Verdict {
    if assessment.reasons.iter().any(|reason| reason.code == "unshowable") {
        return Verdict::Deny;
    }
    if assessment.risk == Risk::Safe || cover(assessment, entries, true, options) == Coverage::Covered {
        return Verdict::Allow;
    }
    Verdict::Ask
}

/// Assesses a text and answers for it.
#[must_use]
pub fn verdict_of(text: &str, allowlist: &[&str], options: &Options<'_>) -> Verdict {
    let entries: Vec<Entry> = allowlist.iter().filter_map(|pattern| Entry::parse(pattern)).collect();
    verdict(&assess(text, options), &entries, options)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(text: &str, entries: &[&str]) -> bool {
        let resolve = |word: &str| Some(if word.contains('/') { word.to_owned() } else { format!("/usr/bin/{word}") });
        let options = Options { resolve: Some(&resolve), ..Options::default() };
        verdict_of(text, entries, &options) == Verdict::Allow
    }

    #[test]
    fn entries_speak_for_whole_words() {
        for (text, entry) in [
            ("cargo build", "cargo"),
            ("cargo build", "cargo **"),
            ("cargo build", "cargo build"),
            ("cargo build --release", "cargo build *"),
            ("cargo build | grep error", "cargo **"),
            ("/usr/bin/cargo build", "cargo"),
            ("cargo build", "/usr/bin/cargo"),
            ("cargo build", "/usr/bin/**"),
            ("cargo build", "/usr/bin/car*"),
            ("env cargo build", "cargo **"),
            ("cargo test 'a b'", "cargo test 'a b'"),
            ("npm run b", "npm run ?"),
            ("nice -n 5 cargo build", "cargo **"),
        ] {
            let expected = !entry.contains('?');
            assert_eq!(allowed(text, &[entry]), expected, "{entry} and {text}");
        }
    }

    #[test]
    fn entries_do_not_speak_for_more() {
        for (text, entry) in [
            ("cargo build --release", "cargo build"),
            ("cargo buildx", "cargo build"),
            ("Cargo build", "cargo **"),
            ("./cargo build", "cargo"),
            ("cargo build; npm ci", "cargo **"),
            ("cargo build > x", "cargo **"),
            ("cargo build &", "cargo **"),
            ("cargo $(git rev-parse HEAD)", "cargo **"),
            ("cargo build $X", "cargo **"),
            ("cargo build *", "cargo **"),
            ("LD_PRELOAD=x cargo build", "cargo **"),
            ("cargo() { ls; }; cargo", "cargo **"),
            ("sh -c 'cargo build'", "sh **"),
            ("bash -c 'cargo build'", "cargo **"),
            ("sudo cargo build", "sudo **"),
            ("find . -exec npm ci ;", "find **"),
            ("rm -rf /", "rm **"),
            ("cargo 'build", "cargo **"),
            ("cargo build\u{b}", "cargo **"),
            ("/opt/x/cargo build", "/usr/bin/cargo"),
            ("", "**"),
            (" ; ", "**"),
            ("cargo run", "cargo test **"),
            ("cargo test x", "cargo '*' x"),
        ] {
            assert!(!allowed(text, &[entry]), "{entry} and {text}");
        }
    }

    #[test]
    fn an_exact_entry_speaks_for_what_no_wider_one_does() {
        for (text, entry) in [
            ("sudo npm ci", "sudo npm ci"),
            ("bash -c 'npm ci'", "bash -c 'npm ci'"),
            ("rm -rf /", "rm -rf /"),
            ("python3 -c 'print(1)'", "python3 -c 'print(1)'"),
        ] {
            assert!(allowed(text, &[entry]), "{entry} and {text}");
        }
    }

    #[test]
    fn a_prefix_ends_at_a_word() {
        let options = Options::default();
        let entries: Vec<Entry> = Entry::prefix("cargo test").into_iter().collect();
        for (text, expected) in
            [("cargo test", true), ("cargo test --lib", true), ("cargo testing", false), ("cargo", false)]
        {
            assert_eq!(verdict(&assess(text, &options), &entries, &options) == Verdict::Allow, expected, "{text}");
        }
    }

    #[test]
    fn a_rule_against_something_means_what_could_be_it() {
        let may = |text: &str, rule: &str| {
            assess(text, &Options::default()).record().may_be_any([Entry::parse(rule).unwrap()].iter(), None)
        };
        for (text, rule) in [
            ("rm -rf x", "rm"),
            ("/bin/rm -rf x", "rm"),
            ("rm -rf x", "/usr/bin/rm"),
            ("ls; sudo rm -rf x", "rm **"),
            ("sh -c 'rm x'", "rm **"),
            ("$PROGRAM x", "rm **"),
            ("git $x", "git push **"),
            ("git push --force", "git push --force"),
            ("git push origin --force", "git push * --force"),
            ("xargs rm", "rm -rf **"),
            ("echo 'open", "rm **"),
            ("cat <(rm x)", "rm **"),
        ] {
            assert!(may(text, rule), "{rule} and {text}");
        }
        for (text, rule) in [
            ("git commit -m 'rm -rf x'", "rm **"),
            ("git pull $x", "git push **"),
            ("git push", "git push --force"),
            ("git push --force now", "git push --force"),
            ("", "rm **"),
            ("rmdir x", "rm"),
        ] {
            assert!(!may(text, rule), "{rule} and {text}");
        }
    }

    #[test]
    fn a_record_covers_what_its_assessment_does() {
        for text in ["cargo build && ls", "env cargo build", "sudo npm ci", "cargo build $X", "rm -rf /", "cargo b*"] {
            let assessment = assess(text, &Options::default());
            let stored = serde_json::to_string(&assessment.record()).unwrap();
            let record: crate::Record = serde_json::from_str(&stored).unwrap();
            assert_eq!(record, assessment.record(), "{stored}");
            for pattern in ["cargo **", "cargo build", "sudo npm ci", "rm -rf /", "rm **", "cargo"] {
                let entries = [Entry::parse(pattern).unwrap()];
                for allow_safe in [false, true] {
                    let fresh = cover(&assessment, &entries, allow_safe, &Options::default());
                    assert_eq!(record.cover(entries.iter(), allow_safe, None), fresh, "{pattern} and {text}");
                }
            }
        }
    }

    #[test]
    fn an_offer_covers_what_it_was_made_for() {
        for text in [
            "cargo build",
            "npm ci && npm test",
            "git commit -m 'a b'",
            "touch 'a*'",
            "mkdir \"it's\"",
            "touch $'a\\'\"b'",
        ] {
            let options = Options::default();
            let crate::Offer::Entries { patterns, .. } = assess(text, &options).offer else { panic!("{text}: none") };
            let patterns: Vec<&str> = patterns.iter().map(String::as_str).collect();
            assert!(allowed(text, &patterns), "{patterns:?} for {text}");
        }
    }
}
