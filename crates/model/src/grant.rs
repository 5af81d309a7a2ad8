//! What outlives a decision: who may do what again without asking, for how long.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::action::{Action, ActionType};
use crate::canonical::Digest;
use crate::decision::{Answer, Choice};
use crate::id::{ApprovalId, ClientId, GrantId, KeyId};
use crate::request::Request;
use crate::time::Timestamp;

/// Entry grants end by themselves after 30 days.
pub const DEFAULT_ENTRY_GRANT_MS: u64 = 30 * 24 * 3600 * 1000;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    pub id: GrantId,
    pub kind: GrantKind,
    pub scope: Scope,
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
    /// Commands whose argv starts with these words, token by token.
    Prefix { argv: Vec<String> },
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
    #[error("no entry narrow enough is known for this command; answer with allow-once")]
    Command,
}

impl Grant {
    /// The grant this answer makes, if it makes one.
    pub fn from_answer(
        answer: &Answer,
        request: &Request,
        id: GrantId,
        approval_id: ApprovalId,
        now: Timestamp,
        by: &str,
    ) -> Result<Option<Self>, GrantError> {
        let (kind, for_session, default_ms) = match answer.choice {
            Choice::AllowOnce | Choice::Deny => return Ok(None),
            Choice::AllowActionTypeForSession => (action_type_kind(request)?, true, None),
            Choice::AllowActionType => (action_type_kind(request)?, false, None),
            Choice::AllowSession => (narrowest_entry(request)?, true, Some(DEFAULT_ENTRY_GRANT_MS)),
            Choice::AllowAlways => (narrowest_entry(request)?, false, Some(DEFAULT_ENTRY_GRANT_MS)),
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
            created_at: now,
            created_by: by.to_owned(),
            approval_id,
            expires_at: answer.terms.expires_in_ms.or(default_ms).map(|ms| now.plus_millis(ms)),
            revoked_at: None,
        }))
    }

    pub fn is_active(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|end| now < end)
    }

    pub fn is_action_type(&self) -> bool {
        matches!(self.kind, GrantKind::ActionType { .. })
    }

    /// Whether this grant speaks for all of that request.
    pub fn covers(&self, request: &Request, now: Timestamp) -> bool {
        self.is_active(now) && self.scope.includes(request) && self.kind.covers(request)
    }

    /// What the store finds candidates by: a grant can only cover requests that name its subject.
    pub fn subject(&self) -> String {
        match &self.kind {
            GrantKind::ActionType { action_type, .. } => format!("type:{action_type}"),
            GrantKind::Tool { name } => format!("tool:{name}"),
            GrantKind::Prefix { argv } => format!("program:{}", argv.first().map_or("", String::as_str)),
            GrantKind::Exact { digest } => format!("digest:{digest}"),
        }
    }

    /// The subjects under which grants for this request could be stored.
    pub fn subjects_of(request: &Request) -> Vec<String> {
        let mut subjects = vec![format!("type:{}", request.action_type), format!("digest:{}", request.digest)];
        match &request.action {
            Action::Tool { name, .. } => subjects.push(format!("tool:{name}")),
            Action::Exec(_) => {
                let commands = request.assessment.iter().flat_map(|assessment| &assessment.commands);
                subjects.extend(commands.filter_map(|argv| argv.first()).map(|program| format!("program:{program}")));
            }
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
            Action::Exec(_) => request.assessment.as_ref().is_some_and(|assessment| {
                assessment.may_be_covered()
                    && match self {
                        Self::ActionType { action_type, tool } => action_type.is_exec() && tool.is_none(),
                        Self::Prefix { argv } => assessment.commands.iter().all(|command| command.starts_with(argv)),
                        Self::Exact { digest } => *digest == request.digest,
                        Self::Tool { .. } => false,
                    }
            }),
            Action::Tool { name, .. } => match self {
                Self::ActionType { action_type, tool } => {
                    *action_type == request.action_type && tool.as_ref() == Some(name)
                }
                Self::Tool { name: granted } => granted == name,
                Self::Exact { digest } => *digest == request.digest,
                Self::Prefix { .. } => false,
            },
            Action::Custom { .. } => match self {
                Self::ActionType { action_type, tool } => *action_type == request.action_type && tool.is_none(),
                Self::Exact { digest } => *digest == request.digest,
                Self::Tool { .. } | Self::Prefix { .. } => false,
            },
        }
    }
}

fn action_type_kind(request: &Request) -> Result<GrantKind, GrantError> {
    let tool = match &request.action {
        Action::Question { .. } => return Err(GrantError::Question),
        Action::Tool { name, .. } => Some(name.clone()),
        Action::Exec(_) | Action::Custom { .. } => None,
    };
    Ok(GrantKind::ActionType { action_type: request.action_type.clone(), tool })
}

fn narrowest_entry(request: &Request) -> Result<GrantKind, GrantError> {
    match &request.action {
        Action::Question { .. } => Err(GrantError::Question),
        // Which words of a command an entry may leave open is the shell engine's to say.
        Action::Exec(_) => Err(GrantError::Command),
        Action::Tool { name, .. } => Ok(GrantKind::Tool { name: name.clone() }),
        Action::Custom { .. } => Ok(GrantKind::Exact { digest: request.digest }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::tests::{custom, exec, question, request, tool};
    use crate::risk::{Assessment, Risk};

    const NOW: Timestamp = Timestamp::from_millis(1_000_000);

    fn grant(choice: Choice, request: &Request) -> Result<Option<Grant>, GrantError> {
        let (grant, approval) = (GrantId::from_random([1; 16]), ApprovalId::from_random([2; 16]));
        Grant::from_answer(&Answer::plain(choice), request, grant, approval, NOW, "ann")
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
        assert_eq!((session.expires_at, always.expires_at), (None, None));
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
    fn a_command_nobody_examined_is_covered_by_nothing() {
        let asked = request(exec("ls"));
        assert_eq!(grant(Choice::AllowAlways, &asked), Err(GrantError::Command));
        assert_eq!(grant(Choice::AllowSession, &asked), Err(GrantError::Command));
        for choice in [Choice::AllowActionType, Choice::AllowActionTypeForSession] {
            assert!(!made(choice, &asked).covers(&asked, NOW));
        }
    }

    #[test]
    fn a_prefix_matches_whole_words_of_every_command() {
        let mut asked = request(exec("cargo build; cargo test"));
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let assess = |commands: &[&str], risk, coverable| {
            Some(Assessment { risk, reasons: vec![], commands: commands.iter().map(|c| words(c)).collect(), coverable })
        };
        let grant = Grant { kind: GrantKind::Prefix { argv: words("cargo") }, ..made(Choice::AllowActionType, &asked) };
        asked.assessment = assess(&["cargo build", "cargo test"], Risk::NeedsReview, true);
        assert!(grant.covers(&asked, NOW));
        for (commands, risk, coverable) in [
            (vec!["cargo build", "rm x"], Risk::NeedsReview, true),
            (vec!["cargofoo"], Risk::NeedsReview, true),
            (vec!["cargo build"], Risk::Dangerous, true),
            (vec!["cargo build"], Risk::NeedsReview, false),
            (vec![], Risk::NeedsReview, true),
        ] {
            asked.assessment = assess(&commands, risk, coverable);
            assert!(!grant.covers(&asked, NOW), "{commands:?}");
        }
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
        ] {
            assert!(Grant::subjects_of(&asked).contains(&made(choice, &asked).subject()));
        }
    }
}
