//! The file: its size, its text, its JSON, and which tool it is from.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use anyhow::{Context, bail};
use clap::ValueEnum;
use serde_json::Value;

use super::texts::{self, Object};
use crate::exit::Usage;

const MAX_BYTES: u64 = 1024 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// `exec-approvals.json`, version 1
    Gateway,
    /// a profile's `config.json` with `execApproval`
    Hub,
    /// `.agents/terminal.json`
    Terminal,
    /// `settings.json` with `permissions`
    ClaudeCode,
}

#[derive(Debug)]
pub struct Source {
    pub format: Format,
    /// Whether the format was told by the content.
    pub detected: bool,
    pub document: Object,
}

const TERMINAL_KEYS: [&str; 5] = [
    "commandBlacklist",
    "commandWhitelist",
    "commandTimeoutSeconds",
    "requireCommandConfirmation",
    "confirmationTimeoutSeconds",
];
const CHOICES: &str = "`--format gateway`, `hub`, `terminal` or `claude-code`";

impl Format {
    pub fn name(self) -> &'static str {
        match self {
            Self::Gateway => "gateway",
            Self::Hub => "hub",
            Self::Terminal => "terminal",
            Self::ClaudeCode => "claude-code",
        }
    }

    fn fits(self, document: &Object) -> bool {
        let has = |key: &str| document.contains_key(key);
        match self {
            Self::Gateway => has("version") && (has("agents") || has("defaults") || has("socket")),
            Self::Hub => has("execApproval"),
            Self::Terminal => TERMINAL_KEYS.into_iter().any(has),
            Self::ClaudeCode => has("permissions"),
        }
    }

    fn detect(document: &Object) -> Result<Self, Usage> {
        if document.contains_key("version")
            && ["security", "allowlist", "tools"].iter().any(|k| document.contains_key(*k))
        {
            let message = "this looks like a policy of this gate; store it with `countersign policy set PROFILE FILE`";
            return Err(Usage(message.to_owned()));
        }
        let fitting: Vec<Self> =
            Self::value_variants().iter().copied().filter(|format| format.fits(document)).collect();
        match fitting.as_slice() {
            [format] => Ok(*format),
            [] => Err(Usage(format!("the file is of no format that is known here; if it is, name it: {CHOICES}"))),
            several => {
                let names: Vec<&str> = several.iter().map(|format| format.name()).collect();
                Err(Usage(format!("the file could be {}; name the format: {CHOICES}", names.join(" or "))))
            }
        }
    }
}

impl Source {
    /// `-` is stdin.
    pub fn read(file: &Path, format: Option<Format>) -> anyhow::Result<Self> {
        let bytes = if file == Path::new("-") {
            limited(io::stdin().lock()).context("stdin cannot be read")?
        } else {
            let opened = File::open(file).and_then(limited);
            opened.with_context(|| format!("`{}` cannot be read", file.display()))?
        };
        Self::parse(bytes, format).with_context(|| format!("`{}` cannot be imported", file.display()))
    }

    fn parse(bytes: Vec<u8>, format: Option<Format>) -> anyhow::Result<Self> {
        if bytes.len() as u64 > MAX_BYTES {
            bail!("it is larger than 1 MiB, and no such file is; is it the right one?");
        }
        let text = match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => bail!("it is not UTF-8 from byte {} on", error.utf8_error().valid_up_to()),
        };
        if text.trim().is_empty() {
            bail!("it is empty");
        }
        // Editors of other systems put a mark in front that JSON does not have.
        let value: Value = serde_json::from_str(text.trim_start_matches('\u{feff}')).context("it is not JSON")?;
        let document = texts::object(&value, "")?.clone();
        let detected = format.is_none();
        let format = format.map_or_else(|| Format::detect(&document), Ok)?;
        Ok(Self { format, detected, document })
    }
}

/// One byte more than is taken, to know that there is more.
fn limited(from: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> anyhow::Result<Source> {
        Source::parse(text.as_bytes().to_vec(), None)
    }

    #[test]
    fn a_format_is_told_by_what_only_it_has() {
        for (text, format) in [
            (r#"{"version":1,"agents":{}}"#, Format::Gateway),
            (r#"{"version":1,"defaults":{"ask":"off"}}"#, Format::Gateway),
            (r#"{"version":7,"agents":{}}"#, Format::Gateway),
            (r#"{"name":"x","execApproval":{}}"#, Format::Hub),
            (r#"{"commandWhitelist":[]}"#, Format::Terminal),
            (r#"{"commandTimeoutSeconds":60}"#, Format::Terminal),
            ("\u{feff}{\"permissions\":{},\"model\":\"x\"}", Format::ClaudeCode),
        ] {
            let source = parse(text).unwrap();
            assert_eq!((source.format, source.detected), (format, true), "{text}");
        }
        let named = Source::parse(b"{}".to_vec(), Some(Format::Hub)).unwrap();
        assert_eq!((named.format, named.detected), (Format::Hub, false));
    }

    #[test]
    fn what_could_be_none_or_two_formats_is_wrong_usage_and_names_the_choices() {
        for (text, says) in [
            ("{}", "no format"),
            (r#"{"version":1}"#, "no format"),
            (r#"{"permissions":{},"execApproval":{}}"#, "hub or claude-code"),
            (r#"{"version":1,"agents":{},"commandWhitelist":[]}"#, "gateway or terminal"),
            (r#"{"version":1,"security":"deny","agents":{}}"#, "policy set"),
        ] {
            let error = parse(text).unwrap_err();
            let message = format!("{error:#}");
            assert_eq!(crate::exit::of_error(&error), crate::exit::USAGE, "{message}");
            assert!(message.contains(says), "{message}");
            assert!(says == "policy set" || message.contains("--format gateway"), "{message}");
        }
    }

    #[test]
    fn what_is_no_document_is_refused_with_its_place() {
        let large = "x".repeat(10 * 1024 * 1024);
        for (bytes, says) in [
            (&b"{\n  \"a\": 1,\n  oops}"[..], "line 3 column 3"),
            (b"{", "line 1 column 1"),
            (b"[]", "`the document` is a list, expected an object"),
            (b"null", "is null"),
            (b"", "it is empty"),
            (b" \n\t", "it is empty"),
            (b"{\"a\": \"\xff\"}", "not UTF-8 from byte 7 on"),
            (b"{\"a\":1} x", "trailing"),
            (&b"[".repeat(5000), "recursion"),
            (large.as_bytes(), "larger than 1 MiB"),
        ] {
            let error = Source::parse(bytes.to_vec(), None).unwrap_err();
            assert!(format!("{error:#}").contains(says), "{error:#}");
            assert_eq!(crate::exit::of_error(&error), crate::exit::OTHER);
        }
    }

    #[test]
    fn a_file_is_never_read_beyond_the_limit() {
        let read = limited(io::repeat(b'x')).unwrap();
        assert_eq!(read.len() as u64, MAX_BYTES + 1);
    }
}
