//! The hub's plain transport: a WebSocket at `/hub`, one JSON object `{"event", "data"}` a text frame, both ways.

use axum::extract::{Request, State};
use axum::response::Response;
use countersign_gate::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::Utf8Bytes;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use super::handshake::{Handshake, Refusal};
use super::session::{Acknowledgement, Session};
use super::sink::Sink;
use super::wire::{LIST_DEVICES, REGISTERED};
use super::{Hub, MAX_MESSAGE, PING_INTERVAL, PING_TIMEOUT};
use crate::http::AppState;
use crate::socket::{self, Received, Socket};

pub(crate) async fn connect(State(state): State<AppState>, request: Request) -> Response {
    let hub = state.hub.clone();
    let (parts, body) = request.into_parts();
    let handshake = Handshake::read(&parts, None);
    let request = Request::from_parts(parts, body);
    socket::upgrade_within(MAX_MESSAGE, request, move |socket| serve(hub, socket, handshake))
}

async fn serve(hub: Hub, mut socket: Socket, handshake: Result<Handshake, Refusal>) {
    let (outbox, mut inbox) = socket::outbox();
    let opened = match handshake {
        // Boxed: what is not stays with every connection that only waits.
        Ok(handshake) => Box::pin(Session::open(&hub, handshake, Sink::Plain(outbox))).await,
        Err(refusal) => Err(refusal),
    };
    let session = match opened {
        Ok(session) => session,
        Err(refusal) => return turn_away(socket, refusal).await,
    };
    if !socket.send(registered(&session)).await {
        return;
    }
    if session.is_known() {
        socket.is_known();
    }
    let mut over = std::pin::pin!(session.over());
    let mut ping = tokio::time::interval_at(Instant::now() + PING_INTERVAL, PING_INTERVAL);
    // One at a time, in order; meanwhile nothing more is read, but what is to be sent goes out.
    let mut working: Option<BoxFuture<'_, Acknowledgement>> = None;
    loop {
        tokio::select! {
            biased;
            () = &mut over => return socket.close(CloseCode::Policy, "no longer registered").await,
            text = inbox.next() => {
                let Some(text) = text else { return };
                if !socket.send(text).await {
                    return;
                }
            }
            acknowledgement = finished(&mut working), if working.is_some() => {
                working = None;
                if session.is_known() {
                    socket.is_known();
                }
                if let Some(data) = acknowledgement
                    && !socket.send(frame(LIST_DEVICES, &data)).await
                {
                    return;
                }
            }
            received = socket.receive(), if working.is_none() => match received {
                Received::Text(text) => working = Some(hear(&session, &text)),
                Received::Binary => working = Some(garbled(&session)),
                Received::TooLarge => return socket.close(CloseCode::Size, "message too large").await,
                Received::Closed => return,
            },
            _ = ping.tick() => {
                if socket.quiet_for() > PING_INTERVAL + PING_TIMEOUT || !socket.ping().await {
                    return;
                }
            }
        }
    }
}

async fn finished(working: &mut Option<BoxFuture<'_, Acknowledgement>>) -> Acknowledgement {
    match working {
        Some(work) => work.await,
        None => std::future::pending().await,
    }
}

#[derive(Debug, Deserialize)]
struct Heard {
    event: String,
    #[serde(default)]
    data: Value,
}

fn hear<'a>(session: &'a Session, text: &Utf8Bytes) -> BoxFuture<'a, Acknowledgement> {
    match serde_json::from_str::<Heard>(text) {
        Ok(Heard { event, data }) => Box::pin(async move { session.hear(&event, data).await }),
        Err(_) => garbled(session),
    }
}

fn garbled(session: &Session) -> BoxFuture<'_, Acknowledgement> {
    Box::pin(async move {
        session.garbled().await;
        None
    })
}

fn registered(session: &Session) -> Utf8Bytes {
    frame(REGISTERED, &json!({"success": true, "deviceId": session.device.id}))
}

fn frame(event: &str, data: &Value) -> Utf8Bytes {
    json!({"event": event, "data": data}).to_string().into()
}

/// Says why, where there is an id to say it to, and closes.
async fn turn_away(mut socket: Socket, Refusal { device_id, error }: Refusal) {
    if let Some(device_id) = device_id {
        let data = json!({"success": false, "deviceId": device_id, "error": error});
        socket.send(frame(REGISTERED, &data)).await;
    }
    socket.close(CloseCode::Policy, error).await;
}
