//! From the host to the engine. Nothing passes that could decide unless the gate lets the host decide: answers are made
//! anew from what the gate says, and a line that could be read in two ways is no line.

use std::fs::File;
use std::os::fd::AsFd as _;
use std::sync::Arc;

use countersign_engine::{ApprovalScope, Command, Head, MAX_LINE};
use countersign_model::Mode;
use serde_json::{Value, json};

use super::Relay;
use super::pipe::{self, Direction};
use crate::engine::gate_error;

pub fn run(relay: &Arc<Relay>) {
    let direction = &mut Downward { relay };
    // Past the library's own small buffer, where that can be had.
    match std::io::stdin().as_fd().try_clone_to_owned() {
        Ok(stdin) => pipe::run(File::from(stdin), direction),
        Err(_) => pipe::run(std::io::stdin(), direction),
    }
}

struct Downward<'r> {
    relay: &'r Arc<Relay>,
}

impl Direction for Downward<'_> {
    /// Every line is looked at but blank ones.
    fn concerns(&self, piece: &[u8]) -> bool {
        !piece.iter().all(u8::is_ascii_whitespace)
    }

    fn line(&mut self, line: &[u8]) {
        let Ok(text) = std::str::from_utf8(line) else {
            return self.relay.host.error("engine_error", "the line is not UTF-8 and was not passed on", false);
        };
        if text.len() > MAX_LINE + 1 {
            self.too_long(line);
            return;
        }
        let kind = match Head::parse(text) {
            Ok(head) => head.kind,
            Err(_) => return self.refused(text),
        };
        match kind.as_str() {
            "tool_approve" | "tool_deny" | "approval_resume" | "set_mode" => match Command::parse(text) {
                Ok(command) => self.decisive(command, line),
                Err(message) => self.relay.host.error("engine_error", message, false),
            },
            // These decide or widen too, in ways of the engine's own.
            "continue_with_budget" | "grant_path" => self.if_host_decides(&kind, line),
            _ if kind.starts_with("resolve_") => self.if_host_decides(&kind, line),
            _ => self.pass(line),
        }
    }

    fn pass(&mut self, bytes: &[u8]) {
        self.relay.to_engine(bytes);
    }

    fn is_over(&self) -> bool {
        self.relay.engine.lock().is_none()
    }

    fn idle(&self, waiting: bool) {
        self.relay.down.note(waiting);
    }

    fn too_long(&mut self, start: &[u8]) -> bool {
        let start = String::from_utf8_lossy(start.get(..40).unwrap_or(start)).into_owned();
        let message = format!("a line longer than {MAX_LINE} bytes was not passed on; it starts with `{start}`");
        self.relay.host.error("engine_error", message, false);
        false
    }
}

impl Downward<'_> {
    fn refused(&self, text: &str) {
        // The same words that an engine of ours has for it.
        let message = Command::parse(text).err().unwrap_or_else(|| "the line was not passed on".to_owned());
        self.relay.host.error("engine_error", message, false);
    }

    fn decisive(&mut self, command: Command, line: &[u8]) {
        match command {
            Command::ToolApprove(approve) => {
                let (decision, prefix) = match approve.scope {
                    ApprovalScope::Once => ("allow-once", None),
                    ApprovalScope::Always => ("allow-session", None),
                    ApprovalScope::AlwaysPrefix { prefix } => ("allow-session", Some(prefix)),
                };
                self.decide(&approve.call_id, decision, None, approve.answer, prefix);
            }
            Command::ToolDeny(deny) => self.decide(&deny.call_id, "deny", Some(deny.reason), None, None),
            Command::ApprovalResume(resume) => match self.relay.table.call_of(&resume.resume_token) {
                Some(call_id) => {
                    let decision = if resume.approved { "allow-once" } else { "deny" };
                    let answer = resume.modifications.as_ref().and_then(|changes| changes.get("answer"));
                    let answer = answer.and_then(Value::as_str).map(str::to_owned);
                    self.decide(&call_id, decision, None, answer, None);
                }
                None => self.relay.host.error("not_found", "nothing waits under this resume token", false),
            },
            Command::SetMode(to) => {
                let max = self.relay.desk.rights().map(|rights| rights.max_mode);
                let may = self.relay.settings.wire_modes && max.is_ok_and(|max| to.mode <= max);
                if to.mode == Mode::Default || may {
                    self.pass(line);
                } else {
                    let message = "the engine's mode cannot be moved there from here; start the relay with \
                                   `--allow-wire-modes`, and at a gate its policy's `maxMode` must allow it";
                    self.relay.host.error("forbidden", message, false);
                }
            }
            Command::ToolCall(_) | Command::Stop | Command::Ping | Command::Foreign(_) => self.pass(line),
        }
    }

    fn decide(
        &self,
        call_id: &str,
        decision: &str,
        note: Option<String>,
        answer: Option<String>,
        prefix: Option<String>,
    ) {
        let Some(waiting) = self.relay.table.get(call_id) else {
            let message = format!("no call `{call_id}` is pending; it was never asked, or it has its answer");
            return self.relay.host.error("not_found", message, false);
        };
        let mut body = json!({ "decision": decision });
        let texts = [
            ("note", note.filter(|note| !note.is_empty())),
            ("answer", answer.filter(|_| waiting.question)),
            ("prefix", prefix),
        ];
        if let Some(fields) = body.as_object_mut() {
            fields.extend(texts.into_iter().filter_map(|(name, text)| Some((name.to_owned(), json!(text?)))));
        }
        match self.relay.desk.decide(&waiting.approval_id, body) {
            Ok(view) => drop(self.relay.settle(call_id, &view)),
            Err(error) => {
                let (code, message, retryable) = gate_error(&error);
                self.relay.host.error(code, message, retryable);
            }
        }
    }

    fn if_host_decides(&mut self, kind: &str, line: &[u8]) {
        if self.relay.desk.rights().is_ok_and(|rights| rights.host_may_decide) {
            return self.pass(line);
        }
        let message = format!("`{kind}` decides, and policy does not let this host decide");
        self.relay.host.error("forbidden", message, false);
    }
}
