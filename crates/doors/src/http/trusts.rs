//! `/v1/trusts`: workspaces whose `.agents/terminal.json` a person trusts, byte for byte.

use axum::Json;
use axum::extract::Query;
use countersign_model::Trust;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::auth::{AsApprover, Reader};
use super::body::JsonBody;
use super::openapi::CommonErrors;
use super::problem::Problem;

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct TrustOut {
    workspace: String,
    /// SHA-256 of the file's bytes.
    hash: String,
    text: String,
    by: String,
    /// Unix seconds.
    at: i64,
}

impl From<Trust> for TrustOut {
    fn from(trust: Trust) -> Self {
        let hash = trust.hash().to_hex();
        Self { workspace: trust.workspace, hash, text: trust.text, by: trust.by, at: trust.at.as_secs_ceil() }
    }
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Trusts {
    trusts: Vec<TrustOut>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Untrusted {
    #[schema(example = "untrusted")]
    status: &'static str,
}

#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct TrustIn {
    /// Absolute, without links.
    #[schema(min_length = 1, max_length = 4096, pattern = "^/[!-~]*$")]
    workspace: String,
    /// The file's text: from now on just these bytes are trusted.
    text: String,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct WorkspaceQuery {
    #[param(min_length = 1, max_length = 4096, pattern = "^/[!-~]*$")]
    workspace: String,
}

type Asked = Result<Query<WorkspaceQuery>, axum::extract::rejection::QueryRejection>;

fn workspace(query: Asked) -> Result<String, Problem> {
    let Query(query) = query.map_err(|error| Problem::unprocessable("invalid_query", error.body_text()))?;
    Ok(query.workspace)
}

/// All of them.
#[utoipa::path(
    get, path = "/v1/trusts", tag = "trusts",
    responses((status = 200, description = "trusted workspaces", body = Trusts), CommonErrors),
    security(("approver" = []))
)]
pub(super) async fn list(AsApprover(approver): AsApprover) -> Result<Json<Trusts>, Problem> {
    let trusts = approver.trusts().await?.into_iter().map(TrustOut::from).collect();
    Ok(Json(Trusts { trusts }))
}

/// The trusted text of one workspace's file, for a runner that writes it where it belongs.
#[utoipa::path(
    get, path = "/v1/trusts/file", tag = "trusts", params(WorkspaceQuery),
    responses((status = 200, description = "the file", body = TrustOut), CommonErrors),
    security(("agent" = []), ("approver" = []))
)]
pub(super) async fn file(reader: Reader, query: Asked) -> Result<Json<TrustOut>, Problem> {
    let workspace = workspace(query)?;
    let trust = match reader {
        Reader::Agent(agent) => agent.trusted_file(&workspace).await?,
        Reader::Approver(approver) => approver.trusted_file(&workspace).await?,
    };
    Ok(Json(trust.into()))
}

/// Trusts a workspace's file as it is.
#[utoipa::path(
    put, path = "/v1/trusts", tag = "trusts", request_body = TrustIn,
    responses((status = 200, description = "trusted, and on the record", body = TrustOut), CommonErrors),
    security(("approver" = []))
)]
pub(super) async fn put(AsApprover(approver): AsApprover, body: JsonBody<TrustIn>) -> Result<Json<TrustOut>, Problem> {
    let TrustIn { workspace, text } = body.value;
    approver.trust(&workspace, text).await?;
    Ok(Json(approver.trusted_file(&workspace).await?.into()))
}

/// Takes the trust back: from now on what the file allows counts for nothing.
#[utoipa::path(
    delete, path = "/v1/trusts", tag = "trusts", params(WorkspaceQuery),
    responses((status = 200, description = "no longer trusted", body = Untrusted), CommonErrors),
    security(("approver" = []))
)]
pub(super) async fn remove(AsApprover(approver): AsApprover, query: Asked) -> Result<Json<Untrusted>, Problem> {
    approver.untrust(&workspace(query)?).await?;
    Ok(Json(Untrusted { status: "untrusted" }))
}
