//! Tasks that follow the record for as long as the gate runs.

use std::sync::{Arc, Weak};

use countersign_model::{EventBody, EventKind, Status, Timestamp};

use crate::command::{Command, Done};
use crate::feed::Feed;
use crate::gate::Inner;
use crate::ports::{Clock, Committed, Ledger, StoreError};

const SWEEP_EVERY_MS: u64 = 3600 * 1000;
const SWEEP_BATCH: usize = 1000;

/// Wakes waiters and refreshes keys from what was committed, and from nothing else.
pub(crate) async fn wake_and_refresh(gate: Weak<Inner>, mut feed: Feed) {
    while let Some(events) = feed.next_in_time().await {
        let Some(gate) = gate.upgrade() else { return };
        for committed in events {
            if let Err(error) = on_event(&gate, &committed).await {
                tracing::warn!(%error, "a waiter could not be told; it will ask again");
            }
        }
    }
}

async fn on_event(gate: &Inner, committed: &Committed) -> Result<(), StoreError> {
    match committed.event.body.kind() {
        EventKind::Resolved => {
            let Some(id) = committed.event.body.approval_id() else { return Ok(()) };
            if !gate.waiters.is_waited_for(&id) {
                return Ok(());
            }
            let approval = match &committed.approval {
                Some(approval) => Some(approval.clone()),
                None => gate.ledger.approval(id).await?,
            };
            if let Some(approval) = approval.filter(|approval| approval.status() != Status::Pending) {
                gate.waiters.wake(&approval);
            }
        }
        EventKind::KeyMade | EventKind::KeyRevoked => gate.refresh_keys().await?,
        EventKind::StopAsked => {
            if let EventBody::StopAsked { approval_id, by } = &committed.event.body {
                gate.stops.ask(*approval_id, by);
            }
        }
        EventKind::Ran => {
            if let Some(id) = committed.event.body.approval_id() {
                gate.stops.forget(&id);
                gate.live.end(&id);
            }
        }
        EventKind::Requested
        | EventKind::Ruled
        | EventKind::Consumed
        | EventKind::WrongNumber
        | EventKind::GrantMade
        | EventKind::GrantRevoked
        | EventKind::PolicyPut
        | EventKind::NodeBound
        | EventKind::Trusted
        | EventKind::Untrusted
        | EventKind::Swept => {}
    }
    Ok(())
}

/// Removes contents that are older than the operator wants them kept.
pub(crate) async fn sweep(ledger: Arc<dyn Ledger>, clock: Arc<dyn Clock>, keep_ms: u64) {
    loop {
        let before = Timestamp::from_millis(clock.now().as_millis() - i64::try_from(keep_ms).unwrap_or(i64::MAX));
        match ledger.submit(Command::Sweep { before, limit: SWEEP_BATCH }).await {
            Ok(Ok(Done::Swept(count))) if count >= SWEEP_BATCH as u64 => continue,
            Ok(Ok(_)) => {}
            Ok(Err(error)) => tracing::warn!(%error, "old contents were not removed"),
            Err(error) => tracing::warn!(%error, "old contents were not removed"),
        }
        clock.sleep_until(clock.now().plus_millis(SWEEP_EVERY_MS)).await;
    }
}
