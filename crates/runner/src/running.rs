//! A command that runs: its output, its time, its end. One thread and one `poll`: the process, the stop, the pipes and
//! the terminal are all descriptors.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};

use crate::change::Change;
use crate::output::{CHUNK, Captured, Pipe, Stream};
use crate::start::{Recheck, Stdio};
use crate::strays::Family;
use crate::terminal::Loan;

/// Between asking a command to end and ending it.
const TO_END: Duration = Duration::from_secs(2);
/// What a command wrote is read to its end; what others write into its pipes afterwards is waited for only so long.
const AFTER_EXIT: Duration = Duration::from_millis(200);
/// How often an ending family is counted.
const TICK: Duration = Duration::from_millis(10);
const TIMED_OUT: i32 = 124;
const BY_SIGNAL: i32 = 128;

/// How the command itself ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Code(i32),
    Signal(i32),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    pub exit: Exit,
    pub timed_out: bool,
    /// Somebody ended it.
    pub stopped: bool,
    pub stdout: Captured,
    pub stderr: Captured,
    /// Files it was bound to that are others now: whether it ran the ones approved cannot be said.
    pub changed_meanwhile: Vec<Change>,
}

impl Outcome {
    /// As a shell would answer: its own code, 128 and the signal, 124 when its time was over.
    pub fn exit_code(&self) -> i32 {
        match self.exit {
            _ if self.timed_out => TIMED_OUT,
            Exit::Code(code) => code,
            Exit::Signal(signal) => BY_SIGNAL + signal,
        }
    }
}

/// Ends a running command from anywhere.
#[derive(Clone, Debug)]
pub struct Stopper(Arc<OwnedFd>);

impl Stopper {
    pub fn stop(&self) {
        // Cannot fail but by a counter that is full, which says the same.
        let _ = rustix::io::write(&*self.0, &1_u64.to_ne_bytes());
    }
}

/// Dropped without waiting, it ends the command.
#[derive(Debug)]
pub struct Running {
    child: Child,
    process: OwnedFd,
    stop: Stopper,
    family: Family,
    out: Pipe,
    err: Pipe,
    terminal: Option<Loan>,
    started: Instant,
    recheck: Recheck,
    later: Option<Later>,
    ended: bool,
}

/// What is done once the command has run for so long.
struct Later {
    at: Instant,
    then: Box<dyn FnOnce() + Send>,
}

impl fmt::Debug for Later {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Later({:?})", self.at)
    }
}

/// How far its end has come.
enum Phase {
    Runs,
    /// It was asked to end, and is killed then.
    Asked(Instant),
    /// It ended by itself; its pipes are read until then.
    Exited(Instant),
    Over,
}

impl Running {
    pub(crate) fn new(mut child: Child, family: Family, stdio: Stdio, recheck: Recheck) -> io::Result<Self> {
        let pid = Pid::from_child(&child);
        let pieces = pidfd_open(pid, PidfdFlags::empty()).and_then(|process| {
            let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
            Ok((process, Stopper(Arc::new(eventfd(0, flags)?))))
        });
        let (process, stop) = match pieces {
            Ok(pieces) => pieces,
            Err(error) => {
                family.kill();
                child.wait()?;
                return Err(error.into());
            }
        };
        let terminal = if stdio == Stdio::Inherit { Loan::to(pid) } else { None };
        let out = Pipe::new(child.stdout.take(), Stream::Stdout);
        let err = Pipe::new(child.stderr.take(), Stream::Stderr);
        let started = Instant::now();
        Ok(Self { child, process, stop, family, out, err, terminal, started, recheck, later: None, ended: false })
    }

    pub fn stopper(&self) -> Stopper {
        self.stop.clone()
    }

    /// What need not be done for a command that is over at once.
    pub fn if_it_lasts(&mut self, time: Duration, then: impl FnOnce() + Send + 'static) {
        self.later = Some(Later { at: self.started + time, then: Box::new(then) });
    }

    /// Its process number, which is its group's too.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for its end, and ends it when the time since its start is over or somebody stops it. `sink` gets what it
    /// writes as it comes, all of it.
    pub fn wait(mut self, timeout: Option<Duration>, sink: &mut dyn FnMut(Stream, &[u8])) -> io::Result<Outcome> {
        let mut outcome = Outcome {
            exit: Exit::Code(0),
            timed_out: false,
            stopped: false,
            stdout: Captured::default(),
            stderr: Captured::default(),
            changed_meanwhile: Vec::new(),
        };
        let deadline = timeout.and_then(|timeout| self.started.checked_add(timeout));
        let mut buffer = vec![0; if self.out.open().is_some() { CHUNK } else { 0 }];
        let (mut phase, mut since_exit) = (Phase::Runs, 0);
        while !matches!(phase, Phase::Over) {
            let due = match phase {
                Phase::Runs => deadline.into_iter().chain(self.later.as_ref().map(|later| later.at)).min(),
                Phase::Asked(_) => Some(Instant::now() + TICK),
                Phase::Exited(until) => Some(until),
                Phase::Over => None,
            };
            let woken = self.poll(due, matches!(phase, Phase::Runs))?;
            let mut read = 0;
            if woken.out {
                read += self.out.read(&mut buffer, sink);
            }
            if woken.err {
                read += self.err.read(&mut buffer, sink);
            }
            if woken.signal {
                self.terminal.iter().for_each(Loan::follow);
            }
            let now = Instant::now();
            if let Some(later) = self.later.take_if(|later| now >= later.at && !woken.exited) {
                (later.then)();
            }
            phase = match phase {
                Phase::Runs if woken.exited && self.is_silent() => Phase::Over,
                Phase::Runs if woken.exited => Phase::Exited(now + AFTER_EXIT),
                Phase::Runs if woken.stop || deadline.is_some_and(|deadline| now >= deadline) => {
                    (outcome.stopped, outcome.timed_out) = (woken.stop, !woken.stop);
                    self.family.signal(Signal::TERM);
                    // Who is stopped hears nothing until it goes on.
                    self.family.signal(Signal::CONT);
                    Phase::Asked(now + TO_END)
                }
                Phase::Asked(kill_at) if now >= kill_at || self.family.is_gone() => {
                    self.family.kill();
                    Phase::Exited(now)
                }
                Phase::Exited(until) => {
                    since_exit += read;
                    // Its own last words are in the pipe when it ends, and no more than a pipe holds.
                    let late = now >= until && (read == 0 || since_exit > 2 * CHUNK);
                    if late || self.is_silent() { Phase::Over } else { Phase::Exited(until) }
                }
                phase => phase,
            };
        }
        outcome.exit = exit_of(self.child.wait()?);
        self.ended = true;
        self.terminal = None;
        outcome.stdout = std::mem::take(&mut self.out.captured);
        outcome.stderr = std::mem::take(&mut self.err.captured);
        outcome.changed_meanwhile = self.recheck.changes();
        Ok(outcome)
    }

    /// Whether nothing more can come through its pipes.
    fn is_silent(&self) -> bool {
        self.out.open().is_none() && self.err.open().is_none()
    }

    /// Sleeps until something happens. Whether the process ended is asked only while that is news.
    fn poll(&self, due: Option<Instant>, news: bool) -> io::Result<Woken> {
        let watched = [
            news.then(|| self.process.as_fd()),
            news.then(|| self.stop.0.as_fd()),
            self.out.open(),
            self.err.open(),
            self.terminal.as_ref().map(Loan::signals),
        ];
        let mut fds: Vec<PollFd<'_>> =
            watched.iter().flatten().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
        let left = due.map(|due| due.saturating_duration_since(Instant::now()));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        match poll(&mut fds, left.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut ready = fds.iter().map(|fd| !fd.revents().is_empty());
        let [exited, stop, out, err, signal] = watched.map(|fd| fd.is_some() && ready.next().unwrap_or(false));
        Ok(Woken { exited, stop, out, err, signal })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.ended {
            self.family.kill();
            let _ = self.child.wait();
            self.terminal = None;
        }
    }
}

struct Woken {
    exited: bool,
    stop: bool,
    out: bool,
    err: bool,
    signal: bool,
}

fn exit_of(status: ExitStatus) -> Exit {
    status.code().map_or_else(|| Exit::Signal(status.signal().unwrap_or_default()), Exit::Code)
}
