//! The processes that a command left behind: those of its group, those that descend from it, and those whose parents
//! ended and that were given to this process. They are looked for only when a command is to be ended by force.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use rustix::process::{Pid, Signal, WaitOptions};

/// The commands of this process that run now. Locked while one starts and while strays are looked for: between its
/// start and its entry here a command would look like a stray of another.
static LIVE: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());
/// How long killing is tried. Nothing survives a kill but what sleeps in a driver.
const PERSISTENCE: Duration = Duration::from_secs(2);

/// Held while a command starts.
pub(crate) struct Starting(MutexGuard<'static, BTreeSet<i32>>);

impl Starting {
    pub fn begin() -> Self {
        // Makes processes without a parent ours, so that one that forks away can be found. Where that is refused, the
        // group is ended anyway.
        let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
        Self(LIVE.lock())
    }

    pub fn done(mut self, leader: Pid) -> Family {
        self.0.insert(leader.as_raw_pid());
        Family { leader }
    }
}

/// One command and all that came of it.
#[derive(Debug)]
pub(crate) struct Family {
    leader: Pid,
}

#[derive(Clone, Copy)]
struct Process {
    parent: i32,
    group: i32,
    dead: bool,
    started: u64,
}

impl Family {
    /// INVARIANT: called before the leader is reaped, so that its number still means it.
    pub fn signal(&self, signal: Signal) {
        let live = LIVE.lock();
        let _ = rustix::process::kill_process_group(self.leader, signal);
        for pid in self.members(&live).into_iter().filter(|pid| *pid != self.leader.as_raw_pid()) {
            if let Some(pid) = Pid::from_raw(pid) {
                let _ = rustix::process::kill_process(pid, signal);
            }
        }
    }

    /// Kills until nobody is left: what was forked meanwhile is found the next time.
    pub fn kill(&self) {
        let until = Instant::now() + PERSISTENCE;
        loop {
            self.signal(Signal::KILL);
            if self.is_gone() || Instant::now() > until {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    pub fn is_gone(&self) -> bool {
        self.members(&LIVE.lock()).is_empty()
    }

    /// Who is alive; the dead that were given to us are buried on the way.
    fn members(&self, live: &BTreeSet<i32>) -> BTreeSet<i32> {
        let all = processes();
        let (me, leader) = (rustix::process::getpid().as_raw_pid(), self.leader.as_raw_pid());
        let own_group = rustix::process::getpgrp().as_raw_pid();
        // With several commands at once an orphan could be of any of them: then it is left alone. What is in our own
        // group was started by somebody else in this process.
        let alone = live.len() <= 1;
        let born = all.get(&leader).map_or(u64::MAX, |process| process.started);
        let orphan = |pid: &i32, process: &Process| {
            alone
                && process.parent == me
                && process.group != own_group
                && process.started >= born
                && !live.contains(pid)
        };
        let root =
            |(pid, process): &(&i32, &Process)| **pid == leader || process.group == leader || orphan(pid, process);
        let mut family: BTreeSet<i32> = all.iter().filter(root).map(|(pid, _)| *pid).collect();
        loop {
            let more = all.iter().filter(|(pid, process)| family.contains(&process.parent) && !family.contains(pid));
            let more: Vec<i32> = more.map(|(pid, _)| *pid).collect();
            if more.is_empty() {
                break;
            }
            family.extend(more);
        }
        let dead = |pid: &i32| all.get(pid).is_none_or(|process| process.dead);
        for pid in family.iter().filter(|pid| **pid != leader && dead(pid)).copied() {
            if let Some(pid) = Pid::from_raw(pid) {
                let _ = rustix::process::waitpid(Some(pid), WaitOptions::NOHANG);
            }
        }
        family.into_iter().filter(|pid| !dead(pid)).collect()
    }
}

impl Drop for Family {
    fn drop(&mut self) {
        LIVE.lock().remove(&self.leader.as_raw_pid());
    }
}

/// Ends everything that this process runs, at once: for a process that has to be gone and cannot wait for their ends.
pub fn kill_all() {
    let leaders: Vec<i32> = LIVE.lock().iter().copied().collect();
    for leader in leaders.into_iter().filter_map(Pid::from_raw) {
        // Whoever started it still keeps its entry.
        std::mem::ManuallyDrop::new(Family { leader }).signal(Signal::KILL);
    }
}

fn processes() -> BTreeMap<i32, Process> {
    let Ok(entries) = fs::read_dir("/proc") else { return BTreeMap::new() };
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    pids.filter_map(|pid| Some((pid, process(pid)?))).collect()
}

fn process(pid: i32) -> Option<Process> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The name in brackets may hold anything, brackets too.
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    let text = String::from_utf8_lossy(stat.get(end + 1..)?).into_owned();
    let fields: Vec<&str> = text.split_ascii_whitespace().collect();
    let number = |at: usize| fields.get(at)?.parse::<i64>().ok();
    Some(Process {
        dead: matches!(fields.first(), Some(&("Z" | "X"))),
        parent: i32::try_from(number(1)?).ok()?,
        group: i32::try_from(number(2)?).ok()?,
        started: u64::try_from(number(19)?).ok()?,
    })
}
