//! `countersign trust` and `untrust`: whether what a workspace's `.agents/terminal.json` allows counts.

use std::path::PathBuf;

use countersign_model::escape_line;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::client::{Request, encode};
use crate::exit::Usage;
use crate::locate::{Caller, Locator};
use crate::output::{self, Style};
use crate::table::{Column, Table};
use crate::when;
use crate::workspace::Workspace;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  countersign trust .\n  countersign trust --list\n  countersign untrust .\n\nWhat the file forbids always counts. What it allows counts only while its bytes are the ones trusted here."
)]
pub struct TrustArgs {
    /// The workspace whose file to trust as it is now
    #[arg(required_unless_present = "list", conflicts_with = "list")]
    dir: Option<PathBuf>,
    /// List the workspaces that are trusted
    #[arg(long)]
    list: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  countersign untrust .")]
pub struct UntrustArgs {
    /// The workspace
    dir: PathBuf,
}

#[derive(Deserialize)]
struct Trusts {
    trusts: Vec<Trust>,
}

#[derive(Deserialize)]
struct Trust {
    workspace: String,
    hash: String,
    by: String,
    at: i64,
}

const COLUMNS: [Column; 4] = [
    Column { title: "WORKSPACE", least: 20, spare: 0 },
    Column { title: "HASH", least: 12, spare: 1 },
    Column { title: "BY", least: 4, spare: 2 },
    Column { title: "SINCE", least: 20, spare: 3 },
];

pub fn trust(args: &TrustArgs, locator: &Locator) -> anyhow::Result<()> {
    let caller = locator.person()?;
    let Some(dir) = &args.dir else { return list(&caller, args.json) };
    let workspace = Workspace::at(dir)?;
    let body = json!({"workspace": workspace.path, "text": workspace.trustworthy()?});
    let trusted: Value = caller.call(Request::put("/v1/trusts", body))?;
    if args.json {
        return output::line(&output::json(&trusted));
    }
    output::note(&format!("trusted as it is now: {}", escape_line(&workspace.path)));
    Ok(())
}

pub fn untrust(args: &UntrustArgs, locator: &Locator) -> anyhow::Result<()> {
    let caller = locator.person()?;
    // A workspace that is gone can still be untrusted, by the name it had.
    let path = std::fs::canonicalize(&args.dir).or_else(|_| std::path::absolute(&args.dir))?;
    let path = path.to_str().ok_or_else(|| Usage("the workspace's path is not valid text".into()))?.to_owned();
    let _: Value = caller.call(Request::delete(format!("/v1/trusts?workspace={}", encode(&path))))?;
    output::note(&format!("no longer trusted: {}", escape_line(&path)));
    Ok(())
}

fn list(caller: &Caller, as_json: bool) -> anyhow::Result<()> {
    let value: Value = caller.call(Request::get("/v1/trusts"))?;
    if as_json {
        return output::line(&output::json(&value));
    }
    let Trusts { trusts } = Trusts::deserialize(&value)?;
    if trusts.is_empty() {
        output::note("no workspace is trusted; trust one with `countersign trust DIR`");
        return Ok(());
    }
    let mut table = Table::new(&COLUMNS);
    for trust in &trusts {
        let hash: String = trust.hash.chars().take(12).collect();
        table.row(vec![escape_line(&trust.workspace), escape_line(&hash), escape_line(&trust.by), when::utc(trust.at)]);
    }
    output::write(&table.fit(output::columns(), Style::of_stdout()).text)
}
