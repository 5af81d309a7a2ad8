//! The named tests of a rule: what one word or one text is.

use super::Scope;
use super::facts::{Piece, Question, base_name};
use super::modes::{is_setuid_mode, is_whole_mount, is_world_mode, is_zero_mode};
use super::paths::Path;
use super::rule::{Table, Test, Tests};
use super::secrets::{is_private, is_secret};
use super::shells::{first_word, is_command, is_escape, is_git_setting, is_shell, starts_shell};
use super::table::Of;
use super::words::{Heads, Kind};
use super::{code, sql};
use crate::word::{Dynamic, Source, Value};

/// Whether the piece passes one of the tests.
pub fn passes(table: &Table, tests: Tests, piece: &Piece<'_>, scope: &Scope<'_>) -> bool {
    table.tests(tests).any(|test| one(test, piece, scope))
}

fn one(test: Of<'_, Test>, piece: &Piece<'_>, scope: &Scope<'_>) -> bool {
    let text = piece.text;
    match test.kind {
        Kind::Any => true,
        Kind::Nonempty => !text.is_empty() || is_dynamic(piece),
        Kind::Is => test.heads.meet(first(text)) && test.has(text),
        Kind::Starts => test.heads.meet(first(text)) && test.words().any(|word| text.starts_with(word)),
        Kind::Ends => test.words().any(|word| text.ends_with(word)),
        Kind::Has => test.words().any(|word| word.len() <= text.len() && text.contains(word)),
        Kind::Token => test.words().any(|word| word.len() <= text.len() && code::has_token(text, word)),
        Kind::IgnoreCase => test.words().any(|word| text.eq_ignore_ascii_case(word)),
        Kind::Under => is_path(text) && Path::read(piece).is_under_one(test),
        Kind::Name => is_path(text) && Path::read(piece).is_named(test),
        Kind::Outside => piece.once(Question::Outside, || Path::read(piece).is_outside(scope)),
        Kind::RootOrHome => piece.once(Question::RootOrHome, || is_path(text) && Path::read(piece).is_root_or_home()),
        Kind::System => piece.once(Question::System, || is_path(text) && Path::read(piece).is_system()),
        Kind::Device => piece.once(Question::Device, || is_path(text) && Path::read(piece).is_device()),
        Kind::GitInternal => piece.once(Question::GitInternal, || is_path(text) && Path::read(piece).is_git_internal()),
        Kind::Secret => is_secret(piece),
        Kind::Private => is_private(piece),
        Kind::UploadsPrivate => uploaded(text)
            .is_some_and(|path| is_private(&Piece { text: path, word: None, span: piece.span, seen: None })),
        Kind::Temporary => piece.once(Question::Temporary, || is_path(text) && Path::read(piece).is_temporary()),
        Kind::SearchPath => is_hijacked_path(if is_dynamic(piece) { text.trim_end_matches(':') } else { text }),
        Kind::Url => is_url(text),
        Kind::Remote => is_url(text) || is_remote_path(text),
        Kind::Metadata => is_metadata(text),
        Kind::Dynamic => is_dynamic(piece),
        Kind::Output => has_output(piece),
        Kind::Embedded => is_embedded(piece),
        Kind::Glob => matches!(piece.word.map(|word| &word.value), Some(Value::Glob(_))),
        Kind::Shell => is_shell(first_word(text)),
        Kind::StartsShell => starts_shell(text),
        Kind::Command => is_command(text) || has_output(piece),
        Kind::Escape => is_escape(text),
        Kind::GitSetting => is_git_setting(text),
        Kind::WorldMode => is_world_mode(text),
        Kind::SetuidMode => is_setuid_mode(text),
        Kind::ZeroMode => is_zero_mode(text),
        Kind::SqlDestroys => sql::destroys(text),
        Kind::SqlRuns => sql::runs(text),
        Kind::SedRuns => code::sed(text).runs,
        Kind::SedWrites => code::sed(text).writes.iter().any(|file| is_protected(file, piece)),
        Kind::AwkRuns => code::awk_runs(text),
        Kind::AwkWrites => code::awk_writes(text).iter().any(|file| is_protected(file, piece)),
        Kind::Mount => is_whole_mount(text),
        Kind::BroadPattern => text.len() <= 2 || text.chars().all(|c| matches!(c, '.' | '*' | '^' | '$' | '?')),
        Kind::ProgramName => COMMON_PROGRAMS.contains(&base_name(text)),
        Kind::DestroysText => code::destroys(text),
    }
}

fn first(text: &str) -> Heads {
    Heads(text.as_bytes().first().map_or(0, |byte| 1 << (byte & 127)))
}

/// Could be a path: one line, no blanks around, not prose.
pub fn is_path(text: &str) -> bool {
    let prose = |byte: u8| matches!(byte, b'\n' | b'"' | b'\'' | b';' | b'|');
    !text.is_empty() && text.len() < 4096 && !text.bytes().any(prose)
}

fn dynamic<'a>(piece: &Piece<'a>) -> Option<&'a Dynamic> {
    match piece.word.map(|word| &word.value) {
        Some(Value::Dynamic(dynamic)) => Some(dynamic),
        _ => None,
    }
}

fn is_dynamic(piece: &Piece<'_>) -> bool {
    dynamic(piece).is_some()
}

pub fn has_output(piece: &Piece<'_>) -> bool {
    dynamic(piece).is_some_and(|dynamic| {
        dynamic.sources.iter().any(|source| matches!(source, Source::Output | Source::Process | Source::Indirect))
    })
}

/// Output or a variable as a part of a longer name: `$(…).example.com`.
fn is_embedded(piece: &Piece<'_>) -> bool {
    dynamic(piece).is_some_and(|dynamic| {
        let output = |source: &Source| {
            matches!(source, Source::Output | Source::BoundedOutput | Source::Names | Source::Indirect)
        };
        (dynamic.suffix.contains('.') || dynamic.prefix.contains('.')) && dynamic.sources.iter().any(output)
    })
}

/// Files that a program must not write on the side.
fn is_protected(file: &str, piece: &Piece<'_>) -> bool {
    let piece = Piece { text: file, word: None, span: piece.span, seen: None };
    let path = Path::read(&piece);
    path.is_system() || path.is_device() || path.is_under("~") || path.is_git_internal()
}

/// `@file`, `name=@file`, `name=<file`.
fn uploaded(text: &str) -> Option<&str> {
    let from = text.find(['@', '<'])?;
    let before = text.get(..from)?;
    let file = text.get(from + 1..)?;
    (before.is_empty() || before.ends_with('=')).then(|| file.split(';').next().unwrap_or(file))
}

fn is_hijacked_path(value: &str) -> bool {
    let entries = value.split(':');
    let bad = |entry: &str| {
        matches!(entry, "." | "")
            || ["/tmp", "/var/tmp", "/dev/shm", "$TMPDIR"].iter().any(|start| entry.starts_with(start))
    };
    let usual = |entry: &str| {
        entry.starts_with('$')
            || entry.starts_with('~')
            || ["/usr", "/bin", "/sbin", "/opt", "/nix", "/home", "/Users", "/run", "/snap"]
                .iter()
                .any(|start| entry.starts_with(start))
    };
    !value.is_empty() && (entries.clone().any(bad) || !entries.clone().any(usual))
}

pub fn is_url(text: &str) -> bool {
    let scheme = text.strip_prefix("git+").or_else(|| text.strip_prefix("hg+")).unwrap_or(text);
    ["http://", "https://", "ftp://", "git://", "ssh://", "s3://", "gs://"]
        .iter()
        .any(|start| scheme.starts_with(start))
}

/// `host:path`, `user@host:path`, `host::module`.
fn is_remote_path(text: &str) -> bool {
    text.split_once(':')
        .is_some_and(|(host, _)| host.len() > 1 && !host.contains('/') && !host.starts_with('-') && !host.contains(' '))
}

fn is_metadata(text: &str) -> bool {
    const HOSTS: &[&str] = &[
        "169.254.169.254",
        "169.254.170.2",
        "metadata.google.internal",
        "100.100.100.200",
        "fd00:ec2::254",
        "2852039166",
        "0xa9fea9fe",
        "0xA9FEA9FE",
        "169.254.169.123/",
        "0251.0376.0251.0376",
        "metadata/instance",
        "169.16689662",
        "[::ffff:169.254",
        "metadata.azure.internal",
        "192.0.0.192",
        "/latest/meta-data",
    ];
    HOSTS.iter().any(|host| text.contains(host))
}

const COMMON_PROGRAMS: &[&str] = &[
    "git", "ls", "cat", "ssh", "scp", "sudo", "su", "python", "python3", "node", "npm", "npx", "bash", "sh", "zsh",
    "rm", "cp", "mv", "curl", "wget", "grep", "find", "sed", "awk", "make", "cargo", "go", "docker", "kubectl", "vim",
    "vi", "less", "man", "ps", "env", "pip", "pip3", "yarn", "pnpm", "gcc", "cc", "ld", "tar", "gpg", "passwd",
    "which", "date", "head", "tail",
];
