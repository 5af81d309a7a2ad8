//! A person at a terminal: the command has it while it runs, Ctrl-C and Ctrl-Z mean the command, and it comes back.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::print_stdout,
    reason = "test code: a broken expectation is a failed test"
)]

mod common;

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio as StdStdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use common::World;
use countersign_runner::{Stdio, start};
use rustix::termios::tcgetpgrp;

const PATIENCE: Duration = Duration::from_secs(30);

/// An interactive shell in a terminal of its own.
struct Person {
    script: Child,
    heard: Receiver<Vec<u8>>,
    all: String,
    from: usize,
}

impl Person {
    fn sits_down() -> Self {
        let shell = "env PS1='$ ' bash --norc --noprofile -i";
        let mut script = Command::new("script")
            .args(["-qec", shell, "/dev/null"])
            .stdin(StdStdio::piped())
            .stdout(StdStdio::piped())
            .spawn()
            .unwrap();
        let (says, heard) = channel();
        let mut out = script.stdout.take().unwrap();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = out.read(&mut buffer) {
                if says.send(buffer[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        let mut person = Self { script, heard, all: String::new(), from: 0 };
        person.sees("$ ");
        // Says at once that something was stopped.
        person.types("set -b\n");
        person.sees("$ ");
        person
    }

    fn types(&mut self, keys: &str) {
        self.script.stdin.as_mut().unwrap().write_all(keys.as_bytes()).unwrap();
    }

    /// Waits for it, after what was seen before.
    fn sees(&mut self, what: &str) {
        let until = Instant::now() + PATIENCE;
        while !self.all[self.from..].contains(what) {
            match self.heard.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(bytes) => self.all.push_str(&String::from_utf8_lossy(&bytes)),
                Err(_) => panic!("never saw {what:?} in {:?}", self.all),
            }
        }
        self.from += self.all[self.from..].find(what).unwrap() + what.len();
    }

    /// Runs this text through the runner, in this very test's program.
    fn runs(&mut self, text: &str) {
        let me = std::env::current_exe().unwrap();
        let line = format!("RUN='{text}' {} --ignored --exact --nocapture in_a_terminal\n", me.display());
        self.types(&line);
    }
}

impl Drop for Person {
    fn drop(&mut self) {
        let _ = self.script.kill();
        let _ = self.script.wait();
    }
}

#[test]
#[ignore = "not a test: what the others start in a terminal"]
fn in_a_terminal() {
    let world = World::new();
    let exec = world.text(&std::env::var("RUN").unwrap());
    let outcome = start(&exec, &world.inherited, Stdio::Inherit).unwrap().wait(None, &mut |_, _| {}).unwrap();
    let back = tcgetpgrp(std::io::stdin()).unwrap() == rustix::process::getpgrp();
    println!("ended-with={} terminal-is-back={back}", outcome.exit_code());
}

#[test]
fn the_command_reads_from_the_terminal_and_gives_it_back() {
    let mut person = Person::sits_down();
    person.runs("read line; echo \"got:$line\"; test $(ps -o tpgid= -p $$) = $$ && echo in-front");
    person.types("hello\n");
    person.sees("got:hello");
    person.sees("in-front");
    person.sees("ended-with=0 terminal-is-back=true");
    person.sees("$ ");
    person.types("echo a''live\n");
    person.sees("alive");
}

/// Waits in the command until it has the terminal, or until it has it no more.
const FRONT: &str = "front() { test $(ps -o tpgid= -p $$) = $$; }; until front; do :; done; echo re\"\"ady; ";

#[test]
fn ctrl_c_ends_the_command_and_not_us() {
    let mut person = Person::sits_down();
    person.runs(&format!("{FRONT} sleep 1000"));
    person.sees("ready");
    person.types("\x03");
    person.sees("ended-with=130 terminal-is-back=true");
}

#[test]
fn ctrl_z_stops_both_and_they_go_on_together() {
    let mut person = Person::sits_down();
    let text = "while front; do :; done; echo be\"\"hind; stty sane; echo aga\"\"in; read l; echo got:$l";
    person.runs(&format!("{FRONT} {text}"));
    person.sees("ready");
    person.types("\x1a");
    person.sees("Stopped");
    person.sees("$ ");
    person.types("echo the''shell\n");
    person.sees("theshell");
    assert!(!person.all.contains("behind"), "it went on without being told");
    person.types("bg\n");
    person.sees("behind");
    // It touches the terminal from behind, and both are stopped again.
    person.sees("Stopped");
    person.types("fg\n");
    person.sees("again");
    person.types("hello\n");
    person.sees("got:hello");
    person.sees("ended-with=0 terminal-is-back=true");
}
