//! Puts a question to the gate and waits for its answer, for `ask` and `run`. Whatever goes wrong, it is not a yes.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use countersign_model::{ApprovalId, escape_line};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::client::{self, Request, encode};
use crate::exit::Usage;
use crate::locate::Caller;
use crate::record::Decision;
use crate::session::Session;
use crate::{interrupt, output, when};

/// How long the gate may hold one request for the state.
const WAIT_SECS: u64 = 60;
/// Beyond what the gate holds, for the way there and back.
const SLACK: Duration = Duration::from_secs(15);
/// How long to believe that a gate which took the question and broke off will be back, before it has answered.
const CREATE_PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(250);
pub const MAX_TIMEOUT_SECS: u64 = 86_400;

/// What the agent is told.
#[derive(Clone, Debug, Deserialize)]
pub struct View {
    pub approval_id: String,
    pub status: String,
    #[serde(default)]
    pub reason: Option<String>,
    #[serde(default)]
    pub expires_at: Option<i64>,
    #[serde(default)]
    pub expires_at_ms: Option<i64>,
    #[serde(default)]
    pub decision: Option<Decision>,
    /// Of what may be done.
    #[serde(default)]
    pub digest: Option<String>,
    /// The permit is taken.
    #[serde(default)]
    pub consumed_at: Option<i64>,
    #[serde(default)]
    pub terminal: Option<Terminal>,
}

/// What the workspace's file comes to.
#[derive(Clone, Debug, Deserialize)]
pub struct Terminal {
    pub command_timeout_sec: u64,
    #[serde(default)]
    pub problems: Vec<Problem>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Problem {
    pub line: usize,
    pub message: String,
}

/// One name for this question, so that putting it again after a broken connection is still one question.
pub fn idempotency_key() -> String {
    format!("ask-{}-{:016x}", std::process::id(), RandomState::new().hash_one(when::now()))
}

pub fn working_directory(given: Option<&str>) -> anyhow::Result<String> {
    let here =
        std::path::absolute(given.unwrap_or(".")).context("the current directory cannot be named; give `--cwd DIR`")?;
    let here = if given.is_none() { std::env::current_dir().unwrap_or(here) } else { here };
    let text = here
        .to_str()
        .ok_or_else(|| Usage("the working directory is not valid text; give another with `--cwd`".into()))?;
    Ok(text.to_owned())
}

/// Puts the question. A gate that is not there at all is told at once; one that broke off is tried again.
pub fn create(caller: &Caller, body: &Value) -> anyhow::Result<Value> {
    let started = Instant::now();
    let mut reached = false;
    let mut tries = 0;
    loop {
        let error = match caller.send(Request::post("/v1/approvals", body.clone())) {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        reached |= !matches!(error, client::Error::Unreachable { .. });
        tries += 1;
        // A gate that let the first try run out of time is asked once more: by its name it is still one question.
        let over = started.elapsed() > CREATE_PATIENCE && tries > 1;
        if !reached || !error.may_pass() || over {
            return Err(error.into());
        }
        pause(&error);
    }
}

pub fn wait(caller: &Caller, id: &str, until: Instant) -> anyhow::Result<(Value, View)> {
    let mut told = false;
    loop {
        let request = Request::get(format!("/v1/approvals/{}?wait={WAIT_SECS}", encode(id)));
        match caller.send::<Value>(request.timeout(Duration::from_secs(WAIT_SECS) + SLACK)) {
            Ok(answer) => {
                let view = read(&answer, Some(id))?;
                if view.status != "pending" {
                    return Ok((answer, view));
                }
                told = false;
            }
            Err(error) if error.may_pass() && Instant::now() < until => {
                if !told {
                    output::note("the gate does not answer; still waiting for it to come back");
                    told = true;
                }
                pause(&error);
            }
            Err(error) => return Err(error.into()),
        }
    }
}

fn pause(error: &client::Error) {
    let asked = error.refused().and_then(|refused| refused.retry_after).map(Duration::from_secs);
    thread::sleep(asked.unwrap_or(PAUSE).min(SLACK));
}

/// Until when a gate that went away is waited for: as long as the question would be open.
pub fn deadline(timeout: Option<u64>, view: &View) -> anyhow::Result<Instant> {
    let expires_at = view.expires_at.ok_or_else(|| malformed("a pending answer without `expires_at`"))?;
    let left = u64::try_from(expires_at - when::now()).unwrap_or(0);
    // The asked-for time counts too: this machine's clock may be wrong.
    let secs = left.max(timeout.unwrap_or(0)).clamp(1, MAX_TIMEOUT_SECS);
    Ok(Instant::now() + Duration::from_secs(secs))
}

pub fn cancel_on_signal(caller: &Arc<Caller>, id: &str, session: Session) -> anyhow::Result<Arc<AtomicBool>> {
    let (caller, id) = (Arc::clone(caller), id.to_owned());
    let interrupted = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&interrupted);
    interrupt::on_signal(move |code| {
        flag.store(true, Ordering::SeqCst);
        let request = Request::post(format!("/v1/approvals/{}/cancel", encode(&id)), json!({}));
        match caller.send::<Value>(request.timeout(Duration::from_secs(2))) {
            Ok(_) => output::note("cancelled; nothing was allowed"),
            Err(error) => output::note(&format!("not cancelled: {error}")),
        }
        session.on_signal(code, &caller);
        std::process::exit(i32::from(code));
    })?;
    Ok(interrupted)
}

pub fn malformed(why: &str) -> client::Error {
    client::Error::Malformed(format!("the gate's answer is not as documented: {why}"))
}

/// Takes an answer only if its parts agree with each other and with what was asked.
pub fn read(answer: &Value, id: Option<&str>) -> Result<View, client::Error> {
    let view = View::deserialize(answer).map_err(|error| malformed(&error.to_string()))?;
    match id {
        Some(id) if id != view.approval_id => return Err(malformed("it is about another request")),
        None if view.approval_id.parse::<ApprovalId>().is_err() => return Err(malformed("it names no request")),
        Some(_) | None => {}
    }
    if view.status == "approved" {
        let decision = view.decision.as_ref().ok_or_else(|| malformed("approved without a decision"))?;
        match (decision.code.as_str(), &decision.replacement) {
            ("1" | "2" | "4" | "6", None) | ("5", Some(_)) => {}
            _ => return Err(malformed("approved by a decision that is no plain yes")),
        }
    }
    Ok(view)
}

/// The answer in words that leave an agent no wrong conclusion. `changed_words`: what becomes of it
/// where a person changed it.
pub fn verdict(view: &View, changed_words: &str) -> String {
    let by = view.decision.as_ref().and_then(|decision| decision.by.as_deref()).map(escape_line);
    let by = by.map(|by| format!(" by {by}")).unwrap_or_default();
    let changed = view.decision.as_ref().is_some_and(|decision| decision.replacement.is_some());
    match (view.status.as_str(), view.reason.as_deref()) {
        ("approved", _) if changed => format!("allowed{by}, changed: {changed_words}"),
        ("approved", _) => format!("allowed{by}"),
        ("denied", Some("no_channel")) => {
            "no answer came: nobody could be reached. Silence is not consent: do not do it, and do not try another way"
                .to_owned()
        }
        ("expired", _) => {
            "no answer came in time. Silence is not consent: do not do it, and do not try another way".to_owned()
        }
        ("denied", reason) => {
            let why = reason.filter(|reason| *reason != "person").map(|why| format!(" ({})", escape_line(why)));
            format!("not allowed{by}{}: do not do it, and do not try another way", why.unwrap_or_default())
        }
        ("cancelled", _) => "cancelled before an answer came: not allowed".to_owned(),
        (status, _) => format!("not allowed: the gate says `{}`, which means nothing here", escape_line(status)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(answer: Value) -> Result<View, client::Error> {
        read(&answer, Some("appr_1"))
    }

    #[test]
    fn threat_76_only_a_sound_yes_is_a_yes() {
        let approved = |decision: Value| json!({"approval_id": "appr_1", "status": "approved", "decision": decision});
        for good in [
            json!({"code": "1"}),
            json!({"code": "6", "note": null, "override": null}),
            json!({"code": "5", "override": "x"}),
        ] {
            assert!(view(approved(good.clone())).is_ok(), "{good}");
        }
        for bad in [
            Value::Null,
            json!({"code": "3"}),
            json!({"code": "5"}),
            json!({"code": "5", "override": null}),
            json!({"code": "1", "override": "x"}),
            json!({"code": "7"}),
            json!({"code": 1}),
            json!("1"),
        ] {
            assert!(view(approved(bad.clone())).is_err(), "{bad}");
        }
        for bad in [
            json!({"status": "approved", "decision": {"code": "1"}}),
            json!({"approval_id": "appr_2", "status": "approved", "decision": {"code": "1"}}),
            json!({"approval_id": "appr_1"}),
            json!([]),
        ] {
            assert!(view(bad.clone()).is_err(), "{bad}");
        }
    }

    #[test]
    fn threat_78_silence_is_told_apart_from_a_no() {
        let words = |status: &str, reason: &str| {
            verdict(&view(json!({"approval_id": "appr_1", "status": status, "reason": reason})).unwrap(), "")
        };
        for silence in [words("expired", "expired"), words("denied", "no_channel")] {
            for part in ["no answer came", "Silence is not consent", "do not try another way"] {
                assert!(silence.contains(part), "{silence}");
            }
        }
        assert!(words("denied", "person").starts_with("not allowed: do not do it"));
        assert!(words("denied", "rule").contains("(rule)"));
        assert!(words("weird\u{1b}", "").starts_with("not allowed") && !words("weird\u{1b}", "").contains('\u{1b}'));
    }
}
