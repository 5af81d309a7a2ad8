//! Lending the terminal to a command that runs in a group of its own, and taking it back.
//!
//! A child cannot take the terminal itself before its program starts (that would need code between fork and exec), so
//! for a moment after its start Ctrl-C still means this process: who waits for a command should stop it on that signal.

use std::cell::Cell;
use std::io::{IsTerminal, stdin};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use nix::sys::signal::{SigSet, SigmaskHow, Signal as Stopping, raise};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, waitid};
use rustix::termios::{tcgetpgrp, tcsetpgrp};
use signal_hook::SigId;
use signal_hook::consts::SIGCHLD;
use signal_hook::low_level::{pipe, unregister};

/// The terminal on standard input while somebody else has it.
#[derive(Debug)]
struct Lent {
    owner: Pid,
    group: Pid,
    /// Not while the whole job is in the background: then it is the shell's, and not ours to take.
    given: Cell<bool>,
}

impl Lent {
    /// Hands the terminal to the group, if there is one and it is ours to give.
    fn to(group: Pid) -> Option<Self> {
        let lent = Self { owner: rustix::process::getpgrp(), group, given: Cell::new(false) };
        (stdin().is_terminal() && lent.is_ours()).then(|| {
            lent.give();
            lent
        })
    }

    fn is_ours(&self) -> bool {
        tcgetpgrp(stdin()) == Ok(self.owner)
    }

    /// A child that asked for the terminal before it had it was stopped: it goes on.
    fn give(&self) {
        self.given.set(tcsetpgrp(stdin(), self.group).is_ok());
        let _ = rustix::process::kill_process_group(self.group, Signal::CONT);
    }

    fn take_back(&self) {
        if !self.given.replace(false) {
            return;
        }
        // Who is in the background and touches the terminal is stopped, unless it holds that signal off.
        let mut held_off = SigSet::empty();
        held_off.add(Stopping::SIGTTOU);
        let Ok(before) = held_off.thread_swap_mask(SigmaskHow::SIG_BLOCK) else { return };
        let _ = tcsetpgrp(stdin(), self.owner);
        let _ = before.thread_set_mask();
    }

    /// The command was stopped, by Ctrl-Z or for touching a terminal that it did not have. This process stops with it,
    /// so that the shell above gets its prompt, and both go on together.
    fn stop_along(&self) {
        if self.is_ours() {
            return self.give();
        }
        self.take_back();
        // Where no shell could wake us this does nothing, and the command goes on at once.
        // Raised on this thread, so that the next line is reached only when the process was woken.
        let _ = raise(Stopping::SIGTSTP);
        if self.is_ours() {
            self.give();
        } else {
            let _ = rustix::process::kill_process_group(self.group, Signal::CONT);
        }
    }
}

/// A terminal that is lent, and how its lender hears that the command was stopped.
#[derive(Debug)]
pub(crate) struct Loan {
    lent: Lent,
    hears: UnixStream,
    registration: SigId,
}

impl Loan {
    pub fn to(command: Pid) -> Option<Self> {
        let lent = Lent::to(command)?;
        let (hears, told) = UnixStream::pair().ok()?;
        hears.set_nonblocking(true).ok()?;
        let registration = pipe::register(SIGCHLD, told).ok()?;
        Some(Self { lent, hears, registration })
    }

    pub fn signals(&self) -> BorrowedFd<'_> {
        self.hears.as_fd()
    }

    /// After a signal: where the command was stopped, so are we.
    pub fn follow(&self) {
        let _ = rustix::io::read(&self.hears, &mut [0; 64]);
        let options = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG;
        if let Ok(Some(_)) = waitid(WaitId::Pid(self.lent.group), options) {
            self.lent.stop_along();
        }
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        unregister(self.registration);
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.take_back();
    }
}
