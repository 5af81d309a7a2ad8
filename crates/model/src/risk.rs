//! What the shell engine says of a command, as it is kept with the request.

use std::collections::BTreeMap;

pub use countersign_shell::Risk;
use countersign_shell::{Coverage, Entry, Offer, Options, Record, Reversibility, Rules};
use serde::{Deserialize, Serialize};

use crate::action::{Exec, shell_text};
use crate::binding::Binding;

/// Why a command has its risk, and which bytes of its text say so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RiskReason {
    pub code: String,
    pub message: String,
    /// Byte offsets into the command text, `start <= end`. Both 0: it is not about the text.
    pub start: usize,
    pub end: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assessment {
    pub risk: Risk,
    pub reversibility: Reversibility,
    pub reasons: Vec<RiskReason>,
    #[serde(flatten)]
    pub record: Record,
}

impl Assessment {
    /// What this command would do, by the built-in rules and the user's own.
    pub fn of(exec: &Exec, rules: Option<&Rules>) -> Self {
        let environment: Vec<(&str, &str)> = pairs(&exec.env).collect();
        let options = Options { rules, environment: &environment, ..Options::default() };
        // Never by an account of what runs where the words themselves are there.
        let assessed = match &exec.argv {
            Some(argv) => countersign_shell::assess(&shell_text(argv), &options),
            None => countersign_shell::assess(&exec.command, &options),
        };
        let assessed = Self::from(&assessed);
        match &exec.binding {
            Some(binding) => assessed.beside(binding),
            None => assessed,
        }
    }

    /// What is found around the command counts too: a repository can make a reading `git` run programs.
    fn beside(mut self, binding: &Binding) -> Self {
        for helper in &binding.helpers {
            self.risk = self.risk.max(Risk::NeedsReview);
            self.record.coverable = false;
            let (code, message) = ("repository_helper".to_owned(), helper.clone());
            self.reasons.push(RiskReason { code, message, start: 0, end: 0 });
        }
        self
    }

    /// Whether these entries speak for the command; where `allow_safe`, what is safe by itself needs none of them.
    /// `files`: which files its program words start.
    pub fn covered_by<'e>(
        &self,
        entries: impl Iterator<Item = &'e Entry> + Clone,
        allow_safe: bool,
        files: Option<&Binding>,
    ) -> bool {
        let resolve = |word: &str| files?.file_of(word).map(str::to_owned);
        let covered = |allow_safe| self.record.cover(entries.clone(), allow_safe, Some(&resolve)) == Coverage::Covered;
        // What is safe as a whole is allowed as such, unless entries alone speak for it.
        covered(allow_safe && self.risk != Risk::Safe)
    }

    /// Whether this entry speaks for a part of the command.
    pub fn has_a_part_for(&self, entry: &Entry, files: Option<&Binding>) -> bool {
        self.record.has_a_part_for(entry, Some(&|word: &str| files?.file_of(word).map(str::to_owned)))
    }

    /// Whether a yes to commands as such speaks for this one.
    pub fn is_plain(&self) -> bool {
        self.risk < Risk::Dangerous && self.record.is_plain()
    }

    /// Whether it does something that cannot be undone.
    pub fn is_irreversible(&self) -> bool {
        self.reversibility == Reversibility::Irreversible
    }

    /// Whether one of these rules against something could mean a command in here.
    pub fn may_be_any<'e>(&self, rules: impl Iterator<Item = &'e Entry> + Clone, files: Option<&Binding>) -> bool {
        self.record.may_be_any(rules, Some(&|word: &str| files?.file_of(word).map(str::to_owned)))
    }

    pub fn offer(&self, allow_safe: bool) -> Offer {
        self.record.offer(self.risk, allow_safe)
    }
}

impl From<&countersign_shell::Assessment> for Assessment {
    fn from(assessed: &countersign_shell::Assessment) -> Self {
        let reasons = assessed.reasons.iter().map(|reason| RiskReason {
            code: reason.code.to_string(),
            message: reason.message.to_string(),
            start: reason.span.start,
            end: reason.span.end,
        });
        Self {
            risk: assessed.risk,
            reversibility: assessed.reversibility,
            reasons: reasons.collect(),
            record: assessed.record(),
        }
    }
}

fn pairs(env: &BTreeMap<String, String>) -> impl Iterator<Item = (&str, &str)> {
    env.iter().map(|(name, value)| (name.as_str(), value.as_str()))
}
