//! What an engine says.

use countersign_model::Mode;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Tool, mode, mode_word};

/// An event of the engine's, as this crate writes and reads it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    Ready {
        version: String,
        session_id: Option<String>,
        session_persistence: Persistence,
        capabilities: Capabilities,
    },
    /// The call waits for an answer.
    ToolRequest {
        msg_id: String,
        call_id: String,
        tool: Tool,
        /// Ours: when silence becomes a no.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires_at_ms: Option<i64>,
    },
    /// The call runs without asking the host.
    CallAnnounced {
        msg_id: String,
        call_id: String,
        tool: Tool,
    },
    ToolRunning {
        msg_id: String,
        call_id: String,
        tool_name: String,
    },
    ToolChunk {
        msg_id: String,
        call_id: String,
        tool_name: String,
        chunk: String,
    },
    ToolResult {
        msg_id: String,
        call_id: String,
        tool_name: String,
        status: Status,
        output: String,
        #[serde(default)]
        output_type: OutputType,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        metadata: Option<Value>,
    },
    ToolCancelled {
        msg_id: String,
        call_id: String,
        reason: String,
    },
    /// Somebody has to decide, and the engine does not sit and wait for it.
    ApprovalRequired {
        call_id: String,
        resume_token: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        correlation_id: Option<String>,
        reason: String,
        context: String,
    },
    Suspend {
        reason: String,
        resume_token: String,
    },
    /// How it was decided, whichever way the answer came.
    ApprovalResume {
        resume_token: String,
        approved: bool,
    },
    ConfigChanged {
        capabilities: Capabilities,
    },
    Error {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        msg_id: Option<String>,
        error: ErrorInfo,
    },
    Info {
        #[serde(default)]
        msg_id: String,
        message: String,
    },
    Pong,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Success,
    Error,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputType {
    #[default]
    Text,
    Diff,
    Image,
}

/// What becomes of the session when the engine ends. Words of other engines are kept as they are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Persistence(pub String);

impl Persistence {
    /// Asked again in the same session, what is suspended is found where it was.
    pub fn journaled() -> Self {
        Self("journaled".to_owned())
    }

    /// It ends with the process.
    pub fn none() -> Self {
        Self("disabled_by_operator".to_owned())
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorInfo {
    pub code: String,
    pub message: String,
    pub retryable: bool,
}

/// What an engine can do, and the mode it is in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capabilities {
    pub tool_approval: bool,
    pub modes: Vec<String>,
    #[serde(serialize_with = "write_mode", deserialize_with = "mode")]
    pub current_mode: Mode,
    pub mcp: bool,
    pub thinking: bool,
    pub effort: bool,
    #[serde(default)]
    pub effort_levels: Vec<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hitl_suspend: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub streaming_tools: bool,
}

fn write_mode<S: serde::Serializer>(mode: &Mode, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(mode_word(*mode))
}

/// What a host has read.
#[derive(Clone, Debug, PartialEq)]
pub enum Received {
    Event(Box<Event>),
    /// A type that this crate does not know: its name, and whether the engine says that it may be passed over.
    Unknown {
        kind: String,
        droppable: bool,
    },
}

const KNOWN: [&str; 14] = [
    "ready",
    "tool_request",
    "call_announced",
    "tool_running",
    "tool_chunk",
    "tool_result",
    "tool_cancelled",
    "approval_required",
    "suspend",
    "approval_resume",
    "config_changed",
    "error",
    "info",
    "pong",
];

impl Event {
    /// An error with a code of ours.
    pub fn error(code: &str, message: impl Into<String>, retryable: bool) -> Self {
        Self::Error { msg_id: None, error: ErrorInfo { code: code.to_owned(), message: message.into(), retryable } }
    }

    /// One line, with its newline.
    pub fn to_line(&self) -> String {
        // Every field is a string, a number or JSON already: there is nothing that JSON could refuse.
        let mut line = serde_json::to_string(self).unwrap_or_default();
        line.push('\n');
        line
    }

    pub fn parse(line: &str) -> Result<Received, String> {
        let value: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let kind = value.get("type").and_then(Value::as_str).ok_or("an event has a `type`")?.to_owned();
        if KNOWN.contains(&kind.as_str()) {
            return Self::deserialize(value).map(|event| Received::Event(Box::new(event))).map_err(|e| e.to_string());
        }
        Ok(Received::Unknown { kind, droppable: value.get("critical") == Some(&Value::Bool(false)) })
    }
}
