//! Lending the terminal to a command that runs in a group of its own, and taking it back.

use std::cell::Cell;
use std::io::{IsTerminal, stdin};

use nix::sys::signal::{SigSet, SigmaskHow, Signal as Blocked};
use rustix::process::{Pid, Signal};
use rustix::termios::{tcgetpgrp, tcsetpgrp};

/// The terminal on standard input while somebody else has it.
#[derive(Debug)]
pub(crate) struct Lent {
    owner: Pid,
    group: Pid,
    /// Not while the whole job is in the background: then it is the shell's, and not ours to take.
    given: Cell<bool>,
}

impl Lent {
    /// Hands the terminal to the group, if there is one and it is ours to give.
    pub fn to(group: Pid) -> Option<Self> {
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
        held_off.add(Blocked::SIGTTOU);
        let Ok(before) = held_off.thread_swap_mask(SigmaskHow::SIG_BLOCK) else { return };
        let _ = tcsetpgrp(stdin(), self.owner);
        let _ = before.thread_set_mask();
    }

    /// The command was stopped, by Ctrl-Z or for touching a terminal that it did not have. This process stops with it,
    /// so that the shell above gets its prompt, and both go on together.
    pub fn stop_along(&self) {
        if self.is_ours() {
            return self.give();
        }
        self.take_back();
        // Where no shell could wake us this does nothing, and the command goes on at once.
        let _ = rustix::process::kill_process(rustix::process::getpid(), Signal::TSTP);
        if self.is_ours() {
            self.give();
        } else {
            let _ = rustix::process::kill_process_group(self.group, Signal::CONT);
        }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.take_back();
    }
}
