//! One entry: a pattern over the words of a command, as an allowlist has it or a rule against something.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::assess::Resolve;
use crate::expand::text::{ANY, base_name, glob_matches};
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
        let words: Vec<&str> = text.split([' ', '\t']).filter(|word| !word.is_empty()).collect();
        let (first, rest) = words.split_first()?;
        let tokens = rest.iter().map(|word| (*word).to_owned()).collect();
        // Read again later, it is the same entry.
        let pattern = format!("{} **", render(&words));
        Some(Self {
            program: program((*first).to_owned()),
            arguments: Arguments::Tokens { tokens, open: true },
            pattern,
        })
    }

    /// Whether the entry names one argv and no other.
    pub(crate) fn is_exact(&self) -> bool {
        let plain_program = match &self.program {
            Program::Name(text) | Program::File(text) => !text.contains(ANY),
        };
        let plain_arguments = match &self.arguments {
            Arguments::Any => false,
            Arguments::Tokens { tokens, open } => !open && tokens.iter().all(|token| !token.contains(ANY)),
        };
        plain_program && plain_arguments
    }

    pub(crate) fn matches(&self, argv: &[Token<'_>], more: bool, resolve: Option<&Resolve<'_>>) -> bool {
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
