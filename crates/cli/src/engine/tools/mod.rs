//! The tools: what each takes, and what comes of it. Which of them may run is never decided here.

mod edit;
mod find;
mod read;
mod run;

use countersign_engine::{OutputType, scrub};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub use run::{Streams, finish, prepare};

use super::confine::Confined;

/// The most that a result says; escaped as JSON it still fits in a line.
pub const MAX_OUTPUT: usize = 1024 * 1024;

/// What a tool says at its end.
#[derive(Debug)]
pub struct Said {
    pub success: bool,
    pub output: String,
    pub output_type: OutputType,
    pub metadata: Option<Value>,
}

impl Said {
    fn text(output: String) -> Self {
        Self { success: true, output, output_type: OutputType::Text, metadata: None }
    }

    pub fn failed(why: impl Into<String>) -> Self {
        Self { success: false, ..Self::text(why.into()) }
    }

    /// Without secrets of ours, and no longer than fits.
    pub fn fit(mut self) -> Self {
        self.output = scrub(&self.output);
        if self.output.len() > MAX_OUTPUT {
            self.output.truncate(self.output.floor_char_boundary(MAX_OUTPUT));
            self.output.push_str("\n[the rest is left out]");
        }
        self
    }
}

/// A call that was understood.
#[derive(Clone, Debug)]
pub enum Call {
    Read(ReadArgs),
    Glob(GlobArgs),
    Grep(GrepArgs),
    Write(WriteArgs),
    Edit(EditArgs),
    Bash(BashArgs),
    Spawn(SpawnArgs),
    Ask(AskArgs),
}

#[derive(Clone, Debug, Deserialize)]
pub struct ReadArgs {
    file_path: String,
    /// The first line, from 1.
    offset: Option<u64>,
    /// How many lines.
    limit: Option<u64>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct GlobArgs {
    pattern: String,
    path: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct GrepArgs {
    pattern: String,
    path: Option<String>,
    glob: Option<String>,
    #[serde(default)]
    output_mode: GrepMode,
    #[serde(default, rename = "-i")]
    ignore_case: bool,
    #[serde(default, rename = "-n")]
    line_numbers: bool,
    head_limit: Option<usize>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GrepMode {
    #[default]
    FilesWithMatches,
    Content,
    Count,
}

#[derive(Clone, Debug, Deserialize)]
pub struct WriteArgs {
    file_path: String,
    content: String,
}

#[derive(Clone, Debug, Deserialize)]
pub struct EditArgs {
    file_path: String,
    old_string: String,
    new_string: String,
    #[serde(default)]
    replace_all: bool,
}

#[derive(Clone, Debug, Deserialize)]
pub struct BashArgs {
    pub command: String,
    /// In milliseconds.
    pub timeout: Option<u64>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct SpawnArgs {
    pub command: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AskArgs {
    pub question: String,
    #[serde(default)]
    pub options: Vec<String>,
    #[serde(default)]
    pub multi_select: bool,
}

impl Call {
    /// The tool by its exact name, with arguments as it takes them.
    pub fn read(name: &str, args: &Value) -> Result<Self, String> {
        match name {
            "Read" => take(name, args).map(Self::Read),
            "Glob" => take(name, args).map(Self::Glob),
            "Grep" => take(name, args).map(Self::Grep),
            "Write" => take(name, args).map(Self::Write),
            "Edit" => take(name, args).map(Self::Edit),
            "Bash" => take(name, args).map(Self::Bash),
            "Spawn" => take(name, args).map(Self::Spawn),
            "AskUserQuestion" => take(name, args).map(Self::Ask),
            _ => Err(format!("there is no tool `{}`", name.chars().take(64).collect::<String>())),
        }
    }

    /// The command that it would run.
    pub fn command(&self) -> Option<&str> {
        match self {
            Self::Bash(args) => Some(&args.command),
            Self::Spawn(args) => Some(&args.command),
            Self::Read(_) | Self::Glob(_) | Self::Grep(_) | Self::Write(_) | Self::Edit(_) | Self::Ask(_) => None,
        }
    }

    /// Does what a file tool does; the others are not done this way.
    pub fn on_files(&self, workspace: &Confined) -> Said {
        let said = match self {
            Self::Read(args) => read::read(workspace, args).map(Said::text),
            Self::Glob(args) => find::glob(workspace, args).map(Said::text),
            Self::Grep(args) => find::grep(workspace, args).map(Said::text),
            Self::Write(args) => edit::write(workspace, args).map(Said::text),
            Self::Edit(args) => {
                edit::edit(workspace, args).map(|diff| Said { output_type: OutputType::Diff, ..Said::text(diff) })
            }
            Self::Bash(_) | Self::Spawn(_) | Self::Ask(_) => Err("this tool does not work on files".to_owned()),
        };
        said.unwrap_or_else(Said::failed)
    }
}

fn take<T: DeserializeOwned>(name: &str, args: &Value) -> Result<T, String> {
    if !args.is_object() {
        return Err(format!("`args` of `{name}` is an object with its arguments"));
    }
    serde_json::from_value(args.clone()).map_err(|error| format!("`{name}` cannot be called so: {error}"))
}
