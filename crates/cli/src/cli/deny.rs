//! `countersign deny`: a person's no.

use serde_json::json;

use super::approve::decide;
use crate::approvals;
use crate::locate::Locator;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  countersign deny 12ab34cd --reason 'not on a Friday'")]
pub struct Args {
    /// The request's id, or the beginning of it
    id: String,
    /// Tell the agent why
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

pub fn run(args: &Args, locator: &Locator) -> anyhow::Result<()> {
    let caller = locator.person()?;
    let id = approvals::resolve(&caller, &args.id)?;
    let mut body = json!({"decision": "deny"});
    if let (Some(fields), Some(reason)) = (body.as_object_mut(), &args.reason) {
        fields.insert("note".to_owned(), json!(reason));
    }
    decide(&caller, &id, body)
}
