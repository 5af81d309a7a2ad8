//! Deadlines run on one timer: the earliest in the store. Nothing about them is kept in memory, so a
//! hundred thousand pending ones cost nothing and a restart recomputes them by asking.

use std::sync::Arc;

use countersign_model::Timestamp;
use tokio::sync::watch;

use crate::command::{Command, Done};
use crate::ports::{Clock, Ledger};

const BATCH: usize = 512;
const RETRY_MS: u64 = 1000;

/// Runs until the gate goes away. `nudge` carries the deadline of each new approval.
pub(crate) async fn run(ledger: Arc<dyn Ledger>, clock: Arc<dyn Clock>, mut nudge: watch::Receiver<Timestamp>) {
    loop {
        nudge.borrow_and_update();
        let next = match ledger.next_deadline().await {
            Ok(next) => next,
            Err(error) => {
                tracing::warn!(%error, "deadlines cannot be read; trying again");
                Some(clock.now().plus_millis(RETRY_MS))
            }
        };
        if !sleep_until_due(&*clock, next, &mut nudge).await {
            return;
        }
        expire_all_due(&*ledger, &*clock).await;
    }
}

/// Answers false when the gate is gone.
async fn sleep_until_due(clock: &dyn Clock, next: Option<Timestamp>, nudge: &mut watch::Receiver<Timestamp>) -> bool {
    let mut wake = next;
    loop {
        let sleep = async {
            match wake {
                Some(at) => clock.sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = sleep => return true,
            changed = nudge.changed() => {
                if changed.is_err() {
                    return false;
                }
                let earlier = *nudge.borrow_and_update();
                wake = Some(wake.map_or(earlier, |at| at.min(earlier)));
            }
        }
    }
}

async fn expire_all_due(ledger: &dyn Ledger, clock: &dyn Clock) {
    loop {
        match ledger.submit(Command::ExpireDue { limit: BATCH }).await {
            Ok(Ok(Done::Expired { count })) if count >= BATCH => {}
            Ok(_) => return,
            Err(error) => {
                // Nothing runs meanwhile: a decision on an overdue row is refused by the row's own deadline.
                tracing::warn!(%error, "expiry could not be written; trying again");
                clock.sleep_until(clock.now().plus_millis(RETRY_MS)).await;
            }
        }
    }
}
