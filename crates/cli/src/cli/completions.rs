//! `countersign completions`: a script for a shell to complete from.

use clap_complete::{Shell, generate};

use super::Cli;
use crate::output;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  countersign completions bash > ~/.local/share/bash-completion/completions/countersign"
)]
pub struct Args {
    shell: Shell,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let mut script = Vec::new();
    generate(args.shell, &mut Cli::whole(), "countersign", &mut script);
    output::write(&String::from_utf8_lossy(&script))
}
