//! `countersign watch`: requests as they come, and a key to decide each.

use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::sync::Arc;

use crate::locate::Locator;
use crate::{approvals, exit, watch};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  countersign watch\n  countersign watch --json | jq .type\n\nKeys: up and down (or k and j) select, Enter shows it whole, a allows once, d denies, n allows with a note,\nw shows what it could be allowed for besides, the narrowest first, q quits. Only a plain key that comes alone counts.\nWhat is dangerous is allowed by typing the number on its card. What has not been on the screen whole is opened before it can be allowed."
)]
pub struct Args {
    /// Print one line of JSON an event instead of the live list
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args, locator: &Locator) -> anyhow::Result<ExitCode> {
    let caller = Arc::new(locator.person()?);
    // Read once before anything is drawn: a gate that cannot be reached or refuses is told as by any command.
    let waiting = approvals::list(&caller, Some("pending"), usize::MAX)?.records()?;
    if args.json || !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        watch::print(&caller, args.json)?;
        return Ok(exit::code(exit::OK));
    }
    watch::run(caller, waiting)
}
