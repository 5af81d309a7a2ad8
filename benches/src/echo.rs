//! The HTTP ceiling: the same axum, the same routes and bodies of the same size, and nothing behind them.

use std::io::Read as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::extract::{Path, State};
use axum::routing::post;
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;

/// How long the two answers of the gate are, so that these are as long.
#[derive(Debug, clap::Args)]
pub struct Args {
    create_bytes: usize,
    decide_bytes: usize,
}

#[derive(Debug)]
struct Echo {
    next: AtomicU64,
    create_filler: String,
    decide_filler: String,
}

#[derive(Debug, Deserialize)]
struct Create {
    session_id: String,
    action_type: String,
    title: String,
    preview: String,
}

#[derive(Debug, Deserialize)]
struct Decide {
    decision: String,
}

#[derive(Debug, Serialize)]
struct Created {
    approval_id: String,
    status: &'static str,
    session_id: String,
    action_type: String,
    title: String,
    preview: String,
    filler: String,
}

#[derive(Debug, Serialize)]
struct Decided {
    approval_id: String,
    status: &'static str,
    decision: String,
    filler: String,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    // Whoever started this keeps the other end open; when it goes, so does this.
    std::thread::spawn(|| {
        let _ = std::io::stdin().read(&mut [0]);
        std::process::exit(0);
    });
    crate::runtime()?.block_on(serve(args))
}

async fn serve(args: &Args) -> anyhow::Result<()> {
    // The fixed fields take some of the length.
    let filler = |bytes: usize, fixed: usize| "x".repeat(bytes.saturating_sub(fixed));
    let state = Arc::new(Echo {
        next: AtomicU64::new(0),
        create_filler: filler(args.create_bytes, 240),
        decide_filler: filler(args.decide_bytes, 110),
    });
    let router = Router::new()
        .route("/v1/approvals", post(create))
        .route("/v1/approvals/{id}/decision", post(decide))
        .with_state(state);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    eprintln!("listening on http://{}", listener.local_addr()?);
    axum::serve(ListenerNoDelay(listener), router).await?;
    Ok(())
}

async fn create(State(echo): State<Arc<Echo>>, Json(body): Json<Create>) -> Json<Created> {
    Json(Created {
        approval_id: format!("appr_{:032x}", echo.next.fetch_add(1, Ordering::Relaxed)),
        status: "pending",
        session_id: body.session_id,
        action_type: body.action_type,
        title: body.title,
        preview: body.preview,
        filler: echo.create_filler.clone(),
    })
}

async fn decide(State(echo): State<Arc<Echo>>, Path(id): Path<String>, Json(body): Json<Decide>) -> Json<Decided> {
    Json(Decided { approval_id: id, status: "approved", decision: body.decision, filler: echo.decide_filler.clone() })
}

/// As the gate's own connections are: small answers go out at once.
struct ListenerNoDelay(TcpListener);

impl axum::serve::Listener for ListenerNoDelay {
    type Io = tokio::net::TcpStream;
    type Addr = std::net::SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        let (stream, address) = axum::serve::Listener::accept(&mut self.0).await;
        let _ = stream.set_nodelay(true);
        (stream, address)
    }

    fn local_addr(&self) -> std::io::Result<Self::Addr> {
        self.0.local_addr()
    }
}
