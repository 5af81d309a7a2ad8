//! Rules that a user adds to the built-in ones: read from files in the same format, and refused when their own examples
//! do not hold.

use super::format::{File, Place, Written};
use super::rule::{Program, Rule};
use super::table;
use crate::assess::{Options, assess};
use crate::reason::Layer;
use crate::rule_error::RuleError;
use std::collections::HashMap;
use toml::Spanned;

/// Rules that a user adds to the built-in ones.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    rules: Vec<Rule>,
    programs: HashMap<String, Program>,
    by_program: HashMap<String, Vec<usize>>,
    by_place: HashMap<Place, Vec<usize>>,
}

impl Rules {
    /// Reads one file of rules; the error says in which line it is wrong.
    pub fn parse(text: &str) -> Result<Self, RuleError> {
        Self::parse_all(&[("", text)])
    }

    /// Reads files of rules, each with the name that errors call it by. One that is broken, or an example that does not
    /// hold with all of them in force, refuses them all.
    pub fn parse_all(files: &[(&str, &str)]) -> Result<Self, RuleError> {
        let mut rules = Self::default();
        let mut read: Vec<(&str, &str, File)> = Vec::new();
        for (name, text) in files {
            let file = File::parse(text).map_err(|error| error.of(name))?;
            for rule in &file.rules {
                if table::has_rule(rule.id.get_ref()) || rules.rules.iter().any(|known| known.id == *rule.id.get_ref())
                {
                    let message = format!("there is another rule `{}`; choose a different id", rule.id.get_ref());
                    return Err(RuleError::at(text, rule.id.span(), message).of(name));
                }
            }
            rules.add(&file);
            read.push((name, text, file));
        }
        for (name, text, file) in &read {
            for rule in &file.rules {
                rules.holds_for_examples(text, rule).map_err(|error| error.of(name))?;
            }
        }
        Ok(rules)
    }

    fn add(&mut self, file: &File) {
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

    /// Every example goes through the whole engine, as a command would.
    fn holds_for_examples(&self, text: &str, rule: &Written) -> Result<(), RuleError> {
        let id = rule.id.get_ref();
        let options = Options { rules: Some(self), ..Options::default() };
        let spoken = |example: &str| {
            let reasons = assess(example, &options).reasons;
            reasons.iter().any(|reason| reason.layer == Layer::Danger && reason.code == *id)
        };
        for example in &rule.matches {
            if !spoken(example.get_ref()) {
                let message = format!("rule `{id}` does not speak of its example `{}`", example.get_ref());
                return Err(RuleError::at(text, example.span(), message));
            }
        }
        for example in &rule.no_match {
            if spoken(example.get_ref()) {
                let message = format!("rule `{id}` speaks of `{}`, which it should not", example.get_ref());
                return Err(RuleError::at(text, example.span(), message));
            }
        }
        Ok(())
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
