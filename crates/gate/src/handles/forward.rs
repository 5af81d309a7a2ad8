//! What a way to another gate may do: read what is open, and bring back what was answered there.

use std::sync::Arc;

use countersign_model::{Answer, Approval, ApprovalId, Status, Timestamp};

use super::inner_get;
use crate::command::{Command, NewDecision, Refused};
use crate::error::GateError;
use crate::feed::Feed;
use crate::gate::{Gate, new_grant_id};
use crate::ports::{ListFilter, Listed, StoreError};

const VIA: &str = "forward";
const MAX_NAME: usize = 64;

#[derive(Clone, Debug)]
pub struct ForwardHandle {
    gate: Gate,
    /// The other gate, as it is called here.
    upstream: String,
}

impl ForwardHandle {
    pub(crate) fn new(gate: Gate, upstream: &str) -> Self {
        Self { gate, upstream: upstream.to_owned() }
    }

    pub fn now(&self) -> Timestamp {
        self.gate.now()
    }

    pub async fn get(&self, id: ApprovalId) -> Result<Option<Arc<Approval>>, StoreError> {
        self.gate.0.ledger.approval(id).await
    }

    pub async fn pending(&self, before: Option<u64>, limit: usize) -> Result<Vec<Listed>, StoreError> {
        self.gate.0.ledger.list(ListFilter { status: Some(Status::Pending), before, limit }).await
    }

    /// Where the record ends now.
    pub fn head(&self) -> u64 {
        *self.gate.0.ledger.head().borrow()
    }

    /// What happened since it had last got somewhere; from now on where it never had.
    pub async fn feed(&self) -> Result<Feed, StoreError> {
        let ledger = &self.gate.0.ledger;
        let after = match ledger.cursor(self.cursor()).await? {
            0 => self.head(),
            cursor => cursor,
        };
        Ok(Feed::after(ledger.clone(), after))
    }

    /// It has got so far.
    pub async fn seen(&self, seq: u64) -> Result<(), StoreError> {
        // A cursor is never refused.
        let _ = self.gate.0.ledger.submit(Command::PutCursor { name: self.cursor(), seq }).await?;
        Ok(())
    }

    /// What somebody there answered, on the record by their name and that gate's. If somebody here was first, their
    /// answer stands.
    pub async fn decide(&self, id: ApprovalId, answer: Answer, by: &str) -> Result<(), GateError> {
        let decided = match self.submit(id, answer.clone(), by).await {
            // Whoever typed it there was shown its risk there and confirmed it.
            Err(GateError::Refused(Refused::ConfirmRequired(replaced))) => {
                self.submit(id, Answer { confirm: Some(replaced.digest), ..answer }, by).await
            }
            other => other,
        };
        match decided {
            Ok(()) | Err(GateError::Refused(Refused::Finished(_))) => Ok(()),
            Err(other) => Err(other),
        }
    }

    async fn submit(&self, id: ApprovalId, answer: Answer, by: &str) -> Result<(), GateError> {
        let inner = &self.gate.0;
        let replaced = match &answer.replacement {
            Some(_) => {
                let replaced = inner_get(inner, id).await?.request.replaced_by(&answer, inner.rules().as_deref());
                replaced.map_err(|error| Refused::OverrideUnfit(error.to_string()))?
            }
            None => None,
        };
        let command = Command::Decide(Box::new(NewDecision {
            id,
            answer,
            by: format!("{}@{}", plain_name(by), self.upstream),
            via: VIA.to_owned(),
            grant_id: new_grant_id()?,
            host: None,
            key: None,
            replaced: replaced.map(Box::new),
        }));
        inner.submit(command).await.map(|_| ())
    }

    fn cursor(&self) -> String {
        format!("{VIA}:{}", self.upstream)
    }
}

/// A name as keys have them; whatever else the other gate sends is nobody's we know.
fn plain_name(name: &str) -> &str {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
    if !name.is_empty() && name.len() <= MAX_NAME && name.chars().all(plain) { name } else { "somebody" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_gate_cannot_name_its_people_as_it_likes() {
        assert_eq!(plain_name("bob.k-2"), "bob.k-2");
        for name in ["", "ann@here", "a b", "a\n", &"x".repeat(65)] {
            assert_eq!(plain_name(name), "somebody", "{name}");
        }
    }
}
