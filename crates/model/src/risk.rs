//! What the shell engine says of a command, as it is kept with the request.

use std::collections::BTreeMap;

pub use countersign_shell::Risk;
use countersign_shell::{
    Coverage, Effect, Entry, Location, Offer, Options, Record, Reversibility, Rules, Told, secret_path, tells,
};
use serde::{Deserialize, Serialize};

use crate::action::{Exec, shell_text};
use crate::binding::Binding;
use crate::render::line;

/// As many reasons as a person reads.
const MAX_TOLD: usize = 3;

/// Why a command has its risk, and which bytes of its text say so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RiskReason {
    pub code: String,
    pub message: String,
    /// Byte offsets into the command text, `start <= end`. Both 0: it is not about the text.
    pub start: usize,
    pub end: usize,
    /// What this alone makes the command.
    #[serde(default = "needs_review")]
    pub risk: Risk,
}

fn needs_review() -> Risk {
    Risk::NeedsReview
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assessment {
    pub risk: Risk,
    pub reversibility: Reversibility,
    /// What it does, in one sentence, the worst first. Empty of what was asked before there were sentences.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub sentence: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<Effect>,
    pub reasons: Vec<RiskReason>,
    #[serde(flatten)]
    pub record: Record,
}

impl Assessment {
    /// What this command would do, by the built-in rules and the user's own.
    pub fn of(exec: &Exec, rules: Option<&Rules>) -> Self {
        let environment: Vec<(&str, &str)> = pairs(&exec.env).collect();
        let location = location(exec, rules);
        let options = Options { location, rules, environment: &environment, ..Options::default() };
        // Never by an account of what runs where the words themselves are there.
        let assessed = match &exec.argv {
            Some(argv) => countersign_shell::assess(&shell_text(argv), &options),
            None => countersign_shell::assess(&exec.command, &options),
        };
        let assessed = Self::new(&assessed, &location);
        match &exec.binding {
            Some(binding) => assessed.beside(binding, &location),
            None => assessed,
        }
    }

    pub fn new(assessed: &countersign_shell::Assessment, location: &Location<'_>) -> Self {
        let reasons = assessed.reasons.iter().map(|reason| RiskReason {
            code: reason.code.to_string(),
            message: reason.message.to_string(),
            start: reason.span.start,
            end: reason.span.end,
            risk: reason.risk,
        });
        let Told { sentence, effects } = assessed.told(location);
        Self {
            risk: assessed.risk,
            reversibility: assessed.reversibility,
            sentence,
            effects,
            reasons: reasons.collect(),
            record: assessed.record(),
        }
    }

    /// What a person is told beside the sentence: the worst first, none twice, and nothing of how the engine came to ask.
    pub fn told_reasons(&self) -> Vec<&RiskReason> {
        let mut told: Vec<&RiskReason> = Vec::new();
        for reason in self.reasons.iter().filter(|reason| tells(&reason.code)) {
            if !told.iter().any(|other| other.message == reason.message) {
                told.push(reason);
            }
        }
        told.sort_by_key(|reason| std::cmp::Reverse(reason.risk));
        told.truncate(MAX_TOLD);
        told
    }

    /// What it does in one sentence, as it may be shown.
    pub fn shown_sentence(&self) -> Option<String> {
        Some(line(&self.sentence)).filter(|sentence| !sentence.is_empty())
    }

    /// What the command does, as it may be shown.
    pub fn shown_effects(&self) -> Vec<Effect> {
        let mut effects = self.effects.clone();
        for text in effects.iter_mut().flat_map(Effect::objects_mut) {
            *text = line(text);
        }
        effects
    }

    /// The sentence and what is told beside it, as one list: for clients that know only reasons.
    pub fn said(&self) -> Vec<String> {
        let reasons = self.told_reasons().into_iter().map(|reason| line(&reason.message));
        self.shown_sentence().into_iter().chain(reasons).collect()
    }

    /// What is found around the command counts too: a project can make a program that only reads run others, and a
    /// name can lead to a secret.
    fn beside(mut self, binding: &Binding, location: &Location<'_>) -> Self {
        for helper in &binding.helpers {
            self.risk = self.risk.max(Risk::NeedsReview);
            self.record.coverable = false;
            let (code, message) = ("repository_helper".to_owned(), helper.clone());
            self.reasons.push(RiskReason { code, message, start: 0, end: 0, risk: Risk::NeedsReview });
        }
        for path in &binding.links {
            if let Some(why) = secret_path(path, location) {
                self.risk = self.risk.max(Risk::NeedsReview);
                self.record.coverable = false;
                let (code, message) = ("sensitive_link".to_owned(), format!("a name here leads to `{path}`: {why}"));
                self.reasons.push(RiskReason { code, message, start: 0, end: 0, risk: Risk::NeedsReview });
            }
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

    /// Whether a command in here obeys files of a project, so that it is safe only where those were looked at.
    pub fn obeys_project(&self) -> bool {
        self.record.obeys_project
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

/// Where it would run: what somebody looked at before what somebody says. A workspace is the caller's word, so it makes
/// nothing more readable.
fn location<'l>(exec: &'l Exec, rules: Option<&'l Rules>) -> Location<'l> {
    let looked = exec.binding.as_ref().map(|binding| binding.folder.path.as_str());
    Location {
        folder: looked.or(exec.cwd.as_deref()).filter(|folder| !folder.is_empty()),
        workspace: None,
        secrets: rules.map(Rules::secrets).unwrap_or_default(),
        roots: rules.map(Rules::roots).unwrap_or_default(),
    }
}

fn pairs(env: &BTreeMap<String, String>) -> impl Iterator<Item = (&str, &str)> {
    env.iter().map(|(name, value)| (name.as_str(), value.as_str()))
}
