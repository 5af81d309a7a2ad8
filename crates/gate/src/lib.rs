//! The gate: every door calls `request` and `decide` here, every channel follows the feed from here.
//!
//! The service knows no protocol and no SQL. It reaches the outside through three ports: `Ledger` (where
//! everything is written), `Channel` (how people are reached) and `Clock`. Who may do what is enforced by
//! type: authentication answers a handle, and an agent's handle has no method that decides; but a host's beside an
//! engine, which policy has to allow each time.

mod apply;
mod channels;
mod clock;
mod command;
mod error;
mod expiry;
mod feed;
mod following;
mod gate;
mod handles;
mod keyring;
mod live;
mod names;
mod pairing;
mod ports;
mod row;
mod stops;
mod waiters;

pub use apply::{DENIAL_MEMORY_MS, apply};
pub use clock::SystemClock;
pub use command::{
    Command, Done, Idempotency, NewApproval, NewDecision, Reach, Refused, Take, Told, Weight, Withdrawal,
};
pub use error::GateError;
pub use feed::Feed;
pub use gate::{Figures, Gate, GateConfig, Health};
pub use handles::{
    AdminHandle, AgentHandle, ApproverHandle, Caller, EngineAsk, EngineRights, ForwardHandle, HostAnswer, InboxHandle,
    NewRequest, NodeHandle, Permit, Standing,
};
pub use live::{Follower, Output, OutputStream};
pub use names::ShownIds;
pub use pairing::{PAIRING_MS, Pairing, PairingCode};
pub use ports::{
    AuditLine, BoxFuture, Channel, ChannelError, Clock, Committed, GrantFilter, Ledger, LedgerStats, ListFilter,
    Listed, Named, NodeOf, PendingOf, PolicyText, Presence, StoreError, Summary, Tx,
};
pub use row::{ApprovalRow, EntryUse, IdempotentRow, RowError};
