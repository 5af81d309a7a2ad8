//! The policy document: one per profile, versioned by the hash of its stored text.
//!
//! Reading is strict: a field nobody knows is refused by name, since a misspelt restriction is none.

use std::collections::BTreeMap;

use countersign_shell::Entry;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::canonical::{Digest, sha256};
use crate::ruling::{Ask, Fallback, Mode, Security};

const MAX_DOCUMENT_BYTES: usize = 1024 * 1024;
const MAX_ENTRIES: usize = 10_000;
const MAX_PATTERN_BYTES: usize = 4096;
const MAX_TIMEOUT_MS: u64 = 86_400_000;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Policy {
    pub version: u32,
    #[serde(default)]
    pub security: Security,
    #[serde(default)]
    pub ask: Ask,
    /// How long a person has; absent: what the door's own document says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    #[serde(default)]
    pub ask_fallback: Fallback,
    #[serde(default = "yes")]
    pub allow_safe: bool,
    /// Where nobody looked at a project's files, commands that obey them count as if those were harmless.
    #[serde(default = "yes")]
    pub assume_project_files_clean: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowlist: Vec<AllowEntry>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<DenyEntry>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolRule>,
    /// Absent: every approver and admin. Empty: nobody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approvers: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_mode: Option<Mode>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_may_decide: Option<bool>,
    #[serde(default, skip_serializing_if = "Flood::is_off")]
    pub flood: Flood,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub agents: BTreeMap<String, Overlay>,
    /// Kept for clients of the gateway's document; nothing here goes by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket: Option<SocketEntry>,
}

/// Where another program's socket is, as the gateway's document has it. Of its token only the hash is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SocketEntry {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_hash: Option<Digest>,
}

/// What one agent id changes. The id is a caller's claim, so the overlay only ever makes it stricter.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Overlay {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub security: Option<Security>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask: Option<Ask>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask_fallback: Option<Fallback>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow_safe: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowlist: Option<Vec<AllowEntry>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<DenyEntry>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolRule>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AllowEntry {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    pub pattern: Entry,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arg_pattern: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used_command: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_resolved_path: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DenyEntry {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    pub pattern: Entry,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolEffect {
    Allow,
    Ask,
    Deny,
}

/// By exact tool name (or action type), or by category: exactly one of the two.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolRule {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    pub effect: ToolEffect,
}

/// Limits on how often people may be asked. All off unless set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Flood {
    /// Questions of one client open at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_pending: Option<u64>,
    /// Questions of one client in any hour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asks_per_hour: Option<u64>,
    /// The same action asked again while it is open is the same question.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub coalesce: bool,
    /// After this many of a client's questions in a row ran out unanswered…
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignored: Option<u64>,
    /// …it may not ask for this long (default ten minutes).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cooldown_ms: Option<u64>,
}

impl Flood {
    pub const DEFAULT_COOLDOWN_MS: u64 = 600_000;

    pub fn is_off(&self) -> bool {
        *self == Self::default()
    }
}

fn yes() -> bool {
    true
}

#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum PolicyError {
    #[error("the policy does not parse: {0}")]
    Syntax(String),
    #[error("the policy is {0} bytes, over the {MAX_DOCUMENT_BYTES} allowed")]
    TooLarge(usize),
    #[error("policy `version` is {0}, expected 1")]
    Version(u32),
    #[error("`{0}` must be between 1 and {MAX_TIMEOUT_MS} ms")]
    Timeout(String),
    #[error("`{0}` has more than {MAX_ENTRIES} entries")]
    TooMany(String),
    #[error("`{0}`: a pattern is 1 to {MAX_PATTERN_BYTES} bytes without control characters")]
    Pattern(String),
    #[error("`{0}`: give exactly one of `name` and `category`")]
    ToolRule(String),
}

impl Default for Policy {
    /// What rules when a profile has no document.
    fn default() -> Self {
        Self {
            version: 1,
            security: Security::default(),
            ask: Ask::default(),
            timeout_ms: None,
            ask_fallback: Fallback::default(),
            allow_safe: true,
            assume_project_files_clean: true,
            allowlist: Vec::new(),
            deny: Vec::new(),
            tools: Vec::new(),
            approvers: None,
            max_mode: None,
            host_may_decide: None,
            flood: Flood::default(),
            agents: BTreeMap::new(),
            socket: None,
        }
    }
}

impl Policy {
    pub fn parse(text: &str) -> Result<Self, PolicyError> {
        if text.len() > MAX_DOCUMENT_BYTES {
            return Err(PolicyError::TooLarge(text.len()));
        }
        let policy: Self = serde_json::from_str(text).map_err(|error| PolicyError::Syntax(error.to_string()))?;
        policy.check()?;
        Ok(policy)
    }

    /// The text that is stored and hashed.
    pub fn to_text(&self) -> String {
        // Every field is a string, a number or a list of such: there is nothing that JSON could refuse.
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    pub fn check(&self) -> Result<(), PolicyError> {
        if self.version != 1 {
            return Err(PolicyError::Version(self.version));
        }
        check_timeout("timeoutMs", self.timeout_ms)?;
        check_patterns("allowlist", self.allowlist.iter().map(|entry| &entry.pattern))?;
        check_patterns("deny", self.deny.iter().map(|entry| &entry.pattern))?;
        check_tools("tools", &self.tools)?;
        if self.agents.len() > MAX_ENTRIES {
            return Err(PolicyError::TooMany("agents".to_owned()));
        }
        for (agent, overlay) in &self.agents {
            let at = |field: &str| format!("agents.{agent}.{field}");
            check_timeout(&at("timeoutMs"), overlay.timeout_ms)?;
            let allowlist = overlay.allowlist.iter().flatten();
            check_patterns(&at("allowlist"), allowlist.map(|entry| &entry.pattern))?;
            check_patterns(&at("deny"), overlay.deny.iter().map(|entry| &entry.pattern))?;
            check_tools(&at("tools"), &overlay.tools)?;
        }
        Ok(())
    }
}

fn check_timeout(field: &str, timeout_ms: Option<u64>) -> Result<(), PolicyError> {
    match timeout_ms {
        Some(ms) if ms == 0 || ms > MAX_TIMEOUT_MS => Err(PolicyError::Timeout(field.to_owned())),
        Some(_) | None => Ok(()),
    }
}

fn check_patterns<'a>(field: &str, patterns: impl Iterator<Item = &'a Entry>) -> Result<(), PolicyError> {
    for (index, pattern) in patterns.enumerate() {
        if index >= MAX_ENTRIES {
            return Err(PolicyError::TooMany(field.to_owned()));
        }
        let text = &pattern.pattern;
        let bad = text.len() > MAX_PATTERN_BYTES || text.chars().any(char::is_control);
        if bad {
            return Err(PolicyError::Pattern(format!("{field}[{index}]")));
        }
    }
    Ok(())
}

fn check_tools(field: &str, rules: &[ToolRule]) -> Result<(), PolicyError> {
    if rules.len() > MAX_ENTRIES {
        return Err(PolicyError::TooMany(field.to_owned()));
    }
    for (index, rule) in rules.iter().enumerate() {
        if rule.name.is_some() == rule.category.is_some() {
            return Err(PolicyError::ToolRule(format!("{field}[{index}]")));
        }
    }
    Ok(())
}

/// A profile's document as the store has it. What does not parse is kept as an error, so that it rules Deny
/// instead of being taken for no policy at all.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredPolicy {
    pub exists: bool,
    pub hash: Digest,
    pub policy: Result<Policy, PolicyError>,
}

impl StoredPolicy {
    pub fn absent() -> Self {
        Self { exists: false, hash: sha256(b""), policy: Ok(Policy::default()) }
    }

    pub fn from_text(text: &str) -> Self {
        Self { exists: true, hash: sha256(text.as_bytes()), policy: Policy::parse(text) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_document_has_the_defaults() {
        assert_eq!(Policy::parse(r#"{"version":1}"#), Ok(Policy::default()));
    }

    #[test]
    fn unknown_fields_are_refused_by_name() {
        for (text, name) in [
            (r#"{"version":1,"securty":"deny"}"#, "securty"),
            (r#"{"version":1,"deny":[{"pattern":"rm **","why":"x"}]}"#, "why"),
            (r#"{"version":1,"agents":{"a":{"approvers":[]}}}"#, "approvers"),
        ] {
            let Err(PolicyError::Syntax(message)) = Policy::parse(text) else { panic!("{text}") };
            assert!(message.contains(name) && message.contains("line"), "{message}");
        }
    }

    #[test]
    fn values_out_of_range_are_refused_with_their_place() {
        for (text, expected) in [
            (r#"{"version":2}"#, PolicyError::Version(2)),
            (r#"{"version":1,"timeoutMs":0}"#, PolicyError::Timeout("timeoutMs".into())),
            (r#"{"version":1,"deny":[{"pattern":"a"},{"pattern":"a\u0007"}]}"#, PolicyError::Pattern("deny[1]".into())),
            (r#"{"version":1,"tools":[{"effect":"deny"}]}"#, PolicyError::ToolRule("tools[0]".into())),
            (
                r#"{"version":1,"agents":{"x":{"timeoutMs":99999999999}}}"#,
                PolicyError::Timeout("agents.x.timeoutMs".into()),
            ),
        ] {
            assert_eq!(Policy::parse(text), Err(expected), "{text}");
        }
    }

    #[test]
    fn a_pattern_that_means_nothing_is_refused_with_its_line() {
        for pattern in [" ", "", "git 'log", "a\\u0000"] {
            let text = format!(r#"{{"version":1,"allowlist":[{{"pattern":"{pattern}"}}]}}"#);
            let Err(PolicyError::Syntax(message)) = Policy::parse(&text) else { panic!("{text}") };
            assert!(message.contains("is no entry") && message.contains("line 1"), "{message}");
        }
    }

    #[test]
    fn what_was_written_reads_back_the_same() {
        let text = r#"{"version":1,"security":"full","ask":"always","timeoutMs":5000,"askFallback":"allowlist",
            "allowSafe":false,"allowlist":[{"id":"a","pattern":"git **"}],"deny":[{"pattern":"rm **","reason":"no"}],
            "tools":[{"category":"edit","effect":"ask"}],"approvers":["ann"],"maxMode":"auto_edit","hostMayDecide":true,
            "flood":{"maxPending":3,"coalesce":true},"agents":{"x":{"security":"deny"}}}"#;
        let policy = Policy::parse(text).unwrap();
        assert_eq!(Policy::parse(&policy.to_text()), Ok(policy));
    }

    #[test]
    fn a_document_that_does_not_parse_is_no_empty_policy() {
        let stored = StoredPolicy::from_text("{");
        assert!(stored.exists && stored.policy.is_err());
    }
}
