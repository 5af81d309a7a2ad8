//! What a person may do: see, decide, take back, trust and stop.

use std::sync::Arc;

use countersign_model::{
    Answer, Approval, ApprovalId, ClientId, Door, Grant, GrantId, Hindsight, KeyId, KeyRecord, MAX_TERMINAL_FILE,
    Requester, Timestamp, Trust,
};
use tokio::sync::watch;

use super::{AgentHandle, active_grants, changed, check_running, check_workspace, find, inner_get, trust_of, wait};
use crate::command::{Command, NewDecision, Refused};
use crate::error::GateError;
use crate::feed::Feed;
use crate::gate::{Gate, new_grant_id};
use crate::live::Follower;
use crate::ports::{GrantFilter, ListFilter, Listed, Summary};

/// How far back one looks to see what an entry would have meant.
const HINDSIGHT: usize = 500;
const MAX_GRANT_MS: u64 = 366 * 86_400_000;

#[derive(Clone, Debug)]
pub struct ApproverHandle {
    pub(super) gate: Gate,
    pub(super) key_id: KeyId,
    pub(super) name: String,
    profile: String,
    client_id: ClientId,
    door: Door,
}

impl ApproverHandle {
    pub(crate) fn new(gate: Gate, key: &KeyRecord, door: Door) -> Self {
        let (name, profile, client_id) = (key.name.clone(), key.profile.clone(), key.client_id.clone());
        Self { gate, key_id: key.id, name, profile, client_id, door }
    }

    /// The name that stands on the record.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A person may ask too, and is ruled like anybody who does.
    pub fn as_requester(&self) -> AgentHandle {
        let requester = Requester {
            key_id: self.key_id,
            client_id: self.client_id.clone(),
            name: self.name.clone(),
            profile: self.profile.clone(),
            door: self.door,
        };
        AgentHandle::of(self.gate.clone(), requester)
    }

    pub fn profile(&self) -> &str {
        &self.profile
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
            host: None,
            key: Some(self.key_id),
        }));
        changed(self.gate.0.submit(command).await?)
    }

    pub async fn get(&self, id: ApprovalId) -> Result<Arc<Approval>, GateError> {
        inner_get(&self.gate.0, id).await
    }

    /// The same as lists have it.
    pub async fn summary(&self, id: ApprovalId) -> Result<Summary, GateError> {
        self.gate.0.ledger.summary(id).await?.ok_or_else(|| Refused::NotFound.into())
    }

    /// What an answer for longer than this once would have let through of the last requests.
    pub async fn hindsight(&self, approval: &Approval) -> Result<Hindsight, GateError> {
        let filter = ListFilter { status: None, before: None, limit: HINDSIGHT };
        let recent = self.list(filter).await?;
        Ok(Hindsight::of(approval, recent.iter().map(|(_, approval)| &**approval)))
    }

    /// By its whole id, or by what its requester called it where cards showed that.
    pub async fn find(&self, text: &str) -> Result<Arc<Approval>, GateError> {
        find(&self.gate.0, text, None).await
    }

    pub fn key_id(&self) -> KeyId {
        self.key_id
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

    /// One grant, also when it has ended.
    pub async fn grant(&self, id: GrantId) -> Result<Option<Grant>, GateError> {
        Ok(self.gate.0.ledger.grant(id).await?)
    }

    /// What the run under it prints, from what is still kept on.
    pub async fn follow(&self, id: ApprovalId) -> Result<Follower, GateError> {
        let inner = &self.gate.0;
        check_running(&*inner_get(inner, id).await?)?;
        let follower = inner.live.follow(id).ok_or(Refused::NotRunning)?;
        // It may have ended in between, and then nobody would say so any more.
        if check_running(&*inner_get(inner, id).await?).is_err() {
            inner.live.end(&id);
        }
        Ok(follower)
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
