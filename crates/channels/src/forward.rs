//! Forwarding: what is asked here is asked of the people at another gate too, and whoever answers first has answered.
//!
//! Nothing waits for the other gate. While it cannot be reached, the ways to people here go on; when it is back, what
//! is still open is asked there, what was answered meanwhile is withdrawn, and what it had answered is taken.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use countersign_gate::{BoxFuture, ForwardHandle, Gate, GateError, StoreError};
use countersign_model::{Answer, Approval, ApprovalId, ChannelChoice, Choice, EventKind, KeySecret, Reason, Status};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::task::{AbortHandle, JoinSet};

use crate::link::{Link, LinkError, Stream};

const FIRST_RETRY: Duration = Duration::from_millis(500);
const LAST_RETRY: Duration = Duration::from_secs(30);
const WAY: &str = "forwardedBy";
const PENDING_PAGE: usize = 500;

/// Makes a new connection to the other gate.
pub type Dial = Arc<dyn Fn() -> BoxFuture<'static, std::io::Result<Box<dyn Stream>>> + Send + Sync>;

/// The gate that is forwarded to.
#[derive(Clone)]
pub struct Upstream {
    /// What its people are called here: `bob@name`.
    pub name: String,
    /// `ws://host/gateway`, for the request itself; the bytes go where `dial` says.
    pub url: String,
    /// An agent's key there.
    pub key: KeySecret,
    pub dial: Dial,
}

impl std::fmt::Debug for Upstream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Upstream").field("name", &self.name).field("url", &self.url).finish_non_exhaustive()
    }
}

#[derive(Debug)]
pub struct Forward {
    handle: ForwardHandle,
    upstream: Upstream,
    /// This gate's own sign in the way of a request.
    identity: String,
}

/// How it ended there.
#[derive(Debug, Deserialize)]
struct Outcome {
    status: Status,
    reason: Option<Reason>,
    by: Option<String>,
    note: Option<String>,
    #[serde(rename = "override")]
    replacement: Option<String>,
    answer: Option<String>,
}

/// What became of asking there.
type Asked = (ApprovalId, Result<Value, LinkError>);

impl Forward {
    pub async fn new(gate: &Gate, upstream: Upstream) -> Result<Self, GateError> {
        let identity = gate.identity().await?.map(|hash| hash.to_hex()).unwrap_or_default();
        Ok(Self { handle: gate.forwarder(&upstream.name), upstream, identity })
    }

    /// For as long as the gate runs.
    pub async fn run(self) {
        let mut wait = FIRST_RETRY;
        loop {
            match self.connect_and_follow(&mut wait).await {
                Ok(()) => return,
                Err(error) => {
                    let seconds = wait.as_secs_f32();
                    tracing::warn!(upstream = self.upstream.name, %error, seconds, "not forwarding now; trying again");
                }
            }
            tokio::time::sleep(wait.mul_f64(jitter())).await;
            wait = (wait * 2).min(LAST_RETRY);
        }
    }

    async fn connect_and_follow(&self, wait: &mut Duration) -> Result<(), LinkError> {
        let stream = (self.upstream.dial)().await.map_err(|error| LinkError::Connection(error.to_string()))?;
        let connect = json!({
            "minProtocol": 4, "maxProtocol": 4, "role": "operator", "scopes": [], "caps": [],
            "client": {
                "id": "countersign", "displayName": "countersign", "version": env!("CARGO_PKG_VERSION"),
                "platform": std::env::consts::OS, "mode": "backend",
            },
            "auth": { "token": self.upstream.key.reveal() },
        });
        let (link, _events) = Link::open(stream, &self.upstream.url, connect).await?;
        tracing::info!(upstream = self.upstream.name, "forwarding");
        *wait = FIRST_RETRY;
        match self.follow(&link).await {
            Ok(()) => Ok(()),
            Err(Stopped::Link(error)) => Err(error),
            Err(Stopped::Store(StoreError::Closed)) => Ok(()),
            Err(Stopped::Store(error)) => Err(LinkError::Connection(error.to_string())),
        }
    }

    /// From where it had got to: first what is open, then what happens.
    async fn follow(&self, link: &Link) -> Result<(), Stopped> {
        let mut there = There { forward: self, link, open: HashMap::new(), asked: JoinSet::new() };
        let mut feed = self.handle.feed().await?;
        let head = self.handle.head();
        there.ask_all_pending().await?;
        loop {
            tokio::select! {
                events = feed.next() => {
                    let events = events?;
                    for committed in &events {
                        let Some(id) = committed.event.body.approval_id() else { continue };
                        match committed.event.body.kind() {
                            EventKind::Requested => there.ask(id).await?,
                            // From before this connection: it may have been asked on an earlier one.
                            EventKind::Resolved if committed.event.seq <= head || there.open.contains_key(&id) => {
                                there.withdraw(id).await?;
                            }
                            _ => {}
                        }
                    }
                    if let Some(last) = events.last() {
                        self.handle.seen(last.event.seq).await?;
                    }
                }
                Some(asked) = there.asked.join_next(), if !there.asked.is_empty() => {
                    if let Ok((id, result)) = asked {
                        there.take(id, result).await?;
                    }
                }
                () = link.closed() => return Err(Stopped::Link(LinkError::Closed)),
            }
        }
    }
}

#[derive(Debug)]
enum Stopped {
    Link(LinkError),
    Store(StoreError),
}

impl From<StoreError> for Stopped {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// What is asked on one connection.
struct There<'f> {
    forward: &'f Forward,
    link: &'f Link,
    open: HashMap<ApprovalId, AbortHandle>,
    asked: JoinSet<Asked>,
}

impl There<'_> {
    async fn ask_all_pending(&mut self) -> Result<(), Stopped> {
        let mut before = None;
        loop {
            let page = self.forward.handle.pending(before, PENDING_PAGE).await?;
            for (_, summary) in &page {
                // Read whole: what is forwarded is the action itself, not what a list shows of it.
                self.ask(summary.id).await?;
            }
            before = page.last().map(|(position, _)| *position);
            if page.len() < PENDING_PAGE {
                return Ok(());
            }
        }
    }

    async fn ask(&mut self, id: ApprovalId) -> Result<(), Stopped> {
        if let Some(approval) = self.forward.handle.get(id).await? {
            self.ask_about(&approval);
        }
        Ok(())
    }

    /// One that names a way to people goes that way, and not this one.
    fn ask_about(&mut self, approval: &Approval) {
        let is_ours = approval.status() == Status::Pending && approval.request.channel == ChannelChoice::Any;
        if !is_ours || self.open.contains_key(&approval.id) {
            return;
        }
        let (id, link, params) = (approval.id, self.link.clone(), self.params(approval));
        let task = self.asked.spawn(async move { (id, link.call_to_the_end("forward.request", params).await) });
        self.open.insert(id, task);
    }

    fn params(&self, approval: &Approval) -> Value {
        let request = &approval.request;
        let way = request.words.labels.get(WAY).map(String::as_str).unwrap_or_default();
        let path: Vec<&str> = way.split_whitespace().chain([self.forward.identity.as_str()]).collect();
        let mut words = request.words.clone();
        words.labels.remove(WAY);
        words.labels.insert("client".to_owned(), request.requester.name.clone());
        json!({
            "id": format!("fwd_{}", approval.id),
            "action": request.action,
            "actionType": request.action_type,
            "sessionId": request.session_id,
            "words": words,
            "expiresInMs": self.forward.handle.now().millis_until(approval.terms.expires_at),
            "path": path,
        })
    }

    /// It was answered here, or is over: nobody there should be bothered with it.
    async fn withdraw(&mut self, id: ApprovalId) -> Result<(), Stopped> {
        if let Some(task) = self.open.remove(&id) {
            task.abort();
        }
        match self.link.call("forward.withdraw", json!({ "id": format!("fwd_{id}") })).await {
            Ok(_) => Ok(()),
            Err(LinkError::Refused(error)) => {
                tracing::debug!(%error, %id, "it could not be withdrawn there");
                Ok(())
            }
            Err(other) => Err(Stopped::Link(other)),
        }
    }

    async fn take(&mut self, id: ApprovalId, result: Result<Value, LinkError>) -> Result<(), Stopped> {
        self.open.remove(&id);
        let answered = read(id, result).map_err(Stopped::Link)?;
        let Some((answer, by)) = answered.and_then(Outcome::into_answer) else { return Ok(()) };
        match self.forward.handle.decide(id, answer, &by).await {
            Ok(()) => {}
            Err(GateError::Store(error)) => return Err(error.into()),
            Err(error) => tracing::warn!(%error, %id, "the other gate's answer was not taken"),
        }
        Ok(())
    }
}

/// How it ended there, or nothing where the other gate does not take it: then it is asked here alone.
fn read(id: ApprovalId, result: Result<Value, LinkError>) -> Result<Option<Outcome>, LinkError> {
    match result.map(serde_json::from_value::<Outcome>) {
        Ok(Ok(outcome)) => return Ok(Some(outcome)),
        Ok(Err(error)) => tracing::warn!(%error, %id, "the other gate's answer cannot be read"),
        Err(LinkError::Refused(error)) if error.reason() == "FORWARD_LOOP" => {
            tracing::warn!(%id, "it came from the gate it would go to; it is asked here alone");
        }
        Err(LinkError::Refused(error)) => {
            tracing::warn!(%error, %id, "the other gate does not take it; it is asked here alone");
        }
        Err(other) => return Err(other),
    }
    Ok(None)
}

impl Outcome {
    /// What a person or policy there said. That nobody there answered says nothing here.
    fn into_answer(self) -> Option<(Answer, String)> {
        let by = self.by.unwrap_or_else(|| "policy".to_owned());
        match (self.status, self.reason?) {
            (Status::Approved, Reason::Person) => {
                let (note, replacement, answer) = (self.note, self.replacement, self.answer);
                Some((Answer { note, replacement, answer, ..Answer::plain(Choice::AllowOnce) }, by))
            }
            (Status::Denied, Reason::Person) => Some((Answer { note: self.note, ..Answer::plain(Choice::Deny) }, by)),
            (Status::Denied, Reason::Rule | Reason::Security | Reason::NotAllowlisted) => {
                Some((Answer::plain(Choice::Deny), by))
            }
            _ => None,
        }
    }
}

/// So that gates which lost the same one do not all come back at once.
fn jitter() -> f64 {
    let mut byte = [0u8; 1];
    // Without random bytes they do.
    let _ = getrandom::fill(&mut byte);
    0.5 + f64::from(byte.first().copied().unwrap_or(128)) / 256.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer_to(status: &str, reason: &str) -> Option<Choice> {
        let outcome = json!({ "status": status, "reason": reason, "by": "bob", "note": "n" });
        let outcome: Outcome = serde_json::from_value(outcome).unwrap();
        outcome.into_answer().map(|(answer, _)| answer.choice)
    }

    #[test]
    fn only_what_people_or_rules_there_say_counts_here() {
        assert_eq!(answer_to("approved", "person"), Some(Choice::AllowOnce));
        assert_eq!(answer_to("denied", "person"), Some(Choice::Deny));
        assert_eq!(answer_to("denied", "rule"), Some(Choice::Deny));
        for (status, reason) in [
            ("approved", "policy"),
            ("approved", "fallback"),
            ("denied", "no_channel"),
            ("denied", "flooding"),
            ("denied", "agent_closed"),
            ("expired", "expired"),
            ("cancelled", "cancelled"),
        ] {
            assert_eq!(answer_to(status, reason), None, "{status} {reason}");
        }
    }
}
