//! Deadlines run on one timer: the earliest in the store. Nothing about them is kept in memory, so a
//! hundred thousand pending ones cost nothing and a restart recomputes them by asking.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use countersign_model::Timestamp;
use tokio::sync::Notify;

use crate::command::{Command, Done};
use crate::ports::{Clock, Ledger};

const BATCH: usize = 512;
const RETRY_MS: u64 = 1000;

/// When the timer will wake, so that only an earlier deadline need wake it now.
#[derive(Debug)]
pub(crate) struct Alarm {
    wakes_at: AtomicI64,
    earlier: Notify,
}

impl Default for Alarm {
    fn default() -> Self {
        Self { wakes_at: AtomicI64::new(i64::MAX), earlier: Notify::new() }
    }
}

impl Alarm {
    /// To be called after the approval with this deadline was committed.
    pub(crate) fn deadline_set(&self, at: Timestamp) {
        if at.as_millis() < self.wakes_at.load(Ordering::SeqCst) {
            self.earlier.notify_one();
        }
    }
}

/// Runs until it is aborted.
pub(crate) async fn run(ledger: Arc<dyn Ledger>, clock: Arc<dyn Clock>, alarm: Arc<Alarm>) {
    loop {
        // INVARIANT: from here until the store has been asked, any deadline counts as earlier; one that the
        // answer does not hold yet has left a notice by then.
        alarm.wakes_at.store(i64::MAX, Ordering::SeqCst);
        let next = match ledger.next_deadline().await {
            Ok(next) => next,
            Err(error) => {
                tracing::warn!(%error, "deadlines cannot be read; trying again");
                Some(clock.now().plus_millis(RETRY_MS))
            }
        };
        alarm.wakes_at.store(next.map_or(i64::MAX, Timestamp::as_millis), Ordering::SeqCst);
        let due = async {
            match next {
                Some(at) => clock.sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = due => expire_all_due(&*ledger, &*clock).await,
            () = alarm.earlier.notified() => {}
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
