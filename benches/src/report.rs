//! How results are told: Markdown tables, percentiles, and the machine they hold for.

use std::fmt::Display;
use std::time::Duration;

#[derive(Debug)]
pub struct Table {
    headers: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub fn new<const N: usize>(headers: [&'static str; N]) -> Self {
        Self { headers: headers.to_vec(), rows: Vec::new() }
    }

    pub fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.to_vec());
    }

    pub fn print(&self, title: &str) {
        println!("\n### {title}\n");
        println!("| {} |", self.headers.join(" | "));
        println!("|{}", "---|".repeat(self.headers.len()));
        for row in &self.rows {
            println!("| {} |", row.join(" | "));
        }
    }
}

/// A goal and whether it was met, in one cell.
pub fn against(goal: impl Display, met: bool) -> String {
    format!("{goal}: {}", if met { "met" } else { "**missed**" })
}

pub fn rate(per_second: f64) -> String {
    format!("{per_second:.0}/s")
}

pub fn millis(duration: Duration) -> String {
    format!("{:.2} ms", duration.as_secs_f64() * 1000.0)
}

pub fn percent(ratio: f64) -> String {
    format!("{:.0} %", ratio * 100.0)
}

pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The fastest round: what others do on the machine only ever takes away.
pub fn best(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

/// Durations, of which any percentile can be told.
#[derive(Debug, Default)]
pub struct Samples(Vec<Duration>);

impl Samples {
    pub fn push(&mut self, sample: Duration) {
        self.0.push(sample);
    }

    pub fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    pub fn of_all(rounds: &[Self]) -> Self {
        Self(rounds.iter().flat_map(|round| round.0.iter().copied()).collect())
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// `hundredths` of the samples are at most this long.
    pub fn percentile(&self, hundredths: usize) -> Duration {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let place = (sorted.len() * hundredths).div_ceil(100).saturating_sub(1);
        sorted.get(place).copied().unwrap_or_default()
    }
}

/// What it ran on, as the kernel tells it.
pub fn print_machine() {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cpu = read("/proc/cpuinfo");
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or_default();
    let cores = cpu.lines().filter(|line| line.starts_with("processor")).count();
    let kernel = read("/proc/sys/kernel/osrelease");
    println!("\nMachine: {cores} cores{}, Linux {}.", model.replace("\t: ", " "), kernel.trim());
}

/// Progress goes to the terminal, results to stdout.
pub fn say(what: impl Display) {
    eprintln!("bench: {what}");
}
