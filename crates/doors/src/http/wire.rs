//! What goes over the wire, and the one place where it becomes the gate's types and back.

use std::collections::BTreeMap;
use std::sync::Arc;

use countersign_gate::{Idempotency, NewRequest};
use countersign_model::{
    Action, ActionType, AgentWords, Approval, Ask, Assessment, ChannelChoice, Code, Decision, Exec, Grant, GrantKind,
    Outcome, RiskReason, Security, Showing, Status, Target, TermsAsked, canonical_bytes, mask, sha256, showing,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::body::{Object, whole_number};
use super::problem::Problem;

/// How long a request is open when neither it nor policy says.
const DEFAULT_EXPIRES_MS: u64 = 600_000;

/// What an agent wants to do. Give `command` (or `argv`), `tool`, `question`, or `action_type` with `title` and
/// `preview`. Unknown fields are ignored.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct CreateApproval {
    /// The agent's run; session allows hold for it.
    #[schema(min_length = 1, max_length = 256, pattern = "^[!-~]+$", example = "sess_123")]
    session_id: String,
    #[schema(min_length = 1, max_length = 128, pattern = "^[!-~]+$", example = "http_request")]
    action_type: Option<String>,
    #[schema(max_length = 1024, example = "POST request")]
    title: Option<String>,
    #[schema(example = "POST https://api.example.com/pay")]
    preview: Option<String>,
    #[schema(value_type = Option<Channel>)]
    channel: Option<ChannelChoice>,
    #[schema(value_type = Option<TargetIn>)]
    target: Option<Object<TargetIn>>,
    #[serde(default, deserialize_with = "whole_number")]
    #[schema(minimum = 1, maximum = 86400, default = 600)]
    expires_in_sec: Option<u64>,
    /// Which person's or page's strip it belongs to.
    #[schema(min_length = 1, max_length = 256, pattern = "^[!-~]+$")]
    context_id: Option<String>,
    /// Rules this request more strictly than policy does; never less.
    #[schema(value_type = Option<SecurityWord>)]
    security: Option<Security>,
    /// `off`, `on-miss` or `always`; any other words are shown as the agent's own.
    #[schema(max_length = 1024)]
    ask: Option<String>,
    /// Shell text.
    #[schema(max_length = 16384)]
    command: Option<String>,
    cwd: Option<String>,
    env: Option<BTreeMap<String, String>>,
    /// A command without a shell.
    #[schema(min_items = 1)]
    argv: Option<Vec<String>>,
    tool: Option<String>,
    category: Option<String>,
    #[schema(value_type = Option<Object>)]
    args: Option<Value>,
    question: Option<String>,
    options: Option<Vec<String>>,
    /// The agent's name for itself: a claim, which can only make policy stricter.
    #[schema(min_length = 1, max_length = 256, pattern = "^[!-~]+$")]
    agent_id: Option<String>,
    /// The same key and body within a day is the same request.
    #[schema(min_length = 1, max_length = 256, pattern = "^[!-~]+$")]
    idempotency_key: Option<String>,
    callback_url: Option<String>,
    /// Holds the answer up to this many seconds while it is pending; at most 60 count.
    #[serde(default, deserialize_with = "whole_number")]
    #[schema(minimum = 0)]
    pub(super) wait: Option<u64>,
}

#[derive(Debug, Default, Deserialize, ToSchema)]
pub(super) struct TargetIn {
    tg_chat_id: Option<String>,
    email_to: Option<String>,
}

/// For the documentation: the model's own words.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
#[expect(dead_code, reason = "documents the values of a field that the model's enum parses")]
pub(super) enum Channel {
    Any,
    Web,
    Hub,
    Telegram,
    Email,
}

/// For the documentation: the model's own words.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
#[expect(dead_code, reason = "documents the values of a field that the model's enum parses")]
pub(super) enum SecurityWord {
    Deny,
    Allowlist,
    Full,
}

impl CreateApproval {
    /// `body` is what it was read from, for the idempotency key.
    pub(super) fn into_request(self, body: &[u8]) -> Result<NewRequest, Problem> {
        if self.callback_url.is_some() {
            let message = "no webhook channel is set up on this gate; leave `callback_url` out and use `wait`";
            return Err(Problem::unprocessable("channel_not_configured", message));
        }
        let idempotency = self.idempotency_key.clone().map(|key| idempotency(key, body)).transpose()?;
        let ask_word = self.ask.as_deref().and_then(|word| serde_json::from_value::<Ask>(json!(word)).ok());
        let (action, action_type) = self.action()?;
        let title = match &action {
            Action::Custom { .. } => None,
            Action::Exec(_) | Action::Tool { .. } | Action::Question { .. } => self.title,
        };
        let Object(target) = self.target.unwrap_or_default();
        Ok(NewRequest {
            session_id: self.session_id,
            context_id: self.context_id,
            action,
            action_type,
            words: AgentWords { title, ask: self.ask.filter(|_| ask_word.is_none()), agent_id: self.agent_id },
            channel: self.channel.unwrap_or_default(),
            target: Target { tg_chat_id: target.tg_chat_id, email_to: target.email_to },
            terms: TermsAsked { security: self.security, ask: ask_word },
            expires_in_ms: self.expires_in_sec.map(|seconds| seconds.saturating_mul(1000)),
            default_ms: DEFAULT_EXPIRES_MS,
            idempotency,
        })
    }

    /// Exactly one action, and the type it goes by.
    fn action(&self) -> Result<(Action, ActionType), Problem> {
        let is_command = self.command.is_some() || self.argv.is_some();
        let kinds = [is_command, self.tool.is_some(), self.question.is_some()];
        if kinds.into_iter().filter(|given| *given).count() > 1 {
            let message = "give one of `command`, `tool` and `question`, not several";
            return Err(Problem::unprocessable("ambiguous_action", message));
        }
        let given_type = self.action_type.clone().map(ActionType::new).transpose().map_err(invalid)?;
        if is_command {
            return Ok((self.exec()?, given_type.unwrap_or_else(ActionType::exec)));
        }
        if let Some(name) = &self.tool {
            let action_type = match given_type {
                Some(given) => given,
                None => ActionType::new(format!("custom:{name}")).map_err(invalid)?,
            };
            let args = self.args.clone().unwrap_or_else(|| json!({}));
            return Ok((Action::Tool { name: name.clone(), category: self.category.clone(), args }, action_type));
        }
        if let Some(text) = &self.question {
            let action_type = match given_type {
                Some(given) => given,
                None => ActionType::new("question").map_err(invalid)?,
            };
            let options = self.options.clone().unwrap_or_default();
            return Ok((Action::Question { text: text.clone(), options }, action_type));
        }
        let action_type = given_type.ok_or_else(|| missing("action_type"))?;
        let preview = self.preview.clone().ok_or_else(|| missing("preview"))?;
        if action_type.is_exec() {
            return Ok((self.exec_of(preview), action_type));
        }
        let title = self.title.clone().ok_or_else(|| missing("title"))?;
        Ok((Action::Custom { action_type: action_type.clone(), title, preview }, action_type))
    }

    fn exec(&self) -> Result<Action, Problem> {
        let Some(argv) = &self.argv else {
            return Ok(self.exec_of(self.command.clone().unwrap_or_default()));
        };
        if argv.is_empty() {
            return Err(Problem::unprocessable("invalid_field", "`argv` needs at least the program"));
        }
        // What is shown is made from what would run, never from the agent's account of it.
        let shown = argv.iter().map(|word| quote(word)).collect::<Vec<_>>().join(" ");
        if self.command.as_ref().is_some_and(|command| *command != shown && *command != argv.join(" ")) {
            let message =
                "`command` and `argv` differ; send `argv` alone, or make `command` its words with spaces between";
            return Err(Problem::unprocessable("ambiguous_action", message));
        }
        let Action::Exec(exec) = self.exec_of(shown) else { return Err(missing("command")) };
        Ok(Action::Exec(Exec { argv: Some(argv.clone()), ..exec }))
    }

    fn exec_of(&self, command: String) -> Action {
        let env = self.env.clone().unwrap_or_default();
        Action::Exec(Exec { command, argv: None, cwd: self.cwd.clone(), env })
    }
}

/// A word as a POSIX shell would need it to stay one word.
fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

fn idempotency(key: String, body: &[u8]) -> Result<Idempotency, Problem> {
    let mut value: Value = serde_json::from_slice(body).map_err(|error| invalid(error.to_string()))?;
    if let Some(fields) = value.as_object_mut() {
        // How long the caller would wait does not make it another request.
        fields.remove("wait");
    }
    let bytes = canonical_bytes(&value).map_err(|error| invalid(error.to_string()))?;
    Ok(Idempotency { key, body: sha256(&bytes) })
}

fn missing(field: &str) -> Problem {
    Problem::unprocessable(
        "missing_field",
        format!(
            "`{field}` is missing; give `command`, `tool`, `question`, or `action_type` with `title` and `preview`"
        ),
    )
}

fn invalid(error: impl ToString) -> Problem {
    Problem::unprocessable("invalid_field", error.to_string())
}

/// An answer as it stands on the record.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(super) struct DecisionOut {
    #[schema(example = "1")]
    code: String,
    note: Option<String>,
    #[serde(rename = "override")]
    #[schema(rename = "override")]
    replacement: Option<String>,
    answer: Option<String>,
    by: String,
    /// Unix seconds.
    at: i64,
    via: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    grant_id: Option<String>,
    /// Of the changed command: what may run is this.
    #[serde(skip_serializing_if = "Option::is_none")]
    override_digest: Option<String>,
}

impl From<&Decision> for DecisionOut {
    fn from(decision: &Decision) -> Self {
        Self {
            code: decision.code.as_str().to_owned(),
            note: decision.note.clone(),
            replacement: decision.replacement.clone(),
            answer: decision.answer.clone(),
            by: decision.by.clone(),
            at: decision.at.as_secs_ceil(),
            via: decision.via.clone(),
            grant_id: decision.grant_id.map(|id| id.to_string()),
            override_digest: decision.override_digest.map(|digest| digest.to_hex()),
        }
    }
}

/// What the agent that asked is told.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct AgentView {
    #[schema(example = "appr_0123456789abcdef0123456789abcdef")]
    approval_id: String,
    #[schema(example = "pending")]
    status: String,
    /// Whether policy answered without asking a person.
    auto: bool,
    /// Why it ended; absent while pending.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// Unix seconds; while pending.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<i64>,
    /// Absent while pending; null when nobody answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<DecisionOut>)]
    decision: Option<Option<DecisionOut>>,
    session_id: String,
    action_type: String,
    digest: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    risk: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasons: Option<Vec<ReasonOut>>,
    /// Which row of policy allowed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    allow_rule_applied: Option<String>,
    /// Unix seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    consumed_at: Option<i64>,
    /// What to make of it, for a reader that has no table of reasons.
    message: &'static str,
}

#[derive(Clone, Debug, Serialize, ToSchema)]
pub(super) struct ReasonOut {
    code: String,
    message: String,
    start: usize,
    end: usize,
}

impl From<&RiskReason> for ReasonOut {
    fn from(reason: &RiskReason) -> Self {
        Self { code: reason.code.clone(), message: reason.message.clone(), start: reason.start, end: reason.end }
    }
}

impl AgentView {
    pub(super) fn of(approval: &Approval) -> Self {
        let (request, outcome) = (&approval.request, approval.outcome.as_ref());
        Self {
            approval_id: approval.id.to_string(),
            status: approval.status().as_str().to_owned(),
            auto: outcome.is_some_and(Outcome::is_automatic),
            reason: outcome.map(|outcome| outcome.reason.as_str().to_owned()),
            expires_at: outcome.is_none().then(|| approval.terms.expires_at.as_secs_ceil()),
            decision: outcome.map(|outcome| outcome.decision.as_ref().map(DecisionOut::from)),
            session_id: request.session_id.clone(),
            action_type: request.action_type.to_string(),
            digest: request.digest.to_hex(),
            risk: risk_of(request.assessment.as_ref()),
            reasons: reasons_of(request.assessment.as_ref()),
            rule: rule_of(outcome),
            allow_rule_applied: rule_id_of(outcome),
            consumed_at: approval.consumed_at.map(|at| at.as_secs_ceil()),
            message: message_of(approval),
        }
    }
}

/// Says what an agent must not conclude. Silence and refusal are told apart, and neither is an error to be
/// worked around.
fn message_of(approval: &Approval) -> &'static str {
    match approval.status() {
        Status::Pending => "waiting for an answer; ask again with `wait`",
        Status::Approved => "allowed; run exactly this, once",
        Status::Denied => "not allowed; do not do it, and do not try to reach the same effect another way",
        Status::Expired => {
            "nobody answered in time; silence is not consent, so do not do it and do not try another way"
        }
        Status::Cancelled => "cancelled by the agent that asked; not allowed",
    }
}

fn risk_of(assessment: Option<&Assessment>) -> Option<String> {
    assessment.map(|assessment| match assessment.risk {
        countersign_model::Risk::Safe => "safe".to_owned(),
        countersign_model::Risk::NeedsReview => "needs-review".to_owned(),
        countersign_model::Risk::Dangerous => "dangerous".to_owned(),
    })
}

fn reasons_of(assessment: Option<&Assessment>) -> Option<Vec<ReasonOut>> {
    assessment.map(|assessment| assessment.reasons.iter().map(ReasonOut::from).collect())
}

fn rule_of(outcome: Option<&Outcome>) -> Option<String> {
    let by = outcome?.allowed_by?;
    serde_json::to_value(by).ok()?.as_str().map(str::to_owned)
}

/// The permanent rule that an automatic yes rests on; a session's allow is none.
fn rule_id_of(outcome: Option<&Outcome>) -> Option<String> {
    let outcome = outcome?;
    let code = outcome.decision.as_ref().map(|decision| decision.code);
    outcome.grant.filter(|_| code == Some(Code::AllowActionType)).map(|id| id.to_string())
}

/// Everything an approver may know. Secrets in texts are masked; `showing` is what to put before a person.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Record {
    #[schema(example = "appr_0123456789abcdef0123456789abcdef")]
    approval_id: String,
    status: String,
    reason: Option<String>,
    auto: bool,
    /// Unix seconds.
    created_at: i64,
    /// Unix seconds.
    expires_at: i64,
    session_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    context_id: Option<String>,
    action_type: String,
    title: String,
    preview: String,
    choices: [&'static str; 6],
    #[serde(skip_serializing_if = "Option::is_none")]
    risk: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasons: Option<Vec<ReasonOut>>,
    digest: String,
    channel: String,
    #[schema(value_type = Object)]
    target: Target,
    client_id: String,
    client_name: String,
    profile: String,
    door: &'static str,
    decision: Option<DecisionOut>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    allow_rule_applied: Option<String>,
    /// Unix seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    consumed_at: Option<i64>,
    /// The same effect was asked for before and not allowed.
    #[serde(skip_serializing_if = "Option::is_none")]
    prior: Option<PriorOut>,
    #[schema(value_type = Object)]
    showing: Showing,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct PriorOut {
    approval_id: String,
    status: String,
    at: i64,
}

impl Record {
    pub(super) fn of(approval: &Approval) -> Self {
        let (request, outcome) = (&approval.request, approval.outcome.as_ref());
        let (title, preview) = title_and_preview(request);
        Self {
            approval_id: approval.id.to_string(),
            status: approval.status().as_str().to_owned(),
            reason: outcome.map(|outcome| outcome.reason.as_str().to_owned()),
            auto: outcome.is_some_and(Outcome::is_automatic),
            created_at: approval.terms.created_at.as_secs_ceil(),
            expires_at: approval.terms.expires_at.as_secs_ceil(),
            session_id: request.session_id.clone(),
            agent_id: request.words.agent_id.clone(),
            context_id: request.context_id.clone(),
            action_type: request.action_type.to_string(),
            title: mask(&title).text,
            preview: mask(&preview).text,
            choices: ["1", "2", "3", "4", "5", "6"],
            risk: risk_of(request.assessment.as_ref()),
            reasons: reasons_of(request.assessment.as_ref()),
            digest: request.digest.to_hex(),
            channel: request.channel.to_string(),
            target: request.target.clone(),
            client_id: request.requester.client_id.to_string(),
            client_name: request.requester.name.clone(),
            profile: request.requester.profile.clone(),
            door: request.requester.door.as_str(),
            decision: outcome.and_then(|outcome| outcome.decision.as_ref()).map(DecisionOut::from),
            rule: rule_of(outcome),
            allow_rule_applied: rule_id_of(outcome),
            consumed_at: approval.consumed_at.map(|at| at.as_secs_ceil()),
            prior: approval.terms.prior.map(|prior| PriorOut {
                approval_id: prior.approval_id.to_string(),
                status: prior.status.as_str().to_owned(),
                at: prior.at.as_secs_ceil(),
            }),
            showing: showing(&request.action, request.assessment.as_ref(), &request.words),
        }
    }
}

fn title_and_preview(request: &countersign_model::Request) -> (String, String) {
    let title = request.words.title.clone().unwrap_or_default();
    match &request.action {
        Action::Exec(exec) => (title, exec.command.clone()),
        Action::Tool { name, args, .. } => (title, format!("{name} {args}")),
        Action::Question { text, .. } => (title, text.clone()),
        Action::Custom { title, preview, .. } => (title.clone(), preview.clone()),
    }
}

/// What a reader gets: an agent its view, an approver the record.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(super) enum View {
    Agent(Box<AgentView>),
    Record(Box<Record>),
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Page {
    approvals: Vec<Record>,
    /// Pass it as `cursor` for the next page; null on the last.
    next_cursor: Option<String>,
}

impl Page {
    pub(super) fn of(rows: &[(u64, Arc<Approval>)], limit: usize) -> Self {
        let next_cursor = rows.last().filter(|_| rows.len() >= limit).map(|(position, _)| position.to_string());
        Self { approvals: rows.iter().map(|(_, approval)| Record::of(approval)).collect(), next_cursor }
    }
}

/// A grant of any kind.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct GrantOut {
    grant_id: String,
    /// `action_type`, `tool`, `prefix` or `exact`.
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) action_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    argv: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    client_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<String>,
    profile: String,
    /// Unix seconds.
    created_at: i64,
    created_by: String,
    /// The approval whose answer made it.
    approval_id: String,
    /// Unix seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<i64>,
}

impl From<&Grant> for GrantOut {
    fn from(grant: &Grant) -> Self {
        let empty = Self {
            grant_id: grant.id.to_string(),
            kind: "",
            action_type: None,
            tool: None,
            argv: None,
            digest: None,
            client_id: grant.scope.client_id.to_string(),
            session_id: grant.scope.session.clone(),
            profile: grant.scope.profile.clone(),
            created_at: grant.created_at.as_secs_ceil(),
            created_by: grant.created_by.clone(),
            approval_id: grant.approval_id.to_string(),
            expires_at: grant.expires_at.map(|at| at.as_secs_ceil()),
        };
        match &grant.kind {
            GrantKind::ActionType { action_type, tool } => {
                Self { kind: "action_type", action_type: Some(action_type.to_string()), tool: tool.clone(), ..empty }
            }
            GrantKind::Tool { name } => Self { kind: "tool", tool: Some(name.clone()), ..empty },
            GrantKind::Prefix { argv } => Self { kind: "prefix", argv: Some(argv.clone()), ..empty },
            GrantKind::Exact { digest } => Self { kind: "exact", digest: Some(digest.to_hex()), ..empty },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::quote;

    #[test]
    fn words_are_quoted_so_that_a_shell_would_give_them_back() {
        for (word, quoted) in
            [("ls", "ls"), ("", "''"), ("a b", "'a b'"), ("it's", r"'it'\''s'"), ("$x", "'$x'"), ("~", "'~'")]
        {
            assert_eq!(quote(word), quoted);
        }
    }
}
