//! What a host sends.

use countersign_model::Mode;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::foreign::{self, Foreign};
use super::head::Head;
use crate::framing::echo;

/// A command of the host's.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    ToolCall(ToolCall),
    ToolApprove(ToolApprove),
    ToolDeny(ToolDeny),
    ApprovalResume(ApprovalResume),
    SetMode(SetMode),
    Stop,
    Ping,
    /// Of the protocol and well formed, but for engines with a model of their own: its type.
    Foreign(String),
}

/// Ours: the host wants a tool called.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct ToolCall {
    #[serde(default)]
    pub msg_id: String,
    pub call_id: String,
    pub tool: CallTool,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct CallTool {
    pub name: String,
    #[serde(default)]
    pub args: Value,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolApprove {
    pub call_id: String,
    #[serde(default)]
    pub scope: ApprovalScope,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolDeny {
    pub call_id: String,
    #[serde(default)]
    pub reason: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ApprovalResume {
    pub resume_token: String,
    pub approved: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modifications: Option<Value>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct SetMode {
    #[serde(deserialize_with = "super::mode")]
    pub mode: Mode,
}

/// How far an approval reaches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalScope {
    /// This call.
    #[default]
    Once,
    /// This tool by its exact name; of a tool that runs commands only this command.
    Always,
    /// Commands that begin with these words, each of a line by itself.
    AlwaysPrefix { prefix: String },
}

impl Command {
    /// Reads one line. The error is what the host is told, with the line's first bytes.
    ///
    /// ```
    /// use countersign_engine::{ApprovalScope, Command};
    ///
    /// let line = r#"{"type":"tool_approve","call_id":"c-9f3a","scope":{"always_prefix":{"prefix":"cargo "}}}"#;
    /// let Ok(Command::ToolApprove(approve)) = Command::parse(line) else { panic!() };
    /// assert_eq!(approve.scope, ApprovalScope::AlwaysPrefix { prefix: "cargo ".to_owned() });
    /// assert!(Command::parse("{not-json}").unwrap_err().contains("{not-json}"));
    /// ```
    pub fn parse(line: &str) -> Result<Self, String> {
        let bad = |why: String| format!("{why}: `{}`", echo(line.as_bytes()));
        let kind = Head::parse(line).map_err(|error| bad(error.to_string()))?.kind;
        match kind.as_str() {
            "tool_call" => read(line).map(Self::ToolCall),
            "tool_approve" => read(line).map(Self::ToolApprove),
            "tool_deny" => read(line).map(Self::ToolDeny),
            "approval_resume" => read(line).map(Self::ApprovalResume),
            "set_mode" => read(line).map(Self::SetMode),
            "stop" => Ok(Self::Stop),
            "ping" => Ok(Self::Ping),
            _ => match foreign::check(&kind, line) {
                Foreign::WellFormed => Ok(Self::Foreign(kind)),
                Foreign::Malformed(why) => Err(why),
                Foreign::Unknown => Err("there is no such command".to_owned()),
            },
        }
        .map_err(bad)
    }
}

pub(super) fn read<T: DeserializeOwned>(line: &str) -> Result<T, String> {
    serde_json::from_str(line).map_err(|error| error.to_string())
}
