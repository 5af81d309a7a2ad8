//! What a reason says the command does, beyond its risk, and whether that can be undone. Types and their names only,
//! so that the build script can read them from the rule files; which reason has which is in `rules/`.

use serde::Deserialize;

/// Whether what a command does can be undone. Ordered: combining two is `max`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reversibility {
    /// Nothing changes.
    #[default]
    Reversible,
    /// Changes that can be undone: a commit, a new folder.
    Recoverable,
    Unknown,
    /// What is gone, sent or published stays so.
    Irreversible,
}

/// One thing that a command may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mark {
    Writes,
    Network,
    /// Reads what nobody else should.
    Secrets,
    /// Starts a program that it is told of.
    Runs,
}

/// A set of effects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "Vec<Mark>")]
pub struct Marks(pub u8);

impl Marks {
    pub fn has(self, which: Mark) -> bool {
        self.0 >> which as u8 & 1 == 1
    }
}

impl From<Vec<Mark>> for Marks {
    fn from(list: Vec<Mark>) -> Self {
        Self(list.into_iter().fold(0, |bits, which| bits | 1 << which as u8))
    }
}
