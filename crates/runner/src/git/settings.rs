//! Which settings of git run a program.

use super::config::Entry;

/// Section, key, and whether it stands under a subsection; `*` is any name.
const RUNNING: &[(&str, &str)] = &[
    ("core", "alternaterefscommand"),
    ("core", "askpass"),
    ("core", "editor"),
    ("core", "fsmonitor"),
    ("core", "gitproxy"),
    ("core", "hookspath"),
    ("core", "pager"),
    ("core", "sshcommand"),
    // Not a program, but files from anywhere are shown as if they were the work.
    ("core", "worktree"),
    ("browser", "cmd"),
    ("browser", "path"),
    ("credential", "helper"),
    ("diff", "command"),
    ("diff", "external"),
    ("diff", "textconv"),
    ("difftool", "cmd"),
    ("difftool", "path"),
    ("filter", "clean"),
    ("filter", "process"),
    ("filter", "smudge"),
    ("format", "pretty"),
    ("gpg", "defaultkeycommand"),
    ("gpg", "program"),
    ("guitool", "cmd"),
    ("hook", "command"),
    ("imap", "tunnel"),
    ("instaweb", "httpd"),
    ("interactive", "difffilter"),
    ("log", "showsignature"),
    ("man", "cmd"),
    ("man", "path"),
    ("merge", "driver"),
    ("mergetool", "cmd"),
    ("mergetool", "path"),
    ("pager", "*"),
    ("pretty", "*"),
    ("remote", "receivepack"),
    ("remote", "uploadpack"),
    ("remote", "vcs"),
    ("sendemail", "sendmailcmd"),
    ("sendemail", "smtpserver"),
    ("sendemail", "tocmd"),
    ("sendemail", "cccmd"),
    ("sequence", "editor"),
    ("ssh", "variant"),
    ("tar", "command"),
    ("trailer", "cmd"),
    ("trailer", "command"),
    ("uploadpack", "packobjectshook"),
    ("web", "browser"),
];
/// Settings that are a switch as well as a program.
const SWITCHES: &[&str] = &["", "true", "false", "yes", "no", "on", "off", "1", "0"];
const OWN_CREDENTIAL_HELPERS: &[&str] = &["cache", "libsecret", "manager", "osxkeychain", "store", "wincred"];

/// `used`: the subcommands of the calls, any of which may be an alias.
pub(super) fn runs(entry: &Entry, used: &[String]) -> bool {
    let value = entry.value.trim();
    match (entry.section.as_str(), entry.key.as_str()) {
        // `alias.name` and the newer `alias.name.command`.
        ("alias", key) => {
            value.starts_with('!') || used.iter().any(|name| *name == key || Some(name) == entry.subsection.as_ref())
        }
        ("submodule", "update") => value.starts_with('!'),
        ("remote", "url" | "pushurl") | ("submodule", "url") => runs_as_address(value),
        // `url."ext::…".insteadOf` turns an ordinary address into one that runs a program.
        ("url", _) => entry.subsection.as_deref().is_some_and(runs_as_address),
        _ if !RUNNING.iter().any(|(section, key)| entry.section == *section && [&entry.key, "*"].contains(key)) => {
            false
        }
        ("credential", _) => {
            let name = value.split(' ').next().unwrap_or_default();
            !name.is_empty() && !OWN_CREDENTIAL_HELPERS.contains(&name)
        }
        ("core", "pager") | ("pager", _) => value != "cat" && !SWITCHES.contains(&value.to_ascii_lowercase().as_str()),
        // Formats that show signatures run what checks them.
        ("format" | "pretty", _) => value.contains("%G") || value.contains("%(signature"),
        ("log", _) => !matches!(value.to_ascii_lowercase().as_str(), "false" | "no" | "off" | "0"),
        ("core", "fsmonitor") => !SWITCHES.contains(&value.to_ascii_lowercase().as_str()),
        _ => !value.is_empty(),
    }
}

/// `ext::command` and other transports that name a helper.
fn runs_as_address(value: &str) -> bool {
    value.split_once("::").is_some_and(|(transport, _)| transport.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}
