//! A gate in an engine's own process, where none runs on the data folder: the same routes and the same store, and the
//! folder's socket for the person's other commands. The host beside the engine answers, since whoever started the two
//! owns the store.

use std::path::Path;

use axum::Router;
use axum::body::Body;
use axum::http::{Request as HttpRequest, header};
use countersign_doors::http::{HttpConfig, Listener, Peer, router, serve};
use countersign_gate::{Gate, GateConfig};
use http_body_util::BodyExt as _;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tower::ServiceExt as _;

use crate::client::{self, Request, Response};
use crate::folder::Folder;
use crate::serve::listen_on_socket;
use crate::wire_up::{ensure_admin_key, start_gate};

/// One engine asks here, and its own limits hold it.
const UNLIMITED: u32 = u32::MAX;

#[derive(Debug)]
pub struct OwnGate {
    /// There until it is dropped.
    runtime: Option<Runtime>,
    router: Router,
    gate: Gate,
    closing: watch::Sender<bool>,
    socket: std::path::PathBuf,
    _folder: Folder,
}

impl OwnGate {
    pub fn open(data: &Path) -> anyhow::Result<Self> {
        let folder = Folder::take(data)?;
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let config =
            HttpConfig { requests_per_key: UNLIMITED, requests_per_address: UNLIMITED, ..HttpConfig::default() };
        let (closing, closed) = watch::channel(false);
        let (gate, router) = runtime.block_on(async {
            let gate = start_gate(&folder, GateConfig::default()).await?;
            ensure_admin_key(&folder, &gate).await?;
            let router = router(gate.clone(), config.clone());
            let listener = Listener::Unix(listen_on_socket(&folder.socket())?);
            tokio::spawn(serve(vec![listener], router.clone(), config, closed));
            anyhow::Ok((gate, router))
        })?;
        Ok(Self { runtime: Some(runtime), router, gate, closing, socket: folder.socket(), _folder: folder })
    }

    pub fn send(&self, request: &Request) -> Result<Response, client::Error> {
        let closed = || client::Error::Malformed("the gate in this process is closed".to_owned());
        self.runtime.as_ref().ok_or_else(closed)?.block_on(call(self.router.clone(), request.clone()))
    }

    /// The same without a thread that waits: `then` gets the answer.
    pub fn send_later(&self, request: Request, then: impl FnOnce(Result<Response, client::Error>) + Send + 'static) {
        let router = self.router.clone();
        if let Some(runtime) = &self.runtime {
            runtime.spawn(async move { then(call(router, request).await) });
        }
    }
}

async fn call(router: Router, request: Request) -> Result<Response, client::Error> {
    let malformed = |error: &dyn std::fmt::Display| client::Error::Malformed(format!("no answer: {error}"));
    let body = request.body.as_ref().map_or_else(Body::empty, |body| Body::from(body.to_string()));
    let http = HttpRequest::builder()
        .method(request.method)
        .uri(&request.path)
        .header(header::CONTENT_TYPE, "application/json")
        .extension(Peer::Engine)
        .body(body)
        .map_err(|error| malformed(&error))?;
    let answered = tokio::time::timeout(request.timeout, async {
        let answer = router.oneshot(http).await.map_err(|never| match never {})?;
        let status = answer.status().as_u16();
        let body = answer.into_body().collect().await.map_err(|error| malformed(&error))?.to_bytes();
        Ok(Response { status, headers: Vec::new(), body: body.to_vec() })
    });
    answered.await.unwrap_or_else(|late| Err(malformed(&late)))
}

impl Drop for OwnGate {
    fn drop(&mut self) {
        self.gate.close();
        self.closing.send_replace(true);
        // Others must not find a socket that nobody serves.
        let _ = std::fs::remove_file(&self.socket);
        // Whoever waits here may be the last to let go, on one of its own threads: those cannot wait for themselves.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
