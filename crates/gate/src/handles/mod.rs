//! What each kind of caller can do. The methods are the rights: an agent's handle has none that decides,
//! widens or configures, so no door can offer it one by mistake.

mod admin;
mod agent;
mod approver;
mod find;
mod forward;
mod host;
mod node;
mod standing;

use std::sync::Arc;

use countersign_model::{Approval, ApprovalId, Grant, KeyId, KeyRecord, Role, Status, Timestamp, Trust};

use crate::command::{Done, Refused};
use crate::error::GateError;
use crate::gate::Inner;
use crate::ports::{GrantFilter, StoreError};
pub use admin::AdminHandle;
pub use agent::{AgentHandle, EngineAsk, NewRequest, Permit};
pub use approver::ApproverHandle;
use find::find;
pub use forward::ForwardHandle;
pub use host::{EngineRights, HostAnswer};
pub use node::NodeHandle;
pub use standing::Standing;

const MAX_PATH_BYTES: usize = 4096;

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
            Self::Node(node) => node.key_id(),
        }
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

/// Whether something runs under it: the permit was taken, and how that ended is not known.
fn check_running(approval: &Approval) -> Result<(), GateError> {
    if approval.consumed_at.is_some() && approval.run.is_none() { Ok(()) } else { Err(Refused::NotRunning.into()) }
}

fn check_workspace(workspace: &str) -> Result<(), GateError> {
    let plain = workspace.starts_with('/') && workspace.len() <= MAX_PATH_BYTES && !workspace.contains('\0');
    if plain { Ok(()) } else { Err(GateError::OutOfRange { field: "workspace", expected: "an absolute path" }) }
}
