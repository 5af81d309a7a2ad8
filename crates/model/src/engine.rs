//! What a request from the engine door brings with it: the session's mode, how far it reaches, and whether the host
//! beside it may answer.

use serde::{Deserialize, Serialize};

use crate::action::Action;
use crate::policy::Policy;
use crate::ruling::Mode;

/// Fixed when the request is made. What of it counts is policy's to say, each time it is ruled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineTerms {
    /// Absent where another program runs the tools and its mode is its own affair.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// The tool only reads, or changes a file inside the workspace.
    pub mode_covers: bool,
    /// Asked by the process that holds the store: its owner's own program.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub holds_store: bool,
    /// The tool that a command would be run by: a rule against the tool is one against the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
}

impl EngineTerms {
    /// `workspace`: the folder that the tools are confined to, absolute and without links.
    pub fn of(mode: Option<Mode>, workspace: Option<&str>, action: &Action, holds_store: bool) -> Self {
        Self { mode, mode_covers: mode_covers(workspace, action), holds_store, tool: None }
    }

    pub fn by_tool(self, tool: Option<String>) -> Self {
        Self { tool, ..self }
    }

    /// The mode that counts under this policy: never more than it allows.
    pub fn effective_mode(&self, policy: &Policy) -> Option<Mode> {
        self.mode.map(|mode| mode.min(max_mode(policy, self.holds_store)))
    }

    pub fn host_may_decide(&self, policy: &Policy) -> bool {
        host_may_decide(policy, self.holds_store)
    }
}

/// How far a session may go without asking. Where policy says nothing, only the store's own holder may go further than
/// `default`.
pub fn max_mode(policy: &Policy, holds_store: bool) -> Mode {
    policy.max_mode.unwrap_or(if holds_store { Mode::Force } else { Mode::Default })
}

/// Whether a host may answer for what its engine asks.
pub fn host_may_decide(policy: &Policy, holds_store: bool) -> bool {
    policy.host_may_decide.unwrap_or(holds_store)
}

/// By exact names: a tool that merely calls itself an editor is somebody else's. Where the file really lies is checked
/// by whoever opens it; a name that leaves the workspace by its letters alone is not covered to begin with.
fn mode_covers(workspace: Option<&str>, action: &Action) -> bool {
    let (Action::Tool { name, args, .. }, Some(workspace)) = (action, workspace) else { return false };
    let inside = |field: &str| match args.get(field) {
        None => true,
        Some(path) => path.as_str().is_some_and(|path| is_inside(workspace, path)),
    };
    match name.as_str() {
        "Write" | "Edit" | "Read" => args.get("file_path").is_some() && inside("file_path"),
        "Glob" | "Grep" => inside("path"),
        _ => false,
    }
}

fn is_inside(workspace: &str, path: &str) -> bool {
    let below = match path.strip_prefix(workspace) {
        Some(rest) if path.starts_with('/') => rest.is_empty() || rest.starts_with('/'),
        Some(_) | None => !path.starts_with('/'),
    };
    below && !path.split('/').any(|part| part == "..")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::judge;
    use crate::policy::StoredPolicy;
    use crate::request::tests::{exec, question, request};
    use crate::ruling::{AllowBy, DenyWhy, Ruling};
    use crate::time::Timestamp;
    use serde_json::json;

    fn covers(name: &str, args: serde_json::Value) -> bool {
        let action = Action::Tool { name: name.to_owned(), category: Some("edit".to_owned()), args };
        EngineTerms::of(Some(Mode::AutoEdit), Some("/w"), &action, false).mode_covers
    }

    #[test]
    fn editing_covers_files_inside_by_exact_tool_names() {
        for (name, args) in [
            ("Write", json!({"file_path": "a/b"})),
            ("Edit", json!({"file_path": "/w/a"})),
            ("Read", json!({"file_path": "/w/..a"})),
            ("Grep", json!({"pattern": "x"})),
            ("Glob", json!({"path": "/w"})),
        ] {
            assert!(covers(name, args.clone()), "{name} {args}");
        }
        for (name, args) in [
            ("Write", json!({"file_path": "../a"})),
            ("Write", json!({"file_path": "/etc/x"})),
            ("Write", json!({"file_path": "/workspace/x"})),
            ("Write", json!({"file_path": "/w/../etc/x"})),
            ("Write", json!({"file_path": 1})),
            ("Write", json!({})),
            ("write", json!({"file_path": "a"})),
            ("Writer", json!({"file_path": "a"})),
            ("Glob", json!({"path": "/"})),
            ("Bash", json!({"command": "ls"})),
        ] {
            assert!(!covers(name, args.clone()), "{name} {args}");
        }
    }

    #[test]
    fn without_a_word_of_policy_only_the_stores_holder_goes_further() {
        let silent = Policy::default();
        assert_eq!((max_mode(&silent, false), max_mode(&silent, true)), (Mode::Default, Mode::Force));
        assert!(!host_may_decide(&silent, false) && host_may_decide(&silent, true));
        let said = Policy { max_mode: Some(Mode::AutoEdit), host_may_decide: Some(false), ..Policy::default() };
        assert_eq!((max_mode(&said, false), max_mode(&said, true)), (Mode::AutoEdit, Mode::AutoEdit));
        assert!(!host_may_decide(&said, true));
    }

    fn ruling(policy: &str, request: &crate::request::Request) -> Ruling {
        let stored = StoredPolicy::from_text(policy);
        assert!(stored.policy.is_ok(), "{policy}: {:?}", stored.policy);
        judge(&stored, request, &[], false, Timestamp::from_millis(5)).ruling
    }

    #[test]
    fn an_engines_mode_counts_as_far_as_policy_says() {
        let ruled = |policy: &str, mode: Mode, action: Action, holds_store: bool| {
            let terms = EngineTerms::of(Some(mode), Some("/w"), &action, holds_store);
            ruling(policy, &request(action).from_engine(terms))
        };
        let edit =
            || Action::Tool { name: "Edit".into(), category: Some("edit".into()), args: json!({"file_path": "a"}) };
        let plain = r#"{"version":1}"#;
        // Nothing is allowed for being safe, and nobody but the store's holder goes further than the default.
        assert_eq!(ruled(plain, Mode::Default, exec("ls"), true), Ruling::Ask);
        assert_eq!(ruled(plain, Mode::AutoEdit, edit(), true), Ruling::Allow(AllowBy::Mode));
        assert_eq!(ruled(plain, Mode::AutoEdit, edit(), false), Ruling::Ask);
        assert_eq!(ruled(plain, Mode::AutoEdit, exec("ls"), true), Ruling::Ask);
        assert_eq!(ruled(plain, Mode::Force, exec("ls"), true), Ruling::Allow(AllowBy::Full));
        assert_eq!(ruled(plain, Mode::Force, exec("ls"), false), Ruling::Ask);
        assert_eq!(ruled(plain, Mode::Force, question(), true), Ruling::Ask);
        let some = r#"{"version":1,"maxMode":"auto_edit","deny":[{"pattern":"rm **"}]}"#;
        assert_eq!(ruled(some, Mode::Force, edit(), false), Ruling::Allow(AllowBy::Mode));
        assert_eq!(ruled(some, Mode::Force, exec("ls"), true), Ruling::Ask);
        // A rule for the tool that would run a command: it can forbid and ask, and never allow.
        let by_bash = |policy: &str| {
            let terms = EngineTerms::of(Some(Mode::Force), None, &exec("make"), true).by_tool(Some("Bash".into()));
            ruling(policy, &request(exec("make")).from_engine(terms))
        };
        for tool in [r#""name":"Bash""#, r#""category":"exec""#] {
            let rule = |effect: &str, max: &str| {
                format!(r#"{{"version":1,"maxMode":"{max}","tools":[{{{tool},"effect":"{effect}"}}]}}"#)
            };
            assert_eq!(by_bash(&rule("deny", "force")), Ruling::Deny(DenyWhy::Rule));
            assert_eq!(by_bash(&rule("allow", "default")), Ruling::Ask);
        }
        let all = r#"{"version":1,"maxMode":"force","deny":[{"pattern":"rm **"}]}"#;
        assert_eq!(ruled(all, Mode::Force, exec("rm x"), true), Ruling::Deny(DenyWhy::Rule));
    }
}
