//! A rule as it is applied: conditions in the order they are tried, and what is known of the programs rules speak of.
//!
//! Knows nothing of commands, so that the build script can write the built-in rules as constants of these types.

use super::effect::{Effects, Reversibility};
use super::words::{Check, Dialect, Heads, ScriptCheck, Test, Trait};
use serde::Deserialize;
use std::borrow::Cow;

pub type Text = Cow<'static, str>;
pub type List = Cow<'static, [Text]>;
pub type Tests = Cow<'static, [Test]>;

/// One danger: everything it asks for must hold.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Stable, snake case: the code of the reason.
    pub id: Text,
    /// One plain sentence, lower case, without a full stop.
    pub reason: Text,
    pub speaks: Speaks,
    pub does: Does,
}

/// What a command does that this is said of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Does {
    pub effects: Effects,
    pub reversibility: Reversibility,
}

/// Of what a rule speaks.
#[derive(Clone, Debug)]
pub enum Speaks {
    /// Of one command, when all of these hold.
    OfOne(Cow<'static, [Condition]>),
    /// Of all commands of a text together.
    OfAll(ScriptCheck),
}

/// What one command must be. Only what a rule states is listed, so that nothing is asked for the rest.
#[derive(Clone, Debug)]
pub enum Condition {
    /// One of these paths of words comes first; they begin with these bytes.
    Subcommand(List, Heads),
    /// None of these options is there.
    Without(List),
    All(List),
    Any(List),
    /// One of these options has a value that passes.
    Value(List, Tests),
    /// No operands at all.
    Bare,
    /// Some operand passes.
    Operand(Tests),
    First(Tests),
    Last(Tests),
    /// Some operand before the last.
    Source(Tests),
    /// Some word after the program.
    Argument(Tests),
    NoOperand(Tests),
    Writes(Tests),
    Reads(Tests),
    /// Sets one of these variables to something that passes; no tests: to anything.
    Assigns(List, Tests),
    Code(Tests),
    Check(Check),
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
    pub traits: Traits,
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

/// Other names to look under: `python` for `python3.12`, `mkfs.*` for `mkfs.ext4`.
pub fn family(name: &str) -> [Option<Cow<'_, str>>; 2] {
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.').trim_end_matches('-');
    let version = (bare.len() < name.len() && !bare.is_empty()).then_some(Cow::Borrowed(bare));
    let kind = name.split_once('.').filter(|(start, _)| !start.is_empty());
    [version, kind.map(|(start, _)| Cow::Owned(format!("{start}.*")))]
}
