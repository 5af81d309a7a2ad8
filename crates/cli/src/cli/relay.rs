//! `countersign relay`: between a host and an engine that asks for approval over stdio.

use std::process::ExitCode;

use super::engine::At;
use crate::exit;
use crate::locate::Flags;
use crate::relay::{Settings, relay};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  countersign relay --gate https://gate.example -- wayland-core --json-stream\n\nPolicy answers the engine's `tool_request`s, people on any channel or the host answer the rest; everything else passes as it is. Ends with the engine's own exit code."
)]
pub struct Args {
    #[command(flatten)]
    at: At,
    /// The engine, with its arguments
    #[arg(last = true, required = true, value_name = "ENGINE")]
    engine: Vec<String>,
}

pub fn run(args: Args, flags: Flags) -> anyhow::Result<ExitCode> {
    let locator = args.at.locate(flags)?;
    let desk = args.at.desk(&locator, None)?;
    let settings = Settings { wire_modes: args.at.allow_wire_modes, named: args.at.is_named() };
    let code = relay(desk, settings, &args.engine)?;
    Ok(exit::code(code))
}
