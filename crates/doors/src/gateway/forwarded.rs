//! Requests that another gate forwards: whole actions of any kind, asked of the people here whatever policy would
//! allow, and answered with everything they said.

use std::collections::BTreeMap;
use std::sync::Arc;

use countersign_gate::{AgentHandle, GateError, NewRequest, Refused, Take, Told};
use countersign_model::{
    Action, ActionType, AgentWords, Approval, Ask, ChannelChoice, Digest, Exec, Status, Target, TermsAsked,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::connection::Session;
use super::frame::{self, Failure};
use super::{requests, views};
use crate::words::{WordsError, exec_of_words, told_reason};

/// Gates that a request may have come through.
const MAX_PATH: usize = 8;
/// Under which label the way of a request is kept.
const WAY: &str = "forwardedBy";

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ForwardParams {
    /// Its id at the gate it comes from, under which it can be asked for again.
    id: String,
    action: Action,
    action_type: ActionType,
    session_id: String,
    #[serde(default)]
    words: AgentWords,
    expires_in_ms: u64,
    /// The gates it came through, the first one first.
    path: Vec<String>,
}

pub(super) async fn request(session: &Session, id: &str, params: ForwardParams) -> Result<Value, Failure> {
    let here = session.gateway.gate.identity().await?.map(|hash| hash.to_hex());
    let seen_before = here.is_some_and(|here| params.path.contains(&here));
    if seen_before || params.path.len() > MAX_PATH {
        let message = "this request came from here or through too many gates; look at the `[forward]` sections";
        return Err(Failure::invalid(message).because("FORWARD_LOOP"));
    }
    check_words(&params.action)?;
    let asker = session.asker()?;
    let approval = match known(&asker, &params).await? {
        Some(approval) => approval,
        None => asker.request(params.into_request()).await?.0,
    };
    if approval.status() == Status::Pending {
        let accepted = views::accepted(&session.shown_ids(&approval).await, &approval);
        session.outbox.answer(frame::answer(id, &Ok(accepted))).await;
    }
    let told = asker.tell(requests::ended(session, &asker, approval).await?).await?;
    Ok(outcome(&told))
}

/// A command by its words is shown by those very words, whatever text came with them.
fn check_words(action: &Action) -> Result<(), Failure> {
    let Action::Exec(Exec { command, argv: Some(argv), .. }) = action else { return Ok(()) };
    let exec = exec_of_words(argv.clone(), Some(command), None, BTreeMap::new());
    match exec.map_err(|error| Failure::invalid(error.to_string()))? {
        exec if exec.command == *command => Ok(()),
        _ => Err(Failure::invalid(WordsError::Differ.to_string())),
    }
}

/// Asked before, by a gate that lost its connection or was started again.
async fn known(asker: &AgentHandle, params: &ForwardParams) -> Result<Option<Arc<Approval>>, Failure> {
    match asker.find(&params.id).await {
        Ok(approval) if Some(approval.request.digest) == digest_of(&params.action) => Ok(Some(approval)),
        Ok(_) => Err(Failure::invalid("another request goes by this id")),
        Err(GateError::Refused(Refused::NotFound)) => Ok(None),
        Err(other) => Err(other.into()),
    }
}

fn digest_of(action: &Action) -> Option<Digest> {
    action.digest().ok()
}

impl ForwardParams {
    fn into_request(self) -> NewRequest {
        let mut words = self.words;
        words.labels.insert(WAY.to_owned(), self.path.join(" "));
        NewRequest {
            session_id: self.session_id,
            context_id: None,
            alias: Some(self.id),
            action: self.action,
            action_type: self.action_type,
            words,
            channel: ChannelChoice::Any,
            target: Target::default(),
            // It was policy of the other gate that wanted a person; policy here can only forbid.
            terms: TermsAsked { security: None, ask: Some(Ask::Always) },
            expires_in_ms: Some(self.expires_in_ms.max(1)),
            default_ms: self.expires_in_ms.max(1),
            idempotency: None,
            terminal: None,
            take: Take::Tell,
            engine: None,
        }
    }
}

/// Everything that was answered, by whom.
fn outcome(told: &Told) -> Value {
    let approval = &told.approval;
    let usable = approval.outcome.as_ref().filter(|_| told.unusable.is_none());
    let decision = usable.and_then(|outcome| outcome.decision.as_ref());
    json!({
        "id": approval.request.alias,
        "approvalId": approval.id,
        "status": if told.unusable.is_some() { Status::Denied } else { approval.status() },
        "reason": told_reason(told),
        "by": decision.map(|decision| &decision.by),
        "note": decision.and_then(|decision| decision.note.as_ref()),
        "override": decision.and_then(|decision| decision.replacement.as_ref()),
        "answer": decision.and_then(|decision| decision.answer.as_ref()),
    })
}

#[derive(Debug, Deserialize)]
pub(super) struct WithdrawParams {
    id: String,
}

/// It was answered where it came from.
pub(super) async fn withdraw(session: &Session, params: WithdrawParams) -> Result<Value, Failure> {
    let asker = session.asker()?;
    let withdrawn = match asker.find(&params.id).await {
        Ok(approval) => asker.cancel(approval.id).await,
        Err(error) => Err(error),
    };
    match withdrawn {
        Ok(_) => Ok(json!({ "withdrawn": true })),
        Err(GateError::Refused(Refused::NotFound | Refused::Finished(_))) => Ok(json!({ "withdrawn": false })),
        Err(other) => Err(other.into()),
    }
}
