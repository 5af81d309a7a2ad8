//! One task that sleeps until the nearest deadline. A sweep at an interval would let a call outlive its time.

use std::sync::Weak;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::ToolApprovalManager;

/// Whoever holds the manager only by this task has let go of it; how long that may go unnoticed.
const LET_GO: Duration = Duration::from_secs(60);

pub(super) async fn run(manager: Weak<ToolApprovalManager>, interval: Duration) {
    loop {
        let Some(held) = manager.upgrade() else { return };
        held.reap_now();
        let latest = Instant::now() + interval.min(LET_GO);
        let due = held.next_deadline().map_or(latest, |deadline| deadline.min(latest));
        tokio::select! {
            () = sleep_until(due) => {}
            () = held.earlier.notified() => {}
        }
    }
}
