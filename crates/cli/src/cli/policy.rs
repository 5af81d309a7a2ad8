//! `countersign policy`: showing, checking and changing a profile's document.

use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};
use clap::Subcommand;
use countersign_model::{Policy, escape_line};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::client::{Request, encode};
use crate::locate::{Caller, Flags, Locator, Offline};
use crate::output;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  countersign policy show > policy.json\n  countersign policy check policy.json\n  countersign policy set default policy.json\n  countersign policy edit"
)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Print a profile's document
    #[command(after_help = "Example:\n  countersign policy show > policy.json")]
    Show {
        #[arg(default_value = "default")]
        profile: String,
        /// Print it with its hash, as one line
        #[arg(long)]
        json: bool,
    },
    /// Check a document without a gate
    #[command(after_help = "Example:\n  countersign policy check policy.json")]
    Check {
        /// `-` for stdin
        file: PathBuf,
    },
    /// Replace a profile's document
    #[command(after_help = "Example:\n  countersign policy set default policy.json")]
    Set {
        profile: String,
        /// `-` for stdin
        file: PathBuf,
    },
    /// Change a profile's document in $VISUAL or $EDITOR
    #[command(after_help = "Example:\n  EDITOR=nano countersign policy edit")]
    Edit {
        #[arg(default_value = "default")]
        profile: String,
    },
}

#[derive(Debug, Deserialize)]
struct Stored {
    exists: bool,
    hash: String,
    policy: Value,
    #[serde(default)]
    error: Option<String>,
}

pub fn run(args: &Args, flags: &Flags) -> anyhow::Result<()> {
    let caller = |offline| Locator::from_env(flags)?.person_or(offline);
    match &args.verb {
        Verb::Show { profile, json } => show(&caller(Offline::Store)?, profile, *json),
        Verb::Check { file } => {
            parse(&read(file)?, file)?;
            output::note("the policy is sound");
            Ok(())
        }
        Verb::Set { profile, file } => {
            let policy = parse(&read(file)?, file)?;
            let caller = caller(Offline::NewStore)?;
            let base = stored(&caller, profile)?.hash;
            put(&caller, profile, &base, &policy)
        }
        Verb::Edit { profile } => edit(&caller(Offline::NewStore)?, profile),
    }
}

fn path_of(profile: &str) -> String {
    format!("/v1/policy/{}", encode(profile))
}

fn stored(caller: &Caller, profile: &str) -> anyhow::Result<Stored> {
    caller.call(Request::get(path_of(profile)))
}

fn show(caller: &Caller, profile: &str, as_json: bool) -> anyhow::Result<()> {
    let value: Value = caller.call(Request::get(path_of(profile)))?;
    let stored: Stored = serde_json::from_value(value.clone()).context("the gate's policy is not as documented")?;
    if let Some(error) = &stored.error {
        output::note(&format!("warning: it cannot be used, so everything is denied: {}", escape_line(error)));
    }
    if as_json {
        return output::line(&output::json(&value));
    }
    if !stored.exists {
        output::note("no document is stored for this profile; these are the defaults");
    }
    output::line(&pretty(&stored.policy))
}

/// Several lines, safe on a terminal.
fn pretty(policy: &Value) -> String {
    let text = serde_json::to_string_pretty(policy).unwrap_or_default();
    let safe = |line: &str| escape_line(line) == line;
    if text.lines().all(safe) { text } else { output::json(policy) }
}

fn read(file: &Path) -> anyhow::Result<String> {
    if file == Path::new("-") {
        let mut text = String::new();
        io::stdin().lock().read_to_string(&mut text).context("stdin cannot be read")?;
        return Ok(text);
    }
    fs::read_to_string(file).with_context(|| format!("`{}` cannot be read", file.display()))
}

fn parse(text: &str, file: &Path) -> anyhow::Result<Value> {
    let unfit = || format!("`{}` is no policy", file.display());
    Policy::parse(text).with_context(unfit)?;
    serde_json::from_str(text).with_context(unfit)
}

fn put(caller: &Caller, profile: &str, base_hash: &str, policy: &Value) -> anyhow::Result<()> {
    let body = json!({"base_hash": base_hash, "policy": policy});
    let stored: Stored = caller.call(Request::put(path_of(profile), body))?;
    output::note(&format!("stored for `{}`, hash {}", escape_line(profile), escape_line(&stored.hash)));
    Ok(())
}

fn edit(caller: &Caller, profile: &str) -> anyhow::Result<()> {
    let before = stored(caller, profile)?;
    let text = serde_json::to_string_pretty(&before.policy)? + "\n";
    let file = temporary(&text)?;
    let edited = run_editor(&file).and_then(|()| read(&file)).and_then(|after| {
        if after == text {
            output::note("nothing changed");
            return Ok(());
        }
        put(caller, profile, &before.hash, &parse(&after, &file)?)
    });
    match edited {
        Ok(()) => {
            let _ = fs::remove_file(&file);
            Ok(())
        }
        Err(error) if read(&file).is_ok_and(|after| after == text) => {
            let _ = fs::remove_file(&file);
            Err(error)
        }
        Err(error) => {
            let (file, profile) = (file.display(), escape_line(profile));
            output::note(&format!(
                "your text is kept in `{file}`; mend it and run `countersign policy set {profile} {file}`"
            ));
            Err(error)
        }
    }
}

/// A file that only this user can read, and that nobody put there before.
fn temporary(text: &str) -> anyhow::Result<PathBuf> {
    for attempt in 0..100 {
        let path = std::env::temp_dir().join(format!("countersign-policy-{}-{attempt}.json", std::process::id()));
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
            Ok(mut file) => {
                file.write_all(text.as_bytes()).with_context(|| format!("`{}` cannot be written", path.display()))?;
                return Ok(path);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error).with_context(|| format!("`{}` cannot be made", path.display())),
        }
    }
    bail!("no file can be made in `{}`; clear it of old ones", std::env::temp_dir().display())
}

fn run_editor(file: &Path) -> anyhow::Result<()> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let editor = set("VISUAL").or_else(|| set("EDITOR")).unwrap_or_else(|| "vi".into());
    // The variable may hold options too, so a shell reads it, as git's does.
    let mut script = editor.clone();
    script.push(" \"$1\"");
    let status = Command::new("sh").arg("-c").arg(script).arg("sh").arg(file).status();
    let status = status.context("no editor can be started; set EDITOR")?;
    if !status.success() {
        bail!("the editor `{}` ended with {status}; nothing was stored", editor.display());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_sound_policy_is_sent() {
        let file = Path::new("p.json");
        assert!(parse(r#"{"version":1}"#, file).is_ok());
        for bad in ["", "{", r#"{"version":2}"#, r#"{"version":1,"x":1}"#, r#"{"version":1,"version":1}"#] {
            assert!(parse(bad, file).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_document_with_tricks_is_printed_escaped() {
        assert!(pretty(&json!({"a": "b"})).contains('\n'));
        assert!(!pretty(&json!({"a": "\u{202e}"})).contains('\u{202e}'));
    }

    #[test]
    fn the_file_to_edit_is_private_and_new() {
        use std::os::unix::fs::PermissionsExt;
        let (one, two) = (temporary("a").unwrap(), temporary("b").unwrap());
        assert_ne!(one, two);
        assert_eq!(fs::metadata(&one).unwrap().permissions().mode() & 0o777, 0o600);
        for path in [one, two] {
            fs::remove_file(path).unwrap();
        }
    }
}
