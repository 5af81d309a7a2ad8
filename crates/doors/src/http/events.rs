//! `/v1/events`: the record as server-sent events. A reader that reconnects with the last id it saw misses
//! nothing; one that reads slowly holds up only itself.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::extract::Query;
use axum::http::HeaderMap;
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use countersign_gate::{ApproverHandle, Committed, Summary};
use futures_core::Stream;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use utoipa::IntoParams;

use super::approvals::invalid_query;
use super::audit::check_seq;
use super::auth::AsApprover;
use super::openapi::CommonErrors;
use super::problem::Problem;
use super::wire::Record;

/// Events made ready for a reader that has not taken them yet.
pub(super) const AHEAD: usize = 16;
pub(super) const KEEP_ALIVE: Duration = Duration::from_secs(15);

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct EventsQuery {
    /// The last number you have; absent: from now on. `Last-Event-ID` counts too.
    #[param(minimum = 0, maximum = 9007199254740991u64)]
    after: Option<u64>,
}

/// Everything that happens, as it is committed: `id` is the number, `event` the type, `data` JSON with the
/// approval as it is now.
#[utoipa::path(
    get, path = "/v1/events", tag = "events", params(EventsQuery),
    responses((status = 200, description = "an endless stream", content_type = "text/event-stream", body = String), CommonErrors),
    security(("approver" = []))
)]
pub(super) async fn stream(
    AsApprover(approver): AsApprover,
    headers: HeaderMap,
    query: Result<Query<EventsQuery>, axum::extract::rejection::QueryRejection>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Problem> {
    let Query(query) = query.map_err(|error| invalid_query(&error))?;
    let last_id = headers.get("last-event-id").and_then(|value| value.to_str().ok()).and_then(|id| id.parse().ok());
    let after = last_id.or(check_seq(query.after)?).unwrap_or_else(|| approver.head());
    let (sender, receiver) = mpsc::channel(AHEAD);
    // An id without data is no event, but tells a reader where to go on from before anything has happened.
    let opening = Event::default().id(after.to_string()).comment("open");
    let _ = sender.try_send(opening);
    tokio::spawn(follow(approver, after, sender));
    Ok(Sse::new(Received(receiver)).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)))
}

/// Ends when the reader goes, the key no longer holds, or the gate closes.
async fn follow(approver: ApproverHandle, after: u64, sender: mpsc::Sender<Event>) {
    let mut feed = approver.feed(after);
    let mut keys = approver.key_changes();
    let mut closing = approver.closing();
    while approver.is_still_valid() {
        let events = tokio::select! {
            events = feed.next() => events,
            _ = keys.changed() => continue,
            () = sender.closed() => return,
            _ = closing.wait_for(|closing| *closing) => return,
        };
        let Ok(events) = events else { return };
        for committed in events {
            let Some(event) = to_event(&approver, &committed).await else { return };
            if !approver.is_still_valid() || sender.send(event).await.is_err() {
                return;
            }
        }
    }
}

#[derive(Serialize)]
struct EventOut<'a> {
    #[serde(flatten)]
    event: &'a countersign_model::Event,
    #[serde(skip_serializing_if = "Option::is_none")]
    approval: Option<Record>,
}

async fn to_event(approver: &ApproverHandle, committed: &Committed) -> Option<Event> {
    let approval = match (&committed.approval, committed.event.body.approval_id()) {
        (Some(approval), _) => Some(Summary::new(approval.clone())),
        // One whose contents were removed meanwhile is told without them.
        (None, Some(id)) => approver.summary(id).await.ok(),
        (None, None) => None,
    };
    let seq = committed.event.seq.to_string();
    let kind = committed.event.body.kind().as_str();
    let out = EventOut { event: &committed.event, approval: approval.map(|approval| Record::of(&approval)) };
    Event::default().id(seq).event(kind).json_data(out).ok()
}

/// A channel as a stream.
pub(super) struct Received(pub(super) mpsc::Receiver<Event>);

impl Stream for Received {
    type Item = Result<Event, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(context).map(|event| event.map(Ok))
    }
}
