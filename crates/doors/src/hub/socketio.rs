//! The hub's Socket.IO transport at `/ws`: long-polling, WebSocket, and the upgrade from one to the other.

use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use http_body_util::{BodyExt as _, Limited};
use serde::Deserialize;
use serde_json::{Value, json};
use socketioxide::extract::{AckSender, Event, SocketRef, TryData};
use socketioxide::service::SocketIoService;
use socketioxide::{ParserConfig, SocketIo};
use tokio::sync::{Notify, mpsc};
use tower::ServiceExt as _;

use super::handshake::{Handshake, Refusal};
use super::session::Session;
use super::sink::Sink;
use super::wire::REGISTERED;
use super::{Hub, MAX_MESSAGE, PING_INTERVAL, PING_TIMEOUT};
use crate::http::AppState;

/// Events of one device that wait to be taken; one that sends faster than that is not a client but a flood.
const AHEAD: usize = 64;
const QUEUE: usize = 128;
/// To join after connecting. Until then a connection counts, also one that has gone.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Small, since most connections are idle and there may be many.
const READ_BUFFER: usize = 1024;

/// Behind it is nothing: every path that leads here is its own.
#[derive(Clone)]
pub(crate) struct Service(SocketIoService<Router>);

impl std::fmt::Debug for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Service")
    }
}

/// What the transport and the handshake read.
const KEPT: [HeaderName; 6] = [
    header::CONNECTION,
    header::UPGRADE,
    header::SEC_WEBSOCKET_KEY,
    header::SEC_WEBSOCKET_VERSION,
    header::CONTENT_TYPE,
    header::AUTHORIZATION,
];

/// What may come with the connect packet, where a browser can set no header.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Auth {
    key: Option<String>,
}

struct Incoming {
    event: String,
    data: Value,
    acknowledge: AckSender,
}

pub(super) fn service(hub: Hub) -> Service {
    let (service, io) = SocketIo::builder()
        .req_path("/ws")
        .ping_interval(PING_INTERVAL)
        .ping_timeout(PING_TIMEOUT)
        .connect_timeout(CONNECT_TIMEOUT)
        .max_payload(MAX_MESSAGE as u64)
        .ws_read_buffer_size(READ_BUFFER)
        .ws_max_message_size(MAX_MESSAGE)
        .ws_max_frame_size(MAX_MESSAGE)
        .max_buffer_size(QUEUE)
        .with_parser(ParserConfig::common().max_incoming_binaries(0))
        .build_with_inner_svc(Router::new());
    // Not async itself: the handlers are in place before anything more of this client is read.
    io.ns("/", move |socket: SocketRef, TryData(auth): TryData<Auth>| {
        let (sender, incoming) = mpsc::channel(AHEAD);
        let gone = Arc::new(Notify::new());
        let flooded = gone.clone();
        // These must not hold the socket: it holds them.
        socket.on_fallback(move |Event(event): Event, TryData(data): TryData<Value>, acknowledge: AckSender| {
            // An event without an argument has no data, and needs none.
            let data = data.unwrap_or_default();
            if sender.try_send(Box::new(Incoming { event, data, acknowledge })).is_err() {
                flooded.notify_one();
            }
            ready(())
        });
        let left = gone.clone();
        socket.on_disconnect(move || {
            left.notify_one();
            ready(())
        });
        serve(hub.clone(), socket, auth.unwrap_or_default(), incoming, gone)
    });
    Service(service)
}

async fn serve(
    hub: Hub,
    socket: SocketRef,
    auth: Auth,
    mut incoming: mpsc::Receiver<Box<Incoming>>,
    gone: Arc<Notify>,
) {
    let opened = match Handshake::read(socket.req_parts(), auth.key) {
        // Boxed, as is all that happens now and then: what is not stays with every connection that only waits.
        Ok(handshake) => Box::pin(Session::open(&hub, handshake, Sink::SocketIo(socket.clone()))).await,
        Err(refusal) => Err(refusal),
    };
    match opened {
        Ok(session) => {
            let data = json!({"success": true, "deviceId": session.device.id});
            if session.device.sink.answer(REGISTERED, &data).await {
                attend(&session, &mut incoming, &gone).await;
            }
        }
        Err(Refusal { device_id: Some(device_id), error }) => {
            let data = json!({"success": false, "deviceId": device_id, "error": error});
            // Whether it hears it or not, that was all.
            let _ = socket.emit(REGISTERED, &data);
        }
        Err(Refusal { device_id: None, error }) => tracing::debug!(error, "a device was not registered"),
    }
    // A queue that is full takes no goodbye either: the heartbeat ends it.
    let _ = socket.disconnect();
}

async fn attend(session: &Session, incoming: &mut mpsc::Receiver<Box<Incoming>>, gone: &Notify) {
    let mut over = std::pin::pin!(session.over());
    loop {
        let heard = tokio::select! {
            biased;
            () = &mut over => return,
            () = gone.notified() => return,
            heard = incoming.recv() => heard,
        };
        let Some(heard) = heard else { return };
        let Incoming { event, data, acknowledge } = *heard;
        if let Some(data) = Box::pin(session.hear(&event, data)).await
            && acknowledge.send(&data).is_err()
        {
            return;
        }
    }
}

/// Before it reaches the transport, a body that is posted is there as a whole, in time.
pub(crate) async fn handle(State(state): State<AppState>, request: Request) -> Response {
    let request = slim(request);
    let request = match request.method() {
        &Method::POST => match received(request, Duration::from_millis(state.config.body_timeout_ms)).await {
            Ok(request) => request,
            Err(status) => return status.into_response(),
        },
        _ => request,
    };
    match state.socket_io.0.clone().oneshot(request).await {
        Ok(response) => response.into_response(),
        Err(never) => match never {},
    }
}

/// The transport keeps the head of the request for as long as the connection lives. It gets a copy of what is needed,
/// since all of it are slices of the buffer that it was read into.
fn slim(request: Request) -> Request {
    let (mut parts, body) = request.into_parts();
    let mut headers = HeaderMap::with_capacity(KEPT.len());
    for name in KEPT {
        for value in parts.headers.get_all(&name) {
            if let Ok(copy) = HeaderValue::from_bytes(value.as_bytes()) {
                headers.append(name.clone(), copy);
            }
        }
    }
    parts.headers = headers;
    if let Ok(copy) = parts.uri.to_string().parse() {
        parts.uri = copy;
    }
    Request::from_parts(parts, body)
}

async fn received(request: Request, limit: Duration) -> Result<Request, StatusCode> {
    let (parts, body) = request.into_parts();
    let body = tokio::time::timeout(limit, Limited::new(body, MAX_MESSAGE).collect()).await;
    let body = body.map_err(|_| StatusCode::REQUEST_TIMEOUT)?.map_err(|_| StatusCode::PAYLOAD_TOO_LARGE)?;
    Ok(Request::from_parts(parts, Body::from(body.to_bytes())))
}
