//! `/healthz`, `/readyz`, `/metrics`: for whoever keeps the gate running.

use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use countersign_gate::Health;
use serde::Serialize;
use utoipa::ToSchema;

use super::auth::AsAdmin;
use super::openapi::CommonErrors;
use super::problem::{ErrorBody, Problem};
use super::router::{Access, AppState};

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Healthy {
    /// Always `ok`.
    status: &'static str,
    version: &'static str,
}

/// The process is up.
#[utoipa::path(get, path = "/healthz", tag = "health", responses((status = 200, description = "up", body = Healthy), CommonErrors))]
pub(super) async fn healthz() -> Json<Healthy> {
    Json(healthy())
}

fn healthy() -> Healthy {
    Healthy { status: "ok", version: env!("CARGO_PKG_VERSION") }
}

/// The gate can take a decision now: the store was written to and answered.
#[utoipa::path(
    get, path = "/readyz", tag = "health",
    responses(
        (status = 200, description = "ready", body = Healthy),
        (status = 503, description = "not ready, and why", body = ErrorBody),
        CommonErrors,
    )
)]
pub(super) async fn readyz(State(state): State<AppState>) -> Result<Json<Healthy>, Problem> {
    match state.readiness.check(&state.gate).await {
        Health::Ready => Ok(Json(healthy())),
        Health::NotReady(why) => Err(Problem::unavailable(format!("not ready: {why}"))),
    }
}

/// Figures in the OpenMetrics text format.
#[utoipa::path(
    get, path = "/metrics", tag = "health",
    responses((status = 200, description = "figures", content_type = "application/openmetrics-text", body = String), CommonErrors)
)]
pub(super) async fn metrics(
    State(state): State<AppState>,
    admin: Result<AsAdmin, Problem>,
) -> Result<Response, Problem> {
    match state.config.metrics {
        Access::Open => {}
        Access::Admin => drop(admin?),
        Access::Off => return Err(Problem::not_found()),
    }
    let text = state.metrics.render(&state.gate);
    let content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, content_type)], text).into_response())
}
