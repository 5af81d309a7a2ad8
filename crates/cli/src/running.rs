//! From an answer of the gate to the end of a command: waits for people, takes the permit, runs what was approved and
//! says how it went, to the gate and to whoever called.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use countersign_model::{Action, COMMAND_SECS, Exec, escape_line, mask};
use countersign_runner::{Change, Exit, Inherited, Outcome, Spec, StartError, Stdio, Stopper, What, bind, start};
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};

use crate::asking::{View, deadline, malformed, read, verdict, wait};
use crate::client::{Request, encode};
use crate::locate::{Caller, Locator};
use crate::session::Session;
use crate::uploading::Upload;
use crate::workspace::{Workspace, write_trusted};
use crate::{exit, interrupt, output, prompt};

/// The one line that callers of the terminal tool know.
const NOT_APPROVED: &str = "Error: Command was not approved (rejected or timed out).";
const REPORT_PATIENCE: Duration = Duration::from_secs(5);
const LISTEN_AFTER: Duration = Duration::from_millis(200);
const LISTEN_SECS: u64 = 60;

/// One command on its way.
pub struct Run<'r> {
    pub caller: Arc<Caller>,
    /// How a person at this terminal would reach the gate.
    pub person: &'r Locator,
    pub exec: &'r Exec,
    pub session: Session,
    /// Of the action that was sent: the gate must have stored just that.
    pub digest: String,
    pub inherited: &'r Inherited,
    pub workspace: Option<&'r Workspace>,
    pub capture: bool,
    pub timeout: Option<u64>,
    pub ask_timeout: Option<u64>,
}

/// What a signal has to end, as things stand.
enum Stage {
    Asking {
        id: String,
    },
    /// A signal came first: nothing is started any more, and the process is about to end.
    Interrupted,
    Running(Stopper),
    Over,
}

impl Run<'_> {
    pub fn carry_through(&self, mut view: View) -> anyhow::Result<Report> {
        let id = view.approval_id.clone();
        let stage = Arc::new(Mutex::new(Stage::Asking { id: id.clone() }));
        self.end_on_signal(&stage)?;
        self.tell_problems(&view);
        // Taken with the answer to our own question; whoever takes it later takes it from us.
        let taken = view.status == "approved" && view.consumed_at.is_some();
        if view.status == "pending" {
            let waited = self.answered(view);
            // The cancelling ends the wait too; how it ended is the signal's to say.
            drop(park_if_interrupted(&stage));
            view = waited?;
            self.tell(&view);
        }
        if view.status != "approved" {
            *stage.lock() = Stage::Over;
            return Ok(Report::not_approved(&view));
        }
        let exec = self.approved(&view)?;
        if !taken && let Some(refused) = self.take(&id)? {
            return Ok(refused);
        }
        self.remember(&view);
        let stdio = if self.capture { Stdio::Capture } else { Stdio::Inherit };
        // Held while it starts: a signal finds either nothing started, or something to end.
        let mut started = park_if_interrupted(&stage);
        let mut running = match start(&exec, self.inherited, stdio) {
            Ok(running) => running,
            Err(error) => return Ok(self.not_started(&id, &error)),
        };
        *started = Stage::Running(running.stopper());
        drop(started);
        // Most commands are over before anybody could want to end them.
        running.if_it_lasts(LISTEN_AFTER, self.stop_when_asked(&id, running.stopper()));
        let mut upload = self.capture.then(|| Upload::start(Arc::clone(&self.caller), &id));
        let ended = running.wait(self.limit(&view), &mut |stream, bytes| {
            if let Some(upload) = &mut upload {
                upload.pass_on(stream, bytes);
            }
        });
        *stage.lock() = Stage::Over;
        if let Some(left_out) = upload.map(Upload::end).filter(|left_out| *left_out > 0) {
            output::note(&format!("{left_out} bytes of output came too fast for those who follow it elsewhere"));
        }
        let outcome = ended?;
        self.report(&id, &end_of(&outcome));
        Ok(Report::ran(id, outcome))
    }

    /// Takes the permit, once; or says why it cannot be had.
    fn take(&self, id: &str) -> anyhow::Result<Option<Report>> {
        let request = Request::post(format!("/v1/approvals/{}/consume", encode(id)), json!({}));
        match self.caller.send::<Value>(request) {
            Ok(taken) => read(&taken, Some(id)).map(|_| None).map_err(Into::into),
            Err(error) => Ok(Some(Report::refused(Some(id.to_owned()), "permit_refused", error.to_string()))),
        }
    }

    /// Waits for people; one of them may sit at this very terminal.
    fn answered(&self, view: View) -> anyhow::Result<View> {
        let id = view.approval_id.clone();
        let until = deadline(self.ask_timeout, &view)?;
        let over = Arc::new(AtomicBool::new(false));
        let asked = prompt::at_terminal(self.person, &id, self.exec, &over);
        if asked.is_none() {
            output::note(&format!(
                "waiting for an answer: {id}\nanswer with `countersign approve {id}` in another terminal, or in `countersign watch`"
            ));
        }
        let waited = wait(&self.caller, &id, until);
        over.store(true, Ordering::SeqCst);
        if let Some(asked) = asked {
            let _ = asked.join();
        }
        Ok(waited?.1)
    }

    fn tell(&self, view: &View) {
        let changed = view.decision.as_ref().and_then(|decision| decision.replacement.as_deref());
        let changed = changed.map(|text| format!("this runs instead, once: {}", escape_line(&mask(text).text)));
        output::note(&verdict(view, &changed.unwrap_or_default()));
        if let Some(note) = view.decision.as_ref().and_then(|decision| decision.note.as_deref()) {
            output::note(&format!("note: {}", note.split('\n').map(escape_line).collect::<Vec<_>>().join(" / ")));
        }
    }

    /// What may run: the action as it was sent, or what a person made of it. The gate's digest must be of just that.
    fn approved(&self, view: &View) -> anyhow::Result<Exec> {
        let told = view.digest.as_deref().ok_or_else(|| malformed("an approval without a digest"))?;
        let Some(text) = view.decision.as_ref().and_then(|decision| decision.replacement.clone()) else {
            if told != self.digest {
                return Err(malformed("it approved another command than this one").into());
            }
            return Ok(self.exec.clone());
        };
        let changed = self.exec.replaced_with(text);
        if Action::Exec(changed.clone()).digest()?.to_hex() != told {
            return Err(malformed("it approved another command than the one it names").into());
        }
        // Nobody looked at what this one would find: it is looked at now, and runs at once.
        let cwd = changed.cwd.clone().unwrap_or_default();
        let spec = Spec {
            what: What::Text { text: &changed.command, shell: None },
            cwd: std::path::Path::new(&cwd),
            workspace: self.workspace.map(|workspace| std::path::Path::new(&workspace.path)),
            env: &changed.env,
            inherited: self.inherited,
        };
        let binding = bind(&spec)?.into_binding();
        Ok(Exec { binding: Some(Box::new(binding)), ..changed })
    }

    /// Captured output has a limit; a person's own terminal has none unless asked.
    fn limit(&self, view: &View) -> Option<Duration> {
        let file = view.terminal.as_ref().map_or(COMMAND_SECS, |terminal| terminal.command_timeout_sec);
        self.timeout.or(self.capture.then_some(file)).map(Duration::from_secs)
    }

    fn tell_problems(&self, view: &View) {
        let Some(terminal) = &view.terminal else { return };
        for problem in &terminal.problems {
            let message = escape_line(&problem.message);
            output::note(&format!(".agents/terminal.json, line {}: {message}", problem.line));
        }
    }

    fn remember(&self, view: &View) {
        let remembered = view.decision.as_ref().map(|decision| decision.remembered.as_slice()).unwrap_or_default();
        let Some(workspace) = self.workspace.filter(|_| !remembered.is_empty()) else { return };
        match write_trusted(&self.caller, workspace, remembered) {
            Ok(()) => {
                output::note(&format!("remembered in .agents/terminal.json: {}", escape_line(&remembered.join("; "))))
            }
            Err(error) => output::note(&format!("not remembered in the file: {error:#}")),
        }
    }

    fn not_started(&self, id: &str, error: &StartError) -> Report {
        let changed = match error {
            StartError::Changed(changes) => changes.iter().map(Change::to_string).collect(),
            StartError::Unbound | StartError::Bind(_) | StartError::Spawn { .. } => vec![error.to_string()],
        };
        self.report(id, &json!({ "changed": changed }));
        let cause = match error {
            StartError::Changed(_) => "changed_since_approval",
            StartError::Unbound | StartError::Bind(_) | StartError::Spawn { .. } => "not_started",
        };
        Report::refused(Some(id.to_owned()), cause, error.to_string())
    }

    /// The command has ended whatever the gate says to that.
    fn report(&self, id: &str, end: &Value) {
        let request = Request::post(format!("/v1/approvals/{}/run", encode(id)), end.clone());
        if let Err(error) = self.caller.send::<Value>(request.timeout(REPORT_PATIENCE)) {
            output::note(&format!("how it ended is not on the record: {error}"));
        }
    }

    /// Hears from the gate when somebody wants it ended. The thread ends with the process, or when the gate says that
    /// nothing runs any more.
    fn stop_when_asked(&self, id: &str, stopper: Stopper) -> impl FnOnce() + Send + 'static {
        let (caller, id) = (Arc::clone(&self.caller), id.to_owned());
        let listen = move || loop {
            let request = Request::get(format!("/v1/approvals/{}/stop?wait={LISTEN_SECS}", encode(&id)));
            match caller.send::<Value>(request.timeout(Duration::from_secs(LISTEN_SECS) + REPORT_PATIENCE)) {
                Ok(told) if told.get("stop") == Some(&Value::Bool(true)) => {
                    let by = told.get("by").and_then(Value::as_str).map(escape_line).unwrap_or_default();
                    output::note(&format!("stopped by {by}"));
                    return stopper.stop();
                }
                Ok(_) => {}
                Err(error) if error.may_pass() => thread::sleep(LISTEN_AFTER),
                Err(_) => return,
            }
        };
        || drop(thread::spawn(listen))
    }

    fn end_on_signal(&self, stage: &Arc<Mutex<Stage>>) -> anyhow::Result<()> {
        let (caller, stage, session) = (Arc::clone(&self.caller), Arc::clone(stage), self.session.clone());
        interrupt::on_signal(move |code| {
            let asking = {
                let mut stage = stage.lock();
                match &*stage {
                    Stage::Running(stopper) => {
                        stopper.stop();
                        None
                    }
                    Stage::Asking { id } => {
                        let id = id.clone();
                        *stage = Stage::Interrupted;
                        Some(id)
                    }
                    Stage::Interrupted | Stage::Over => None,
                }
            };
            let Some(id) = asking else { return session.on_signal(code, &caller) };
            let request = Request::post(format!("/v1/approvals/{}/cancel", encode(&id)), json!({}));
            let cancelled = caller.send::<Value>(request.timeout(Duration::from_secs(2)));
            prompt::restore();
            output::note(&match cancelled {
                Ok(_) => format!("\ninterrupted: the request {id} is cancelled, and nothing ran"),
                Err(error) => format!("\ninterrupted: nothing ran; the request {id} may still be open: {error}"),
            });
            session.on_signal(code, &caller);
            std::process::exit(i32::from(code));
        })
    }
}

/// Where a signal came first, this thread has nothing more to say: the other one ends the process.
fn park_if_interrupted(stage: &Mutex<Stage>) -> MutexGuard<'_, Stage> {
    loop {
        let held = stage.lock();
        if !matches!(*held, Stage::Interrupted) {
            return held;
        }
        drop(held);
        thread::park();
    }
}

/// How a run ended, as the record has it.
pub fn end_of(outcome: &Outcome) -> Value {
    let (exit, signal) = match outcome.exit {
        Exit::Code(code) => (Some(code), None),
        Exit::Signal(signal) => (None, Some(signal)),
    };
    let changed: Vec<String> = outcome.changed_meanwhile.iter().map(Change::to_string).collect();
    json!({
        "exit": exit, "signal": signal, "timed_out": outcome.timed_out, "stopped": outcome.stopped, "changed": changed,
    })
}

/// How it ended, for whoever called.
pub struct Report {
    approval_id: Option<String>,
    code: u8,
    outcome: Option<Outcome>,
    error: Option<String>,
    cause: Option<String>,
}

impl Report {
    pub fn refused(approval_id: Option<String>, cause: &str, error: String) -> Self {
        let code = if cause == "no_such_program" { exit::NOT_FOUND } else { exit::DENIED };
        Self { approval_id, code, outcome: None, error: Some(error), cause: Some(cause.to_owned()) }
    }

    fn not_approved(view: &View) -> Self {
        let cause = match (view.status.as_str(), view.reason.as_deref()) {
            ("denied", Some("person")) => "rejected",
            ("expired", _) => "timed_out",
            ("denied", Some("rule")) => "blacklisted",
            (_, Some(reason)) => reason,
            (status, None) => status,
        };
        Self {
            approval_id: Some(view.approval_id.clone()),
            code: exit::of_state(&view.status, view.reason.as_deref()),
            outcome: None,
            error: Some(NOT_APPROVED.to_owned()),
            cause: Some(cause.to_owned()),
        }
    }

    fn ran(approval_id: String, outcome: Outcome) -> Self {
        let code = u8::try_from(outcome.exit_code() & 0xff).unwrap_or(exit::OTHER);
        Self { approval_id: Some(approval_id), code, outcome: Some(outcome), error: None, cause: None }
    }

    pub fn tell(self, as_json: bool) -> anyhow::Result<ExitCode> {
        if let Some(outcome) = self.outcome.as_ref().filter(|outcome| !outcome.changed_meanwhile.is_empty()) {
            let changed: Vec<String> = outcome.changed_meanwhile.iter().map(Change::to_string).collect();
            output::note(&format!("warning: while it ran, {}", escape_line(&changed.join("; "))));
        }
        if as_json {
            output::line(&output::json(&self.json()))?;
        } else if let Some(error) = &self.error {
            output::note(error);
            if let Some(cause) = self.cause.as_ref().filter(|_| error == NOT_APPROVED) {
                output::note(&format!("cause: {}", escape_line(cause)));
            }
        }
        Ok(exit::code(self.code))
    }

    fn json(&self) -> Value {
        let outcome = self.outcome.as_ref();
        let text = |captured: Option<&[u8]>| String::from_utf8_lossy(captured.unwrap_or_default()).into_owned();
        let truncated = outcome.is_some_and(|outcome| outcome.stdout.truncated() || outcome.stderr.truncated());
        let mut value = json!({
            "exitCode": outcome.map(Outcome::exit_code),
            "stdout": text(outcome.map(|outcome| outcome.stdout.bytes.as_slice())),
            "stderr": text(outcome.map(|outcome| outcome.stderr.bytes.as_slice())),
            "timedOut": outcome.is_some_and(|outcome| outcome.timed_out),
            "truncated": truncated,
            "approvalId": self.approval_id,
        });
        if let Some(fields) = value.as_object_mut() {
            let texts = [("error", &self.error), ("cause", &self.cause)];
            fields.extend(texts.into_iter().filter_map(|(name, text)| Some((name.to_owned(), json!(text.as_ref()?)))));
        }
        value
    }
}
