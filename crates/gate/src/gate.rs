//! The service itself: starts the tasks that follow the record, and answers who a caller is.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use countersign_model::{
    ApprovalId, ChannelChoice, ClientId, CommandTypes, Digest, Door, GrantId, KeyHash, KeyId, KeyRecord, KeySecret,
    Role, Rules, Timestamp,
};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::channels;
use crate::command::{Command, Done, Reach, Refused};
use crate::error::GateError;
use crate::expiry::{self, Alarm};
use crate::feed::Feed;
use crate::following;
use crate::handles::{
    AdminHandle, AgentHandle, ApproverHandle, Caller, ForwardHandle, InboxHandle, NodeHandle, Standing,
};
use crate::keyring::KeyRing;
use crate::live::Live;
use crate::pairing::Pairings;
use crate::ports::{Channel, Clock, Ledger, LedgerStats, Presence, StoreError};
use crate::stops::Stops;
use crate::waiters::Waiters;

/// The agent a caller on the data folder's socket is without a key.
pub(crate) const LOCAL_KEY: KeyId = KeyId::from_random([0; 16]);
/// 128 bits in the usual writings.
const MIN_DEVICE_ID: usize = 22;
const MAX_DEVICE_ID: usize = 256;

#[derive(Clone, Copy, Debug)]
pub struct GateConfig {
    /// Pending approvals one client may have.
    pub max_pending: u64,
    /// Bytes that the pending requests of one client may take.
    pub max_pending_bytes: u64,
    /// The same of all clients together.
    pub max_pending_bytes_total: u64,
    /// Contents of what ended longer ago than this are removed; `None`: kept.
    pub retention_ms: Option<u64>,
}

impl Default for GateConfig {
    fn default() -> Self {
        Self { max_pending: 100_000, max_pending_bytes: 8 << 20, max_pending_bytes_total: 64 << 20, retention_ms: None }
    }
}

/// Cheap to clone; the tasks end when `Gate::close` is called or the last clone is dropped.
#[derive(Clone)]
pub struct Gate(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) ledger: Arc<dyn Ledger>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) channels: Vec<Arc<dyn Channel>>,
    pub(crate) config: GateConfig,
    pub(crate) waiters: Waiters,
    pub(crate) stops: Stops,
    pub(crate) live: Live,
    pub(crate) keys: KeyRing,
    refreshing: tokio::sync::Mutex<()>,
    pub(crate) closing: watch::Sender<bool>,
    pub(crate) alarm: Arc<Alarm>,
    pub(crate) pairings: Pairings,
    presences: parking_lot::RwLock<Vec<Arc<dyn Presence>>>,
    /// The user's own rules for commands, beside the built-in ones.
    rules: parking_lot::RwLock<Option<Arc<Rules>>>,
    command_types: parking_lot::RwLock<Arc<CommandTypes>>,
    refused: RefusedCounts,
    tasks: parking_lot::Mutex<JoinSet<()>>,
}

/// How often a limit of the server was met.
#[derive(Debug, Default)]
pub(crate) struct RefusedCounts {
    pending: AtomicU64,
    bytes: AtomicU64,
}

/// Figures for the operator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    pub batches: u64,
    pub commands: u64,
    pub commit_nanos: u64,
    pub pending: u64,
    pub pending_bytes: u64,
    pub refused_pending: u64,
    pub refused_bytes: u64,
}

/// Whether the gate can do its work now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    Ready,
    NotReady(String),
}

impl std::fmt::Debug for Gate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gate").field("config", &self.0.config).finish_non_exhaustive()
    }
}

impl Gate {
    pub async fn start(
        ledger: Arc<dyn Ledger>,
        clock: Arc<dyn Clock>,
        channels: Vec<Arc<dyn Channel>>,
        config: GateConfig,
    ) -> Result<Self, GateError> {
        let keys = KeyRing::new(ledger.keys().await?);
        let inner = Arc::new(Inner {
            ledger,
            clock,
            channels,
            config,
            waiters: Waiters::default(),
            stops: Stops::default(),
            live: Live::default(),
            keys,
            refreshing: tokio::sync::Mutex::default(),
            closing: watch::Sender::new(false),
            alarm: Arc::default(),
            pairings: Pairings::default(),
            presences: parking_lot::RwLock::default(),
            rules: parking_lot::RwLock::default(),
            command_types: parking_lot::RwLock::default(),
            refused: RefusedCounts::default(),
            tasks: parking_lot::Mutex::default(),
        });
        let head = *inner.ledger.head().borrow();
        let mut tasks = inner.tasks.lock();
        tasks.spawn(expiry::run(inner.ledger.clone(), inner.clock.clone(), inner.alarm.clone()));
        tasks.spawn(following::wake_and_refresh(Arc::downgrade(&inner), Feed::after(inner.ledger.clone(), head)));
        for channel in &inner.channels {
            tasks.spawn(channels::follow(inner.ledger.clone(), inner.clock.clone(), channel.clone()));
        }
        if let Some(keep_ms) = config.retention_ms {
            tasks.spawn(following::sweep(inner.ledger.clone(), inner.clock.clone(), keep_ms));
        }
        drop(tasks);
        Ok(Self(inner))
    }

    /// Who holds this key. The handle carries the rights; there is no other way to one.
    pub fn authenticate(&self, presented: &KeySecret, door: Door) -> Result<Caller, GateError> {
        let key = self.0.keys.authenticate(presented, self.0.clock.now()).ok_or(GateError::Unauthenticated)?;
        Ok(match key.role {
            Role::Agent => Caller::Agent(AgentHandle::new(self.clone(), &key, door)),
            Role::Approver => Caller::Approver(ApproverHandle::new(self.clone(), &key, door)),
            Role::Admin => Caller::Admin(AdminHandle::new(ApproverHandle::new(self.clone(), &key, door))),
            Role::Inbox => Caller::Inbox(InboxHandle::new(&key)),
            Role::Node => Caller::Node(NodeHandle::new(self.clone(), &key)),
        })
    }

    /// The person whose paired device has this id. The id is its secret.
    pub fn authenticate_device(&self, device_id: &str, door: Door) -> Option<ApproverHandle> {
        let key = self.0.keys.authenticate_device(device_id, self.0.clock.now())?;
        Some(ApproverHandle::new(self.clone(), &key, door))
    }

    /// Makes an approver of the device that knows the code, once.
    pub async fn pair_device(&self, code: &str, device_id: &str, door: Door) -> Result<ApproverHandle, GateError> {
        if device_id.len() < MIN_DEVICE_ID || device_id.len() > MAX_DEVICE_ID {
            return Err(GateError::OutOfRange { field: "deviceId", expected: "a random text of 22 to 256 characters" });
        }
        let pairing = self.0.pairings.take(code, self.0.clock.now()).ok_or(GateError::Unauthenticated)?;
        let secret = KeySecret::presented(device_id);
        let key = KeyRecord {
            id: KeyId::from_random(random()?),
            hash: secret.hash(),
            client_id: secret.client_id(),
            name: pairing.name,
            role: Role::Approver,
            profile: "default".to_owned(),
            created_at: self.0.clock.now(),
            expires_at: None,
            revoked_at: None,
            paired: true,
            node_id: None,
        };
        self.0.add_key(&key, &pairing.by).await?;
        Ok(ApproverHandle::new(self.clone(), &key, door))
    }

    /// A way to another gate, whose people's answers count here because the operator says so.
    pub fn forwarder(&self, upstream: &str) -> ForwardHandle {
        ForwardHandle::new(self.clone(), upstream)
    }

    /// Who may stay connected: for whoever holds a connection open.
    pub fn standing(&self, caller: &Caller) -> Standing {
        Standing::new(self.clone(), caller.key_id())
    }

    /// A way to people that is there while they are connected.
    pub fn add_presence(&self, presence: Arc<dyn Presence>) {
        self.0.presences.write().push(presence);
    }

    /// The same for this store as long as it lives: its first event's hash.
    pub async fn identity(&self) -> Result<Option<Digest>, GateError> {
        Ok(self.0.ledger.audit(0, 1).await?.first().map(|line| line.hash))
    }

    /// A caller on the data folder's own socket without a key: an agent, and nothing more.
    pub fn local_agent(&self) -> AgentHandle {
        AgentHandle::new(self.clone(), &built_in_key("local", Role::Agent), Door::Local)
    }

    /// An engine in the process that holds the data folder, with its host beside it.
    pub fn local_engine(&self) -> AgentHandle {
        self.local_agent().holding_the_store()
    }

    /// The process that holds the data folder, acting for whoever owns it: it could write the store anyway.
    pub fn owner(&self) -> AdminHandle {
        AdminHandle::new(ApproverHandle::new(self.clone(), &built_in_key("owner", Role::Admin), Door::Local))
    }

    /// The process that owns the store may always make a key: how the first admin comes to be.
    pub async fn first_admin_key(&self, name: &str) -> Result<KeySecret, GateError> {
        self.0.make_key(name, Role::Admin, "default", None, "serve").await.map(|(_, secret)| secret)
    }

    /// Whether this secret is a working key: for the holder of the data folder to check its own file.
    pub fn accepts(&self, secret: &KeySecret) -> bool {
        self.0.keys.authenticate(secret, self.0.clock.now()).is_some()
    }

    pub async fn health(&self) -> Health {
        if *self.0.closing.borrow() {
            return Health::NotReady("shutting down".to_owned());
        }
        match self.0.ledger.probe().await {
            Ok(()) => Health::Ready,
            Err(error) => Health::NotReady(error.to_string()),
        }
    }

    /// From here on commands are assessed with these rules too, in place of any set before.
    pub fn use_rules(&self, rules: Option<Rules>) {
        *self.0.rules.write() = rules.map(Arc::new);
    }

    /// From here on these action types mean a command too.
    pub fn use_command_types(&self, types: CommandTypes) {
        *self.0.command_types.write() = Arc::new(types);
    }

    pub fn now(&self) -> Timestamp {
        self.0.clock.now()
    }

    pub fn stats(&self) -> LedgerStats {
        self.0.ledger.stats()
    }

    /// The same with what this process refused since it started.
    pub fn figures(&self) -> Figures {
        let LedgerStats { batches, commands, commit_nanos, pending, pending_bytes } = self.stats();
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (refused_pending, refused_bytes) = (read(&self.0.refused.pending), read(&self.0.refused.bytes));
        Figures { batches, commands, commit_nanos, pending, pending_bytes, refused_pending, refused_bytes }
    }

    pub fn waiting(&self) -> usize {
        self.0.waiters.len()
    }

    pub fn is_closing(&self) -> bool {
        *self.0.closing.borrow()
    }

    /// The number of the newest event on the record.
    pub fn head(&self) -> Option<u64> {
        Some(*self.0.ledger.head().borrow()).filter(|seq| *seq > 0)
    }

    /// The record from here on, for counting. Serving it to anyone goes through a handle.
    pub fn feed_from_now(&self) -> Feed {
        let head = *self.0.ledger.head().borrow();
        Feed::after(self.0.ledger.clone(), head)
    }

    /// Everybody who waits gets the state as it is and can ask again elsewhere or later.
    pub fn close(&self) {
        self.0.closing.send_replace(true);
        self.0.tasks.lock().abort_all();
    }
}

impl Inner {
    pub(crate) fn rules(&self) -> Option<Arc<Rules>> {
        self.rules.read().clone()
    }

    pub(crate) fn command_types(&self) -> Arc<CommandTypes> {
        self.command_types.read().clone()
    }

    pub(crate) async fn submit(&self, command: Command) -> Result<Done, GateError> {
        let done = self.ledger.submit(command).await?;
        match &done {
            Err(Refused::TooManyPending(_)) => drop(self.refused.pending.fetch_add(1, Ordering::Relaxed)),
            Err(Refused::TooManyBytes { .. }) => drop(self.refused.bytes.fetch_add(1, Ordering::Relaxed)),
            Ok(_) | Err(_) => {}
        }
        Ok(done?)
    }

    pub(crate) async fn refresh_keys(&self) -> Result<(), StoreError> {
        // One at a time, from reading to replacing: an older list must never replace a newer one, or a key that was just
        // made, and the connections it opened, would be gone for a moment.
        let _one = self.refreshing.lock().await;
        let keys = self.ledger.keys().await?;
        self.keys.replace(keys);
        Ok(())
    }

    pub(crate) async fn make_key(
        &self,
        name: &str,
        role: Role,
        profile: &str,
        expires_at: Option<Timestamp>,
        by: &str,
    ) -> Result<(KeyRecord, KeySecret), GateError> {
        let id = KeyId::from_random(random()?);
        let secret = KeySecret::from_random(id, &random()?);
        let key = KeyRecord {
            id,
            hash: secret.hash(),
            client_id: secret.client_id(),
            name: name.to_owned(),
            role,
            profile: profile.to_owned(),
            created_at: self.clock.now(),
            expires_at,
            revoked_at: None,
            paired: false,
            node_id: None,
        };
        self.add_key(&key, by).await?;
        Ok((key, secret))
    }

    async fn add_key(&self, key: &KeyRecord, by: &str) -> Result<(), GateError> {
        self.submit(Command::CreateKey { key: Box::new(key.clone()), by: by.to_owned() }).await?;
        // Before the answer: the holder may use it at once.
        Ok(self.refresh_keys().await?)
    }

    pub(crate) fn has_presence(&self, choice: ChannelChoice) -> bool {
        self.presences.read().iter().any(|presence| presence.kind() == choice)
    }

    /// Whom a request by this way would reach now. Channels that keep what they send reach everybody.
    pub(crate) fn reach_of(&self, choice: ChannelChoice) -> Reach {
        if choice.always_reachable() || !self.has_presence(choice) {
            return Reach::Everybody;
        }
        let presences = self.presences.read();
        let there = presences.iter().filter(|presence| presence.kind() == choice);
        Reach::Only(there.flat_map(|presence| presence.names()).collect())
    }

    pub(crate) async fn revoke_key(&self, id: KeyId, by: &str) -> Result<(), GateError> {
        self.submit(Command::RevokeKey { id, by: by.to_owned() }).await?;
        // Before the answer: a revoked key works for nobody who heard that it is revoked.
        self.refresh_keys().await?;
        Ok(())
    }
}

/// Who a caller is that needs no key. It is never in the key ring, so no secret can be it.
fn built_in_key(name: &str, role: Role) -> KeyRecord {
    KeyRecord {
        id: LOCAL_KEY,
        hash: KeyHash::from_bytes([0; 32]),
        client_id: ClientId::new(name),
        name: name.to_owned(),
        role,
        profile: "default".to_owned(),
        created_at: Timestamp::from_millis(0),
        expires_at: None,
        revoked_at: None,
        paired: false,
        node_id: None,
    }
}

pub(crate) fn random<const N: usize>() -> Result<[u8; N], GateError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| GateError::Random(error.to_string()))?;
    Ok(bytes)
}

pub(crate) fn new_approval_id() -> Result<ApprovalId, GateError> {
    Ok(ApprovalId::from_random(random()?))
}

pub(crate) fn new_grant_id() -> Result<GrantId, GateError> {
    Ok(GrantId::from_random(random()?))
}
