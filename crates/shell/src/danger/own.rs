//! Dangers that a user adds to the built-in ones, and what is said of the programs they speak of.

use super::format::{File, Place};
use super::rule::{Program, Rule};
use super::table;
use crate::rule_error::RuleError;
use crate::{safe, unwrap};
use std::collections::HashMap;
use toml::Spanned;

/// Dangers that a user adds to the built-in ones.
#[derive(Clone, Debug, Default)]
pub struct Own {
    rules: Vec<Rule>,
    programs: HashMap<String, Program>,
    by_program: HashMap<String, Vec<usize>>,
    by_place: HashMap<Place, Vec<usize>>,
}

impl Own {
    /// Refuses what would stand in the way of other rules.
    pub fn check(&self, text: &str, file: &File) -> Result<(), RuleError> {
        for rule in &file.rules {
            let id = rule.id.get_ref();
            if table::has_rule(id) || self.rules.iter().any(|known| known.id == *id) {
                let message = format!("there is another rule `{id}`; choose a different id");
                return Err(RuleError::at(text, rule.id.span(), message));
            }
        }
        for program in &file.programs {
            if let Some(name) = program.get_ref().names.iter().find(|name| is_known(name)) {
                let message = format!(
                    "how `{name}` reads its words is built in, and the built-in rules rely on it; leave this out"
                );
                return Err(RuleError::at(text, program.span(), message));
            }
        }
        Ok(())
    }

    pub fn add(&mut self, file: &File) {
        let first = self.rules.len();
        self.rules.extend(file.compile());
        for (number, written) in file.rules.iter().enumerate() {
            for name in written.programs.iter() {
                self.by_program.entry(name.clone().into_owned()).or_default().push(first + number);
            }
            if written.programs.is_empty() {
                self.by_place.entry(written.place()).or_default().push(first + number);
            }
        }
        for program in file.programs.iter().map(Spanned::get_ref) {
            for name in program.names.iter() {
                self.programs.insert(name.clone().into_owned(), program.clone());
            }
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.rules.iter()
    }

    pub(super) fn program(&self, name: &str) -> Option<&Program> {
        self.programs.get(name)
    }

    pub(super) fn of(&self, name: &str) -> impl Iterator<Item = &Rule> {
        self.by_program.get(name).into_iter().flatten().filter_map(|at| self.rules.get(*at))
    }

    pub(super) fn at(&self, place: Place) -> impl Iterator<Item = &Rule> {
        self.by_place.get(&place).into_iter().flatten().filter_map(|at| self.rules.get(*at))
    }
}

/// Whether a description of a user's could hide something from a built-in rule: a value for an operand, a file that is
/// not read.
fn is_known(name: &str) -> bool {
    let named = table::row(name).is_some_and(|row| row.program().is_some() || row.rules().next().is_some());
    named || safe::is_built_in(name) || unwrap::is_shell(name) || unwrap::is_wrapper(name) || unwrap::runs_code(name)
}
