//! `countersign grants`: what earlier answers allow, and taking it back.

use clap::Subcommand;
use countersign_model::escape_line;
use serde::Deserialize;
use serde_json::Value;

use crate::client::{self, Request, encode};
use crate::locate::{Locator, Offline};
use crate::output::{self, Style};
use crate::table::{Column, Table};
use crate::{session, when};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  countersign grants list\n  countersign grants revoke grant_0123456789abcdef0123456789abcdef"
)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// List the grants in force
    #[command(after_help = "Example:\n  countersign grants list --json | jq -r '.grants[].grant_id'")]
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Take one back
    #[command(after_help = "Example:\n  countersign grants revoke grant_0123456789abcdef0123456789abcdef")]
    Revoke {
        /// The grant's id, as `grants list` shows it
        id: String,
    },
}

#[derive(Debug, Deserialize)]
struct Grant {
    grant_id: String,
    #[serde(rename = "type")]
    kind: String,
    action_type: Option<String>,
    tool: Option<String>,
    entries: Option<Vec<String>>,
    holds: Option<String>,
    digest: Option<String>,
    client_id: String,
    session_id: Option<String>,
    profile: String,
    created_by: String,
    expires_at: Option<i64>,
}

const COLUMNS: [Column; 6] = [
    Column { title: "ID", least: 38, spare: 0 },
    Column { title: "COVERS", least: 12, spare: 0 },
    Column { title: "FOR", least: 12, spare: 4 },
    Column { title: "PROFILE", least: 7, spare: 1 },
    Column { title: "BY", least: 4, spare: 2 },
    Column { title: "UNTIL", least: 10, spare: 3 },
];

pub fn run(args: &Args, locator: &Locator) -> anyhow::Result<()> {
    let caller = locator.person_or(Offline::Store)?;
    match &args.verb {
        Verb::Revoke { id } => {
            let _: Value = caller.call(Request::delete(format!("/v1/grants/{}", encode(id))))?;
            output::note(&format!("revoked: {}", escape_line(id)));
            Ok(())
        }
        Verb::List { json } => {
            session::end_those_gone(locator);
            let value: Value = caller.call(Request::get("/v1/grants"))?;
            if *json { output::line(&output::json(&value)) } else { print(&value) }
        }
    }
}

fn print(value: &Value) -> anyhow::Result<()> {
    let grants: Option<Vec<Grant>> = value.get("grants").and_then(|grants| Vec::deserialize(grants).ok());
    let grants =
        grants.ok_or_else(|| client::Error::Malformed("the gate's grants are not as documented".to_owned()))?;
    if grants.is_empty() {
        output::note("no grants are in force");
        return Ok(());
    }
    let mut table = Table::new(&COLUMNS);
    for grant in &grants {
        let session = grant.session_id.as_deref().map(|id| format!(" in session {}", escape_line(id)));
        let left = grant.expires_at.map_or_else(|| "revoked".to_owned(), when::utc);
        table.row(vec![
            escape_line(&grant.grant_id),
            covers(grant),
            format!("{}{}", escape_line(&grant.client_id), session.unwrap_or_default()),
            escape_line(&grant.profile),
            escape_line(&grant.created_by),
            left,
        ]);
    }
    let fitted = table.fit(output::columns(), Style::of_stdout());
    output::write(&fitted.text)?;
    if fitted.cut {
        output::note("some is cut (…): see it whole with `countersign grants list --json`");
    }
    Ok(())
}

fn covers(grant: &Grant) -> String {
    let entries = grant.entries.as_ref().map(|entries| entries.join("; "));
    let parts = [&grant.action_type, &grant.tool, &entries, &grant.digest];
    let parts: Vec<String> = parts.into_iter().flatten().map(|part| escape_line(part)).collect();
    let holds = grant.holds.as_ref().map(|holds| format!(", {}", escape_line(holds))).unwrap_or_default();
    format!("{}: {}{holds}", escape_line(&grant.kind), parts.join(", "))
}
