//! What a text does: the effects of each of its commands with their objects, and one sentence for a person.
//!
//! Knowledge is data (`rules/effects/*.toml`): how a program is used, what that does, and how one says it. Nothing here
//! decides whether a command may run; it only says what would happen, and says so where that is not known.

mod clause;
mod format;
mod kinds;
mod objects;
mod sentence;
mod table;
mod template;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

pub(crate) use clause::does;
pub use format::{Compiler, Table};
pub use kinds::{Change, Code, History, Reach, ServiceKind};
pub use sentence::tell;

/// One thing that a command does, and to what. An empty list of objects: what it does that to is not known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "effect", rename_all = "snake_case")]
pub enum Effect {
    Read {
        paths: Vec<String>,
    },
    Write {
        paths: Vec<String>,
    },
    Delete {
        paths: Vec<String>,
        tree: bool,
    },
    Run {
        code: Code,
        what: Vec<String>,
    },
    Install {
        manager: String,
        what: Vec<String>,
        reach: Reach,
    },
    /// Hosts that are this machine itself are in `loopback`.
    Connect {
        hosts: Vec<String>,
        loopback: Vec<String>,
        sends: bool,
    },
    Repository {
        history: History,
        to: Vec<String>,
    },
    Service {
        kind: ServiceKind,
        change: Change,
        which: Vec<String>,
    },
    Rights {
        of: Vec<String>,
    },
    Process {
        which: Vec<String>,
    },
    Settings {
        which: Vec<String>,
    },
    Persist {
        which: Vec<String>,
    },
    Secret {
        which: Vec<String>,
    },
    Unknown {
        what: Vec<String>,
    },
}

/// What a whole text does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Told {
    /// What a person reads first, worst first. Empty only where there is nothing to run.
    pub sentence: String,
    /// Of all commands, in their order, each once.
    pub effects: Vec<Effect>,
}

impl Effect {
    /// What it is done to.
    pub fn objects_mut(&mut self) -> impl Iterator<Item = &mut String> {
        let (first, second): (&mut [String], &mut [String]) = match self {
            Self::Read { paths } | Self::Write { paths } | Self::Delete { paths, .. } => (paths, &mut []),
            Self::Connect { hosts, loopback, .. } => (hosts, loopback),
            Self::Repository { to, .. } => (to, &mut []),
            Self::Rights { of } => (of, &mut []),
            Self::Run { what, .. } | Self::Install { what, .. } | Self::Unknown { what } => (what, &mut []),
            Self::Service { which, .. }
            | Self::Process { which }
            | Self::Settings { which }
            | Self::Persist { which }
            | Self::Secret { which } => (which, &mut []),
        };
        first.iter_mut().chain(second)
    }
}
