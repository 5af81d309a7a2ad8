//! SQLite rows to the gate's types. A row that cannot be read is an error, never a default.

use std::sync::Arc;

use countersign_gate::{ApprovalRow, EntryUse, StoreError, Summary};
use countersign_model::{
    Approval, ApprovalId, ClientId, Digest, Grant, KeyHash, KeyId, KeyRecord, Prior, Role, SUMMARY_ABOVE, Status,
    Timestamp, Trust,
};
use rusqlite::Row;
use rusqlite::types::Type;

/// No summary of ours is as long as this.
const MAX_SUMMARY: u64 = 32 * SUMMARY_ABOVE;

pub(crate) fn unavailable(error: &rusqlite::Error) -> StoreError {
    match error {
        rusqlite::Error::FromSqlConversionFailure(..)
        | rusqlite::Error::InvalidColumnType(..)
        | rusqlite::Error::IntegralValueOutOfRange(..) => StoreError::Corrupt(error.to_string()),
        other => StoreError::Unavailable(other.to_string()),
    }
}

/// From the column `first` on, in the order of `approval_columns!`.
pub(crate) fn read_approval(row: &Row<'_>, first: usize) -> rusqlite::Result<ApprovalRow> {
    let status: String = row.get(first + 2)?;
    Ok(ApprovalRow {
        id: ApprovalId::from_random(row.get(first)?),
        client: KeyId::from_random(row.get(first + 1)?),
        status: Status::parse(&status).ok_or_else(|| unreadable(first + 2, &status))?,
        asked: row.get(first + 3)?,
        created_at: Timestamp::from_millis(row.get(first + 4)?),
        expires_at: Timestamp::from_millis(row.get(first + 5)?),
        request: row.get(first + 6)?,
        terms: row.get(first + 7)?,
        outcome: row.get(first + 8)?,
        ended_at: optional_time(row, first + 9)?,
        consumed_at: optional_time(row, first + 10)?,
        told: row.get(first + 11)?,
        run: row.get(first + 12)?,
        alias: row.get(first + 13)?,
    })
}

pub(crate) fn to_approval(row: ApprovalRow) -> Result<Approval, StoreError> {
    row.into_approval().map_err(|error| StoreError::Corrupt(error.to_string()))
}

/// Of a row with the summary in place of a large request. One that was stored before there were summaries gets its own
/// here, so that no more than one such request is in memory at a time.
pub(crate) fn to_summary(row: ApprovalRow) -> Result<Summary, StoreError> {
    let large = row.request.len() as u64 > MAX_SUMMARY;
    let approval = to_approval(row)?;
    let request = if large { Arc::new(approval.request.summary()) } else { approval.request.clone() };
    Ok(Summary::new(Arc::new(Approval { request, ..approval })))
}

/// Columns `client, body, revoked_at`.
pub(crate) fn read_trust(row: &Row<'_>) -> rusqlite::Result<Trust> {
    let at = Timestamp::from_millis(row.get(3)?);
    Ok(Trust { workspace: row.get(0)?, text: row.get(1)?, by: row.get(2)?, at })
}

pub(crate) fn read_grant(row: &Row<'_>) -> rusqlite::Result<(KeyId, Grant)> {
    let body: String = row.get(1)?;
    let grant: Grant = serde_json::from_str(&body).map_err(|error| unreadable(1, &error.to_string()))?;
    Ok((KeyId::from_random(row.get(0)?), Grant { revoked_at: optional_time(row, 2)?, ..grant }))
}

pub(crate) fn read_key(row: &Row<'_>) -> rusqlite::Result<KeyRecord> {
    let role: String = row.get(4)?;
    Ok(KeyRecord {
        id: KeyId::from_random(row.get(0)?),
        hash: KeyHash::from_bytes(row.get(1)?),
        client_id: ClientId::new(row.get::<_, String>(2)?),
        name: row.get(3)?,
        role: Role::parse(&role).ok_or_else(|| unreadable(4, &role))?,
        profile: row.get(5)?,
        created_at: Timestamp::from_millis(row.get(6)?),
        expires_at: optional_time(row, 7)?,
        revoked_at: optional_time(row, 8)?,
        paired: row.get(9)?,
        node_id: row.get(10)?,
    })
}

/// Columns `profile, pattern, at, command`.
pub(crate) fn read_entry_use(row: &Row<'_>) -> rusqlite::Result<EntryUse> {
    let at = Timestamp::from_millis(row.get(2)?);
    Ok(EntryUse { profile: row.get(0)?, pattern: row.get(1)?, at, command: row.get(3)? })
}

/// Columns `client, effect, approval, status, at`.
pub(crate) fn read_denial(row: &Row<'_>) -> rusqlite::Result<((KeyId, Digest), Prior)> {
    let prior = Prior {
        approval_id: ApprovalId::from_random(row.get(2)?),
        status: read_status(row, 3)?,
        at: Timestamp::from_millis(row.get(4)?),
    };
    Ok(((KeyId::from_random(row.get(0)?), read_digest(row, 1)?), prior))
}

fn read_status(row: &Row<'_>, column: usize) -> rusqlite::Result<Status> {
    let status: String = row.get(column)?;
    Status::parse(&status).ok_or_else(|| unreadable(column, &status))
}

pub(crate) fn read_digest(row: &Row<'_>, column: usize) -> rusqlite::Result<Digest> {
    Ok(Digest::from_bytes(row.get(column)?))
}

fn optional_time(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Timestamp>> {
    Ok(row.get::<_, Option<i64>>(column)?.map(Timestamp::from_millis))
}

fn unreadable(column: usize, what: &str) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, format!("unexpected `{what}`").into())
}
