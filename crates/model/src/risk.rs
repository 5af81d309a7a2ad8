//! What the shell engine says of a command.

use serde::{Deserialize, Serialize};

/// Ordered: combining two risks is `max`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Risk {
    Safe,
    NeedsReview,
    Dangerous,
}

/// Why a command has its risk, and which bytes of its text say so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RiskReason {
    pub code: String,
    pub message: String,
    /// Byte offsets into the command text, `start <= end`.
    pub start: usize,
    pub end: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assessment {
    pub risk: Risk,
    pub reasons: Vec<RiskReason>,
    /// Each simple command's argv. Empty: the text was not taken apart.
    pub commands: Vec<Vec<String>>,
    /// The text parsed clean and holds none of the constructs that no entry may speak for.
    pub coverable: bool,
}

impl Assessment {
    /// A command nobody has looked into: a person does.
    pub fn unexamined(command: &str) -> Self {
        Self {
            risk: Risk::NeedsReview,
            reasons: vec![RiskReason {
                code: "not_examined".to_owned(),
                message: "the command was not examined; read it before you answer".to_owned(),
                start: 0,
                end: command.len(),
            }],
            commands: Vec::new(),
            coverable: false,
        }
    }

    /// Whether a grant may speak for this command at all.
    pub fn may_be_covered(&self) -> bool {
        self.coverable && !self.commands.is_empty() && self.risk < Risk::Dangerous
    }
}
