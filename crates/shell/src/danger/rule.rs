//! Rules as they are applied, and what is known of the programs they speak of: rows of one table, which point at each
//! other, and into one pool of text, by number.
//!
//! Knows nothing of commands, so that the build script can write the built-in table as a constant.

use super::words::{Check, Dialect, Heads, Kind, ScriptCheck, Traits};
use crate::effect::{Marks, Reversibility};
use crate::pool::{Name, Slice, Text};
use std::borrow::Cow;

/// Rules and programs, the built-in ones or a user's.
#[derive(Clone, Debug)]
pub struct Table {
    pub pool: Cow<'static, str>,
    pub words: Cow<'static, [Text]>,
    pub tests: Cow<'static, [Test]>,
    pub conditions: Cow<'static, [Condition]>,
    pub rules: Cow<'static, [Rule]>,
    pub programs: Cow<'static, [Program]>,
    /// In the order of their names.
    pub rows: Cow<'static, [Row]>,
    /// Rules by number: those of rows and of places.
    pub numbers: Cow<'static, [u16]>,
    /// Rules for any program, by `Place`.
    pub places: [Numbers; 5],
}

/// A list of words.
#[derive(Clone, Copy, Debug)]
pub struct Words(pub Slice);

/// A list of tests.
#[derive(Clone, Copy, Debug)]
pub struct Tests(pub Slice);

/// A list of rules.
#[derive(Clone, Copy, Debug, Default)]
pub struct Numbers(pub Slice);

/// What is known under one program's name.
#[derive(Clone, Debug)]
pub struct Row {
    pub name: Name,
    pub program: Option<u16>,
    pub rules: Numbers,
}

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
    pub effects: Marks,
    pub reversibility: Reversibility,
}

/// Of what a rule speaks.
#[derive(Clone, Copy, Debug)]
pub enum Speaks {
    /// Of one command, when all of these conditions hold.
    OfOne(Slice),
    /// Of all commands of a text together.
    OfAll(ScriptCheck),
}

/// What one command must be. Only what a rule states is listed, so that nothing is asked for the rest.
#[derive(Clone, Copy, Debug)]
pub enum Condition {
    /// One of these paths of words comes first; they begin with these bytes.
    Subcommand(Words, Heads),
    /// None of these options is there.
    Without(Words),
    All(Words),
    Any(Words),
    /// One of these options has a value that passes.
    Value(Words, Tests),
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
    Assigns(Words, Tests),
    Code(Tests),
    Check(Check),
}

/// A test of one word or one text.
#[derive(Clone, Copy, Debug)]
pub struct Test {
    pub kind: Kind,
    /// The alternatives.
    pub words: Words,
    /// What the alternatives begin with, where that decides.
    pub heads: Heads,
}

/// What is known of a program: enough to read its arguments. The format says what each list means.
#[derive(Clone, Debug)]
pub struct Program {
    pub dialect: Dialect,
    pub takes: Words,
    pub exact: Words,
    pub operands: Option<usize>,
    pub writes: Words,
    pub reads: Option<Words>,
    pub code: Words,
    pub traits: Traits,
}

/// Other names to look under: `python` for `python3.12`, `mkfs.*` for `mkfs.ext4`.
pub fn family(name: &str) -> [Option<Cow<'_, str>>; 2] {
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.').trim_end_matches('-');
    let version = (bare.len() < name.len() && !bare.is_empty()).then_some(Cow::Borrowed(bare));
    let kind = name.split_once('.').filter(|(start, _)| !start.is_empty());
    [version, kind.map(|(start, _)| Cow::Owned(format!("{start}.*")))]
}
