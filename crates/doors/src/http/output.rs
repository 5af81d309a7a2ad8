//! `/v1/approvals/{id}/output`: what a running command prints, from its runner to whoever follows it.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Json;
use axum::extract::Path;
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use countersign_gate::{ApproverHandle, Follower, Output, OutputStream};
use futures_core::Stream;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use utoipa::ToSchema;

use super::approvals::parse_id;
use super::auth::{AsAgent, AsApprover};
use super::body::JsonBody;
use super::events::{AHEAD, KEEP_ALIVE, Received};
use super::openapi::CommonErrors;
use super::problem::{ErrorBody, Problem};

#[derive(Clone, Copy, Debug, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum StreamName {
    Stdout,
    Stderr,
}

#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct OutputIn {
    stream: StreamName,
    #[schema(max_length = 16384)]
    text: String,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Heard {
    /// False: so many runs print now that this one is not kept.
    heard: bool,
}

/// A piece of what the run under this approval prints.
#[utoipa::path(
    post, path = "/v1/approvals/{id}/output", tag = "approvals",
    params(("id" = String, Path, description = "approval id")), request_body = OutputIn,
    responses(
        (status = 200, description = "taken", body = Heard),
        (status = 409, description = "nothing runs under it", body = ErrorBody),
        CommonErrors,
    ),
    security(("agent" = []))
)]
pub(super) async fn print(
    AsAgent(agent): AsAgent,
    Path(id): Path<String>,
    body: JsonBody<OutputIn>,
) -> Result<Json<Heard>, Problem> {
    let stream = match body.value.stream {
        StreamName::Stdout => OutputStream::Stdout,
        StreamName::Stderr => OutputStream::Stderr,
    };
    let heard = agent.print(parse_id(&id)?, stream, body.value.text).await?;
    Ok(Json(Heard { heard }))
}

/// What the run prints, from what is still kept on: events `stdout` and `stderr` with `{"text"}`, and `end`.
#[utoipa::path(
    get, path = "/v1/approvals/{id}/output", tag = "approvals",
    params(("id" = String, Path, description = "approval id")),
    responses(
        (status = 200, description = "a stream that ends with the run", content_type = "text/event-stream", body = String),
        (status = 409, description = "nothing runs under it", body = ErrorBody),
        CommonErrors,
    ),
    security(("approver" = []))
)]
pub(super) async fn follow(
    AsApprover(approver): AsApprover,
    Path(id): Path<String>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Problem> {
    let follower = approver.follow(parse_id(&id)?).await?;
    let (sender, receiver) = mpsc::channel(AHEAD);
    let _ = sender.try_send(Event::default().comment("open"));
    tokio::spawn(send(approver, follower, sender));
    Ok(Sse::new(Received(receiver)).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)))
}

/// Ends with the run, when the reader goes, the key no longer holds, or the gate closes.
async fn send(approver: ApproverHandle, mut follower: Follower, sender: mpsc::Sender<Event>) {
    let mut keys = approver.key_changes();
    let mut closing = approver.closing();
    while approver.is_still_valid() {
        let pieces = tokio::select! {
            pieces = follower.next() => pieces,
            _ = keys.changed() => continue,
            () = sender.closed() => return,
            _ = closing.wait_for(|closing| *closing) => return,
        };
        let Some(pieces) = pieces else {
            let _ = sender.send(Event::default().event("end").data("{}")).await;
            return;
        };
        for piece in pieces {
            let Some(event) = to_event(&piece) else { return };
            if sender.send(event).await.is_err() {
                return;
            }
        }
    }
}

fn to_event(piece: &Arc<Output>) -> Option<Event> {
    let name = match piece.stream {
        OutputStream::Stdout => "stdout",
        OutputStream::Stderr => "stderr",
    };
    let data = serde_json::json!({"text": piece.text});
    Event::default().id(piece.number.to_string()).event(name).json_data(data).ok()
}
