//! Reads `rules/effects.toml`.

use super::effect::{Effects, Reversibility};
use super::rule::Does;
use serde::Deserialize;
use std::collections::BTreeMap;

/// What is known of codes and commands.
pub struct Known {
    pub codes: BTreeMap<String, Does>,
    pub commands: BTreeMap<String, Does>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    code: BTreeMap<String, Code>,
    command: Vec<Command>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Code {
    #[serde(default)]
    effects: Effects,
    reversibility: Reversibility,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Command {
    names: Vec<String>,
    effects: Effects,
    reversibility: Reversibility,
    /// Run by the tests.
    #[serde(rename = "match")]
    _matches: Vec<String>,
    #[serde(rename = "no_match")]
    _no_match: Vec<String>,
}

pub fn read() -> Result<Known, String> {
    let wrong = |error: &dyn std::fmt::Display| format!("rules/effects.toml: {error}");
    let text = std::fs::read_to_string("rules/effects.toml").map_err(|error| wrong(&error))?;
    let file: File = toml::from_str(&text).map_err(|error| wrong(&error))?;
    let does = |effects, reversibility| Does { effects, reversibility };
    let codes = file.code.into_iter().map(|(name, code)| (name, does(code.effects, code.reversibility))).collect();
    let mut commands = BTreeMap::new();
    for command in file.command {
        for name in command.names {
            let before = commands.insert(name.clone(), does(command.effects, command.reversibility));
            if before.is_some() {
                return Err(wrong(&format!("`{name}` is there twice")));
            }
        }
    }
    Ok(Known { codes, commands })
}
