//! `countersign stop`: ends a command that `run` started.

use countersign_model::escape_line;
use serde_json::{Value, json};

use crate::client::{Request, encode};
use crate::locate::Locator;
use crate::{approvals, output};

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  countersign stop 12ab34cd")]
pub struct Args {
    /// The approval's id, or the beginning of it
    id: String,
}

pub fn run(args: &Args, locator: &Locator) -> anyhow::Result<()> {
    let caller = locator.person()?;
    let id = approvals::resolve(&caller, &args.id)?;
    let _: Value = caller.call(Request::post(format!("/v1/approvals/{}/stop", encode(&id)), json!({})))?;
    output::note(&format!("its runner is told to end it: {}", escape_line(&id)));
    Ok(())
}
