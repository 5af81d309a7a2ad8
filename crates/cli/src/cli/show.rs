//! `countersign show`: one request, whole, or what its command prints as it runs.

use countersign_model::escape_line;
use serde_json::Value;

use crate::client::{Request, encode};
use crate::locate::{Locator, Offline};
use crate::output::{self, Style, Tone};
use crate::record::Record;
use crate::{approvals, showing, when};

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  countersign show 12ab34cd\n  countersign show --follow 12ab34cd")]
pub struct Args {
    /// The request's id, or the beginning of it
    id: String,
    /// Print JSON
    #[arg(long, conflicts_with = "follow")]
    json: bool,
    /// Follow what the command prints while it runs
    #[arg(long)]
    follow: bool,
}

pub fn run(args: &Args, locator: &Locator) -> anyhow::Result<()> {
    if args.follow {
        return follow(args, locator);
    }
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
        if record.offer.is_some() {
            let (Ok(means) | Err(means)) = approvals::offer(&caller, id)?.lines();
            output::note(&means);
        }
        let longer = record.longer();
        if !longer.is_empty() {
            output::note("it could be allowed for longer, the narrowest first:");
            for longer in &longer {
                output::note(&format!("  --{}: {}", flag_of(&longer.key), longer.words));
            }
        }
        output::note(&format!("decide with `countersign approve {id}{}` or `countersign deny {id}`", needs(&record)));
    }
    Ok(())
}

/// What `approve` has to be given besides.
fn needs(record: &Record) -> &'static str {
    match () {
        () if record.is_question() => " --answer TEXT",
        // Not the number itself: it is to be read off the card and typed.
        () if record.is_dangerous() => " --number NNN",
        () => "",
    }
}

/// What `approve` calls it.
fn flag_of(key: &str) -> &'static str {
    match key {
        "s" => "session",
        "A" => "always",
        "2" => "type-session",
        _ => "type-always",
    }
}

/// What it prints goes to stdout with control characters spelt out; how it ended to stderr.
fn follow(args: &Args, locator: &Locator) -> anyhow::Result<()> {
    let caller = locator.person()?;
    let id = approvals::resolve(&caller, &args.id)?;
    let mut events = caller.follow(Request::get(format!("/v1/approvals/{}/output", encode(&id))))?;
    loop {
        let event = events.next()?;
        if event.name == "end" {
            break;
        }
        let value: Value = serde_json::from_str(&event.data).unwrap_or_default();
        let text = value.get("text").and_then(Value::as_str).unwrap_or_default();
        output::write(&text.split('\n').map(escape_line).collect::<Vec<_>>().join("\n"))?;
    }
    let record = Record::read(&approvals::get(&caller, &id)?)?;
    if let Some(run) = &record.run {
        output::note(&format!("it has ended: {}", showing::how_it_ended(run)));
    }
    Ok(())
}
