//! Checks the whole store against its record: the chain first, then every row that the record speaks of.

use std::collections::HashMap;
use std::path::Path;

use countersign_model::{
    ApprovalId, ChainError, Digest, Event, EventBody, GrantId, KeyId, Role, Status, Timestamp, canonical_bytes, sha256,
    verify_link,
};
use rusqlite::{Connection, OpenFlags};
use serde::Deserialize;
use thiserror::Error;

use crate::checkpoints::Checkpoints;
use crate::sql;
use crate::sqlite::{read_approval, read_grant, read_key};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditReport {
    pub events: u64,
    pub approvals: u64,
    /// Approvals whose contents the retention setting removed.
    pub swept: u64,
    pub grants: u64,
    pub keys: u64,
    /// The last event's hash: whoever keeps it elsewhere can tell later whether history was rewritten.
    pub head: Option<(u64, Digest)>,
}

#[derive(Debug, Error)]
pub enum VerifyError {
    #[error("the store cannot be read: {0}")]
    Store(#[from] rusqlite::Error),
    #[error(transparent)]
    Chain(#[from] ChainError),
    #[error("approval {id}: {what}; its row was changed behind the gate's back")]
    Approval { id: ApprovalId, what: &'static str },
    #[error("grant {id}: {what}; its row was changed behind the gate's back")]
    Grant { id: GrantId, what: &'static str },
    #[error("the trusted file of `{0}` is not the one the record names; it was changed behind the gate's back")]
    Trust(String),
    #[error("policy `{0}` is not the one the record names; it was changed behind the gate's back")]
    Policy(String),
    #[error("key {id}: {what}; its row was changed behind the gate's back")]
    Key { id: KeyId, what: &'static str },
    #[error("line {line} of the export does not read as an event: {why}")]
    Export { line: u64, why: String },
    #[error("the record does not hold the checkpoint {seq} {hash}; history was rewritten")]
    Checkpoint { seq: u64, hash: Digest },
}

/// What the events say each row must be.
#[derive(Debug, Default)]
struct Expected {
    approvals: HashMap<ApprovalId, ExpectedApproval>,
    grants: HashMap<GrantId, (Digest, bool)>,
    policies: HashMap<String, Digest>,
    trusts: HashMap<String, Digest>,
    keys: HashMap<KeyId, ExpectedKey>,
    swept_before: Option<Timestamp>,
}

#[derive(Debug)]
struct ExpectedApproval {
    request: Digest,
    status: Status,
    outcome: Option<(Digest, Timestamp)>,
    consumed: Option<Timestamp>,
    told: bool,
    run: Option<String>,
    seen: bool,
}

#[derive(Debug)]
struct ExpectedKey {
    name: String,
    role: Role,
    profile: String,
    revoked: bool,
    node_id: Option<String>,
}

/// Opens the file read-only: it works beside a running gate, on one snapshot.
pub fn verify_store(
    path: &Path,
    mut checkpoints: Checkpoints,
    mut progress: impl FnMut(u64),
) -> Result<AuditReport, VerifyError> {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    connection.busy_timeout(std::time::Duration::from_secs(5))?;
    let snapshot = connection.unchecked_transaction()?;
    let mut expected = Expected::default();
    let mut report = AuditReport::default();
    let mut last: Option<(Event, Digest)> = None;

    let mut statement = snapshot.prepare(sql::EVENTS_AFTER)?;
    let mut rows = statement.query(rusqlite::params![0, -1])?;
    while let Some(row) = rows.next()? {
        let (seq, line): (u64, Vec<u8>) = (row.get(0)?, row.get(1)?);
        let stored: Vec<u8> = row.get(2)?;
        let hash = Digest::from_bytes(stored.try_into().map_err(|_| ChainError::Hash { seq })?);
        let event = verify_link(last.as_ref().map(|(event, hash)| (event, hash)), seq, &line, &hash)?;
        checkpoints.meet(seq, &hash)?;
        expected.take(&event);
        report.events += 1;
        if report.events.is_multiple_of(10_000) {
            progress(report.events);
        }
        last = Some((event, hash));
    }
    checkpoints.end()?;
    report.head = last.map(|(event, hash)| (event.seq, hash));
    check_approvals(&snapshot, &mut expected, &mut report)?;
    check_grants(&snapshot, &expected, &mut report)?;
    check_texts(&snapshot, sql::ALL_POLICIES, &expected.policies, VerifyError::Policy)?;
    check_texts(&snapshot, sql::ALL_TRUSTS, &expected.trusts, VerifyError::Trust)?;
    check_keys(&snapshot, &expected, &mut report)?;
    Ok(report)
}

impl Expected {
    fn take(&mut self, event: &Event) {
        match &event.body {
            EventBody::Requested { approval_id, request, .. } => {
                let approval = ExpectedApproval::new(*request, Status::Pending, None);
                self.approvals.insert(*approval_id, approval);
            }
            EventBody::Ruled { approval_id, request, outcome, status, .. } => {
                let approval = ExpectedApproval::new(*request, *status, Some((*outcome, event.at)));
                self.approvals.insert(*approval_id, approval);
            }
            EventBody::Resolved { approval_id, outcome, status, .. } => {
                if let Some(approval) = self.approvals.get_mut(approval_id) {
                    approval.status = *status;
                    approval.outcome = Some((*outcome, event.at));
                }
            }
            EventBody::Consumed { approval_id, told } => {
                if let Some(approval) = self.approvals.get_mut(approval_id) {
                    approval.consumed = Some(event.at);
                    approval.told = *told;
                }
            }
            // How many there were is counted beside; the request itself is as it was.
            EventBody::WrongNumber { .. } => {}
            // Changes no row: whether the run ended by it is said by its end.
            EventBody::StopAsked { .. } => {}
            EventBody::Ran { approval_id, run } => {
                if let Some(approval) = self.approvals.get_mut(approval_id) {
                    approval.run = serde_json::to_string(run).ok();
                }
            }
            EventBody::GrantMade { grant_id, grant, .. } => {
                self.grants.insert(*grant_id, (*grant, false));
            }
            EventBody::GrantRevoked { grant_id, .. } => {
                if let Some((_, revoked)) = self.grants.get_mut(grant_id) {
                    *revoked = true;
                }
            }
            EventBody::PolicyPut { profile, hash, .. } => {
                self.policies.insert(profile.clone(), *hash);
            }
            EventBody::Trusted { workspace, hash, .. } => {
                self.trusts.insert(workspace.clone(), *hash);
            }
            EventBody::Untrusted { workspace, .. } => {
                self.trusts.remove(workspace);
            }
            EventBody::KeyMade { key_id, name, role, profile, .. } => {
                let key = ExpectedKey {
                    name: name.clone(),
                    role: *role,
                    profile: profile.clone(),
                    revoked: false,
                    node_id: None,
                };
                self.keys.insert(*key_id, key);
            }
            EventBody::KeyRevoked { key_id, .. } => {
                if let Some(key) = self.keys.get_mut(key_id) {
                    key.revoked = true;
                }
            }
            EventBody::NodeBound { key_id, node_id } => {
                if let Some(key) = self.keys.get_mut(key_id) {
                    key.node_id = Some(node_id.clone());
                }
            }
            EventBody::Swept { before, .. } => self.swept_before = self.swept_before.max(Some(*before)),
        }
    }
}

impl ExpectedApproval {
    fn new(request: Digest, status: Status, outcome: Option<(Digest, Timestamp)>) -> Self {
        Self { request, status, outcome, consumed: None, told: false, run: None, seen: false }
    }
}

fn check_approvals(
    connection: &Connection,
    expected: &mut Expected,
    report: &mut AuditReport,
) -> Result<(), VerifyError> {
    let mut statement = connection.prepare(sql::ALL_APPROVALS)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let row = read_approval(row, 0)?;
        let wrong = |what| VerifyError::Approval { id: row.id, what };
        let Some(expected) = expected.approvals.get_mut(&row.id) else {
            return Err(wrong("the record does not know it"));
        };
        if row.request_digest() != expected.request {
            return Err(wrong("the request is not the one on the record"));
        }
        let outcome = row.outcome.as_ref().map(|_| row.outcome_digest());
        if row.status != expected.status || outcome != expected.outcome.map(|(digest, _)| digest) {
            return Err(wrong("the outcome is not the one on the record"));
        }
        if row.consumed_at != expected.consumed || row.told != expected.told {
            return Err(wrong("its use is not as on the record"));
        }
        if row.run != expected.run {
            return Err(wrong("how its run ended is not as on the record"));
        }
        expected.seen = true;
        report.approvals += 1;
    }
    for (id, approval) in expected.approvals.iter().filter(|(_, approval)| !approval.seen) {
        let ended = approval.outcome.map(|(_, at)| at);
        let swept = ended.zip(expected.swept_before).is_some_and(|(at, before)| at < before);
        if !swept {
            return Err(VerifyError::Approval { id: *id, what: "its row is missing" });
        }
        report.swept += 1;
    }
    Ok(())
}

fn check_grants(connection: &Connection, expected: &Expected, report: &mut AuditReport) -> Result<(), VerifyError> {
    let mut statement = connection.prepare(sql::ALL_GRANTS)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (client, grant) = read_grant(row)?;
        let body: String = row.get(1)?;
        let wrong = |what| VerifyError::Grant { id: grant.id, what };
        let Some((digest, revoked)) = expected.grants.get(&grant.id) else {
            return Err(wrong("the record does not know it"));
        };
        if sha256(body.as_bytes()) != *digest || client != grant.scope.client {
            return Err(wrong("it is not the one on the record"));
        }
        if grant.revoked_at.is_some() != *revoked {
            return Err(wrong("whether it was revoked is not as on the record"));
        }
        report.grants += 1;
    }
    Ok(())
}

/// Texts by name, against the hashes that the record names last.
fn check_texts(
    connection: &Connection,
    all: &str,
    expected: &HashMap<String, Digest>,
    error: fn(String) -> VerifyError,
) -> Result<(), VerifyError> {
    let mut statement = connection.prepare(all)?;
    let mut rows = statement.query([])?;
    let mut found = 0;
    while let Some(row) = rows.next()? {
        let (name, text): (String, String) = (row.get(0)?, row.get(1)?);
        if expected.get(&name) != Some(&sha256(text.as_bytes())) {
            return Err(error(name));
        }
        found += 1;
    }
    match expected.keys().next() {
        Some(name) if found != expected.len() => Err(error(name.clone())),
        Some(_) | None => Ok(()),
    }
}

fn check_keys(connection: &Connection, expected: &Expected, report: &mut AuditReport) -> Result<(), VerifyError> {
    let mut statement = connection.prepare(sql::KEYS)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let key = read_key(row)?;
        let wrong = |what| VerifyError::Key { id: key.id, what };
        let Some(expected) = expected.keys.get(&key.id) else {
            return Err(wrong("the record does not know it"));
        };
        let same = key.name == expected.name
            && key.role == expected.role
            && key.profile == expected.profile
            && key.node_id == expected.node_id;
        if !same || key.revoked_at.is_some() != expected.revoked {
            return Err(wrong("it is not as on the record"));
        }
        report.keys += 1;
    }
    Ok(())
}

#[derive(Deserialize)]
struct ExportLine {
    event: serde_json::Value,
    hash: Digest,
}

/// One line of `GET /v1/audit` or of `countersign audit export`, checked against the one before it.
pub fn verify_export_line(
    previous: Option<(&Event, &Digest)>,
    number: u64,
    text: &str,
) -> Result<(Event, Digest), VerifyError> {
    let unreadable = |why: String| VerifyError::Export { line: number, why };
    let line: ExportLine = serde_json::from_str(text).map_err(|error| unreadable(error.to_string()))?;
    let bytes = canonical_bytes(&line.event).map_err(|error| unreadable(error.to_string()))?;
    let seq = line.event.get("seq").and_then(serde_json::Value::as_u64).unwrap_or(0);
    let event = verify_link(previous, seq, &bytes, &line.hash)?;
    Ok((event, line.hash))
}
