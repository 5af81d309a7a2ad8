//! Words that the hub and the gateway share: decisions as their clients know them, and commands as people see them.

use std::collections::BTreeMap;

use countersign_gate::Told;
use countersign_model::{Action, Approval, Choice, Code, Exec, Offer, Reason, Request, Status, showing};
use thiserror::Error;

pub(crate) const ALLOW_ONCE: &str = "allow-once";
pub(crate) const ALLOW_SESSION: &str = "allow-session";
pub(crate) const ALLOW_ALWAYS: &str = "allow-always";
pub(crate) const DENY: &str = "deny";

/// What a person's program may send. `allow-session` is ours; no other word means anything.
pub(crate) fn choice_of(word: &str) -> Option<Choice> {
    match word {
        ALLOW_ONCE => Some(Choice::AllowOnce),
        ALLOW_SESSION => Some(Choice::AllowSession),
        ALLOW_ALWAYS => Some(Choice::AllowAlways),
        DENY => Some(Choice::Deny),
        _ => None,
    }
}

/// How a request ended, as a client that knows three words is told; none while it is open, and where nobody answered.
///
/// A yes to something else than was asked is no yes here: these clients would run what they asked for.
pub(crate) fn decision_word(approval: &Approval) -> Option<&'static str> {
    let outcome = approval.outcome.as_ref()?;
    match outcome.status {
        Status::Pending | Status::Expired | Status::Cancelled => None,
        Status::Denied => Some(DENY),
        Status::Approved => match &outcome.decision {
            Some(decision) if decision.replacement.is_some() => Some(DENY),
            Some(decision) if decision.code == Code::AllowActionType && decision.grant_id.is_some() => {
                Some(ALLOW_ALWAYS)
            }
            Some(_) | None => Some(ALLOW_ONCE),
        },
    }
}

/// The same as its requester is told: a yes that can no longer be used is none.
pub(crate) fn told_word(told: &Told) -> Option<&'static str> {
    if told.unusable.is_some() { Some(DENY) } else { decision_word(&told.approval) }
}

/// Why, as its requester is told.
pub(crate) fn told_reason(told: &Told) -> Option<Reason> {
    told.unusable.or(told.approval.outcome.as_ref().map(|outcome| outcome.reason))
}

/// What a person may answer. Always is offered only where an entry can be made.
pub(crate) fn allowed_decisions(approval: &Approval) -> &'static [&'static str] {
    match approval.offer() {
        Some(Offer::Refused(_)) => &[ALLOW_ONCE, DENY],
        Some(Offer::Entries { .. }) | None => &[ALLOW_ONCE, ALLOW_ALWAYS, DENY],
    }
}

/// The command as a person sees it: secrets masked, what cannot be seen made visible. For anything else its headline.
pub(crate) fn command_text(request: &Request) -> String {
    let shown = showing(&request.action, request.assessment.as_ref(), &request.words);
    match &request.action {
        Action::Exec(_) => shown.sections.into_iter().next().map(|section| section.content.text).unwrap_or_default(),
        Action::Tool { .. } | Action::Question { .. } | Action::Custom { .. } => shown.headline,
    }
}

#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub(crate) enum WordsError {
    #[error("`argv` needs at least the program")]
    NoProgram,
    #[error("`command` and `argv` differ; send `argv` alone, or make `command` its words with spaces between")]
    Differ,
}

/// A command by its words. What is shown is made from what would run, never from the agent's account of it: a
/// `command` beside them must be those very words.
pub(crate) fn exec_of_words(
    argv: Vec<String>,
    command: Option<&str>,
    cwd: Option<String>,
    env: BTreeMap<String, String>,
) -> Result<Exec, WordsError> {
    if argv.is_empty() {
        return Err(WordsError::NoProgram);
    }
    let joined = argv.join(" ");
    let exec = Exec::of_words(argv, cwd, env);
    match command {
        Some(command) if command != exec.command && command != joined => Err(WordsError::Differ),
        Some(_) | None => Ok(exec),
    }
}
