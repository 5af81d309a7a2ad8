//! Carries the feed to each channel, from where that channel had got to, until it says it has it.

use std::sync::Arc;

use crate::command::Command;
use crate::feed::Feed;
use crate::ports::{Channel, Clock, Committed, Ledger, StoreError};

const FIRST_RETRY_MS: u64 = 500;
const LAST_RETRY_MS: u64 = 60_000;

/// One task a channel. A crash between commit and delivery loses nothing: the cursor is behind.
pub(crate) async fn follow(ledger: Arc<dyn Ledger>, clock: Arc<dyn Clock>, channel: Arc<dyn Channel>) {
    loop {
        match follow_from_cursor(&ledger, &*clock, &*channel).await {
            Ok(()) | Err(StoreError::Closed) => return,
            Err(error) => {
                tracing::warn!(channel = channel.name(), %error, "the feed cannot be read; trying again");
                clock.sleep_until(clock.now().plus_millis(FIRST_RETRY_MS)).await;
            }
        }
    }
}

async fn follow_from_cursor(
    ledger: &Arc<dyn Ledger>,
    clock: &dyn Clock,
    channel: &dyn Channel,
) -> Result<(), StoreError> {
    let cursor = ledger.cursor(channel.name().to_owned()).await?;
    let mut feed = Feed::after(ledger.clone(), cursor);
    loop {
        for committed in feed.next().await? {
            deliver(clock, channel, &committed).await;
            let seen = Command::PutCursor { name: channel.name().to_owned(), seq: committed.event.seq };
            // A cursor is never refused.
            let _ = ledger.submit(seen).await?;
        }
    }
}

async fn deliver(clock: &dyn Clock, channel: &dyn Channel, committed: &Committed) {
    let mut wait = FIRST_RETRY_MS;
    while let Err(error) = channel.deliver(committed).await {
        tracing::warn!(channel = channel.name(), seq = committed.event.seq, %error, "will deliver again");
        clock.sleep_until(clock.now().plus_millis(wait)).await;
        wait = (wait * 2).min(LAST_RETRY_MS);
    }
}
