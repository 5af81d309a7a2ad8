//! The gateway door: requests, answers and events over one WebSocket, at `/gateway` and at `/`.

mod connection;
mod document;
mod forwarded;
mod frame;
mod hello;
mod methods;
mod nodes;
mod push;
mod requests;
mod views;

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use countersign_gate::Gate;
use countersign_model::KeyId;

use crate::http::{AppState, Limiter, Peer, Problem, bearer};
use crate::socket;
pub(crate) use document::{Document, DocumentError, SetDocument, read_document, write_document};
use nodes::Nodes;
use push::Peers;

/// What all connections of this door share.
#[derive(Debug)]
pub(crate) struct Gateway {
    gate: Gate,
    peers: Peers,
    nodes: Nodes,
    key_limit: Arc<Limiter<KeyId>>,
    started: Instant,
}

impl Gateway {
    /// Follows the record and the clock for as long as the gate runs.
    pub(crate) fn start(gate: Gate, key_limit: Arc<Limiter<KeyId>>) -> Arc<Self> {
        let (peers, nodes) = (Peers::default(), Nodes::default());
        let gateway = Arc::new(Self { gate, peers, nodes, key_limit, started: Instant::now() });
        tokio::spawn(push::follow(gateway.clone()));
        tokio::spawn(push::tick(Arc::downgrade(&gateway)));
        gateway
    }

    fn uptime_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// `/gateway`: speaks nothing but WebSocket.
pub(crate) async fn upgrade(State(state): State<AppState>, request: Request) -> Response {
    let header = match bearer(request.headers()) {
        Ok(header) => header,
        Err(problem) => return problem.into_response(),
    };
    let local = matches!(request.extensions().get::<Peer>(), Some(Peer::Local));
    let gateway = state.gateway.clone();
    socket::upgrade(request, move |socket| connection::serve(gateway, socket, header, local))
}

/// `/`: clients that were given no path ask here. Anybody else is at no page of ours.
pub(crate) async fn upgrade_at_root(state: State<AppState>, request: Request) -> Response {
    if socket::wants_websocket(request.method(), request.headers()) {
        upgrade(state, request).await
    } else {
        Problem::not_found().into_response()
    }
}
