//! The only place that knows every part: puts store, clock, gate and door together.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use axum::Router;
use axum::body::Body;
use axum::http::{Request as HttpRequest, header};
use countersign_doors::http::{HttpConfig, Peer, router};
use countersign_gate::{Gate, GateConfig, SystemClock};
use countersign_ledger::{SqliteLedger, Store};
use countersign_model::KeySecret;
use countersign_shell::Rules;
use http_body_util::BodyExt as _;
use tower::ServiceExt as _;

use crate::client::{Request, Response};
use crate::folder::Folder;

/// A gate on the embedded store of a folder that this process has taken.
pub async fn start_gate(folder: &Folder, config: GateConfig) -> anyhow::Result<Gate> {
    let path = folder.database();
    let store = Store::open(&path).with_context(|| format!("cannot open `{}`", path.display()))?;
    let clock = SystemClock::starting_after(store.last_event_at());
    let behind = clock.millis_behind();
    if behind > 0 {
        tracing::warn!(behind_ms = behind, "the machine's clock is behind the record; time goes on from the record's");
    }
    let clock = Arc::new(clock);
    let ledger = SqliteLedger::start(store, clock.clone())?;
    let gate = Gate::start(Arc::new(ledger), clock, Vec::new(), config).await?;
    gate.use_rules(machine_rules(folder.path(), None, Vec::new()));
    Ok(gate)
}

/// The rules that hold on this machine: a user's own, and that nothing in the gate's folder is anybody else's to read.
/// `roots`: where work is kept, beside the usual places.
pub fn machine_rules(data: &Path, rules: Option<Rules>, roots: Vec<String>) -> Option<Rules> {
    let given = data.to_str().map(str::to_owned);
    let real = std::fs::canonicalize(data).ok().and_then(|path| Some(path.to_str()?.to_owned()));
    let secrets = given.into_iter().chain(real).filter(|path| path.starts_with('/')).collect();
    Some(rules.unwrap_or_default().with_folders(secrets, roots))
}

/// Makes sure that the folder's owner has a working admin key, in a file that only they can read. Answers
/// whether one was made.
pub async fn ensure_admin_key(folder: &Folder, gate: &Gate) -> anyhow::Result<bool> {
    let path = folder.admin_key();
    let present = std::fs::read_to_string(&path).map(|text| KeySecret::presented(text.trim()));
    if present.is_ok_and(|secret| gate.accepts(&secret)) {
        return Ok(false);
    }
    let secret = gate.first_admin_key(&owner_name()).await?;
    folder.write_secret(&path, secret.reveal())?;
    Ok(true)
}

/// The name that the owner's decisions carry on the record.
fn owner_name() -> String {
    let plain = |name: &String| {
        !name.is_empty() && name.len() <= 64 && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
    };
    std::env::var("USER").ok().filter(plain).unwrap_or_else(|| "owner".to_owned())
}

/// A gate in this process for one command, when none is running on the folder: the same routes, no socket, and
/// the rights of the folder's owner, who could write the store anyway.
#[derive(Debug)]
pub struct Embedded {
    runtime: tokio::runtime::Runtime,
    router: Router,
    gate: Gate,
    _folder: Folder,
}

impl Embedded {
    pub fn open(data: &Path) -> anyhow::Result<Self> {
        let folder = Folder::take(data)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (gate, router) = runtime.block_on(async {
            let gate = start_gate(&folder, GateConfig::default()).await?;
            let router = router(gate.clone(), HttpConfig::default());
            anyhow::Ok((gate, router))
        })?;
        Ok(Self { runtime, router, gate, _folder: folder })
    }

    pub fn call(&self, request: &Request) -> anyhow::Result<Response> {
        let body = request.body.as_ref().map_or_else(Body::empty, |body| Body::from(body.to_string()));
        let http = HttpRequest::builder()
            .method(request.method)
            .uri(&request.path)
            .header(header::CONTENT_TYPE, "application/json")
            .extension(Peer::Owner)
            .body(body)?;
        self.runtime.block_on(async {
            let answer = self.router.clone().oneshot(http).await?;
            let status = answer.status().as_u16();
            let body = answer.into_body().collect().await?.to_bytes();
            Ok(Response { status, headers: Vec::new(), body: body.to_vec() })
        })
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        self.gate.close();
    }
}
