//! Notices an end that the pipes do not tell: a host that is gone while its engine does not read, and an engine that is
//! gone while something it left behind keeps its pipe open. What is still on its way is not cut off.

use std::os::fd::AsFd;
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::Relay;

/// A direction that has not moved for so long has nothing more to move.
const STILL: Duration = Duration::from_millis(500);

/// What one direction is doing.
#[derive(Debug, Default)]
pub struct Motion {
    steps: AtomicU64,
    waiting: AtomicBool,
    done: AtomicBool,
}

impl Motion {
    pub fn note(&self, waiting: bool) {
        self.steps.fetch_add(1, Ordering::Relaxed);
        self.waiting.store(waiting, Ordering::Relaxed);
    }

    pub fn done(&self) {
        self.done.store(true, Ordering::Relaxed);
    }

    pub fn is_done(&self) -> bool {
        self.done.load(Ordering::Relaxed)
    }

    /// Returns once it has been in this state, without a step, for a while.
    fn rest(&self, waiting: bool) {
        loop {
            let before = self.steps.load(Ordering::Relaxed);
            thread::sleep(STILL);
            let still = self.steps.load(Ordering::Relaxed) == before;
            if still && self.waiting.load(Ordering::Relaxed) == waiting {
                return;
            }
        }
    }
}

pub fn watch(relay: &Arc<Relay>, child: &Child, ended: &Sender<()>) {
    let (host, told) = (Arc::clone(relay), ended.clone());
    thread::spawn(move || {
        // Nobody reads what we say: the host is gone.
        wait_for(std::io::stdout(), PollFlags::ERR);
        host.host.give_up();
        let _ = told.send(());
    });
    let (host, told) = (Arc::clone(relay), ended.clone());
    thread::spawn(move || {
        // Nobody writes to us any more. What was written is passed on first, unless the engine does not take it.
        wait_for(std::io::stdin(), PollFlags::HUP);
        host.down.rest(false);
        let _ = told.send(());
    });
    let Ok(process) = pidfd_open(Pid::from_child(child), PidfdFlags::empty()) else { return };
    let (engine, told) = (Arc::clone(relay), ended.clone());
    thread::spawn(move || {
        wait_for(process, PollFlags::IN);
        // What it said is passed on first; what others keep its pipe open for is not waited for.
        engine.up.rest(true);
        let _ = told.send(());
    });
}

/// Until this is so; for ever, if it cannot be told.
fn wait_for(what: impl AsFd, flags: PollFlags) {
    loop {
        let mut watched = [PollFd::from_borrowed_fd(what.as_fd(), flags)];
        match poll(&mut watched, None) {
            Ok(_) if watched.iter().any(|fd| fd.revents().intersects(flags)) => return,
            // Something else is so, such as a closed descriptor: that will not change.
            Ok(_) => thread::sleep(STILL),
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => thread::sleep(Duration::MAX),
        }
    }
}
