//! `bench shell`: what it takes to assess a command, in process, by the clock that only counts this thread's work.

mod hostile;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, ensure};
use countersign_shell::{Options, assess};
use rustix::time::{ClockId, clock_gettime};

use crate::report::{Table, against, millis, print_machine, rate, say};

/// In a row before the clock is read again: reading it takes longer than a short command.
const BATCH: u32 = 8;
const GOAL_MEDIAN: Duration = Duration::from_micros(8);
const GOAL_HOSTILE: Duration = Duration::from_millis(5);
const HOSTILE_ROUNDS: u32 = 5;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  bench shell --corpora ../shared/corpora\n  bench shell --callgrind")]
pub struct Args {
    /// A folder of `.jsonl` files with a `command` in each line; without it, the committed samples
    #[arg(long, default_value = "../shared/corpora")]
    corpora: PathBuf,
    /// Times over the whole corpus; the fastest round of each command counts
    #[arg(long, default_value_t = 40, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rounds: u32,
    /// How many of the slowest hostile lines to list
    #[arg(long, default_value_t = 10)]
    slowest: usize,
    /// Count instructions with valgrind as well
    #[arg(long)]
    callgrind: bool,
    /// Only pass over the corpus so often and tell nothing: what runs under valgrind
    #[arg(long, hide = true)]
    passes: Option<u32>,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let commands = commands(&args.corpora)?;
    if let Some(passes) = args.passes {
        for _ in 0..passes {
            commands.iter().for_each(|command| once(command));
        }
        return Ok(());
    }
    print_machine();
    say(format!("{} commands, {} rounds", commands.len(), args.rounds));
    let mut times = corpus(&commands, args.rounds)?;
    times.sort_unstable();
    let at = |permille: usize| times.get((times.len() - 1) * permille / 1000).copied().unwrap_or_default();
    let mean = times.iter().sum::<Duration>() / u32::try_from(times.len())?;
    let micros = |time: Duration| format!("{:.2} µs", time.as_secs_f64() * 1e6);
    let mut table = Table::new(["of a command", "CPU time", "goal"]);
    table.row(["median".into(), micros(at(500)), against("at most 8 µs", at(500) <= GOAL_MEDIAN)]);
    table.row(["90 %".into(), micros(at(900)), String::new()]);
    table.row(["99 %".into(), micros(at(990)), String::new()]);
    table.row(["slowest".into(), micros(at(1000)), String::new()]);
    table.row(["mean".into(), micros(mean), rate(1.0 / mean.as_secs_f64())]);
    if args.callgrind {
        let count = instructions(args, commands.len())?;
        table.row(["mean, by callgrind".into(), format!("{count} instructions"), String::new()]);
    }
    table.print("Assessing a command");
    hostile_lines(args.slowest)
}

fn hostile_lines(slowest: usize) -> anyhow::Result<()> {
    let mut worst: Vec<(Duration, String)> = Vec::new();
    for (name, line) in hostile::lines() {
        let mut best = Duration::MAX;
        for _ in 0..HOSTILE_ROUNDS {
            let start = clock()?;
            once(&line);
            best = best.min(clock()?.saturating_sub(start));
        }
        worst.push((best, name));
    }
    worst.sort_unstable_by(|a, b| b.cmp(a));
    let mut table = Table::new(["hostile line", "CPU time", "goal"]);
    for (time, name) in worst.iter().take(slowest) {
        // A bar would end the cell.
        let name = name.replace('|', "\\|");
        table.row([name, millis(*time), against("at most 5 ms", *time <= GOAL_HOSTILE)]);
    }
    table.print(&format!("The slowest of {} hostile lines", worst.len()));
    Ok(())
}

fn once(command: &str) {
    let _ = std::hint::black_box(assess(std::hint::black_box(command), &Options::default()));
}

/// The fastest time of each command: what others do on the machine only ever adds.
fn corpus(commands: &[String], rounds: u32) -> anyhow::Result<Vec<Duration>> {
    let mut best = vec![Duration::MAX; commands.len()];
    for _ in 0..rounds {
        for (command, best) in commands.iter().zip(&mut best) {
            let start = clock()?;
            for _ in 0..BATCH {
                once(command);
            }
            *best = (*best).min(clock()?.saturating_sub(start) / BATCH);
        }
    }
    Ok(best)
}

/// How long this thread has worked.
fn clock() -> anyhow::Result<Duration> {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).context("a clock that runs backwards")
}

/// Two passes less one: neither starting nor reading the corpus counts.
fn instructions(args: &Args, commands: usize) -> anyhow::Result<u64> {
    let [one, two] = [1, 2].map(|passes| under_valgrind(args, passes));
    Ok((two? - one?) / u64::try_from(commands)?)
}

fn under_valgrind(args: &Args, passes: u32) -> anyhow::Result<u64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(std::env::current_exe()?)
        .args(["shell", "--passes", &passes.to_string(), "--corpora"])
        .arg(&args.corpora)
        .output()
        .context("cannot start valgrind, which `--callgrind` needs")?;
    let told = String::from_utf8_lossy(&output.stderr);
    let count = told.lines().find_map(|line| line.split_once("refs:")).map(|(_, count)| count.trim().replace(',', ""));
    count
        .and_then(|count| count.parse().ok())
        .with_context(|| format!("valgrind told no count of instructions: {told}"))
}

/// The commands of a folder; of the samples beside the engine's own tests when there is none.
fn commands(folder: &Path) -> anyhow::Result<Vec<String>> {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/shell/tests/corpora");
    let folder = if folder.is_dir() { folder } else { &samples };
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        files.push(entry?.path());
    }
    files.retain(|file| file.extension().is_some_and(|end| end == "jsonl"));
    files.sort();
    let mut commands = Vec::new();
    for file in files {
        for line in std::fs::read_to_string(&file)?.lines() {
            let row: serde_json::Value = serde_json::from_str(line).with_context(|| file.display().to_string())?;
            commands.extend(row.get("command").and_then(serde_json::Value::as_str).map(str::to_owned));
        }
    }
    ensure!(!commands.is_empty(), "no commands in {}", folder.display());
    Ok(commands)
}
