//! Dangers that a user adds to the built-in ones, and what is said of the programs they speak of: what may be said.

use super::compile::Compiler;
use super::format::File;
use super::table::{self, BUILT_IN};
use crate::rule_error::RuleError;
use crate::{safe, unwrap};

/// Refuses what would stand in the way of other rules: built-in ones, and those of files before.
pub fn check(text: &str, file: &File, before: &Compiler) -> Result<(), RuleError> {
    for rule in &file.rules {
        let id = rule.id.get_ref();
        if before.has_rule(id) || BUILT_IN.ids().any(|known| known == id) {
            let message = format!("there is another rule `{id}`; choose a different id");
            return Err(RuleError::at(text, rule.id.span(), message));
        }
    }
    for program in &file.programs {
        if let Some(name) = program.get_ref().names.iter().find(|name| is_known(name)) {
            let message =
                format!("how `{name}` reads its words is built in, and the built-in rules rely on it; leave this out");
            return Err(RuleError::at(text, program.span(), message));
        }
    }
    Ok(())
}

/// Whether a description of a user's could hide something from a built-in rule: a value for an operand, a file that is
/// not read.
fn is_known(name: &str) -> bool {
    let named = table::row(name).is_some_and(|row| row.program().is_some() || !row.rules.0.is_empty());
    named || safe::is_built_in(name) || unwrap::is_shell(name) || unwrap::is_wrapper(name) || unwrap::runs_code(name)
}
