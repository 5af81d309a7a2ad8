//! The one thread that writes. It takes all commands that are waiting, runs them in one transaction, and
//! answers each after the commit: many waiters share one disk flush, and nothing is acknowledged before it
//! is durable.

use std::collections::HashMap;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use countersign_gate::{Clock, Command, Committed, DENIAL_MEMORY_MS, Done, Refused, StoreError, apply};
use countersign_model::{Approval, ApprovalId, Digest, Event, EventBody, KeyId, Timestamp};
use parking_lot::Mutex;
use rusqlite::{Connection, params};
use tokio::sync::{mpsc, oneshot, watch};

use super::copy_back::CopyBack;
use super::recent::Recent;
use super::rows::{read_denial, unavailable};
use super::tx::{Known, Pending, SqliteTx};
use crate::sql;

const MAX_BATCH: usize = 1024;

pub(super) type Answer = Result<Result<Done, Refused>, StoreError>;

/// The callers of one committed batch, each with its answer.
pub(super) type Answered = Vec<(oneshot::Sender<Answer>, Answer)>;

/// Hands the answers of each batch to their callers, inside the runtime where waking is cheap.
pub(super) async fn hand_out(mut batches: mpsc::UnboundedReceiver<Answered>) {
    while let Some(batch) = batches.recv().await {
        for (caller, answer) in batch {
            // A caller that went away does not undo what was committed.
            let _ = caller.send(answer);
        }
    }
}

pub(super) enum Job {
    Apply(Box<Command>, oneshot::Sender<Answer>),
    Probe(oneshot::Sender<Result<(), StoreError>>),
}

/// Seen by the writer and by readers.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) recent: Mutex<Recent>,
    pub(super) head: watch::Sender<u64>,
    pub(super) batches: AtomicU64,
    pub(super) commands: AtomicU64,
    pub(super) commit_nanos: AtomicU64,
    pub(super) pending: AtomicU64,
    pub(super) pending_bytes: AtomicU64,
}

impl Shared {
    pub(super) fn pending_is(&self, known: &Known) {
        self.pending.store(known.pending.values().map(|pending| pending.count).sum(), Ordering::Relaxed);
        self.pending_bytes.store(known.pending_bytes, Ordering::Relaxed);
    }
}

/// The end of the chain, to which the next event is linked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    pub(super) seq: u64,
    pub(super) hash: Digest,
    pub(super) at: Timestamp,
}

/// What a committed transaction leaves to be told.
struct Written {
    results: Vec<Result<Done, Refused>>,
    committed: Vec<Committed>,
    touched: HashMap<ApprovalId, Arc<Approval>>,
    swept: bool,
    head: Head,
}

pub(super) struct Writer {
    connection: Connection,
    copy_back: CopyBack,
    clock: Arc<dyn Clock>,
    shared: Arc<Shared>,
    answered: mpsc::UnboundedSender<Answered>,
    head: Head,
    /// `None` after a batch was given up: what was known may no longer be so.
    known: Option<Known>,
}

impl Writer {
    pub(super) fn new(
        connection: Connection,
        copy_back: CopyBack,
        clock: Arc<dyn Clock>,
        shared: Arc<Shared>,
        answered: mpsc::UnboundedSender<Answered>,
        head: Head,
    ) -> Self {
        Self { connection, copy_back, clock, shared, answered, head, known: None }
    }

    /// Runs until every sender is gone.
    pub(super) fn run(mut self, mut jobs: mpsc::Receiver<Job>) {
        let (mut commands, mut answers, mut probes) = (Vec::new(), Vec::new(), Vec::new());
        while let Some(first) = jobs.blocking_recv() {
            let mut next = Some(first);
            while let Some(job) = next {
                match job {
                    Job::Apply(command, answer) => {
                        commands.push(*command);
                        answers.push(answer);
                    }
                    Job::Probe(answer) => probes.push(answer),
                }
                next = if commands.len() < MAX_BATCH { jobs.try_recv().ok() } else { None };
            }
            if !commands.is_empty() {
                let results = self.run_batch(&commands);
                commands.clear();
                // One message for the whole batch: waking callers one by one from here would cost a system
                // call each.
                let _ = self.answered.send(answers.drain(..).zip(results).collect());
            }
            if !probes.is_empty() {
                let result = self.probe();
                for answer in probes.drain(..) {
                    let _ = answer.send(result.clone());
                }
            }
        }
    }

    fn run_batch(&mut self, commands: &[Command]) -> Vec<Answer> {
        let count = commands.len();
        // Only a row that cannot be read is worth a second try one by one: the others in the batch are then
        // not held up by it. A store that cannot be written fails all of them.
        match self.commit(commands) {
            Ok(results) => results.into_iter().map(Ok).collect(),
            Err(StoreError::Corrupt(_)) if count > 1 => {
                let alone = |command| self.commit(std::slice::from_ref(command)).map(Vec::into_iter);
                let one = |result: Result<std::vec::IntoIter<_>, _>| {
                    result.and_then(|mut results| results.next().ok_or(StoreError::Closed))
                };
                commands.iter().map(alone).map(one).collect()
            }
            Err(error) => vec![Err(error); count],
        }
    }

    /// All of it or nothing.
    fn commit(&mut self, commands: &[Command]) -> Result<Vec<Result<Done, Refused>>, StoreError> {
        let started = Instant::now();
        let count = commands.len() as u64;
        let mut known = match self.known.take() {
            Some(known) => known,
            None => load_known(&self.connection, self.clock.now())?,
        };
        let written = self.write(&mut known, commands);
        let Written { results, committed, touched, swept, head } = match written {
            Ok(written) => written,
            Err(error) => {
                // Without a transaction open there is nothing to roll back, and that is as good.
                let _ = self.connection.execute_batch("ROLLBACK");
                return Err(error);
            }
        };
        self.head = head;
        let shared = &self.shared;
        shared.pending_is(&known);
        self.known = Some(known);
        let mut recent = shared.recent.lock();
        if swept {
            recent.forget_approvals();
        }
        for approval in touched.into_values() {
            recent.put_approval(approval);
        }
        for event in committed {
            recent.push_event(event);
        }
        drop(recent);
        shared.batches.fetch_add(1, Ordering::Relaxed);
        shared.commands.fetch_add(count, Ordering::Relaxed);
        shared.commit_nanos.fetch_add(started.elapsed().as_nanos() as u64, Ordering::Relaxed);
        shared.head.send_if_modified(|seq| std::mem::replace(seq, head.seq) != head.seq);
        self.copy_back.committed(commands.len());
        Ok(results)
    }

    /// From BEGIN to COMMIT; on an error the transaction may still be open.
    fn write(&mut self, known: &mut Known, commands: &[Command]) -> Result<Written, StoreError> {
        let now = self.clock.now().max(self.head.at);
        self.connection.execute_batch("BEGIN IMMEDIATE").map_err(|error| unavailable(&error))?;
        let mut tx = SqliteTx {
            connection: &mut self.connection,
            now,
            known,
            recent: &self.shared.recent,
            events: Vec::new(),
            touched: HashMap::new(),
            small: HashMap::new(),
            swept: false,
        };
        let mut results = Vec::with_capacity(commands.len());
        for command in commands {
            results.push(ready(apply(&mut tx, command))??);
        }
        let SqliteTx { events, touched, swept, .. } = tx;
        let (committed, head) = append_events(&self.connection, self.head, now, events)?;
        self.connection.execute_batch("COMMIT").map_err(|error| unavailable(&error))?;
        Ok(Written { results, committed, touched, swept, head })
    }

    fn probe(&mut self) -> Result<(), StoreError> {
        let now = self.clock.now().as_millis();
        let write = || self.connection.prepare_cached(sql::PROBE)?.execute(params![now]);
        write().map(|_| ()).map_err(|error| unavailable(&error))
    }
}

fn append_events(
    connection: &Connection,
    mut head: Head,
    at: Timestamp,
    bodies: Vec<(EventBody, Option<Arc<Approval>>)>,
) -> Result<(Vec<Committed>, Head), StoreError> {
    let mut committed = Vec::with_capacity(bodies.len());
    if bodies.is_empty() {
        return Ok((committed, head));
    }
    let mut insert = connection.prepare_cached(sql::INSERT_EVENT).map_err(|error| unavailable(&error))?;
    for (body, approval) in bodies {
        let event = Event { seq: head.seq + 1, at, body };
        let (line, hash) = event.seal(&head.hash).map_err(|error| StoreError::Corrupt(error.to_string()))?;
        insert.execute(params![event.seq, line, hash.as_bytes()]).map_err(|error| unavailable(&error))?;
        head = Head { seq: event.seq, hash, at };
        committed.push(Committed { event, approval });
    }
    Ok((committed, head))
}

fn load_known(connection: &Connection, now: Timestamp) -> Result<Known, StoreError> {
    let oldest = now.as_millis() - i64::try_from(DENIAL_MEMORY_MS).unwrap_or(i64::MAX);
    let read = || {
        let known = load_pending(connection)?;
        let mut statement = connection.prepare_cached(sql::RECENT_DENIALS)?;
        let rows = statement.query_map(params![oldest], read_denial)?;
        Ok(Known { denials: rows.collect::<rusqlite::Result<_>>()?, ..known })
    };
    read().map_err(|error: rusqlite::Error| unavailable(&error))
}

/// What is pending, and nothing else.
pub(super) fn load_pending(connection: &Connection) -> rusqlite::Result<Known> {
    let mut statement = connection.prepare_cached(sql::PENDING_BY_CLIENT)?;
    let rows = statement.query_map([], |row| {
        Ok((KeyId::from_random(row.get(0)?), Pending { count: row.get(1)?, bytes: row.get(2)? }))
    })?;
    let pending: HashMap<KeyId, Pending> = rows.collect::<rusqlite::Result<_>>()?;
    let pending_bytes = pending.values().map(|pending| pending.bytes).sum();
    Ok(Known { pending, pending_bytes, ..Known::default() })
}

/// SQLite answers at once, so a future over it is ready the first time it is asked.
fn ready<F: Future>(future: F) -> Result<F::Output, StoreError> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Ok(output),
        Poll::Pending => Err(StoreError::Corrupt("a store primitive waited".to_owned())),
    }
}
