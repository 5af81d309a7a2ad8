//! What each kind of caller can do. The methods are the rights: an agent's handle has none that decides,
//! widens or configures, so no door can offer it one by mistake.

use std::sync::Arc;

use countersign_model::{
    Action, ActionType, AgentWords, Answer, Approval, ApprovalId, ChannelChoice, ClientId, Digest, Door, Grant,
    GrantId, KeyId, KeyRecord, KeySecret, MAX_TERMINAL_FILE, Policy, Request, Requester, Role, RunEnd, Status,
    StoredPolicy, Target, TerminalInput, TermsAsked, Timestamp, Trust,
};
use tokio::sync::watch;

use crate::command::{Command, Done, Idempotency, NewApproval, NewDecision, Refused};
use crate::error::GateError;
use crate::feed::Feed;
use crate::gate::{Gate, Inner, new_approval_id, new_grant_id};
use crate::ports::{AuditLine, GrantFilter, ListFilter, Listed, PolicyText, StoreError};

/// The longest a caller may want a request open.
const MAX_EXPIRES_MS: u64 = 86_400_000;
const MAX_GRANT_MS: u64 = 366 * 86_400_000;
const MAX_NAME_CHARS: usize = 64;
const MAX_PATH_BYTES: usize = 4096;
const MAX_CHANGES: usize = 64;
const MAX_IDEMPOTENCY_CHARS: usize = 256;

#[derive(Debug)]
pub enum Caller {
    Agent(AgentHandle),
    Approver(ApproverHandle),
    Admin(AdminHandle),
    Inbox(InboxHandle),
    Node(NodeHandle),
}

impl Caller {
    pub fn role(&self) -> Role {
        match self {
            Self::Agent(_) => Role::Agent,
            Self::Approver(_) => Role::Approver,
            Self::Admin(_) => Role::Admin,
            Self::Inbox(_) => Role::Inbox,
            Self::Node(_) => Role::Node,
        }
    }

    pub fn key_id(&self) -> KeyId {
        match self {
            Self::Agent(agent) => agent.requester.key_id,
            Self::Approver(approver) => approver.key_id,
            Self::Admin(admin) => admin.0.key_id,
            Self::Inbox(inbox) => inbox.key_id,
            Self::Node(node) => node.key_id,
        }
    }
}

/// What an agent sends.
#[derive(Debug)]
pub struct NewRequest {
    pub session_id: String,
    pub context_id: Option<String>,
    pub action: Action,
    pub action_type: ActionType,
    pub words: AgentWords,
    pub channel: ChannelChoice,
    pub target: Target,
    pub terms: TermsAsked,
    pub expires_in_ms: Option<u64>,
    /// What the door's own document says when nobody else does.
    pub default_ms: u64,
    pub idempotency: Option<Idempotency>,
    /// The workspace that a command is asked from, with its file.
    pub terminal: Option<TerminalInput>,
    /// Takes the permit at once where policy says yes without asking: one commit in place of two.
    pub take: bool,
}

/// What taking a permit answers.
#[derive(Debug)]
pub struct Permit {
    pub approval: Arc<Approval>,
}

#[derive(Clone, Debug)]
pub struct AgentHandle {
    gate: Gate,
    requester: Requester,
}

impl AgentHandle {
    pub(crate) fn new(gate: Gate, key: &KeyRecord, door: Door) -> Self {
        let requester = Requester {
            key_id: key.id,
            client_id: key.client_id.clone(),
            name: key.name.clone(),
            profile: key.profile.clone(),
            door,
        };
        Self { gate, requester }
    }

    pub fn client_id(&self) -> &ClientId {
        &self.requester.client_id
    }

    /// Asks. What comes back is ruled already, or pending; `false` beside it means it had been asked before.
    pub async fn request(&self, new: NewRequest) -> Result<(Arc<Approval>, bool), GateError> {
        let inner = &self.gate.0;
        check_expiry(new.expires_in_ms)?;
        check_idempotency(new.idempotency.as_ref())?;
        check_channel(inner, new.channel, &new.target)?;
        if let Some(input) = &new.terminal {
            check_workspace(&input.workspace)?;
        }
        let request = Request::new(
            self.requester.clone(),
            new.session_id,
            new.context_id,
            new.action,
            new.action_type,
            new.words,
            new.channel,
            new.target,
            new.terms,
            inner.rules().as_deref(),
        )?;
        let request = match &new.terminal {
            Some(input) => request.in_workspace(input),
            None => request,
        };
        let command = Command::Create(Box::new(NewApproval {
            id: new_approval_id()?,
            request: Arc::new(request),
            expires_in_ms: new.expires_in_ms,
            default_ms: new.default_ms,
            idempotency: new.idempotency,
            max_pending: inner.config.max_pending,
            take: new.take,
        }));
        match inner.submit(command).await? {
            Done::Created { approval, fresh } => {
                if approval.status() == Status::Pending {
                    inner.alarm.deadline_set(approval.terms.expires_at);
                }
                Ok((approval, fresh))
            }
            other => Err(unexpected(&other)),
        }
    }

    /// Its own request; another client's is the same as none.
    pub async fn get(&self, id: ApprovalId) -> Result<Arc<Approval>, GateError> {
        let approval = inner_get(&self.gate.0, id).await?;
        self.own(approval)
    }

    /// The request once it has ended, or as it is at `until`.
    pub async fn wait(&self, id: ApprovalId, until: Timestamp) -> Result<Arc<Approval>, GateError> {
        self.get(id).await?;
        wait(&self.gate.0, id, until).await
    }

    pub async fn cancel(&self, id: ApprovalId) -> Result<Arc<Approval>, GateError> {
        changed(self.gate.0.submit(Command::Cancel { id, client: self.requester.key_id }).await?)
    }

    /// Takes the permit of an approved request, once.
    pub async fn consume(&self, id: ApprovalId) -> Result<Permit, GateError> {
        let done = self.gate.0.submit(Command::Consume { id, client: self.requester.key_id }).await?;
        Ok(Permit { approval: changed(done)? })
    }

    /// Says how the run that took the permit ended.
    pub async fn ran(&self, id: ApprovalId, run: RunEnd) -> Result<Arc<Approval>, GateError> {
        if run.changed.len() > MAX_CHANGES || run.changed.iter().any(|text| text.len() > MAX_PATH_BYTES) {
            return Err(GateError::OutOfRange { field: "changed", expected: "at most 64 short texts" });
        }
        changed(self.gate.0.submit(Command::Ran { id, client: self.requester.key_id, run }).await?)
    }

    /// Who wants the run under it ended, as soon as somebody does, or nobody until `until`.
    pub async fn stop_asked(&self, id: ApprovalId, until: Timestamp) -> Result<Option<String>, GateError> {
        let approval = self.get(id).await?;
        if approval.consumed_at.is_none() || approval.run.is_some() {
            return Err(Refused::NotRunning.into());
        }
        let inner = &self.gate.0;
        let mut closing = inner.closing.subscribe();
        let given_up = async {
            tokio::select! {
                () = inner.clock.sleep_for(inner.clock.now().millis_until(until)) => {}
                _ = closing.wait_for(|closing| *closing) => {}
            }
        };
        Ok(inner.stops.asked(id, given_up).await)
    }

    /// The text of a workspace's file that a person trusts, to be written where it belongs.
    pub async fn trusted_file(&self, workspace: &str) -> Result<Trust, GateError> {
        trust_of(&self.gate.0, workspace).await
    }

    pub async fn grants(&self) -> Result<Vec<Grant>, GateError> {
        let filter = GrantFilter { client: Some(self.requester.key_id), include_ended: false };
        active_grants(&self.gate.0, filter).await
    }

    fn own(&self, approval: Arc<Approval>) -> Result<Arc<Approval>, GateError> {
        if approval.request.requester.key_id == self.requester.key_id {
            Ok(approval)
        } else {
            Err(Refused::NotFound.into())
        }
    }
}

#[derive(Clone, Debug)]
pub struct ApproverHandle {
    gate: Gate,
    key_id: KeyId,
    name: String,
    door: Door,
}

impl ApproverHandle {
    pub(crate) fn new(gate: Gate, key: &KeyRecord, door: Door) -> Self {
        Self { gate, key_id: key.id, name: key.name.clone(), door }
    }

    /// The name that stands on the record.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub async fn decide(&self, id: ApprovalId, answer: Answer) -> Result<Arc<Approval>, GateError> {
        if answer.terms.expires_in_ms.is_some_and(|ms| ms == 0 || ms > MAX_GRANT_MS) {
            return Err(GateError::OutOfRange { field: "grant.expires_in_sec", expected: "from 1 second to 366 days" });
        }
        let replaced = match &answer.replacement {
            Some(_) => {
                let approval = inner_get(&self.gate.0, id).await?;
                let replaced = approval.request.replaced_by(&answer, self.gate.0.rules().as_deref());
                replaced.map_err(|error| Refused::OverrideUnfit(error.to_string()))?
            }
            None => None,
        };
        let command = Command::Decide(Box::new(NewDecision {
            id,
            answer,
            replaced: replaced.map(Box::new),
            by: self.name.clone(),
            via: self.door.as_str().to_owned(),
            grant_id: new_grant_id()?,
        }));
        changed(self.gate.0.submit(command).await?)
    }

    pub async fn get(&self, id: ApprovalId) -> Result<Arc<Approval>, GateError> {
        inner_get(&self.gate.0, id).await
    }

    pub async fn wait(&self, id: ApprovalId, until: Timestamp) -> Result<Arc<Approval>, GateError> {
        wait(&self.gate.0, id, until).await
    }

    pub async fn list(&self, filter: ListFilter) -> Result<Vec<Listed>, GateError> {
        Ok(self.gate.0.ledger.list(filter).await?)
    }

    pub async fn grants(&self) -> Result<Vec<Grant>, GateError> {
        active_grants(&self.gate.0, GrantFilter::default()).await
    }

    /// Wants the run under it ended; its runner hears of it.
    pub async fn stop(&self, id: ApprovalId) -> Result<Arc<Approval>, GateError> {
        changed(self.gate.0.submit(Command::Stop { id, by: self.name.clone() }).await?)
    }

    pub async fn trusts(&self) -> Result<Vec<Trust>, GateError> {
        Ok(self.gate.0.ledger.trusts().await?)
    }

    pub async fn trusted_file(&self, workspace: &str) -> Result<Trust, GateError> {
        trust_of(&self.gate.0, workspace).await
    }

    /// From now on what this text allows counts in this workspace, as long as its file is just this.
    pub async fn trust(&self, workspace: &str, text: String) -> Result<(), GateError> {
        check_workspace(workspace)?;
        if text.len() > MAX_TERMINAL_FILE {
            return Err(GateError::OutOfRange { field: "text", expected: "at most 1 MiB" });
        }
        let command = Command::Trust { workspace: workspace.to_owned(), text, by: self.name.clone() };
        self.gate.0.submit(command).await.map(|_| ())
    }

    pub async fn untrust(&self, workspace: &str) -> Result<(), GateError> {
        let command = Command::Untrust { workspace: workspace.to_owned(), by: self.name.clone() };
        self.gate.0.submit(command).await.map(|_| ())
    }

    pub async fn revoke_grant(&self, id: GrantId) -> Result<(), GateError> {
        self.gate.0.submit(Command::RevokeGrant { id, by: self.name.clone() }).await.map(|_| ())
    }

    pub fn feed(&self, after: u64) -> Feed {
        Feed::after(self.gate.0.ledger.clone(), after)
    }

    /// Where the record ends now.
    pub fn head(&self) -> u64 {
        *self.gate.0.ledger.head().borrow()
    }

    /// Whether the key still holds. Whoever keeps a connection open asks again when `key_changes` ticks.
    pub fn is_still_valid(&self) -> bool {
        self.gate.0.keys.is_active(self.key_id, self.gate.0.clock.now())
    }

    pub fn key_changes(&self) -> watch::Receiver<u64> {
        self.gate.0.keys.changes()
    }

    pub fn closing(&self) -> watch::Receiver<bool> {
        self.gate.0.closing.subscribe()
    }
}

/// An approver who may also configure.
#[derive(Clone, Debug)]
pub struct AdminHandle(ApproverHandle);

impl AdminHandle {
    pub(crate) fn new(approver: ApproverHandle) -> Self {
        Self(approver)
    }

    pub fn as_approver(&self) -> &ApproverHandle {
        &self.0
    }

    pub async fn policy(&self, profile: &str) -> Result<PolicyText, GateError> {
        check_name("profile", profile)?;
        Ok(self.inner().ledger.policy(profile.to_owned()).await?)
    }

    /// Replaces a profile's document, if it is still the one the change was made to.
    pub async fn put_policy(
        &self,
        profile: &str,
        policy: Policy,
        base_hash: Digest,
    ) -> Result<Arc<StoredPolicy>, GateError> {
        check_name("profile", profile)?;
        policy.check()?;
        let command = Command::PutPolicy {
            profile: profile.to_owned(),
            policy: Box::new(policy),
            base_hash,
            by: self.0.name.clone(),
        };
        match self.inner().submit(command).await? {
            Done::Policy(stored) => Ok(stored),
            other => Err(unexpected(&other)),
        }
    }

    pub async fn keys(&self) -> Result<Vec<KeyRecord>, GateError> {
        Ok(self.inner().ledger.keys().await?)
    }

    pub async fn create_key(
        &self,
        name: &str,
        role: Role,
        profile: &str,
        expires_in_ms: Option<u64>,
    ) -> Result<(KeyRecord, KeySecret), GateError> {
        check_name("name", name)?;
        check_name("profile", profile)?;
        let expires_at = expires_in_ms.map(|ms| self.inner().clock.now().plus_millis(ms));
        self.inner().make_key(name, role, profile, expires_at, &self.0.name).await
    }

    pub async fn revoke_key(&self, id: KeyId) -> Result<(), GateError> {
        if id == self.0.key_id {
            return Err(Refused::OwnKey.into());
        }
        self.inner().revoke_key(id, &self.0.name).await
    }

    pub async fn audit(&self, after: u64, limit: usize) -> Result<Vec<AuditLine>, GateError> {
        Ok(self.inner().ledger.audit(after, limit).await?)
    }

    fn inner(&self) -> &Inner {
        &self.0.gate.0
    }
}

/// Posts mail replies and can do nothing else.
#[derive(Clone, Debug)]
pub struct InboxHandle {
    key_id: KeyId,
}

impl InboxHandle {
    pub(crate) fn new(key: &KeyRecord) -> Self {
        Self { key_id: key.id }
    }
}

/// A machine that serves its own policy document.
#[derive(Clone, Debug)]
pub struct NodeHandle {
    key_id: KeyId,
}

impl NodeHandle {
    pub(crate) fn new(key: &KeyRecord) -> Self {
        Self { key_id: key.id }
    }
}

async fn trust_of(inner: &Inner, workspace: &str) -> Result<Trust, GateError> {
    inner.ledger.trust(workspace.to_owned()).await?.ok_or_else(|| Refused::NoSuchTrust.into())
}

async fn inner_get(inner: &Inner, id: ApprovalId) -> Result<Arc<Approval>, GateError> {
    inner.ledger.approval(id).await?.ok_or_else(|| Refused::NotFound.into())
}

async fn wait(inner: &Inner, id: ApprovalId, until: Timestamp) -> Result<Arc<Approval>, GateError> {
    // Registered before the state is read: what ends in between is not missed.
    let mut waiting = inner.waiters.register(id);
    let now = {
        let approval = inner_get(inner, id).await?;
        if approval.status() != Status::Pending {
            return Ok(approval);
        }
        // The approval is not held while parked: a hundred thousand waiters would keep as many in memory.
        inner.clock.now()
    };
    let mut closing = inner.closing.subscribe();
    let closed = async {
        // An error means the gate is gone, which is closed too.
        let _ = closing.wait_for(|closing| *closing).await;
    };
    tokio::select! {
        woken = &mut waiting.receiver => match woken {
            Ok(ended) => Ok(ended),
            Err(_) => inner_get(inner, id).await,
        },
        () = inner.clock.sleep_for(now.millis_until(until)) => inner_get(inner, id).await,
        () = closed => inner_get(inner, id).await,
    }
}

async fn active_grants(inner: &Inner, filter: GrantFilter) -> Result<Vec<Grant>, GateError> {
    let now = inner.clock.now();
    let mut grants = inner.ledger.grants(filter).await?;
    grants.retain(|grant| grant.is_active(now));
    Ok(grants)
}

fn changed(done: Done) -> Result<Arc<Approval>, GateError> {
    match done {
        Done::Changed(approval) => Ok(approval),
        other => Err(unexpected(&other)),
    }
}

/// A ledger that answers something else than it was asked is not to be believed.
fn unexpected(done: &Done) -> GateError {
    GateError::Store(StoreError::Corrupt(format!("unexpected answer {done:?}")))
}

fn check_expiry(expires_in_ms: Option<u64>) -> Result<(), GateError> {
    match expires_in_ms {
        Some(ms) if !(1000..=MAX_EXPIRES_MS).contains(&ms) => {
            Err(GateError::OutOfRange { field: "expires_in_sec", expected: "from 1 to 86400 seconds" })
        }
        Some(_) | None => Ok(()),
    }
}

fn check_idempotency(idempotency: Option<&Idempotency>) -> Result<(), GateError> {
    let bad = |key: &str| key.is_empty() || key.chars().count() > MAX_IDEMPOTENCY_CHARS || key.contains('\0');
    if idempotency.is_some_and(|idempotency| bad(&idempotency.key)) {
        return Err(GateError::OutOfRange { field: "idempotency_key", expected: "1 to 256 characters" });
    }
    Ok(())
}

fn check_workspace(workspace: &str) -> Result<(), GateError> {
    let plain = workspace.starts_with('/') && workspace.len() <= MAX_PATH_BYTES && !workspace.contains('\0');
    if plain { Ok(()) } else { Err(GateError::OutOfRange { field: "workspace", expected: "an absolute path" }) }
}

fn check_name(field: &'static str, name: &str) -> Result<(), GateError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '@' | ':');
    let starts_plain = name.chars().next().is_some_and(|c| c.is_ascii_alphanumeric());
    if !starts_plain || name.len() > MAX_NAME_CHARS || !name.chars().all(plain) {
        let expected = "1 to 64 letters, digits or `-_.@:`, starting with a letter or digit";
        return Err(GateError::OutOfRange { field, expected });
    }
    Ok(())
}

fn check_channel(inner: &Inner, choice: ChannelChoice, target: &Target) -> Result<(), GateError> {
    let mut of_choice =
        inner.channels.iter().filter(|channel| choice == ChannelChoice::Any || channel.kind() == choice).peekable();
    if of_choice.peek().is_none() && !choice.always_reachable() {
        return Err(GateError::ChannelNotConfigured(choice));
    }
    let names_someone = *target != Target::default();
    if names_someone && !of_choice.any(|channel| channel.knows(target)) {
        return Err(GateError::UnknownTarget(choice));
    }
    Ok(())
}
