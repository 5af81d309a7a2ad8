//! The three ports, and the store primitives (`Tx`) that every ledger offers inside a transaction.

use std::collections::HashSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use countersign_model::{
    Approval, ApprovalId, ChannelChoice, Digest, Event, EventBody, Grant, GrantId, KeyId, KeyRecord, Prior, Status,
    StoredPolicy, Target, Timestamp, Trust,
};
use thiserror::Error;
use tokio::sync::watch;

use crate::command::{Command, Done, Refused};
use crate::row::{ApprovalRow, EntryUse, IdempotentRow};

pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Where time comes in.
pub trait Clock: Send + Sync + 'static {
    /// Never goes back while the process lives, whatever is done to the machine's clock.
    fn now(&self) -> Timestamp;
    /// Until that instant by this clock, also when the machine's is set or sleeps meanwhile.
    fn sleep_until(&self, at: Timestamp) -> BoxFuture<'_, ()>;
    /// For about that long, where nothing depends on the very instant: cheaper when many do it.
    fn sleep_for(&self, millis: u64) -> BoxFuture<'_, ()>;
}

/// The store did not do what was asked. Nothing of it happened; nothing may be allowed because of it.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum StoreError {
    #[error("the store cannot be written or read: {0}")]
    Unavailable(String),
    #[error("the store holds what cannot be understood: {0}")]
    Corrupt(String),
    #[error("the store is shut down")]
    Closed,
}

/// One event as it was committed, with the approval as it was right after, where it is small and the ledger still has
/// it at hand.
#[derive(Clone, Debug)]
pub struct Committed {
    pub event: Event,
    pub approval: Option<Arc<Approval>>,
}

/// One line of the record as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditLine {
    pub seq: u64,
    pub line: Vec<u8>,
    pub hash: Digest,
}

#[derive(Clone, Debug, Default)]
pub struct ListFilter {
    pub status: Option<Status>,
    /// Only what is older than this position, from a previous page.
    pub before: Option<u64>,
    pub limit: usize,
}

/// An approval as lists have it: of a large one the request is cut. For showing; what is decided or run is read whole.
#[derive(Clone, Debug)]
pub struct Summary(Arc<Approval>);

impl Summary {
    pub fn new(approval: Arc<Approval>) -> Self {
        Self(approval)
    }
}

impl std::ops::Deref for Summary {
    type Target = Approval;

    fn deref(&self) -> &Approval {
        &self.0
    }
}

/// An approval with its position in the list, for `ListFilter::before`.
pub type Listed = (u64, Summary);

/// What a client has pending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PendingOf {
    pub count: u64,
    pub bytes: u64,
    /// Of all clients.
    pub bytes_of_all: u64,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct GrantFilter {
    pub client: Option<KeyId>,
    pub include_ended: bool,
}

/// What a requester's name for its request stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    Nothing,
    One(ApprovalId),
    /// Names could once be used again; which of those requests is meant nobody can say.
    Several,
}

/// What a node's key and a machine's id are to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeOf {
    /// Neither has another yet.
    Neither,
    Both,
    /// One of them belongs to another.
    Other,
}

/// Figures for the operator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LedgerStats {
    pub batches: u64,
    pub commands: u64,
    pub commit_nanos: u64,
    pub pending: u64,
    pub pending_bytes: u64,
}

/// A profile's document with the text its hash is of.
#[derive(Clone, Debug)]
pub struct PolicyText {
    pub stored: Arc<StoredPolicy>,
    pub text: Option<String>,
}

/// Where everything is written. An answer from `submit` means: durable.
pub trait Ledger: Send + Sync + 'static {
    fn submit(&self, command: Command) -> BoxFuture<'_, Result<Result<Done, Refused>, StoreError>>;
    fn approval(&self, id: ApprovalId) -> BoxFuture<'_, Result<Option<Arc<Approval>>, StoreError>>;
    /// The same as lists have it.
    fn summary(&self, id: ApprovalId) -> BoxFuture<'_, Result<Option<Summary>, StoreError>>;
    /// Newest first.
    fn list(&self, filter: ListFilter) -> BoxFuture<'_, Result<Vec<Listed>, StoreError>>;
    fn events(&self, after: u64, limit: usize) -> BoxFuture<'_, Result<Vec<Arc<Committed>>, StoreError>>;
    fn audit(&self, after: u64, limit: usize) -> BoxFuture<'_, Result<Vec<AuditLine>, StoreError>>;
    fn grants(&self, filter: GrantFilter) -> BoxFuture<'_, Result<Vec<Grant>, StoreError>>;
    fn grant(&self, id: GrantId) -> BoxFuture<'_, Result<Option<Grant>, StoreError>>;
    fn policy(&self, profile: String) -> BoxFuture<'_, Result<PolicyText, StoreError>>;
    fn trusts(&self) -> BoxFuture<'_, Result<Vec<Trust>, StoreError>>;
    fn trust(&self, workspace: String) -> BoxFuture<'_, Result<Option<Trust>, StoreError>>;
    fn keys(&self) -> BoxFuture<'_, Result<Vec<KeyRecord>, StoreError>>;
    fn cursor(&self, name: String) -> BoxFuture<'_, Result<u64, StoreError>>;
    /// What goes by this name: with one client, or without one for people, to whom a name is that of the first client
    /// that ever used it.
    fn named(&self, alias: String, client: Option<KeyId>) -> BoxFuture<'_, Result<Named, StoreError>>;
    /// Those of these names that more than one client has ever used.
    fn shared_names(&self, aliases: Vec<String>) -> BoxFuture<'_, Result<HashSet<String>, StoreError>>;
    fn entry_uses(&self, profile: String) -> BoxFuture<'_, Result<Vec<EntryUse>, StoreError>>;
    fn next_deadline(&self) -> BoxFuture<'_, Result<Option<Timestamp>, StoreError>>;
    /// The last committed event's number. A hint: readers re-read by number.
    fn head(&self) -> watch::Receiver<u64>;
    /// Writes and commits something harmless: whether the store would take a decision now.
    fn probe(&self) -> BoxFuture<'_, Result<(), StoreError>>;
    fn stats(&self) -> LedgerStats;
}

/// What a ledger can do inside one transaction. `apply` is written over these once, for every ledger.
///
/// Events are only collected here; their numbers and hashes are given at the commit.
pub trait Tx: Send {
    fn now(&self) -> Timestamp;
    fn append(&mut self, body: EventBody, approval: Option<Arc<Approval>>);

    fn approval(&mut self, id: ApprovalId) -> impl Future<Output = Result<Option<Approval>, StoreError>> + Send;
    /// With what it weighs, and its summary where it is large.
    fn insert_approval(
        &mut self,
        row: &ApprovalRow,
        bytes: u64,
        summary: Option<&str>,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;
    /// Writes the outcome if the row is still pending; whether it was.
    fn finish_approval(&mut self, row: &ApprovalRow) -> impl Future<Output = Result<bool, StoreError>> + Send;
    /// Marks the permit as used if it was not; whether it was not.
    fn consume(
        &mut self,
        id: ApprovalId,
        at: Timestamp,
        told: bool,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send;
    /// Writes how a run ended if that was not known; whether it was not.
    fn ran(&mut self, id: ApprovalId, run: &str) -> impl Future<Output = Result<bool, StoreError>> + Send;
    /// Ids alone: all that are due at once may be large.
    fn due(&mut self, at: Timestamp, limit: usize) -> impl Future<Output = Result<Vec<ApprovalId>, StoreError>> + Send;
    fn pending(&mut self, client: KeyId) -> impl Future<Output = Result<PendingOf, StoreError>> + Send;
    /// The client's newest questions (not automatic rulings), newest first.
    fn recent_asks(
        &mut self,
        client: KeyId,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<Summary>, StoreError>> + Send;
    fn asks_since(&mut self, client: KeyId, since: Timestamp) -> impl Future<Output = Result<u64, StoreError>> + Send;
    fn sweep(&mut self, before: Timestamp, limit: usize) -> impl Future<Output = Result<u64, StoreError>> + Send;

    /// How many wrong numbers this key has sent to allow it.
    fn wrong_numbers(&mut self, id: ApprovalId, key: KeyId) -> impl Future<Output = Result<u32, StoreError>> + Send;
    fn put_wrong_numbers(
        &mut self,
        id: ApprovalId,
        key: KeyId,
        count: u32,
        at: Timestamp,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    fn idempotent(
        &mut self,
        client: KeyId,
        key: &str,
    ) -> impl Future<Output = Result<Option<IdempotentRow>, StoreError>> + Send;
    fn put_idempotent(
        &mut self,
        client: KeyId,
        key: &str,
        row: &IdempotentRow,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    fn prior(
        &mut self,
        client: KeyId,
        effect: Digest,
    ) -> impl Future<Output = Result<Option<Prior>, StoreError>> + Send;
    fn put_prior(
        &mut self,
        client: KeyId,
        effect: Digest,
        prior: Prior,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    fn policy(&mut self, profile: &str) -> impl Future<Output = Result<Arc<StoredPolicy>, StoreError>> + Send;
    fn put_policy(&mut self, profile: &str, text: &str) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Unrevoked grants of this client under any of these subjects.
    fn grants(
        &mut self,
        client: KeyId,
        subjects: &[String],
    ) -> impl Future<Output = Result<Vec<Grant>, StoreError>> + Send;
    fn insert_grant(&mut self, grant: &Grant, body: &str) -> impl Future<Output = Result<(), StoreError>> + Send;
    /// Those of them that hold for this session alone.
    fn session_grants(
        &mut self,
        client: KeyId,
        session: &str,
    ) -> impl Future<Output = Result<Vec<GrantId>, StoreError>> + Send;
    /// Whether there was such a grant to revoke.
    fn revoke_grant(&mut self, id: GrantId, at: Timestamp) -> impl Future<Output = Result<bool, StoreError>> + Send;

    fn trust(&mut self, workspace: &str) -> impl Future<Output = Result<Option<Trust>, StoreError>> + Send;
    fn put_trust(&mut self, trust: &Trust) -> impl Future<Output = Result<(), StoreError>> + Send;
    /// Whether there was such a trust to take back.
    fn remove_trust(&mut self, workspace: &str) -> impl Future<Output = Result<bool, StoreError>> + Send;

    fn insert_key(&mut self, key: &KeyRecord) -> impl Future<Output = Result<(), StoreError>> + Send;
    fn revoke_key(&mut self, id: KeyId, at: Timestamp) -> impl Future<Output = Result<bool, StoreError>> + Send;
    /// The request that this client calls so, or ever called so.
    fn named(
        &mut self,
        client: KeyId,
        alias: &str,
    ) -> impl Future<Output = Result<Option<ApprovalId>, StoreError>> + Send;
    /// Gives the name to this request for ever. A name that the client has used is an error of the store.
    fn put_name(
        &mut self,
        client: KeyId,
        alias: &str,
        approval: ApprovalId,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;
    fn put_entry_use(&mut self, entry_use: &EntryUse) -> impl Future<Output = Result<(), StoreError>> + Send;
    fn node_of(&mut self, key: KeyId, node_id: &str) -> impl Future<Output = Result<NodeOf, StoreError>> + Send;
    fn bind_node(&mut self, key: KeyId, node_id: &str) -> impl Future<Output = Result<(), StoreError>> + Send;
    fn put_cursor(&mut self, name: &str, seq: u64) -> impl Future<Output = Result<(), StoreError>> + Send;
}

#[derive(Debug, Error)]
#[error("not delivered: {0}")]
pub struct ChannelError(pub String);

/// A way to people that is only there while they are connected.
pub trait Presence: Send + Sync + 'static {
    fn kind(&self) -> ChannelChoice;
    /// The names of the approvers who are there now.
    fn names(&self) -> Vec<String>;
}

/// A way to people. The gate never calls one to decide anything: it commits, and the channel follows.
pub trait Channel: Send + Sync + 'static {
    fn kind(&self) -> ChannelChoice;
    /// Names its cursor in the store.
    fn name(&self) -> &str;
    /// Whether the target is one of the people this channel is configured for.
    fn knows(&self, target: &Target) -> bool;
    /// Called for every event in order, again after a failure or a restart until it answers `Ok`.
    fn deliver<'a>(&'a self, committed: &'a Committed) -> BoxFuture<'a, Result<(), ChannelError>>;
}
