//! The gate as an engine or a relay sees it: ask, wait, answer for the host, take the permit, say how it went. What
//! goes wrong is never a yes.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use countersign_engine::TIMED_OUT;
use countersign_model::{Action, Mode, sha256};
use serde::Deserialize;
use serde_json::{Value, json};

use super::own_gate::OwnGate;
use crate::asking::{View, create, idempotency_key, read, wait};
use crate::client::{self, Request, encode};
use crate::locate::Caller;
use crate::when;

const SHORT: Duration = Duration::from_secs(5);
const LISTEN_SECS: u64 = 60;
/// Whoever listens for a stop learns only by asking again that there is nothing to stop any more.
const STOP_SECS: u64 = 10;
/// Of what an engine says about a call; the call itself is shown whole.
const MAX_TITLE: usize = 512;
/// Of the time to answer: the gate's own clock decides, this only bounds the waiting for a gate that is gone.
const SLACK: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub struct Desk {
    pub caller: Arc<Caller>,
    pub session: String,
    pub ttl_ms: Option<u64>,
    /// Absolute, without links; where the tools are confined to.
    pub workspace: Option<String>,
}

/// Which tool does it, and what another engine says about it in words of its own.
#[derive(Clone, Copy, Debug)]
pub struct By<'b> {
    pub tool: &'b str,
    pub words: Option<&'b str>,
}

/// How far this engine may go by itself.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Rights {
    pub host_may_decide: bool,
    pub max_mode: Mode,
}

impl Desk {
    pub fn rights(&self) -> Result<Rights, client::Error> {
        self.caller.send(Request::get("/v1/engine"))
    }

    /// Asks once. `again`: a name under which the same question is found again after a restart.
    pub fn ask(&self, action: &Action, by: &By<'_>, mode: Option<Mode>, again: Option<&str>) -> anyhow::Result<View> {
        let idempotency = again.map_or_else(idempotency_key, |name| {
            format!("engine-{}", sha256(format!("{}\n{name}", self.session).as_bytes()).to_hex())
        });
        let mut body = json!({
            "session_id": self.session,
            "idempotency_key": idempotency,
            "consume": !matches!(action, Action::Question { .. }),
            "engine": { "mode": mode, "workspace": self.workspace, "ttl_ms": self.ttl_ms, "tool": by.tool },
        });
        let fields = match action {
            Action::Exec(exec) => {
                json!({ "command": exec.command, "cwd": exec.cwd, "env": exec.env, "binding": exec.binding })
            }
            Action::Tool { name, category, args } => json!({ "tool": name, "category": category, "args": args }),
            Action::Question { text, options } => json!({ "question": text, "options": options }),
            Action::Custom { action_type, title, preview, options } => {
                json!({ "action_type": action_type, "title": title, "preview": preview, "options": options })
            }
        };
        if let (Some(body), Value::Object(fields)) = (body.as_object_mut(), fields) {
            body.extend(fields.into_iter().filter(|(_, value)| !value.is_null()));
            let words = by.words.map(|words| words.chars().take(MAX_TITLE).collect::<String>());
            body.extend(words.map(|words| ("title".to_owned(), json!(words))));
        }
        let answer = create(&self.caller, &body)?;
        Ok(read(&answer, None)?)
    }

    /// Calls `then` with how it ended. Only a gate that is gone for good is an error. At a gate elsewhere a thread waits
    /// for it, in this process nobody has to.
    pub fn watch(&self, view: &View, then: impl FnOnce(anyhow::Result<View>) + Send + 'static) {
        let (id, until) = (view.approval_id.clone(), overdue(view));
        match self.caller.own() {
            Some(own) => watch_own(Arc::clone(own), id, until, Box::new(then)),
            None => {
                let caller = Arc::clone(&self.caller);
                thread::spawn(move || then(wait(&caller, &id, until).map(|(_, view)| view)));
            }
        }
    }

    pub fn decide(&self, id: &str, body: Value) -> Result<View, client::Error> {
        let request = Request::post(format!("/v1/approvals/{}/host-decision", encode(id)), body);
        let answer: Value = self.caller.send(request)?;
        read(&answer, Some(id))
    }

    /// Takes the permit; nobody else can from then on.
    pub fn take(&self, id: &str) -> Result<(), client::Error> {
        let request = Request::post(format!("/v1/approvals/{}/consume", encode(id)), json!({}));
        let answer: Value = self.caller.send(request)?;
        read(&answer, Some(id)).map(drop)
    }

    /// Nobody needs it any more. That it had ended is no failure.
    pub fn cancel(&self, id: &str) {
        let request = Request::post(format!("/v1/approvals/{}/cancel", encode(id)), json!({}));
        let _ = self.caller.send::<Value>(request.timeout(SHORT));
    }

    /// Who wants the run under it ended, if somebody does within a minute; an error once nothing runs there.
    pub fn stop_asked(&self, id: &str) -> Result<Option<String>, client::Error> {
        let request = Request::get(format!("/v1/approvals/{}/stop?wait={STOP_SECS}", encode(id)));
        let told: Value = self.caller.send(request.timeout(Duration::from_secs(STOP_SECS) + SHORT))?;
        let by = told.get("by").and_then(Value::as_str).unwrap_or("somebody").to_owned();
        Ok((told.get("stop") == Some(&Value::Bool(true))).then_some(by))
    }

    pub fn ran(&self, id: &str, end: Value) -> Result<(), client::Error> {
        let request = Request::post(format!("/v1/approvals/{}/run", encode(id)), end);
        self.caller.send::<Value>(request.timeout(SHORT)).map(drop)
    }
}

type Then = Box<dyn FnOnce(anyhow::Result<View>) + Send>;

fn watch_own(own: Arc<OwnGate>, id: String, until: Instant, then: Then) {
    let request = Request::get(format!("/v1/approvals/{}?wait={LISTEN_SECS}", encode(&id)));
    let next = Arc::clone(&own);
    own.send_later(request.timeout(Duration::from_secs(LISTEN_SECS) + SHORT), move |answer| {
        let view = answer.and_then(|answer| read(&answer.json()?, Some(&id)));
        match view {
            Ok(view) if view.status == "pending" && Instant::now() < until => watch_own(next, id, until, then),
            view => then(view.map_err(Into::into)),
        }
    });
}

/// When even a lost gate is not waited for any longer.
pub fn overdue(view: &View) -> Instant {
    let left = view.expires_at_ms.map(|at| at.saturating_sub(when::now().saturating_mul(1000)));
    let left = left.and_then(|left| u64::try_from(left).ok()).unwrap_or(0);
    Instant::now() + Duration::from_millis(left) + SLACK
}

/// Why a call does not run, for whoever made it.
pub fn cancelled_reason(view: &View) -> String {
    let decision = view.decision.as_ref();
    let note = decision.and_then(|decision| decision.note.clone()).filter(|note| !note.is_empty());
    let by = decision.and_then(|decision| decision.by.as_deref()).unwrap_or("a person");
    match (view.status.as_str(), view.reason.as_deref()) {
        ("denied", Some("person")) => note.unwrap_or_else(|| format!("denied by {by}")),
        ("expired", _) => TIMED_OUT.to_owned(),
        ("denied", Some("no_channel")) => "nobody could be reached; silence is not consent".to_owned(),
        ("denied", Some(reason)) => format!("denied by policy ({reason}); do not try another way"),
        ("cancelled", _) => "cancelled".to_owned(),
        (status, _) => format!("not approved ({status})"),
    }
}

/// An error of the gate's as the protocol says it: the code, what to tell, and whether trying again may help.
pub fn gate_error(error: &client::Error) -> (&'static str, String, bool) {
    let code = match error.refused().map(|refused| refused.code.as_str()) {
        Some("host_may_not_decide" | "not_an_approver" | "forbidden") => "forbidden",
        Some("already_decided" | "expired" | "not_found") => "not_found",
        Some("grant_refused") => "grant_refused",
        Some("invalid_answer" | "invalid_field") => "invalid_answer",
        Some(_) | None => "gate_error",
    };
    (code, error.to_string(), error.may_pass())
}
