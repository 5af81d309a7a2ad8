//! The routes, and the state their handlers share.

use std::net::IpAddr;
use std::ops::Deref;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::{any, delete, get, post};
use countersign_gate::{Gate, Health};
use countersign_model::KeyId;
use tokio::sync::Mutex;

use super::guard::Guard;
use super::limits::Limiter;
use super::metrics::Metrics;
use super::problem::Problem;
use super::{
    approvals, audit, engine, events, grants, health, inbox, keys, offers, openapi, output, pairings, policy, trusts,
};
use crate::gateway::{self, Gateway};
use crate::hub::{Hub, plain, socketio};

/// Who may read the figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    #[default]
    Open,
    Admin,
    Off,
}

#[derive(Clone, Debug)]
pub struct HttpConfig {
    /// Names this gate answers to besides loopback ones.
    pub hosts: Vec<String>,
    /// Addresses it listens on.
    pub addresses: Vec<IpAddr>,
    /// Origins of pages that may talk to it besides its own.
    pub origins: Vec<String>,
    pub requests_per_key: u32,
    pub requests_per_address: u32,
    pub max_connections: usize,
    /// A shorter limit on `wait` than the door's own 60 s.
    pub max_wait_secs: u64,
    pub header_timeout_ms: u64,
    pub body_timeout_ms: u64,
    pub metrics: Access,
    /// Where devices find this gate; none where it does not listen.
    pub url: Option<String>,
}

impl Default for HttpConfig {
    fn default() -> Self {
        Self {
            hosts: Vec::new(),
            addresses: Vec::new(),
            origins: Vec::new(),
            requests_per_key: 2000,
            requests_per_address: 4000,
            max_connections: 20_000,
            max_wait_secs: 60,
            header_timeout_ms: 30_000,
            body_timeout_ms: 30_000,
            metrics: Access::Open,
            url: None,
        }
    }
}

/// One count for all of it: the state is cloned several times a request, on every core.
#[derive(Clone, Debug)]
pub(crate) struct AppState(Arc<Shared>);

impl Deref for AppState {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(super) gate: Gate,
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) config: HttpConfig,
    pub(super) metrics: Arc<Metrics>,
    pub(super) key_limit: Arc<Limiter<KeyId>>,
    pub(super) address_limit: Limiter<IpAddr>,
    pub(super) readiness: Readiness,
    pub(crate) hub: Hub,
    pub(crate) socket_io: socketio::Service,
}

/// Readiness writes to the store, so anybody who asks often gets the answer of the last second.
#[derive(Debug, Default)]
pub(super) struct Readiness(Mutex<Option<(Instant, Health)>>);

impl Readiness {
    const FRESH: Duration = Duration::from_secs(1);

    pub(super) async fn check(&self, gate: &Gate) -> Health {
        let mut last = self.0.lock().await;
        if let Some((at, health)) = &*last
            && at.elapsed() < Self::FRESH
        {
            return health.clone();
        }
        let health = gate.health().await;
        *last = Some((Instant::now(), health.clone()));
        health
    }
}

/// The whole door. Every connection must carry a `Peer` in its extensions; without one nothing is allowed.
pub fn router(gate: Gate, config: HttpConfig) -> Router {
    let metrics = Arc::new(Metrics::new());
    let (counting, counted, feed) = (metrics.clone(), gate.clone(), gate.feed_from_now());
    tokio::spawn(async move { counting.follow(&counted, feed).await });
    let key_limit = Arc::new(Limiter::new(config.requests_per_key));
    let hub = Hub::start(gate.clone(), key_limit.clone());
    let state = AppState(Arc::new(Shared {
        gateway: Gateway::start(gate.clone(), key_limit.clone()),
        socket_io: hub.socket_io(),
        hub,
        key_limit,
        address_limit: Limiter::new(config.requests_per_address),
        readiness: Readiness::default(),
        gate,
        config,
        metrics,
    }));
    Router::new()
        .route("/v1/approvals", post(approvals::create).get(approvals::list))
        .route("/v1/approvals/{id}", get(approvals::get))
        .route("/v1/approvals/{id}/decision", post(approvals::decide))
        .route("/v1/approvals/{id}/cancel", post(approvals::cancel))
        .route("/v1/approvals/{id}/consume", post(approvals::consume))
        .route("/v1/approvals/{id}/host-decision", post(engine::decide))
        .route("/v1/engine", get(engine::rights))
        .route("/v1/events", get(events::stream))
        .route("/v1/inbox/email-reply", post(inbox::email_reply))
        .route("/v1/approvals/{id}/offer", get(offers::get))
        .route("/v1/approvals/{id}/run", post(approvals::ran))
        .route("/v1/approvals/{id}/output", get(output::follow).post(output::print))
        .route("/v1/approvals/{id}/stop", get(approvals::stop_asked).post(approvals::stop))
        .route("/v1/grants", get(grants::list))
        .route("/v1/grants/{id}", delete(grants::revoke))
        .route("/v1/sessions/{id}/end", post(grants::end_session))
        .route("/v1/trusts", get(trusts::list).put(trusts::put).delete(trusts::remove))
        .route("/v1/trusts/file", get(trusts::file))
        .route("/v1/allow-rules", get(grants::allow_rules))
        .route("/v1/allow-rules/{id}", delete(grants::revoke_rule))
        .route("/v1/session-allows", get(grants::session_allows))
        .route("/v1/session-allows/{id}", delete(grants::revoke_session_allow))
        .route("/v1/policy/{profile}", get(policy::get).put(policy::put))
        .route("/v1/policy/{profile}/document", get(policy::get_document).put(policy::put_document))
        .route("/v1/keys", get(keys::list).post(keys::create))
        .route("/v1/keys/{id}", delete(keys::revoke))
        .route("/v1/pairings", post(pairings::create))
        .route("/v1/audit", get(audit::list))
        .route("/gateway", get(gateway::upgrade))
        .route("/", get(gateway::upgrade_at_root))
        .route("/healthz", get(health::healthz))
        .route("/readyz", get(health::readyz))
        .route("/metrics", get(health::metrics))
        .route("/openapi.json", get(openapi_json))
        .route("/hub", get(plain::connect))
        // The client asks for `/ws/` even where it was told `/ws`.
        .route("/ws", any(socketio::handle))
        .route("/ws/", any(socketio::handle))
        .fallback(|| async { Problem::not_found() })
        .method_not_allowed_fallback(|| async {
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "this path does not take that method")
        })
        .layer(Guard::new(state.clone()))
        .with_state(state)
}

async fn openapi_json() -> impl IntoResponse {
    static TEXT: std::sync::LazyLock<String> =
        std::sync::LazyLock::new(|| openapi::document().to_json().unwrap_or_default());
    ([(header::CONTENT_TYPE, "application/json")], TEXT.as_str())
}
