//! `bench history`: whether a long past slows down what is asked now. In process, so that nothing but the
//! gate and its store is measured.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use crate::ceilings::log_is_grown;
use crate::local::{LocalGate, fill, request};
use crate::report::{Table, against, median, percent, print_machine, rate, say};
use crate::server::scratch;

const CALLERS: usize = 64;
/// Callers while the past is made: large batches, since nothing is measured then.
const FILLERS: usize = 1024;
const FILL_STEP: u64 = 100 * 1024;
/// Enough to bring a store's log to its full length.
const WARM_UP: u64 = 8 * 1024;
const WARM_UP_LIMIT: usize = 64;
const GOAL: f64 = 0.9;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  bench history --finished 1000000 --rounds 7")]
pub struct Args {
    /// Finished approvals in the store with a past
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1024..=100_000_000))]
    finished: u64,
    /// Interleaved rounds
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u64).range(1..=100))]
    rounds: u64,
    /// Seconds on each store in each round
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=60))]
    seconds: u64,
}

/// What one round on one store came to.
#[derive(Clone, Copy, Debug)]
struct Round {
    creates: f64,
    batch: f64,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let folder = scratch()?;
    print_machine();
    crate::runtime()?.block_on(compare(folder.path(), args))
}

async fn compare(folder: &Path, args: &Args) -> anyhow::Result<()> {
    let old_path = folder.join("old.db");
    let old = LocalGate::open(&old_path).await?;
    make_past(&old, args.finished).await?;
    warm_up(&old, &old_path).await?;
    let size = std::fs::metadata(&old_path)?.len() as f64 / 1024.0 / 1024.0;
    let time = Duration::from_secs(args.seconds);
    let mut table =
        Table::new(["round", "empty store", "commands a commit", "with a past", "commands a commit", "ratio"]);
    let (mut ratios, mut creates) = (Vec::new(), (Vec::new(), Vec::new()));
    // One store each for all rounds: what is pending piles up in both alike, and only the past differs.
    let new_path = folder.join("new.db");
    let new = LocalGate::open(&new_path).await?;
    warm_up(&new, &new_path).await?;
    for number in 1..=args.rounds {
        say(format!("history: round {number} of {}", args.rounds));
        // Whoever comes first in one round comes second in the next.
        let (empty, past) = if number % 2 == 0 {
            let empty = round(&new, time).await?;
            (empty, round(&old, time).await?)
        } else {
            let past = round(&old, time).await?;
            (round(&new, time).await?, past)
        };
        let ratio = past.creates / empty.creates;
        table.row([
            number.to_string(),
            rate(empty.creates),
            format!("{:.1}", empty.batch),
            rate(past.creates),
            format!("{:.1}", past.batch),
            percent(ratio),
        ]);
        ratios.push(ratio);
        creates.0.push(empty.creates);
        creates.1.push(past.creates);
    }
    let ratio = median(ratios);
    table.row([
        "**median**".to_owned(),
        rate(median(creates.0)),
        String::new(),
        rate(median(creates.1)),
        String::new(),
        format!("{}, goal {}", percent(ratio), against("≥ 90 %", ratio >= GOAL)),
    ]);
    table.print(&format!(
        "Create with {} finished approvals in the store ({size:.0} MiB), {CALLERS} callers, durable",
        args.finished
    ));
    new.close().await;
    old.close().await;
    Ok(())
}

async fn make_past(local: &LocalGate, finished: u64) -> anyhow::Result<()> {
    let started = Instant::now();
    let mut made = 0;
    while made < finished {
        let step = FILL_STEP.min(finished - made);
        fill(&local.finishing, step.next_multiple_of(FILLERS as u64), FILLERS).await?;
        made += step;
        say(format!("history: {made} finished after {:.0} s", started.elapsed().as_secs_f64()));
    }
    Ok(())
}

/// Until the log is written over rather than grown, on both stores alike.
async fn warm_up(local: &LocalGate, store: &Path) -> anyhow::Result<()> {
    for _ in 0..WARM_UP_LIMIT {
        if log_is_grown(store) {
            return Ok(());
        }
        fill(&local.asking, WARM_UP, FILLERS).await?;
    }
    anyhow::bail!("the log of `{}` does not grow", store.display())
}

async fn round(local: &LocalGate, time: Duration) -> anyhow::Result<Round> {
    let (before, started) = (local.gate.stats(), Instant::now());
    let mut callers = JoinSet::new();
    for lane in 0..CALLERS {
        let agent = Arc::clone(&local.asking);
        callers.spawn(async move {
            let mut done = 0u64;
            while started.elapsed() < time {
                agent.request(request(lane, done)?).await?;
                done += 1;
            }
            anyhow::Ok(done)
        });
    }
    let mut total = 0;
    while let Some(done) = callers.join_next().await {
        total += done??;
    }
    let (after, took) = (local.gate.stats(), started.elapsed());
    let batches = (after.batches - before.batches).max(1);
    Ok(Round {
        creates: total as f64 / took.as_secs_f64(),
        batch: (after.commands - before.commands) as f64 / batches as f64,
    })
}
