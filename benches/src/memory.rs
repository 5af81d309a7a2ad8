//! `bench memory`: what a pending approval and a parked waiter cost, and how long a gate takes to start over
//! a store full of pending ones.

use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use countersign_gate::AgentHandle;

use crate::client::{Connection, Request};
use crate::local::{LocalGate, request};
use crate::report::{Table, against, print_machine, say};
use crate::server::{Keys, Server, processor_time, resident_bytes, scratch};
use crate::throughput::create;

const STEPS: u64 = 4;
/// Created together and parked before the next: what an agent does that asks and waits.
const CHUNK: usize = 1024;
const WAIT_MS: u64 = 3_600_000;
const IDLE: Duration = Duration::from_secs(5);
const PARK_LIMIT: Duration = Duration::from_secs(50);
const GOAL_BYTES: f64 = 3.0 * 1024.0;
const GOAL_START: Duration = Duration::from_secs(2);

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  bench memory --pending 100000 --connections 2000")]
pub struct Args {
    /// Pending approvals, each with a waiter in the process
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(4096..=10_000_000))]
    pending: u64,
    /// Waiters parked over HTTP, each on its connection
    #[arg(long, default_value_t = 2000, value_parser = clap::value_parser!(u64).range(1..=9000))]
    connections: u64,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let folder = scratch()?;
    let data = folder.path().join("data");
    std::fs::DirBuilder::new().mode(0o700).create(&data)?;
    print_machine();
    let runtime = crate::runtime()?;
    runtime.block_on(in_process(&data.join("countersign.db"), args.pending))?;
    // With the runtime goes every waiter, and with the last one the store is let go.
    drop(runtime);
    let mut table = Table::new(["what", "measured", "goal"]);
    start_up(&data, args.pending, &mut table)?;
    let parked = folder.path().join("parked");
    crate::runtime()?.block_on(parked_connections(&parked, args.connections, &mut table))?;
    table.print("The binary: start-up and parked connections");
    Ok(())
}

async fn in_process(store: &Path, pending: u64) -> anyhow::Result<()> {
    let local = LocalGate::open(store).await?;
    let mut table =
        Table::new(["pending with a waiter", "resident", "each, since the empty gate", "each, since the row above"]);
    let empty = resident_bytes("self")?;
    let (mut last_count, mut last) = (0, empty);
    table.row(["0".to_owned(), mebibytes(empty), String::new(), String::new()]);
    let mut count = 0;
    for step in 1..=STEPS {
        while count < pending * step / STEPS {
            count += park_chunk(&local.asking, count).await?;
        }
        say(format!("memory: {count} of {pending} pending"));
        let now = resident_bytes("self")?;
        let each = |bytes: u64, count: u64| bytes as f64 / count as f64;
        let since_empty = each(now.saturating_sub(empty), count);
        let since_last = each(now.saturating_sub(last), count - last_count);
        let goal = if step == STEPS {
            format!(", goal {}", against("< 3 KiB", since_empty < GOAL_BYTES))
        } else {
            String::new()
        };
        table.row([
            count.to_string(),
            mebibytes(now),
            format!("{since_empty:.0} B{goal}"),
            format!("{since_last:.0} B"),
        ]);
        (last_count, last) = (count, now);
    }
    table.print("In process: pending approvals, each with a waiter");
    let busy = busy_while_idle().await?;
    println!("\n{} waiters parked and nothing else to do: {:.1} % of one core.", local.gate.waiting(), busy * 100.0);
    local.close().await;
    Ok(())
}

/// Creates a chunk at once and leaves a waiter for each.
async fn park_chunk(agent: &AgentHandle, first: u64) -> anyhow::Result<u64> {
    let mut created = tokio::task::JoinSet::new();
    for number in first..first + CHUNK as u64 {
        let agent = agent.clone();
        created.spawn(async move {
            let (approval, _) = agent.request(request(0, number)?).await?;
            anyhow::Ok((approval.id, approval.terms.created_at.plus_millis(WAIT_MS)))
        });
    }
    while let Some(made) = created.join_next().await {
        let (id, until) = made??;
        let agent = agent.clone();
        tokio::spawn(async move { agent.wait(id, until).await.map(|_| ()) });
    }
    Ok(CHUNK as u64)
}

/// The share of a core that the process uses while nobody asks anything of it.
async fn busy_while_idle() -> anyhow::Result<f64> {
    tokio::time::sleep(Duration::from_secs(1)).await;
    let before = processor_time("self")?;
    tokio::time::sleep(IDLE).await;
    Ok((processor_time("self")? - before).as_secs_f64() / IDLE.as_secs_f64())
}

/// After a clean end, and after being killed with its log full.
fn start_up(data: &Path, pending: u64, table: &mut Table) -> anyhow::Result<()> {
    say("memory: start-up");
    let runtime = crate::runtime()?;
    for how in ["first, after a clean end", "again, after a kill", "again, after a kill"] {
        let spawned = Instant::now();
        let gate = Server::gate(data)?;
        runtime.block_on(Keys::make(&gate, data))?;
        let answered = spawned.elapsed();
        table.row([
            format!("start with {pending} pending, {how}"),
            format!(
                "listening in {:.2} s, two keys made by {:.2} s",
                gate.started_in.as_secs_f64(),
                answered.as_secs_f64()
            ),
            against("< 2 s", gate.started_in < GOAL_START),
        ]);
        gate.kill()?;
    }
    Ok(())
}

async fn parked_connections(data: &Path, count: u64, table: &mut Table) -> anyhow::Result<()> {
    say(format!("memory: {count} parked connections"));
    let gate = Server::gate(data)?;
    let keys = Keys::make(&gate, data).await?;
    let mut ids = Vec::new();
    let mut connection = Connection::open(gate.address).await?;
    for number in 0..count {
        ids.push(create(&mut connection, &keys, 0, number).await?);
    }
    let before = gate.resident_bytes()?;
    let mut parked = Vec::new();
    for id in &ids {
        let mut waiter = Connection::open(gate.address).await?;
        let path = format!("/v1/approvals/{id}?wait=60");
        waiter.send(Request { method: "GET", path: &path, key: &keys.agent, body: "" }).await?;
        parked.push(waiter);
    }
    let started = Instant::now();
    while waiters(&mut connection).await? < count {
        anyhow::ensure!(started.elapsed() < PARK_LIMIT, "not every waiter was parked");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let each = gate.resident_bytes()?.saturating_sub(before) as f64 / count as f64;
    table.row([
        format!("{count} waiters parked over HTTP, {} threads", gate.threads()?),
        format!("{:.1} KiB of memory each", each / 1024.0),
        "reported".to_owned(),
    ]);
    Ok(())
}

async fn waiters(connection: &mut Connection) -> anyhow::Result<u64> {
    let answer = connection.call(Request { method: "GET", path: "/metrics", key: "", body: "" }).await?;
    let text = std::str::from_utf8(answer.ok()?)?;
    let figure = text.lines().find_map(|line| line.strip_prefix("countersign_waiters ")).context("no waiters")?;
    Ok(figure.trim().parse()?)
}

fn mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / 1024.0 / 1024.0)
}
