//! A grant as it is listed.

use countersign_model::{Grant, GrantKind, mask};
use serde::Serialize;
use utoipa::ToSchema;

/// A grant of any kind.
#[derive(Debug, Serialize, ToSchema)]
pub(in super::super) struct GrantOut {
    grant_id: String,
    /// `action_type`, `tool`, `command` or `exact`.
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    action_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
    /// Of a grant for commands: what it covers.
    #[serde(skip_serializing_if = "Option::is_none")]
    entries: Option<Vec<String>>,
    /// Where it holds, in words; anywhere, where nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    holds: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    client_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<String>,
    profile: String,
    /// Unix seconds.
    created_at: i64,
    created_by: String,
    /// The approval whose answer made it.
    approval_id: String,
    /// Unix seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<i64>,
}

impl From<&Grant> for GrantOut {
    fn from(grant: &Grant) -> Self {
        let empty = Self {
            grant_id: grant.id.to_string(),
            kind: "",
            action_type: None,
            tool: None,
            entries: None,
            holds: grant.place.as_ref().map(|place| mask(&place.words()).text),
            digest: None,
            client_id: grant.scope.client_id.to_string(),
            session_id: grant.scope.session.clone(),
            profile: grant.scope.profile.clone(),
            created_at: grant.created_at.as_secs_ceil(),
            created_by: grant.created_by.clone(),
            approval_id: grant.approval_id.to_string(),
            expires_at: grant.expires_at.map(|at| at.as_secs_ceil()),
        };
        match &grant.kind {
            GrantKind::ActionType { action_type, tool } => {
                Self { kind: "action_type", action_type: Some(action_type.to_string()), tool: tool.clone(), ..empty }
            }
            GrantKind::Tool { name } => Self { kind: "tool", tool: Some(name.clone()), ..empty },
            GrantKind::Command { entries } => {
                let entries = entries.iter().map(|entry| mask(&entry.pattern).text).collect();
                Self { kind: "command", entries: Some(entries), ..empty }
            }
            GrantKind::Exact { digest } => Self { kind: "exact", digest: Some(digest.to_hex()), ..empty },
        }
    }
}
