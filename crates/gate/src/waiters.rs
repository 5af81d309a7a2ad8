//! Who waits for which approval. A parked waiter is a map entry and a channel, not a task with a stack.

use std::collections::HashMap;
use std::sync::Arc;

use countersign_model::{Approval, ApprovalId};
use parking_lot::Mutex;
use tokio::sync::oneshot;

/// A std-style mutex: every hold is a few map operations, never across an await.
#[derive(Debug, Default)]
pub(crate) struct Waiters(Mutex<HashMap<ApprovalId, Vec<oneshot::Sender<Arc<Approval>>>>>);

/// Leaves the table when the waiter goes away.
pub(crate) struct Waiting<'a> {
    table: &'a Waiters,
    id: ApprovalId,
    pub(crate) receiver: oneshot::Receiver<Arc<Approval>>,
}

impl Waiters {
    /// To be called before the state is read: what ends after that wakes the waiter.
    pub(crate) fn register(&self, id: ApprovalId) -> Waiting<'_> {
        let (sender, receiver) = oneshot::channel();
        self.0.lock().entry(id).or_default().push(sender);
        Waiting { table: self, id, receiver }
    }

    pub(crate) fn is_waited_for(&self, id: &ApprovalId) -> bool {
        self.0.lock().contains_key(id)
    }

    pub(crate) fn wake(&self, approval: &Arc<Approval>) {
        let senders = self.0.lock().remove(&approval.id);
        for sender in senders.into_iter().flatten() {
            // A waiter that just left has no use for it.
            let _ = sender.send(approval.clone());
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.0.lock().values().map(Vec::len).sum()
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.receiver.close();
        let mut table = self.table.0.lock();
        if let Some(senders) = table.get_mut(&self.id) {
            senders.retain(|sender| !sender.is_closed());
            if senders.is_empty() {
                table.remove(&self.id);
            }
        }
    }
}
