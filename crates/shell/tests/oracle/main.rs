//! The execve oracle: real bash in a sandbox where programs only say that they were started. Every program that bash
//! starts must be one the engine said; a line it calls safe must start nothing else, with the arguments it said.
//!
//! `COUNTERSIGN_ORACLE_LINES` sets how many lines are generated, `COUNTERSIGN_ORACLE_SEED` from which seed. Needs
//! root (namespaces), bash, a C compiler and a static libc; without them it fails, it does not skip.
#![expect(clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test stops where it fails")]

mod compare;
mod desync;
mod generator;
mod minimise;
mod sandbox;
mod soup;
mod tricks;

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use generator::Generator;
use sandbox::Sandbox;

/// Two sandboxes: lines wait for each other more than for the processor.
const SANDBOXES: usize = 2;
const MAX_SHOWN: usize = 24;
/// What the engine misses, it misses again: on a machine that is busy a run is now and then cut off in the middle.
const TRIES: usize = 30;

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// Runs every line, with programs that end with each of these statuses, and names what was not said.
fn hold(lines: &[String], names: &BTreeSet<String>, statuses: &[u8]) -> usize {
    let next = AtomicUsize::new(0);
    let (started, late, safe) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    let (wrong, once): (Mutex<Vec<String>>, Mutex<Vec<String>>) = Default::default();
    std::thread::scope(|scope| {
        for _ in 0..SANDBOXES {
            let (next, started, late, safe, wrong, once) = (&next, &started, &late, &safe, &wrong, &once);
            scope.spawn(move || {
                let mut sandbox = Sandbox::start(names);
                while let Some(line) = lines.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let said = compare::Said::of(line);
                    safe.fetch_add(usize::from(said.is_safe()), Ordering::Relaxed);
                    for &status in statuses {
                        let run = sandbox.run(line, status);
                        started.fetch_add(run.started.len(), Ordering::Relaxed);
                        late.fetch_add(usize::from(run.late), Ordering::Relaxed);
                        let Some(seen) = said.lacks(&run.started) else { continue };
                        let again = (0..TRIES).find_map(|_| said.lacks(&sandbox.run(line, status).started));
                        if again.is_none() {
                            once.lock().expect("no thread stopped").push(format!("{line:?}\n    {seen}"));
                            continue;
                        }
                        let (line, why) = minimise::smallest(line, status, &seen, &mut sandbox);
                        wrong.lock().expect("no thread stopped").push(format!("{line:?}\n    {why}"));
                        break;
                    }
                    if wrong.lock().expect("no thread stopped").len() >= MAX_SHOWN {
                        return;
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().expect("no thread stopped");
    println!("{} lines, {safe:?} of them safe, {started:?} programs started, {late:?} runs out of time", lines.len());
    assert!(wrong.is_empty(), "started and not said:\n{}", wrong.join("\n"));
    let once = once.into_inner().expect("no thread stopped");
    println!("seen once, and not in {TRIES} tries more: {once:#?}");
    assert!(once.len() < 2, "too many to be a sandbox that was killed in the middle of a record:\n{}", once.join("\n"));
    started.into_inner()
}

#[test]
fn corpora_start_only_what_was_said() {
    let mut lines = Vec::new();
    let folder = format!("{}/tests/corpora", env!("CARGO_MANIFEST_DIR"));
    for name in ["benign_readonly", "bypass", "dangerous", "review", "seed_weaknesses"] {
        let text = std::fs::read_to_string(format!("{folder}/{name}.jsonl")).expect("the corpus is there");
        let rows = text.lines().map(|row| serde_json::from_str::<serde_json::Value>(row).expect("a row is JSON"));
        lines.extend(rows.filter_map(|row| row["command"].as_str().map(str::to_owned)));
    }
    // NUL cannot be given to a program at all.
    lines.retain(|line| !line.contains('\0'));
    let mut names: BTreeSet<String> = generator::programs().into_iter().collect();
    let word = |c: char| c.is_ascii_alphanumeric() || "/._+-".contains(c);
    for line in &lines {
        names.extend(line.split(|c| !word(c)).filter(|word| !word.is_empty() && word.len() < 40).map(str::to_owned));
    }
    let started = hold(&lines, &names, &[0, 1]);
    assert!(started > lines.len(), "hardly anything was started: {started}");
}

#[test]
fn tricks_start_only_what_was_said() {
    let lines: Vec<String> = tricks::TRICKS.iter().map(|trick| (*trick).to_owned()).collect();
    let _started = hold(&lines, &generator::programs().into_iter().collect(), &[0, 1]);
}

#[test]
fn lines_that_read_two_ways_are_read_as_bash_does() {
    let _started = hold(&desync::lines(), &generator::programs().into_iter().collect(), &[0]);
}

#[test]
fn safe_soup_starts_nothing_hidden() {
    let count = number("COUNTERSIGN_ORACLE_LINES", 2500);
    let wanted = usize::try_from(count / 2).expect("a small number");
    let lines = soup::safe_lines(number("COUNTERSIGN_ORACLE_SEED", 1), wanted, wanted * 40);
    assert!(lines.len() > wanted / 10, "{} lines are too few to prove anything", lines.len());
    let _started = hold(&lines, &generator::programs().into_iter().collect(), &[0]);
}

/// Every short word of braces, commas and dots: `{a},}` is two words to bash.
#[test]
fn braces_become_what_bash_makes_of_them() {
    const LETTERS: [char; 6] = ['{', '}', ',', 'a', '.', '1'];
    let mut words = vec![String::new()];
    for _ in 0..5 {
        let longer = words.iter().flat_map(|word| LETTERS.map(|letter| format!("{word}{letter}")));
        words = std::iter::once(String::new()).chain(longer).collect();
    }
    words.retain(|word| word.contains('{'));
    words.extend(
        ["{1..1}", "a{a..a}a", "{1..3..2}", "{a..c..2}", "{01..3}", "{3..-1}", "{a,{1..2}}", "{,}{,}"]
            .map(str::to_owned),
    );
    words.extend(
        ["{a..1}", "{1..a}", "{{a,1},a}", "{a,1}{a", "a{,a}}", "{a,{1,}", "{-1..1}", "{0..2}"].map(str::to_owned),
    );
    let lines: Vec<String> = words
        .chunks(40)
        .map(|some| some.iter().enumerate().map(|(at, word)| format!("evil {at} {word}; ")).collect())
        .collect();
    let started = hold(&lines, &generator::programs().into_iter().collect(), &[0]);
    assert_eq!(started, words.len());
}

#[test]
fn generated_lines_start_only_what_was_said() {
    let seed = number("COUNTERSIGN_ORACLE_SEED", 1);
    let count = number("COUNTERSIGN_ORACLE_LINES", 2500);
    println!("COUNTERSIGN_ORACLE_SEED={seed} COUNTERSIGN_ORACLE_LINES={count}");
    let mut generator = Generator::new(seed);
    let lines: Vec<String> = (0..count).map(|_| generator.rough_line()).collect();
    let names = generator::programs().into_iter().collect();
    let started = hold(&lines, &names, &[0, 1]);
    assert!(started > lines.len(), "hardly anything was started: {started}");
}
