//! The feed: the record's events after a cursor, in order, none left out.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::ports::{Committed, Ledger, StoreError};

const PAGE: usize = 512;
const RETRY: Duration = Duration::from_millis(200);

#[derive(Debug)]
pub struct Feed {
    ledger: LedgerRef,
    head: watch::Receiver<u64>,
    cursor: u64,
}

struct LedgerRef(Arc<dyn Ledger>);

impl std::fmt::Debug for LedgerRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Ledger")
    }
}

impl Feed {
    pub fn after(ledger: Arc<dyn Ledger>, cursor: u64) -> Self {
        let head = ledger.head();
        Self { ledger: LedgerRef(ledger), head, cursor }
    }

    /// Waits for the next events. Cancel-safe: what was not returned is returned next time.
    pub async fn next(&mut self) -> Result<Vec<Arc<Committed>>, StoreError> {
        loop {
            if *self.head.borrow_and_update() > self.cursor {
                let events = self.ledger.0.events(self.cursor, PAGE).await?;
                if let Some(last) = events.last() {
                    self.cursor = last.event.seq;
                    return Ok(events);
                }
            }
            self.head.changed().await.map_err(|_| StoreError::Closed)?;
        }
    }

    /// The same, where a store that cannot be read now is waited for; nothing once it is shut down.
    pub async fn next_in_time(&mut self) -> Option<Vec<Arc<Committed>>> {
        loop {
            match self.next().await {
                Ok(events) => return Some(events),
                Err(StoreError::Closed) => return None,
                Err(error) => {
                    tracing::warn!(%error, "the feed cannot be read; trying again");
                    tokio::time::sleep(RETRY).await;
                }
            }
        }
    }
}
