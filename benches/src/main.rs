//! The command line of the benchmarks: each measures the gate beside a ceiling in the same run, because a
//! figure from a noisy machine means nothing alone. Owns no measurement itself.

mod ceilings;
mod client;
mod echo;
mod history;
mod large;
mod latency;
mod load;
mod local;
mod memory;
mod push;
mod relay;
mod report;
mod run;
mod server;
mod shell;
mod throughput;

use std::process::Command;

use anyhow::{Context, ensure};
use clap::{Parser, Subcommand};

/// The binary's, so that what is measured in this process holds for it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Debug, Parser)]
#[command(name = "bench", about = "Measures the gate beside its ceilings and prints Markdown", version)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Create, decide and wake over HTTP, beside a bare echo server, raw SQLite and fsync
    Load(load::Args),
    /// Memory of pending approvals and of parked connections, and start-up over a full store
    Memory(memory::Args),
    /// Create on an empty store against one with a long history
    History(history::Args),
    /// What one large or hostile request costs
    Large(large::Args),
    /// What it takes to assess a shell command, over a corpus and over lines made to be slow
    Shell(shell::Args),
    /// Running a command behind the gate, and starting the binary
    Run(run::Args),
    /// How soon a thousand devices of the hub are told, and what ten thousand that only wait cost
    Push(push::Args),
    /// What the relay adds to a frame, and how much it moves
    Relay(relay::Args),
    /// All of them, one after the other, each in a process of its own
    #[command(after_help = "Example:\n  bench all > tables.md")]
    All,
    /// The bare server that `load` compares with
    #[command(hide = true)]
    Echo(echo::Args),
}

fn main() -> anyhow::Result<()> {
    match Cli::parse().verb {
        Verb::Load(args) => load::run(&args),
        Verb::Memory(args) => memory::run(&args),
        Verb::History(args) => history::run(&args),
        Verb::Large(args) => large::run(&args),
        Verb::Shell(args) => shell::run(&args),
        Verb::Run(args) => run::run(&args),
        Verb::Push(args) => push::run(&args),
        Verb::Relay(args) => relay::run(&args),
        Verb::All => {
            ["load", "memory", "history", "large", "shell", "run", "push", "relay"].into_iter().try_for_each(run_alone)
        }
        Verb::Echo(args) => echo::run(&args),
    }
}

/// A fresh process for each, so that none inherits another's heap.
fn run_alone(verb: &str) -> anyhow::Result<()> {
    let status = Command::new(std::env::current_exe()?).arg(verb).status()?;
    ensure!(status.success(), "`bench {verb}` failed");
    Ok(())
}

/// One runtime shape for everything that drives load.
fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start a runtime")
}
