//! What outlives a decision: who may do what again without asking, for how long.

use countersign_shell::{Entry, Offer};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::action::{Action, ActionType};
use crate::canonical::Digest;
use crate::decision::{Answer, Choice};
use crate::grant_place::GrantPlace;
use crate::id::{ApprovalId, ClientId, GrantId, KeyId};
use crate::request::Request;
use crate::risk::Assessment;
use crate::time::Timestamp;

/// Entry grants end by themselves after 30 days.
pub const DEFAULT_ENTRY_GRANT_MS: u64 = 30 * 24 * 3600 * 1000;

/// What holds for a session ends with it, and after a day whatever became of the session: nobody hears when an agent's
/// run is over.
pub const MAX_SESSION_GRANT_MS: u64 = 24 * 3600 * 1000;

/// The subject of entries for commands.
const COMMANDS: &str = "commands";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    pub id: GrantId,
    pub kind: GrantKind,
    pub scope: Scope,
    /// Where it holds; anywhere, where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<GrantPlace>,
    pub created_at: Timestamp,
    pub created_by: String,
    /// The approval whose answer made it.
    pub approval_id: ApprovalId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<Timestamp>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum GrantKind {
    /// Codes 2 and 6. A tool's grant also names the tool: the type alone is the agent's word.
    ActionType {
        action_type: ActionType,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool: Option<String>,
    },
    /// A tool by its exact name.
    Tool { name: String },
    /// Commands that these entries speak for, each by itself.
    Command { entries: Vec<Entry> },
    /// This very action and no other.
    Exact { digest: Digest },
}

/// Every part that is given must match.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scope {
    pub client: KeyId,
    /// For showing; `client` is what counts.
    pub client_id: ClientId,
    pub profile: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
}

/// What the approver says about the grant beyond its kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GrantTerms {
    pub expires_in_ms: Option<u64>,
}

#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum GrantError {
    #[error("a question is asked every time; answer it with allow-once")]
    Question,
    #[error(
        "this was not asked from a workspace, so there is no whitelist to remember it on; answer with allow-always"
    )]
    NoWorkspace,
    #[error(
        "the workspace's `.agents/terminal.json` is not trusted as it is; look at it, run `countersign trust`, and answer again"
    )]
    NotTrusted,
    #[error("no entry can be made for this command: {0}; answer with allow-once")]
    Command(String),
}

impl Grant {
    /// The grant this answer makes, if it makes one. `allow_safe`: whether policy lets safe commands run without an
    /// entry, so that none is made for them.
    pub fn from_answer(
        answer: &Answer,
        request: &Request,
        id: GrantId,
        approval_id: ApprovalId,
        now: Timestamp,
        by: &str,
        allow_safe: bool,
    ) -> Result<Option<Self>, GrantError> {
        let (kind, for_session, default_ms) = match answer.choice {
            Choice::AllowOnce | Choice::Deny => return Ok(None),
            Choice::AllowActionTypeForSession => (action_type_kind(request)?, true, None),
            Choice::AllowActionType => (action_type_kind(request)?, false, None),
            Choice::AllowSession => (entry(answer, request, allow_safe)?, true, Some(DEFAULT_ENTRY_GRANT_MS)),
            Choice::AllowAlways => (entry(answer, request, allow_safe)?, false, Some(DEFAULT_ENTRY_GRANT_MS)),
        };
        Ok(Some(Self {
            id,
            kind,
            scope: Scope {
                client: request.requester.key_id,
                client_id: request.requester.client_id.clone(),
                profile: request.requester.profile.clone(),
                session: for_session.then(|| request.session_id.clone()),
            },
            place: matches!(answer.choice, Choice::AllowSession | Choice::AllowAlways)
                .then(|| GrantPlace::of(request))
                .flatten(),
            created_at: now,
            created_by: by.to_owned(),
            approval_id,
            expires_at: lifetime(answer.terms.expires_in_ms.or(default_ms), for_session).map(|ms| now.plus_millis(ms)),
            revoked_at: None,
        }))
    }

    pub fn is_active(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && self.ends_at().is_none_or(|end| now < end)
    }

    /// Also of a session's grant that was stored when these had no such limit.
    fn ends_at(&self) -> Option<Timestamp> {
        let session = self.scope.session.as_ref().map(|_| self.created_at.plus_millis(MAX_SESSION_GRANT_MS));
        match (self.expires_at, session) {
            (Some(end), Some(session)) => Some(end.min(session)),
            (end, session) => end.or(session),
        }
    }

    pub fn is_action_type(&self) -> bool {
        matches!(self.kind, GrantKind::ActionType { .. })
    }

    /// Whether this grant alone speaks for all of that request. Entries for commands speak together, with policy's:
    /// see [`Grant::entries_for`].
    pub fn covers(&self, request: &Request, now: Timestamp) -> bool {
        self.holds_for(request, now) && self.kind.covers(request)
    }

    /// The entries it has for a command.
    pub fn entries_for(&self, request: &Request, now: Timestamp) -> &[Entry] {
        match &self.kind {
            GrantKind::Command { entries } if self.holds_for(request, now) => entries,
            GrantKind::Command { .. }
            | GrantKind::ActionType { .. }
            | GrantKind::Tool { .. }
            | GrantKind::Exact { .. } => &[],
        }
    }

    fn holds_for(&self, request: &Request, now: Timestamp) -> bool {
        self.is_active(now)
            && self.scope.includes(request)
            && self.place.as_ref().is_none_or(|place| place.holds_for(request))
    }

    /// What the store finds candidates by: a grant can only cover requests that name its subject.
    pub fn subject(&self) -> String {
        match &self.kind {
            GrantKind::ActionType { action_type, .. } => format!("type:{action_type}"),
            GrantKind::Tool { name } => format!("tool:{name}"),
            // Any client has few of these, and one may speak for any part of a line.
            GrantKind::Command { .. } => COMMANDS.to_owned(),
            GrantKind::Exact { digest } => format!("digest:{digest}"),
        }
    }

    /// The subjects under which grants for this request could be stored.
    pub fn subjects_of(request: &Request) -> Vec<String> {
        let mut subjects = vec![format!("type:{}", request.action_type), format!("digest:{}", request.digest)];
        match &request.action {
            Action::Tool { name, .. } => subjects.push(format!("tool:{name}")),
            Action::Exec(_) => subjects.push(COMMANDS.to_owned()),
            Action::Question { .. } | Action::Custom { .. } => {}
        }
        subjects
    }
}

impl Scope {
    fn includes(&self, request: &Request) -> bool {
        self.client == request.requester.key_id
            && self.profile == request.requester.profile
            && self.session.as_ref().is_none_or(|session| *session == request.session_id)
    }
}

impl GrantKind {
    fn covers(&self, request: &Request) -> bool {
        match &request.action {
            Action::Question { .. } => false,
            Action::Exec(_) => match self {
                Self::ActionType { action_type, tool } => {
                    let plain = request.assessment.as_ref().is_some_and(Assessment::is_plain);
                    plain && *action_type == request.action_type && tool.is_none()
                }
                Self::Command { .. } | Self::Tool { .. } | Self::Exact { .. } => false,
            },
            Action::Tool { name, .. } => match self {
                Self::ActionType { action_type, tool } => {
                    *action_type == request.action_type && tool.as_ref() == Some(name)
                }
                Self::Tool { name: granted } => granted == name,
                Self::Exact { digest } => *digest == request.digest,
                Self::Command { .. } => false,
            },
            Action::Custom { .. } => match self {
                Self::ActionType { action_type, tool } => *action_type == request.action_type && tool.is_none(),
                Self::Exact { digest } => *digest == request.digest,
                Self::Tool { .. } | Self::Command { .. } => false,
            },
        }
    }
}

fn lifetime(asked: Option<u64>, for_session: bool) -> Option<u64> {
    if for_session { Some(asked.unwrap_or(MAX_SESSION_GRANT_MS).min(MAX_SESSION_GRANT_MS)) } else { asked }
}

fn action_type_kind(request: &Request) -> Result<GrantKind, GrantError> {
    let tool = match &request.action {
        Action::Question { .. } => return Err(GrantError::Question),
        Action::Tool { name, .. } => Some(name.clone()),
        Action::Exec(_) | Action::Custom { .. } => None,
    };
    Ok(GrantKind::ActionType { action_type: request.action_type.clone(), tool })
}

/// The narrowest entry, or the words that the answer names.
fn entry(answer: &Answer, request: &Request, allow_safe: bool) -> Result<GrantKind, GrantError> {
    let Some(prefix) = &answer.prefix else { return narrowest_entry(request, allow_safe) };
    let entry = Entry::offered_prefix(prefix).map_err(GrantError::Command)?;
    Ok(GrantKind::Command { entries: vec![entry] })
}

fn narrowest_entry(request: &Request, allow_safe: bool) -> Result<GrantKind, GrantError> {
    match &request.action {
        Action::Question { .. } => Err(GrantError::Question),
        Action::Exec(_) => command_entries(request, allow_safe).map(|entries| GrantKind::Command { entries }),
        Action::Tool { name, .. } => Ok(GrantKind::Tool { name: name.clone() }),
        Action::Custom { .. } => Ok(GrantKind::Exact { digest: request.digest }),
    }
}

/// The entries that remembering this command would put on its workspace's whitelist.
pub fn entries_to_remember(request: &Request, allow_safe: bool) -> Result<Vec<String>, GrantError> {
    Ok(command_entries(request, allow_safe)?.into_iter().map(|entry| entry.pattern).collect())
}

/// What the shell engine offers, if that would really cover the command next time.
fn command_entries(request: &Request, allow_safe: bool) -> Result<Vec<Entry>, GrantError> {
    let refused = |why: &str| GrantError::Command(why.to_owned());
    let assessment = request.assessment.as_ref().ok_or_else(|| refused("it was not assessed"))?;
    let patterns = match assessment.offer(allow_safe) {
        Offer::Entries { patterns, .. } => patterns,
        Offer::Refused(why) => return Err(GrantError::Command(why)),
    };
    let entries: Vec<Entry> = patterns.iter().filter_map(|pattern| Entry::parse(pattern)).collect();
    if assessment.covered_by(entries.iter(), allow_safe, request.binding()) {
        Ok(entries)
    } else {
        Err(refused("none covers it"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::tests::{custom, exec, question, request, tool};

    const NOW: Timestamp = Timestamp::from_millis(1_000_000);

    fn grant(choice: Choice, request: &Request) -> Result<Option<Grant>, GrantError> {
        let (grant, approval) = (GrantId::from_random([1; 16]), ApprovalId::from_random([2; 16]));
        Grant::from_answer(&Answer::plain(choice), request, grant, approval, NOW, "ann", true)
    }

    fn made(choice: Choice, request: &Request) -> Grant {
        grant(choice, request).unwrap().unwrap()
    }

    #[test]
    fn once_and_deny_make_none() {
        assert_eq!(grant(Choice::AllowOnce, &request(custom("a", "b"))), Ok(None));
        assert_eq!(grant(Choice::Deny, &request(custom("a", "b"))), Ok(None));
    }

    #[test]
    fn code_2_holds_for_the_session_and_code_6_for_the_client() {
        let asked = request(custom("http_request", "GET /a"));
        let later = request(custom("http_request", "GET /b"));
        let elsewhere = Request { session_id: "other".into(), ..later.clone() };
        let stranger = {
            let mut other = later.clone();
            other.requester.key_id = KeyId::from_random([9; 16]);
            other
        };
        let session = made(Choice::AllowActionTypeForSession, &asked);
        let always = made(Choice::AllowActionType, &asked);
        assert_eq!(session.expires_at, Some(NOW.plus_millis(MAX_SESSION_GRANT_MS)));
        assert_eq!(always.expires_at, None);
        assert!(session.covers(&later, NOW) && always.covers(&later, NOW) && always.covers(&elsewhere, NOW));
        assert!(!session.covers(&elsewhere, NOW));
        assert!(!session.covers(&stranger, NOW) && !always.covers(&stranger, NOW));
        assert!(!always.covers(&request(custom("write_file", "x")), NOW));
    }

    #[test]
    fn an_entry_for_a_custom_action_is_that_very_action_for_thirty_days() {
        let asked = request(custom("http_request", "GET /a"));
        let grant = made(Choice::AllowAlways, &asked);
        assert!(grant.covers(&asked, NOW));
        assert!(!grant.covers(&request(custom("http_request", "GET /b")), NOW));
        assert!(!grant.covers(&asked, NOW.plus_millis(DEFAULT_ENTRY_GRANT_MS)));
    }

    #[test]
    fn a_tool_is_granted_by_exact_name_even_by_its_type() {
        let asked = request(tool("Write", "edit"));
        let mut other = request(tool("Delete", "edit"));
        other.action_type = asked.action_type.clone();
        for choice in [Choice::AllowAlways, Choice::AllowActionType] {
            let grant = made(choice, &asked);
            assert!(grant.covers(&asked, NOW), "{choice:?}");
            assert!(!grant.covers(&other, NOW), "{choice:?}");
        }
    }

    #[test]
    fn an_entry_for_a_command_is_that_command_for_thirty_days() {
        let asked = request(exec("npm ci && git status && npm test"));
        let grant = made(Choice::AllowAlways, &asked);
        let GrantKind::Command { entries } = &grant.kind else { panic!("{:?}", grant.kind) };
        assert_eq!(entries.iter().map(|entry| entry.pattern.as_str()).collect::<Vec<_>>(), ["npm ci", "npm test"]);
        assert_eq!(grant.entries_for(&asked, NOW).len(), 2);
        assert!(grant.entries_for(&asked, NOW.plus_millis(DEFAULT_ENTRY_GRANT_MS)).is_empty());
        let session = made(Choice::AllowSession, &asked);
        let elsewhere = Request { session_id: "other".into(), ..asked.clone() };
        assert!(session.entries_for(&elsewhere, NOW).is_empty() && !grant.entries_for(&elsewhere, NOW).is_empty());
    }

    #[test]
    fn what_holds_for_a_session_ends_after_a_day_whatever_was_said() {
        let asked = request(exec("npm ci"));
        let (grant, approval) = (GrantId::from_random([1; 16]), ApprovalId::from_random([2; 16]));
        for choice in [Choice::AllowSession, Choice::AllowActionTypeForSession] {
            for said in [None, Some(MAX_SESSION_GRANT_MS * 30), Some(MAX_SESSION_GRANT_MS)] {
                let answer = Answer { terms: GrantTerms { expires_in_ms: said }, ..Answer::plain(choice) };
                let mut made = Grant::from_answer(&answer, &asked, grant, approval, NOW, "ann", true).unwrap().unwrap();
                assert_eq!(made.expires_at, Some(NOW.plus_millis(MAX_SESSION_GRANT_MS)), "{choice:?} {said:?}");
                // As it was stored before there was this limit.
                made.expires_at = None;
                assert!(made.is_active(NOW.plus_millis(MAX_SESSION_GRANT_MS - 1)));
                assert!(!made.is_active(NOW.plus_millis(MAX_SESSION_GRANT_MS)));
            }
            let answer = Answer { terms: GrantTerms { expires_in_ms: Some(60_000) }, ..Answer::plain(choice) };
            let made = Grant::from_answer(&answer, &asked, grant, approval, NOW, "ann", true).unwrap().unwrap();
            assert_eq!(made.expires_at, Some(NOW.plus_millis(60_000)));
        }
    }

    #[test]
    fn no_entry_is_made_for_what_could_run_anything() {
        for command in ["bash x.sh", "sudo npm ci", "rm -rf /", "python3 -c 'x'", "npm ci > log", "npm ci $X", "ls", ""]
        {
            for choice in [Choice::AllowAlways, Choice::AllowSession] {
                let refused = grant(choice, &request(exec(command)));
                assert!(matches!(refused, Err(GrantError::Command(_))), "{command}: {refused:?}");
            }
        }
    }

    #[test]
    fn a_yes_to_all_commands_is_none_to_dangerous_hidden_or_inline_ones() {
        let grant = made(Choice::AllowActionType, &request(exec("npm ci")));
        for command in ["npm test", "ls", "npm ci && make all"] {
            assert!(grant.covers(&request(exec(command)), NOW), "{command}");
        }
        for command in [
            "rm -rf /",
            "python3 -c 'import os'",
            "bash -c 'npm ci'",
            "npm ci > log",
            "npm ci &",
            "make $(cat x)",
            "npm 'ci",
            "",
            "npm ci\u{b}",
            "LD_PRELOAD=x npm ci",
        ] {
            assert!(!grant.covers(&request(exec(command)), NOW), "{command}");
        }
        let mut steered = request(exec("npm ci"));
        let Action::Exec(command) = &mut steered.action else { unreachable!() };
        command.env.insert("NODE_OPTIONS".into(), "--require /tmp/x".into());
        steered.assessment = steered.action.assess(None);
        assert!(!grant.covers(&steered, NOW));
    }

    #[test]
    fn questions_are_never_granted() {
        let asked = request(question());
        for choice in [Choice::AllowAlways, Choice::AllowSession, Choice::AllowActionType] {
            assert_eq!(grant(choice, &asked), Err(GrantError::Question));
        }
        let borrowed = Grant {
            kind: GrantKind::Exact { digest: asked.digest },
            ..made(Choice::AllowAlways, &request(custom("a", "b")))
        };
        assert!(!borrowed.covers(&asked, NOW));
    }

    #[test]
    fn a_grant_is_stored_under_a_subject_that_its_requests_name() {
        for (choice, asked) in [
            (Choice::AllowActionType, request(custom("a", "b"))),
            (Choice::AllowAlways, request(custom("a", "b"))),
            (Choice::AllowAlways, request(tool("Write", "edit"))),
            (Choice::AllowAlways, request(exec("npm ci"))),
            (Choice::AllowActionType, request(exec("npm ci"))),
        ] {
            assert!(Grant::subjects_of(&asked).contains(&made(choice, &asked).subject()));
        }
    }
}
