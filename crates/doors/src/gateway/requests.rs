//! Asking, waiting, listing and answering.

use std::collections::BTreeMap;
use std::sync::Arc;

use countersign_gate::{AgentHandle, ApproverHandle, GateError, ListFilter, NewRequest, Refused, ShownIds, Take, Told};
use countersign_model::{
    Action, ActionType, AgentWords, Answer, Approval, Ask, ChannelChoice, Exec, GrantTerms, Security, Status, Target,
    TermsAsked,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::connection::Session;
use super::frame::{self, Failure};
use super::hello::Who;
use super::views;
use crate::words::{choice_of, decision_word, exec_of_words};

/// How long a request is open when neither it nor policy says.
const DEFAULT_MS: u64 = 120_000;
const DAY_MS: u64 = 86_400_000;
const LIST_PAGE: usize = 500;
/// More than this nobody looks through; history and `/v1/approvals` have pages.
const MAX_LISTED: usize = 10_000;
const HISTORY_PAGE: usize = 50;
const MAX_HISTORY_PAGE: usize = 100;

/// What an agent sends. Fields that nobody here goes by are not read.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RequestParams {
    id: Option<String>,
    command: Option<String>,
    command_argv: Option<Vec<String>>,
    env: Option<BTreeMap<String, String>>,
    cwd: Option<String>,
    security: Option<Security>,
    ask: Option<String>,
    agent_id: Option<String>,
    session_key: Option<String>,
    session_id: Option<String>,
    host: Option<String>,
    node_id: Option<String>,
    resolved_path: Option<String>,
    warning_text: Option<String>,
    run_id: Option<String>,
    tool_call_id: Option<String>,
    timeout_ms: Option<u64>,
    two_phase: Option<bool>,
}

impl RequestParams {
    fn into_request(self, connection: &str) -> Result<NewRequest, Failure> {
        let given = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
        let env = self.env.unwrap_or_default();
        let cwd = given(self.cwd);
        let exec = match (self.command_argv, self.command) {
            (Some(argv), command) => exec_of_words(argv, command.as_deref(), cwd, env)
                .map_err(|error| Failure::invalid(error.to_string()))?,
            (None, Some(command)) => Exec { command, argv: None, cwd, env, binding: None },
            (None, None) => return Err(Failure::invalid("`command` is missing; give it, or `commandArgv`")),
        };
        let ask_word = self.ask.as_deref().and_then(|word| serde_json::from_value::<Ask>(json!(word)).ok());
        let labels = [
            (views::HOST, self.host),
            (views::NODE_ID, self.node_id),
            (views::RESOLVED_PATH, self.resolved_path),
            (views::SESSION_KEY, self.session_key.clone()),
            (views::SESSION_ID, self.session_id.clone()),
            (views::RUN_ID, self.run_id),
            (views::TOOL_CALL_ID, self.tool_call_id),
        ];
        let labels = labels.into_iter().filter_map(|(name, text)| Some((name.to_owned(), given(text)?))).collect();
        let session = given(self.session_key).or(given(self.session_id));
        Ok(NewRequest {
            session_id: session.unwrap_or_else(|| connection.to_owned()),
            context_id: None,
            alias: given(self.id).map(|id| id.trim().to_owned()),
            action: Action::Exec(exec),
            action_type: ActionType::exec(),
            words: AgentWords {
                title: given(self.warning_text),
                ask: given(self.ask).filter(|_| ask_word.is_none()),
                agent_id: given(self.agent_id),
                labels,
            },
            channel: ChannelChoice::Any,
            target: Target::default(),
            terms: TermsAsked { security: self.security, ask: ask_word },
            expires_in_ms: self.timeout_ms,
            default_ms: DEFAULT_MS,
            idempotency: None,
            terminal: None,
            take: Take::Tell,
            engine: None,
        })
    }
}

impl Session {
    pub(super) async fn shown_ids(&self, approval: &Approval) -> ShownIds {
        self.gateway.gate.shown_ids([approval]).await
    }
}

pub(super) async fn request(session: &Session, id: &str, params: RequestParams) -> Result<Value, Failure> {
    let two_phase = params.two_phase.unwrap_or(false);
    let asker = session.asker()?;
    let (approval, _) = asker.request(params.into_request(&session.connection)?).await?;
    if two_phase && approval.status() == Status::Pending {
        let accepted = views::accepted(&session.shown_ids(&approval).await, &approval);
        session.outbox.answer(frame::answer(id, &Ok(accepted))).await;
    }
    decided(session, &asker, approval).await
}

/// Waits for the end of it, which is never later than its deadline.
pub(super) async fn decided(session: &Session, asker: &AgentHandle, approval: Arc<Approval>) -> Result<Value, Failure> {
    let told = asker.tell(ended(session, asker, approval).await?).await?;
    Ok(views::final_answer(&session.shown_ids(&told.approval).await, &told))
}

pub(super) async fn ended(
    session: &Session,
    asker: &AgentHandle,
    approval: Arc<Approval>,
) -> Result<Arc<Approval>, Failure> {
    let (id, mut status, expires_at) = (approval.id, approval.status(), approval.terms.expires_at);
    let mut ended = approval;
    // A timer that fires just before the deadline's own event is no reason to give up.
    while status == Status::Pending {
        if session.gateway.gate.is_closing() {
            return Err(Failure::shutting_down());
        }
        drop(ended);
        let until = expires_at.max(session.gateway.gate.now()).plus_millis(1000);
        ended = asker.wait(id, until).await?;
        status = ended.status();
    }
    Ok(ended)
}

#[derive(Debug, Deserialize)]
pub(super) struct IdParams {
    id: String,
}

/// Its own for an agent, anybody's for a person.
async fn find(session: &Session, id: &str) -> Result<Arc<Approval>, Failure> {
    match &session.who {
        Who::Agent(agent) => Ok(agent.find(id.trim()).await?),
        Who::Person { approver, .. } => Ok(approver.find(id.trim()).await?),
        Who::Node { .. } => Err(Failure::missing_scope(super::hello::APPROVALS)),
    }
}

pub(super) async fn wait_decision(session: &Session, params: IdParams) -> Result<Value, Failure> {
    // Whoever asked is told its own, and that uses a yes up; a person who looks at somebody else's uses nothing.
    let asker = session.asker()?;
    match (asker.find(params.id.trim()).await, &session.who) {
        (Ok(own), _) => return decided(session, &asker, own).await,
        (Err(GateError::Refused(Refused::NotFound)), Who::Person { .. }) => {}
        (Err(error), _) => return Err(error.into()),
    }
    let approver = session.approver()?;
    let approval = approver.find(params.id.trim()).await?;
    let until = approval.terms.expires_at.plus_millis(1000);
    let ended = approver.wait(approval.id, until).await?;
    if ended.status() == Status::Pending {
        return Err(Failure::shutting_down());
    }
    let told = Told { approval: ended, unusable: None };
    Ok(views::final_answer(&session.shown_ids(&told.approval).await, &told))
}

pub(super) async fn list(session: &Session) -> Result<Value, Failure> {
    let approver = session.approver()?;
    let (mut rows, mut before) = (Vec::new(), None);
    loop {
        let filter = ListFilter { status: Some(Status::Pending), before, limit: LIST_PAGE };
        let page = approver.list(filter).await?;
        before = page.last().map(|(position, _)| *position);
        let execs: Vec<&Approval> =
            page.iter().map(|(_, approval)| &**approval).filter(|approval| views::is_exec(approval)).collect();
        let ids = session.gateway.gate.shown_ids(execs.iter().copied()).await;
        rows.extend(execs.into_iter().map(|approval| views::listed(&ids, approval)));
        if page.len() < LIST_PAGE || rows.len() >= MAX_LISTED {
            return Ok(Value::Array(rows));
        }
    }
}

pub(super) async fn get(session: &Session, params: IdParams) -> Result<Value, Failure> {
    let approval = exec_only(find(session, &params.id).await?)?;
    if approval.status() != Status::Pending {
        return Err(Failure::not_found());
    }
    Ok(views::pending(&session.shown_ids(&approval).await, &approval))
}

/// These methods know commands and nothing else.
fn exec_only(approval: Arc<Approval>) -> Result<Arc<Approval>, Failure> {
    if views::is_exec(&approval) { Ok(approval) } else { Err(Failure::not_found()) }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResolveParams {
    id: String,
    decision: String,
    kind: Option<String>,
    grant_expires_in_days: Option<u64>,
}

pub(super) async fn resolve(approver: &ApproverHandle, params: ResolveParams) -> Result<Value, Failure> {
    answer(approver, params).await.map(|_| json!({ "ok": true }))
}

/// The approval as it is now, and whether this answer made it so.
async fn answer(approver: &ApproverHandle, params: ResolveParams) -> Result<(bool, Arc<Approval>), Failure> {
    let Some(choice) = choice_of(&params.decision) else {
        return Err(Failure::invalid("invalid decision; it is allow-once, allow-always or deny"));
    };
    let expires_in_ms = params.grant_expires_in_days.map(|days| days.saturating_mul(DAY_MS));
    let approval = exec_only(approver.find(params.id.trim()).await?)?;
    let answer = Answer { terms: GrantTerms { expires_in_ms }, ..Answer::plain(choice) };
    match approver.decide(approval.id, answer).await {
        Ok(ended) => Ok((true, ended)),
        Err(GateError::Refused(Refused::Finished(ended))) => match decision_word(&ended) {
            Some(word) if word == params.decision => Ok((false, ended)),
            Some(word) => {
                let message = format!("approval already resolved: {word}");
                Err(Failure::invalid(message).because("APPROVAL_ALREADY_RESOLVED"))
            }
            None => Err(Failure::not_found()),
        },
        Err(other) => Err(other.into()),
    }
}

pub(super) async fn snapshot(session: &Session, params: IdParams) -> Result<Value, Failure> {
    let approval = exec_only(session.approver()?.find(params.id.trim()).await?)?;
    Ok(json!({ "approval": views::snapshot(&session.shown_ids(&approval).await, &approval) }))
}

pub(super) async fn resolve_snapshot(session: &Session, params: ResolveParams) -> Result<Value, Failure> {
    if params.kind.as_deref().is_some_and(|kind| kind != "exec") {
        return Err(Failure::invalid("`kind` is `exec`: there are no others here"));
    }
    let (applied, approval) = answer(session.approver()?, params).await?;
    let approval = views::snapshot(&session.shown_ids(&approval).await, &approval);
    Ok(json!({ "applied": applied, "approval": approval }))
}

#[derive(Debug, Deserialize)]
pub(super) struct HistoryParams {
    cursor: Option<String>,
    limit: Option<usize>,
    kind: Option<String>,
}

/// What has ended, newest first.
pub(super) async fn history(session: &Session, params: HistoryParams) -> Result<Value, Failure> {
    let approver = session.approver()?;
    let limit = params.limit.unwrap_or(HISTORY_PAGE);
    if !(1..=MAX_HISTORY_PAGE).contains(&limit) {
        return Err(Failure::invalid(format!("`limit` is from 1 to {MAX_HISTORY_PAGE}")));
    }
    let before = params.cursor.map(|cursor| cursor.parse::<u64>()).transpose();
    let mut before = before.map_err(|_| Failure::invalid("`cursor` is the `nextCursor` of the page before"))?;
    if params.kind.as_deref().is_some_and(|kind| kind != "exec") {
        return Ok(json!({ "items": [] }));
    }
    let mut items = Vec::new();
    loop {
        let page = approver.list(ListFilter { status: None, before, limit: LIST_PAGE }).await?;
        let ids = session.gateway.gate.shown_ids(page.iter().map(|(_, approval)| &**approval)).await;
        for (position, approval) in &page {
            before = Some(*position);
            if approval.status() != Status::Pending && views::is_exec(approval) {
                items.push(views::snapshot(&ids, approval));
            }
            if items.len() >= limit {
                return Ok(json!({ "items": items, "nextCursor": position.to_string() }));
            }
        }
        if page.len() < LIST_PAGE {
            return Ok(json!({ "items": items }));
        }
    }
}
