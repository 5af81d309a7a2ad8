//! What the disk and SQLite can do without a gate: raw rows of the same size at the same durability, and a
//! flush alone.

use std::fs::{File, OpenOptions};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;
use rusqlite::{Connection, OpenFlags, params};

use crate::report::Samples;

/// The log's length at which the gate's store starts it over, in bytes: 4000 pages with their frame headers.
const WAL_BYTES: u64 = 4000 * (4096 + 24);
const PAGE: usize = 4096;
const FLUSHES: usize = 100;

/// Average bytes of what the gate wrote, column by column.
#[derive(Clone, Copy, Debug)]
pub struct RowSizes {
    approval: usize,
    outcome: usize,
    event: usize,
}

impl RowSizes {
    pub fn of_store(store: &Path) -> anyhow::Result<Self> {
        let connection = Connection::open_with_flags(store, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        let average = |sql: &str| -> anyhow::Result<usize> {
            let bytes: f64 = connection.query_row(sql, [], |row| row.get(0))?;
            Ok(bytes as usize)
        };
        let newest = "FROM approvals WHERE outcome IS NOT NULL ORDER BY n DESC LIMIT 1000";
        Ok(Self {
            // Besides the texts: two ids, the status and three times.
            approval: 70
                + average(&format!(
                    "SELECT avg(bytes) FROM (SELECT length(request) + length(terms) AS bytes {newest})"
                ))?,
            outcome: average(&format!("SELECT avg(bytes) FROM (SELECT length(outcome) AS bytes {newest})"))?,
            event: average(
                "SELECT avg(length(line) + length(hash)) FROM (SELECT * FROM events ORDER BY seq DESC LIMIT 1000)",
            )?,
        })
    }

    pub fn describe(&self) -> String {
        format!("approval {} B, outcome {} B, event {} B", self.approval, self.outcome, self.event)
    }
}

/// Two plain tables without any index of their own, written as the gate's are.
#[derive(Debug)]
pub struct RawStore {
    connection: Connection,
    sizes: RowSizes,
}

impl RawStore {
    pub fn open(path: &Path, sizes: RowSizes) -> anyhow::Result<Self> {
        let connection = Connection::open(path)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "cache_size", -16_384)?;
        connection.pragma_update(None, "wal_autocheckpoint", 4000)?;
        connection.execute_batch(
            "CREATE TABLE approvals (n INTEGER PRIMARY KEY, body BLOB NOT NULL);
             CREATE TABLE events (n INTEGER PRIMARY KEY, body BLOB NOT NULL);",
        )?;
        Ok(Self { connection, sizes })
    }

    /// Commands a second: every other one a create (an approval and its event), the rest a decision (an
    /// outcome and its event), `batch` of them to a commit.
    pub fn commands(&self, batch: usize, time: Duration) -> anyhow::Result<f64> {
        let (approval, outcome) = (vec![7u8; self.sizes.approval], vec![7u8; self.sizes.outcome]);
        let event = vec![7u8; self.sizes.event];
        let started = Instant::now();
        let mut done = 0usize;
        while started.elapsed() < time {
            self.connection.execute_batch("BEGIN IMMEDIATE")?;
            let mut insert = self.connection.prepare_cached("INSERT INTO approvals (body) VALUES (?1)")?;
            let mut append = self.connection.prepare_cached("INSERT INTO events (body) VALUES (?1)")?;
            for _ in 0..batch {
                insert.execute(params![if done.is_multiple_of(2) { &approval } else { &outcome }])?;
                append.execute(params![event])?;
                done += 1;
            }
            self.connection.execute_batch("COMMIT")?;
        }
        Ok(done as f64 / started.elapsed().as_secs_f64())
    }
}

/// Whether a store's log has reached the length at which it is written over instead of grown: growing a file
/// costs more to flush, and a gate that has run for a while does not do it.
pub fn log_is_grown(store: &Path) -> bool {
    let mut log = store.as_os_str().to_owned();
    log.push("-wal");
    std::fs::metadata(log).is_ok_and(|log| log.len() >= WAL_BYTES)
}

/// One flush of a few pages, on a file that is written over and on one that grows.
#[derive(Debug)]
pub struct Disk {
    file: File,
    path: PathBuf,
}

impl Disk {
    pub fn open(path: PathBuf) -> anyhow::Result<Self> {
        let file = OpenOptions::new().create(true).truncate(true).read(true).write(true).open(&path)?;
        let mut disk = Self { file, path };
        disk.flushes(false)?;
        Ok(disk)
    }

    pub fn overwriting(&mut self) -> anyhow::Result<Samples> {
        self.file.seek(SeekFrom::Start(0))?;
        self.flushes(true)
    }

    pub fn growing(&mut self) -> anyhow::Result<Samples> {
        let path = self.path.with_extension("grown");
        let file = File::create(&path)?;
        let samples = Self { file, path: path.clone() }.flushes(true);
        std::fs::remove_file(path).context("cannot remove a scratch file")?;
        samples
    }

    fn flushes(&mut self, each: bool) -> anyhow::Result<Samples> {
        let pages = [7u8; 4 * PAGE];
        let mut samples = Samples::default();
        for _ in 0..FLUSHES {
            let started = Instant::now();
            self.file.write_all(&pages)?;
            if each {
                self.file.sync_all()?;
                samples.push(started.elapsed());
            }
        }
        self.file.sync_all()?;
        Ok(samples)
    }
}
