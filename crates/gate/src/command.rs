//! What can be written, and what comes of it.

use std::sync::Arc;

use countersign_model::{
    Answer, AnswerError, Approval, ApprovalId, Consumption, Digest, GrantError, GrantId, KeyId, KeyRecord, Policy,
    Reason, Request, RunEnd, SUMMARY_ABOVE, StoredPolicy, Timestamp,
};
use thiserror::Error;

/// One write. The ledger applies as many as are waiting in one transaction.
#[derive(Clone, Debug)]
pub enum Command {
    Create(Box<NewApproval>),
    Decide(Box<NewDecision>),
    /// Whoever asked no longer wants it, or is gone.
    Withdraw {
        id: ApprovalId,
        client: KeyId,
        why: Withdrawal,
    },
    Consume {
        id: ApprovalId,
        client: KeyId,
    },
    /// A door without a verb for using a permit answers the requester: a yes is used up as it is told.
    Tell {
        id: ApprovalId,
        client: KeyId,
    },
    /// Somebody wants the run under it ended.
    Stop {
        id: ApprovalId,
        by: String,
    },
    Ran {
        id: ApprovalId,
        client: KeyId,
        run: RunEnd,
    },
    ExpireDue {
        limit: usize,
    },
    /// A session of this client is over, and what was allowed for it is too.
    EndSession {
        client: KeyId,
        session: String,
        by: String,
    },
    RevokeGrant {
        id: GrantId,
        by: String,
    },
    PutPolicy {
        profile: String,
        policy: Box<Policy>,
        base_hash: Digest,
        /// Grants that a new document leaves out: they end with the old one, or neither does.
        revoke: Vec<GrantId>,
        by: String,
    },
    CreateKey {
        key: Box<KeyRecord>,
        by: String,
    },
    RevokeKey {
        id: KeyId,
        by: String,
    },
    /// A node's key is for this machine, from its first use on.
    BindNode {
        key: KeyId,
        node_id: String,
    },
    /// A person trusts this text of a workspace's file.
    Trust {
        workspace: String,
        text: String,
        by: String,
    },
    Untrust {
        workspace: String,
        by: String,
    },
    PutCursor {
        name: String,
        seq: u64,
    },
    Sweep {
        before: Timestamp,
        limit: usize,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Withdrawal {
    Cancelled,
    AgentClosed,
}

#[derive(Clone, Debug)]
pub struct NewApproval {
    pub id: ApprovalId,
    pub request: Arc<Request>,
    /// How long the requester wants it open.
    pub expires_in_ms: Option<u64>,
    /// How long it is open when neither requester nor policy says.
    pub default_ms: u64,
    pub idempotency: Option<Idempotency>,
    pub max_pending: u64,
    pub weight: Weight,
    /// Whether the permit is taken in the same breath, where policy says yes without asking.
    pub take: Take,
    pub reach: Reach,
}

/// What a request weighs while it is pending, and how much may be.
#[derive(Clone, Debug)]
pub struct Weight {
    /// The request as it is stored, written before it waits for the one thread that stores.
    pub text: String,
    /// Of its text, beyond what every request may have; see [`Weight::FREE`].
    pub bytes: u64,
    /// What lists show in place of a large one.
    pub summary: Option<Arc<Request>>,
    pub max_of_client: u64,
    pub max_of_all: u64,
}

impl Weight {
    /// So much of each request is not counted: small ones are limited by their number.
    pub const FREE: u64 = 32 * 1024;

    pub fn of(request: &Request, max_of_client: u64, max_of_all: u64) -> Result<Self, serde_json::Error> {
        let text = serde_json::to_string(request)?;
        let bytes = text.len() as u64;
        let summary = (bytes > SUMMARY_ABOVE).then(|| Arc::new(request.summary()));
        Ok(Self { text, bytes: bytes.saturating_sub(Self::FREE), summary, max_of_client, max_of_all })
    }

    /// Of a request that may be as large as it likes.
    pub fn unlimited(request: &Request) -> Result<Self, serde_json::Error> {
        Self::of(request, u64::MAX, u64::MAX)
    }
}

/// What becomes of the permit of a yes that policy gives at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Take {
    /// It stays to be used.
    #[default]
    No,
    /// The requester uses it now.
    Consume,
    /// The door uses it by telling the requester.
    Tell,
}

/// What a requester is told.
#[derive(Clone, Debug)]
pub struct Told {
    pub approval: Arc<Approval>,
    /// Why a yes is none for this requester any more; then it is told no.
    pub unusable: Option<Reason>,
}

/// Whom a question would reach by the way it names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    Everybody,
    /// People of these names are there now, and nobody else.
    Only(Vec<String>),
}

impl Reach {
    /// Whether one of those who may answer is there: anybody may, or these.
    pub(crate) fn includes_any(&self, approvers: Option<&Vec<String>>) -> bool {
        match (self, approvers) {
            // An empty list is nobody, never everybody.
            (Self::Everybody, Some(approvers)) => !approvers.is_empty(),
            (Self::Everybody, None) => true,
            (Self::Only(there), Some(approvers)) => there.iter().any(|name| approvers.contains(name)),
            (Self::Only(there), None) => !there.is_empty(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Idempotency {
    pub key: String,
    /// Of the body it came with.
    pub body: Digest,
}

#[derive(Clone, Debug)]
pub struct NewDecision {
    pub id: ApprovalId,
    pub answer: Answer,
    /// The approver's own name.
    pub by: String,
    pub via: String,
    /// For the grant the answer may make.
    pub grant_id: GrantId,
    /// What an override of a command makes of the request, assessed.
    pub replaced: Option<Box<Request>>,
    /// The key of the engine whose own host answers: then policy has to allow that.
    pub host: Option<KeyId>,
    /// The approver's key; none where another gate's people answer.
    pub key: Option<KeyId>,
}

#[derive(Clone, Debug)]
pub enum Done {
    /// `fresh` is false when the same request had been made before.
    Created {
        approval: Arc<Approval>,
        fresh: bool,
    },
    Changed(Arc<Approval>),
    Told(Told),
    Expired {
        count: usize,
    },
    Policy(Arc<StoredPolicy>),
    Swept(u64),
    /// So many grants ended with their session.
    SessionEnded(u64),
    Nothing,
}

/// Why a write was refused. Nothing changed, but that an overdue approval may have been expired.
#[derive(Clone, Debug, Error)]
pub enum Refused {
    #[error("there is no such approval")]
    NotFound,
    #[error("there is no such grant, or it was revoked")]
    NoSuchGrant,
    #[error("there is no such key, or it was revoked")]
    NoSuchKey,
    #[error("more than one request went by `{0}` before names were kept apart; answer by its `approvalId`")]
    Ambiguous(String),
    #[error("this is only a part of an approval id; send the whole id that was shown, `appr_` and 32 hex digits")]
    PartOfAnId,
    #[error("approval id already pending")]
    AliasPending,
    #[error("approval id already used")]
    AliasUsed,
    #[error("this key is another machine's; make one for this machine with `countersign keys create --role node`")]
    OtherNode,
    #[error("this workspace is not trusted")]
    NoSuchTrust,
    #[error("this is the key you are using; revoke it with another admin's, so that one always works")]
    OwnKey,
    #[error("already {}", .0.status().as_str())]
    Finished(Arc<Approval>),
    #[error("`{0}` is not among the approvers of this request")]
    NotAnApprover(String),
    #[error(
        "that is not its number; nothing is decided. Look at its card again (`countersign show` has it too): after one more wrong one this key can only deny it"
    )]
    WrongNumber,
    #[error("two wrong numbers: this key cannot allow this request any more; deny it, or allow it with another key")]
    NumberLocked,
    #[error("policy does not let this host answer for its engine; a person has to, or an admin sets `hostMayDecide`")]
    HostMayNotDecide,
    #[error(transparent)]
    Answer(#[from] AnswerError),
    #[error(transparent)]
    Grant(#[from] GrantError),
    #[error("the override is refused by policy ({}); nothing was decided", .0.as_str())]
    OverrideDenied(Reason),
    #[error("the override cannot be shown or run: {0}")]
    OverrideUnfit(String),
    #[error("the override is {} and what was asked is not; look at it, and send its digest as `confirm` if you mean it", .0.risk().as_str())]
    ConfirmRequired(Box<Request>),
    #[error(transparent)]
    Consumption(#[from] Consumption),
    #[error("nothing runs under this approval, or how it ended is known already")]
    NotRunning,
    #[error("policy or the grant it rests on changed since; ask again")]
    ChangedSinceApproval,
    #[error("this idempotency key was used with another body; use a new key")]
    IdempotencyConflict,
    #[error("{0} requests of this client are pending, the most allowed; wait for answers or cancel some")]
    TooManyPending(u64),
    #[error(
        "pending requests of {whose} take {bytes} bytes, and with this one more than the {most} allowed; wait for answers, cancel some or send less"
    )]
    TooManyBytes { whose: &'static str, bytes: u64, most: u64 },
    #[error("the policy changed meanwhile; its hash is now {0}")]
    StalePolicy(Digest),
}
