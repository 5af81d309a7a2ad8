//! Layer 4: what a command does that is dangerous, by named rules.
//!
//! The rules are data (`rules/dangers/*.toml`), made into constant tables when the crate is built; users add their own
//! in the same format. They look at parsed commands (`Simple`), never at raw text, so that data which mentions a danger
//! is none. Nothing here ever says that a command is safe.

mod checks;
mod code;
mod facts;
mod matcher;
mod modes;
mod paths;
mod rule;
mod script;
mod secrets;
mod shells;
mod sql;
mod table;
mod test;
#[cfg(test)]
mod tests;

use crate::command::Simple;
use crate::reason::{Layer, Reason, Risk};
use crate::word::Span;
use facts::{Facts, base_name, pictures};
pub use rule::{Program, Rule, RuleError};
use std::collections::HashMap;

/// What is known about where commands run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Scope<'a> {
    /// The folder whose contents may be removed without alarm. A request's working folder is no workspace.
    pub workspace: Option<&'a str>,
}

/// Rules that a user adds to the built-in ones.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    rules: Vec<Rule>,
    programs: HashMap<String, Program>,
    by_key: HashMap<String, Vec<usize>>,
}

impl Rules {
    /// Reads a file of rules; the error says in which line it is wrong.
    pub fn parse(text: &str) -> Result<Self, RuleError> {
        let file = rule::File::parse(text)?;
        let mut rules = Self { rules: file.rules, ..Self::default() };
        for (number, rule) in rules.rules.iter().enumerate() {
            let keys = rule.programs.iter().map(AsRef::as_ref);
            let place = rule.programs.is_empty().then(|| rule.place());
            for key in keys.chain(place) {
                rules.by_key.entry(key.to_owned()).or_default().push(number);
            }
        }
        for program in file.programs {
            for name in program.names.iter() {
                rules.programs.insert(name.clone().into_owned(), program.clone());
            }
        }
        Ok(rules)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.rules.iter()
    }

    fn under(&self, key: &str) -> impl Iterator<Item = &Rule> {
        self.by_key.get(key).into_iter().flatten().filter_map(|at| self.rules.get(*at))
    }
}

/// What this one command does that is dangerous.
pub fn judge(simple: &Simple, scope: &Scope<'_>) -> Vec<Reason> {
    judge_each(simple, scope, None)
}

/// The same, with a user's own rules beside the built-in ones.
pub fn judge_with(simple: &Simple, scope: &Scope<'_>, own: &Rules) -> Vec<Reason> {
    judge_each(simple, scope, Some(own))
}

/// What takes several commands: a download that is then run, secrets through a pipe to another machine.
pub fn judge_script(all: &[Simple], scope: &Scope<'_>) -> Vec<Reason> {
    if let [only] = all
        && !script::may_speak_of(only)
    {
        return Vec::new();
    }
    script::with_facts(all, |facts| {
        let speaks = |rule: &Rule| {
            let span = script::holds(rule.script?, facts, scope)?;
            Some(reason(rule, span))
        };
        table::rules("(script)").filter_map(speaks).collect()
    })
}

fn find_program(name: &str) -> Option<&'static Program> {
    table::program(name).or_else(|| table::family(name).iter().flatten().find_map(|name| table::program(name)))
}

fn judge_each(simple: &Simple, scope: &Scope<'_>, own: Option<&Rules>) -> Vec<Reason> {
    let texts = pictures(simple);
    let name = texts.first().map_or("", |text| base_name(text));
    let program = own.and_then(|own| own.programs.get(name)).or_else(|| find_program(name));
    let facts = Facts::read(simple, &texts, program);
    let family = table::family(name);
    let mut keys = vec![name];
    keys.extend(family.iter().flatten().map(AsRef::as_ref));
    if !facts.assignments.is_empty() {
        keys.push("(assign)");
    }
    if !facts.writes.is_empty() {
        keys.push("(writes)");
    }
    if !facts.reads.is_empty() {
        keys.push("(reads)");
    }
    keys.push("(any)");
    let mut reasons = Vec::new();
    for key in keys {
        let speak = |rule: &Rule| Some(reason(rule, matcher::matches(rule, &facts, scope)?));
        reasons.extend(table::rules(key).filter_map(speak));
        if let Some(own) = own {
            reasons.extend(own.under(key).filter_map(speak));
        }
    }
    reasons
}

fn reason(rule: &Rule, span: Span) -> Reason {
    Reason {
        code: rule.id.clone().into_owned(),
        message: rule.reason.clone().into_owned(),
        span,
        layer: Layer::Danger,
        risk: Risk::Dangerous,
    }
}
