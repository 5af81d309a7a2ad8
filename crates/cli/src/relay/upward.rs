//! From the engine to the host. What asks for approval is put to the gate first; all else passes.

use std::io::Read;
use std::sync::Arc;
use std::thread;

use countersign_engine::{ApprovalResume, ApprovalScope, Category, Event, Received, Tool, ToolApprove, ToolDeny};
use countersign_model::{Action, ActionType, Exec};
use memchr::memmem::Finder;
use serde::Serialize;
use serde_json::{Value, json};

use super::Relay;
use super::pipe::{self, Direction};
use super::table::{AnswerBy, Waiting};
use crate::asking::View;
use crate::engine::{By, cancelled_reason};

pub fn run(relay: &Arc<Relay>, engine: impl Read) {
    pipe::run(engine, &mut Upward { relay, concerns: CONCERNS.map(Finder::new) });
}

/// The types that are looked at begin so: `tool_request`, `tool_running`, `tool_result`, `tool_cancelled` and
/// `approval_required`. Not `tool_chunk`, of which there is most.
const CONCERNS: [&[u8]; 3] = [b"\"tool_r", b"\"tool_ca", b"\"approval_required\""];

struct Upward<'r> {
    relay: &'r Arc<Relay>,
    concerns: [Finder<'static>; CONCERNS.len()],
}

impl Direction for Upward<'_> {
    fn concerns(&self, piece: &[u8]) -> bool {
        self.concerns.iter().any(|word| word.find(piece).is_some())
    }

    fn line(&mut self, line: &[u8]) {
        // What nobody understands passes: it approves nothing, and the host may know better.
        let event = std::str::from_utf8(line).ok().and_then(|text| Event::parse(text).ok());
        let Some(Received::Event(event)) = event else {
            if let Some(call_id) = unreadable_request(line) {
                let reason = "the relay could not read what is asked for".to_owned();
                self.relay.queue(Answer::deny(&call_id, reason));
            }
            return self.pass(line);
        };
        match *event {
            Event::ToolRequest { msg_id, call_id, tool, .. } => self.relay.request(line, msg_id, call_id, &tool),
            Event::ApprovalRequired { call_id, resume_token, reason, context, .. } => {
                self.relay.required(&call_id, &resume_token, &reason, &context);
                self.pass(line);
            }
            Event::ToolRunning { call_id, .. }
            | Event::ToolResult { call_id, .. }
            | Event::ToolCancelled { call_id, .. } => {
                // The engine went on by itself: nobody needs to answer any more.
                if let Some(waiting) = self.relay.table.take(&call_id) {
                    let (relay, id) = (Arc::clone(self.relay), waiting.approval_id);
                    thread::spawn(move || relay.desk.cancel(&id));
                }
                self.relay.table.forget(&call_id);
                self.pass(line);
            }
            _ => self.pass(line),
        }
    }

    fn pass(&mut self, bytes: &[u8]) {
        self.relay.host.write(bytes);
    }

    fn is_over(&self) -> bool {
        self.relay.host.is_gone()
    }

    fn idle(&self, waiting: bool) {
        self.relay.up.note(waiting);
    }

    fn too_long(&mut self, _: &[u8]) -> bool {
        true
    }
}

/// The call of a request that does not have the protocol's form: nobody could approve it, so it need not wait.
fn unreadable_request(line: &[u8]) -> Option<String> {
    let value: Value = serde_json::from_slice(line).ok()?;
    let call_id = value.get("call_id")?.as_str()?;
    (value.get("type")? == "tool_request").then(|| call_id.to_owned())
}

/// An answer as the engine reads it.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Answer {
    ToolApprove(ToolApprove),
    ToolDeny(ToolDeny),
    ApprovalResume(ApprovalResume),
}

impl Answer {
    fn to_line(&self) -> String {
        let mut line = serde_json::to_string(self).unwrap_or_default();
        line.push('\n');
        line
    }

    fn deny(call_id: &str, reason: String) -> Self {
        Self::ToolDeny(ToolDeny { call_id: call_id.to_owned(), reason })
    }
}

/// Whether this relay holds the permit of a yes. That somebody does is not enough: it may be used only once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Permit {
    /// The gate's answer to asking took it.
    Taken,
    ToTake,
}

impl Permit {
    /// Of the answer to asking itself.
    fn with(view: &View) -> Self {
        if view.consumed_at.is_some() { Self::Taken } else { Self::ToTake }
    }
}

impl Relay {
    fn request(self: &Arc<Self>, line: &[u8], msg_id: String, call_id: String, tool: &Tool) {
        if self.table.contains(&call_id) {
            let message = format!("the engine asked twice for call `{call_id}`; the first one waits");
            return self.host.error("duplicate_call", message, false);
        }
        if !self.table.claim(&call_id) {
            // The host may still answer the first one by this id, and must not answer another with it.
            return self.queue(Answer::deny(&call_id, "this call id was used before; ask under a new one".to_owned()));
        }
        if !self.table.has_room() {
            return self.queue(Answer::deny(&call_id, "too many calls wait for an answer".to_owned()));
        }
        let again = tool.is_question().then(|| format!("call:{call_id}"));
        let asked = action_of(tool).and_then(|action| {
            let digest = action.digest()?.to_hex();
            let by = By { tool: &tool.name, words: Some(&tool.description) };
            let view = self.desk.ask(&action, &by, None, again.as_deref())?;
            Ok((view, digest))
        });
        let (view, digest) = match asked {
            Ok(asked) => asked,
            // Not asked, not on the record, not allowed.
            Err(error) => return self.queue(Answer::deny(&call_id, format!("the gate did not take it: {error:#}"))),
        };
        let waiting = Waiting {
            approval_id: view.approval_id.clone(),
            msg_id,
            tool_name: tool.name.clone(),
            by: AnswerBy::Call,
            question: tool.is_question(),
            digest,
        };
        if view.status == "pending" {
            // Known before the host sees it, so that no answer comes too early.
            self.table.insert(&call_id, waiting);
            self.host.write(line);
            return self.wait(call_id, view);
        }
        let (answer, approved) = self.answer(&call_id, &waiting, None, &view, Permit::with(&view));
        if approved {
            let (msg_id, call_id) = (waiting.msg_id, call_id.clone());
            self.host.send(&Event::CallAnnounced { msg_id, call_id, tool: tool.clone() });
        } else {
            let message = format!("call `{call_id}` ({}): {}", waiting.tool_name, cancelled_reason(&view));
            self.host.send(&Event::Info { msg_id: waiting.msg_id, message });
        }
        self.queue(answer);
    }

    /// A token of the engine's for a call: of one that waits already, or of one that is asked for only in this way.
    fn required(self: &Arc<Self>, call_id: &str, token: &str, reason: &str, context: &str) {
        let refuse = |relay: &Self| {
            let resume = ApprovalResume { resume_token: token.to_owned(), approved: false, modifications: None };
            relay.queue(Answer::ApprovalResume(resume));
        };
        if !self.table.name(token, call_id) {
            return refuse(self);
        }
        if self.table.contains(call_id) {
            return;
        }
        let question = context.starts_with("AskUserQuestion");
        let action = if question {
            Ok(Action::Question { text: context.to_owned(), options: Vec::new() })
        } else {
            ActionType::new("engine_approval").map(|action_type| Action::Custom {
                action_type,
                title: reason.to_owned(),
                preview: context.to_owned(),
                options: Vec::new(),
            })
        };
        let asked = action.map_err(anyhow::Error::from).and_then(|action| {
            let digest = action.digest()?.to_hex();
            let again = format!("token:{token}");
            let by = By { tool: "AskUserQuestion", words: Some(reason) };
            Ok((self.desk.ask(&action, &by, None, Some(&again))?, digest))
        });
        let Ok((view, digest)) = asked else { return refuse(self) };
        let (approval_id, by) = (view.approval_id.clone(), AnswerBy::Token);
        let (msg_id, tool_name) = (String::new(), "AskUserQuestion".to_owned());
        let waiting = Waiting { approval_id, msg_id, tool_name, by, question, digest };
        if view.status == "pending" && self.table.has_room() {
            self.table.insert(call_id, waiting);
            return self.wait(call_id.to_owned(), view);
        }
        let (answer, _) = self.answer(call_id, &waiting, Some(token.to_owned()), &view, Permit::with(&view));
        self.queue(answer);
    }

    fn wait(self: &Arc<Self>, call_id: String, view: View) {
        let relay = Arc::clone(self);
        let settle = move |ended: anyhow::Result<View>| match ended {
            Ok(ended) => {
                let by = ended.decision.as_ref().and_then(|decision| decision.by.clone());
                if let Some(told) = relay.settle(&call_id, &ended) {
                    let by = by.map(|by| format!(" by {by}")).unwrap_or_default();
                    let message = format!("call `{call_id}` ({}): {}{by}", told.tool_name, ended.status);
                    relay.host.send(&Event::Info { msg_id: told.msg_id, message });
                }
            }
            Err(error) => {
                if relay.table.take(&call_id).is_some() {
                    relay.to_engine(
                        Answer::deny(&call_id, format!("the gate went away: {error:#}")).to_line().as_bytes(),
                    );
                }
            }
        };
        // Settling writes, so it gets a thread; waiting needs none.
        self.desk.watch(&view, move |ended| drop(thread::spawn(move || settle(ended))));
    }

    /// Tells the engine how the gate decided, unless that was done before.
    pub(super) fn settle(&self, call_id: &str, view: &View) -> Option<Waiting> {
        let waiting = self.table.take(call_id)?;
        let token = self.table.token_of(call_id);
        let (answer, _) = self.answer(call_id, &waiting, token, view, Permit::ToTake);
        self.to_engine(answer.to_line().as_bytes());
        Some(waiting)
    }

    /// What the engine is told: yes only with the permit in hand, and to nothing but what was asked.
    fn answer(
        &self,
        call_id: &str,
        waiting: &Waiting,
        token: Option<String>,
        view: &View,
        permit: Permit,
    ) -> (Answer, bool) {
        let (approved, reason) = match self.permit(waiting, view, permit) {
            Ok(()) => (true, String::new()),
            Err(reason) => (false, reason),
        };
        let answer = view.decision.as_ref().and_then(|decision| decision.answer.clone()).filter(|_| waiting.question);
        let told = match (&waiting.by, token) {
            (AnswerBy::Token, Some(resume_token)) => {
                let modifications = answer.map(|answer| json!({ "answer": answer }));
                Answer::ApprovalResume(ApprovalResume { resume_token, approved, modifications })
            }
            (AnswerBy::Call | AnswerBy::Token, _) if approved => {
                let (call_id, scope) = (call_id.to_owned(), ApprovalScope::Once);
                Answer::ToolApprove(ToolApprove { call_id, scope, answer })
            }
            (AnswerBy::Call | AnswerBy::Token, _) => Answer::deny(call_id, reason),
        };
        (told, approved)
    }

    fn permit(&self, waiting: &Waiting, view: &View, permit: Permit) -> Result<(), String> {
        if view.status != "approved" {
            return Err(cancelled_reason(view));
        }
        if let Some(instead) = view.decision.as_ref().and_then(|decision| decision.replacement.as_ref()) {
            return Err(format!("not as it was asked; instead: {instead}"));
        }
        if view.digest.as_deref() != Some(waiting.digest.as_str()) {
            return Err("the gate approved something else than this".to_owned());
        }
        if waiting.question || permit == Permit::Taken {
            return Ok(());
        }
        self.desk.take(&view.approval_id).map_err(|error| format!("the approval cannot be used: {error}"))
    }

    fn queue(&self, answer: Answer) {
        // Gone only when the relay is.
        let _ = self.answers.send(answer.to_line());
    }
}

/// What the gate is asked. A command is a command whatever else the engine says of it.
fn action_of(tool: &Tool) -> anyhow::Result<Action> {
    if let Some(command) = tool.command() {
        let (command, env) = (command.to_owned(), Default::default());
        return Ok(Action::Exec(Exec { command, argv: None, cwd: None, env, binding: None }));
    }
    if tool.is_question() {
        let text = tool.args.get("question").and_then(|text| text.as_str()).unwrap_or(&tool.description).to_owned();
        let options = tool.args.get("options").and_then(|options| options.as_array());
        let options = options.into_iter().flatten().filter_map(|option| option.as_str().map(str::to_owned)).collect();
        return Ok(Action::Question { text, options });
    }
    let category = match tool.category {
        Category::Info => "info",
        Category::Edit => "edit",
        Category::Exec => "exec",
        Category::Mcp => "mcp",
    };
    Ok(Action::Tool { name: tool.name.clone(), category: Some(category.to_owned()), args: tool.args.clone() })
}
