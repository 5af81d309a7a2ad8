//! The attack suite: an agent with a key and a folder of its own, as hostile as it can make them. Lines are generated
//! that combine ways to change place, ways to read, programs that obey project files, file names that are code, and
//! variables; what the gate would let run unasked is really run, in a sandbox, and any marker that appears and any
//! secret that is printed is a failing line, minimised.
//!
//! `COUNTERSIGN_ATTACK_LINES` sets how many lines are generated beyond one of each kind, `COUNTERSIGN_ATTACK_SEED`
//! from which seed. Needs root (namespaces), bash, git, cargo, npm, make and strace; without them it fails, it does
//! not skip.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a test stops where it fails"
)]

mod generator;
mod sandbox;
#[path = "../e2e/support.rs"]
#[expect(dead_code, reason = "the end-to-end tests use all of it, this suite a part")]
mod support;
mod tables;
mod testing;
mod traced;

use generator::{Attack, Generator};
use sandbox::{Sandbox, WORK};
use tables::Tables;
use testing::{By, survey};

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

fn attacks(tables: &Tables, lines: u64) -> Vec<Attack> {
    let seed = number("COUNTERSIGN_ATTACK_SEED", 1);
    println!("COUNTERSIGN_ATTACK_SEED={seed} COUNTERSIGN_ATTACK_LINES={lines}");
    let mut generator = Generator::new(tables, seed);
    let mut all = generator.each();
    all.extend((0..lines).map(|_| generator.next()));
    all
}

/// Without a gate everything that lies in the workspace goes off: else the suite would prove nothing.
#[test]
fn every_fixture_is_live() {
    let tables = Tables::read();
    let mut dead = Vec::new();
    let mut machine = Sandbox::driver();
    for fixture in &tables.fixtures.fixture {
        let left = machine.run(&format!("{WORK}/{}", fixture.folder), &[], &["bash", "-c", &fixture.trigger]);
        let marker = fixture.marker();
        if !left.harm.iter().any(|harm| harm.split_once(' ').is_some_and(|(_, name)| name.starts_with(marker))) {
            dead.push(format!("{} by `{}`: {:?}\n{}", fixture.folder, fixture.trigger, left.harm, left.output));
        }
    }
    for (folder, file) in &tables.reading.secrets {
        let left = machine.run(folder, &[], &["cat", file]);
        if left.harm.is_empty() {
            dead.push(format!("the secret {file} in {folder}: {}", left.output));
        }
    }
    for (folder, file) in &tables.reading.linked {
        let left = machine.run(&format!("{WORK}/{folder}"), &[], &["cat", file]);
        if left.harm.is_empty() {
            dead.push(format!("the link {file} in {folder}: {}", left.output));
        }
    }
    assert!(dead.is_empty(), "{} that do not go off:\n{}", dead.len(), dead.join("\n"));
}

/// The sandbox holds what runs in it.
#[test]
fn the_sandbox_holds() {
    let mut machine = Sandbox::driver();
    for line in [
        "touch /usr/x",
        "touch /ctl/x",
        "mount -t tmpfs x /tmp",
        "echo > /dev/tcp/1.1.1.1/53",
        "chroot / true",
        "ls /work /root/.ssh",
        "cat /ctl/*",
    ] {
        let left = machine.run(WORK, &[], &["timeout", "5", "bash", "-c", line]);
        assert_ne!(left.status, 0, "`{line}` worked: {}", left.output);
    }
    let left = machine.run(WORK, &[], &["bash", "-c", "sleep 600 & touch HIT; id -u; grep CapEff /proc/self/status"]);
    assert!(left.output.contains("1000") && left.output.contains("CapEff:\t0000000000000000"), "{}", left.output);
    assert!(left.harm.contains("ran name:HIT"), "{:?}", left.harm);
    let after = machine.run(WORK, &[], &["bash", "-c", "ls /proc | grep -c '^[0-9]'"]);
    assert!(after.output.trim().parse::<u32>().unwrap() <= 6, "something outlived its line: {}", after.output);
}

#[test]
fn what_is_allowed_does_no_harm() {
    let tables = Tables::read();
    let attacks = attacks(&tables, number("COUNTERSIGN_ATTACK_LINES", 600));
    let found = survey(&attacks, By::Look);
    println!("{} lines, {} of them allowed and run", attacks.len(), found.allowed);
    assert!(found.failing.is_empty(), "{} lines did harm:\n{}", found.failing.len(), found.failing.join("\n"));
    assert!(found.allowed > 100, "{} allowed lines are too few to prove anything", found.allowed);
}

/// The same through the gate itself.
#[test]
fn what_run_lets_through_does_no_harm() {
    let tables = Tables::read();
    let mut attacks = attacks(&tables, number("COUNTERSIGN_ATTACK_LINES", 600));
    let step = usize::try_from(number("COUNTERSIGN_ATTACK_EVERY", 12)).unwrap();
    attacks = attacks.into_iter().step_by(step).collect();
    let found = survey(&attacks, By::Run);
    println!("{} lines, {} of them allowed and run", attacks.len(), found.allowed);
    assert!(found.failing.is_empty(), "{} lines did harm:\n{}", found.failing.len(), found.failing.join("\n"));
}

/// Variables of whoever starts `countersign run`: what it hands on is part of the place.
#[test]
fn what_run_inherits_does_no_harm() {
    let tables = Tables::read();
    let mut attacks = Generator::new(&tables, 1).each();
    // Where our own data folder is found by it, there is no gate to ask.
    attacks.retain(|attack| attack.env.iter().any(|(name, _)| name != "HOME"));
    let found = survey(&attacks, By::Inherited);
    println!("{} lines, {} of them allowed and run", attacks.len(), found.allowed);
    assert!(found.failing.is_empty(), "{} lines did harm:\n{}", found.failing.len(), found.failing.join("\n"));
}

/// Over HTTP with a `cwd`, where nothing on disk is looked at: the folder counts all the same.
#[test]
fn what_http_allows_prints_no_secret() {
    let tables = Tables::read();
    let mut attacks = Generator::new(&tables, number("COUNTERSIGN_ATTACK_SEED", 1)).each();
    // What lies in a folder that is like any other only looking would tell.
    attacks.retain(|attack| attack.workspace().is_none() && attack.folder != "/home/agent/other");
    attacks = attacks.into_iter().step_by(2).collect();
    let found = survey(&attacks, By::Http);
    println!("{} lines, {} of them allowed and run", attacks.len(), found.allowed);
    assert!(found.failing.is_empty(), "{} lines did harm:\n{}", found.failing.len(), found.failing.join("\n"));
}
