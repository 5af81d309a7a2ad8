//! Opening the store, and the `Ledger` port over it.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use countersign_gate::{
    AuditLine, BoxFuture, Clock, Command, Committed, Done, EntryUse, GrantFilter, Ledger, LedgerStats, ListFilter,
    Listed, Named, PolicyText, Refused, StoreError, Summary,
};
use countersign_model::{
    Approval, ApprovalId, Digest, Event, GENESIS, Grant, GrantId, KeyId, KeyRecord, StoredPolicy, Timestamp, Trust,
};
use parking_lot::Mutex;
use rusqlite::{Connection, OpenFlags, OptionalExtension, params};
use thiserror::Error;
use tokio::sync::{mpsc, oneshot, watch};

use super::copy_back::CopyBack;
use super::recent::Recent;
use super::rows::{
    read_approval, read_digest, read_entry_use, read_grant, read_key, read_trust, to_approval, to_summary, unavailable,
};
use super::writer::{Head, Job, Shared, Writer, hand_out, load_pending};
use crate::migrate::migrate;
use crate::sql;

/// Commands waiting for the writer before callers have to wait for a place.
const QUEUE: usize = 8192;
const STATEMENTS: usize = 64;
const IDLE_READERS: usize = 4;
/// Some other program holds the file: soon an error, so that nobody waits long for a no.
pub(super) const BUSY: Duration = Duration::from_secs(1);

#[derive(Debug, Error)]
pub enum OpenError {
    #[error("the store cannot be opened: {0}")]
    Sqlite(#[from] rusqlite::Error),
    #[error("the store was written by a newer version (schema {found}, this one knows {known}); use that version")]
    TooNew { found: usize, known: usize },
    #[error("the store's last event cannot be read: {0}; run `countersign audit verify`")]
    LastEvent(String),
    #[error("the writer thread cannot be started: {0}")]
    Thread(#[from] std::io::Error),
}

/// An opened and migrated file, before anything runs on it.
#[derive(Debug)]
pub struct Store {
    connection: Connection,
    path: PathBuf,
    head: Head,
}

impl Store {
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let mut connection = Connection::open(path)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.busy_timeout(BUSY)?;
        // What is written to stands at the ends of tables and indexes. SQLite walks its whole cache at a commit that moved
        // pages about, so a larger one costs more than it saves.
        connection.pragma_update(None, "cache_size", -4096)?;
        connection.pragma_update(None, "wal_autocheckpoint", 4000)?;
        migrate(&mut connection)?;
        let head = read_head(&connection)?;
        Ok(Self { connection, path: path.to_owned(), head })
    }

    /// The latest time the record knows.
    pub fn last_event_at(&self) -> Timestamp {
        self.head.at
    }
}

fn read_head(connection: &Connection) -> Result<Head, OpenError> {
    let last: Option<(u64, Vec<u8>, Digest)> = connection
        .query_row(sql::LAST_EVENT, [], |row| Ok((row.get(0)?, row.get(1)?, read_digest(row, 2)?)))
        .optional()?;
    let Some((seq, line, hash)) = last else {
        return Ok(Head { seq: 0, hash: GENESIS, at: Timestamp::from_millis(0) });
    };
    let event: Event = serde_json::from_slice(&line).map_err(|error| OpenError::LastEvent(error.to_string()))?;
    Ok(Head { seq, hash, at: event.at })
}

#[derive(Debug)]
pub struct SqliteLedger {
    jobs: Option<mpsc::Sender<Job>>,
    writer: Option<std::thread::JoinHandle<()>>,
    shared: Arc<Shared>,
    readers: Arc<Readers>,
}

impl SqliteLedger {
    /// Inside a runtime: the writer is a thread of its own, its answers are handed out by a task.
    pub fn start(store: Store, clock: Arc<dyn Clock>) -> Result<Self, OpenError> {
        let shared = Arc::new(Shared {
            recent: Mutex::new(Recent::default()),
            head: watch::Sender::new(store.head.seq),
            batches: AtomicU64::new(0),
            commands: AtomicU64::new(0),
            commit_nanos: AtomicU64::new(0),
            pending: AtomicU64::new(0),
            pending_bytes: AtomicU64::new(0),
        });
        let known = load_pending(&store.connection)?;
        shared.pending_is(&known);
        let (jobs, receiver) = mpsc::channel(QUEUE);
        let (answered, answers) = mpsc::unbounded_channel();
        tokio::spawn(hand_out(answers));
        let copy_back = CopyBack::start(&store.path)?;
        let writer = Writer::new(store.connection, copy_back, clock, shared.clone(), answered, store.head);
        let writer = std::thread::Builder::new().name("ledger".to_owned()).spawn(move || writer.run(receiver))?;
        Ok(Self {
            jobs: Some(jobs),
            writer: Some(writer),
            shared,
            readers: Arc::new(Readers { path: store.path, idle: Mutex::default() }),
        })
    }

    async fn send(&self, job: Job) -> Result<(), StoreError> {
        let jobs = self.jobs.as_ref().ok_or(StoreError::Closed)?;
        jobs.send(job).await.map_err(|_| StoreError::Closed)
    }

    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let readers = self.readers.clone();
        let done = tokio::task::spawn_blocking(move || readers.with(read)).await;
        done.map_err(|_| StoreError::Closed)?
    }
}

impl Drop for SqliteLedger {
    /// What was accepted is written before the store is let go.
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

impl Ledger for SqliteLedger {
    fn submit(&self, command: Command) -> BoxFuture<'_, Result<Result<Done, Refused>, StoreError>> {
        Box::pin(async move {
            let (answer, answered) = oneshot::channel();
            self.send(Job::Apply(Box::new(command), answer)).await?;
            answered.await.map_err(|_| StoreError::Closed)?
        })
    }

    fn approval(&self, id: ApprovalId) -> BoxFuture<'_, Result<Option<Arc<Approval>>, StoreError>> {
        Box::pin(async move {
            if let Some(approval) = self.shared.recent.lock().approval(&id) {
                return Ok(Some(approval));
            }
            self.read(move |connection| {
                let read = || {
                    let mut statement = connection.prepare_cached(sql::APPROVAL)?;
                    statement.query_row(params![id.as_bytes()], |row| read_approval(row, 0)).optional()
                };
                let row = read().map_err(|error| unavailable(&error))?;
                Ok(row.map(to_approval).transpose()?.map(Arc::new))
            })
            .await
        })
    }

    fn summary(&self, id: ApprovalId) -> BoxFuture<'_, Result<Option<Summary>, StoreError>> {
        Box::pin(async move {
            if let Some(approval) = self.shared.recent.lock().approval(&id) {
                return Ok(Some(Summary::new(approval)));
            }
            self.read(move |connection| {
                let read = || {
                    let mut statement = connection.prepare_cached(sql::SUMMARY)?;
                    statement.query_row(params![id.as_bytes()], |row| read_approval(row, 0)).optional()
                };
                let row = read().map_err(|error| unavailable(&error))?;
                row.map(to_summary).transpose()
            })
            .await
        })
    }

    fn list(&self, filter: ListFilter) -> BoxFuture<'_, Result<Vec<Listed>, StoreError>> {
        Box::pin(self.read(move |connection| {
            let before = filter.before.map_or(i64::MAX, |before| i64::try_from(before).unwrap_or(i64::MAX));
            // Each row is read into its summary before the next one is taken.
            let listed = |rows: &mut rusqlite::Rows<'_>| {
                let mut listed: Vec<Listed> = Vec::new();
                while let Some(row) = rows.next().map_err(|error| unavailable(&error))? {
                    let read = || Ok((row.get(0)?, read_approval(row, 1)?));
                    let (n, row) = read().map_err(|error: rusqlite::Error| unavailable(&error))?;
                    listed.push((n, to_summary(row)?));
                }
                Ok(listed)
            };
            let sql = if filter.status.is_some() { sql::LIST_BY_STATUS } else { sql::LIST };
            let mut statement = connection.prepare_cached(sql).map_err(|error| unavailable(&error))?;
            let rows = match filter.status {
                Some(status) => statement.query(params![status.as_str(), before, filter.limit]),
                None => statement.query(params![before, filter.limit]),
            };
            listed(&mut rows.map_err(|error| unavailable(&error))?)
        }))
    }

    fn events(&self, after: u64, limit: usize) -> BoxFuture<'_, Result<Vec<Arc<Committed>>, StoreError>> {
        Box::pin(async move {
            if let Some(events) = self.shared.recent.lock().events_after(after, limit) {
                return Ok(events);
            }
            let lines = self.audit(after, limit).await?;
            let read = |line: AuditLine| {
                let event = serde_json::from_slice(&line.line)
                    .map_err(|error| StoreError::Corrupt(format!("event {}: {error}", line.seq)))?;
                Ok(Arc::new(Committed { event, approval: None }))
            };
            lines.into_iter().map(read).collect()
        })
    }

    fn audit(&self, after: u64, limit: usize) -> BoxFuture<'_, Result<Vec<AuditLine>, StoreError>> {
        Box::pin(self.read(move |connection| {
            let read = || {
                let after = i64::try_from(after).unwrap_or(i64::MAX);
                let mut statement = connection.prepare_cached(sql::EVENTS_AFTER)?;
                let rows = statement.query_map(params![after, limit], |row| {
                    Ok(AuditLine { seq: row.get(0)?, line: row.get(1)?, hash: read_digest(row, 2)? })
                })?;
                rows.collect::<rusqlite::Result<_>>()
            };
            read().map_err(|error| unavailable(&error))
        }))
    }

    fn grants(&self, filter: GrantFilter) -> BoxFuture<'_, Result<Vec<Grant>, StoreError>> {
        Box::pin(self.read(move |connection| {
            let read = || {
                let mut statement = connection.prepare_cached(sql::ALL_GRANTS)?;
                let rows = statement.query_map([], read_grant)?;
                rows.collect::<rusqlite::Result<Vec<_>>>()
            };
            let mut grants = read().map_err(|error| unavailable(&error))?;
            grants.retain(|(client, grant)| {
                filter.client.is_none_or(|wanted| wanted == *client)
                    && (filter.include_ended || grant.revoked_at.is_none())
            });
            Ok(grants.into_iter().map(|(_, grant)| grant).collect())
        }))
    }

    fn grant(&self, id: GrantId) -> BoxFuture<'_, Result<Option<Grant>, StoreError>> {
        Box::pin(self.read(move |connection| {
            let read =
                || connection.prepare_cached(sql::GRANT)?.query_row(params![id.as_bytes()], read_grant).optional();
            Ok(read().map_err(|error| unavailable(&error))?.map(|(_, grant)| grant))
        }))
    }

    fn policy(&self, profile: String) -> BoxFuture<'_, Result<PolicyText, StoreError>> {
        Box::pin(self.read(move |connection| {
            let read =
                || connection.prepare_cached(sql::POLICY)?.query_row(params![profile], |row| row.get(0)).optional();
            let text: Option<String> = read().map_err(|error| unavailable(&error))?;
            let stored = text.as_deref().map_or_else(StoredPolicy::absent, StoredPolicy::from_text);
            Ok(PolicyText { stored: Arc::new(stored), text })
        }))
    }

    fn trusts(&self) -> BoxFuture<'_, Result<Vec<Trust>, StoreError>> {
        Box::pin(self.read(|connection| {
            let read = || {
                let mut statement = connection.prepare_cached(sql::ALL_TRUSTS)?;
                statement.query_map([], read_trust)?.collect::<rusqlite::Result<_>>()
            };
            read().map_err(|error| unavailable(&error))
        }))
    }

    fn trust(&self, workspace: String) -> BoxFuture<'_, Result<Option<Trust>, StoreError>> {
        Box::pin(self.read(move |connection| {
            let read = || connection.prepare_cached(sql::TRUST)?.query_row(params![workspace], read_trust).optional();
            read().map_err(|error| unavailable(&error))
        }))
    }

    fn keys(&self) -> BoxFuture<'_, Result<Vec<KeyRecord>, StoreError>> {
        Box::pin(self.read(|connection| {
            let read = || {
                let mut statement = connection.prepare_cached(sql::KEYS)?;
                let rows = statement.query_map([], read_key)?;
                rows.collect::<rusqlite::Result<_>>()
            };
            read().map_err(|error| unavailable(&error))
        }))
    }

    fn cursor(&self, name: String) -> BoxFuture<'_, Result<u64, StoreError>> {
        Box::pin(self.read(move |connection| {
            let read = || connection.prepare_cached(sql::CURSOR)?.query_row(params![name], |row| row.get(0)).optional();
            Ok(read().map_err(|error| unavailable(&error))?.unwrap_or(0))
        }))
    }

    fn named(&self, alias: String, client: Option<KeyId>) -> BoxFuture<'_, Result<Named, StoreError>> {
        Box::pin(self.read(move |connection| {
            let one = |row: &rusqlite::Row<'_>| Ok(Named::One(ApprovalId::from_random(row.get(0)?)));
            let read = || match client {
                Some(client) => {
                    connection.prepare_cached(sql::NAMED)?.query_row(params![alias, client.as_bytes()], one).optional()
                }
                None => connection
                    .prepare_cached(sql::NAMED_FOR_PEOPLE)?
                    .query_row(params![alias], |row| if row.get(1)? { one(row) } else { Ok(Named::Several) })
                    .optional(),
            };
            Ok(read().map_err(|error| unavailable(&error))?.unwrap_or(Named::Nothing))
        }))
    }

    fn shared_names(&self, aliases: Vec<String>) -> BoxFuture<'_, Result<HashSet<String>, StoreError>> {
        Box::pin(self.read(move |connection| {
            let read = || {
                let mut statement = connection.prepare_cached(sql::CLIENTS_OF_NAME)?;
                let mut shared = HashSet::new();
                for alias in aliases {
                    if statement.query_row(params![alias], |row| row.get::<_, u64>(0))? > 1 {
                        shared.insert(alias);
                    }
                }
                Ok(shared)
            };
            read().map_err(|error: rusqlite::Error| unavailable(&error))
        }))
    }

    fn entry_uses(&self, profile: String) -> BoxFuture<'_, Result<Vec<EntryUse>, StoreError>> {
        Box::pin(self.read(move |connection| {
            let read = || {
                let mut statement = connection.prepare_cached(sql::ENTRY_USES)?;
                statement.query_map(params![profile], read_entry_use)?.collect::<rusqlite::Result<_>>()
            };
            read().map_err(|error| unavailable(&error))
        }))
    }

    fn next_deadline(&self) -> BoxFuture<'_, Result<Option<Timestamp>, StoreError>> {
        Box::pin(self.read(|connection| {
            let read =
                || connection.prepare_cached(sql::NEXT_DEADLINE)?.query_row([], |row| row.get::<_, Option<i64>>(0));
            Ok(read().map_err(|error| unavailable(&error))?.map(Timestamp::from_millis))
        }))
    }

    fn head(&self) -> watch::Receiver<u64> {
        self.shared.head.subscribe()
    }

    fn probe(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            let (answer, answered) = oneshot::channel();
            self.send(Job::Probe(answer)).await?;
            answered.await.map_err(|_| StoreError::Closed)?
        })
    }

    fn stats(&self) -> LedgerStats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        LedgerStats {
            batches: read(&self.shared.batches),
            commands: read(&self.shared.commands),
            commit_nanos: read(&self.shared.commit_nanos),
            pending: read(&self.shared.pending),
            pending_bytes: read(&self.shared.pending_bytes),
        }
    }
}

/// Connections that only read, a few kept open.
#[derive(Debug)]
struct Readers {
    path: PathBuf,
    idle: Mutex<Vec<Connection>>,
}

impl Readers {
    fn with<T>(&self, read: impl FnOnce(&Connection) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let idle = self.idle.lock().pop();
        let connection = match idle {
            Some(connection) => connection,
            None => self.open().map_err(|error| unavailable(&error))?,
        };
        let result = read(&connection);
        let mut idle = self.idle.lock();
        if result.is_ok() && idle.len() < IDLE_READERS {
            idle.push(connection);
        }
        result
    }

    fn open(&self) -> rusqlite::Result<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&self.path, flags)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        connection.busy_timeout(BUSY)?;
        Ok(connection)
    }
}
