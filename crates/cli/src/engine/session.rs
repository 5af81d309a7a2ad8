//! One session of `countersign engine`: reads the host's lines, answers what can be answered at once, and hands calls
//! on. It ends with the host, and takes everything that waits or runs with it.

use std::collections::HashMap;
use std::io::BufReader;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

use countersign_engine::{
    ApprovalScope, Capabilities, Command, DEFAULT_REAP_INTERVAL, Event, Line, Lines, Persistence, ResumeToken,
    ToolApprovalManager, ToolApprovalResult, mode_word,
};
use countersign_model::{ApprovalId, Mode};
use countersign_runner::{Inherited, Stopper, kill_all};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::calls;
use super::confine::Confined;
use super::desk::{Desk, Rights, cancelled_reason, gate_error};
use super::out::Out;
use crate::asking::View;
use crate::interrupt;

/// Calls that wait or run at a time.
const MAX_CALLS: usize = 256;
/// A host that went away is not kept waiting for: everything is over within two seconds.
const TO_END: Duration = Duration::from_millis(1_500);
const AT_LAST: Duration = Duration::from_millis(1_900);
const TICK: Duration = Duration::from_millis(2);

/// What a session is started with.
#[derive(Debug)]
pub struct Settings {
    pub mode: Mode,
    /// Whether the host may move to a mode that asks less.
    pub wire_modes: bool,
    /// The session has a name by which it can be taken up again.
    pub named: bool,
    pub rights: Rights,
}

#[derive(Debug)]
pub struct Session {
    pub out: Out,
    pub desk: Desk,
    pub manager: Arc<ToolApprovalManager>,
    pub workspace: Confined,
    pub inherited: Inherited,
    pub settings: Settings,
    pub calls: Mutex<HashMap<String, Open>>,
    pub runtime: tokio::runtime::Handle,
    /// What Spawn started, by its process number.
    pub spawned: Mutex<HashMap<u32, Stopper>>,
    /// Calls about which something is still to be told.
    pub working: AtomicUsize,
    /// The host is gone.
    pub closing: AtomicBool,
}

/// A call that has not ended.
#[derive(Debug, Default)]
pub struct Open {
    pub approval_id: Option<String>,
    pub token: Option<ResumeToken>,
    pub question: bool,
    /// The gate's answer, once it is there.
    pub view: Option<View>,
    pub stopper: Option<Stopper>,
    /// It is to end, whether or not it has begun.
    pub stopped: bool,
}

enum Input {
    Line(Line),
    End,
}

/// Serves the host until it closes its side.
pub fn serve(desk: Desk, workspace: Confined, settings: Settings) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_time().build()?;
    let session = Arc::new(Session {
        out: Out::default(),
        desk,
        manager: Arc::new(ToolApprovalManager::new()),
        workspace,
        inherited: Inherited::capture(),
        settings,
        calls: Mutex::default(),
        runtime: runtime.handle().clone(),
        spawned: Mutex::default(),
        working: AtomicUsize::new(0),
        closing: AtomicBool::new(false),
    });
    session.manager.set_mode(session.settings.mode);
    let ending = Arc::clone(&session);
    interrupt::on_signal(move |code| {
        ending.end();
        std::process::exit(i32::from(code));
    })?;
    let _in_runtime = runtime.enter();
    // The gate keeps the deadlines; this is for a gate that is gone.
    session.manager.spawn_reaper(DEFAULT_REAP_INTERVAL);
    session.out.send(&session.ready());
    // A line at a time: what is not read yet waits in the host's pipe.
    let (sender, inputs) = mpsc::sync_channel(1);
    thread::spawn(move || read(&sender));
    for input in inputs {
        match input {
            Input::Line(line) if !session.out.is_gone() => session.line(line),
            Input::Line(_) | Input::End => break,
        }
    }
    session.end();
    Ok(())
}

fn read(inputs: &SyncSender<Input>) {
    let mut lines = Lines::new(BufReader::with_capacity(64 * 1024, std::io::stdin()));
    while let Ok(Some(line)) = lines.next_line() {
        if inputs.send(Input::Line(line)).is_err() {
            return;
        }
    }
    thread::spawn(|| {
        thread::sleep(AT_LAST);
        kill_all();
        std::process::exit(i32::from(crate::exit::OK));
    });
    let _ = inputs.send(Input::End);
}

impl Session {
    fn ready(&self) -> Event {
        let persistence = if self.settings.named { Persistence::journaled() } else { Persistence::none() };
        Event::Ready {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            session_id: Some(self.desk.session.clone()),
            session_persistence: persistence,
            capabilities: self.capabilities(),
        }
    }

    fn capabilities(&self) -> Capabilities {
        let current = self.manager.mode();
        let modes = [Mode::Default, Mode::AutoEdit, Mode::Force].into_iter().filter(|mode| self.may_move_to(*mode));
        Capabilities {
            tool_approval: true,
            modes: modes.map(|mode| mode_word(mode).to_owned()).collect(),
            current_mode: current,
            mcp: false,
            thinking: false,
            effort: false,
            effort_levels: Vec::new(),
            hitl_suspend: true,
            streaming_tools: true,
        }
    }

    fn may_move_to(&self, mode: Mode) -> bool {
        mode == Mode::Default || (self.settings.wire_modes && mode <= self.settings.rights.max_mode)
    }

    fn line(self: &Arc<Self>, line: Line) {
        let command = match line {
            Line::Text(text) => Command::parse(&text),
            Line::Bad(bad) => Err(bad.message()),
        };
        match command {
            Err(message) => self.out.error("engine_error", message, false),
            Ok(Command::Ping) => self.out.send(&Event::Pong),
            Ok(Command::Stop) => self.stop("stopped by the host"),
            Ok(Command::SetMode(to)) => self.set_mode(to.mode),
            Ok(Command::Foreign(kind)) => {
                self.out.error("unsupported", format!("`{kind}` is not for an engine without a model"), false);
            }
            Ok(Command::ToolCall(call)) => {
                let count = self.calls.lock().len();
                if count >= MAX_CALLS {
                    let message =
                        format!("{count} calls are open, the most allowed; send `{}` again later", call.call_id);
                    return self.out.error("busy", message, true);
                }
                calls::begin(self, call);
            }
            Ok(Command::ToolApprove(approve)) => {
                let (decision, prefix) = match approve.scope {
                    ApprovalScope::Once => ("allow-once", None),
                    ApprovalScope::Always => ("allow-session", None),
                    ApprovalScope::AlwaysPrefix { prefix } => ("allow-session", Some(prefix)),
                };
                // What a host says to a tool that asks nothing is nobody's output.
                let answer = approve.answer.filter(|_| self.is_question(&approve.call_id));
                let body = json!({ "decision": decision, "prefix": prefix, "answer": answer });
                self.decide(&approve.call_id, body);
            }
            Ok(Command::ToolDeny(deny)) => {
                let note = Some(deny.reason).filter(|reason| !reason.is_empty());
                self.decide(&deny.call_id, json!({ "decision": "deny", "note": note }));
            }
            Ok(Command::ApprovalResume(resume)) => {
                self.resume(&resume.resume_token, resume.approved, resume.modifications);
            }
        }
    }

    fn set_mode(&self, mode: Mode) {
        if !self.may_move_to(mode) {
            let message = format!(
                "the mode cannot be moved to `{}` from here; start with `--allow-wire-modes` or `--force`, and where a \
                 gate rules, its policy's `maxMode` must allow it",
                mode_word(mode)
            );
            return self.out.error("forbidden", message, false);
        }
        self.manager.set_mode(mode);
        self.out.send(&Event::ConfigChanged { capabilities: self.capabilities() });
    }

    fn is_question(&self, call_id: &str) -> bool {
        self.calls.lock().get(call_id).is_some_and(|open| open.question)
    }

    /// The host's answer goes to the gate, which says whether it counts; the call goes on from what the gate says.
    fn decide(&self, call_id: &str, body: Value) {
        let id = self.calls.lock().get(call_id).and_then(|open| open.approval_id.clone());
        let Some(id) = id.filter(|_| self.manager.is_pending(call_id)) else {
            let message = format!("no call `{call_id}` is pending; it was never asked, or it has its answer");
            return self.out.error("not_found", message, false);
        };
        let body = without_nulls(body);
        match self.desk.decide(&id, body) {
            Ok(view) => self.answered(call_id, view),
            Err(error) => {
                let (code, message, retryable) = gate_error(&error);
                self.out.error(code, message, retryable);
            }
        }
    }

    fn resume(&self, token: &str, approved: bool, modifications: Option<Value>) {
        let unknown =
            || format!("nothing waits under the resume token `{}`", token.chars().take(64).collect::<String>());
        let Ok(token) = token.parse::<ResumeToken>() else {
            return self.out.error("not_found", unknown(), false);
        };
        let body = if approved {
            let answer = modifications.as_ref().and_then(|changes| changes.get("answer")).and_then(Value::as_str);
            json!({ "decision": "allow-once", "answer": answer })
        } else {
            json!({ "decision": "deny" })
        };
        let call_id = self.calls.lock().iter().find(|(_, open)| open.token == Some(token)).map(|(id, _)| id.clone());
        if let Some(call_id) = call_id {
            return self.decide(&call_id, body);
        }
        // From before a restart: the gate still has it, and asked again in this session it is answered.
        let id = ApprovalId::from_random(*token.as_bytes()).to_string();
        match self.desk.decide(&id, without_nulls(body)) {
            Ok(_) => self.out.send(&Event::ApprovalResume { resume_token: token.to_string(), approved }),
            Err(error) => {
                let (code, message, retryable) = gate_error(&error);
                let message = if code == "not_found" { unknown() } else { message };
                self.out.error(code, message, retryable);
            }
        }
    }

    /// The gate has its answer: whoever waits for it goes on. Heard twice, it counts once.
    pub fn answered(&self, call_id: &str, view: View) {
        let result = if view.status == "approved" {
            ToolApprovalResult::Approved { answer: view.decision.as_ref().and_then(|decision| decision.answer.clone()) }
        } else {
            ToolApprovalResult::Denied { reason: cancelled_reason(&view) }
        };
        let mut calls = self.calls.lock();
        let Some(open) = calls.get_mut(call_id).filter(|_| self.manager.is_pending(call_id)) else { return };
        open.view = Some(view);
        // Gone in between means that it was denied by then.
        let _ = self.manager.resolve(call_id, result);
    }

    /// Denies what waits and ends what runs; what Spawn started goes on.
    fn stop(&self, reason: &str) {
        for open in self.calls.lock().values_mut() {
            open.stopped = true;
            open.stopper.iter().for_each(Stopper::stop);
        }
        self.manager.deny_all_pending(reason);
    }

    fn end(&self) {
        self.closing.store(true, Ordering::SeqCst);
        self.spawned.lock().values().for_each(Stopper::stop);
        self.stop("the host closed its side");
        self.let_end(TO_END);
        kill_all();
        self.let_end(AT_LAST - TO_END - TICK);
    }

    fn let_end(&self, patience: Duration) {
        let until = Instant::now() + patience;
        while Instant::now() < until && self.working.load(Ordering::SeqCst) > 0 {
            thread::sleep(TICK);
        }
    }
}

/// The gate reads a field that is there.
fn without_nulls(mut body: Value) -> Value {
    if let Some(fields) = body.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    body
}
