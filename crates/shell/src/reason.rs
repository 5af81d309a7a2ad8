//! Why a command has its risk.

use crate::danger::Does;
use crate::word::Span;
use std::borrow::Cow;

/// Ordered: combining two risks is `max`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Risk {
    Safe,
    NeedsReview,
    Dangerous,
}

impl Risk {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Safe => "safe",
            Self::NeedsReview => "needs-review",
            Self::Dangerous => "dangerous",
        }
    }
}

/// Which layer says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    Input,
    Syntax,
    Program,
    Danger,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// Stable: `rm_recursive_root`, `unknown_option`.
    pub code: Cow<'static, str>,
    /// One plain sentence without a full stop, lower case.
    pub message: Cow<'static, str>,
    pub span: Span,
    pub layer: Layer,
    /// What this reason alone makes the command. Never `Safe`.
    pub risk: Risk,
    /// What the command does, as far as this says it.
    pub does: Does,
}
