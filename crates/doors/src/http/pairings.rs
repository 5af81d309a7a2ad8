//! `/v1/pairings`: a one-time code with which a device becomes an approver. Paired devices are keys, and are listed and
//! revoked as keys are.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::auth::AsAdmin;
use super::body::JsonBody;
use super::openapi::CommonErrors;
use super::problem::{ErrorBody, Problem};
use super::router::AppState;

#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct PairingIn {
    /// Whose device it will be; stands on the record as who decided. By default the caller.
    #[schema(min_length = 1, max_length = 64, pattern = "^[A-Za-z0-9][A-Za-z0-9._@:-]*$")]
    name: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct PairingOut {
    /// To be typed or scanned on the device, once; here and never again.
    #[schema(example = "ABCD-EFGH-JKLM-NPQR")]
    code: String,
    name: String,
    /// Unix milliseconds.
    expires_at_ms: i64,
    /// The device that the hub is.
    hub_id: String,
    /// Where the hub is.
    gateway: String,
}

/// Makes a code that pairs one device, within ten minutes.
#[utoipa::path(
    post, path = "/v1/pairings", tag = "keys", request_body = PairingIn,
    responses(
        (status = 200, description = "made; the only time the code is shown", body = PairingOut),
        (status = 409, description = "no gate is running that a device could reach", body = ErrorBody),
        CommonErrors,
    ),
    security(("admin" = []))
)]
pub(super) async fn create(
    State(state): State<AppState>,
    AsAdmin(admin): AsAdmin,
    body: JsonBody<PairingIn>,
) -> Result<Json<PairingOut>, Problem> {
    // A code lives in this process, and ends with it.
    let Some(gateway) = state.config.url.clone() else {
        let message = "no gate is running on this folder; start it with `countersign serve`, then pair";
        return Err(Problem::new(StatusCode::CONFLICT, "not_serving", message));
    };
    let hub_id = state.hub.id().await?;
    let name = body.value.name.as_deref().unwrap_or_else(|| admin.as_approver().name());
    let (code, pairing) = admin.pair(name)?;
    Ok(Json(PairingOut {
        code: code.reveal().to_owned(),
        name: pairing.name,
        expires_at_ms: pairing.expires_at.as_millis(),
        hub_id: hub_id.to_string(),
        gateway,
    }))
}
