//! What is told of an approval: an agent its own view, an approver the whole record.

use std::collections::BTreeMap;

use countersign_gate::Listed;
use countersign_model::{
    Action, AgentWords, AnswerWords, Approval, Assessment, Code, Decision, Effect, Offer, Outcome, Request, RiskReason,
    RunEnd, Showing, Status, Target, TerminalProblem, TerminalTerms, answers, mask, showing,
};
use serde::Serialize;
use utoipa::ToSchema;

/// An answer as it stands on the record.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(in super::super) struct DecisionOut {
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
    /// What was added to the workspace's whitelist.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    remembered: Vec<String>,
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
            remembered: decision.remembered.clone(),
        }
    }
}

/// What the agent that asked is told.
#[derive(Debug, Serialize, ToSchema)]
pub(in super::super) struct AgentView {
    #[schema(example = "appr_0123456789abcdef0123456789abcdef")]
    approval_id: String,
    #[schema(example = "pending")]
    status: String,
    /// Whether policy allowed it without asking a person. Never true of anything but a yes: some clients read nothing else.
    auto: bool,
    /// Why it ended; absent while pending.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// Unix seconds; while pending.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<i64>,
    /// The same in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at_ms: Option<i64>,
    /// Absent while pending; null when nobody answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<DecisionOut>)]
    decision: Option<Option<DecisionOut>>,
    session_id: String,
    action_type: String,
    /// Of what may run: the action that was asked for, or the command a person put in its place.
    digest: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    risk: Option<String>,
    /// Of a command: what it does, in one sentence, the worst first.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "Deletes the folder `build` and everything in it, for good.")]
    sentence: Option<String>,
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
    /// What the workspace's file comes to.
    #[serde(skip_serializing_if = "Option::is_none")]
    terminal: Option<TerminalOut>,
    /// By the way to people that it named: `not_configured` where that is not set up, and everybody is asked instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    delivery: Option<BTreeMap<String, &'static str>>,
    /// What to make of it, for a reader that has no table of reasons.
    message: &'static str,
}

#[derive(Clone, Debug, Serialize, ToSchema)]
pub(in super::super) struct ReasonOut {
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
    pub(in super::super) fn of(approval: &Approval) -> Self {
        let (request, outcome) = (&approval.request, approval.outcome.as_ref());
        Self {
            approval_id: approval.id.to_string(),
            status: approval.status().as_str().to_owned(),
            auto: is_automatic_yes(outcome),
            reason: outcome.map(|outcome| outcome.reason.as_str().to_owned()),
            expires_at: outcome.is_none().then(|| approval.terms.expires_at.as_secs_ceil()),
            expires_at_ms: outcome.is_none().then(|| approval.terms.expires_at.as_millis()),
            decision: outcome.map(|outcome| outcome.decision.as_ref().map(DecisionOut::from)),
            session_id: request.session_id.clone(),
            action_type: request.action_type.to_string(),
            digest: digest_to_run(approval),
            risk: risk_of(request.assessment.as_ref()),
            sentence: sentence_of(request.assessment.as_ref()),
            reasons: reasons_of(request.assessment.as_ref()),
            rule: rule_of(outcome),
            allow_rule_applied: rule_id_of(outcome),
            consumed_at: approval.consumed_at.map(|at| at.as_secs_ceil()),
            terminal: request.terminal.as_ref().map(|terms| TerminalOut::of(terms, approval.terms.trusted)),
            delivery: delivery_of(request),
            message: message_of(approval),
        }
    }
}

/// What a workspace's `.agents/terminal.json` comes to for this request.
#[derive(Debug, Serialize, ToSchema)]
pub(in super::super) struct TerminalOut {
    workspace: String,
    /// Whether what it allows counts: a person trusts just these bytes.
    trusted: bool,
    /// Whether a yes with `remember` can add to its whitelist: there is no file, or it is trusted as it is.
    may_remember: bool,
    /// How long the command may run where its output is captured.
    command_timeout_sec: u64,
    /// What is wrong in it.
    problems: Vec<ProblemOut>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(in super::super) struct ProblemOut {
    line: usize,
    message: String,
}

impl TerminalOut {
    fn of(terms: &TerminalTerms, trusted: bool) -> Self {
        let problem = |problem: &TerminalProblem| ProblemOut { line: problem.line, message: problem.message.clone() };
        Self {
            workspace: terms.workspace.clone(),
            trusted,
            may_remember: trusted || terms.hash.is_none(),
            command_timeout_sec: terms.command_secs(trusted),
            problems: terms.problems.iter().map(problem).collect(),
        }
    }
}

/// Says what an agent must not conclude. Silence and refusal are told apart, and neither is an error to be
/// worked around.
fn message_of(approval: &Approval) -> &'static str {
    match approval.status() {
        Status::Pending => "waiting for an answer; ask again with `wait`",
        Status::Approved => message_of_yes(approval),
        Status::Denied => "not allowed; do not do it, and do not try to reach the same effect another way",
        Status::Expired => {
            "nobody answered in time; silence is not consent, so do not do it and do not try another way"
        }
        Status::Cancelled => "cancelled by the agent that asked; not allowed",
    }
}

fn message_of_yes(approval: &Approval) -> &'static str {
    let decision = approval.outcome.as_ref().and_then(|outcome| outcome.decision.as_ref());
    match decision {
        Some(decision) if decision.replacement.is_some() => {
            "allowed with a change; do what `decision.override` says instead of what you asked for, once"
        }
        Some(decision) if decision.answer.is_some() => "answered; the answer is in `decision.answer`",
        Some(_) | None => "allowed; do exactly this, once",
    }
}

fn digest_to_run(approval: &Approval) -> String {
    let decision = approval.outcome.as_ref().and_then(|outcome| outcome.decision.as_ref());
    decision.and_then(|decision| decision.override_digest).unwrap_or(approval.request.digest).to_hex()
}

fn is_automatic_yes(outcome: Option<&Outcome>) -> bool {
    outcome.is_some_and(|outcome| outcome.status == Status::Approved && outcome.is_automatic())
}

/// By way to people: what is known not to have gone there.
fn delivery_of(request: &Request) -> Option<BTreeMap<String, &'static str>> {
    request.not_configured.map(|named| BTreeMap::from([(named.to_string(), "not_configured")]))
}

fn risk_of(assessment: Option<&Assessment>) -> Option<String> {
    assessment.map(|assessment| assessment.risk.as_str().to_owned())
}

fn sentence_of(assessment: Option<&Assessment>) -> Option<String> {
    assessment.and_then(Assessment::shown_sentence)
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
pub(in super::super) struct Record {
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
    /// Of a command: what it does, in one sentence, the worst first.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "Deletes the folder `build` and everything in it, for good.")]
    sentence: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasons: Option<Vec<ReasonOut>>,
    /// Of a command: what it does, for programs to read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<Object>)]
    effects: Vec<Effect>,
    digest: String,
    channel: String,
    #[schema(value_type = Object)]
    target: Target,
    /// By the way to people that it named: `not_configured` where that is not set up, and everybody is asked instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    delivery: Option<BTreeMap<String, &'static str>>,
    /// What it can be answered with, where it has to be one of these.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    options: Vec<String>,
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
    /// How it went, where a runner of ours ran it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    run: Option<RunEnd>,
    /// The same effect was asked for before and not allowed.
    #[serde(skip_serializing_if = "Option::is_none")]
    prior: Option<PriorOut>,
    /// What the workspace's file comes to.
    #[serde(skip_serializing_if = "Option::is_none")]
    terminal: Option<TerminalOut>,
    /// Of a command: what `allow-session` and `allow-always` would allow from then on.
    #[serde(skip_serializing_if = "Option::is_none")]
    offer: Option<OfferOut>,
    /// While it is open: the ways to allow it, the narrowest first, and what each would stand for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    answers: Vec<AnswerOut>,
    /// While it is open: three digits that a surface for people asks for before it allows something dangerous.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "042")]
    number: Option<String>,
    /// Absent in the answer to a decision: whoever decided has just seen it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    showing: Option<Showing>,
}

/// The narrowest entries that cover a command, or why there can be none.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(in super::super) enum OfferOut {
    Entries {
        entries: Vec<String>,
        wider_refused: String,
        /// Where they would hold, in words.
        #[serde(skip_serializing_if = "Option::is_none")]
        holds: Option<String>,
    },
    Refused {
        refused: String,
    },
}

impl OfferOut {
    /// `holds`: where entries would hold, in words.
    pub(in super::super) fn new(offer: Offer, holds: Option<String>) -> Self {
        match offer {
            Offer::Entries { patterns, wider_refused } => Self::Entries {
                entries: patterns.iter().map(|pattern| mask(pattern).text).collect(),
                wider_refused,
                holds: holds.map(|holds| mask(&holds).text),
            },
            Offer::Refused(refused) => Self::Refused { refused },
        }
    }
}

/// One way to allow it: `decision` or `code` as a decision takes them, and what it would stand for.
#[derive(Debug, Serialize, ToSchema)]
pub(in super::super) struct AnswerOut {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "allow-once")]
    decision: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
    words: String,
}

impl From<AnswerWords> for AnswerOut {
    fn from(answer: AnswerWords) -> Self {
        Self { decision: answer.decision, code: answer.code.map(Code::as_str), words: answer.words }
    }
}

#[derive(Debug, Serialize, ToSchema)]
pub(in super::super) struct PriorOut {
    approval_id: String,
    status: String,
    at: i64,
}

impl Record {
    pub(in super::super) fn of(approval: &Approval) -> Self {
        let request = &approval.request;
        let showing = showing(&request.action, request.assessment.as_ref(), &request.words);
        Self { showing: Some(showing), ..Self::without_showing(approval) }
    }

    pub(in super::super) fn without_showing(approval: &Approval) -> Self {
        let (request, outcome) = (&approval.request, approval.outcome.as_ref());
        let (title, preview) = title_and_preview(request);
        Self {
            approval_id: approval.id.to_string(),
            status: approval.status().as_str().to_owned(),
            reason: outcome.map(|outcome| outcome.reason.as_str().to_owned()),
            auto: is_automatic_yes(outcome),
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
            sentence: sentence_of(request.assessment.as_ref()),
            reasons: reasons_of(request.assessment.as_ref()),
            effects: request.assessment.as_ref().map(Assessment::shown_effects).unwrap_or_default(),
            digest: request.digest.to_hex(),
            channel: request.channel.to_string(),
            target: request.target.clone(),
            delivery: delivery_of(request),
            options: request.action.options().iter().map(|option| mask(option).text).collect(),
            client_id: request.requester.client_id.to_string(),
            client_name: request.requester.name.clone(),
            profile: request.requester.profile.clone(),
            door: request.requester.door.as_str(),
            decision: outcome.and_then(|outcome| outcome.decision.as_ref()).map(DecisionOut::from),
            rule: rule_of(outcome),
            allow_rule_applied: rule_id_of(outcome),
            consumed_at: approval.consumed_at.map(|at| at.as_secs_ceil()),
            run: approval.run.clone(),
            prior: approval.terms.prior.map(|prior| PriorOut {
                approval_id: prior.approval_id.to_string(),
                status: prior.status.as_str().to_owned(),
                at: prior.at.as_secs_ceil(),
            }),
            terminal: request.terminal.as_ref().map(|terms| TerminalOut::of(terms, approval.terms.trusted)),
            offer: approval
                .offer()
                .filter(|_| outcome.is_none())
                .map(|offer| OfferOut::new(offer, approval.offer_holds())),
            answers: if outcome.is_none() {
                answers(approval).into_iter().map(Into::into).collect()
            } else {
                Vec::new()
            },
            number: outcome.is_none().then(|| approval.number()),
            showing: None,
        }
    }
}

fn title_and_preview(request: &Request) -> (String, String) {
    let title = request.words.title.clone().unwrap_or_default();
    match &request.action {
        Action::Exec(exec) => (title, exec.command.clone()),
        Action::Tool { name, args, .. } => (title, format!("{name} {args}")),
        Action::Question { text, .. } => (title, text.clone()),
        Action::Custom { title, preview, .. } => (title.clone(), preview.clone()),
    }
}

/// An override as a person must see it before it counts.
#[derive(Debug, Serialize, ToSchema)]
pub(in super::super) struct OverrideOut {
    risk: String,
    reasons: Vec<ReasonOut>,
    #[schema(value_type = Object)]
    showing: Showing,
}

impl OverrideOut {
    pub(in super::super) fn of(replaced: &Request) -> Self {
        Self {
            risk: replaced.risk().as_str().to_owned(),
            reasons: reasons_of(replaced.assessment.as_ref()).unwrap_or_default(),
            showing: showing(&replaced.action, replaced.assessment.as_ref(), &AgentWords::default()),
        }
    }
}

/// What a reader gets: an agent its view, an approver the record.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(in super::super) enum View {
    Agent(Box<AgentView>),
    Record(Box<Record>),
}

#[derive(Debug, Serialize, ToSchema)]
pub(in super::super) struct Page {
    approvals: Vec<Record>,
    /// Pass it as `cursor` for the next page; null on the last.
    next_cursor: Option<String>,
}

impl Page {
    pub(in super::super) fn of(rows: &[Listed], limit: usize) -> Self {
        let next_cursor = rows.last().filter(|_| rows.len() >= limit).map(|(position, _)| position.to_string());
        Self { approvals: rows.iter().map(|(_, approval)| Record::of(approval)).collect(), next_cursor }
    }
}
