//! Reads `rules/codes.toml`.

use super::rule::Does;
use crate::effect::{Marks, Reversibility};
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    code: BTreeMap<String, Code>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Code {
    #[serde(default)]
    effects: Marks,
    reversibility: Reversibility,
    /// Whether it tells a person what the command does.
    #[serde(default = "yes")]
    tells: bool,
}

fn yes() -> bool {
    true
}

/// What a code says, and whether a person is told.
pub struct Said {
    pub does: Does,
    pub tells: bool,
}

/// What is known of codes.
pub fn read() -> Result<BTreeMap<String, Said>, String> {
    let wrong = |error: &dyn std::fmt::Display| format!("rules/codes.toml: {error}");
    let text = std::fs::read_to_string("rules/codes.toml").map_err(|error| wrong(&error))?;
    let file: File = toml::from_str(&text).map_err(|error| wrong(&error))?;
    let said = |code: Code| Said {
        does: Does { effects: code.effects, reversibility: code.reversibility },
        tells: code.tells,
    };
    Ok(file.code.into_iter().map(|(name, code)| (name, said(code))).collect())
}
