//! `bench run`: what the gate adds to running a command, and what starting the binary costs, beside programs that do
//! next to nothing.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::ensure;

use crate::ceilings::Disk;
use crate::report::{Samples, Table, against, millis, print_machine};
use crate::server::{Server, built, scratch};

const RUN_GOAL: Duration = Duration::from_millis(3);
const ASSESS_GOAL: Duration = Duration::from_micros(500);

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  bench run --rounds 300")]
pub struct Args {
    /// Interleaved rounds
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u64).range(10..=100_000))]
    rounds: u64,
}

/// One program that is started again and again.
struct Subject {
    name: &'static str,
    words: Vec<String>,
    took: Samples,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let folder = scratch()?;
    print_machine();
    let data = folder.path().join("data");
    let gate = Server::gate(&data)?;
    let (binary, empty) = (built("countersign")?.display().to_string(), built("empty")?.display().to_string());
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let subject = |name, words| Subject { name, words, took: Samples::default() };
    let mut subjects = [
        subject("`bash -c true`", words(&["bash", "-c", "true"])),
        subject("`countersign run -- true`", words(&[&binary, "run", "--", "true"])),
        subject("an empty Rust program", words(&[&empty])),
        subject("`countersign --version`", words(&[&binary, "--version"])),
        subject("`countersign assess 'git status'`", words(&[&binary, "assess", "git status"])),
    ];
    for _ in 0..args.rounds {
        for subject in &mut subjects {
            subject.took.push(once(&subject.words, &data)?);
        }
    }
    let flush = Disk::open(folder.path().join("flush"))?.overwriting()?.percentile(50);
    tell(&subjects, flush);
    gate.kill()
}

fn once(words: &[String], data: &Path) -> anyhow::Result<Duration> {
    let started = Instant::now();
    let (program, arguments) = words.split_first().map(|(first, rest)| (first.as_str(), rest)).unwrap_or(("", &[]));
    let mut command = Command::new(program);
    command.args(arguments).env("COUNTERSIGN_DATA", data).stdin(Stdio::null());
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status()?;
    let took = started.elapsed();
    ensure!(status.success(), "`{}` failed", words.join(" "));
    Ok(took)
}

fn tell(subjects: &[Subject; 5], flush: Duration) {
    let [bash, run, empty, version, assess] = subjects;
    let median = |subject: &Subject| subject.took.percentile(50);
    let mut table = Table::new(["what", "median", "10 %", "over its ceiling", "goal"]);
    let over = |subject: &Subject, ceiling: &Subject| median(subject).saturating_sub(median(ceiling));
    let goal_of_run = RUN_GOAL + flush;
    let times = median(version).as_secs_f64() / median(empty).as_secs_f64();
    let rows = [
        (bash, String::new(), String::new()),
        (
            run,
            millis(over(run, bash)),
            against(format!("≤ 3 ms and one flush, {}", millis(flush)), over(run, bash) <= goal_of_run),
        ),
        (empty, String::new(), String::new()),
        (version, format!("{times:.1} times"), against("≤ 2 times", times <= 2.0)),
        (assess, millis(over(assess, empty)), against("≤ 0.5 ms", over(assess, empty) <= ASSESS_GOAL)),
    ];
    for (subject, over, goal) in rows {
        let tenth = millis(subject.took.percentile(10));
        table.row([subject.name.to_owned(), millis(median(subject)), tenth, over, goal]);
    }
    table.print("Starting the binary, and running a command behind the gate");
}
