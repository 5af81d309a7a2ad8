//! What the program beside an engine may do: answer for what its own engine asks, where policy lets it.

use std::sync::Arc;

use countersign_model::{Answer, Approval, ApprovalId, Choice, Door, Mode, host_may_decide, max_mode};

use super::agent::AgentHandle;
use super::changed;
use crate::command::{Command, NewDecision, Refused};
use crate::error::GateError;
use crate::gate::new_grant_id;

/// How far an engine of this key may go by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineRights {
    pub host_may_decide: bool,
    pub max_mode: Mode,
}

/// A host's answer. It has no way to change what was asked, to confirm a change or to write a workspace's file.
#[derive(Clone, Debug)]
pub struct HostAnswer {
    pub choice: Choice,
    pub note: Option<String>,
    pub answer: Option<String>,
    pub prefix: Option<String>,
}

impl AgentHandle {
    pub async fn engine_rights(&self) -> Result<EngineRights, GateError> {
        let stored = self.inner().ledger.policy(self.requester.profile.clone()).await?.stored;
        let Ok(policy) = &stored.policy else {
            return Ok(EngineRights { host_may_decide: false, max_mode: Mode::Default });
        };
        Ok(EngineRights {
            host_may_decide: host_may_decide(policy, self.holds_store),
            max_mode: max_mode(policy, self.holds_store),
        })
    }

    /// Answers a request of its own as the host beside the engine. Whether it may is ruled where the answer is written,
    /// by the policy as it is then.
    pub async fn decide_as_host(&self, id: ApprovalId, host: HostAnswer) -> Result<Arc<Approval>, GateError> {
        let answer = Answer { note: host.note, answer: host.answer, prefix: host.prefix, ..Answer::plain(host.choice) };
        if self.get(id).await?.request.engine.is_none() {
            return Err(Refused::HostMayNotDecide.into());
        }
        let command = Command::Decide(Box::new(NewDecision {
            id,
            answer,
            replaced: None,
            by: format!("host:{}", self.requester.name),
            via: Door::Engine.as_str().to_owned(),
            grant_id: new_grant_id()?,
            host: Some(self.requester.key_id),
            key: None,
        }));
        changed(self.inner().submit(command).await?)
    }
}
