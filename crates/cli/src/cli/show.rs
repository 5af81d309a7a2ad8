//! `countersign show`: one request, whole.

use crate::locate::{Locator, Offline};
use crate::output::{self, Style, Tone};
use crate::record::Record;
use crate::{approvals, showing, when};

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  countersign show 12ab34cd")]
pub struct Args {
    /// The request's id, or the beginning of it
    id: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args, locator: &Locator) -> anyhow::Result<()> {
    let caller = locator.person_or(Offline::Store)?;
    let value = approvals::get(&caller, &approvals::resolve(&caller, &args.id)?)?;
    if args.json {
        return output::line(&output::json(&value));
    }
    let record = Record::read(&value)?;
    let style = Style::of_stdout();
    let mut lines = showing::request_lines(&record);
    lines.push(showing::Line::new("", Tone::Plain));
    lines.extend(showing::fact_lines(&record, when::now()));
    let text: String = lines.iter().map(|line| format!("{}\n", line.paint(style))).collect();
    output::write(&text)?;
    if record.has_folds() {
        output::note("the middle of something long is folded; what stands in its place names its length and digest");
    }
    if record.is_pending() {
        let id = &record.approval_id;
        output::note(&format!("decide with `countersign approve {id}` or `countersign deny {id}`"));
    }
    Ok(())
}
