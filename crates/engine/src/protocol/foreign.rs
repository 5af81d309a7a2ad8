//! Commands that the protocol has and an engine without a model of its own does not take. Their form is checked all the
//! same: what is malformed is an error, what is well formed is merely not supported.

use serde::Deserialize;
use serde_json::Value;

use super::command::read;

const MAX_REQUEST_ID: usize = 128;

pub(super) enum Foreign {
    WellFormed,
    Malformed(String),
    Unknown,
}

pub(super) fn check(kind: &str, line: &str) -> Foreign {
    let checked = match kind {
        "message" => read::<Message>(line).map(drop),
        "init_history" => read::<InitHistory>(line).map(drop),
        "set_config" => read::<SetConfig>(line).map(drop),
        "continue_with_budget" => read::<ContinueWithBudget>(line).and_then(|budget| budget.check()),
        "resolve_interrupted_approval" => read::<ResolveInterruptedApproval>(line).map(drop),
        "resolve_unknown_tool_effect" => read::<ResolveUnknownToolEffect>(line).map(drop),
        "grant_path" => read::<GrantPath>(line).map(drop),
        _ if kind.starts_with("resolve_") => read::<serde_json::Map<String, Value>>(line).map(drop),
        _ => return Foreign::Unknown,
    };
    checked.map_or_else(Foreign::Malformed, |()| Foreign::WellFormed)
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "read to check its form")]
struct Message {
    msg_id: String,
    content: String,
    #[serde(default)]
    files: Vec<String>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "read to check its form")]
struct InitHistory {
    text: String,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "read to check its form")]
struct SetConfig {
    model: Option<String>,
    effort: Option<String>,
    thinking: Option<String>,
    thinking_budget: Option<u64>,
    compaction: Option<String>,
}

/// It gives authority to spend, so nothing in it is taken on trust: no unknown field, no odd number.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ContinueWithBudget {
    #[serde(rename = "type")]
    _kind: String,
    request_id: String,
    additional_tokens: Option<u64>,
    additional_cost_usd: Option<f64>,
}

impl ContinueWithBudget {
    fn check(&self) -> Result<(), String> {
        if self.request_id.trim().is_empty() || self.request_id.len() > MAX_REQUEST_ID {
            return Err(format!("`request_id` is 1 to {MAX_REQUEST_ID} bytes and not blank"));
        }
        if self.additional_tokens.is_none() && self.additional_cost_usd.is_none() {
            return Err("it gives neither `additional_tokens` nor `additional_cost_usd`".to_owned());
        }
        if self.additional_cost_usd.is_some_and(|cost| !cost.is_finite() || cost < 0.0) {
            return Err("`additional_cost_usd` is a number from 0 on".to_owned());
        }
        Ok(())
    }
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "read to check its form")]
struct Cursor {
    journal_digest: String,
    journal_sequence: u64,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "read to check its form")]
struct ResolveInterruptedApproval {
    request_id: String,
    session_id: String,
    turn_id: String,
    approval_id: String,
    decision: String,
    answer: Option<String>,
    cursor: Cursor,
    recovery_version: u64,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "read to check its form")]
struct ResolveUnknownToolEffect {
    session_id: String,
    turn_id: String,
    tool_execution_id: String,
    operator_id: String,
    outcome: String,
    cursor: Cursor,
    recovery_version: u64,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "read to check its form")]
struct GrantPath {
    path: String,
}
