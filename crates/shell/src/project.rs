//! Projects whose files programs obey: which there are. What their files are is in `rules/projects.toml` and, compiled,
//! in `project_files`. Knows no disk: whoever runs a command looks.

use serde::Deserialize;

/// Whose files decide what a program does beside its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Project {
    Ack,
    Bundler,
    Cargo,
    Compose,
    Dotnet,
    Erlang,
    Git,
    Go,
    Gradle,
    IgnoreFiles,
    Jujutsu,
    Maven,
    Mercurial,
    Npm,
    Pnpm,
    Poetry,
    Rustup,
    Terraform,
    Uv,
    VersionManager,
    Yarn,
}

impl Project {
    pub const ALL: [Self; 21] = [
        Self::Ack,
        Self::Bundler,
        Self::Cargo,
        Self::Compose,
        Self::Dotnet,
        Self::Erlang,
        Self::Git,
        Self::Go,
        Self::Gradle,
        Self::IgnoreFiles,
        Self::Jujutsu,
        Self::Maven,
        Self::Mercurial,
        Self::Npm,
        Self::Pnpm,
        Self::Poetry,
        Self::Rustup,
        Self::Terraform,
        Self::Uv,
        Self::VersionManager,
        Self::Yarn,
    ];

    const fn bit(self) -> u32 {
        1 << self as u32
    }
}

/// A set of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Projects(pub u32);

impl Projects {
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub fn iter(self) -> impl Iterator<Item = Project> {
        Project::ALL.into_iter().filter(move |project| self.0 & project.bit() != 0)
    }

    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl FromIterator<Project> for Projects {
    fn from_iter<I: IntoIterator<Item = Project>>(all: I) -> Self {
        all.into_iter().fold(Self::default(), |set, project| Self(set.0 | project.bit()))
    }
}
