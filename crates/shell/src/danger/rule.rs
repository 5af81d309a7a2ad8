//! What a rule file says: rules about dangerous commands, and what is known of the programs they speak of.
//!
//! Knows the file format and nothing of commands, so that the build script can read the built-in files with the same
//! code that reads a user's at run time.

use serde::Deserialize;
use std::borrow::Cow;

pub type Text = Cow<'static, str>;
pub type List = Cow<'static, [Text]>;
pub type Tests = Cow<'static, [Test]>;

/// One danger. Everything a rule states must hold; an empty list states nothing.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Stable, snake case: the code of the reason.
    pub id: Text,
    /// One plain sentence, lower case, without a full stop.
    pub reason: Text,
    /// Base names. `mkfs.*` is any name that starts so. None: any program (with `writes`, `reads`, `assign`, `check`).
    #[serde(default)]
    pub programs: List,
    /// Alternatives, each a path of words: `stash drop|clear`, `iam create-*`, `** delete`.
    #[serde(default)]
    pub subcommand: List,
    /// Options that must all be there; `-r|--recursive` are two spellings of one.
    #[serde(default)]
    pub all: List,
    #[serde(default)]
    pub any: List,
    #[serde(default)]
    pub none: List,
    /// Options whose value is tested by `value`.
    #[serde(default)]
    pub value_of: List,
    #[serde(default)]
    pub value: Tests,
    /// Some operand (after the subcommand) passes one of these.
    #[serde(default)]
    pub operand: Tests,
    /// Some operand passes one of these as well.
    #[serde(default)]
    pub also: Tests,
    #[serde(default)]
    pub first: Tests,
    #[serde(default)]
    pub last: Tests,
    /// Some operand before the last.
    #[serde(default)]
    pub source: Tests,
    /// No operand passes any of these.
    #[serde(default)]
    pub not_operand: Tests,
    /// Some word after the program, option or not, passes.
    #[serde(default)]
    pub argument: Tests,
    /// Some file the command would write: redirections, and what its program is known to write.
    #[serde(default)]
    pub writes: Tests,
    /// Some file the command would read.
    #[serde(default)]
    pub reads: Tests,
    /// Variables that are set; a last `*` stands for any rest.
    #[serde(default)]
    pub assign: List,
    #[serde(default)]
    pub assigned: Tests,
    /// Code given in the command itself (`python -c`, `psql -c`, a here document).
    #[serde(default)]
    pub code: Tests,
    #[serde(default)]
    pub code_also: Tests,
    /// No operands at all.
    #[serde(default)]
    pub bare: bool,
    /// A test of the whole command that is written in Rust.
    #[serde(default)]
    pub check: Option<Check>,
    /// A test of all commands of the text together.
    #[serde(default)]
    pub script: Option<ScriptCheck>,
    #[serde(default, rename = "match")]
    pub matches: List,
    #[serde(default)]
    pub no_match: List,
}

/// What is known of a program: enough to read its arguments.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    pub names: List,
    #[serde(default)]
    pub dialect: Dialect,
    /// Options that take a value.
    #[serde(default)]
    pub takes: List,
    /// Long options that are no abbreviation of a longer one.
    #[serde(default)]
    pub exact: List,
    /// After so many operands, the rest is another command's.
    #[serde(default)]
    pub operands: Option<usize>,
    /// What it writes: options by name, `operands`, `last`, `second`.
    #[serde(default)]
    pub writes: List,
    /// What it reads: as above, and `rest` for all operands but the first. Absent: operands that look like paths.
    #[serde(default)]
    pub reads: Option<List>,
    /// Where code is given: options by name, `first`, `rest`, `stdin`.
    #[serde(default)]
    pub code: List,
    #[serde(default)]
    pub traits: Cow<'static, [Trait]>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// `-abc`, `--long`, `--long=value`, and abbreviations of long options.
    #[default]
    Gnu,
    /// `-long`, `-long=value`.
    Single,
    /// `key=value`.
    Keys,
    /// As Gnu, and the first word is a cluster without its dash.
    Tar,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trait {
    /// Can carry data to another machine.
    Sends,
    /// Prints or saves what another machine says.
    Downloads,
    /// Turns hidden text into other text.
    Decodes,
    /// Runs the text it reads as commands.
    Shell,
    /// Runs the text it reads as a program.
    Interpreter,
    /// Prints settings for a shell to take over.
    PrintsSettings,
    /// Words are data to it, whatever they look like.
    Prints,
    /// Prints secrets without naming a file.
    PrintsSecrets,
    /// Starts the command that follows.
    Wraps,
}

macro_rules! names {
    ($(#[$meta:meta])* $type:ident { $($variant:ident = $name:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $type { $($variant,)* }

        impl $type {
            pub fn named(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$variant),)* _ => None }
            }
        }
    };
}

names! {
    /// A test of one word or one text.
    Kind {
        Any = "any",
        Nonempty = "nonempty",
        Is = "is",
        Starts = "starts",
        Ends = "ends",
        Has = "has",
        Token = "token",
        IgnoreCase = "ignore_case",
        Under = "under",
        Name = "name",
        Outside = "outside",
        RootOrHome = "root_or_home",
        System = "system",
        Device = "device",
        GitInternal = "git_internal",
        Secret = "secret",
        Private = "private",
        UploadsPrivate = "uploads_private",
        Temporary = "temporary",
        SearchPath = "search_path",
        Url = "url",
        Remote = "remote",
        Metadata = "metadata",
        Dynamic = "dynamic",
        Output = "output",
        Embedded = "embedded",
        Glob = "glob",
        Shell = "shell",
        StartsShell = "starts_shell",
        Command = "command",
        Escape = "escape",
        GitSetting = "git_setting",
        WorldMode = "world_mode",
        SetuidMode = "setuid_mode",
        ZeroMode = "zero_mode",
        SqlDestroys = "sql_destroys",
        SqlRuns = "sql_runs",
        SedRuns = "sed_runs",
        SedWrites = "sed_writes",
        AwkRuns = "awk_runs",
        AwkWrites = "awk_writes",
        Mount = "mount",
        BroadPattern = "broad_pattern",
        ProgramName = "program_name",
        DestroysText = "destroys_text",
    }
}

names! {
    /// A test of a whole command.
    Check {
        Privileged = "privileged",
        PipeIntoShell = "pipe_into_shell",
        PipeIntoInterpreter = "pipe_into_interpreter",
        UnknownCode = "unknown_code",
        UnknownScript = "unknown_script",
        UnknownProgram = "unknown_program",
        PatternProgram = "pattern_program",
        UnknownRemoval = "unknown_removal",
        MoreRemovals = "more_removals",
        FindAll = "find_all",
        BareShell = "bare_shell",
        PlaceholderCode = "placeholder_code",
        ShellArgument = "shell_argument",
        NetworkSocket = "network_socket",
        RunsFromTemporary = "runs_from_temporary",
        PlaceholderRemoval = "placeholder_removal",
        FedByShell = "fed_by_shell",
        Piped = "piped",
        PipedUnknown = "piped_unknown",
    }
}

names! {
    /// A test of all commands together.
    ScriptCheck {
        DownloadThenRun = "download_then_run",
        DecodeThenRun = "decode_then_run",
        SecretsSent = "secrets_sent",
        EvalUnknown = "eval_unknown",
        RemoveAfterCd = "remove_after_cd",
        ForkBomb = "fork_bomb",
        Shadow = "shadow",
        PlantedCode = "planted_code",
    }
}

impl<'de> Deserialize<'de> for Check {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let name = String::deserialize(from)?;
        Self::named(&name).ok_or_else(|| serde::de::Error::custom(format!("no check is called `{name}`")))
    }
}

impl<'de> Deserialize<'de> for ScriptCheck {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let name = String::deserialize(from)?;
        Self::named(&name).ok_or_else(|| serde::de::Error::custom(format!("no script check is called `{name}`")))
    }
}

/// A named test with its argument: `root_or_home`, `is:push|pull`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Test {
    pub kind: Kind,
    /// The alternatives that stand between bars.
    pub words: List,
}

impl TryFrom<String> for Test {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let (name, argument) = text.split_once(':').unwrap_or((&text, ""));
        let kind = Kind::named(name).ok_or_else(|| format!("no test is called `{name}`"))?;
        let wants = matches!(
            kind,
            Kind::Is
                | Kind::Starts
                | Kind::Ends
                | Kind::Has
                | Kind::Token
                | Kind::IgnoreCase
                | Kind::Under
                | Kind::Name
        );
        if wants == argument.is_empty() {
            let which = if wants { "needs" } else { "takes no" };
            return Err(format!("test `{name}` {which} words after a colon"));
        }
        if wants && argument.split('|').any(str::is_empty) {
            return Err(format!("test `{name}` has an empty word between its bars"));
        }
        let words = argument.split('|').filter(|word| !word.is_empty()).map(|word| Cow::Owned(word.to_owned()));
        Ok(Self { kind, words: words.collect() })
    }
}

/// What one file holds.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    #[serde(default, rename = "rule")]
    pub rules: Vec<Rule>,
    #[serde(default, rename = "program")]
    pub programs: Vec<Program>,
}

/// A rule file that cannot be used, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleError {
    /// From 1.
    pub line: usize,
    pub message: String,
}

impl std::fmt::Display for RuleError {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for RuleError {}

impl File {
    pub fn parse(text: &str) -> Result<Self, RuleError> {
        let file: Self = toml::from_str(text).map_err(|error| RuleError {
            line: line_at(text, error.span().map_or(0, |span| span.start)),
            message: error.message().to_owned(),
        })?;
        let mut seen = std::collections::HashSet::new();
        for rule in &file.rules {
            let wrong = |message: String| RuleError { line: line_of(text, &rule.id), message };
            if rule.id.is_empty() || !rule.id.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
            {
                return Err(wrong(format!("rule id `{}` is not in snake case", rule.id)));
            }
            if !seen.insert(&rule.id) {
                return Err(wrong(format!("rule `{}` is there twice", rule.id)));
            }
            if let Some(problem) = rule.problem() {
                return Err(wrong(format!("rule `{}` {problem}", rule.id)));
            }
        }
        Ok(file)
    }
}

impl Rule {
    /// Under which key a rule without programs is found.
    pub fn place(&self) -> &'static str {
        if self.script.is_some() {
            "(script)"
        } else if !self.assign.is_empty() {
            "(assign)"
        } else if !self.writes.is_empty() {
            "(writes)"
        } else if !self.reads.is_empty() {
            "(reads)"
        } else {
            "(any)"
        }
    }

    /// Why the rule could never speak, or would speak of everything.
    fn problem(&self) -> Option<&'static str> {
        let anywhere = !(self.writes.is_empty() && self.reads.is_empty() && self.assign.is_empty())
            || self.check.is_some()
            || self.script.is_some();
        if self.programs.is_empty() && !anywhere {
            return Some("names no programs, and nothing else that says where it looks");
        }
        if self.value_of.is_empty() != self.value.is_empty() {
            return Some("needs `value_of` and `value` together");
        }
        if self.assign.is_empty() && !self.assigned.is_empty() {
            return Some("has `assigned` without `assign`");
        }
        if self.matches.is_empty() {
            return Some("needs at least one `match` example");
        }
        None
    }
}

fn line_at(text: &str, offset: usize) -> usize {
    1 + text.bytes().take(offset).filter(|byte| *byte == b'\n').count()
}

/// The line of the last rule with this id: the one that is wrong when there are two.
fn line_of(text: &str, id: &str) -> usize {
    let mut found = 1;
    for (number, line) in text.lines().enumerate() {
        if let Some(rest) = line.trim_start().strip_prefix("id")
            && let Some(value) = rest.trim_start().strip_prefix('=')
            && value.trim().trim_matches(['"', '\'']) == id
        {
            found = number + 1;
        }
    }
    found
}
