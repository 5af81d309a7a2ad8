//! The store's primitives on one SQLite transaction. Everything here answers at once: the futures are ready
//! when made, so the writer thread needs no runtime.

use std::collections::HashMap;
use std::sync::Arc;

use countersign_gate::{
    ApprovalRow, DENIAL_MEMORY_MS, EntryUse, IdempotentRow, NodeOf, PendingOf, StoreError, Summary, Tx,
};
use countersign_model::{
    Approval, ApprovalId, Digest, EventBody, Grant, GrantId, KeyId, KeyRecord, Prior, Status, StoredPolicy, Timestamp,
    Trust,
};
use parking_lot::Mutex;
use rusqlite::{Connection, OptionalExtension, Params, Row, params};

use super::recent::{MAX_REQUEST_BYTES, Recent};
use super::rows::{read_approval, read_digest, read_trust, to_approval, to_summary, unavailable};
use crate::sql;

/// What the writer knows without asking the store: all of it was read from there or written by this writer,
/// and nobody else writes. Valid as long as no batch was given up.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) pending: HashMap<KeyId, Pending>,
    pub(super) pending_bytes: u64,
    pub(super) policies: HashMap<String, Arc<StoredPolicy>>,
    /// Unrevoked grants by client and subject, for the clients that have asked.
    pub(super) grants: HashMap<KeyId, HashMap<String, Vec<Grant>>>,
    /// The refusals that are still remembered.
    pub(super) denials: HashMap<(KeyId, Digest), Prior>,
}

/// How many requests of one client are pending, and what they weigh.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pending {
    pub(super) count: u64,
    pub(super) bytes: u64,
}

/// Above this many, refusals that are no longer remembered are dropped.
const MAX_DENIALS: usize = 65_536;

pub(super) struct SqliteTx<'a> {
    /// Inside an open transaction. Exclusive, so that the futures over it may move between threads as the
    /// port asks, though here they never do.
    pub(super) connection: &'a mut Connection,
    pub(super) now: Timestamp,
    pub(super) known: &'a mut Known,
    pub(super) recent: &'a Mutex<Recent>,
    pub(super) events: Vec<(EventBody, Option<Arc<Approval>>)>,
    /// Small approvals as this transaction leaves them.
    pub(super) touched: HashMap<ApprovalId, Arc<Approval>>,
    pub(super) small: HashMap<ApprovalId, bool>,
    pub(super) swept: bool,
}

impl SqliteTx<'_> {
    fn execute(&self, sql: &str, params: impl Params) -> Result<usize, StoreError> {
        let run = || self.connection.prepare_cached(sql)?.execute(params);
        run().map_err(|error| unavailable(&error))
    }

    fn one<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, StoreError> {
        let run = || self.connection.prepare_cached(sql)?.query_row(params, read).optional();
        run().map_err(|error| unavailable(&error))
    }

    fn all<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, StoreError> {
        let run = || self.connection.prepare_cached(sql)?.query_map(params, read)?.collect::<rusqlite::Result<_>>();
        run().map_err(|error| unavailable(&error))
    }
}

impl Tx for SqliteTx<'_> {
    fn now(&self) -> Timestamp {
        self.now
    }

    fn append(&mut self, body: EventBody, approval: Option<Arc<Approval>>) {
        if let Some(approval) = &approval {
            let small = self.small.get(&approval.id).copied();
            // One that was read from what is at hand is small, or it would not be there.
            let small = small.unwrap_or_else(|| self.recent.lock().approval(&approval.id).is_some());
            if !small {
                // A large one is kept by nobody: whoever wants it reads it.
                self.touched.remove(&approval.id);
                self.events.push((body, None));
                return;
            }
            self.touched.insert(approval.id, approval.clone());
        }
        self.events.push((body, approval));
    }

    async fn approval(&mut self, id: ApprovalId) -> Result<Option<Approval>, StoreError> {
        if let Some(approval) = self.touched.get(&id) {
            return Ok(Some((**approval).clone()));
        }
        if let Some(approval) = self.recent.lock().approval(&id) {
            return Ok(Some((*approval).clone()));
        }
        let row = self.one(sql::APPROVAL, params![id.as_bytes()], |row| read_approval(row, 0))?;
        if let Some(row) = &row {
            self.small.insert(id, row.request.len() <= MAX_REQUEST_BYTES);
        }
        row.map(to_approval).transpose()
    }

    async fn insert_approval(
        &mut self,
        row: &ApprovalRow,
        bytes: u64,
        summary: Option<&str>,
    ) -> Result<(), StoreError> {
        self.execute(
            sql::INSERT_APPROVAL,
            params![
                row.id.as_bytes(),
                row.client.as_bytes(),
                row.status.as_str(),
                row.asked,
                row.created_at.as_millis(),
                row.expires_at.as_millis(),
                row.request,
                row.terms,
                row.outcome,
                row.ended_at.map(Timestamp::as_millis),
                row.consumed_at.map(Timestamp::as_millis),
                row.told,
                row.run,
                row.alias,
                bytes,
                summary,
            ],
        )?;
        self.small.insert(row.id, row.request.len() <= MAX_REQUEST_BYTES);
        if row.status == Status::Pending {
            let pending = self.known.pending.entry(row.client).or_default();
            (pending.count, pending.bytes) = (pending.count + 1, pending.bytes + bytes);
            self.known.pending_bytes += bytes;
        }
        Ok(())
    }

    async fn finish_approval(&mut self, row: &ApprovalRow) -> Result<bool, StoreError> {
        let finished: Option<u64> = self.one(
            sql::FINISH_APPROVAL,
            params![row.status.as_str(), row.outcome, row.ended_at.map(Timestamp::as_millis), row.id.as_bytes()],
            |row| row.get(0),
        )?;
        let Some(bytes) = finished else { return Ok(false) };
        if let Some(pending) = self.known.pending.get_mut(&row.client) {
            pending.count = pending.count.saturating_sub(1);
            pending.bytes = pending.bytes.saturating_sub(bytes);
        }
        self.known.pending_bytes = self.known.pending_bytes.saturating_sub(bytes);
        Ok(true)
    }

    async fn consume(&mut self, id: ApprovalId, at: Timestamp, told: bool) -> Result<bool, StoreError> {
        Ok(self.execute(sql::CONSUME, params![at.as_millis(), told, id.as_bytes()])? == 1)
    }

    async fn ran(&mut self, id: ApprovalId, run: &str) -> Result<bool, StoreError> {
        Ok(self.execute(sql::RAN, params![run, id.as_bytes()])? == 1)
    }

    async fn due(&mut self, at: Timestamp, limit: usize) -> Result<Vec<ApprovalId>, StoreError> {
        self.all(sql::DUE, params![at.as_millis(), limit], |row| Ok(ApprovalId::from_random(row.get(0)?)))
    }

    async fn pending(&mut self, client: KeyId) -> Result<PendingOf, StoreError> {
        let Pending { count, bytes } = self.known.pending.get(&client).copied().unwrap_or_default();
        Ok(PendingOf { count, bytes, bytes_of_all: self.known.pending_bytes })
    }

    async fn recent_asks(&mut self, client: KeyId, limit: usize) -> Result<Vec<Summary>, StoreError> {
        let rows = self.all(sql::RECENT_ASKS, params![client.as_bytes(), limit], |row| read_approval(row, 0))?;
        rows.into_iter().map(to_summary).collect()
    }

    async fn asks_since(&mut self, client: KeyId, since: Timestamp) -> Result<u64, StoreError> {
        let count = self.one(sql::ASKS_SINCE, params![client.as_bytes(), since.as_millis()], |row| row.get(0))?;
        Ok(count.unwrap_or(0))
    }

    async fn sweep(&mut self, before: Timestamp, limit: usize) -> Result<u64, StoreError> {
        let count = self.execute(sql::SWEEP, params![before.as_millis(), limit])?;
        self.execute(sql::SWEEP_IDEMPOTENCY, params![before.as_millis()])?;
        self.execute(sql::SWEEP_DENIALS, params![before.as_millis()])?;
        self.execute(sql::SWEEP_WRONG_NUMBERS, params![before.as_millis()])?;
        self.swept = true;
        Ok(count as u64)
    }

    async fn wrong_numbers(&mut self, id: ApprovalId, key: KeyId) -> Result<u32, StoreError> {
        Ok(self.one(sql::WRONG_NUMBERS, params![id.as_bytes(), key.as_bytes()], |row| row.get(0))?.unwrap_or(0))
    }

    async fn put_wrong_numbers(
        &mut self,
        id: ApprovalId,
        key: KeyId,
        count: u32,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        let params = params![id.as_bytes(), key.as_bytes(), count, at.as_millis()];
        self.execute(sql::PUT_WRONG_NUMBERS, params).map(|_| ())
    }

    async fn idempotent(&mut self, client: KeyId, key: &str) -> Result<Option<IdempotentRow>, StoreError> {
        self.one(sql::IDEMPOTENT, params![client.as_bytes(), key], |row| {
            Ok(IdempotentRow {
                body: read_digest(row, 0)?,
                approval: ApprovalId::from_random(row.get(1)?),
                at: Timestamp::from_millis(row.get(2)?),
            })
        })
    }

    async fn put_idempotent(&mut self, client: KeyId, key: &str, row: &IdempotentRow) -> Result<(), StoreError> {
        let params = params![client.as_bytes(), key, row.body.as_bytes(), row.approval.as_bytes(), row.at.as_millis()];
        self.execute(sql::PUT_IDEMPOTENT, params).map(|_| ())
    }

    async fn prior(&mut self, client: KeyId, effect: Digest) -> Result<Option<Prior>, StoreError> {
        Ok(self.known.denials.get(&(client, effect)).copied())
    }

    async fn put_prior(&mut self, client: KeyId, effect: Digest, prior: Prior) -> Result<(), StoreError> {
        let params = params![
            client.as_bytes(),
            effect.as_bytes(),
            prior.approval_id.as_bytes(),
            prior.status.as_str(),
            prior.at.as_millis()
        ];
        self.execute(sql::PUT_PRIOR, params)?;
        if self.known.denials.len() >= MAX_DENIALS {
            let now = self.now;
            self.known.denials.retain(|_, prior| now < prior.at.plus_millis(DENIAL_MEMORY_MS));
        }
        self.known.denials.insert((client, effect), prior);
        Ok(())
    }

    async fn policy(&mut self, profile: &str) -> Result<Arc<StoredPolicy>, StoreError> {
        if let Some(known) = self.known.policies.get(profile) {
            return Ok(known.clone());
        }
        let text: Option<String> = self.one(sql::POLICY, params![profile], |row| row.get(0))?;
        let stored = Arc::new(text.map_or_else(StoredPolicy::absent, |text| StoredPolicy::from_text(&text)));
        self.known.policies.insert(profile.to_owned(), stored.clone());
        Ok(stored)
    }

    async fn put_policy(&mut self, profile: &str, text: &str) -> Result<(), StoreError> {
        self.execute(sql::PUT_POLICY, params![profile, text])?;
        self.known.policies.remove(profile);
        Ok(())
    }

    async fn grants(&mut self, client: KeyId, subjects: &[String]) -> Result<Vec<Grant>, StoreError> {
        if !self.known.grants.contains_key(&client) {
            let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
            let rows: Vec<(String, String)> = self.all(sql::GRANTS_OF_CLIENT, params![client.as_bytes()], read)?;
            let mut known: HashMap<String, Vec<Grant>> = HashMap::new();
            for (subject, body) in rows {
                let grant = serde_json::from_str(&body).map_err(|error| StoreError::Corrupt(error.to_string()))?;
                known.entry(subject).or_default().push(grant);
            }
            self.known.grants.insert(client, known);
        }
        let known = self.known.grants.get(&client);
        let of_subject = |subject: &String| known.and_then(|known| known.get(subject)).into_iter().flatten();
        Ok(subjects.iter().flat_map(of_subject).cloned().collect())
    }

    async fn insert_grant(&mut self, grant: &Grant, body: &str) -> Result<(), StoreError> {
        let params = params![
            grant.id.as_bytes(),
            grant.scope.client.as_bytes(),
            grant.subject(),
            grant.created_at.as_millis(),
            body
        ];
        self.execute(sql::INSERT_GRANT, params)?;
        self.known.grants.remove(&grant.scope.client);
        Ok(())
    }

    async fn session_grants(&mut self, client: KeyId, session: &str) -> Result<Vec<GrantId>, StoreError> {
        // Fills what is at hand.
        self.grants(client, &[]).await?;
        let grants = self.known.grants.get(&client).into_iter().flat_map(HashMap::values).flatten();
        let of_session = grants.filter(|grant| grant.scope.session.as_deref() == Some(session));
        Ok(of_session.map(|grant| grant.id).collect())
    }

    async fn revoke_grant(&mut self, id: GrantId, at: Timestamp) -> Result<bool, StoreError> {
        let revoked = self.execute(sql::REVOKE_GRANT, params![at.as_millis(), id.as_bytes()])? == 1;
        // Whose it was is not at hand, and revoking is rare: everything is read again.
        self.known.grants.clear();
        Ok(revoked)
    }

    async fn trust(&mut self, workspace: &str) -> Result<Option<Trust>, StoreError> {
        self.one(sql::TRUST, params![workspace], read_trust)
    }

    async fn put_trust(&mut self, trust: &Trust) -> Result<(), StoreError> {
        let params = params![trust.workspace, trust.text, trust.by, trust.at.as_millis()];
        self.execute(sql::PUT_TRUST, params).map(|_| ())
    }

    async fn remove_trust(&mut self, workspace: &str) -> Result<bool, StoreError> {
        Ok(self.execute(sql::REMOVE_TRUST, params![workspace])? == 1)
    }

    async fn insert_key(&mut self, key: &KeyRecord) -> Result<(), StoreError> {
        let params = params![
            key.id.as_bytes(),
            key.hash.as_bytes(),
            key.client_id.as_str(),
            key.name,
            key.role.as_str(),
            key.profile,
            key.created_at.as_millis(),
            key.expires_at.map(Timestamp::as_millis),
            key.paired,
            key.node_id,
        ];
        self.execute(sql::INSERT_KEY, params).map(|_| ())
    }

    async fn revoke_key(&mut self, id: KeyId, at: Timestamp) -> Result<bool, StoreError> {
        Ok(self.execute(sql::REVOKE_KEY, params![at.as_millis(), id.as_bytes()])? == 1)
    }

    async fn named(&mut self, client: KeyId, alias: &str) -> Result<Option<ApprovalId>, StoreError> {
        let read = |row: &Row<'_>| Ok(ApprovalId::from_random(row.get(0)?));
        self.one(sql::NAMED, params![alias, client.as_bytes()], read)
    }

    async fn put_name(&mut self, client: KeyId, alias: &str, approval: ApprovalId) -> Result<(), StoreError> {
        self.execute(sql::PUT_NAME, params![alias, client.as_bytes(), approval.as_bytes()]).map(|_| ())
    }

    async fn put_entry_use(&mut self, entry_use: &EntryUse) -> Result<(), StoreError> {
        let EntryUse { profile, pattern, at, command } = entry_use;
        self.execute(sql::PUT_ENTRY_USE, params![profile, pattern, at.as_millis(), command]).map(|_| ())
    }

    async fn node_of(&mut self, key: KeyId, node_id: &str) -> Result<NodeOf, StoreError> {
        let read = |row: &Row<'_>| Ok((KeyId::from_random(row.get(0)?), row.get::<_, Option<String>>(1)?));
        let rows = self.all(sql::NODE_OF, params![key.as_bytes(), node_id], read)?;
        let other = |(id, node): &(KeyId, Option<String>)| {
            if *id == key { node.as_deref().is_some_and(|node| node != node_id) } else { true }
        };
        if rows.iter().any(other) {
            return Ok(NodeOf::Other);
        }
        Ok(if rows.iter().any(|(_, node)| node.is_some()) { NodeOf::Both } else { NodeOf::Neither })
    }

    async fn bind_node(&mut self, key: KeyId, node_id: &str) -> Result<(), StoreError> {
        self.execute(sql::BIND_NODE, params![node_id, key.as_bytes()]).map(|_| ())
    }

    async fn put_cursor(&mut self, name: &str, seq: u64) -> Result<(), StoreError> {
        self.execute(sql::PUT_CURSOR, params![name, seq]).map(|_| ())
    }
}
