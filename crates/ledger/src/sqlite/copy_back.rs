//! Copies the log back into the store beside the writer. The writer still does what is left when the log is at its limit,
//! since only then can it begin anew; but callers no longer wait for all of it.

use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use rusqlite::Connection;

use super::ledger::{BUSY, OpenError};

/// After this many commands it is worth looking how long the log is.
const LOOK_AFTER: usize = 256;
/// Pages of the log that are worth copying back at once: a page that was written often is copied once.
const WORTHWHILE: i64 = 2000;

#[derive(Debug)]
pub(super) struct CopyBack {
    look: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
    commands: usize,
}

impl CopyBack {
    pub(super) fn start(path: &Path) -> Result<Self, OpenError> {
        let connection = Connection::open(path)?;
        // The log must be on the disk before it is copied, and the copy before the log is written over.
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.busy_timeout(BUSY)?;
        let (look, looks) = sync_channel(1);
        let thread =
            std::thread::Builder::new().name("copy-back".to_owned()).spawn(move || run(&connection, &looks))?;
        Ok(Self { look: Some(look), thread: Some(thread), commands: 0 })
    }

    /// To be called after a commit. Never waits.
    pub(super) fn committed(&mut self, commands: usize) {
        self.commands += commands;
        if self.commands >= LOOK_AFTER
            && let Some(look) = &self.look
        {
            self.commands = 0;
            // One that is at work will look again by itself.
            let _ = look.try_send(());
        }
    }
}

impl Drop for CopyBack {
    fn drop(&mut self) {
        self.look = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run(connection: &Connection, looks: &Receiver<()>) {
    while looks.recv().is_ok() {
        // Whatever keeps it from working keeps the writer from it too, which says so when a commit fails.
        if waiting_pages(connection).is_ok_and(|pages| pages >= WORTHWHILE) {
            let _ = checkpoint(connection, "PASSIVE");
        }
    }
}

/// Pages in the log that are not in the store yet.
fn waiting_pages(connection: &Connection) -> rusqlite::Result<i64> {
    checkpoint(connection, "NOOP").map(|(log, copied)| log - copied)
}

/// Pages in the log, and how many of them are in the store.
fn checkpoint(connection: &Connection, mode: &str) -> rusqlite::Result<(i64, i64)> {
    let mut statement = connection.prepare_cached(&format!("PRAGMA wal_checkpoint({mode})"))?;
    statement.query_row([], |row| Ok((row.get(1)?, row.get(2)?)))
}
