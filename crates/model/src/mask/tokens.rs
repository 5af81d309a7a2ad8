//! Tokens that are known by their own look: a prefix, an alphabet and a length.

use super::{Found, SecretKind, byte, run_end};

/// Which bytes follow the prefix.
#[derive(Clone, Copy)]
pub(super) enum Alphabet {
    Upper,
    Hex,
    Alnum,
    Word,
    Dashed,
    Base64Url,
}

impl Alphabet {
    fn has(self, b: u8) -> bool {
        match self {
            Self::Upper => b.is_ascii_uppercase() || b.is_ascii_digit(),
            Self::Hex => b.is_ascii_hexdigit(),
            Self::Alnum => b.is_ascii_alphanumeric(),
            Self::Word => b.is_ascii_alphanumeric() || b == b'_',
            Self::Dashed => b.is_ascii_alphanumeric() || b == b'-',
            Self::Base64Url => is_base64url(b),
        }
    }
}

/// One row: the prefix, what follows it, and how long that is.
pub(super) struct Shape {
    kind: SecretKind,
    pub(super) prefix: &'static str,
    alphabet: Alphabet,
    min: usize,
    /// With a fixed length a longer run is something else.
    max: Option<usize>,
    /// A short prefix is also how ordinary words start: ask for a digit and a capital near
    /// its start as well.
    mixed: bool,
}

const fn open(kind: SecretKind, prefix: &'static str, alphabet: Alphabet, min: usize) -> Shape {
    Shape { kind, prefix, alphabet, min, max: None, mixed: false }
}

const fn fixed(kind: SecretKind, prefix: &'static str, alphabet: Alphabet, length: usize) -> Shape {
    Shape { kind, prefix, alphabet, min: length, max: Some(length), mixed: false }
}

/// The first row that fits wins, so a longer prefix stands above a shorter one.
pub(super) const SHAPES: &[Shape] = {
    use Alphabet::{Alnum, Base64Url, Dashed, Hex, Upper, Word};
    use SecretKind::{
        AnthropicKey, ApiToken, AwsKeyId, CountersignKey, GithubToken, GitlabToken, GoogleKey, NpmToken, OpenaiKey,
        PypiToken, SlackToken, StripeKey,
    };
    &[
        open(CountersignKey, "csk_", Base64Url, 40),
        fixed(AwsKeyId, "AKIA", Upper, 16),
        fixed(AwsKeyId, "ASIA", Upper, 16),
        open(GithubToken, "ghp_", Alnum, 30),
        open(GithubToken, "gho_", Alnum, 30),
        open(GithubToken, "ghu_", Alnum, 30),
        open(GithubToken, "ghs_", Alnum, 30),
        open(GithubToken, "ghr_", Alnum, 30),
        open(GithubToken, "github_pat_", Word, 22),
        open(GitlabToken, "glpat-", Base64Url, 20),
        open(GitlabToken, "gldt-", Base64Url, 20),
        open(GitlabToken, "glrt-", Base64Url, 20),
        open(GitlabToken, "glptt-", Base64Url, 20),
        open(GitlabToken, "glcbt-", Base64Url, 20),
        open(SlackToken, "xoxa-", Dashed, 20),
        open(SlackToken, "xoxb-", Dashed, 20),
        open(SlackToken, "xoxe-", Dashed, 20),
        open(SlackToken, "xoxp-", Dashed, 20),
        open(SlackToken, "xoxr-", Dashed, 20),
        open(SlackToken, "xoxs-", Dashed, 20),
        open(SlackToken, "xapp-", Dashed, 20),
        open(StripeKey, "sk_live_", Alnum, 16),
        open(StripeKey, "sk_test_", Alnum, 16),
        open(StripeKey, "rk_live_", Alnum, 16),
        open(StripeKey, "rk_test_", Alnum, 16),
        open(StripeKey, "whsec_", Alnum, 24),
        open(AnthropicKey, "sk-ant-", Base64Url, 20),
        open(OpenaiKey, "sk-proj-", Base64Url, 20),
        open(OpenaiKey, "sk-svcacct-", Base64Url, 20),
        open(OpenaiKey, "sk-admin-", Base64Url, 20),
        Shape { mixed: true, ..open(OpenaiKey, "sk-", Base64Url, 32) },
        fixed(GoogleKey, "AIza", Base64Url, 35),
        open(GoogleKey, "ya29.", Base64Url, 20),
        fixed(GoogleKey, "GOCSPX-", Base64Url, 28),
        fixed(NpmToken, "npm_", Alnum, 36),
        open(PypiToken, "pypi-", Base64Url, 50),
        open(ApiToken, "hf_", Alnum, 30),
        open(ApiToken, "dckr_pat_", Base64Url, 20),
        fixed(ApiToken, "dop_v1_", Hex, 64),
    ]
};

/// The bytes that a prefix, or the `eyJ` of a JWT, begins with: at most places of a text none of them stands.
const STARTS: [bool; 256] = {
    let mut starts = [false; 256];
    let mut rest = SHAPES;
    while let [shape, others @ ..] = rest {
        if let [first, ..] = shape.prefix.as_bytes() {
            mark(&mut starts, *first);
        }
        rest = others;
    }
    mark(&mut starts, b'e');
    starts
};

#[expect(clippy::indexing_slicing, reason = "every byte is less than 256, and this runs while it is compiled")]
const fn mark(starts: &mut [bool; 256], byte: u8) {
    starts[byte as usize] = true;
}

pub(super) fn scan(text: &str, found: &mut Found) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let end = match secret_at(bytes, at) {
            Some((end, kind)) => {
                found.add(at..end, kind);
                end
            }
            None => at + 1,
        };
        at = end;
    }
}

fn secret_at(bytes: &[u8], at: usize) -> Option<(usize, SecretKind)> {
    let before = at.checked_sub(1).map_or(0, |i| byte(bytes, i));
    if byte(bytes, at).is_ascii_digit() {
        return telegram(bytes, at, before).map(|end| (end, SecretKind::TelegramToken));
    }
    if before.is_ascii_alphanumeric() || before == b'_' {
        return None;
    }
    if !STARTS.get(usize::from(byte(bytes, at))).copied().unwrap_or(true) {
        return None;
    }
    // INVARIANT: a run longer than the least length is taken whole, and a shorter one was short to look at;
    // so no byte is looked at more than a fixed number of times.
    let rest = bytes.get(at..)?;
    let shaped = SHAPES
        .iter()
        .filter(|shape| rest.starts_with(shape.prefix.as_bytes()))
        .find_map(|shape| Some((shaped_end(bytes, at, shape)?, shape.kind)));
    shaped.or_else(|| jwt(bytes, at, before).map(|end| (end, SecretKind::Jwt)))
}

fn shaped_end(bytes: &[u8], at: usize, shape: &Shape) -> Option<usize> {
    let start = at + shape.prefix.len();
    if shape.mixed {
        let end = run_end(bytes, start, shape.min, |b| shape.alphabet.has(b));
        let opening = bytes.get(start..end)?;
        let mixed = opening.iter().any(u8::is_ascii_digit) && opening.iter().any(u8::is_ascii_uppercase);
        if !mixed {
            return None;
        }
    }
    let most = shape.max.map_or(usize::MAX, |max| max + 1);
    let end = run_end(bytes, start, most, |b| shape.alphabet.has(b));
    let length = end - start;
    let fits = length >= shape.min && shape.max.is_none_or(|max| length <= max);
    fits.then_some(end)
}

/// `<bot id>:<35 characters>`, also right after the `bot` of the Bot API's paths.
fn telegram(bytes: &[u8], at: usize, before: u8) -> Option<usize> {
    let in_path = at.checked_sub(3).and_then(|from| bytes.get(from..at)).is_some_and(|word| word == b"bot");
    if before.is_ascii_digit() || (before.is_ascii_alphanumeric() && !in_path) {
        return None;
    }
    let colon = run_end(bytes, at, 13, |b| b.is_ascii_digit());
    if !(6..=12).contains(&(colon - at)) || byte(bytes, colon) != b':' {
        return None;
    }
    let end = run_end(bytes, colon + 1, 36, is_base64url);
    (end - colon - 1 == 35).then_some(end)
}

/// Three base64url parts, the first of which is a JSON object (`eyJ` is `{"`).
fn jwt(bytes: &[u8], at: usize, before: u8) -> Option<usize> {
    // A start inside a run that was already walked is refused, or a hostile text would be walked once for
    // each of its dashes.
    if is_base64url(before) || before == b'.' || !bytes.get(at..)?.starts_with(b"eyJ") {
        return None;
    }
    let header = run_end(bytes, at, usize::MAX, is_base64url);
    let payload = run_end(bytes, header + 1, usize::MAX, is_base64url);
    let end = run_end(bytes, payload + 1, usize::MAX, is_base64url);
    let dotted = byte(bytes, header) == b'.' && byte(bytes, payload) == b'.';
    (dotted && header - at >= 10 && payload - header > 10).then_some(end)
}

fn is_base64url(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'-' || b == b'_'
}
