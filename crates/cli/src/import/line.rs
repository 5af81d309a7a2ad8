//! What a line of a source asks of a policy, before anyone has looked at the policy.

use std::fmt;

use countersign_model::{Ask, Fallback, Security, ToolEffect};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// One thing that the source says.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// As the source has it, with its place where the words alone would not tell.
    pub from: String,
    pub wish: Wish,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Wish {
    /// These changes; `why` when they are less than the source meant.
    Change { changes: Vec<Change>, why: Option<String> },
    /// Not imported.
    Refuse(String),
    /// It holds already, whatever the policy.
    Keep(String),
}

#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    Allow(String),
    Deny(String),
    Tool(String, ToolEffect),
    Term(Term),
    AgentTerm(String, Term),
    AgentAllow(String, String),
}

/// A setting of a whole profile or of one agent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Term {
    Security(Security),
    Ask(Ask),
    Fallback(Fallback),
    TimeoutMs(u64),
}

impl Line {
    pub fn change(from: impl Into<String>, change: Change) -> Self {
        Self { from: from.into(), wish: Wish::Change { changes: vec![change], why: None } }
    }

    pub fn refuse(from: impl Into<String>, why: impl Into<String>) -> Self {
        Self { from: from.into(), wish: Wish::Refuse(why.into()) }
    }

    pub fn keep(from: impl Into<String>, why: impl Into<String>) -> Self {
        Self { from: from.into(), wish: Wish::Keep(why.into()) }
    }
}

impl Wish {
    pub fn taken(change: Change) -> Self {
        Self::Change { changes: vec![change], why: None }
    }

    pub fn narrowed(change: Change, why: impl Into<String>) -> Self {
        Self::Change { changes: vec![change], why: Some(why.into()) }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Allow(pattern) => write!(f, "allowlist: {pattern}"),
            Self::Deny(pattern) => write!(f, "deny: {pattern}"),
            Self::Tool(name, effect) => write!(f, "tools: {name} {}", word(effect)),
            Self::Term(term) => write!(f, "{term}"),
            Self::AgentTerm(agent, term) => write!(f, "agents.{agent}.{term}"),
            Self::AgentAllow(agent, pattern) => write!(f, "agents.{agent}.allowlist: {pattern}"),
        }
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Security(security) => write!(f, "security: {}", word(security)),
            Self::Ask(ask) => write!(f, "ask: {}", word(ask)),
            Self::Fallback(fallback) => write!(f, "askFallback: {}", word(fallback)),
            Self::TimeoutMs(ms) => write!(f, "timeoutMs: {ms}"),
        }
    }
}

/// The word that a document has for it.
pub fn word(value: &impl Serialize) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The other way: `None` for a word that no document knows.
pub fn from_word<T: DeserializeOwned>(text: &str) -> Option<T> {
    serde_json::from_value(Value::String(text.to_owned())).ok()
}
