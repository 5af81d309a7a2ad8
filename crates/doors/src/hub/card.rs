//! What a device is told of an approval: only what the one renderer would show a person.

use countersign_model::{Action, Approval, Assessment, ChannelChoice, Showing, showing};
use serde::Serialize;

use crate::words::{DENY, decision_word};

/// A question to people, as `exec-approval-request` and `listExecApprovals` have it.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Card {
    approval_id: String,
    /// What the agent calls itself, else the session it asked from.
    agent_id: String,
    /// As shown: secrets masked, invisible characters visible. Of anything but a command, its headline.
    command: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    cwd: Option<String>,
    risk_level: &'static str,
    risk_reasons: Vec<String>,
    expires_at_ms: i64,
    /// `exec`, `tool`, `question` or `custom`.
    kind: &'static str,
    /// Whose key asked.
    requested_by: String,
    /// The agent's own words, marked as such.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_says: Option<String>,
    /// The rest of what a person should see: of a command what is beside it, of anything else all of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    details: Vec<Detail>,
}

#[derive(Debug, PartialEq, Serialize)]
struct Detail {
    label: String,
    text: String,
}

impl Card {
    pub(super) fn of(approval: &Approval) -> Self {
        let request = &approval.request;
        let Showing { headline, sentence: _, sections, agent_says, notices } =
            showing(&request.action, request.assessment.as_ref(), &request.words);
        let kind = kind_of(&request.action);
        let (mut command, mut cwd, mut details) = (headline, None, Vec::new());
        for section in sections {
            let text = section.content.text;
            match (kind, section.label.as_str()) {
                ("exec", "Command") => command = text,
                ("exec", "Folder") => cwd = Some(text),
                _ => details.push(Detail { label: section.label, text }),
            }
        }
        let mut risk_reasons: Vec<String> = request.assessment.as_ref().map(Assessment::said).unwrap_or_default();
        // What a person should know before answering is in the one list that every client shows.
        for notice in notices {
            if !risk_reasons.contains(&notice.text) {
                risk_reasons.push(notice.text);
            }
        }
        Self {
            approval_id: approval.id.to_string(),
            agent_id: request.words.agent_id.clone().unwrap_or_else(|| request.session_id.clone()),
            command,
            cwd,
            risk_level: request.risk().as_str(),
            risk_reasons,
            expires_at_ms: approval.terms.expires_at.as_millis(),
            kind,
            requested_by: request.requester.name.clone(),
            agent_says: agent_says.map(|said| said.text),
            details,
        }
    }
}

fn kind_of(action: &Action) -> &'static str {
    match action {
        Action::Exec(_) => "exec",
        Action::Tool { .. } => "tool",
        Action::Question { .. } => "question",
        Action::Custom { .. } => "custom",
    }
}

/// How it ended, so that a card decided elsewhere can close.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Ending {
    pub(super) approval_id: String,
    pub(super) decision: &'static str,
    /// Who answered; nobody did where time ran out.
    pub(super) resolved_by: Option<String>,
    pub(super) reason: &'static str,
}

impl Ending {
    /// Nothing while it is pending.
    pub(super) fn of(approval: &Approval) -> Option<Self> {
        let outcome = approval.outcome.as_ref()?;
        Some(Self {
            approval_id: approval.id.to_string(),
            // That nobody answered is a no to whoever asked.
            decision: decision_word(approval).unwrap_or(DENY),
            resolved_by: outcome.decision.as_ref().map(|decision| decision.by.clone()),
            reason: outcome.reason.as_str(),
        })
    }
}

/// Whether this person hears of it on the hub: it is for the hub, and theirs to answer.
pub(super) fn is_for(approval: &Approval, name: &str) -> bool {
    let by_this_way = match approval.request.channel {
        ChannelChoice::Any | ChannelChoice::Hub => true,
        ChannelChoice::Web | ChannelChoice::Telegram | ChannelChoice::Email => false,
    };
    by_this_way && approval.terms.approvers.as_ref().is_none_or(|names| names.iter().any(|known| known == name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use countersign_model::{
        ActionType, AgentWords, ApprovalId, ApprovalTerms, Change, ClientId, Door, Exec, Fallback, KeyId, Request,
        Requester, Target, TermsAsked, Timestamp, sha256,
    };
    use std::sync::Arc;

    fn asked(command: &str, channel: ChannelChoice, approvers: Option<&[&str]>) -> Approval {
        let requester = Requester {
            key_id: KeyId::from_random([1; 16]),
            client_id: ClientId::new("c"),
            name: "bot".into(),
            profile: "default".into(),
            door: Door::Hub,
        };
        let exec = Exec { command: command.into(), argv: None, cwd: None, env: Default::default(), binding: None };
        let request = Request::new(
            requester,
            "s1".into(),
            None,
            None,
            Action::Exec(exec),
            ActionType::exec(),
            AgentWords::default(),
            channel,
            Target::default(),
            TermsAsked::default(),
            None,
            &countersign_model::CommandTypes::default(),
        );
        Approval {
            id: ApprovalId::from_random([2; 16]),
            request: Arc::new(request.unwrap()),
            terms: ApprovalTerms {
                created_at: Timestamp::from_millis(0),
                expires_at: Timestamp::from_millis(60_000),
                policy_hash: sha256(b""),
                fallback: Fallback::Deny,
                allow_safe: true,
                trusted: false,
                approvers: approvers.map(|names| names.iter().map(|name| (*name).to_owned()).collect()),
                prior: None,
            },
            outcome: None,
            consumed_at: None,
            told: false,
            run: None,
        }
    }

    #[test]
    fn a_card_is_for_those_who_may_answer_it_here() {
        for (channel, approvers, is_anns) in [
            (ChannelChoice::Any, None, true),
            (ChannelChoice::Hub, None, true),
            (ChannelChoice::Web, None, false),
            (ChannelChoice::Telegram, None, false),
            (ChannelChoice::Email, None, false),
            (ChannelChoice::Hub, Some(&["ann"][..]), true),
            (ChannelChoice::Hub, Some(&["bob"][..]), false),
            (ChannelChoice::Any, Some(&[][..]), false),
        ] {
            assert_eq!(is_for(&asked("rm x", channel, approvers), "ann"), is_anns, "{channel} {approvers:?}");
        }
    }

    #[test]
    fn a_card_has_the_session_where_the_agent_gave_no_name_and_no_folder_where_there_is_none() {
        let card = serde_json::to_value(Card::of(&asked("rm -rf /srv", ChannelChoice::Any, None))).unwrap();
        assert_eq!((&card["agentId"], &card["command"], card.get("cwd")), (&"s1".into(), &"rm -rf /srv".into(), None));
        assert_eq!((&card["riskLevel"], &card["expiresAtMs"]), (&"dangerous".into(), &60_000.into()));
    }

    #[test]
    fn what_nobody_answered_names_nobody_and_is_a_no() {
        let pending = asked("rm x", ChannelChoice::Any, None);
        assert_eq!(Ending::of(&pending), None);
        let change = Change::Expire { at: Timestamp::from_millis(60_000), fallback_allows: true };
        let ending = Ending::of(&pending.apply(change).unwrap()).unwrap();
        assert_eq!((ending.decision, ending.resolved_by, ending.reason), ("deny", None, "expired"));
    }
}
