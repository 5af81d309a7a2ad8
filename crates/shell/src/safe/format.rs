//! What a file of programs says, as `rules/programs/README.md` describes it.
//!
//! Knows the format and nothing of commands, so that the build script reads the built-in files with the same code that
//! reads a user's at run time. `compile.rs` makes rows of it.

use super::rows::{Check, Operands, Style};
use crate::project::Project;
use crate::rule_error::RuleError;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::ops::Range;
use toml::Spanned;
use toml::de::DeTable;

pub type Written = Spanned<String>;

/// What one file holds.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct File {
    #[serde(rename = "program")]
    pub programs: Vec<Spanned<Entry>>,
    /// Options that several programs share.
    #[serde(rename = "set")]
    pub sets: BTreeMap<String, Spanned<Entry>>,
}

/// A program, a subcommand of one or a set of options: they share most of their keys.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Entry {
    pub names: Vec<Written>,
    pub summary: Option<Written>,
    pub style: Style,
    pub short: String,
    pub long: Option<Written>,
    pub paths: Option<Written>,
    pub numbers: Option<Written>,
    pub deny: BTreeMap<String, Written>,
    #[serde(rename = "use")]
    pub uses: Vec<Written>,
    pub operands: Operands,
    pub pattern_options: String,
    pub recursive: String,
    pub min: Option<u8>,
    pub max: Option<u8>,
    pub excess: Option<Written>,
    pub needs: Option<Spanned<Vec<Written>>>,
    pub operands_need: Option<Spanned<Vec<Written>>>,
    pub digits: bool,
    pub plus: bool,
    pub harmless: bool,
    pub exact: Vec<String>,
    pub check: Check,
    /// Whose project files decide what it does: `rules/projects.toml`.
    pub obeys: Vec<Project>,
    /// Options whose value is the folder it works in.
    pub works_in: String,
    #[serde(rename = "sub")]
    pub subs: Vec<Spanned<Entry>>,
    pub deny_sub: BTreeMap<String, Written>,
    /// The program's own options may stand after a subcommand, too.
    pub globals_anywhere: bool,
    #[serde(rename = "match")]
    pub matches: Vec<Written>,
    pub no_match: Vec<Written>,
}

/// What is wrong, and where in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub place: Range<usize>,
    pub message: String,
}

impl Problem {
    pub fn new(place: Range<usize>, message: impl Into<String>) -> Self {
        Self { place, message: message.into() }
    }

    pub fn within(self, text: &str) -> RuleError {
        RuleError::at(text, self.place, self.message)
    }
}

impl File {
    /// Reads what a text was parsed into, and checks what a form of TOML cannot say.
    pub fn read(text: &str, table: Spanned<DeTable<'_>>) -> Result<Self, RuleError> {
        let file =
            Self::deserialize(toml::de::Deserializer::from(table)).map_err(|error| RuleError::toml(text, &error))?;
        file.check().map_err(|problem| problem.within(text))?;
        Ok(file)
    }

    fn check(&self) -> Result<(), Problem> {
        for (name, set) in &self.sets {
            let entry = set.get_ref();
            if !entry.names.is_empty() || !entry.is_sub() || !entry.is_options_only() {
                let message = format!("set `{name}` may have `short`, `long`, `paths`, `numbers` and `deny` only");
                return Err(Problem::new(set.span(), message));
            }
        }
        for program in &self.programs {
            let entry = program.get_ref();
            let place = entry.place(program.span());
            let Some(first) = entry.names.first() else {
                return Err(Problem::new(place, "a program needs `names`"));
            };
            if entry.summary.as_ref().is_none_or(|summary| summary.get_ref().trim().is_empty()) {
                let message = format!("program `{}` needs a `summary`: what it does, in a few words", first.get_ref());
                return Err(Problem::new(place, message));
            }
            for sub in &entry.subs {
                let (entry, place) = (sub.get_ref(), sub.get_ref().place(sub.span()));
                if entry.names.is_empty() {
                    return Err(Problem::new(place, "a subcommand needs `names`"));
                }
                if !entry.is_sub() {
                    let message = "a subcommand has no `summary`, `sub`, `deny_sub`, `globals_anywhere`, `match` or \
                                   `no_match`; write those of its program";
                    return Err(Problem::new(place, message));
                }
            }
        }
        Ok(())
    }
}

impl Entry {
    /// Where to point at: its name.
    pub fn place(&self, whole: Range<usize>) -> Range<usize> {
        self.names.first().map_or(whole, Spanned::span)
    }

    /// Whether it says nothing that only a whole program can.
    fn is_sub(&self) -> bool {
        self.summary.is_none()
            && self.subs.is_empty()
            && self.deny_sub.is_empty()
            && !self.globals_anywhere
            && self.matches.is_empty()
            && self.no_match.is_empty()
    }

    fn is_options_only(&self) -> bool {
        let operands = self.operands == Operands::None && self.min.is_none() && self.max.is_none();
        let listed = self.uses.is_empty() && self.exact.is_empty() && self.recursive.is_empty();
        let switches = self.digits || self.plus || self.harmless;
        let needs = self.needs.is_some() || self.operands_need.is_some() || self.excess.is_some();
        let read = self.style == Style::Plain && self.check == Check::None && self.pattern_options.is_empty();
        operands && listed && read && !switches && !needs && self.obeys.is_empty() && self.works_in.is_empty()
    }
}
