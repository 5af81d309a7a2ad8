//! What an agent's connection has asked and waits for. When the connection is gone, nobody would use a yes: what is
//! still open is denied.

use std::collections::HashMap;
use std::sync::Arc;

use countersign_gate::{AgentHandle, GateError, NewRequest};
use countersign_model::{Approval, ApprovalId, Status};
use parking_lot::Mutex;

use super::wire::RpcError;

/// Questions that one connection may have open.
const MAX_OPEN: usize = 256;

#[derive(Debug, Default)]
pub(super) struct Asks(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// With the agent's name for itself, as it was given.
    open: HashMap<ApprovalId, Option<String>>,
    gone: bool,
}

impl Asks {
    /// Asks, and remembers what is open. Not to be cut short: what was asked is remembered, or denied.
    async fn ask(self: Arc<Self>, agent: AgentHandle, new: NewRequest) -> Result<Arc<Approval>, GateError> {
        let name = new.words.agent_id.clone();
        let (approval, _) = agent.request(new).await?;
        if approval.status() != Status::Pending {
            return Ok(approval);
        }
        {
            let mut state = self.0.lock();
            if !state.gone {
                state.open.insert(approval.id, name);
                return Ok(approval);
            }
        }
        // The connection went while the request was written.
        agent.close(approval.id).await
    }

    /// The request as it was ruled, or pending.
    pub(super) async fn request(
        self: &Arc<Self>,
        agent: &AgentHandle,
        new: NewRequest,
    ) -> Result<Arc<Approval>, RpcError> {
        if self.0.lock().open.len() >= MAX_OPEN {
            return Err(RpcError::unavailable(format!(
                "{MAX_OPEN} requests of this connection are open; wait for some"
            )));
        }
        // A task of its own: when the connection drops in the middle, this still comes to its end.
        let asked = tokio::spawn(self.clone().ask(agent.clone(), new)).await;
        Ok(asked.map_err(|_| RpcError::unavailable("the request was not made; try again"))??)
    }

    pub(super) fn ended(&self, id: &ApprovalId) {
        self.0.lock().open.remove(id);
    }

    /// Denies what is open, all of it or what one agent asked. How many there were.
    pub(super) async fn close(&self, agent: &AgentHandle, name: Option<&str>) -> usize {
        let open: Vec<ApprovalId> = {
            let state = self.0.lock();
            let meant = |asked: &Option<String>| name.is_none() || asked.as_deref() == name;
            state.open.iter().filter(|(_, asked)| meant(asked)).map(|(id, _)| *id).collect()
        };
        close_all(agent, &open).await;
        open.len()
    }

    /// The connection is gone.
    pub(super) fn leave(&self, agent: AgentHandle) {
        let open: Vec<ApprovalId> = {
            let mut state = self.0.lock();
            state.gone = true;
            state.open.drain().map(|(id, _)| id).collect()
        };
        if let Ok(runtime) = tokio::runtime::Handle::try_current()
            && !open.is_empty()
        {
            runtime.spawn(async move { close_all(&agent, &open).await });
        }
    }
}

async fn close_all(agent: &AgentHandle, open: &[ApprovalId]) {
    for id in open {
        match agent.close(*id).await {
            // Answered in the meantime: that stands.
            Ok(_) | Err(GateError::Refused(_)) => {}
            Err(error) => {
                tracing::warn!(%error, %id, "a request whose agent is gone stays open until its time is over")
            }
        }
    }
}
