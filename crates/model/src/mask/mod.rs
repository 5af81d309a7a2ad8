//! Finds secret values in text and replaces them by their kind, length and a short hash.
//!
//! Only values are replaced: host, path, option and variable names stay readable, since a mask that hides
//! where something goes hides the risk. Knows nothing of cards, channels or actions. Each detector walks the
//! text once and asks nothing of what follows a value, so the work grows with the length of the text.

mod named;
mod options;
mod private_key;
mod tokens;
mod url;

use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::canonical::sha256;

const FINGERPRINT_DIGITS: usize = 8;

/// A text whose secrets have been replaced, and what was replaced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Masked {
    pub text: String,
    pub redactions: Vec<Redaction>,
}

/// One replaced value. `start` and `end` are byte offsets into the original text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Redaction {
    pub start: usize,
    pub end: usize,
    pub kind: SecretKind,
    pub chars: usize,
    /// The first 8 hex digits of the value's SHA-256: enough to tell two secrets apart.
    pub fingerprint: String,
}

impl Redaction {
    pub(crate) fn label(&self) -> String {
        let plural = if self.chars == 1 { "" } else { "s" };
        format!("[{}, {} character{plural}, sha256 {}]", self.kind.name(), self.chars, self.fingerprint)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SecretKind {
    PrivateKey,
    AwsKeyId,
    AwsSecret,
    GithubToken,
    GitlabToken,
    SlackToken,
    StripeKey,
    OpenaiKey,
    AnthropicKey,
    GoogleKey,
    NpmToken,
    PypiToken,
    TelegramToken,
    CountersignKey,
    ApiToken,
    Jwt,
    Authorization,
    Password,
    Secret,
}

impl SecretKind {
    const ALL: [Self; 19] = [
        Self::PrivateKey,
        Self::AwsKeyId,
        Self::AwsSecret,
        Self::GithubToken,
        Self::GitlabToken,
        Self::SlackToken,
        Self::StripeKey,
        Self::OpenaiKey,
        Self::AnthropicKey,
        Self::GoogleKey,
        Self::NpmToken,
        Self::PypiToken,
        Self::TelegramToken,
        Self::CountersignKey,
        Self::ApiToken,
        Self::Jwt,
        Self::Authorization,
        Self::Password,
        Self::Secret,
    ];

    /// What a person reads in place of the value.
    pub fn name(self) -> &'static str {
        match self {
            Self::PrivateKey => "private key",
            Self::AwsKeyId => "aws key id",
            Self::AwsSecret => "aws secret key",
            Self::GithubToken => "github token",
            Self::GitlabToken => "gitlab token",
            Self::SlackToken => "slack token",
            Self::StripeKey => "stripe key",
            Self::OpenaiKey => "openai key",
            Self::AnthropicKey => "anthropic key",
            Self::GoogleKey => "google key",
            Self::NpmToken => "npm token",
            Self::PypiToken => "pypi token",
            Self::TelegramToken => "telegram bot token",
            Self::CountersignKey => "countersign key",
            Self::ApiToken => "api token",
            Self::Jwt => "jwt",
            Self::Authorization => "authorization",
            Self::Password => "password",
            Self::Secret => "secret",
        }
    }
}

/// Replaces every secret value found in `text`.
pub fn mask(text: &str) -> Masked {
    let redactions = find(text);
    let mut masked = String::with_capacity(text.len());
    let mut at = 0;
    for redaction in &redactions {
        masked.push_str(text.get(at..redaction.start).unwrap_or_default());
        masked.push_str(&redaction.label());
        at = redaction.end;
    }
    masked.push_str(text.get(at..).unwrap_or_default());
    Masked { text: masked, redactions }
}

/// The secrets of a text, in order and without overlap.
pub(crate) fn find(text: &str) -> Vec<Redaction> {
    let mut found = Found::default();
    // The most telling detector first: where two see the same bytes, the first one names the kind.
    private_key::scan(text, &mut found);
    tokens::scan(text, &mut found);
    url::scan(text, &mut found);
    named::scan(text, &mut found);
    options::scan(text, &mut found);
    found.redactions(text)
}

/// The secrets of a value whose name is known, as in an environment or a JSON object.
pub(crate) fn find_named(name: &str, value: &str) -> Vec<Redaction> {
    let inside = find(value);
    let whole = inside.first().is_some_and(|first| first.start == 0 && first.end == value.len());
    match named::kind_of(name) {
        Some(kind) if !whole && named::is_literal(value) => {
            let mut found = Found::default();
            found.add(0..value.len(), kind);
            found.redactions(value)
        }
        Some(_) | None => inside,
    }
}

/// The secrets of each word of a list, where one word can say what the next one is (`--password x`).
pub(crate) fn find_in_words(words: &[&str]) -> Vec<Vec<Redaction>> {
    let found = find(&words.join(" "));
    let mut rest = found.as_slice();
    let mut start = 0;
    let mut all = Vec::with_capacity(words.len());
    for word in words {
        let end = start + word.len();
        let mut own = Found::default();
        while let Some((redaction, later)) = rest.split_first() {
            if redaction.start >= end {
                break;
            }
            let from = redaction.start.max(start) - start;
            // A value that starts a word is that whole word, spaces and all: the list says where it ends.
            let whole = from == 0 && matches!(redaction.kind, SecretKind::Password | SecretKind::Secret);
            let to = if whole { word.len() } else { redaction.end.min(end) - start };
            own.add(from..to, redaction.kind);
            if redaction.end > end {
                break;
            }
            rest = later;
        }
        all.push(own.redactions(word));
        start = end + 1;
    }
    all
}

/// Whether a text starts like one of the labels this module writes.
pub(crate) fn starts_like_a_label(text: &str) -> bool {
    let Some(rest) = text.strip_prefix('[') else {
        return false;
    };
    SecretKind::ALL.iter().any(|kind| rest.strip_prefix(kind.name()).is_some_and(|rest| rest.starts_with(", ")))
}

/// Ranges found so far. INVARIANT: they do not overlap.
#[derive(Default)]
struct Found(BTreeMap<usize, (usize, SecretKind)>);

impl Found {
    /// Adds a range unless it is empty or part of it is already taken.
    fn add(&mut self, range: Range<usize>, kind: SecretKind) {
        let before = self.0.range(..range.end).next_back();
        let taken = before.is_some_and(|(_, (end, _))| *end > range.start);
        if range.start < range.end && !taken {
            self.0.insert(range.start, (range.end, kind));
        }
    }

    fn redactions(self, text: &str) -> Vec<Redaction> {
        let redact = |(start, (end, kind))| {
            let value: &str = text.get(start..end)?;
            let mut fingerprint = sha256(value.as_bytes()).to_hex();
            fingerprint.truncate(FINGERPRINT_DIGITS);
            Some(Redaction { start, end, kind, chars: value.chars().count(), fingerprint })
        };
        self.0.into_iter().filter_map(redact).collect()
    }
}

/// The byte at `at`, or NUL past the end.
fn byte(bytes: &[u8], at: usize) -> u8 {
    bytes.get(at).copied().unwrap_or(0)
}

/// Where the run of bytes that starts at `from` and satisfies `is` ends, looking at `most` bytes at most.
fn run_end(bytes: &[u8], from: usize, most: usize, is: impl Fn(u8) -> bool) -> usize {
    let tail = bytes.get(from..).unwrap_or_default();
    from + tail.iter().take(most).take_while(|b| is(**b)).count()
}

#[cfg(test)]
mod tests;
