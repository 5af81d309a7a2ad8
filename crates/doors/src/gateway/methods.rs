//! Which methods there are, who may call them, and the short ones.

use countersign_gate::{AdminHandle, AgentHandle, ApproverHandle};
use countersign_model::GrantId;
use serde::Deserialize;
use serde_json::{Value, json};

use super::connection::Session;
use super::document::{self, SetDocument};
use super::frame::{Failure, read};
use super::hello::{ADMIN, APPROVALS, Who};
use super::{forwarded, requests, views};

pub(super) const NAMES: [&str; 22] = [
    "approval.get",
    "approval.history",
    "approval.resolve",
    "config.get",
    "exec.approval.get",
    "exec.approval.grants.list",
    "exec.approval.grants.revoke",
    "exec.approval.list",
    "exec.approval.request",
    "exec.approval.resolve",
    "exec.approval.waitDecision",
    "exec.approvals.get",
    "exec.approvals.node.get",
    "exec.approvals.node.set",
    "exec.approvals.set",
    "forward.request",
    "forward.withdraw",
    "health",
    "node.invoke.result",
    "node.list",
    "openclaw.approval.list",
    "plugin.approval.list",
];

pub(super) const EVENTS: [&str; 7] = [
    "connect.challenge",
    "exec.approval.requested",
    "exec.approval.resolved",
    "node.invoke.request",
    "protocol.error",
    "shutdown",
    "tick",
];

const MAX_GRANTS: usize = 500;

/// `id`: of the request, for a method that answers twice.
pub(super) async fn call(session: &Session, id: &str, method: &str, params: Value) -> Result<Value, Failure> {
    match method {
        "exec.approval.request" => requests::request(session, id, read(method, params)?).await,
        "exec.approval.waitDecision" => requests::wait_decision(session, read(method, params)?).await,
        "exec.approval.list" => requests::list(session).await,
        "exec.approval.get" => requests::get(session, read(method, params)?).await,
        "exec.approval.resolve" => requests::resolve(session.approver()?, read(method, params)?).await,
        "approval.get" => requests::snapshot(session, read(method, params)?).await,
        "approval.resolve" => requests::resolve_snapshot(session, read(method, params)?).await,
        "approval.history" => requests::history(session, read(method, params)?).await,
        "exec.approval.grants.list" => grants(session.approver()?, read(method, params)?).await,
        "exec.approval.grants.revoke" => revoke(session.approver()?, read(method, params)?).await,
        "exec.approvals.get" => {
            let admin = session.admin()?;
            Ok(json!(document::read_document(admin, admin.as_approver().profile()).await?))
        }
        "exec.approvals.set" => {
            let (admin, set) = (session.admin()?, read::<SetDocument>(method, params)?);
            Ok(json!(document::write_document(admin, admin.as_approver().profile(), set).await?))
        }
        "exec.approvals.node.get" | "exec.approvals.node.set" => {
            session.admin()?;
            session.gateway.nodes.approvals(method, read(method, params)?).await
        }
        "node.list" => {
            session.approver()?;
            Ok(json!({ "ts": session.gateway.gate.now().as_millis(), "nodes": session.gateway.nodes.list() }))
        }
        "node.invoke.result" => session.gateway.nodes.take_result(session, read(method, params)?),
        "forward.request" => forwarded::request(session, id, read(method, params)?).await,
        "forward.withdraw" => forwarded::withdraw(session, read(method, params)?).await,
        "plugin.approval.list" | "openclaw.approval.list" => session.approver().map(|_| json!([])),
        "config.get" => session.approver().map(|_| config()),
        "health" => Ok(json!({ "ok": true, "ts": session.gateway.gate.now().as_millis() })),
        "connect" => Err(Failure::invalid("this connection is connected already")),
        unknown => {
            let shown: String = unknown.chars().take(64).collect();
            Err(Failure::invalid(format!("unknown method: {}", countersign_model::escape_line(&shown))))
        }
    }
}

impl Session {
    pub(super) fn approver(&self) -> Result<&ApproverHandle, Failure> {
        match &self.who {
            Who::Person { approver, .. } => Ok(approver),
            Who::Agent(_) | Who::Node { .. } => Err(Failure::missing_scope(APPROVALS)),
        }
    }

    pub(super) fn admin(&self) -> Result<&AdminHandle, Failure> {
        match &self.who {
            Who::Person { admin: Some(admin), .. } => Ok(admin),
            Who::Person { admin: None, .. } | Who::Agent(_) | Who::Node { .. } => Err(Failure::missing_scope(ADMIN)),
        }
    }

    /// Whoever may ask: agents, and people for themselves.
    pub(super) fn asker(&self) -> Result<AgentHandle, Failure> {
        match &self.who {
            Who::Agent(agent) => Ok(agent.clone()),
            Who::Person { approver, .. } => Ok(approver.as_requester()),
            Who::Node { .. } => Err(Failure::missing_scope(APPROVALS)),
        }
    }
}

#[derive(Deserialize)]
pub(super) struct GrantsParams {
    limit: Option<usize>,
}

async fn grants(approver: &ApproverHandle, params: GrantsParams) -> Result<Value, Failure> {
    let limit = params.limit.unwrap_or(MAX_GRANTS).min(MAX_GRANTS);
    let grants = approver.grants().await?;
    Ok(json!({ "grants": grants.iter().rev().take(limit).map(views::grant).collect::<Vec<_>>() }))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RevokeParams {
    grant_id: String,
}

async fn revoke(approver: &ApproverHandle, params: RevokeParams) -> Result<Value, Failure> {
    let Ok(id) = params.grant_id.parse::<GrantId>() else { return Ok(json!({ "outcome": "not-found" })) };
    let outcome = match approver.grant(id).await? {
        None => "not-found",
        Some(grant) if grant.revoked_at.is_some() => "already-revoked",
        Some(_) => match approver.revoke_grant(id).await {
            Ok(()) => "revoked",
            Err(countersign_gate::GateError::Refused(countersign_gate::Refused::NoSuchGrant)) => "already-revoked",
            Err(other) => return Err(other.into()),
        },
    };
    Ok(json!({ "outcome": outcome }))
}

/// Command lines ask for it before they show anything: there is nothing in it to go by.
fn config() -> Value {
    json!({
        "path": "store:config",
        "exists": false,
        "raw": null,
        "parsed": {},
        "valid": true,
        "config": {},
        "issues": [],
        "warnings": [],
        "legacyIssues": [],
    })
}
