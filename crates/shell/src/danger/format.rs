//! What a rule file says: rules about dangerous commands, and what is known of the programs they speak of.
//!
//! Knows the file format and nothing of commands, so that the build script can read the built-in files with the same
//! code that reads a user's at run time.

use super::words::{Check, Dialect, ScriptCheck, Traits, WrittenTest};
use crate::effect::{Marks, Reversibility};
use crate::rule_error::RuleError;
use serde::Deserialize;
use toml::Spanned;
use toml::de::DeTable;

type List = Vec<String>;
type Tests = Vec<WrittenTest>;

/// One rule as it is written. Everything it states must hold; an empty list states nothing.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Written {
    /// Stable, snake case: the code of the reason.
    pub id: Spanned<String>,
    /// One plain sentence, lower case, without a full stop.
    pub reason: String,
    /// Base names. `mkfs.*` is any name that starts so. None: any program (with `writes`, `reads`, `assign`, `check`).
    #[serde(default)]
    pub programs: List,
    /// Alternatives, each a path of words: `stash drop|clear`, `iam create-*`, `** delete`.
    #[serde(default)]
    pub subcommand: List,
    /// Options that must all be there; `-r|--recursive` are two spellings of one.
    #[serde(default)]
    pub all: List,
    #[serde(default)]
    pub any: List,
    #[serde(default)]
    pub none: List,
    /// Options whose value is tested by `value`.
    #[serde(default)]
    pub value_of: List,
    #[serde(default)]
    pub value: Tests,
    /// Some operand (after the subcommand) passes one of these.
    #[serde(default)]
    pub operand: Tests,
    /// Some operand passes one of these as well.
    #[serde(default)]
    pub also: Tests,
    #[serde(default)]
    pub first: Tests,
    #[serde(default)]
    pub last: Tests,
    /// Some operand before the last.
    #[serde(default)]
    pub source: Tests,
    /// No operand passes any of these.
    #[serde(default)]
    pub not_operand: Tests,
    /// Some word after the program, option or not, passes.
    #[serde(default)]
    pub argument: Tests,
    /// Some file the command would write: redirections, and what its program is known to write.
    #[serde(default)]
    pub writes: Tests,
    /// Some file the command would read.
    #[serde(default)]
    pub reads: Tests,
    /// Variables that are set; a last `*` stands for any rest.
    #[serde(default)]
    pub assign: List,
    #[serde(default)]
    pub assigned: Tests,
    /// Code given in the command itself (`python -c`, `psql -c`, a here document).
    #[serde(default)]
    pub code: Tests,
    #[serde(default)]
    pub code_also: Tests,
    /// No operands at all.
    #[serde(default)]
    pub bare: bool,
    /// A test of the whole command that is written in Rust.
    #[serde(default)]
    pub check: Option<Check>,
    /// A test of all commands of the text together.
    #[serde(default)]
    pub script: Option<ScriptCheck>,
    /// What it does beyond its risk, and whether that can be undone; otherwise what the file says of all its rules.
    #[serde(default)]
    pub effects: Option<Marks>,
    #[serde(default)]
    pub reversibility: Option<Reversibility>,
    /// Commands of which it speaks, and of which it does not: they are run when the file is read.
    #[serde(default, rename = "match")]
    pub matches: Vec<Spanned<String>>,
    #[serde(default)]
    pub no_match: Vec<Spanned<String>>,
}

/// What a command must do for a rule without programs to be tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Place {
    /// Anything.
    Any,
    Assign,
    Writes,
    Reads,
    /// Tried on all commands together.
    Script,
}

/// What is known of a program: enough to read its arguments.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Described {
    pub names: List,
    #[serde(default)]
    pub dialect: Dialect,
    /// Options that take a value.
    #[serde(default)]
    pub takes: List,
    /// Long options that are no abbreviation of a longer one.
    #[serde(default)]
    pub exact: List,
    /// After so many operands, the rest is another command's.
    #[serde(default)]
    pub operands: Option<usize>,
    /// What it writes: options by name, `operands`, `last`, `second`.
    #[serde(default)]
    pub writes: List,
    /// What it reads: as above, and `rest` for all operands but the first. Absent: operands that look like paths.
    #[serde(default)]
    pub reads: Option<List>,
    /// Where code is given: options by name, `first`, `rest`, `stdin`.
    #[serde(default)]
    pub code: List,
    #[serde(default)]
    pub traits: Traits,
}

/// What one file holds.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// What its rules speak of, where they do not say it themselves.
    #[serde(default)]
    pub effects: Marks,
    #[serde(default)]
    pub reversibility: Option<Reversibility>,
    #[serde(default, rename = "rule")]
    pub rules: Vec<Written>,
    #[serde(default, rename = "program")]
    pub programs: Vec<Spanned<Described>>,
}

impl File {
    /// Reads what a text was parsed into.
    pub fn read(text: &str, table: Spanned<DeTable<'_>>) -> Result<Self, RuleError> {
        let file =
            Self::deserialize(toml::de::Deserializer::from(table)).map_err(|error| RuleError::toml(text, &error))?;
        let mut seen = std::collections::HashSet::new();
        for rule in &file.rules {
            let id = rule.id.get_ref();
            let wrong = |message: String| RuleError::at(text, rule.id.span(), message);
            if id.is_empty() || !id.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_') {
                return Err(wrong(format!("rule id `{id}` is not in snake case")));
            }
            if !seen.insert(id) {
                return Err(wrong(format!("rule `{id}` is there twice")));
            }
            if let Some(problem) = rule.problem() {
                return Err(wrong(format!("rule `{id}` {problem}")));
            }
        }
        Ok(file)
    }
}

impl Written {
    /// Where a rule without programs is looked for.
    pub fn place(&self) -> Place {
        if self.script.is_some() {
            Place::Script
        } else if !self.assign.is_empty() {
            Place::Assign
        } else if !self.writes.is_empty() {
            Place::Writes
        } else if !self.reads.is_empty() {
            Place::Reads
        } else {
            Place::Any
        }
    }

    /// Why the rule could never speak, or would speak of everything.
    fn problem(&self) -> Option<&'static str> {
        let anywhere = !(self.writes.is_empty() && self.reads.is_empty() && self.assign.is_empty())
            || self.check.is_some()
            || self.script.is_some();
        if self.programs.is_empty() && !anywhere {
            return Some("names no programs, and nothing else that says where it looks");
        }
        if self.value_of.is_empty() != self.value.is_empty() {
            return Some("needs `value_of` and `value` together");
        }
        if self.assign.is_empty() && !self.assigned.is_empty() {
            return Some("has `assigned` without `assign`");
        }
        if self.matches.is_empty() {
            return Some("needs at least one `match` example");
        }
        None
    }
}
