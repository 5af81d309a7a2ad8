//! Layer 1, allowlist: whether entries speak for an assessed text. Token by token on parsed commands, never on
//! text; what is not plainly covered is not covered.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::assess::{Assessment, Options, Part, Resolve, assess};
use crate::expand::text::{ANY, base_name, glob_matches};
use crate::reason::Risk;
use crate::word::{Value, Word};

/// A last `**` in an entry.
const REST: &str = "\0\0";

/// A word as entries see it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Token<'w> {
    Known(&'w str),
    Glob(&'w str),
    Dynamic,
}

/// One command's words.
pub(crate) type Tokens<'w> = Vec<Token<'w>>;

/// One allowlist entry, or a rule against something. Written as its pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    program: Program,
    arguments: Arguments,
    /// As it was written.
    pub pattern: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Program {
    /// A bare name, perhaps with `*`.
    Name(String),
    /// A file, perhaps with `*` inside one directory or a last `**` below one.
    File(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Arguments {
    Any,
    /// These, in order; with `open`, any more after them.
    Tokens {
        tokens: Vec<String>,
        open: bool,
    },
}

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

impl Entry {
    /// Reads a pattern: `git`, `/usr/bin/git`, `git log *`, `cargo **`. Quotes hold blanks together.
    #[must_use]
    pub fn parse(pattern: &str) -> Option<Self> {
        let mut tokens = tokens(pattern)?.into_iter();
        let program = program(tokens.next()?);
        let mut tokens: Vec<String> = tokens.collect();
        if tokens.is_empty() {
            return Some(Self { program, arguments: Arguments::Any, pattern: pattern.to_owned() });
        }
        let open = tokens.last().is_some_and(|token| token == REST);
        if open {
            tokens.pop();
        }
        Some(Self { program, arguments: Arguments::Tokens { tokens, open }, pattern: pattern.to_owned() })
    }

    /// A prefix, taken at word boundaries: `cargo test` speaks for `cargo test --lib`, not for `cargo testing`.
    #[must_use]
    pub fn prefix(text: &str) -> Option<Self> {
        let mut words = text.split([' ', '\t']).filter(|word| !word.is_empty()).map(str::to_owned);
        let program = program(words.next()?);
        let tokens = words.collect();
        Some(Self { program, arguments: Arguments::Tokens { tokens, open: true }, pattern: text.to_owned() })
    }

    /// Whether the entry names one argv and no other.
    fn is_exact(&self) -> bool {
        let plain_program = match &self.program {
            Program::Name(text) | Program::File(text) => !text.contains(ANY),
        };
        let plain_arguments = match &self.arguments {
            Arguments::Any => false,
            Arguments::Tokens { tokens, open } => !open && tokens.iter().all(|token| !token.contains(ANY)),
        };
        plain_program && plain_arguments
    }

    fn matches(&self, argv: &[Token<'_>], more: bool, resolve: Option<&Resolve<'_>>) -> bool {
        let Some((Token::Known(program), arguments)) = argv.split_first() else { return false };
        self.matches_program(program, resolve) && self.matches_arguments(arguments, more)
    }

    fn matches_program(&self, program: &str, resolve: Option<&Resolve<'_>>) -> bool {
        let resolve = |word: &str| resolve.and_then(|resolve| resolve(word));
        match &self.program {
            Program::Name(name) if !program.contains('/') => glob_matches(name, program),
            // By a path: only when it is the very file that the name starts.
            Program::Name(name) => {
                let file = resolve(program);
                !name.contains(ANY) && file.is_some() && file == resolve(name)
            }
            Program::File(pattern) => resolve(program).is_some_and(|file| path_matches(pattern, &file)),
        }
    }

    fn matches_arguments(&self, words: &[Token<'_>], more: bool) -> bool {
        match &self.arguments {
            Arguments::Any => words.iter().all(fixed),
            Arguments::Tokens { tokens, open } => {
                let enough = if *open { words.len() >= tokens.len() } else { words.len() == tokens.len() && !more };
                let listed = words.iter().zip(tokens).all(|(word, token)| token_matches(token, *word));
                enough && listed && words.get(tokens.len()..).unwrap_or_default().iter().all(fixed)
            }
        }
    }

    /// For a rule against something: whether this command could be meant. A name means that program wherever its
    /// file lies, and what is not known may be anything.
    pub(crate) fn may_match(&self, argv: &[Token<'_>], more: bool, resolve: Option<&Resolve<'_>>) -> bool {
        let Some((program, arguments)) = argv.split_first() else { return false };
        let program = match program {
            Token::Known(program) => self.may_match_program(program, resolve),
            Token::Glob(_) | Token::Dynamic => true,
        };
        program && self.may_match_arguments(arguments, more)
    }

    fn may_match_program(&self, program: &str, resolve: Option<&Resolve<'_>>) -> bool {
        let file = resolve.and_then(|resolve| resolve(program));
        match &self.program {
            Program::Name(name) => {
                let by_file = file.is_some_and(|file| glob_matches(name, base_name(&file)));
                glob_matches(name, base_name(program)) || by_file
            }
            Program::File(pattern) => match file {
                Some(file) => path_matches(pattern, &file) || path_matches(pattern, program),
                // Which file this starts is not known: the same name is enough.
                None => pattern.rsplit('/').next().is_none_or(|name| glob_matches(name, base_name(program))),
            },
        }
    }

    fn may_match_arguments(&self, words: &[Token<'_>], more: bool) -> bool {
        let Arguments::Tokens { tokens, open } = &self.arguments else { return true };
        for (at, token) in tokens.iter().enumerate() {
            match words.get(at) {
                Some(Token::Known(text)) if glob_matches(token, text) => {}
                Some(Token::Known(_)) => return false,
                // From here on the words may be any, and any number of them.
                Some(Token::Glob(_) | Token::Dynamic) => return true,
                None => return more,
            }
        }
        let rest = words.get(tokens.len()..).unwrap_or_default();
        *open || rest.is_empty() || rest.iter().all(|word| !matches!(word, Token::Known(_)))
    }
}

impl Serialize for Entry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.pattern)
    }
}

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let pattern = String::deserialize(deserializer)?;
        Self::parse(&pattern).ok_or_else(|| {
            serde::de::Error::custom(format!(
                "`{pattern}` is no entry; write a program and its words, such as `git log *` or `cargo **`, and close every quote"
            ))
        })
    }
}

fn program(token: String) -> Program {
    if token.contains('/') { Program::File(token) } else { Program::Name(token) }
}

fn token_matches(token: &str, word: Token<'_>) -> bool {
    match word {
        Token::Known(text) => glob_matches(token, text),
        Token::Glob(_) => token.chars().eq([ANY]) && fixed(&word),
        Token::Dynamic => false,
    }
}

/// A word that an open entry may speak for: known, or a pattern that cannot become an option.
fn fixed(word: &Token<'_>) -> bool {
    match word {
        Token::Known(_) => true,
        Token::Glob(text) => !text.starts_with(['*', '?', '[', '-']),
        Token::Dynamic => false,
    }
}

impl<'w> From<&'w Word> for Token<'w> {
    fn from(word: &'w Word) -> Self {
        match &word.value {
            Value::Known(text) => Self::Known(text),
            Value::Glob(text) => Self::Glob(text),
            Value::Dynamic(_) => Self::Dynamic,
        }
    }
}

/// Splits a pattern at blanks; quotes and backslashes hold together and take `*` its meaning.
fn tokens(pattern: &str) -> Option<Vec<String>> {
    let mut out: Vec<String> = Vec::new();
    let mut current: Option<String> = None;
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        if matches!(c, ' ' | '\t') {
            out.extend(current.take());
            continue;
        }
        let token = current.get_or_insert_default();
        match c {
            '\'' | '"' => loop {
                match chars.next()? {
                    end if end == c => break,
                    inner => token.push(inner),
                }
            },
            '\\' => token.push(chars.next()?),
            '*' => token.push(ANY),
            // No command holds one, so no entry means one.
            ANY => return None,
            other => token.push(other),
        }
    }
    out.extend(current);
    Some(out)
}

/// Writes words as a pattern that [`Entry::parse`] reads back as exactly them.
pub(crate) fn render(words: &[&str]) -> String {
    let mut out = String::new();
    for word in words {
        if !out.is_empty() {
            out.push(' ');
        }
        let plain = |c: char| c.is_alphanumeric() || "-_./:=,+@%^~".contains(c);
        if !word.is_empty() && word.chars().all(plain) {
            out.push_str(word);
        } else {
            let quote = if word.contains('\'') { '"' } else { '\'' };
            if word.contains(quote) {
                // Both quotes inside: every character by itself.
                out.extend(word.chars().flat_map(|c| ['\\', c]));
            } else {
                out.push(quote);
                out.push_str(word);
                out.push(quote);
            }
        }
    }
    out
}

/// `*` stays inside one directory, a last `/**` is anything below.
fn path_matches(pattern: &str, file: &str) -> bool {
    if let Some(root) = pattern.strip_suffix(REST).and_then(|root| root.strip_suffix('/')) {
        let below = file.strip_prefix(root).and_then(|rest| rest.strip_prefix('/'));
        return below.is_some_and(|rest| !rest.is_empty() && !rest.split('/').any(|part| part == ".."));
    }
    let (mut wanted, mut given) = (pattern.split('/'), file.split('/'));
    loop {
        match (wanted.next(), given.next()) {
            (None, None) => return true,
            (Some(wanted), Some(given)) if glob_matches(wanted, given) => {}
            _ => return false,
        }
    }
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
            assess(text, &Options::default()).record().may_be(&Entry::parse(rule).unwrap(), None)
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
