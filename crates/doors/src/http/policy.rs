//! `/v1/policy/{profile}`: the policy document, changed only against the hash it was read with.

use axum::Json;
use axum::extract::Path;
use countersign_model::{Digest, Policy};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::{IntoParams, ToSchema};

use super::auth::AsAdmin;
use super::body::{JsonBody, read_fields};
use super::openapi::CommonErrors;
use super::problem::{ErrorBody, Problem};
use crate::gateway::{Document, SetDocument, read_document, write_document};

/// For the documentation: what a profile's name may be.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[expect(dead_code, reason = "documents a path segment that the gate checks")]
struct ProfilePath {
    #[param(min_length = 1, max_length = 64, pattern = "^[A-Za-z0-9][A-Za-z0-9._@:-]*$")]
    profile: String,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct PolicyOut {
    profile: String,
    /// False: no document is stored, and `policy` is the built-in default.
    exists: bool,
    /// What a change must name as its `base_hash`.
    hash: String,
    #[schema(value_type = Object)]
    policy: Value,
    /// Why the stored document cannot be used; then everything is denied until it is replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct PolicyIn {
    /// The hash of the document that the change was made to.
    #[schema(pattern = "^[0-9a-f]{64}$", min_length = 64, max_length = 64)]
    base_hash: String,
    #[schema(value_type = Object)]
    policy: Value,
}

/// One profile's document.
#[utoipa::path(
    get, path = "/v1/policy/{profile}", tag = "policy", params(ProfilePath),
    responses((status = 200, description = "the document and its hash", body = PolicyOut), CommonErrors),
    security(("admin" = []))
)]
pub(super) async fn get(AsAdmin(admin): AsAdmin, Path(profile): Path<String>) -> Result<Json<PolicyOut>, Problem> {
    let found = admin.policy(&profile).await?;
    let (policy, error) = match &found.stored.policy {
        Ok(policy) => (json!(policy), None),
        Err(error) => (json!({}), Some(error.to_string())),
    };
    let hash = found.stored.hash.to_hex();
    Ok(Json(PolicyOut { profile, exists: found.stored.exists, hash, policy, error }))
}

/// Replaces one profile's document. Unknown fields are refused by name.
#[utoipa::path(
    put, path = "/v1/policy/{profile}", tag = "policy", params(ProfilePath),
    request_body = PolicyIn,
    responses(
        (status = 200, description = "stored", body = PolicyOut),
        (status = 409, description = "changed meanwhile; `hash` is the current one", body = ErrorBody),
        CommonErrors,
    ),
    security(("admin" = []))
)]
pub(super) async fn put(
    AsAdmin(admin): AsAdmin,
    Path(profile): Path<String>,
    body: JsonBody<PolicyIn>,
) -> Result<Json<PolicyOut>, Problem> {
    let base_hash = Digest::from_hex(&body.value.base_hash).ok_or_else(|| {
        Problem::unprocessable("invalid_field", "`base_hash` is 64 hex digits; read the policy first")
    })?;
    let policy: Policy = read_fields(body.value.policy, "invalid_policy")?;
    let document = json!(policy);
    let stored = admin.put_policy(&profile, policy, base_hash, Vec::new()).await?;
    let hash = stored.hash.to_hex();
    Ok(Json(PolicyOut { profile, exists: true, hash, policy: document, error: None }))
}

/// The same policy in the gateway's shape, with the entries that answers made.
#[utoipa::path(
    get, path = "/v1/policy/{profile}/document", tag = "policy", params(ProfilePath),
    responses((status = 200, description = "the document and its hash", body = Document), CommonErrors),
    security(("admin" = []))
)]
pub(super) async fn get_document(
    AsAdmin(admin): AsAdmin,
    Path(profile): Path<String>,
) -> Result<Json<Document>, Problem> {
    Ok(Json(read_document(&admin, &profile).await?))
}

/// Replaces it. What the document has no field for stays; an answer's entry that is left out is revoked.
#[utoipa::path(
    put, path = "/v1/policy/{profile}/document", tag = "policy", params(ProfilePath), request_body = SetDocument,
    responses(
        (status = 200, description = "stored", body = Document),
        (status = 409, description = "changed meanwhile; `hash` is the current one", body = ErrorBody),
        CommonErrors,
    ),
    security(("admin" = []))
)]
pub(super) async fn put_document(
    AsAdmin(admin): AsAdmin,
    Path(profile): Path<String>,
    body: JsonBody<SetDocument>,
) -> Result<Json<Document>, Problem> {
    Ok(Json(write_document(&admin, &profile, body.value).await?))
}
