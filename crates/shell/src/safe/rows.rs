//! What tables of programs are made of: rows that point at each other, and into one pool of text, by number.
//!
//! Knows nothing of commands or files, so that the build script can write the built-in rows as constants (nothing to
//! relocate when the program starts, nothing to parse) and a user's rows are the same, in memory.

use crate::pool::{Name, Slice, Text};
use crate::project::Projects;
use serde::Deserialize;

/// What an option takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    Nothing,
    Value,
    /// A file it reads.
    Path,
    /// A count or a size.
    Number,
    /// Two words, the second perhaps a file it reads.
    Pair,
    /// A value only when it is attached.
    Maybe,
    /// Makes the program more than a reader, and why.
    Denied(u16),
}

#[derive(Clone, Debug)]
pub struct Known {
    pub name: Text,
    pub takes: Takes,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Style {
    /// Clusters of letters, long names in full.
    #[default]
    Plain,
    /// As plain, and long names may be abbreviated.
    Gnu,
    /// One dash or two before a name, no clusters.
    Single,
    /// No options: every word is an operand.
    Raw,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operands {
    #[default]
    None,
    Text,
    /// Text, of which what looks like a path is held against the sensitive ones: it may be used as one.
    Words,
    /// Files whose contents are shown.
    Paths,
    /// Files whose names or metadata are shown.
    Names,
    /// A pattern, then files.
    Pattern,
    /// A program text, then files.
    Script,
    /// Git revisions, `revision:path` and paths.
    Revisions,
    /// Names of shell variables.
    Variables,
    /// Only `+FORMAT`.
    Format,
}

/// What a table cannot say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Check {
    #[default]
    None,
    Sed,
    Awk,
    Jq,
    Find,
    Test,
    Ps,
    Printenv,
    GitConfig,
    Kubectl,
    Tar,
    Set,
    Cd,
    Printf,
    Less,
    /// A word that only introduces further subcommands, with options of its own.
    Group,
    Lsof,
    NpmConfig,
    Sysctl,
    Binutils,
    Bat,
    Compress,
    Search,
    Fd,
    Yq,
    Gh,
    GitSettings,
    GoModules,
    /// Nothing that is named lies on another machine.
    Local,
    /// What is chosen to be shown is no environment.
    Inspect,
}

#[derive(Clone, Debug)]
pub struct Grammar {
    pub short: Slice,
    pub long: Slice,
    pub style: Style,
    /// `-5` is a number.
    pub digits: bool,
    /// `+5` or `+FORMAT` is no file.
    pub plus: bool,
    /// No option of this program does more than read, so a word that may become an option is fine.
    pub harmless: bool,
    pub always_recursive: bool,
    pub recursive: Slice,
    pub operands: Operands,
    pub max: u8,
    /// With fewer operands it starts a pager.
    pub min: u8,
    pub excess: u16,
    pub needs: Slice,
    pub needs_why: u16,
    pub operands_need: Slice,
    pub operands_why: u16,
    pub pattern_options: Slice,
    pub exact: Slice,
    pub check: Check,
    /// Whose project files decide what it does.
    pub obeys: Projects,
    /// Options whose value is the folder it works in.
    pub works_in: Slice,
}

#[derive(Clone, Debug)]
pub struct Sub {
    pub words: Slice,
    pub grammar: u16,
    /// Not 0: never a reader, and why.
    pub denial: u16,
}

#[derive(Clone, Debug)]
pub struct Program {
    pub name: Name,
    pub grammar: u16,
    pub subs: Slice,
}

/// Why something is more than reading.
#[derive(Clone, Debug)]
pub struct Denial {
    pub code: Code,
    pub reason: Text,
}

/// The stable codes that a table may give as a reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    WritesFiles,
    RunsPrograms,
    Network,
    ChangesSystem,
    ChangesRepository,
    SensitivePath,
    DumpsEnvironment,
    SetsEnvironment,
    CarriesCommand,
    Interactive,
    UnknownOption,
    UnknownSubcommand,
}

impl Code {
    pub const ALL: [Self; 12] = [
        Self::WritesFiles,
        Self::RunsPrograms,
        Self::Network,
        Self::ChangesSystem,
        Self::ChangesRepository,
        Self::SensitivePath,
        Self::DumpsEnvironment,
        Self::SetsEnvironment,
        Self::CarriesCommand,
        Self::Interactive,
        Self::UnknownOption,
        Self::UnknownSubcommand,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::WritesFiles => "writes_files",
            Self::RunsPrograms => "runs_programs",
            Self::Network => "network",
            Self::ChangesSystem => "changes_system",
            Self::ChangesRepository => "changes_repository",
            Self::SensitivePath => "sensitive_path",
            Self::DumpsEnvironment => "dumps_environment",
            Self::SetsEnvironment => "sets_environment",
            Self::CarriesCommand => "carries_command",
            Self::Interactive => "interactive",
            Self::UnknownOption => "unknown_option",
            Self::UnknownSubcommand => "unknown_subcommand",
        }
    }
}

/// A whole table. Programs are in the order of their names, denial 0 is none.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    pub pool: String,
    pub words: Vec<Text>,
    pub options: Vec<Known>,
    pub denials: Vec<Denial>,
    pub grammars: Vec<Grammar>,
    pub subs: Vec<Sub>,
    pub programs: Vec<Program>,
}
