//! What an agent may do: ask, wait, cancel, and use what it was allowed.

use std::sync::Arc;

use countersign_model::{
    Action, ActionType, AgentWords, Approval, ApprovalId, ChannelChoice, ClientId, CommandTypes, Door, EngineTerms,
    Grant, KeyId, KeyRecord, Mode, Request, Requester, RunEnd, Status, Target, TerminalInput, TermsAsked, Timestamp,
    Trust,
};

use super::{
    MAX_PATH_BYTES, active_grants, changed, check_running, check_workspace, find, inner_get, trust_of, unexpected, wait,
};
use crate::command::{Command, Done, Idempotency, NewApproval, Refused, Take, Told, Weight, Withdrawal};
use crate::error::GateError;
use crate::gate::{Gate, Inner, new_approval_id};
use crate::live::OutputStream;
use crate::ports::{GrantFilter, StoreError};

/// The longest a caller may want a request open.
const MAX_EXPIRES_MS: u64 = 86_400_000;
const MAX_CHANGES: usize = 64;
const MAX_TOOL_CHARS: usize = 128;
const MAX_PIECE_BYTES: usize = 64 * 1024;
const MAX_IDEMPOTENCY_CHARS: usize = 256;

/// What an agent sends.
#[derive(Debug)]
pub struct NewRequest {
    pub session_id: String,
    pub context_id: Option<String>,
    /// What the requester itself calls it.
    pub alias: Option<String>,
    pub action: Action,
    pub action_type: ActionType,
    pub words: AgentWords,
    pub channel: ChannelChoice,
    pub target: Target,
    pub terms: TermsAsked,
    pub expires_in_ms: Option<u64>,
    /// What the door's own document says when nobody else does.
    pub default_ms: u64,
    pub idempotency: Option<Idempotency>,
    /// The workspace that a command is asked from, with its file.
    pub terminal: Option<TerminalInput>,
    /// Takes the permit at once where policy says yes without asking: one commit in place of two.
    pub take: Take,
    /// Asked by an engine or a relay.
    pub engine: Option<EngineAsk>,
}

/// What an engine's session adds to a request.
#[derive(Clone, Debug, Default)]
pub struct EngineAsk {
    pub mode: Option<Mode>,
    /// Where its tools are confined to.
    pub workspace: Option<String>,
    /// What would run the command.
    pub tool: Option<String>,
}

/// What taking a permit answers.
#[derive(Debug)]
pub struct Permit {
    pub approval: Arc<Approval>,
}

#[derive(Clone, Debug)]
pub struct AgentHandle {
    gate: Gate,
    pub(super) requester: Requester,
    /// It is in the process that holds the store, so it could write there anyway.
    pub(super) holds_store: bool,
}

impl AgentHandle {
    pub(crate) fn new(gate: Gate, key: &KeyRecord, door: Door) -> Self {
        let requester = Requester {
            key_id: key.id,
            client_id: key.client_id.clone(),
            name: key.name.clone(),
            profile: key.profile.clone(),
            door,
        };
        Self::of(gate, requester)
    }

    pub(super) fn of(gate: Gate, requester: Requester) -> Self {
        Self { gate, requester, holds_store: false }
    }

    pub(crate) fn holding_the_store(self) -> Self {
        Self { holds_store: true, ..self }
    }

    pub(super) fn inner(&self) -> &Inner {
        &self.gate.0
    }

    pub fn client_id(&self) -> &ClientId {
        &self.requester.client_id
    }

    /// The name that stands on the record.
    pub fn name(&self) -> &str {
        &self.requester.name
    }

    /// Which action types mean a command here.
    pub fn command_types(&self) -> Arc<CommandTypes> {
        self.gate.0.command_types()
    }

    pub fn key_id(&self) -> KeyId {
        self.requester.key_id
    }

    /// Asks. What comes back is ruled already, or pending; `false` beside it means it had been asked before.
    pub async fn request(&self, new: NewRequest) -> Result<(Arc<Approval>, bool), GateError> {
        let inner = &self.gate.0;
        check_expiry(new.expires_in_ms)?;
        check_idempotency(new.idempotency.as_ref())?;
        let Way { channel, target, instead_of } = way(inner, new.channel, new.target)?;
        if let Some(input) = &new.terminal {
            check_workspace(&input.workspace)?;
        }
        let request = Request::new(
            self.requester.clone(),
            new.session_id,
            new.context_id,
            new.alias,
            new.action,
            new.action_type,
            new.words,
            channel,
            target,
            new.terms,
            inner.rules().as_deref(),
            &inner.command_types(),
        )?;
        let request = request.instead_of(instead_of);
        let request = match &new.terminal {
            Some(input) => request.in_workspace(input),
            None => request,
        };
        let request = match &new.engine {
            Some(ask) => {
                let workspace = ask.workspace.as_deref();
                workspace.map(check_workspace).transpose()?;
                if ask.tool.as_ref().is_some_and(|tool| tool.chars().count() > MAX_TOOL_CHARS) {
                    return Err(GateError::OutOfRange { field: "engine.tool", expected: "at most 128 characters" });
                }
                let terms = EngineTerms::of(ask.mode, workspace, &request.action, self.holds_store);
                request.from_engine(terms.by_tool(ask.tool.clone()))
            }
            None => request,
        };
        let config = &inner.config;
        let weight = Weight::of(&request, config.max_pending_bytes, config.max_pending_bytes_total)
            .map_err(|error| StoreError::Corrupt(error.to_string()))?;
        let command = Command::Create(Box::new(NewApproval {
            id: new_approval_id()?,
            weight,
            request: Arc::new(request),
            expires_in_ms: new.expires_in_ms,
            default_ms: new.default_ms,
            idempotency: new.idempotency,
            max_pending: inner.config.max_pending,
            take: new.take,
            reach: inner.reach_of(channel),
        }));
        match inner.submit(command).await? {
            Done::Created { approval, fresh } => {
                if approval.status() == Status::Pending {
                    inner.alarm.deadline_set(approval.terms.expires_at);
                }
                Ok((approval, fresh))
            }
            other => Err(unexpected(&other)),
        }
    }

    /// Its own request; another client's is the same as none.
    pub async fn get(&self, id: ApprovalId) -> Result<Arc<Approval>, GateError> {
        let approval = inner_get(&self.gate.0, id).await?;
        self.own(approval)
    }

    /// The request once it has ended, or as it is at `until`.
    pub async fn wait(&self, id: ApprovalId, until: Timestamp) -> Result<Arc<Approval>, GateError> {
        self.get(id).await?;
        wait(&self.gate.0, id, until).await
    }

    pub async fn cancel(&self, id: ApprovalId) -> Result<Arc<Approval>, GateError> {
        self.withdraw(id, Withdrawal::Cancelled).await
    }

    /// The agent is gone: nobody would use a yes any more.
    pub async fn close(&self, id: ApprovalId) -> Result<Arc<Approval>, GateError> {
        self.withdraw(id, Withdrawal::AgentClosed).await
    }

    async fn withdraw(&self, id: ApprovalId, why: Withdrawal) -> Result<Arc<Approval>, GateError> {
        changed(self.gate.0.submit(Command::Withdraw { id, client: self.requester.key_id, why }).await?)
    }

    /// What a door without a verb for using a permit tells the requester: a yes is used up by telling it first, and is
    /// a no where it was used by another way.
    pub async fn tell(&self, approval: Arc<Approval>) -> Result<Told, GateError> {
        if approval.status() != Status::Approved || approval.told {
            return Ok(Told { approval, unusable: None });
        }
        match self.gate.0.submit(Command::Tell { id: approval.id, client: self.requester.key_id }).await? {
            Done::Told(told) => Ok(told),
            other => Err(unexpected(&other)),
        }
    }

    /// Its own request, by its whole id or by what it called it.
    pub async fn find(&self, text: &str) -> Result<Arc<Approval>, GateError> {
        find(&self.gate.0, text, Some(self.requester.key_id)).await
    }

    /// Takes the permit of an approved request, once.
    pub async fn consume(&self, id: ApprovalId) -> Result<Permit, GateError> {
        let done = self.gate.0.submit(Command::Consume { id, client: self.requester.key_id }).await?;
        Ok(Permit { approval: changed(done)? })
    }

    /// Says how the run that took the permit ended.
    pub async fn ran(&self, id: ApprovalId, run: RunEnd) -> Result<Arc<Approval>, GateError> {
        if run.changed.len() > MAX_CHANGES || run.changed.iter().any(|text| text.len() > MAX_PATH_BYTES) {
            return Err(GateError::OutOfRange { field: "changed", expected: "at most 64 short texts" });
        }
        changed(self.gate.0.submit(Command::Ran { id, client: self.requester.key_id, run }).await?)
    }

    /// A piece of what the run under it prints, for whoever follows. Whether it was heard.
    pub async fn print(&self, id: ApprovalId, stream: OutputStream, text: String) -> Result<bool, GateError> {
        if text.len() > MAX_PIECE_BYTES {
            return Err(GateError::OutOfRange { field: "text", expected: "at most 64 KiB at a time" });
        }
        check_running(&*self.get(id).await?)?;
        Ok(self.gate.0.live.print(id, stream, text))
    }

    /// Who wants the run under it ended, as soon as somebody does, or nobody until `until`.
    pub async fn stop_asked(&self, id: ApprovalId, until: Timestamp) -> Result<Option<String>, GateError> {
        check_running(&*self.get(id).await?)?;
        let inner = &self.gate.0;
        let mut closing = inner.closing.subscribe();
        let given_up = async {
            tokio::select! {
                () = inner.clock.sleep_for(inner.clock.now().millis_until(until)) => {}
                _ = closing.wait_for(|closing| *closing) => {}
            }
        };
        Ok(inner.stops.asked(id, given_up).await)
    }

    /// The text of a workspace's file that a person trusts, to be written where it belongs.
    pub async fn trusted_file(&self, workspace: &str) -> Result<Trust, GateError> {
        trust_of(&self.gate.0, workspace).await
    }

    pub async fn grants(&self) -> Result<Vec<Grant>, GateError> {
        let filter = GrantFilter { client: Some(self.requester.key_id), include_ended: false };
        active_grants(&self.gate.0, filter).await
    }

    /// Its session is over: what was allowed for that session ends with it. How many grants that were.
    pub async fn end_session(&self, session: &str) -> Result<u64, GateError> {
        let (client, by) = (self.requester.key_id, format!("session:{}", self.requester.name));
        match self.gate.0.submit(Command::EndSession { client, session: session.to_owned(), by }).await? {
            Done::SessionEnded(count) => Ok(count),
            other => Err(unexpected(&other)),
        }
    }

    fn own(&self, approval: Arc<Approval>) -> Result<Arc<Approval>, GateError> {
        if approval.request.requester.key_id == self.requester.key_id {
            Ok(approval)
        } else {
            Err(Refused::NotFound.into())
        }
    }
}

fn check_expiry(expires_in_ms: Option<u64>) -> Result<(), GateError> {
    match expires_in_ms {
        Some(ms) if !(1..=MAX_EXPIRES_MS).contains(&ms) => {
            Err(GateError::OutOfRange { field: "expires_in_sec", expected: "more than 0 and at most 86400 seconds" })
        }
        Some(_) | None => Ok(()),
    }
}

fn check_idempotency(idempotency: Option<&Idempotency>) -> Result<(), GateError> {
    let bad = |key: &str| key.is_empty() || key.chars().count() > MAX_IDEMPOTENCY_CHARS || key.contains('\0');
    if idempotency.is_some_and(|idempotency| bad(&idempotency.key)) {
        return Err(GateError::OutOfRange { field: "idempotency_key", expected: "1 to 256 characters" });
    }
    Ok(())
}

/// The way to people that a request goes.
struct Way {
    channel: ChannelChoice,
    target: Target,
    /// What it named, where that is not set up.
    instead_of: Option<ChannelChoice>,
}

/// Telegram and email are named by clients that know no other way: where one is not set up everybody is asked, and
/// nothing goes to whom the agent named.
fn way(inner: &Inner, choice: ChannelChoice, target: Target) -> Result<Way, GateError> {
    let is_set_up = inner.channels.iter().any(|channel| channel.kind() == choice) || inner.has_presence(choice);
    if matches!(choice, ChannelChoice::Telegram | ChannelChoice::Email) && !is_set_up {
        return Ok(Way { channel: ChannelChoice::Any, target: Target::default(), instead_of: Some(choice) });
    }
    check_channel(inner, choice, &target)?;
    Ok(Way { channel: choice, target, instead_of: None })
}

fn check_channel(inner: &Inner, choice: ChannelChoice, target: &Target) -> Result<(), GateError> {
    let mut of_choice =
        inner.channels.iter().filter(|channel| choice == ChannelChoice::Any || channel.kind() == choice).peekable();
    if of_choice.peek().is_none() && !choice.always_reachable() && !inner.has_presence(choice) {
        return Err(GateError::ChannelNotConfigured(choice));
    }
    let names_someone = *target != Target::default();
    if names_someone && !of_choice.any(|channel| channel.knows(target)) {
        return Err(GateError::UnknownTarget(choice));
    }
    Ok(())
}
