//! One call: asked for, answered, run, told. Every call that is taken ends in exactly one `tool_result` or
//! `tool_cancelled`.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use countersign_engine::{CallTool, Event, ResumeToken, Status, Tool, ToolApprovalResult, ToolCall};
use countersign_model::{Action, ApprovalId};
use tokio::sync::oneshot::Receiver;
use tokio::sync::oneshot::error::RecvError;

use super::desk::{By, cancelled_reason, overdue};
use super::session::{Open, Session};
use super::tools::{Call, Said, prepare};
use crate::asking::View;

/// How long a command may run, in milliseconds.
const BASH_TIMEOUT: u64 = 120_000;
const MAX_BASH_TIMEOUT: u64 = 600_000;

/// A call on its way.
pub(super) struct Live {
    pub(super) session: Arc<Session>,
    pub(super) msg_id: String,
    pub(super) call_id: String,
    pub(super) tool: Tool,
    call: Call,
    action: Action,
    _working: Working,
}

/// Counts as work until everything about it is told.
struct Working(Arc<Session>);

impl Working {
    fn begin(session: &Arc<Session>) -> Self {
        session.working.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(session))
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        self.0.working.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Takes a call, on the thread that reads: what the host sends after it finds it known.
pub fn begin(session: &Arc<Session>, call: ToolCall) {
    let ToolCall { msg_id, call_id, tool: CallTool { name, args } } = call;
    if session.calls.lock().contains_key(&call_id) {
        let message = format!("call `{call_id}` is open already; it goes on, and this one does not begin");
        return session.out.error("duplicate_call", message, false);
    }
    let tool = Tool::new(&name, args);
    let said = |why: String| result(&msg_id, &call_id, &tool.name, Said::failed(why));
    let call = match Call::read(&tool.name, &tool.args) {
        Ok(call) => call,
        Err(why) => return session.out.send(&said(why)),
    };
    let action = match action(session, &tool, &call) {
        Ok(action) => action,
        Err(why) => return session.out.send(&said(why)),
    };
    let Ok(receiver) = session.manager.request_call(&call_id, &tool) else {
        return session.out.error("duplicate_call", format!("call `{call_id}` is pending already"), false);
    };
    let question = tool.is_question();
    session.calls.lock().insert(call_id.clone(), Open { question, ..Open::default() });
    let live =
        Live { session: Arc::clone(session), msg_id, call_id, tool, call, action, _working: Working::begin(session) };
    live.ask(receiver);
}

/// What the gate is asked.
fn action(session: &Session, tool: &Tool, call: &Call) -> Result<Action, String> {
    if let Some(command) = call.command() {
        let exec = prepare(command, session.workspace.path(), &session.inherited);
        return exec.map(Action::Exec).map_err(|error| error.to_string());
    }
    if let Call::Ask(ask) = call {
        let text =
            if ask.multi_select { format!("{}\n(several may be chosen)", ask.question) } else { ask.question.clone() };
        return Ok(Action::Question { text, options: ask.options.clone() });
    }
    let category = serde_json::to_value(tool.category).ok().and_then(|word| word.as_str().map(str::to_owned));
    Ok(Action::Tool { name: tool.name.clone(), category, args: tool.args.clone() })
}

fn result(msg_id: &str, call_id: &str, tool_name: &str, said: Said) -> Event {
    let said = said.fit();
    Event::ToolResult {
        msg_id: msg_id.to_owned(),
        call_id: call_id.to_owned(),
        tool_name: tool_name.to_owned(),
        status: if said.success { Status::Success } else { Status::Error },
        output: said.output,
        output_type: said.output_type,
        metadata: said.metadata,
    }
}

impl Live {
    fn ask(self, receiver: Receiver<ToolApprovalResult>) {
        // A question's mode means nothing, and without it the same question is the same after a restart.
        let (mode, again) = if self.tool.is_question() {
            (None, Some(self.call_id.as_str()))
        } else {
            (Some(self.session.manager.mode()), None)
        };
        let view = match self.session.desk.ask(&self.action, &By { tool: &self.tool.name, words: None }, mode, again) {
            Ok(view) => view,
            Err(error) => return self.cancelled(format!("the gate did not take it: {error:#}")),
        };
        let token = self.tool.is_question().then(|| token_of(&view)).flatten();
        if let Some(open) = self.session.calls.lock().get_mut(&self.call_id) {
            open.approval_id = Some(view.approval_id.clone());
            open.token = token;
        }
        match view.status.as_str() {
            "pending" => self.pend(view, token, receiver),
            "approved" => {
                drop(receiver);
                self.settle();
                if !self.tool.is_question() {
                    self.session.out.send(&self.announced());
                }
                let taken = view.consumed_at.is_some();
                thread::spawn(move || self.go_on(&view, taken));
            }
            _ => {
                self.settle();
                self.not_approved(&view);
            }
        }
    }

    /// Nobody waits for an answer any more.
    fn settle(&self) {
        let _ = self.session.manager.resolve(&self.call_id, ToolApprovalResult::Approved { answer: None });
    }

    fn pend(self, view: View, token: Option<ResumeToken>, receiver: Receiver<ToolApprovalResult>) {
        let _ = self.session.manager.expire_at(&self.call_id, overdue(&view));
        let mut events = vec![Event::ToolRequest {
            msg_id: self.msg_id.clone(),
            call_id: self.call_id.clone(),
            tool: self.tool.clone(),
            expires_at_ms: view.expires_at_ms,
        }];
        if let Some(token) = token {
            let resume_token = token.to_string();
            events.push(Event::ApprovalRequired {
                call_id: self.call_id.clone(),
                resume_token: resume_token.clone(),
                correlation_id: Some(resume_token.clone()),
                reason: "Tool requires host decision".to_owned(),
                context: self.tool.description.clone(),
            });
            events.push(Event::Suspend { reason: "awaiting host decision".to_owned(), resume_token });
        }
        self.session.out.send_all(&events);
        let (session, call_id, id) = (Arc::clone(&self.session), self.call_id.clone(), view.approval_id.clone());
        self.session.desk.watch(&view, move |ended| match ended {
            Ok(ended) => session.answered(&call_id, ended),
            Err(error) => {
                let reason = format!("the gate went away: {error:#}");
                let _ = session.manager.resolve(&call_id, ToolApprovalResult::Denied { reason });
            }
        });
        // A call that waits is an entry in a table; it gets its thread with its answer.
        let runtime = self.session.runtime.clone();
        runtime.spawn(async move {
            let result = receiver.await;
            thread::spawn(move || self.after(result, &id));
        });
    }

    fn after(self, result: Result<ToolApprovalResult, RecvError>, id: &str) {
        let view = self.session.calls.lock().get(&self.call_id).and_then(|open| open.view.clone());
        match (result, view) {
            (Ok(ToolApprovalResult::Approved { .. }), Some(view)) => self.go_on(&view, false),
            (_, Some(view)) => self.not_approved(&view),
            (result, None) => {
                let reason = match result {
                    Ok(ToolApprovalResult::Denied { reason }) => reason,
                    Ok(ToolApprovalResult::Approved { .. }) | Err(_) => "nobody answered".to_owned(),
                };
                // A question that can be taken up again stays where it is; everything else is withdrawn.
                let suspended = self.tool.is_question()
                    && self.session.settings.named
                    && self.session.closing.load(Ordering::SeqCst);
                self.tell_resumed(false);
                let (session, id) = (Arc::clone(&self.session), id.to_owned());
                let call_id = self.call_id.clone();
                self.session.out.send(&Event::ToolCancelled { msg_id: self.msg_id.clone(), call_id, reason });
                if !suspended {
                    session.desk.cancel(&id);
                }
                self.close();
            }
        }
    }

    /// The gate said yes. `taken`: with the permit, in the answer to asking itself; that somebody took it since is no yes.
    fn go_on(self, view: &View, taken: bool) {
        let decision = view.decision.as_ref();
        if self.tool.is_question() {
            self.tell_resumed(true);
            let answer = decision.and_then(|decision| decision.answer.clone());
            let said = match answer {
                Some(output) => Said { success: true, ..Said::failed(output) },
                None => Said::failed("the question was approved without an answer"),
            };
            return self.told(said);
        }
        let action = match self.approved(view) {
            Ok(action) => action,
            Err(why) => return self.cancelled(why),
        };
        if !taken && let Err(error) = self.session.desk.take(&view.approval_id) {
            return self.cancelled(format!("the approval cannot be used: {error}"));
        }
        if self.is_stopped() {
            return self.cancelled("stopped by the host".to_owned());
        }
        self.session.out.send(&Event::ToolRunning {
            msg_id: self.msg_id.clone(),
            call_id: self.call_id.clone(),
            tool_name: self.tool.name.clone(),
        });
        match (&self.call, &action) {
            (Call::Spawn(_), Action::Exec(exec)) => self.spawn(exec, &view.approval_id),
            (Call::Bash(args), Action::Exec(exec)) => {
                let limit = args.timeout.unwrap_or(BASH_TIMEOUT).clamp(1, MAX_BASH_TIMEOUT);
                let said = self.bash(exec, &view.approval_id, Duration::from_millis(limit));
                self.told(said);
            }
            _ => {
                let said = self.call.on_files(&self.session.workspace);
                self.told(said);
            }
        }
    }

    /// What may run: what was asked, or the command that a person put in its place.
    fn approved(&self, view: &View) -> Result<Action, String> {
        let told = view.digest.as_deref().unwrap_or_default();
        let replaced = view.decision.as_ref().and_then(|decision| decision.replacement.clone());
        let action = match (&self.action, replaced) {
            (_, None) => self.action.clone(),
            (Action::Exec(exec), Some(text)) => Action::Exec(exec.replaced_with(text)),
            (_, Some(text)) => return Err(format!("not as it was asked; instead: {text}")),
        };
        let digest = action.digest().map_err(|error| error.to_string())?.to_hex();
        if digest != told {
            return Err("the gate approved something else than this".to_owned());
        }
        match action {
            // Nobody looked at what this one would find: it is looked at now, and runs at once.
            Action::Exec(exec) if exec.binding.is_none() && !exec.command.trim().is_empty() => {
                let workspace = Path::new(self.session.workspace.path());
                prepare(&exec.command, workspace, &self.session.inherited)
                    .map(Action::Exec)
                    .map_err(|error| error.to_string())
            }
            other => Ok(other),
        }
    }

    fn announced(&self) -> Event {
        let (msg_id, call_id) = (self.msg_id.clone(), self.call_id.clone());
        Event::CallAnnounced { msg_id, call_id, tool: self.tool.clone() }
    }

    fn is_stopped(&self) -> bool {
        self.session.calls.lock().get(&self.call_id).is_none_or(|open| open.stopped)
    }

    fn not_approved(self, view: &View) {
        self.tell_resumed(false);
        self.cancelled(cancelled_reason(view));
    }

    /// Whichever way the answer came, a host that shows the question can put it away.
    fn tell_resumed(&self, approved: bool) {
        let token = self.session.calls.lock().get(&self.call_id).and_then(|open| open.token);
        if let Some(token) = token {
            self.session.out.send(&Event::ApprovalResume { resume_token: token.to_string(), approved });
        }
    }

    fn cancelled(self, reason: String) {
        self.settle();
        self.close();
        let (msg_id, call_id) = (self.msg_id.clone(), self.call_id.clone());
        self.session.out.send(&Event::ToolCancelled { msg_id, call_id, reason });
    }

    pub(super) fn told(&self, said: Said) {
        // Free before it is told: a host that hears the end may use the id again.
        self.close();
        self.session.out.send(&result(&self.msg_id, &self.call_id, &self.tool.name, said));
    }

    fn close(&self) {
        self.session.calls.lock().remove(&self.call_id);
    }
}

/// The approval's own random bits, so that the token is the same after a restart.
fn token_of(view: &View) -> Option<ResumeToken> {
    let id: ApprovalId = view.approval_id.parse().ok()?;
    Some(ResumeToken::from_random(*id.as_bytes()))
}
