//! `/v1/keys`: making, listing and revoking keys. A key is in an answer once, when it is made.

use axum::Json;
use axum::extract::Path;
use countersign_model::{KeyRecord, Role};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::auth::AsAdmin;
use super::body::{JsonBody, whole_number};
use super::openapi::CommonErrors;
use super::problem::{ErrorBody, Problem};

const MAX_EXPIRES_SEC: u64 = 3_162_240_000;

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Keys {
    keys: Vec<KeyOut>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct KeyOut {
    key_id: String,
    client_id: String,
    name: String,
    role: &'static str,
    profile: String,
    /// Unix seconds.
    created_at: i64,
    /// Unix seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<i64>,
    /// Unix seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    revoked_at: Option<i64>,
    /// Whether it is a device that was paired: its secret is its device id.
    paired: bool,
}

impl From<&KeyRecord> for KeyOut {
    fn from(key: &KeyRecord) -> Self {
        Self {
            key_id: key.id.to_string(),
            client_id: key.client_id.to_string(),
            name: key.name.clone(),
            role: key.role.as_str(),
            profile: key.profile.clone(),
            created_at: key.created_at.as_secs_ceil(),
            expires_at: key.expires_at.map(|at| at.as_secs_ceil()),
            revoked_at: key.revoked_at.map(|at| at.as_secs_ceil()),
            paired: key.paired,
        }
    }
}

#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct KeyIn {
    /// Stands on the record as who asked or decided.
    #[schema(min_length = 1, max_length = 64, pattern = "^[A-Za-z0-9][A-Za-z0-9._@:-]*$")]
    name: String,
    role: RoleIn,
    #[schema(min_length = 1, max_length = 64, pattern = "^[A-Za-z0-9][A-Za-z0-9._@:-]*$", default = "default")]
    profile: Option<String>,
    #[serde(default, deserialize_with = "whole_number")]
    #[schema(minimum = 1, maximum = 3162240000u64)]
    expires_in_sec: Option<u64>,
}

#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum RoleIn {
    Agent,
    Approver,
    Admin,
    Inbox,
    Node,
}

impl From<RoleIn> for Role {
    fn from(role: RoleIn) -> Self {
        match role {
            RoleIn::Agent => Self::Agent,
            RoleIn::Approver => Self::Approver,
            RoleIn::Admin => Self::Admin,
            RoleIn::Inbox => Self::Inbox,
            RoleIn::Node => Self::Node,
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct KeyMade {
    /// The key itself, here and never again.
    key: String,
    #[serde(flatten)]
    about: KeyOut,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct KeyRevoked {
    /// Always `revoked`.
    status: &'static str,
    key_id: String,
}

/// All keys, revoked ones too; never a key itself.
#[utoipa::path(
    get, path = "/v1/keys", tag = "keys",
    responses((status = 200, description = "all keys", body = Keys), CommonErrors), security(("admin" = []))
)]
pub(super) async fn list(AsAdmin(admin): AsAdmin) -> Result<Json<Keys>, Problem> {
    let keys = admin.keys().await?;
    Ok(Json(Keys { keys: keys.iter().map(KeyOut::from).collect() }))
}

/// Makes a key with exactly one role.
#[utoipa::path(
    post, path = "/v1/keys", tag = "keys", request_body = KeyIn,
    responses((status = 200, description = "made; the only time the key is shown", body = KeyMade), CommonErrors),
    security(("admin" = []))
)]
pub(super) async fn create(AsAdmin(admin): AsAdmin, body: JsonBody<KeyIn>) -> Result<Json<KeyMade>, Problem> {
    let wanted = body.value;
    let profile = wanted.profile.as_deref().unwrap_or("default");
    if wanted.expires_in_sec.is_some_and(|seconds| !(1..=MAX_EXPIRES_SEC).contains(&seconds)) {
        return Err(Problem::unprocessable("invalid_field", "`expires_in_sec` is from 1 second to a hundred years"));
    }
    let expires_in_ms = wanted.expires_in_sec.map(|seconds| seconds.saturating_mul(1000));
    let (key, secret) = admin.create_key(&wanted.name, wanted.role.into(), profile, expires_in_ms).await?;
    Ok(Json(KeyMade { key: secret.reveal().to_owned(), about: KeyOut::from(&key) }))
}

/// Revokes a key at once; connections that it opened end.
#[utoipa::path(
    delete, path = "/v1/keys/{key_id}", tag = "keys", params(("key_id" = String, Path, description = "key id")),
    responses(
        (status = 200, description = "revoked", body = KeyRevoked),
        (status = 409, description = "it is the key of this very request", body = ErrorBody),
        CommonErrors,
    ),
    security(("admin" = []))
)]
pub(super) async fn revoke(AsAdmin(admin): AsAdmin, Path(key_id): Path<String>) -> Result<Json<KeyRevoked>, Problem> {
    admin.revoke_key(key_id.parse().map_err(|_| Problem::not_found())?).await?;
    Ok(Json(KeyRevoked { status: "revoked", key_id }))
}
