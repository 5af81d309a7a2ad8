//! What engines and relays need beside asking: how far they may go by themselves, and the way for the host beside one
//! to answer.

use axum::Json;
use axum::extract::Path;
use countersign_gate::HostAnswer;
use countersign_model::{Choice, Mode};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::approvals::parse_id;
use super::auth::AsAgent;
use super::body::JsonBody;
use super::openapi::CommonErrors;
use super::problem::{ErrorBody, Problem};
use super::wire::AgentView;

/// How much of what an engine is asked for runs without asking.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum ModeWord {
    Default,
    AutoEdit,
    Force,
}

impl From<Mode> for ModeWord {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Default => Self::Default,
            Mode::AutoEdit => Self::AutoEdit,
            Mode::Force => Self::Force,
        }
    }
}

impl From<ModeWord> for Mode {
    fn from(word: ModeWord) -> Self {
        match word {
            ModeWord::Default => Self::Default,
            ModeWord::AutoEdit => Self::AutoEdit,
            ModeWord::Force => Self::Force,
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct EngineOut {
    /// Whether the host beside an engine may answer for it.
    host_may_decide: bool,
    max_mode: ModeWord,
}

/// How far an engine of this key may go by itself, by its profile's policy.
#[utoipa::path(
    get, path = "/v1/engine", tag = "engine",
    responses((status = 200, description = "its rights", body = EngineOut), CommonErrors),
    security(("agent" = []))
)]
pub(super) async fn rights(AsAgent(agent): AsAgent) -> Result<Json<EngineOut>, Problem> {
    let rights = agent.engine_rights().await?;
    Ok(Json(EngineOut { host_may_decide: rights.host_may_decide, max_mode: rights.max_mode.into() }))
}

#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct HostDecisionIn {
    decision: HostDecisionWord,
    #[schema(max_length = 4096)]
    note: Option<String>,
    /// The answer to a question.
    #[schema(max_length = 4096)]
    answer: Option<String>,
    /// With `allow-session`: commands that begin with these words, in place of just this one.
    #[schema(max_length = 4096)]
    prefix: Option<String>,
}

/// A host's yes lasts as long as the session; for longer it takes a person.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum HostDecisionWord {
    AllowOnce,
    AllowSession,
    Deny,
}

/// The host beside an engine answers for it, where the profile's policy says `hostMayDecide`.
#[utoipa::path(
    post, path = "/v1/approvals/{id}/host-decision", tag = "engine",
    params(("id" = String, Path, description = "approval id")), request_body = HostDecisionIn,
    responses(
        (status = 200, description = "decided, and durable", body = AgentView),
        (status = 409, description = "decided before; `decision` is the winner's", body = ErrorBody),
        (status = 410, description = "the time to answer is over", body = ErrorBody),
        CommonErrors,
    ),
    security(("agent" = []))
)]
pub(super) async fn decide(
    AsAgent(agent): AsAgent,
    Path(id): Path<String>,
    body: JsonBody<HostDecisionIn>,
) -> Result<Json<AgentView>, Problem> {
    let HostDecisionIn { decision, note, answer, prefix } = body.value;
    let choice = match decision {
        HostDecisionWord::AllowOnce => Choice::AllowOnce,
        HostDecisionWord::AllowSession => Choice::AllowSession,
        HostDecisionWord::Deny => Choice::Deny,
    };
    let approval = agent.decide_as_host(parse_id(&id)?, HostAnswer { choice, note, answer, prefix }).await?;
    Ok(Json(AgentView::of(&approval)))
}
