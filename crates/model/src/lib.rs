//! The words of the product, as types: what an agent wants to do (`Action`), what policy says of it
//! (`Ruling`), the durable record of a question to a person (`Approval`), the answer (`Decision`) and what
//! outlives it (`Grant`).
//!
//! Pure: no I/O, no clock, no randomness, no async. Time and random bytes are arguments.
#![forbid(unsafe_code)]

mod action;
mod approval;
mod binding;
mod canonical;
mod command_type;
mod decision;
mod engine;
mod event;
mod grant;
mod grant_place;
mod hindsight;
mod id;
mod judge;
mod key;
mod mask;
mod menu;
mod ordered;
mod policy;
mod render;
mod request;
mod risk;
mod ruling;
mod summary;
mod terminal;
mod time;

pub use countersign_shell::{Effect, Entry, Offer, Rules};

pub use action::{Action, ActionError, ActionKind, ActionType, Exec, MAX_ACTION_BYTES, MAX_COMMAND_BYTES};
pub use approval::{
    Approval, Change, Consumption, NUMBER_TRIES, Outcome, PERMIT_TTL_MS, Prior, Reason, Refusal, RunEnd, Status,
    Terms as ApprovalTerms,
};
pub use binding::{Binding, BoundFile, BoundProgram};
pub use canonical::{Digest, canonical_bytes, hex, sha256, unhex};
pub use command_type::CommandTypes;
pub use decision::{Answer, AnswerError, Choice, Decision};
pub use engine::{EngineTerms, host_may_decide, max_mode};
pub use event::{ChainError, Event, EventBody, EventKind, GENESIS, verify_link};
pub use grant::{
    DEFAULT_ENTRY_GRANT_MS, Grant, GrantError, GrantKind, GrantTerms, MAX_SESSION_GRANT_MS, Scope, entries_to_remember,
};
pub use grant_place::GrantPlace;
pub use hindsight::Hindsight;
pub use id::{ApprovalId, ClientId, GrantId, IdError, KeyId};
pub use judge::{Judgement, entries_used, fallback_covers, judge};
pub use key::{KeyHash, KeyRecord, KeySecret, Role};
pub use mask::{Masked, Redaction, SecretKind, mask};
pub use menu::{Code, MenuError};
pub use policy::{
    AllowEntry, DenyEntry, Flood, Overlay, Policy, PolicyError, SocketEntry, StoredPolicy, ToolEffect, ToolRule,
};
pub use render::{
    AgentWords, AnswerWords, Fold, Mark, MarkKind, Notice, Section, Showing, Shown, answers, escape_line, showing,
};
pub use request::{ChannelChoice, Door, Request, RequestError, Requester, Target, TermsAsked};
pub use risk::{Assessment, Risk, RiskReason};
pub use ruling::{AllowBy, Ask, DenyWhy, Facts, Fallback, Mode, Ruling, Security, Terms, rule};
pub use summary::SUMMARY_ABOVE;
pub use terminal::{
    COMMAND_SECS, CONFIRMATION_SECS, MAX_TERMINAL_FILE, Problem as TerminalProblem, TerminalFile, TerminalInput,
    TerminalTerms, Trust, with_whitelisted,
};
pub use time::Timestamp;
