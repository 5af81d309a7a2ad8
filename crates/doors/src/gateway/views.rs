//! Approvals and grants as this protocol writes them.

use countersign_gate::{ShownIds, Told};
use countersign_model::{Action, Approval, Assessment, Grant, GrantKind, Reason, Request, Status, escape_line, mask};
use serde_json::{Map, Value, json};

use crate::words::{allowed_decisions, command_text, decision_word, told_reason, told_word};

/// What a requester says of where its request belongs, under the names it sent them by.
pub(super) const HOST: &str = "host";
pub(super) const NODE_ID: &str = "nodeId";
pub(super) const RESOLVED_PATH: &str = "resolvedPath";
pub(super) const SESSION_KEY: &str = "sessionKey";
pub(super) const SESSION_ID: &str = "sessionId";
pub(super) const RUN_ID: &str = "runId";
pub(super) const TOOL_CALL_ID: &str = "toolCallId";

const PREVIEW_CHARS: usize = 200;
const MAX_GRANT_COMMAND_CHARS: usize = 512;

pub(super) fn is_exec(approval: &Approval) -> bool {
    matches!(approval.request.action, Action::Exec(_))
}

fn label<'r>(request: &'r Request, name: &str) -> Option<&'r str> {
    request.words.labels.get(name).map(String::as_str)
}

/// The request as its client sent it, as far as a person may see it.
fn request(request: &Request) -> Value {
    let (cwd, words) = match &request.action {
        // Word by word a secret could not be told from its neighbours: where there is one, the text alone is sent.
        Action::Exec(exec) => {
            (exec.cwd.as_deref(), exec.argv.as_ref().filter(|_| command_text(request) == exec.command))
        }
        Action::Tool { .. } | Action::Question { .. } | Action::Custom { .. } => (None, None),
    };
    let ask = request.words.ask.clone().map_or_else(|| json!(request.terms.ask), Value::String);
    let mut echo = json!({
        "command": command_text(request),
        "cwd": cwd,
        "host": label(request, HOST),
        "security": request.terms.security,
        "ask": ask,
        "agentId": request.words.agent_id,
        "resolvedPath": label(request, RESOLVED_PATH),
        "sessionKey": label(request, SESSION_KEY),
    });
    let mut also = |name: &str, value: Option<Value>| {
        if let (Some(fields), Some(value)) = (echo.as_object_mut(), value) {
            fields.insert(name.to_owned(), value);
        }
    };
    for name in [NODE_ID, SESSION_ID, RUN_ID, TOOL_CALL_ID] {
        also(name, label(request, name).map(Value::from));
    }
    also("warningText", request.words.title.clone().map(Value::from));
    also("commandArgv", words.map(|argv| json!(argv)));
    echo
}

/// The id to answer by, the gate's own, and what the requester calls it where it does.
fn ids(ids: &ShownIds, approval: &Approval) -> Map<String, Value> {
    let mut fields = Map::new();
    fields.insert("id".to_owned(), json!(ids.of(approval)));
    fields.insert("approvalId".to_owned(), json!(approval.id));
    if let Some(alias) = &approval.request.alias {
        fields.insert("callerId".to_owned(), json!(alias));
    }
    fields
}

fn base(shown: &ShownIds, approval: &Approval) -> Map<String, Value> {
    let mut fields = ids(shown, approval);
    fields.insert("createdAtMs".to_owned(), json!(approval.terms.created_at.as_millis()));
    fields.insert("expiresAtMs".to_owned(), json!(approval.terms.expires_at.as_millis()));
    fields
}

fn with(mut fields: Map<String, Value>, more: Value) -> Value {
    if let Value::Object(more) = more {
        fields.extend(more);
    }
    Value::Object(fields)
}

/// The first answer of two.
pub(super) fn accepted(ids: &ShownIds, approval: &Approval) -> Value {
    with(base(ids, approval), json!({ "status": "accepted" }))
}

/// The answer at the end. What was put in a command's place is told, and is no yes to the command.
pub(super) fn final_answer(ids: &ShownIds, told: &Told) -> Value {
    let approval = &told.approval;
    let mut fields = base(ids, approval);
    fields.insert("decision".to_owned(), json!(told_word(told)));
    fields.insert("reason".to_owned(), json!(told_reason(told).map(Reason::as_str)));
    let usable = approval.outcome.as_ref().filter(|_| told.unusable.is_none());
    let decision = usable.and_then(|outcome| outcome.decision.as_ref());
    if let Some(replacement) = decision.and_then(|decision| decision.replacement.as_ref()) {
        fields.insert("override".to_owned(), json!(replacement));
    }
    if let Some(note) = decision.and_then(|decision| decision.note.as_ref()) {
        fields.insert("note".to_owned(), json!(note));
    }
    Value::Object(fields)
}

pub(super) fn listed(ids: &ShownIds, approval: &Approval) -> Value {
    with(base(ids, approval), json!({ "request": request(&approval.request) }))
}

/// `exec.approval.requested`: what is listed, with what the engine says of it.
pub(super) fn requested(ids: &ShownIds, approval: &Approval) -> Value {
    let assessment = approval.request.assessment.as_ref();
    let more = json!({
        "request": request(&approval.request),
        "riskLevel": approval.request.risk().as_str(),
        "riskReasons": assessment.map(Assessment::said).unwrap_or_default(),
        "allowedDecisions": allowed_decisions(approval),
    });
    with(base(ids, approval), more)
}

/// `exec.approval.resolved`. Who answered is the key's or person's own name, never what a client calls itself.
pub(super) fn resolved(shown: &ShownIds, approval: &Approval) -> Value {
    let outcome = approval.outcome.as_ref();
    let by = outcome.and_then(|outcome| outcome.decision.as_ref()).map(|decision| decision.by.as_str());
    let more = json!({
        "decision": decision_word(approval),
        "resolvedBy": by,
        "ts": outcome.map(|outcome| outcome.at.as_millis()),
        "request": request(&approval.request),
        "reason": outcome.map(|outcome| outcome.reason.as_str()),
    });
    with(ids(shown, approval), more)
}

/// `exec.approval.get`.
pub(super) fn pending(shown: &ShownIds, approval: &Approval) -> Value {
    let more = json!({
        "commandText": command_text(&approval.request),
        "commandPreview": preview(&approval.request),
        "allowedDecisions": allowed_decisions(approval),
        "host": label(&approval.request, HOST),
        "nodeId": label(&approval.request, NODE_ID),
        "agentId": approval.request.words.agent_id,
        "expiresAtMs": approval.terms.expires_at.as_millis(),
    });
    with(ids(shown, approval), more)
}

/// One line of it.
fn preview(request: &Request) -> String {
    let text = command_text(request);
    let line = escape_line(&text);
    if line.chars().count() <= PREVIEW_CHARS {
        return line;
    }
    let cut: String = line.chars().take(PREVIEW_CHARS).collect();
    format!("{cut}…")
}

/// `approval.*`: what it is, and how it ended.
pub(super) fn snapshot(shown: &ShownIds, approval: &Approval) -> Value {
    let request = &approval.request;
    let status = match approval.status() {
        Status::Pending => "pending",
        Status::Approved => "allowed",
        Status::Denied => "denied",
        Status::Expired => "expired",
        Status::Cancelled => "cancelled",
    };
    let mut fields = json!({
        "urlPath": format!("/approvals/{}", approval.id),
        "createdAtMs": approval.terms.created_at.as_millis(),
        "expiresAtMs": approval.terms.expires_at.as_millis(),
        "presentation": {
            "kind": "exec",
            "commandText": command_text(request),
            "commandPreview": preview(request),
            "warningText": request.words.title,
            "host": label(request, HOST),
            "nodeId": label(request, NODE_ID),
            "agentId": request.words.agent_id,
            "allowedDecisions": allowed_decisions(approval),
        },
        "status": status,
    });
    if let (Some(outcome), Some(map)) = (&approval.outcome, fields.as_object_mut()) {
        map.insert("resolvedAtMs".to_owned(), json!(outcome.at.as_millis()));
        map.insert("reason".to_owned(), json!(outcome.reason.as_str()));
        if let Some(word) = decision_word(approval).filter(|_| outcome.reason != Reason::Expired) {
            map.insert("decision".to_owned(), json!(word));
        }
    }
    // The published client takes no other field here; the gate's own id ends the path.
    with(Map::from_iter([("id".to_owned(), json!(shown.of(approval)))]), fields)
}

pub(super) fn grant(grant: &Grant) -> Value {
    let command = match &grant.kind {
        GrantKind::Command { entries } => {
            entries.iter().map(|entry| entry.pattern.as_str()).collect::<Vec<_>>().join(" ; ")
        }
        GrantKind::Tool { name } => format!("tool {name}"),
        GrantKind::ActionType { action_type, tool: Some(tool) } => format!("{action_type} by tool {tool}"),
        GrantKind::ActionType { action_type, tool: None } => format!("every {action_type}"),
        GrantKind::Exact { digest } => format!("exactly {}", digest.to_hex()),
    };
    let command: String = mask(&command).text.chars().take(MAX_GRANT_COMMAND_CHARS).collect();
    json!({
        "grantId": grant.id,
        "mintedByApprovalId": grant.approval_id,
        "agentId": grant.scope.client_id,
        "command": escape_line(&command),
        "cwd": null,
        "profile": grant.scope.profile,
        "sessionKey": grant.scope.session,
        "createdAtMs": grant.created_at.as_millis(),
        "createdBy": grant.created_by,
        "expiresAtMs": grant.expires_at.map(|at| at.as_millis()),
        "revokedAtMs": grant.revoked_at.map(|at| at.as_millis()),
    })
}
