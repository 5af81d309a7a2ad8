//! `rust-toolchain.toml`: which toolchain rustup's stand-ins start. One that is not installed is fetched, and one named
//! by its path can be anything.

use std::path::Path;

use crate::environment::Inherited;

/// Keys that choose among what rustup itself provides.
const KEYS: &[&str] = &["channel", "components", "targets", "profile"];

pub(super) fn look(path: &Path, inherited: &Inherited) -> Option<String> {
    let text = match super::contents(path) {
        Ok(text) => text,
        Err(why) => return Some(why),
    };
    let channel = match channel(&text) {
        Ok(channel) => channel,
        Err(why) => return Some(why),
    };
    let plain =
        channel.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_')) && !channel.starts_with('.');
    if channel.is_empty() || !plain {
        return Some("names a toolchain by something else than its name".to_owned());
    }
    let home = inherited.get("RUSTUP_HOME").map(Path::new).map(Path::to_path_buf);
    let home = home.or_else(|| inherited.get("HOME").map(|home| Path::new(home).join(".rustup")));
    let installed = home.and_then(|home| std::fs::read_dir(home.join("toolchains")).ok());
    let names = installed.into_iter().flatten().filter_map(Result::ok);
    let is_it = |entry: std::fs::DirEntry| {
        let linked = entry.file_type().is_ok_and(|kind| kind.is_symlink());
        let name = entry.file_name();
        let name = name.to_str().unwrap_or_default();
        // A linked toolchain is one that somebody made.
        !linked && (name == channel || name.strip_prefix(channel.as_str()).is_some_and(|rest| rest.starts_with('-')))
    };
    (!names.into_iter().any(is_it)).then(|| format!("asks for the toolchain `{channel}`, which is not installed"))
}

/// The one thing it chooses by; both of its formats.
fn channel(text: &str) -> Result<String, String> {
    let unknown = |what: &str| format!("says `{what}`, which can name programs to run");
    let Ok(table) = text.parse::<toml::Table>() else {
        let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        return match (lines.next(), lines.next()) {
            (Some(only), None) => Ok(only.to_owned()),
            _ => Err("could not be understood".to_owned()),
        };
    };
    if let Some(other) = table.keys().find(|key| *key != "toolchain") {
        return Err(unknown(other));
    }
    let Some(toolchain) = table.get("toolchain").and_then(toml::Value::as_table) else {
        return Err("could not be understood".to_owned());
    };
    if let Some(other) = toolchain.keys().find(|key| !KEYS.contains(&key.as_str())) {
        return Err(unknown(other));
    }
    let channel = toolchain.get("channel").and_then(toml::Value::as_str);
    channel.map(str::to_owned).ok_or_else(|| "names no channel".to_owned())
}
