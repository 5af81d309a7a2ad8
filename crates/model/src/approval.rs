//! The durable record of one request, and the one function that changes it.

use std::sync::Arc;

use countersign_shell::Offer;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::canonical::Digest;
use crate::decision::Decision;
use crate::grant_place::GrantPlace;
use crate::id::{ApprovalId, GrantId};
use crate::menu::Code;
use crate::request::Request;
use crate::ruling::{AllowBy, DenyWhy, Fallback};
use crate::time::Timestamp;

/// A yes is good for starting within this time, no longer: the world moves on.
pub const PERMIT_TTL_MS: u64 = 120_000;

/// So many wrong numbers, and the key that sent them cannot allow this request any more.
pub const NUMBER_TRIES: u32 = 2;

const NUMBER_DOMAIN: &[u8] = b"countersign number\n";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Pending,
    Approved,
    Denied,
    Expired,
    Cancelled,
}

impl Status {
    pub const ALL: [Self; 5] = [Self::Pending, Self::Approved, Self::Denied, Self::Expired, Self::Cancelled];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Approved => "approved",
            Self::Denied => "denied",
            Self::Expired => "expired",
            Self::Cancelled => "cancelled",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }
}

/// Why an approval ended as it did. The same words on every wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    Person,
    /// Policy allowed it; `rule` says by which row.
    Policy,
    Rule,
    Security,
    NotAllowlisted,
    PolicyUnreadable,
    Flooding,
    Expired,
    Fallback,
    Cancelled,
    AgentClosed,
    NoChannel,
    ChangedSinceApproval,
    /// Told to a requester whose yes was used up by another way.
    AlreadyUsed,
    /// Told to a requester that came for its yes too late.
    PermitExpired,
}

impl Reason {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Person => "person",
            Self::Policy => "policy",
            Self::Rule => "rule",
            Self::Security => "security",
            Self::NotAllowlisted => "not_allowlisted",
            Self::PolicyUnreadable => "policy_unreadable",
            Self::Flooding => "flooding",
            Self::Expired => "expired",
            Self::Fallback => "fallback",
            Self::Cancelled => "cancelled",
            Self::AgentClosed => "agent_closed",
            Self::NoChannel => "no_channel",
            Self::ChangedSinceApproval => "changed_since_approval",
            Self::AlreadyUsed => "already_used",
            Self::PermitExpired => "permit_expired",
        }
    }
}

impl From<DenyWhy> for Reason {
    fn from(why: DenyWhy) -> Self {
        match why {
            DenyWhy::Rule => Self::Rule,
            DenyWhy::Security => Self::Security,
            DenyWhy::NotAllowlisted => Self::NotAllowlisted,
            DenyWhy::PolicyUnreadable => Self::PolicyUnreadable,
            DenyWhy::Flooding => Self::Flooding,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Approval {
    pub id: ApprovalId,
    /// Never changes after it is made; shared with whoever shows it.
    pub request: Arc<Request>,
    pub terms: Terms,
    /// `None` while pending.
    pub outcome: Option<Outcome>,
    pub consumed_at: Option<Timestamp>,
    /// The permit was used by telling the requester: a door without a verb for using it did so. Telling again uses
    /// nothing.
    pub told: bool,
    /// How it went, where a runner of ours ran it.
    pub run: Option<RunEnd>,
}

/// How an approved command ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunEnd {
    /// Its exit code; none where a signal ended it or it never started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub timed_out: bool,
    /// Somebody ended it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stopped: bool,
    /// What was no longer as approved: before the start, and then it did not run; or after it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
}

/// What was settled when the question was put.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terms {
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
    pub policy_hash: Digest,
    pub fallback: Fallback,
    /// Whether policy let safe commands run without an entry then: an entry offered now is made for the rest.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_safe: bool,
    /// Whether the workspace's file was trusted then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub trusted: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approvers: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prior: Option<Prior>,
}

/// The same effect was asked for before and not allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prior {
    pub approval_id: ApprovalId,
    pub status: Status,
    pub at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    pub status: Status,
    pub reason: Reason,
    pub at: Timestamp,
    /// `None` where nobody and no rule answered: expired, cancelled.
    pub decision: Option<Decision>,
    /// Which row of the ruling allowed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_by: Option<AllowBy>,
    /// The grant an automatic yes rests on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<GrantId>,
}

/// Everything that can happen to an approval after it was put.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    Decide(Decision),
    /// The deadline passed; `fallback_allows` is what policy says of running it unanswered.
    Expire {
        at: Timestamp,
        fallback_allows: bool,
    },
    Cancel {
        at: Timestamp,
    },
    AgentClosed {
        at: Timestamp,
    },
}

/// Why a change was refused. Nothing changed.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum Refusal {
    #[error("already {}", .0.status.as_str())]
    Finished(Box<Outcome>),
    #[error("the time to answer is over")]
    Overdue,
    #[error("not due before {0}")]
    NotDue(Timestamp),
    #[error("`{0}` is not among the approvers of this request")]
    NotAnApprover(String),
}

/// What taking the permit of an approved action came to.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum Consumption {
    #[error("nothing to use: the request is {}", .0.as_str())]
    NotApproved(Status),
    #[error("already used at {0}")]
    AlreadyUsed(Timestamp),
    #[error("the approval was not used within {} seconds; ask again", PERMIT_TTL_MS / 1000)]
    Stale,
}

impl Approval {
    /// What an allow for longer than this once would stand for: entries for a command, or why there can be none.
    /// In words: where an entry that is made for it would hold.
    pub fn offer_holds(&self) -> Option<String> {
        GrantPlace::of(&self.request).map(|place| place.words())
    }

    pub fn offer(&self) -> Option<Offer> {
        self.request.assessment.as_ref().map(|assessment| assessment.offer(self.terms.allow_safe))
    }

    /// Three digits that a person types to allow something dangerous: a second act, unlike the first, that cannot be
    /// done without having looked at the card. No secret, and the same wherever the request is shown.
    pub fn number(&self) -> String {
        let hash = Digest::of_parts(&[NUMBER_DOMAIN, self.id.as_bytes(), self.request.digest.as_bytes()]);
        let start = hash.as_bytes().iter().take(8).fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
        format!("{:03}", start % 1000)
    }

    pub fn status(&self) -> Status {
        self.outcome.as_ref().map_or(Status::Pending, |outcome| outcome.status)
    }

    pub fn is_overdue(&self, now: Timestamp) -> bool {
        self.outcome.is_none() && now >= self.terms.expires_at
    }

    /// The state after the change. The only way a state comes about.
    pub fn apply(&self, change: Change) -> Result<Self, Refusal> {
        if let Some(outcome) = &self.outcome {
            return Err(Refusal::Finished(Box::new(outcome.clone())));
        }
        let outcome = match change {
            Change::Decide(decision) => self.decided(decision)?,
            Change::Expire { at, fallback_allows } => self.expired(at, fallback_allows)?,
            Change::Cancel { at } => ended(Status::Cancelled, Reason::Cancelled, at, None),
            Change::AgentClosed { at } => {
                ended(Status::Denied, Reason::AgentClosed, at, Some(by_policy(Code::Deny, at, "gate")))
            }
        };
        Ok(Self { outcome: Some(outcome), ..self.clone() })
    }

    fn decided(&self, decision: Decision) -> Result<Outcome, Refusal> {
        if self.is_overdue(decision.at) {
            return Err(Refusal::Overdue);
        }
        let may = self.terms.approvers.as_ref().is_none_or(|names| names.contains(&decision.by));
        if !may {
            return Err(Refusal::NotAnApprover(decision.by));
        }
        let status = match decision.code {
            Code::Deny => Status::Denied,
            Code::AllowOnce
            | Code::AllowForSession
            | Code::AllowWithNote
            | Code::AllowModified
            | Code::AllowActionType => Status::Approved,
        };
        Ok(ended(status, Reason::Person, decision.at, Some(decision)))
    }

    fn expired(&self, at: Timestamp, fallback_allows: bool) -> Result<Outcome, Refusal> {
        if !self.is_overdue(at) {
            return Err(Refusal::NotDue(self.terms.expires_at));
        }
        if fallback_allows && self.terms.fallback != Fallback::Deny {
            return Ok(ended(Status::Approved, Reason::Fallback, at, Some(by_policy(Code::AllowOnce, at, "fallback"))));
        }
        Ok(ended(Status::Expired, Reason::Expired, at, None))
    }

    /// Takes the permit: once, and only while it is fresh. `told`: by telling the requester.
    pub fn consume(&self, now: Timestamp, told: bool) -> Result<Self, Consumption> {
        let Some(outcome) = self.outcome.as_ref().filter(|outcome| outcome.status == Status::Approved) else {
            return Err(Consumption::NotApproved(self.status()));
        };
        if let Some(at) = self.consumed_at {
            return Err(Consumption::AlreadyUsed(at));
        }
        if now >= outcome.at.plus_millis(PERMIT_TTL_MS) {
            return Err(Consumption::Stale);
        }
        Ok(Self { consumed_at: Some(now), told, ..self.clone() })
    }

    /// Says how the run of a used permit ended: once.
    pub fn ran(&self, end: RunEnd) -> Option<Self> {
        (self.consumed_at.is_some() && self.run.is_none()).then(|| Self { run: Some(end), ..self.clone() })
    }
}

impl Outcome {
    /// Policy's yes.
    pub fn allowed(by: AllowBy, code: Code, grant: Option<GrantId>, at: Timestamp) -> Self {
        let decision = by_policy(code, at, "policy");
        Self { allowed_by: Some(by), grant, ..ended(Status::Approved, Reason::Policy, at, Some(decision)) }
    }

    /// Policy's no.
    pub fn denied(reason: Reason, at: Timestamp) -> Self {
        ended(Status::Denied, reason, at, Some(by_policy(Code::Deny, at, "policy")))
    }

    /// Ruled without asking anyone.
    pub fn is_automatic(&self) -> bool {
        self.reason != Reason::Person && self.decision.as_ref().is_some_and(|decision| decision.via == "policy")
    }
}

fn ended(status: Status, reason: Reason, at: Timestamp, decision: Option<Decision>) -> Outcome {
    Outcome { status, reason, at, decision, allowed_by: None, grant: None }
}

fn by_policy(code: Code, at: Timestamp, via: &str) -> Decision {
    Decision {
        code,
        note: None,
        replacement: None,
        answer: None,
        by: "policy".to_owned(),
        at,
        via: via.to_owned(),
        grant_id: None,
        remembered: Vec::new(),
        override_digest: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canonical::sha256;
    use crate::request::tests::{custom, request};

    const START: Timestamp = Timestamp::from_millis(1_000);
    const END: Timestamp = Timestamp::from_millis(61_000);

    fn pending() -> Approval {
        Approval {
            id: ApprovalId::from_random([1; 16]),
            request: Arc::new(request(custom("a", "b"))),
            terms: Terms {
                created_at: START,
                expires_at: END,
                policy_hash: sha256(b""),
                allow_safe: true,
                trusted: false,
                fallback: Fallback::Deny,
                approvers: None,
                prior: None,
            },
            outcome: None,
            consumed_at: None,
            told: false,
            run: None,
        }
    }

    fn decision(code: Code, at: Timestamp) -> Decision {
        Decision { by: "ann".into(), via: "http".into(), ..by_policy(code, at, "") }
    }

    #[test]
    fn a_person_ends_it_either_way() {
        let approved = pending().apply(Change::Decide(decision(Code::AllowWithNote, START))).unwrap();
        assert_eq!((approved.status(), approved.outcome.unwrap().reason), (Status::Approved, Reason::Person));
        let denied = pending().apply(Change::Decide(decision(Code::Deny, START))).unwrap();
        assert_eq!(denied.status(), Status::Denied);
    }

    #[test]
    fn what_has_ended_never_changes_again() {
        let ended = pending().apply(Change::Cancel { at: START }).unwrap();
        for change in [
            Change::Decide(decision(Code::AllowOnce, START)),
            Change::Expire { at: END, fallback_allows: true },
            Change::Cancel { at: START },
            Change::AgentClosed { at: START },
        ] {
            let Err(Refusal::Finished(outcome)) = ended.apply(change) else { panic!() };
            assert_eq!(Some(*outcome), ended.outcome);
        }
    }

    #[test]
    fn an_answer_at_the_deadline_is_too_late() {
        let last = Timestamp::from_millis(END.as_millis() - 1);
        assert!(pending().apply(Change::Decide(decision(Code::AllowOnce, last))).is_ok());
        assert_eq!(pending().apply(Change::Decide(decision(Code::AllowOnce, END))), Err(Refusal::Overdue));
    }

    #[test]
    fn expiry_names_nobody_and_needs_a_lenient_fallback_to_allow() {
        let expired = pending().apply(Change::Expire { at: END, fallback_allows: true }).unwrap();
        assert_eq!((expired.status(), expired.outcome.unwrap().decision), (Status::Expired, None));
        let mut lenient = pending();
        lenient.terms.fallback = Fallback::Full;
        let refused = lenient.apply(Change::Expire { at: END, fallback_allows: false }).unwrap();
        assert_eq!(refused.status(), Status::Expired);
        let allowed = lenient.apply(Change::Expire { at: END, fallback_allows: true }).unwrap().outcome.unwrap();
        let decision = allowed.decision.unwrap();
        assert_eq!((allowed.status, allowed.reason), (Status::Approved, Reason::Fallback));
        assert_eq!((decision.by.as_str(), decision.grant_id), ("policy", None));
        assert_eq!(pending().apply(Change::Expire { at: START, fallback_allows: true }), Err(Refusal::NotDue(END)));
    }

    #[test]
    fn threat_42_an_empty_list_of_approvers_approves_nothing() {
        for (approvers, ok) in [
            (None, true),
            (Some(vec!["ann".to_owned()]), true),
            (Some(vec![]), false),
            (Some(vec!["bob".to_owned()]), false),
        ] {
            let mut asked = pending();
            asked.terms.approvers = approvers.clone();
            let answered = asked.apply(Change::Decide(decision(Code::AllowOnce, START)));
            assert_eq!(answered.is_ok(), ok, "{approvers:?}");
        }
    }

    #[test]
    fn threat_18_a_permit_is_used_once() {
        let approved = pending().apply(Change::Decide(decision(Code::AllowOnce, START))).unwrap();
        let used = approved.consume(START, false).unwrap();
        assert_eq!(used.consume(START, false), Err(Consumption::AlreadyUsed(START)));
        assert_eq!(used.consume(START, true), Err(Consumption::AlreadyUsed(START)));
        assert_eq!(pending().consume(START, false), Err(Consumption::NotApproved(Status::Pending)));
    }

    #[test]
    fn threat_21_a_permit_goes_stale() {
        let approved = pending().apply(Change::Decide(decision(Code::AllowOnce, START))).unwrap();
        let last = Timestamp::from_millis(START.plus_millis(PERMIT_TTL_MS).as_millis() - 1);
        assert!(approved.consume(last, false).is_ok());
        assert_eq!(approved.consume(START.plus_millis(PERMIT_TTL_MS), false), Err(Consumption::Stale));
    }
}
