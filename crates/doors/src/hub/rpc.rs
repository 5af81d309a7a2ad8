//! What a device may ask of the hub: each method turned into the gate's words and back.

use std::sync::Arc;

use countersign_gate::{AgentHandle, ApproverHandle, GateError, ListFilter, NewRequest, Take, Told};
use countersign_model::{
    Action, ActionType, AgentWords, Answer, Approval, ApprovalId, Ask, ChannelChoice, Door, Exec, Security, Status,
    Target, TermsAsked,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::card::{Card, is_for};
use super::devices::Who;
use super::session::{Session, respond};
use super::wire::{RpcError, RpcRequest};
use crate::words::{DENY, choice_of, told_reason, told_word};

/// What the hub's document says of a question that nobody gave a time.
const DEFAULT_TIMEOUT_MS: u64 = 60_000;
const PAGE: usize = 200;

type Outcome = Result<Value, RpcError>;

/// The answer, or nothing where it comes later.
pub(super) async fn call(session: &Session, request: &RpcRequest) -> Option<Outcome> {
    let params = match &request.params {
        Value::Null => Map::new(),
        Value::Object(fields) => fields.clone(),
        _ => return Some(Err(RpcError::invalid("params is an object"))),
    };
    let who = session.device.who();
    Some(match (request.method.as_str(), who) {
        ("verify", who) => verify(session, who, &params).await,
        ("getHubInfo", Who::Approver(_) | Who::Agent(_)) => Ok(hub_info(session)),
        ("listAgents", Who::Approver(_)) => Ok(agents(session)),
        ("resolveExecApproval", Who::Approver(approver)) => resolve(&approver, &params).await,
        ("listExecApprovals", Who::Approver(approver)) => list(&approver, params).await,
        ("closeAgent", Who::Agent(agent)) => close_agent(session, &agent, params).await,
        ("requestExecApproval", Who::Agent(agent)) => match ask(session, &agent, params).await {
            Ok(approval) if approval.status() == Status::Pending => {
                answer_later(session, agent, approval.id, request.request_id.clone());
                return None;
            }
            Ok(approval) => taken(&agent, approval).await,
            Err(error) => Err(error),
        },
        ("getHubInfo" | "listAgents" | "resolveExecApproval" | "listExecApprovals", Who::Unverified) => {
            Err(RpcError::unauthorized("verify this device first, with the code that `countersign pair` shows"))
        }
        ("listAgents" | "resolveExecApproval" | "listExecApprovals", Who::Agent(_)) => {
            Err(RpcError::unauthorized("only a device verified as an approver may do this"))
        }
        ("closeAgent" | "requestExecApproval", Who::Unverified | Who::Approver(_)) => {
            Err(RpcError::unauthorized("only a device of type agent may do this"))
        }
        (unknown, _) => Err(RpcError::method_not_found(&unknown.chars().take(64).collect::<String>())),
    })
}

/// With a one-time code the device becomes an approver; without one it must be known already.
async fn verify(session: &Session, who: Who, params: &Map<String, Value>) -> Outcome {
    // The reference names the agent behind its hub; this one stands before all of them.
    let done = json!({"hubId": &*session.hub_id, "agentId": &*session.hub_id});
    match who {
        Who::Approver(_) => return Ok(done),
        Who::Agent(_) => return Err(RpcError::unauthorized("a device of type agent is never an approver")),
        Who::Unverified => {}
    }
    let Some(token) = params.get("token").and_then(Value::as_str) else {
        return Err(RpcError::unauthorized("send the code that `countersign pair` shows as `token`"));
    };
    match session.hub.0.gate.pair_device(token, &session.device.id, Door::Hub).await {
        Ok(approver) => {
            session.device.verified(approver);
            Ok(done)
        }
        Err(GateError::Unauthenticated) => {
            session.device.guessed();
            Err(RpcError::unauthorized("the code is unknown, used or over; make a new one with `countersign pair`"))
        }
        Err(error) => Err(error.into()),
    }
}

fn hub_info(session: &Session) -> Value {
    json!({
        "hubId": &*session.hub_id,
        "name": "countersign",
        "version": env!("CARGO_PKG_VERSION"),
        "connectionState": "connected",
        "agentCount": connected_agents(session).len(),
    })
}

fn agents(session: &Session) -> Value {
    json!({"agents": connected_agents(session)})
}

fn connected_agents(session: &Session) -> Vec<Value> {
    let devices = session.hub.0.devices.all();
    let agents = devices.iter().filter_map(|device| match device.who() {
        Who::Agent(agent) => Some(json!({"id": device.address, "name": agent.name(), "closed": false})),
        Who::Approver(_) | Who::Unverified => None,
    });
    agents.collect()
}

async fn resolve(approver: &ApproverHandle, params: &Map<String, Value>) -> Outcome {
    let Some(id) = params.get("approvalId").and_then(Value::as_str).filter(|id| !id.is_empty()) else {
        return Err(RpcError::invalid("approvalId is required"));
    };
    let decision = params.get("decision");
    let choice = match decision.and_then(Value::as_str).and_then(choice_of) {
        Some(choice) => choice,
        None => {
            let shown = match decision {
                Some(Value::String(word)) => word.chars().take(64).collect(),
                Some(other) => other.to_string().chars().take(64).collect(),
                None => "undefined".to_owned(),
            };
            let message = format!("Invalid decision: {shown}. Must be allow-once, allow-always, or deny");
            return Err(RpcError::invalid(message));
        }
    };
    let (note, answer) = (text(params, "note")?, text(params, "answer")?);
    // A part of an id is none: this protocol has one word for both.
    let id: ApprovalId = id.parse().map_err(|_| RpcError::not_found())?;
    approver.decide(id, Answer { note, answer, ..Answer::plain(choice) }).await?;
    Ok(json!({"ok": true}))
}

fn text(params: &Map<String, Value>, name: &str) -> Result<Option<String>, RpcError> {
    match params.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(RpcError::invalid(format!("{name} is a text"))),
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Listing {
    cursor: Option<String>,
}

/// What is open and theirs to answer, newest first.
async fn list(approver: &ApproverHandle, params: Map<String, Value>) -> Outcome {
    let Listing { cursor } = read(params)?;
    let bad = |_| RpcError::invalid("cursor is what an answer gave as nextCursor");
    let before = cursor.map(|cursor| cursor.parse().map_err(bad)).transpose()?;
    let rows = approver.list(ListFilter { status: Some(Status::Pending), before, limit: PAGE }).await?;
    let next = rows.last().filter(|_| rows.len() >= PAGE).map(|(position, _)| position.to_string());
    let approvals: Vec<Card> = rows
        .iter()
        .filter(|(_, approval)| is_for(approval, approver.name()))
        .map(|(_, approval)| Card::of(approval))
        .collect();
    Ok(json!({"approvals": approvals, "nextCursor": next}))
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Asking {
    command: String,
    cwd: Option<String>,
    agent_id: Option<String>,
    timeout_ms: Option<u64>,
    channel: Option<ChannelChoice>,
    security: Option<Security>,
    ask: Option<Ask>,
}

async fn ask(session: &Session, agent: &AgentHandle, params: Map<String, Value>) -> Result<Arc<Approval>, RpcError> {
    let asking: Asking = read(params)?;
    let session_id = asking.agent_id.clone().unwrap_or_else(|| session.device.id.clone());
    let exec = Exec { command: asking.command, argv: None, cwd: asking.cwd, env: Default::default(), binding: None };
    let new = NewRequest {
        session_id,
        context_id: None,
        alias: None,
        action: Action::Exec(exec),
        action_type: ActionType::exec(),
        words: AgentWords { agent_id: asking.agent_id, ..AgentWords::default() },
        channel: asking.channel.unwrap_or(ChannelChoice::Hub),
        target: Target::default(),
        terms: TermsAsked { security: asking.security, ask: asking.ask },
        expires_in_ms: asking.timeout_ms,
        default_ms: DEFAULT_TIMEOUT_MS,
        idempotency: None,
        terminal: None,
        take: Take::Tell,
        engine: None,
    };
    session.asks.request(agent, new).await
}

/// The answer comes when the question has ended.
fn answer_later(session: &Session, agent: AgentHandle, id: ApprovalId, request_id: String) {
    let (hub_id, device, asks) = (session.hub_id.clone(), session.device.clone(), session.asks.clone());
    tokio::spawn(async move {
        let answer = match until_ended(&agent, id).await {
            Ok(approval) => taken(&agent, approval).await,
            Err(error) => Err(error),
        };
        asks.ended(&id);
        respond(&hub_id, &device, &request_id, &answer).await;
    });
}

async fn until_ended(agent: &AgentHandle, id: ApprovalId) -> Result<Arc<Approval>, RpcError> {
    let deadline = agent.get(id).await?.terms.expires_at;
    // A little longer than it is open: its end is written by then.
    let approval = agent.wait(id, deadline.plus_millis(5_000)).await?;
    match approval.status() {
        Status::Pending => Err(RpcError::unavailable("the gate is going down; the request is still open")),
        Status::Approved | Status::Denied | Status::Expired | Status::Cancelled => Ok(approval),
    }
}

/// What an agent is told of what it asked.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Telling {
    approval_id: String,
    decision: &'static str,
    reason: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    /// What a person allows in its place.
    #[serde(rename = "override", skip_serializing_if = "Option::is_none")]
    replacement: Option<String>,
}

impl Telling {
    fn of(told: &Told) -> Option<Self> {
        let (approval_id, reason) = (told.approval.id.to_string(), told_reason(told)?.as_str());
        // That nobody answered is a no to whoever asked.
        let decision = told_word(told).unwrap_or(DENY);
        let outcome = told.approval.outcome.as_ref().filter(|_| told.unusable.is_none());
        let answer = outcome.and_then(|outcome| outcome.decision.as_ref());
        let note = answer.and_then(|answer| answer.note.clone());
        let replacement = answer.and_then(|answer| answer.replacement.clone());
        Some(Self { approval_id, decision, reason, note, replacement })
    }
}

/// What the gate has the agent told: a yes is used up by it.
async fn taken(agent: &AgentHandle, approval: Arc<Approval>) -> Outcome {
    let told = agent.tell(approval).await?;
    let told = Telling::of(&told).ok_or_else(RpcError::not_found)?;
    serde_json::to_value(told).map_err(|_| RpcError::unavailable("the answer cannot be written"))
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Closing {
    agent_id: Option<String>,
}

async fn close_agent(session: &Session, agent: &AgentHandle, params: Map<String, Value>) -> Outcome {
    let Closing { agent_id } = read(params)?;
    let closed = session.asks.close(agent, agent_id.as_deref()).await;
    Ok(json!({"ok": true, "closed": closed}))
}

fn read<T: DeserializeOwned>(params: Map<String, Value>) -> Result<T, RpcError> {
    serde_path_to_error::deserialize(Value::Object(params)).map_err(|error| {
        let path = error.path().to_string();
        let why = error.into_inner();
        RpcError::invalid(if path == "." { why.to_string() } else { format!("{path}: {why}") })
    })
}
