//! Layer 4: what a command does that is dangerous, by named rules.
//!
//! The rules are data (`rules/dangers/*.toml`), made into constant tables when the crate is built; users add their own
//! in the same format. They look at parsed commands (`Simple`), never at raw text, so that data which mentions a danger
//! is none. Nothing here ever says that a command is safe.

pub(crate) mod arguments;
mod checks;
mod code;
mod compile;
#[cfg(test)]
mod does_tests;
pub(crate) mod facts;
mod format;
mod matcher;
mod modes;
mod own;
mod parts;
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
mod words;

use crate::command::Simple;
use crate::reason::{Layer, Reason, Risk};
use crate::word::Span;
pub use compile::Compiler;
use facts::Facts;
use format::Place;
pub use format::{File, Written};
pub use own::check as check_own;
pub(crate) use rule::Program;
pub use rule::{Does, Table, family};
use rule::{Numbers, Rule, Speaks};
use table::BUILT_IN;
pub(crate) use table::Of;
pub use table::{said, tells};
pub(crate) use words::Dialect;
use words::Trait;

/// What is known about where commands run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Scope<'a> {
    /// The folder whose contents may be removed without alarm. A request's working folder is no workspace.
    pub workspace: Option<&'a str>,
}

/// What the commands of a text do that is dangerous.
#[derive(Debug, Default)]
pub struct Judged {
    /// Said of one command, by its place among them.
    pub each: Vec<(usize, Reason)>,
    /// What the commands that were asked about are known to do, as long as all of them.
    pub known: Vec<Option<Does>>,
    /// What takes several of them: a download that is then run, secrets through a pipe to another machine.
    pub together: Vec<Reason>,
}

/// Judges all commands of a text, each by itself and then together, with a user's own rules beside the built-in ones.
/// What a command does otherwise is told of those that are `asked` about.
pub fn judge(all: &[Simple], scope: &Scope<'_>, own: Option<&Table>, asked: impl Fn(usize) -> bool) -> Judged {
    let mut judged = Judged::default();
    facts::with_facts(all, own, |facts| {
        let known = |(index, facts)| if asked(index) { crate::effects::does(facts) } else { None };
        judged.known = facts.iter().enumerate().map(known).collect();
        for (index, facts) in facts.iter().enumerate() {
            judge_one(facts, scope, own, |reason| judged.each.push((index, reason)));
        }
        if script::may_speak_of(all) {
            for table in [Some(&BUILT_IN), own].into_iter().flatten() {
                judged.together.extend(table.numbered(table.at(Place::Script)).filter_map(|rule| match rule.speaks {
                    Speaks::OfAll(check) => Some(reason(rule, script::holds(check, facts, scope)?)),
                    Speaks::OfOne(_) => None,
                }));
            }
        }
    });
    judged
}

/// Whether there is a rule about this program.
pub fn speaks_of(name: &str) -> bool {
    table::row(name).is_some_and(|row| !row.rules.0.is_empty())
}

/// Whether this program is there to print settings for a shell to take over.
pub fn prints_settings(name: &str) -> bool {
    find_program(name).is_some_and(|program| program.traits.has(Trait::PrintsSettings))
}

/// Whether the rules know this program as one that runs the text or the command it is given.
pub fn runs_what_it_is_given(name: &str) -> bool {
    let runs = [Trait::Shell, Trait::Interpreter, Trait::Wraps];
    find_program(name).is_some_and(|program| runs.iter().any(|which| program.traits.has(*which)))
}

pub(crate) fn find_program(name: &str) -> Option<Of<'static, Program>> {
    table::row(name).and_then(Of::program)
}

fn judge_one(facts: &Facts<'_>, scope: &Scope<'_>, own: Option<&Table>, mut say: impl FnMut(Reason)) {
    let mut try_all = |table: &Table, rules: Numbers| {
        for rule in table.numbered(rules) {
            if let Speaks::OfOne(conditions) = rule.speaks
                && let Some(span) = matcher::matches(table, conditions, facts, scope)
            {
                say(reason(rule, span));
            }
        }
    };
    let places = [
        (!facts.assignments.is_empty()).then_some(Place::Assign),
        (!facts.writes.is_empty()).then_some(Place::Writes),
        (!facts.reads.is_empty()).then_some(Place::Reads),
        Some(Place::Any),
    ];
    if let Some(row) = facts.row {
        try_all(&BUILT_IN, row.rules);
    }
    if let Some(own) = own {
        let family = rule::family(facts.name);
        for name in std::iter::once(facts.name).chain(family.iter().flatten().map(AsRef::as_ref)) {
            if let Some(row) = own.row(name) {
                try_all(own, row.rules);
            }
        }
    }
    for place in places.into_iter().flatten() {
        for table in [Some(&BUILT_IN), own].into_iter().flatten() {
            try_all(table, table.at(place));
        }
    }
}

fn reason(rule: Of<'_, Rule>, span: Span) -> Reason {
    Reason {
        code: rule.id(),
        message: rule.reason(),
        span,
        layer: Layer::Danger,
        risk: Risk::Dangerous,
        does: rule.does,
    }
}
