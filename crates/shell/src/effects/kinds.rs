//! What a command may do, in the words of `rules/effects/*.toml`.
//!
//! Types and their names only, so that the build script checks the files with the code that reads them at run time.

use serde::{Deserialize, Serialize};

/// Whose code runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    /// The project's own: tests, builds, hooks.
    Project,
    /// A file that is named.
    Script,
    /// A script that a project's manifest names.
    Package,
    /// Text in the command itself.
    Inline,
    /// What was fetched a moment ago.
    Downloaded,
    /// Another program.
    Program,
}

/// For whom something is installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    Project,
    User,
    System,
}

/// What becomes of a repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum History {
    /// Changes that stay here and can be undone.
    Local,
    /// Work or history that is nowhere else is thrown away.
    Discards,
    /// Others see it.
    Publishes,
    /// Others' history is replaced.
    Forced,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServiceKind {
    Container,
    Cluster,
    Cloud,
    Database,
    /// Where repositories, issues and reviews are.
    Forge,
    /// Where packages and images are.
    Registry,
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    Reads,
    Changes,
    Destroys,
}

/// One effect without its objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb<'t> {
    /// Prints, or only steers the shell itself.
    Nothing,
    Read,
    Write,
    Delete {
        tree: bool,
    },
    Run(Code),
    Install {
        manager: &'t str,
        reach: Reach,
    },
    Connect {
        sends: bool,
    },
    Repository(History),
    Service(ServiceKind, Change),
    /// Who may do what.
    Rights,
    Process,
    Settings,
    /// Something that starts by itself later.
    Persist,
    Secret,
    Unknown,
}

/// One effect as it is written: a verb, and a template for its objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written<'t> {
    pub verb: Verb<'t>,
    pub object: &'t str,
}

/// Reads `delete tree {*}; connect {1:host}`.
pub fn read(text: &str) -> impl Iterator<Item = Result<Written<'_>, String>> {
    text.split(';').map(|one| read_one(one.trim()))
}

fn read_one(text: &str) -> Result<Written<'_>, String> {
    let mut words = Words(text);
    let verb = match words.take() {
        "nothing" => Verb::Nothing,
        "read" => Verb::Read,
        "write" => Verb::Write,
        "delete" => Verb::Delete { tree: words.take_if("tree") },
        "run" => Verb::Run(words.one(&[
            ("project", Code::Project),
            ("script", Code::Script),
            ("package", Code::Package),
            ("inline", Code::Inline),
            ("downloaded", Code::Downloaded),
            ("program", Code::Program),
        ])?),
        "install" => {
            let reach = words.one(&[("project", Reach::Project), ("user", Reach::User), ("system", Reach::System)])?;
            Verb::Install { reach, manager: words.take() }
        }
        "connect" => Verb::Connect { sends: words.take_if("sends") },
        "repository" => Verb::Repository(words.one(&[
            ("local", History::Local),
            ("discards", History::Discards),
            ("publishes", History::Publishes),
            ("forced", History::Forced),
        ])?),
        "service" => {
            let kind = words.one(&[
                ("container", ServiceKind::Container),
                ("cluster", ServiceKind::Cluster),
                ("cloud", ServiceKind::Cloud),
                ("database", ServiceKind::Database),
                ("forge", ServiceKind::Forge),
                ("registry", ServiceKind::Registry),
                ("other", ServiceKind::Other),
            ])?;
            let change = [("reads", Change::Reads), ("changes", Change::Changes), ("destroys", Change::Destroys)];
            Verb::Service(kind, words.one(&change)?)
        }
        "rights" => Verb::Rights,
        "process" => Verb::Process,
        "settings" => Verb::Settings,
        "persist" => Verb::Persist,
        "secret" => Verb::Secret,
        "unknown" => Verb::Unknown,
        other => return Err(format!("`{other}` is no effect")),
    };
    Ok(Written { verb, object: words.0.trim() })
}

struct Words<'t>(&'t str);

impl<'t> Words<'t> {
    fn take(&mut self) -> &'t str {
        let (word, rest) = self.0.split_once(' ').unwrap_or((self.0, ""));
        self.0 = rest.trim_start();
        word
    }

    fn take_if(&mut self, wanted: &str) -> bool {
        let mut after = Words(self.0);
        let found = after.take() == wanted;
        if found {
            self.0 = after.0;
        }
        found
    }

    fn one<T: Copy>(&mut self, known: &[(&str, T)]) -> Result<T, String> {
        let word = self.take();
        let found = known.iter().find(|(name, _)| *name == word);
        found.map(|(_, value)| *value).ok_or_else(|| {
            let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
            format!("`{word}` is none of {}", names.join(", "))
        })
    }
}

impl Verb<'_> {
    /// Which of several a person hears of first: the higher.
    pub fn weight(self) -> u8 {
        match self {
            Self::Run(Code::Downloaded) => 95,
            Self::Service(_, Change::Destroys) => 90,
            Self::Delete { tree: true } => 88,
            Self::Repository(History::Forced) => 86,
            Self::Secret => 85,
            Self::Persist => 80,
            Self::Rights => 78,
            Self::Delete { tree: false } => 75,
            Self::Repository(History::Discards) => 74,
            Self::Repository(History::Publishes) => 70,
            Self::Connect { sends: true } => 68,
            Self::Service(_, Change::Changes) => 65,
            Self::Install { reach: Reach::System, .. } => 60,
            Self::Settings => 55,
            Self::Process => 54,
            Self::Run(Code::Inline) => 50,
            Self::Unknown => 48,
            Self::Run(Code::Script | Code::Program) => 46,
            Self::Run(Code::Package) => 45,
            Self::Run(Code::Project) => 44,
            Self::Install { .. } => 40,
            Self::Write => 35,
            Self::Connect { sends: false } => 30,
            Self::Repository(History::Local) => 25,
            Self::Service(_, Change::Reads) => 10,
            Self::Read => 5,
            Self::Nothing => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn effects_are_read_with_their_objects() {
        let all: Vec<_> = read("delete tree {*}; install project npm {*}; connect sends {1:host}; nothing").collect();
        assert_eq!(
            all,
            [
                Ok(Written { verb: Verb::Delete { tree: true }, object: "{*}" }),
                Ok(Written { verb: Verb::Install { manager: "npm", reach: Reach::Project }, object: "{*}" }),
                Ok(Written { verb: Verb::Connect { sends: true }, object: "{1:host}" }),
                Ok(Written { verb: Verb::Nothing, object: "" }),
            ]
        );
        assert!(read("service clouds reads x").next().unwrap().unwrap_err().contains("none of container"));
        assert!(read("eats {1}").next().unwrap().is_err());
    }
}
