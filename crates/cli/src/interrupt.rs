//! Signals that end a command, as a call in this process instead of the end of it.

use std::thread;

use anyhow::Context;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Calls `then` with `128 + n` for the first such signal.
pub fn on_signal(then: impl FnOnce(u8) + Send + 'static) -> anyhow::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).context("signals cannot be waited for on this system")?;
    thread::spawn(move || {
        if let Some(number) = signals.forever().next() {
            then(128u8.saturating_add(u8::try_from(number).unwrap_or(0)));
        }
    });
    Ok(())
}
