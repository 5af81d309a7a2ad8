//! The way to the host: one line at a time, whole and at once, from whichever thread has something to say.

use std::io::{self, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

use countersign_engine::Event;
use parking_lot::Mutex;

/// Standard output, which belongs to the protocol alone. A host that does not read holds up whoever writes.
#[derive(Debug)]
pub struct Out {
    stdout: Mutex<io::Stdout>,
    gone: AtomicBool,
}

impl Default for Out {
    fn default() -> Self {
        Self { stdout: Mutex::new(io::stdout()), gone: AtomicBool::new(false) }
    }
}

impl Out {
    pub fn send(&self, event: &Event) {
        self.write(event.to_line().as_bytes());
    }

    /// Bytes of whole lines.
    pub fn write(&self, bytes: &[u8]) {
        let mut stdout = self.stdout.lock();
        if stdout.write_all(bytes).and_then(|()| stdout.flush()).is_err() {
            self.gone.store(true, Ordering::SeqCst);
        }
    }

    /// Several events with nothing in between.
    pub fn send_all(&self, events: &[Event]) {
        self.write(events.iter().map(Event::to_line).collect::<String>().as_bytes());
    }

    pub fn error(&self, code: &str, message: impl Into<String>, retryable: bool) {
        self.send(&Event::error(code, message, retryable));
    }

    /// Nobody reads any more, as somebody found out.
    pub fn give_up(&self) {
        self.gone.store(true, Ordering::SeqCst);
    }

    /// Whether nobody reads any more.
    pub fn is_gone(&self) -> bool {
        self.gone.load(Ordering::SeqCst)
    }
}
