//! An assessment as it is kept: what ruling needs of each command, and nothing of the text's inner structure. What was
//! assessed once is ruled by again after a restart, without assessing it anew.

use serde::{Deserialize, Serialize};

use crate::assess::{Assessment, Part, Resolve};
use crate::cover::{self, Coverage};
use crate::entry::{Entry, Token, Tokens};
use crate::offer::{self, Offer};
use crate::reason::Risk;
use crate::word::{Value, Word};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The whole text was understood. Of other text nobody can say what it does not run.
    pub parsed: bool,
    /// Allowlist entries may speak for it at all.
    pub coverable: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub inline_code: bool,
    /// A command obeys files of a project: it is safe only where those are.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub obeys_project: bool,
    /// The folders its commands may run in, each once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub folders: Vec<String>,
    /// They may run elsewhere too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub anywhere: bool,
    /// What the text sets for its programs, in order, without what changes nothing for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assignments: Vec<String>,
    pub commands: Vec<RecordedCommand>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedCommand {
    pub argv: Vec<RecordedWord>,
    /// More arguments come at run time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    more: bool,
    #[serde(flatten)]
    part: Part,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RecordedWord {
    Known(String),
    Glob { glob: String },
    Dynamic { dynamic: String },
}

impl Assessment {
    pub fn record(&self) -> Record {
        let commands = self.commands.iter().zip(&self.parts).map(|(simple, part)| RecordedCommand {
            argv: simple.argv.iter().map(RecordedWord::from).collect(),
            more: simple.more_arguments,
            // Ruling asks whether a command may run, not whether it could be undone.
            part: Part { asked: Default::default(), ..*part },
        });
        Record {
            parsed: self.parsed,
            coverable: self.coverable,
            inline_code: self.flags.inline_code,
            obeys_project: !self.obeyed.is_empty(),
            folders: self.folders(),
            anywhere: self.commands.iter().any(|simple| simple.runs_in.unknown),
            assignments: self.assignments(),
            commands: commands.collect(),
        }
    }
}

impl Assessment {
    fn folders(&self) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        for folder in self.commands.iter().flat_map(|simple| &simple.runs_in.folders) {
            if !all.iter().any(|known| **known == **folder) {
                all.push(folder.to_string());
            }
        }
        all
    }

    fn assignments(&self) -> Vec<String> {
        let all = self.commands.iter().flat_map(|simple| &simple.assignments);
        let steering = all.filter(|assignment| !crate::syntax::is_ordinary_name(&assignment.name));
        let text = |assignment: &crate::command::Assignment| {
            let value = assignment.value.as_ref().map(Word::picture).unwrap_or_default();
            format!("{}={value}", assignment.name)
        };
        steering.map(text).collect()
    }
}

impl Record {
    /// Whether the entries speak for all of it. `allow_safe`: commands that are safe need no entry.
    pub fn cover<'e>(
        &self,
        entries: impl Iterator<Item = &'e Entry> + Clone,
        allow_safe: bool,
        resolve: Option<&Resolve<'_>>,
    ) -> Coverage {
        if !self.coverable {
            return Coverage::Uncovered(None);
        }
        let commands = self.commands.iter().map(|command| {
            let argv: Tokens<'_> = command.argv.iter().map(RecordedWord::token).collect();
            (argv, command.more, command.part)
        });
        cover::cover_all(commands, entries, allow_safe, resolve)
    }

    /// Whether this entry speaks for one of the commands in here.
    pub fn has_a_part_for(&self, entry: &Entry, resolve: Option<&Resolve<'_>>) -> bool {
        self.commands.iter().any(|command| {
            let argv: Tokens<'_> = command.argv.iter().map(RecordedWord::token).collect();
            entry.matches(&argv, command.more, resolve)
        })
    }

    /// Whether one of these rules against something could mean a command in here. What is not known may be anything.
    pub fn may_be_any<'e>(
        &self,
        rules: impl Iterator<Item = &'e Entry> + Clone,
        resolve: Option<&Resolve<'_>>,
    ) -> bool {
        if !self.parsed {
            return rules.clone().next().is_some();
        }
        self.commands.iter().any(|command| {
            let argv: Tokens<'_> = command.argv.iter().map(RecordedWord::token).collect();
            rules.clone().any(|rule| rule.may_match(&argv, command.more, resolve))
        })
    }

    /// Whether everything in here starts known programs that are not dangerous, with nothing between the lines:
    /// what a yes to commands as such may speak for.
    pub fn is_plain(&self) -> bool {
        let dangerous = |command: &RecordedCommand| command.part.risk == Some(Risk::Dangerous);
        self.parsed
            && self.coverable
            && !self.inline_code
            && !self.commands.is_empty()
            && !self.commands.iter().any(dangerous)
    }

    /// The narrowest entries that would cover all of it next time, where the whole of it is of this risk.
    pub fn offer(&self, risk: Risk, allow_safe: bool) -> Offer {
        let commands = self.commands.iter().map(|command| (command.argv.iter().map(RecordedWord::token), command.part));
        offer::narrowest(commands, risk, self.coverable, allow_safe)
    }

    /// The program words, as written.
    pub fn programs(&self) -> impl Iterator<Item = &str> {
        self.commands.iter().filter_map(|command| match command.argv.first()? {
            RecordedWord::Known(text) => Some(text.as_str()),
            RecordedWord::Glob { .. } | RecordedWord::Dynamic { .. } => None,
        })
    }
}

impl RecordedWord {
    fn token(&self) -> Token<'_> {
        match self {
            Self::Known(text) => Token::Known(text),
            Self::Glob { glob } => Token::Glob(glob),
            Self::Dynamic { .. } => Token::Dynamic,
        }
    }

    /// As a person reads it.
    pub fn picture(&self) -> &str {
        match self {
            Self::Known(text) | Self::Glob { glob: text } | Self::Dynamic { dynamic: text } => text,
        }
    }
}

impl From<&Word> for RecordedWord {
    fn from(word: &Word) -> Self {
        match &word.value {
            Value::Known(text) => Self::Known(text.clone()),
            Value::Glob(text) => Self::Glob { glob: text.clone() },
            Value::Dynamic(_) => Self::Dynamic { dynamic: word.picture() },
        }
    }
}
