//! `bench load`: the real binary over HTTP with durable commits, and beside it in the same rounds what bare
//! axum, raw SQLite and the disk can do.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::ceilings::{Disk, RawStore, RowSizes, log_is_grown};
use crate::latency::{Pace, wakes};
use crate::report::{Samples, Table, against, best, median, millis, percent, print_machine, rate, say};
use crate::server::{Commits, Keys, Server, scratch};
use crate::throughput::{answer_sizes, costed_pairs, pairs};

const ROUNDS: u32 = 6;
/// The connections that the goal is set for.
const GOAL_AT: usize = 64;
const GOAL_RATIO: f64 = 0.5;
const GOAL_WAKE: Duration = Duration::from_millis(5);
const DECISIONS_PER_SECOND: u32 = 500;
const GROW_LIMIT: Duration = Duration::from_secs(60);

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  bench load --seconds 12 --connections 1,64")]
pub struct Args {
    /// Seconds for each figure, over six interleaved rounds
    #[arg(long, default_value_t = 12, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
    /// Numbers of connections
    #[arg(long, value_delimiter = ',', default_value = "1,16,64,256")]
    connections: Vec<usize>,
}

/// Everything that is running during the benchmark.
struct Bench {
    runtime: tokio::runtime::Runtime,
    gate: Server,
    echo: Server,
    keys: Arc<Keys>,
    raw: RawStore,
    disk: Disk,
    slice: Duration,
    flushes: Samples,
}

/// What one number of connections came to.
#[derive(Debug, Default)]
struct Figures {
    gate: Vec<f64>,
    echo: Vec<f64>,
    raw: Vec<f64>,
    batch: Vec<f64>,
    gate_micros: Vec<f64>,
    echo_micros: Vec<f64>,
    flat: Vec<Samples>,
    paced: Vec<Samples>,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let folder = scratch()?;
    let slice = Duration::from_secs(args.seconds) / ROUNDS;
    let mut bench = Bench::start(folder.path(), slice)?;
    let mut all: Vec<(usize, Figures)> = args.connections.iter().map(|count| (*count, Figures::default())).collect();
    for round in 1..=ROUNDS {
        for (connections, figures) in &mut all {
            say(format!("load: round {round} of {ROUNDS}, {connections} connections"));
            bench.round(*connections, figures)?;
        }
    }
    bench.print(&all)
}

impl Bench {
    fn start(folder: &Path, slice: Duration) -> anyhow::Result<Self> {
        let runtime = crate::runtime()?;
        let data = folder.join("data");
        let gate = Server::gate(&data)?;
        let keys = Arc::new(runtime.block_on(Keys::make(&gate, &data))?);
        let store = data.join("countersign.db");
        let cold = runtime.block_on(pairs(gate.address, &keys, GOAL_AT, Duration::from_secs(1)))?;
        println!(
            "\nFirst second of a new store at {GOAL_AT} connections, its log still growing: {} requests.",
            rate(2.0 * cold)
        );
        grow_log(&store, || runtime.block_on(pairs(gate.address, &keys, GOAL_AT, Duration::from_secs(1))))?;
        let (create_bytes, decide_bytes) = runtime.block_on(answer_sizes(gate.address, &keys))?;
        let echo = Server::echo(create_bytes, decide_bytes)?;
        let sizes = RowSizes::of_store(&store)?;
        println!("Rows: {}. Answers: {create_bytes} B to create, {decide_bytes} B to decide.", sizes.describe());
        let raw_path = folder.join("raw.db");
        let raw = RawStore::open(&raw_path, sizes)?;
        grow_log(&raw_path, || raw.commands(256, Duration::from_secs(1)))?;
        let disk = Disk::open(folder.join("flush"))?;
        Ok(Self { runtime, gate, echo, keys, raw, disk, slice, flushes: Samples::default() })
    }

    fn round(&mut self, connections: usize, figures: &mut Figures) -> anyhow::Result<()> {
        let before = self.runtime.block_on(Commits::read(&self.gate))?;
        let driven = |server| costed_pairs(server, &self.keys, connections, self.slice);
        let gate = self.runtime.block_on(driven(&self.gate))?;
        let batch = self.runtime.block_on(Commits::read(&self.gate))?.batch_size_since(before);
        let echo = self.runtime.block_on(driven(&self.echo))?;
        let raw = self.raw.commands((batch.round() as usize).max(1), self.slice)?;
        self.flushes.extend(self.disk.overwriting()?);
        let wake = |pace| wakes(self.gate.address, &self.keys, connections, pace, self.slice);
        figures.flat.push(self.runtime.block_on(wake(Pace::Flat))?);
        figures.paced.push(self.runtime.block_on(wake(Pace::PerSecond(DECISIONS_PER_SECOND)))?);
        figures.gate.push(gate.pairs_per_second);
        figures.gate_micros.push(gate.processor.as_secs_f64() * 1e6);
        figures.echo.push(echo.pairs_per_second);
        figures.echo_micros.push(echo.processor.as_secs_f64() * 1e6);
        figures.raw.push(raw);
        figures.batch.push(batch);
        Ok(())
    }

    fn print(&mut self, all: &[(usize, Figures)]) -> anyhow::Result<()> {
        print_machine();
        let growing = self.disk.growing()?;
        let flush = self.flushes.percentile(50);
        println!(
            "One flush of 16 KiB: {} (p99 {}) on a file written over, {} (p99 {}) on a file that grows.",
            millis(flush),
            millis(self.flushes.percentile(99)),
            millis(growing.percentile(50)),
            millis(growing.percentile(99)),
        );
        let mut table = Table::new([
            "connections",
            "create+decide",
            "requests",
            "commands a commit",
            "echo ceiling",
            "SQLite ceiling",
            "CPU of a request: gate, echo",
            "of the lower ceiling",
            "goal",
        ]);
        for (connections, figures) in all {
            let (gate, echo, raw) = (best(&figures.gate), best(&figures.echo), best(&figures.raw));
            let ratio = 2.0 * gate / raw.min(2.0 * echo);
            table.row([
                connections.to_string(),
                format!("{} pairs", rate(gate)),
                rate(2.0 * gate),
                format!("{:.1}", median(figures.batch.clone())),
                rate(2.0 * echo),
                rate(raw),
                format!("{:.0}, {:.0} µs", median(figures.gate_micros.clone()), median(figures.echo_micros.clone())),
                percent(ratio),
                if *connections == GOAL_AT { against("≥ 50 %", ratio >= GOAL_RATIO) } else { String::new() },
            ]);
        }
        table.print("Create and decide over HTTP, durable");
        let mut table =
            Table::new(["triples", "pace", "woken", "p50", "p99", "p99 of the median round", "goal for it"]);
        for (triples, figures) in all {
            let paced = format!("≤ {DECISIONS_PER_SECOND} decisions a second");
            for (pace, rounds) in [(paced, &figures.paced), ("as fast as it goes".to_owned(), &figures.flat)] {
                let p99 = median(rounds.iter().map(|round| round.percentile(99).as_secs_f64()).collect());
                let (p99, goal) = (Duration::from_secs_f64(p99), GOAL_WAKE + flush);
                let all = Samples::of_all(rounds);
                table.row([
                    triples.to_string(),
                    pace,
                    all.len().to_string(),
                    millis(all.percentile(50)),
                    millis(all.percentile(99)),
                    millis(p99),
                    against(format!("< {}", millis(goal)), p99 < goal),
                ]);
            }
        }
        table.print("From sending the decision to the waiter's answer");
        Ok(())
    }
}

/// Writes until the store's log is as long as it gets.
fn grow_log(store: &Path, mut write: impl FnMut() -> anyhow::Result<f64>) -> anyhow::Result<()> {
    let started = Instant::now();
    while !log_is_grown(store) {
        anyhow::ensure!(started.elapsed() < GROW_LIMIT, "the log of `{}` does not grow", store.display());
        write()?;
    }
    Ok(())
}
