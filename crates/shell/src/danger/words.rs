//! The words of the rule format: how programs read their arguments, what is known of them, and the tests that rules
//! name. Only names; what a test means is in `test`, `checks` and `script`.

use serde::Deserialize;

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

/// A set of traits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "Vec<Trait>")]
pub struct Traits(pub u16);

impl Traits {
    pub fn has(self, which: Trait) -> bool {
        self.0 >> which as u16 & 1 == 1
    }
}

impl From<Vec<Trait>> for Traits {
    fn from(list: Vec<Trait>) -> Self {
        Self(list.into_iter().fold(0, |bits, which| bits | 1 << which as u16))
    }
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
pub struct WrittenTest {
    pub kind: Kind,
    /// The alternatives that stand between bars.
    pub words: Vec<String>,
    /// What the alternatives begin with, where that decides.
    pub heads: Heads,
}

/// A set of first bytes, to be out at once when nothing can fit: one bit for each value of the low seven bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heads(pub u128);

impl Heads {
    pub const NONE: Self = Self(0);
    pub const ANY: Self = Self(u128::MAX);

    /// Of one text; a pattern may begin with anything.
    pub fn of(text: &str) -> Self {
        match text.as_bytes().first() {
            Some(b'*' | b'?' | b'[') => Self::ANY,
            Some(byte) => Self(1 << (byte & 127)),
            None => Self::NONE,
        }
    }

    /// Of a part of a path as a command writes it: a pattern reaches no name that begins with a dot.
    pub fn of_part(text: &str) -> Self {
        match Self::of(text) {
            Self::ANY => Self(!(1 << b'.')),
            heads => heads,
        }
    }

    pub fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub fn meet(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Of the first steps of subcommand paths such as `stash drop|clear`.
    pub fn of_paths(paths: &[String]) -> Self {
        let firsts = paths.iter().flat_map(|path| path.split(' ').next().unwrap_or_default().split('|'));
        firsts.fold(Self::NONE, |heads, word| heads.or(Self::of(word)))
    }
}

impl TryFrom<String> for WrittenTest {
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
        let words = argument.split('|').filter(|word| !word.is_empty()).map(str::to_owned);
        let words: Vec<String> = words.collect();
        let heads = heads(kind, &words);
        Ok(Self { kind, words, heads })
    }
}

fn heads(kind: Kind, words: &[String]) -> Heads {
    let all = |head: fn(&str) -> Heads| words.iter().fold(Heads::NONE, |heads, word| heads.or(head(word)));
    match kind {
        Kind::Is | Kind::Starts => all(|word| Heads(1 << (word.as_bytes().first().copied().unwrap_or_default() & 127))),
        Kind::Name => all(Heads::of),
        // What comes first after the anchor; the anchor alone is everything there.
        Kind::Under => all(|entry| match entry.trim_start_matches(['~', '/']) {
            "" => Heads::ANY,
            rest => Heads::of(rest),
        }),
        _ => Heads::ANY,
    }
}
