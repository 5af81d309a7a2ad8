//! `/v1/approvals`: asking, reading, deciding, cancelling, consuming.

use axum::extract::{Path, Query, State};
use countersign_gate::ListFilter;
use countersign_model::{Answer, ApprovalId, Choice, Code, Digest, GrantTerms, RunEnd, Status, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::auth::{AsAgent, AsApprover, Reader};
use super::body::{Json, JsonBody, Object, whole_number};
use super::openapi::CommonErrors;
use super::problem::{ErrorBody, Problem};
use super::router::AppState;
use super::wire::{AgentView, CreateApproval, Page, Record, View};

const MAX_WAIT_SECS: u64 = 60;
/// A longer wish is a mistake, not a wish.
const MAX_WAIT_SENT: u64 = 86_400;
const DEFAULT_PAGE: usize = 50;
const MAX_PAGE: usize = 200;

pub(super) fn parse_id(text: &str) -> Result<ApprovalId, Problem> {
    text.parse().map_err(|_| Problem::not_found())
}

/// Query strings are read by hand where the type system says more than text: one bad value, one clear error.
pub(super) fn invalid_query(error: &axum::extract::rejection::QueryRejection) -> Problem {
    Problem::unprocessable("invalid_query", format!("the query is not as documented: {}", error.body_text()))
}

/// Until when the answer is held, if it is to be held at all.
fn until(state: &AppState, wait: Option<u64>) -> Result<Option<Timestamp>, Problem> {
    match wait {
        None | Some(0) => Ok(None),
        Some(seconds) if seconds > MAX_WAIT_SENT => {
            Err(Problem::unprocessable("invalid_field", format!("`wait` is at most {MAX_WAIT_SENT} seconds")))
        }
        Some(seconds) => {
            let seconds = seconds.min(MAX_WAIT_SECS).min(state.config.max_wait_secs);
            Ok(Some(state.gate.now().plus_millis(seconds * 1000)))
        }
    }
}

/// Asks. Policy may answer at once (`auto`); otherwise a person is asked.
#[utoipa::path(
    post, path = "/v1/approvals", tag = "approvals", request_body = CreateApproval,
    responses(
        (status = 200, description = "ruled by policy, or pending", body = AgentView),
        (status = 409, description = "the idempotency key was used with another body", body = ErrorBody),
        CommonErrors,
    ),
    security(("agent" = []))
)]
pub(super) async fn create(
    State(state): State<AppState>,
    AsAgent(agent): AsAgent,
    body: JsonBody<CreateApproval>,
) -> Result<Json<AgentView>, Problem> {
    let until = until(&state, body.value.wait)?;
    let (approval, _) = agent.request(body.value.into_request(&body.bytes, &agent.command_types())?).await?;
    let approval = match until {
        Some(until) if approval.status() == Status::Pending => agent.wait(approval.id, until).await?,
        Some(_) | None => approval,
    };
    Ok(Json(AgentView::of(&approval)))
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct WaitQuery {
    /// Seconds to hold the answer while it is pending; at most 60 count.
    #[param(minimum = 0, maximum = 86400)]
    wait: Option<u64>,
}

/// The state of one request. With `wait`, the answer comes when it ends: no client polls.
#[utoipa::path(
    get, path = "/v1/approvals/{id}", tag = "approvals",
    params(("id" = String, Path, description = "approval id"), WaitQuery),
    responses((status = 200, description = "an agent gets its view, an approver the record", body = View), CommonErrors),
    security(("agent" = []), ("approver" = []))
)]
pub(super) async fn get(
    State(state): State<AppState>,
    reader: Reader,
    Path(id): Path<String>,
    query: Result<Query<WaitQuery>, axum::extract::rejection::QueryRejection>,
) -> Result<Json<View>, Problem> {
    let Query(query) = query.map_err(|error| invalid_query(&error))?;
    let id = parse_id(&id)?;
    let until = until(&state, query.wait)?;
    let view = match reader {
        Reader::Agent(agent) => {
            let approval = match until {
                Some(until) => agent.wait(id, until).await?,
                None => agent.get(id).await?,
            };
            View::Agent(Box::new(AgentView::of(&approval)))
        }
        Reader::Approver(approver) => {
            let approval = match until {
                Some(until) => approver.wait(id, until).await?,
                None => approver.get(id).await?,
            };
            View::Record(Box::new(Record::of(&approval)))
        }
    };
    Ok(Json(view))
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ListQuery {
    /// `pending`, `approved`, `denied`, `expired` or `cancelled`.
    #[param(schema_with = status_schema)]
    status: Option<String>,
    /// From the page before.
    #[param(pattern = "^[0-9]{1,18}$")]
    cursor: Option<String>,
    #[param(minimum = 1, maximum = 200)]
    limit: Option<usize>,
}

fn status_schema() -> utoipa::openapi::schema::Object {
    utoipa::openapi::schema::ObjectBuilder::new()
        .schema_type(utoipa::openapi::schema::Type::String)
        .enum_values(Some(Status::ALL.map(Status::as_str)))
        .build()
}

/// Requests of every client, newest first.
#[utoipa::path(
    get, path = "/v1/approvals", tag = "approvals", params(ListQuery),
    responses((status = 200, description = "one page", body = Page), CommonErrors),
    security(("approver" = []))
)]
pub(super) async fn list(
    AsApprover(approver): AsApprover,
    query: Result<Query<ListQuery>, axum::extract::rejection::QueryRejection>,
) -> Result<Json<Page>, Problem> {
    let Query(query) = query.map_err(|error| invalid_query(&error))?;
    let bad = |field: &str| Problem::unprocessable("invalid_query", format!("`{field}` is not as documented"));
    let status = query.status.map(|text| Status::parse(&text).ok_or_else(|| bad("status"))).transpose()?;
    let before = query.cursor.map(|text| text.parse().map_err(|_| bad("cursor"))).transpose()?;
    let limit = query.limit.unwrap_or(DEFAULT_PAGE);
    if !(1..=MAX_PAGE).contains(&limit) {
        return Err(bad("limit"));
    }
    let rows = approver.list(ListFilter { status, before, limit }).await?;
    Ok(Json(Page::of(&rows, limit)))
}

/// A decision in words, or a code of the menu with its text.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged, try_from = "serde_json::Map<String, serde_json::Value>")]
pub(super) enum DecisionIn {
    Menu(MenuIn),
    Words(WordsIn),
}

/// By hand, so that an error is about the form that was meant, and two answers at once are none.
impl TryFrom<serde_json::Map<String, serde_json::Value>> for DecisionIn {
    type Error = String;

    fn try_from(fields: serde_json::Map<String, serde_json::Value>) -> Result<Self, String> {
        let (menu, words) = (fields.contains_key("code"), fields.contains_key("decision"));
        let fields = serde_json::Value::Object(fields);
        match (menu, words) {
            (true, true) => Err("send `code` or `decision`, not both".to_owned()),
            (true, false) => MenuIn::deserialize(fields).map(Self::Menu).map_err(|error| error.to_string()),
            (false, _) => WordsIn::deserialize(fields).map(Self::Words).map_err(|error| error.to_string()),
        }
    }
}

#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct MenuIn {
    /// `1` to `6`.
    #[schema(pattern = "^[1-6]$", example = "1")]
    code: String,
    /// Needed with 4 and 5, the reason with 3, an error with 1, 2 and 6.
    #[schema(max_length = 4096)]
    text: Option<String>,
    /// With 5, after `confirm_required`: the digest it named.
    #[schema(pattern = "^[0-9a-f]{64}$")]
    confirm: Option<String>,
    /// What a person typed off the card of something dangerous. It must be the record's `number`.
    #[schema(pattern = "^[0-9]{3}$")]
    number: Option<String>,
}

#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct WordsIn {
    decision: DecisionWord,
    #[schema(max_length = 4096)]
    note: Option<String>,
    #[serde(rename = "override")]
    #[schema(rename = "override", max_length = 4096)]
    replacement: Option<String>,
    #[schema(max_length = 4096)]
    answer: Option<String>,
    /// With a plain allow-once: adds the command to its workspace's whitelist.
    #[serde(default)]
    remember: bool,
    /// With `override`, after `confirm_required`: the digest it named.
    #[schema(pattern = "^[0-9a-f]{64}$")]
    confirm: Option<String>,
    /// What a person typed off the card of something dangerous. It must be the record's `number`.
    #[schema(pattern = "^[0-9]{3}$")]
    number: Option<String>,
    #[schema(value_type = Option<GrantIn>)]
    grant: Option<Object<GrantIn>>,
}

#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum DecisionWord {
    AllowOnce,
    AllowSession,
    AllowAlways,
    Deny,
}

#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct GrantIn {
    /// How long the grant holds, instead of 30 days.
    #[serde(default, deserialize_with = "whole_number")]
    #[schema(minimum = 1, maximum = 31622400)]
    expires_in_sec: Option<u64>,
}

impl DecisionIn {
    fn into_answer(self) -> Result<Answer, Problem> {
        match self {
            Self::Menu(menu) => {
                let answer = Code::parse(menu.code.trim())?.with_text(menu.text.as_deref())?;
                Ok(Answer { confirm: digest(menu.confirm)?, number: menu.number, ..answer })
            }
            Self::Words(words) => Ok(Answer {
                choice: match words.decision {
                    DecisionWord::AllowOnce => Choice::AllowOnce,
                    DecisionWord::AllowSession => Choice::AllowSession,
                    DecisionWord::AllowAlways => Choice::AllowAlways,
                    DecisionWord::Deny => Choice::Deny,
                },
                note: words.note,
                replacement: words.replacement,
                answer: words.answer,
                remember: words.remember,
                prefix: None,
                confirm: digest(words.confirm)?,
                number: words.number,
                terms: GrantTerms {
                    expires_in_ms: words
                        .grant
                        .and_then(|Object(grant)| grant.expires_in_sec)
                        .map(|seconds| seconds.saturating_mul(1000)),
                },
            }),
        }
    }
}

fn digest(confirm: Option<String>) -> Result<Option<Digest>, Problem> {
    let bad =
        || Problem::unprocessable("invalid_field", "`confirm` is the 64 hex digits that `confirm_required` named");
    confirm.map(|text| Digest::from_hex(&text).ok_or_else(bad)).transpose()
}

/// A person's answer. The first one stands; later ones learn whose it was.
#[utoipa::path(
    post, path = "/v1/approvals/{id}/decision", tag = "approvals",
    params(("id" = String, Path, description = "approval id")), request_body = DecisionIn,
    responses(
        (status = 200, description = "decided, and durable", body = Record),
        (status = 409, description = "decided before; `decision` is the winner's. Or `confirm_required`: the override is riskier than what was asked", body = ErrorBody),
        (status = 410, description = "the time to answer is over", body = ErrorBody),
        CommonErrors,
    ),
    security(("approver" = []))
)]
pub(super) async fn decide(
    AsApprover(approver): AsApprover,
    Path(id): Path<String>,
    body: JsonBody<DecisionIn>,
) -> Result<Json<Record>, Problem> {
    let approval = approver.decide(parse_id(&id)?, body.value.into_answer()?).await?;
    Ok(Json(Record::without_showing(&approval)))
}

/// The agent no longer needs it.
#[utoipa::path(
    post, path = "/v1/approvals/{id}/cancel", tag = "approvals",
    params(("id" = String, Path, description = "approval id")),
    responses(
        (status = 200, description = "cancelled", body = AgentView),
        (status = 409, description = "it had ended before", body = ErrorBody),
        (status = 410, description = "it had expired before", body = ErrorBody),
        CommonErrors,
    ),
    security(("agent" = []))
)]
pub(super) async fn cancel(AsAgent(agent): AsAgent, Path(id): Path<String>) -> Result<Json<AgentView>, Problem> {
    let approval = agent.cancel(parse_id(&id)?).await?;
    Ok(Json(AgentView::of(&approval)))
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct StopOut {
    /// Whether somebody wants it ended.
    stop: bool,
    /// Who.
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<String>,
}

/// Ends the command that runs under this approval: its runner hears of it at once.
#[utoipa::path(
    post, path = "/v1/approvals/{id}/stop", tag = "approvals",
    params(("id" = String, Path, description = "approval id")),
    responses(
        (status = 200, description = "asked, and on the record", body = Record),
        (status = 409, description = "nothing runs under it", body = ErrorBody),
        CommonErrors,
    ),
    security(("approver" = []))
)]
pub(super) async fn stop(AsApprover(approver): AsApprover, Path(id): Path<String>) -> Result<Json<Record>, Problem> {
    let approval = approver.stop(parse_id(&id)?).await?;
    Ok(Json(Record::without_showing(&approval)))
}

/// Whether somebody wants the run ended. With `wait`, the answer comes when somebody does.
#[utoipa::path(
    get, path = "/v1/approvals/{id}/stop", tag = "approvals",
    params(("id" = String, Path, description = "approval id"), WaitQuery),
    responses(
        (status = 200, description = "whether to stop", body = StopOut),
        (status = 409, description = "nothing runs under it", body = ErrorBody),
        CommonErrors,
    ),
    security(("agent" = []))
)]
pub(super) async fn stop_asked(
    State(state): State<AppState>,
    AsAgent(agent): AsAgent,
    Path(id): Path<String>,
    query: Result<Query<WaitQuery>, axum::extract::rejection::QueryRejection>,
) -> Result<Json<StopOut>, Problem> {
    let Query(query) = query.map_err(|error| invalid_query(&error))?;
    let until = until(&state, query.wait)?.unwrap_or_else(|| state.gate.now());
    let by = agent.stop_asked(parse_id(&id)?, until).await?;
    Ok(Json(StopOut { stop: by.is_some(), by }))
}

/// How a run ended, as its runner saw it.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct RunIn {
    #[serde(default, deserialize_with = "whole_number")]
    #[schema(minimum = 0, maximum = 255)]
    exit: Option<u64>,
    #[serde(default, deserialize_with = "whole_number")]
    #[schema(minimum = 1, maximum = 64)]
    signal: Option<u64>,
    #[serde(default)]
    timed_out: bool,
    #[serde(default)]
    stopped: bool,
    /// What was no longer as approved.
    #[serde(default)]
    #[schema(max_items = 64)]
    changed: Vec<String>,
}

/// Says how the run that took the permit ended; it goes on the record, once.
#[utoipa::path(
    post, path = "/v1/approvals/{id}/run", tag = "approvals",
    params(("id" = String, Path, description = "approval id")), request_body = RunIn,
    responses(
        (status = 200, description = "on the record", body = AgentView),
        (status = 409, description = "nothing runs under it, or how it ended is known", body = ErrorBody),
        CommonErrors,
    ),
    security(("agent" = []))
)]
pub(super) async fn ran(
    AsAgent(agent): AsAgent,
    Path(id): Path<String>,
    body: JsonBody<RunIn>,
) -> Result<Json<AgentView>, Problem> {
    let RunIn { exit, signal, timed_out, stopped, changed } = body.value;
    let bad = |field: &str, range: &str| Problem::unprocessable("invalid_field", format!("`{field}` is {range}"));
    let exit = exit.map(|code| u8::try_from(code).map(i32::from)).transpose().map_err(|_| bad("exit", "0 to 255"))?;
    let signal = signal.map(|number| i32::try_from(number).ok().filter(|number| (1..=64).contains(number)));
    let signal = signal.map(|number| number.ok_or_else(|| bad("signal", "1 to 64"))).transpose()?;
    let approval = agent.ran(parse_id(&id)?, RunEnd { exit, signal, timed_out, stopped, changed }).await?;
    Ok(Json(AgentView::of(&approval)))
}

/// An executor of the agent's own takes the permit: once, within two minutes of the answer.
#[utoipa::path(
    post, path = "/v1/approvals/{id}/consume", tag = "approvals",
    params(("id" = String, Path, description = "approval id")),
    responses(
        (status = 200, description = "yours; run exactly what `digest` names", body = AgentView),
        (status = 409, description = "used before, not approved, or policy changed since", body = ErrorBody),
        (status = 410, description = "the permit went stale; ask again", body = ErrorBody),
        CommonErrors,
    ),
    security(("agent" = []))
)]
pub(super) async fn consume(AsAgent(agent): AsAgent, Path(id): Path<String>) -> Result<Json<AgentView>, Problem> {
    let permit = agent.consume(parse_id(&id)?).await?;
    Ok(Json(AgentView::of(&permit.approval)))
}
