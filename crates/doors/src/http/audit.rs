//! `/v1/audit`: the hash-chained record, line by line.

use axum::Json;
use axum::extract::Query;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use super::approvals::invalid_query;
use super::auth::AsAdmin;
use super::openapi::CommonErrors;
use super::problem::Problem;

const PAGE: usize = 1000;
/// The largest number that every JSON reader has exactly.
const MAX_SEQ: u64 = 9_007_199_254_740_991;

/// A place in the record as a query names it.
pub(super) fn check_seq(after: Option<u64>) -> Result<Option<u64>, Problem> {
    match after {
        Some(seq) if seq > MAX_SEQ => Err(Problem::unprocessable("invalid_query", "`after` is no event's number")),
        Some(_) | None => Ok(after),
    }
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct AuditQuery {
    /// The last number you have.
    #[param(minimum = 0, maximum = 9007199254740991u64)]
    after: Option<u64>,
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct AuditPage {
    events: Vec<AuditEntry>,
    /// Pass it as `after` for the next page; null at the end.
    next_after: Option<u64>,
}

/// `hash` is the SHA-256 of the previous hash and the event's canonical JSON.
#[derive(Debug, Serialize, ToSchema)]
struct AuditEntry {
    #[schema(value_type = Object)]
    event: Value,
    hash: String,
}

/// The record after a number. `countersign audit verify --file` checks an export without the gate.
#[utoipa::path(
    get, path = "/v1/audit", tag = "audit", params(AuditQuery),
    responses((status = 200, description = "one page", body = AuditPage), CommonErrors), security(("admin" = []))
)]
pub(super) async fn list(
    AsAdmin(admin): AsAdmin,
    query: Result<Query<AuditQuery>, axum::extract::rejection::QueryRejection>,
) -> Result<Json<AuditPage>, Problem> {
    let Query(query) = query.map_err(|error| invalid_query(&error))?;
    let limit = query.limit.unwrap_or(PAGE);
    if !(1..=PAGE).contains(&limit) {
        return Err(Problem::unprocessable("invalid_query", "`limit` is from 1 to 1000"));
    }
    let after = check_seq(query.after)?.unwrap_or(0);
    let lines = admin.audit(after, limit).await?;
    let next_after = lines.last().filter(|_| lines.len() >= limit).map(|line| line.seq);
    let entry = |line: &countersign_gate::AuditLine| {
        let event = serde_json::from_slice(&line.line)
            .map_err(|error| Problem::unavailable(format!("event {} does not read: {error}", line.seq)))?;
        Ok(AuditEntry { event, hash: line.hash.to_hex() })
    };
    Ok(Json(AuditPage { events: lines.iter().map(entry).collect::<Result<_, Problem>>()?, next_after }))
}
