//! `bench relay`: what the relay adds to a frame, and how much it moves, beside the same pipes without it. The engine is
//! `cat`, which does next to nothing with a line.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use rustix::thread::{CpuSet, sched_setaffinity};

use crate::report::{Samples, Table, against, best, percent, print_machine};
use crate::server::{built, scratch};

const GOAL: Duration = Duration::from_micros(20);
const PASSES: usize = 5;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  bench relay --frames 20000")]
pub struct Args {
    /// Frames there and back, in interleaved rounds
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(1_000..=10_000_000))]
    frames: u64,
    /// How much is moved in one pass
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u64).range(1..=4_096))]
    mebibytes: u64,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let folder = scratch()?;
    print_machine();
    latency(args, folder.path(), "What the relay adds to a frame, on any core")?;
    throughput(args, folder.path())?;
    // Waking a core that sleeps takes longer than anything here; on one core it is not measured with the rest.
    let mut one = CpuSet::new();
    one.set(0);
    sched_setaffinity(None, &one).context("cannot stay on one core")?;
    latency(args, folder.path(), "What the relay adds to a frame, all on one core")
}

fn direct(words: &[&str]) -> anyhow::Result<Command> {
    let (program, rest) = words.split_first().context("no program")?;
    let mut command = Command::new(program);
    command.args(rest);
    Ok(command)
}

fn relayed(folder: &Path, words: &[&str]) -> anyhow::Result<Command> {
    let mut command = Command::new(built("countersign")?);
    command.args(["relay", "--data"]).arg(folder.join("data")).arg("--").args(words);
    Ok(command)
}

fn start(mut command: Command) -> anyhow::Result<Child> {
    Ok(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?)
}

/// One line at a time, there and back.
fn latency(args: &Args, folder: &Path, title: &str) -> anyhow::Result<()> {
    let kinds = [
        ("`ping`, 16 bytes", "{\"type\":\"ping\"}\n".to_owned()),
        ("`tool_chunk`, 1 KiB", format!("{{\"type\":\"tool_chunk\",\"chunk\":\"{}\"}}\n", "x".repeat(985))),
        ("`text_delta`, 16 KiB", format!("{{\"type\":\"text_delta\",\"text\":\"{}\"}}\n", "x".repeat(16_340))),
    ];
    let mut table =
        Table::new(["frame", "`cat`, there and back", "with the relay", "added to a frame", "99 %", "goal"]);
    for (name, line) in kinds {
        let (mut plain, mut through) = (start(direct(&["cat"])?)?, start(relayed(folder, &["cat"])?)?);
        let (mut of_plain, mut of_through) = (Samples::default(), Samples::default());
        for _ in 0..20 {
            of_plain.extend(there_and_back(&mut plain, &line, args.frames / 20)?);
            of_through.extend(there_and_back(&mut through, &line, args.frames / 20)?);
        }
        for child in [&mut plain, &mut through] {
            drop(child.stdin.take());
            ensure!(child.wait()?.success(), "an engine failed");
        }
        let added = |part: usize| of_through.percentile(part).saturating_sub(of_plain.percentile(part)) / 2;
        table.row([
            name.to_owned(),
            micros(of_plain.percentile(50)),
            micros(of_through.percentile(50)),
            micros(added(50)),
            micros(added(99)),
            against("< 20 µs", added(50) < GOAL),
        ]);
    }
    table.print(title);
    Ok(())
}

fn there_and_back(child: &mut Child, line: &str, count: u64) -> anyhow::Result<Samples> {
    let (stdin, stdout) = (child.stdin.as_mut().context("no input")?, child.stdout.as_mut().context("no output")?);
    let (mut samples, mut buffer) = (Samples::default(), vec![0; line.len()]);
    for _ in 0..count {
        let started = Instant::now();
        stdin.write_all(line.as_bytes())?;
        stdout.read_exact(&mut buffer)?;
        samples.push(started.elapsed());
    }
    ensure!(buffer == line.as_bytes(), "another line came back");
    Ok(samples)
}

/// As fast as it goes, one way.
fn throughput(args: &Args, folder: &Path) -> anyhow::Result<()> {
    let size = args.mebibytes * 1024 * 1024;
    let kinds = [
        ("text, 200 bytes a line", format!("{{\"type\":\"text_delta\",\"text\":\"{}\"}}\n", "x".repeat(170))),
        ("`tool_chunk`, 4 KiB a line", format!("{{\"type\":\"tool_chunk\",\"chunk\":\"{}\"}}\n", "x".repeat(4_060))),
    ];
    let mut table = Table::new(["engine to host", "`cat`", "with the relay", "of it", "frames a second"]);
    for (name, line) in kinds {
        let path = folder.join("said");
        let mut file = std::io::BufWriter::new(File::create(&path)?);
        let lines = size / line.len() as u64;
        for _ in 0..lines {
            file.write_all(line.as_bytes())?;
        }
        file.into_inner()?.sync_all()?;
        let path = path.to_str().context("an odd folder")?;
        let (mut plain, mut through) = (Vec::new(), Vec::new());
        for _ in 0..PASSES {
            plain.push(rate_of(start(direct(&["cat", path])?)?, lines * line.len() as u64)?);
            through.push(rate_of(start(relayed(folder, &["cat", path])?)?, lines * line.len() as u64)?);
        }
        let (plain, through) = (best(&plain), best(&through));
        let frames = through / line.len() as f64;
        table.row([
            name.to_owned(),
            mebibytes(plain),
            mebibytes(through),
            percent(through / plain),
            format!("{frames:.0}"),
        ]);
    }
    table.print("What the relay moves");
    Ok(())
}

/// Bytes a second, from the first one on.
fn rate_of(mut child: Child, expected: u64) -> anyhow::Result<f64> {
    let mut output = BufReader::with_capacity(256 * 1024, child.stdout.take().context("no output")?);
    output.fill_buf()?;
    let started = Instant::now();
    let mut seen = 0;
    loop {
        let count = output.fill_buf()?.len();
        if count == 0 {
            break;
        }
        seen += count as u64;
        output.consume(count);
    }
    let took = started.elapsed();
    drop(child.stdin.take());
    child.wait()?;
    ensure!(seen == expected, "{seen} of {expected} bytes came");
    Ok(seen as f64 / took.as_secs_f64())
}

fn micros(duration: Duration) -> String {
    format!("{:.1} µs", duration.as_secs_f64() * 1_000_000.0)
}

fn mebibytes(rate: f64) -> String {
    format!("{:.0} MiB/s", rate / 1024.0 / 1024.0)
}
