//! Grants: the entry grants and the seed's allow rules and session allows, in one list and in two views.

use axum::Json;
use axum::extract::Path;
use countersign_model::{Grant, GrantKind};
use serde::Serialize;
use utoipa::ToSchema;

use super::auth::{AsAgent, AsApprover, Reader};
use super::openapi::CommonErrors;
use super::problem::Problem;
use super::wire::GrantOut;

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Grants {
    grants: Vec<GrantOut>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct AllowRules {
    rules: Vec<AllowRule>,
}

/// A permanent allow of one action type for one client.
#[derive(Debug, Serialize, ToSchema)]
struct AllowRule {
    rule_id: String,
    client_id: String,
    action_type: String,
    enabled: bool,
    /// Unix seconds.
    created_at: i64,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SessionAllows {
    session_allows: Vec<SessionAllow>,
}

/// An allow of one action type for one client in one session.
#[derive(Debug, Serialize, ToSchema)]
struct SessionAllow {
    id: String,
    client_id: String,
    session_id: String,
    action_type: String,
    /// Unix seconds.
    created_at: i64,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Revoked {
    /// Always `revoked`.
    status: &'static str,
    id: String,
}

impl Reader {
    async fn grants(&self) -> Result<Vec<Grant>, Problem> {
        Ok(match self {
            Self::Agent(agent) => agent.grants().await?,
            Self::Approver(approver) => approver.grants().await?,
        })
    }
}

/// Every grant in force; an agent sees its own.
#[utoipa::path(
    get, path = "/v1/grants", tag = "grants",
    responses((status = 200, description = "in force", body = Grants), CommonErrors),
    security(("agent" = []), ("approver" = []))
)]
pub(super) async fn list(reader: Reader) -> Result<Json<Grants>, Problem> {
    let grants = reader.grants().await?;
    Ok(Json(Grants { grants: grants.iter().map(GrantOut::from).collect() }))
}

/// The permanent allows made by code 6.
#[utoipa::path(
    get, path = "/v1/allow-rules", tag = "grants",
    responses((status = 200, description = "in force", body = AllowRules), CommonErrors),
    security(("agent" = []), ("approver" = []))
)]
pub(super) async fn allow_rules(reader: Reader) -> Result<Json<AllowRules>, Problem> {
    let grants = reader.grants().await?;
    let rule = |grant: &Grant| match &grant.kind {
        GrantKind::ActionType { action_type, .. } if grant.scope.session.is_none() => Some(AllowRule {
            rule_id: grant.id.to_string(),
            client_id: grant.scope.client_id.to_string(),
            action_type: action_type.to_string(),
            enabled: true,
            created_at: grant.created_at.as_secs_ceil(),
        }),
        GrantKind::ActionType { .. } | GrantKind::Tool { .. } | GrantKind::Command { .. } | GrantKind::Exact { .. } => {
            None
        }
    };
    Ok(Json(AllowRules { rules: grants.iter().filter_map(rule).collect() }))
}

/// The session allows made by code 2.
#[utoipa::path(
    get, path = "/v1/session-allows", tag = "grants",
    responses((status = 200, description = "in force", body = SessionAllows), CommonErrors),
    security(("agent" = []), ("approver" = []))
)]
pub(super) async fn session_allows(reader: Reader) -> Result<Json<SessionAllows>, Problem> {
    let grants = reader.grants().await?;
    let allow = |grant: &Grant| match (&grant.kind, &grant.scope.session) {
        (GrantKind::ActionType { action_type, .. }, Some(session)) => Some(SessionAllow {
            id: grant.id.to_string(),
            client_id: grant.scope.client_id.to_string(),
            session_id: session.clone(),
            action_type: action_type.to_string(),
            created_at: grant.created_at.as_secs_ceil(),
        }),
        (
            GrantKind::ActionType { .. } | GrantKind::Tool { .. } | GrantKind::Command { .. } | GrantKind::Exact { .. },
            _,
        ) => None,
    };
    Ok(Json(SessionAllows { session_allows: grants.iter().filter_map(allow).collect() }))
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SessionEnded {
    /// Always `ended`.
    status: &'static str,
    /// How many grants ended with it.
    grants: u64,
}

/// A session of the agent is over: what was allowed for it ends, at once.
#[utoipa::path(
    post, path = "/v1/sessions/{id}/end", tag = "grants", params(("id" = String, Path, description = "session id")),
    responses((status = 200, description = "none of its grants holds any more", body = SessionEnded), CommonErrors),
    security(("agent" = []))
)]
pub(super) async fn end_session(
    AsAgent(agent): AsAgent,
    Path(id): Path<String>,
) -> Result<Json<SessionEnded>, Problem> {
    Ok(Json(SessionEnded { status: "ended", grants: agent.end_session(&id).await? }))
}

/// Ends a grant at once.
#[utoipa::path(
    delete, path = "/v1/grants/{id}", tag = "grants", params(("id" = String, Path, description = "grant id")),
    responses((status = 200, description = "revoked", body = Revoked), CommonErrors),
    security(("approver" = []))
)]
pub(super) async fn revoke(approver: AsApprover, Path(id): Path<String>) -> Result<Json<Revoked>, Problem> {
    revoke_any(approver, id).await
}

/// Ends a permanent allow at once.
#[utoipa::path(
    delete, path = "/v1/allow-rules/{rule_id}", tag = "grants", params(("rule_id" = String, Path, description = "rule id")),
    responses((status = 200, description = "revoked", body = Revoked), CommonErrors),
    security(("approver" = []))
)]
pub(super) async fn revoke_rule(approver: AsApprover, Path(id): Path<String>) -> Result<Json<Revoked>, Problem> {
    revoke_any(approver, id).await
}

/// Ends a session allow at once.
#[utoipa::path(
    delete, path = "/v1/session-allows/{id}", tag = "grants", params(("id" = String, Path, description = "session allow id")),
    responses((status = 200, description = "revoked", body = Revoked), CommonErrors),
    security(("approver" = []))
)]
pub(super) async fn revoke_session_allow(
    approver: AsApprover,
    Path(id): Path<String>,
) -> Result<Json<Revoked>, Problem> {
    revoke_any(approver, id).await
}

async fn revoke_any(AsApprover(approver): AsApprover, id: String) -> Result<Json<Revoked>, Problem> {
    approver.revoke_grant(id.parse().map_err(|_| Problem::not_found())?).await?;
    Ok(Json(Revoked { status: "revoked", id }))
}
