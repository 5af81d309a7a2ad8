//! A clock that tests move by hand.

use countersign_gate::{BoxFuture, Clock};
use countersign_model::Timestamp;
use tokio::sync::watch;

#[derive(Debug)]
pub struct SimClock(watch::Sender<Timestamp>);

impl Default for SimClock {
    fn default() -> Self {
        Self(watch::Sender::new(Timestamp::from_millis(1_700_000_000_000)))
    }
}

impl SimClock {
    pub fn advance(&self, millis: u64) {
        self.0.send_modify(|now| *now = now.plus_millis(millis));
    }

    /// Somebody sets the machine's clock, either way.
    pub fn set(&self, at: Timestamp) {
        self.0.send_replace(at);
    }
}

impl Clock for SimClock {
    fn now(&self) -> Timestamp {
        *self.0.borrow()
    }

    fn sleep_until(&self, at: Timestamp) -> BoxFuture<'_, ()> {
        let mut now = self.0.subscribe();
        Box::pin(async move {
            // The sender is `self`: it cannot go away while this waits.
            let _ = now.wait_for(|now| *now >= at).await;
        })
    }

    fn sleep_for(&self, millis: u64) -> BoxFuture<'_, ()> {
        self.sleep_until(self.now().plus_millis(millis))
    }
}
