//! What was committed last, kept at hand so that waking a waiter or answering a decision reads no disk.
//! Bounded: large approvals and old ones are read from the store.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use countersign_gate::Committed;
use countersign_model::{Approval, ApprovalId};

const MAX_EVENTS: usize = 4096;
const MAX_APPROVALS: usize = 4096;
/// A request of more bytes than this is not kept.
pub(super) const MAX_REQUEST_BYTES: usize = 8 * 1024;

#[derive(Debug, Default)]
pub(super) struct Recent {
    events: VecDeque<Arc<Committed>>,
    approvals: HashMap<ApprovalId, Arc<Approval>>,
    order: VecDeque<ApprovalId>,
}

impl Recent {
    pub(super) fn approval(&self, id: &ApprovalId) -> Option<Arc<Approval>> {
        self.approvals.get(id).cloned()
    }

    /// Small ones only.
    pub(super) fn put_approval(&mut self, approval: Arc<Approval>) {
        let id = approval.id;
        if let Some(known) = self.approvals.get_mut(&id) {
            *known = approval;
            return;
        }
        self.approvals.insert(id, approval);
        self.order.push_back(id);
        if self.order.len() > MAX_APPROVALS
            && let Some(oldest) = self.order.pop_front()
        {
            self.approvals.remove(&oldest);
        }
    }

    /// After contents were removed from the store.
    pub(super) fn forget_approvals(&mut self) {
        self.approvals.clear();
        self.order.clear();
    }

    pub(super) fn push_event(&mut self, committed: Committed) {
        self.events.push_back(Arc::new(committed));
        if self.events.len() > MAX_EVENTS {
            self.events.pop_front();
        }
    }

    /// The events after `cursor`, if all of them are still here.
    pub(super) fn events_after(&self, cursor: u64, limit: usize) -> Option<Vec<Arc<Committed>>> {
        let first = self.events.front()?.event.seq;
        if cursor.checked_add(1)? < first {
            return None;
        }
        let skip = usize::try_from(cursor + 1 - first).ok()?;
        Some(self.events.iter().skip(skip).take(limit).cloned().collect())
    }
}
