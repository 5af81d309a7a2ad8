//! `countersign pending`: what waits for an answer.

use serde_json::json;

use crate::output::{self, Style};
use crate::record::{Record, short_id};
use crate::table::{Column, Table};
use crate::{approvals, locate::Locator, when};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  countersign pending\n  countersign pending --json | jq -r '.approvals[].approval_id'"
)]
pub struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

const COLUMNS: [Column; 5] = [
    Column { title: "ID", least: 8, spare: 0 },
    Column { title: "LEFT", least: 10, spare: 0 },
    Column { title: "RISK", least: 6, spare: 2 },
    Column { title: "CLIENT", least: 6, spare: 1 },
    Column { title: "WHAT", least: 16, spare: 0 },
];

pub fn run(args: &Args, locator: &Locator) -> anyhow::Result<()> {
    let mut listing = approvals::list(&locator.person()?, Some("pending"), usize::MAX)?;
    listing.rows.reverse();
    if args.json {
        return output::line(&output::json(&json!({"approvals": listing.rows})));
    }
    let records = listing.records()?;
    if records.is_empty() {
        output::note("nothing waits for an answer");
        return Ok(());
    }
    let columns = output::columns();
    let mut table = Table::new(&COLUMNS);
    for record in &records {
        table.row(row(record, columns.is_some()));
    }
    let fitted = table.fit(columns, Style::of_stdout());
    output::write(&fitted.text)?;
    if fitted.cut {
        output::note("some is cut (…): see it whole with `countersign show ID`");
    }
    output::note("decide with `countersign approve ID` or `countersign deny ID`");
    Ok(())
}

fn row(record: &Record, abbreviate: bool) -> Vec<String> {
    let id = if abbreviate { short_id(&record.approval_id) } else { record.approval_id.clone() };
    let left = when::words(record.expires_at - when::now());
    vec![id, left, record.risk(), record.client(), record.headline()]
}
