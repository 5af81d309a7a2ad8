//! Signals that end a command, as a call in this process instead of the end of it.
//!
//! The one asynchronous piece outside `serve`: it starts only once a command waits for a person, on a thread of
//! its own, so that no short command pays for it.

use std::thread;

use anyhow::Context;
use tokio::signal::unix::{SignalKind, signal};

/// Calls `then` with `128 + n` for the first such signal.
pub fn on_signal(then: impl FnOnce(u8) + Send + 'static) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()
        .context("signals cannot be waited for on this system")?;
    let guard = runtime.enter();
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    drop(guard);
    thread::spawn(move || {
        let number = runtime.block_on(async {
            tokio::select! {
                _ = interrupt.recv() => 2,
                _ = terminate.recv() => 15,
                _ = hangup.recv() => 1,
            }
        });
        then(128 + number);
    });
    Ok(())
}
