//! What the two sides say: commands from the host, events from the engine. Fields that nobody knows are tolerated, as
//! the protocol says, but where it says otherwise.

mod command;
mod event;
mod foreign;
mod head;

use countersign_model::Mode;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

pub use command::{ApprovalResume, ApprovalScope, CallTool, Command, SetMode, ToolApprove, ToolCall, ToolDeny};
pub use event::{Capabilities, ErrorInfo, Event, OutputType, Persistence, Received, Status};
pub use head::Head;

/// What kind of thing a tool does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Category {
    /// Only reads.
    Info,
    /// Changes files.
    Edit,
    /// Runs commands.
    Exec,
    /// Of somebody else's making.
    Mcp,
}

/// A word that nobody knows is somebody else's kind of tool: that is never one that runs without asking.
impl<'de> Deserialize<'de> for Category {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match String::deserialize(deserializer)?.as_str() {
            "info" => Self::Info,
            "edit" => Self::Edit,
            "exec" => Self::Exec,
            _ => Self::Mcp,
        })
    }
}

impl Category {
    /// The category of a tool by its exact name. A name that only looks like a built-in one is somebody else's tool.
    pub fn of(name: &str) -> Self {
        match name {
            "Read" | "Glob" | "Grep" | "AskUserQuestion" => Self::Info,
            "Write" | "Edit" => Self::Edit,
            "Bash" | "Spawn" => Self::Exec,
            _ => Self::Mcp,
        }
    }
}

/// A tool with what it is called with, as `tool_request` and `call_announced` show it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tool {
    pub name: String,
    pub category: Category,
    pub args: Value,
    #[serde(default)]
    pub description: String,
}

impl Tool {
    /// Described by what it does and what it is about.
    pub fn new(name: &str, args: Value) -> Self {
        let about = ["command", "file_path", "pattern", "question"];
        let about = about.iter().find_map(|field| args.get(field)?.as_str()).unwrap_or_default();
        let does = if matches!(name, "Bash" | "Spawn") { "Execute" } else { name };
        let description = if about.is_empty() { name.to_owned() } else { format!("{does}: {about}") };
        Self { name: name.to_owned(), category: Category::of(name), args, description }
    }

    /// The command that it would run, if it is a tool that runs commands.
    pub fn command(&self) -> Option<&str> {
        match self.name.as_str() {
            "Bash" | "Spawn" => self.args.get("command")?.as_str(),
            _ => None,
        }
    }

    /// Whether it asks a person something, so that the answer is its output.
    pub fn is_question(&self) -> bool {
        self.name == "AskUserQuestion"
    }
}

/// A mode by any of its names. There is no default: an unknown word is none.
pub fn parse_mode(word: &str) -> Option<Mode> {
    match word {
        "default" => Some(Mode::Default),
        "auto_edit" => Some(Mode::AutoEdit),
        "force" | "yolo" | "dangerously_skip_permissions" => Some(Mode::Force),
        _ => None,
    }
}

/// The mode's own name.
pub const fn mode_word(mode: Mode) -> &'static str {
    match mode {
        Mode::Default => "default",
        Mode::AutoEdit => "auto_edit",
        Mode::Force => "force",
    }
}

fn mode<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Mode, D::Error> {
    let word = String::deserialize(deserializer)?;
    parse_mode(&word).ok_or_else(|| {
        let word: String = word.chars().take(40).collect();
        serde::de::Error::custom(format!("`{word}` is no mode; use `default`, `auto_edit` or `force`"))
    })
}
