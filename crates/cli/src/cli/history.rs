//! `countersign history`: what was asked and how it ended.

use clap::builder::PossibleValuesParser;
use countersign_model::Status;
use serde_json::json;

use crate::locate::{Locator, Offline};
use crate::output::{self, Style};
use crate::record::{Record, short_id};
use crate::table::{Column, Table};
use crate::{approvals, when};

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  countersign history --status denied --limit 20")]
pub struct Args {
    /// Only those that stand so
    #[arg(long, value_name = "STATUS", value_parser = PossibleValuesParser::new(Status::ALL.map(Status::as_str)))]
    status: Option<String>,
    /// How many
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

const COLUMNS: [Column; 5] = [
    Column { title: "ID", least: 8, spare: 0 },
    Column { title: "AGO", least: 4, spare: 2 },
    Column { title: "HOW", least: 8, spare: 0 },
    Column { title: "CLIENT", least: 6, spare: 1 },
    Column { title: "WHAT", least: 14, spare: 0 },
];

pub fn run(args: &Args, locator: &Locator) -> anyhow::Result<()> {
    let caller = locator.person_or(Offline::Store)?;
    let limit = usize::try_from(args.limit)?;
    let listing = approvals::list(&caller, args.status.as_deref(), limit)?;
    if args.json {
        return output::line(&output::json(&json!({"approvals": listing.rows, "more": listing.more})));
    }
    let columns = output::columns();
    let mut table = Table::new(&COLUMNS);
    for record in listing.records()? {
        table.row(row(&record, columns.is_some()));
    }
    let fitted = table.fit(columns, Style::of_stdout());
    output::write(&fitted.text)?;
    if fitted.cut {
        output::note("some is cut (…): see it whole with `countersign show ID`");
    }
    if listing.more {
        output::note(&format!("there are older ones: see more with `--limit {}`", limit.saturating_mul(4)));
    }
    Ok(())
}

fn row(record: &Record, abbreviate: bool) -> Vec<String> {
    let id = if abbreviate { short_id(&record.approval_id) } else { record.approval_id.clone() };
    let ago = when::span(when::now() - record.created_at);
    vec![id, ago, record.outcome(), record.client(), record.headline()]
}
