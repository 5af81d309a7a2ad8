//! `countersign relay`: stands between a host and an engine. `pipe` moves bytes, `upward` looks at what the engine says,
//! `downward` at what the host says, `table` knows which calls wait and settles each once, `ends` notices
//! who is gone.

mod downward;
mod ends;
mod pipe;
mod table;
mod upward;

use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{self, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use countersign_engine::Event;
use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process};

use crate::engine::{Desk, Out};
use crate::interrupt;
use ends::Motion;
use table::Table;

/// Answers on their way to an engine that does not read just now.
const ANSWERS: usize = 1_024;
/// Between the host's end, asking the engine to end, and ending it.
const TO_END: Duration = Duration::from_millis(1_200);
const TO_KILL: Duration = Duration::from_millis(600);
const TICK: Duration = Duration::from_millis(5);
/// Ours alone: an engine must not find our keys in its environment.
const OUR_VARIABLES: &str = "COUNTERSIGN_";

#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Whether the host may move the engine to modes that ask less.
    pub wire_modes: bool,
    /// The session has a name by which it can be taken up again.
    pub named: bool,
}

/// What both directions share.
#[derive(Debug)]
struct Relay {
    desk: Desk,
    settings: Settings,
    host: Out,
    /// `None` once the engine's input is closed.
    engine: Mutex<Option<ChildStdin>>,
    table: Table,
    up: Motion,
    down: Motion,
    /// What the thread that reads the engine answers: it must never wait for the engine to read.
    answers: SyncSender<String>,
}

impl Relay {
    /// Whole lines, as they are. An engine that does not read holds up whoever writes.
    fn to_engine(&self, bytes: &[u8]) {
        let mut engine = self.engine.lock();
        let written = engine.as_mut().map(|stdin| stdin.write_all(bytes).and_then(|()| stdin.flush()));
        if matches!(written, Some(Err(_))) {
            *engine = None;
        }
    }
}

impl Relay {
    /// Nobody answers any more.
    fn deny_all(&self) {
        self.table.close();
        for (call_id, waiting) in self.table.take_all() {
            let reason = "the relay ended before an answer came".to_owned();
            let msg_id = waiting.msg_id.clone();
            self.host.send(&Event::ToolCancelled { msg_id, call_id, reason });
            // A question that can be taken up again stays where it is.
            if !(waiting.question && self.settings.named) {
                self.desk.cancel(&waiting.approval_id);
            }
        }
    }
}

/// Runs the engine until either side ends. The engine's own exit code.
pub fn relay(desk: Desk, settings: Settings, engine: &[String]) -> anyhow::Result<u8> {
    let (program, arguments) = engine.split_first().context("there is no engine to run; name one after `--`")?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with(OUR_VARIABLES)) {
        command.env_remove(name);
    }
    let mut child = command.spawn().with_context(|| format!("the engine `{program}` could not be started"))?;
    let (stdin, stdout) = (child.stdin.take(), child.stdout.take().context("the engine has no output")?);
    // Fewer wake-ups; a system that refuses is only slower.
    let _ = rustix::pipe::fcntl_setpipe_size(&stdout, pipe::CHUNK);
    let (answers, queued) = mpsc::sync_channel::<String>(ANSWERS);
    let relay = Arc::new(Relay {
        desk,
        settings,
        host: Out::default(),
        engine: Mutex::new(stdin),
        table: Table::default(),
        up: Motion::default(),
        down: Motion::default(),
        answers,
    });
    let answering = Arc::clone(&relay);
    thread::spawn(move || queued.into_iter().for_each(|line| answering.to_engine(line.as_bytes())));
    let (ended, ends) = mpsc::channel();
    ends::watch(&relay, &child, &ended);
    let on_signal = ended.clone();
    interrupt::on_signal(move |_| {
        let _ = on_signal.send(());
    })?;
    let (up, up_ended) = (Arc::clone(&relay), ended.clone());
    thread::spawn(move || {
        upward::run(&up, stdout);
        up.up.done();
        let _ = up_ended.send(());
    });
    let down = Arc::clone(&relay);
    thread::spawn(move || {
        downward::run(&down);
        let _ = ended.send(());
    });
    // Whichever side ends first ends the other.
    let _ = ends.recv();
    relay.deny_all();
    // An engine that does not read holds whoever writes to it, and with them the way to it: then it is ended all the same.
    if let Some(mut engine) = relay.engine.try_lock_for(TICK) {
        drop(engine.take());
    }
    let code = end(&mut child)?;
    // The engine's last words, while the host still takes them.
    let until = Instant::now() + TO_END;
    while !relay.host.is_gone() && !relay.up.is_done() && Instant::now() < until {
        thread::sleep(TICK);
    }
    Ok(code)
}

/// The engine sees its input closed, then is asked, then killed.
fn end(child: &mut Child) -> anyhow::Result<u8> {
    for (patience, signal) in [(TO_END, Signal::TERM), (TO_KILL, Signal::KILL)] {
        let until = Instant::now() + patience;
        while Instant::now() < until {
            if let Some(status) = child.try_wait()? {
                let code = status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(1);
                return Ok(u8::try_from(code & 0xff).unwrap_or(1));
            }
            thread::sleep(TICK);
        }
        let _ = kill_process(Pid::from_child(child), signal);
    }
    let status = child.wait()?;
    Ok(u8::try_from(status.signal().map_or(1, |signal| 128 + signal)).unwrap_or(1))
}
