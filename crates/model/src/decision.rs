//! A person's answer: what they chose, and how it stands on the record.

use countersign_shell::Rules;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::action::{Action, ActionError, ActionKind, MAX_COMMAND_BYTES};
use crate::canonical::Digest;
use crate::grant::GrantTerms;
use crate::id::GrantId;
use crate::menu::Code;
use crate::render::escape_line;
use crate::request::Request;
use crate::time::Timestamp;

/// An override of a command must fit where the command itself would.
const MAX_TEXT_BYTES: usize = MAX_COMMAND_BYTES;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Choice {
    AllowOnce,
    /// The narrowest entry that covers this action, for this session.
    AllowSession,
    /// The narrowest entry that covers this action, until it expires.
    AllowAlways,
    Deny,
    /// The menu's code 2.
    AllowActionTypeForSession,
    /// The menu's code 6.
    AllowActionType,
}

/// What an approver sends, from any door or channel, before it is checked against its approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub choice: Choice,
    pub note: Option<String>,
    /// What should happen instead: an override.
    pub replacement: Option<String>,
    /// The answer to a Question.
    pub answer: Option<String>,
    /// Adds the command to the workspace's own whitelist.
    pub remember: bool,
    /// For longer than this once: commands that begin with these words, in place of the narrowest entry.
    pub prefix: Option<String>,
    /// The digest of an override that was shown with its risk: the person means it.
    pub confirm: Option<Digest>,
    /// What a person typed off the card of something dangerous. Where a surface sends one, it has to be right.
    pub number: Option<String>,
    pub terms: GrantTerms,
}

/// The answer on the record. Policy's own rulings stand in the same form, `by` "policy".
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    pub code: Code,
    pub note: Option<String>,
    #[serde(rename = "override")]
    pub replacement: Option<String>,
    pub answer: Option<String>,
    /// The approver's own name, never what a client calls itself.
    pub by: String,
    pub at: Timestamp,
    /// The door or channel the answer came through.
    pub via: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant_id: Option<GrantId>,
    /// What was added to the workspace's whitelist.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remembered: Vec<String>,
    /// Of the replaced action: what an executor must run is this, not what was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub override_digest: Option<Digest>,
}

#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum AnswerError {
    #[error("`{0}` is longer than {MAX_TEXT_BYTES} bytes; shorten it")]
    TooLong(&'static str),
    #[error("`{0}` holds a NUL character; remove it")]
    Nul(&'static str),
    #[error("this is a question: send the answer in `answer`, or deny it")]
    AnswerMissing,
    #[error("`answer` is none of the options; answer with one of {0}")]
    NotAnOption(String),
    #[error("`answer` is for questions; use `note` to tell the agent something")]
    AnswerUnexpected,
    #[error("a refusal cannot carry an override; deny with a `note`, or allow with the override")]
    OverrideWithDeny,
    #[error("an override is for this once; send it with allow-once")]
    OverrideWithGrant,
    #[error("`prefix` is for commands, and goes with allow-session or allow-always")]
    PrefixWithOther,
    #[error("`remember` goes with a plain allow-once")]
    RememberWithOther,
    #[error("`confirm` is for an override; send both, or neither")]
    ConfirmWithoutOverride,
}

impl Answer {
    pub fn plain(choice: Choice) -> Self {
        Self {
            choice,
            note: None,
            replacement: None,
            answer: None,
            remember: false,
            prefix: None,
            confirm: None,
            number: None,
            terms: GrantTerms::default(),
        }
    }

    pub fn allows(&self) -> bool {
        self.choice != Choice::Deny
    }

    /// The menu code this answer has on the record.
    pub fn code(&self) -> Code {
        match self.choice {
            Choice::Deny => Code::Deny,
            Choice::AllowSession | Choice::AllowActionTypeForSession => Code::AllowForSession,
            Choice::AllowAlways | Choice::AllowActionType => Code::AllowActionType,
            Choice::AllowOnce if self.replacement.is_some() => Code::AllowModified,
            Choice::AllowOnce if self.note.is_some() => Code::AllowWithNote,
            Choice::AllowOnce => Code::AllowOnce,
        }
    }

    /// The answer fitted to the action it is for, or why it does not fit.
    pub fn fit(mut self, action: &Action) -> Result<Self, AnswerError> {
        check_text("note", self.note.as_deref())?;
        check_text("override", self.replacement.as_deref())?;
        check_text("answer", self.answer.as_deref())?;
        if action.kind() == ActionKind::Question && self.allows() {
            // The menu has no word for answering: the text of codes 4 and 5 is the answer.
            self.answer = self.answer.or_else(|| self.replacement.take()).or_else(|| self.note.take());
            let Some(answer) = &self.answer else { return Err(AnswerError::AnswerMissing) };
            let options = action.options();
            if !options.is_empty() && !options.contains(answer) {
                // Spaces around it are nobody's answer; anything else must be one of them, to the letter.
                let meant = options.iter().find(|option| option.trim() == answer.trim());
                let Some(meant) = meant else { return Err(AnswerError::NotAnOption(listed(options))) };
                self.answer = Some(meant.clone());
            }
        } else if self.answer.is_some() {
            return Err(AnswerError::AnswerUnexpected);
        }
        let lasting = matches!(self.choice, Choice::AllowSession | Choice::AllowAlways);
        if self.prefix.is_some() && !(lasting && action.kind() == ActionKind::Exec) {
            return Err(AnswerError::PrefixWithOther);
        }
        check_text("prefix", self.prefix.as_deref())?;
        if self.remember && (self.choice != Choice::AllowOnce || self.replacement.is_some()) {
            return Err(AnswerError::RememberWithOther);
        }
        if self.confirm.is_some() && self.replacement.is_none() {
            return Err(AnswerError::ConfirmWithoutOverride);
        }
        match (self.choice, &self.replacement) {
            (_, None) | (Choice::AllowOnce, Some(_)) => Ok(self),
            (Choice::Deny, Some(_)) => Err(AnswerError::OverrideWithDeny),
            (
                Choice::AllowSession
                | Choice::AllowAlways
                | Choice::AllowActionTypeForSession
                | Choice::AllowActionType,
                Some(_),
            ) => Err(AnswerError::OverrideWithGrant),
        }
    }

    /// The action an override makes of this one; anything but an Exec takes the words as they are.
    fn replaced_action(&self, action: &Action) -> Option<Action> {
        match (action, &self.replacement) {
            (Action::Exec(exec), Some(command)) => Some(Action::Exec(exec.replaced_with(command.clone()))),
            (Action::Exec(_) | Action::Tool { .. } | Action::Question { .. } | Action::Custom { .. }, _) => None,
        }
    }
}

impl Request {
    /// The request that an override makes of this one: a new action, with its own digest and assessment.
    pub fn replaced_by(&self, answer: &Answer, rules: Option<&Rules>) -> Result<Option<Self>, ActionError> {
        let Some(action) = answer.replaced_action(&self.action) else { return Ok(None) };
        let digest = action.digest()?;
        let assessment = action.assess(rules);
        Ok(Some(Self { action, digest, effect: digest, assessment, ..self.clone() }))
    }
}

/// As an error names them: as many as fit on a line or two.
fn listed(options: &[String]) -> String {
    const MOST: usize = 8;
    const MAX_CHARS: usize = 40;
    let short = |option: &String| format!("`{}`", escape_line(&option.chars().take(MAX_CHARS).collect::<String>()));
    let mut text = options.iter().take(MOST).map(short).collect::<Vec<_>>().join(", ");
    if options.len() > MOST {
        text.push_str(&format!(" and {} more", options.len() - MOST));
    }
    text
}

fn check_text(field: &'static str, text: Option<&str>) -> Result<(), AnswerError> {
    match text {
        Some(text) if text.len() > MAX_TEXT_BYTES => Err(AnswerError::TooLong(field)),
        Some(text) if text.contains('\0') => Err(AnswerError::Nul(field)),
        Some(_) | None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question() -> Action {
        Action::Question { text: "which?".into(), options: vec![] }
    }

    #[test]
    fn threat_92_an_answer_is_one_of_the_options() {
        let options = || vec!["eu".to_owned(), "us".to_owned()];
        let action_type = crate::action::ActionType::new("ask_user").unwrap();
        let asked = Action::Question { text: "where?".into(), options: options() };
        let custom = Action::Custom { action_type, title: "t".into(), preview: "where?".into(), options: options() };
        for action in [asked, custom] {
            let said = |text: &str| {
                let answer = Answer { answer: Some(text.into()), ..Answer::plain(Choice::AllowOnce) };
                answer.fit(&action).map(|fit| fit.answer)
            };
            assert_eq!((said("eu"), said(" us\n")), (Ok(Some("eu".into())), Ok(Some("us".into()))));
            for bad in ["mars", "EU", "", "eu us", "e"] {
                assert!(matches!(said(bad), Err(AnswerError::NotAnOption(_))), "{bad}");
            }
            assert!(matches!(Code::parse_reply("4 mars").unwrap().fit(&action), Err(AnswerError::NotAnOption(_))));
            assert_eq!(Code::parse_reply("4 eu").unwrap().fit(&action).unwrap().answer.as_deref(), Some("eu"));
            assert_eq!(Answer::plain(Choice::AllowOnce).fit(&action), Err(AnswerError::AnswerMissing));
            assert!(Answer::plain(Choice::Deny).fit(&action).is_ok());
        }
    }

    fn exec() -> Action {
        Action::Exec(crate::action::Exec {
            command: "ls".into(),
            argv: None,
            cwd: None,
            env: Default::default(),
            binding: None,
        })
    }

    #[test]
    fn a_question_needs_an_answer_and_takes_the_menus_text_as_one() {
        assert_eq!(Answer::plain(Choice::AllowOnce).fit(&question()), Err(AnswerError::AnswerMissing));
        assert!(Answer::plain(Choice::Deny).fit(&question()).is_ok());
        for reply in ["4 the first", "5 the first"] {
            let answer = Code::parse_reply(reply).unwrap().fit(&question()).unwrap();
            assert_eq!((answer.answer.as_deref(), answer.note, answer.replacement), (Some("the first"), None, None));
        }
    }

    #[test]
    fn an_answer_is_only_for_questions() {
        let answer = Answer { answer: Some("x".into()), ..Answer::plain(Choice::AllowOnce) };
        assert_eq!(answer.fit(&exec()), Err(AnswerError::AnswerUnexpected));
    }

    #[test]
    fn an_override_goes_with_allow_once_alone() {
        let with = |choice| Answer { replacement: Some("ls -l".into()), ..Answer::plain(choice) }.fit(&exec());
        assert!(with(Choice::AllowOnce).is_ok());
        assert_eq!(with(Choice::Deny), Err(AnswerError::OverrideWithDeny));
        for choice in [Choice::AllowAlways, Choice::AllowSession, Choice::AllowActionType] {
            assert_eq!(with(choice), Err(AnswerError::OverrideWithGrant));
        }
    }

    #[test]
    fn texts_are_capped_and_hold_no_nul() {
        let note = |text: String| Answer { note: Some(text), ..Answer::plain(Choice::Deny) }.fit(&exec());
        assert_eq!(note("x".repeat(MAX_TEXT_BYTES + 1)), Err(AnswerError::TooLong("note")));
        assert_eq!(note("a\0".into()), Err(AnswerError::Nul("note")));
    }
}
