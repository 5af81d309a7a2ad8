//! `countersign node`: this machine's policy document, to be read and changed from a gate elsewhere.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use countersign_channels::{Dial, Event, Link, LinkError};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::client::{Gate, Key, Place, Request, encode};
use crate::exit::Usage;
use crate::locate::{Locator, Offline};
use crate::output;

const FIRST_RETRY: Duration = Duration::from_millis(500);
const LAST_RETRY: Duration = Duration::from_secs(30);
const GET: &str = "system.execApprovals.get";
const SET: &str = "system.execApprovals.set";

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  countersign node --gateway https://gate.example.org --key-file node.key\n\nThe key is made at that gate with `countersign keys create --role node --name NAME`, and is for this machine from\nits first use on."
)]
pub struct Args {
    /// The gate to serve it to
    #[arg(long, value_name = "URL")]
    gateway: String,
    /// File that holds a node's key of that gate [env: COUNTERSIGN_NODE_KEY holds the key itself]
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// What this machine is called there [default: its host name]
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// The profile whose document it is
    #[arg(long, default_value = "default")]
    profile: String,
    /// Show the document and refuse changes
    #[arg(long)]
    read_only: bool,
}

/// What the gate elsewhere asks for.
#[derive(Debug, Deserialize)]
struct Invoke {
    id: String,
    command: String,
    #[serde(rename = "paramsJSON")]
    params: Option<String>,
}

/// What every connection needs.
struct Node {
    id: String,
    key: String,
    dial: Dial,
    url: String,
    documents: Arc<Documents>,
}

/// This machine's own gate or store, where the document is.
struct Documents {
    locator: Locator,
    path: String,
    read_only: bool,
}

pub fn run(args: &Args, locator: Locator) -> anyhow::Result<()> {
    let place = Place::parse_url(&args.gateway)
        .map_err(|why| Usage(format!("the gateway's URL cannot be used: {why}; write it as `https://HOST:PORT`")))?;
    if place.is_exposed() {
        output::note(&format!("warning: the key goes to {place} unencrypted; use `https`"));
    }
    let (dial, url) = Gate::new(place, locator.ca())?.dialer("/gateway");
    let uname = rustix::system::uname();
    let id = args.id.clone().unwrap_or_else(|| uname.nodename().to_string_lossy().into_owned());
    let path = format!("/v1/policy/{}/document", encode(&args.profile));
    let documents = Arc::new(Documents { locator, path, read_only: args.read_only });
    let node = Node { id, key: key(args)?, dial, url, documents };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(node.run())
}

fn key(args: &Args) -> anyhow::Result<String> {
    let text = match &args.key_file {
        Some(path) => std::fs::read_to_string(path).with_context(|| format!("cannot read `{}`", path.display()))?,
        None => std::env::var("COUNTERSIGN_NODE_KEY").map_err(|_| {
            Usage("no key: give `--key-file`; make one at that gate with `countersign keys create --role node`".into())
        })?,
    };
    Key::new(text.trim()).context("the node's key cannot be used")?;
    Ok(text.trim().to_owned())
}

impl Node {
    /// Comes back whenever the connection is lost; ends when the other gate does not let it in.
    async fn run(&self) -> anyhow::Result<()> {
        let mut wait = FIRST_RETRY;
        loop {
            match self.connect().await {
                Ok((link, events)) => {
                    output::note(&format!("serving the policy document of `{}` to {}", self.id, self.url));
                    wait = FIRST_RETRY;
                    self.serve(&link, events).await;
                    output::note("the connection is lost; trying again");
                }
                Err(LinkError::Refused(error)) => bail!("{} does not let this machine in: {error}", self.url),
                Err(error) => output::note(&format!("{error}; trying again in {} s", wait.as_secs_f32())),
            }
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(LAST_RETRY);
        }
    }

    async fn connect(&self) -> Result<(Link, mpsc::Receiver<Event>), LinkError> {
        let stream = (self.dial)().await.map_err(|error| LinkError::Connection(error.to_string()))?;
        let connect = json!({
            "minProtocol": 3, "maxProtocol": 4, "role": "node", "scopes": [], "caps": [], "commands": [GET, SET],
            "client": {
                "id": "countersign-node", "displayName": self.id, "version": env!("CARGO_PKG_VERSION"),
                "platform": std::env::consts::OS, "mode": "node",
            },
            "device": { "id": self.id },
            "auth": { "token": self.key },
        });
        Link::open(stream, &self.url, connect).await
    }

    /// Until the other side is gone.
    async fn serve(&self, link: &Link, mut events: mpsc::Receiver<Event>) {
        while let Some(event) = events.recv().await {
            if event.name != "node.invoke.request" {
                continue;
            }
            let Ok(invoke) = serde_json::from_value::<Invoke>(event.payload) else { continue };
            let (id, documents) = (invoke.id.clone(), self.documents.clone());
            // One at a time: a change is made to the document that was read before it.
            let done = tokio::task::spawn_blocking(move || documents.answer(&invoke)).await;
            let mut result = json!({ "id": id, "nodeId": self.id });
            let (ok, name, value) = match done {
                Ok(Ok(document)) => (true, "payloadJSON", Value::String(document.to_string())),
                Ok(Err(error)) => (false, "error", json!({ "code": "NODE_ERROR", "message": format!("{error:#}") })),
                Err(error) => (false, "error", json!({ "code": "NODE_ERROR", "message": error.to_string() })),
            };
            if let Some(fields) = result.as_object_mut() {
                fields.insert("ok".to_owned(), Value::Bool(ok));
                fields.insert(name.to_owned(), value);
            }
            if let Err(error) = link.call("node.invoke.result", result).await {
                output::note(&format!("the answer was not taken: {error}"));
            }
        }
    }
}

impl Documents {
    fn answer(&self, invoke: &Invoke) -> anyhow::Result<Value> {
        let gate = self.locator.person_or(Offline::NewStore)?;
        match invoke.command.as_str() {
            GET => gate.call(Request::get(self.path.clone())),
            SET if self.read_only => bail!("this machine shows its document and takes no changes"),
            SET => {
                let params = invoke.params.as_deref().unwrap_or("{}");
                let params: Value = serde_json::from_str(params).context("the parameters are no JSON")?;
                gate.call(Request::put(self.path.clone(), params))
            }
            other => bail!("this machine does not know `{}`", countersign_model::escape_line(other)),
        }
    }
}
