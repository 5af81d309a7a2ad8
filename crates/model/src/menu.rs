//! The fixed menu: one reply, a code from 1 to 6 and perhaps text after it.

use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::decision::{Answer, Choice};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Code {
    #[serde(rename = "1")]
    AllowOnce,
    #[serde(rename = "2")]
    AllowForSession,
    #[serde(rename = "3")]
    Deny,
    #[serde(rename = "4")]
    AllowWithNote,
    #[serde(rename = "5")]
    AllowModified,
    #[serde(rename = "6")]
    AllowActionType,
}

#[derive(Debug, Error, PartialEq, Eq)]
pub enum MenuError {
    #[error("the reply is empty; answer with a code from 1 to 6")]
    Empty,
    #[error("`{0}` is no code; answer with 1, 2, 3, 4, 5 or 6")]
    UnknownCode(String),
    #[error("code {0} needs text after it, as in `{0} your text`")]
    TextMissing(Code),
    #[error(
        "code {0} takes no text; send `{0}` alone, or 4 to allow with a note, 5 to change it, 3 to refuse with a reason"
    )]
    TextUnexpected(Code),
}

impl Code {
    pub const ALL: [Self; 6] = [
        Self::AllowOnce,
        Self::AllowForSession,
        Self::Deny,
        Self::AllowWithNote,
        Self::AllowModified,
        Self::AllowActionType,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AllowOnce => "1",
            Self::AllowForSession => "2",
            Self::Deny => "3",
            Self::AllowWithNote => "4",
            Self::AllowModified => "5",
            Self::AllowActionType => "6",
        }
    }

    pub const fn label(self) -> &'static str {
        match self {
            Self::AllowOnce => "Allow once",
            Self::AllowForSession => "Allow this action type for this session",
            Self::Deny => "Deny",
            Self::AllowWithNote => "Allow once and add a note",
            Self::AllowModified => "Change it, then allow once",
            Self::AllowActionType => "Always allow this action type, until revoked",
        }
    }

    /// A whole reply, such as `4 add logs`.
    pub fn parse_reply(reply: &str) -> Result<Answer, MenuError> {
        let reply = reply.trim();
        let (code, text) = reply.split_once(char::is_whitespace).unwrap_or((reply, ""));
        if code.is_empty() {
            return Err(MenuError::Empty);
        }
        Self::parse(code)?.with_text(Some(text))
    }

    pub fn parse(code: &str) -> Result<Self, MenuError> {
        let known = Self::ALL.into_iter().find(|known| known.as_str() == code);
        known.ok_or_else(|| MenuError::UnknownCode(code.chars().take(32).collect()))
    }

    /// What the code means with this text after it; blank text is none.
    pub fn with_text(self, text: Option<&str>) -> Result<Answer, MenuError> {
        let text = text.map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned);
        let alone = |choice| match &text {
            None => Ok(Answer::plain(choice)),
            Some(_) => Err(MenuError::TextUnexpected(self)),
        };
        match self {
            Self::AllowOnce => alone(Choice::AllowOnce),
            Self::AllowForSession => alone(Choice::AllowActionTypeForSession),
            Self::AllowActionType => alone(Choice::AllowActionType),
            Self::Deny => Ok(Answer { note: text, ..Answer::plain(Choice::Deny) }),
            Self::AllowWithNote => {
                let note = text.ok_or(MenuError::TextMissing(self))?;
                Ok(Answer { note: Some(note), ..Answer::plain(Choice::AllowOnce) })
            }
            Self::AllowModified => {
                let replacement = text.ok_or(MenuError::TextMissing(self))?;
                Ok(Answer { replacement: Some(replacement), ..Answer::plain(Choice::AllowOnce) })
            }
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_code_means_what_the_menu_says() {
        let once = Answer::plain(Choice::AllowOnce);
        for (reply, expected) in [
            ("1", once.clone()),
            ("  1 \n", once.clone()),
            ("2", Answer::plain(Choice::AllowActionTypeForSession)),
            ("3", Answer::plain(Choice::Deny)),
            ("3 not on a Friday", Answer { note: Some("not on a Friday".into()), ..Answer::plain(Choice::Deny) }),
            ("4 add logs", Answer { note: Some("add logs".into()), ..once.clone() }),
            ("4\tadd\nlogs ", Answer { note: Some("add\nlogs".into()), ..once.clone() }),
            ("5 npm test", Answer { replacement: Some("npm test".into()), ..once }),
            ("6", Answer::plain(Choice::AllowActionType)),
        ] {
            assert_eq!(Code::parse_reply(reply), Ok(expected), "{reply:?}");
        }
    }

    #[test]
    fn other_replies_are_errors_that_say_so() {
        for (reply, expected) in [
            ("", MenuError::Empty),
            (" \n", MenuError::Empty),
            ("7", MenuError::UnknownCode("7".into())),
            ("11", MenuError::UnknownCode("11".into())),
            ("yes", MenuError::UnknownCode("yes".into())),
            ("1.", MenuError::UnknownCode("1.".into())),
            ("4", MenuError::TextMissing(Code::AllowWithNote)),
            ("5   ", MenuError::TextMissing(Code::AllowModified)),
            ("1 week away", MenuError::TextUnexpected(Code::AllowOnce)),
            ("2 x", MenuError::TextUnexpected(Code::AllowForSession)),
            ("6 x", MenuError::TextUnexpected(Code::AllowActionType)),
        ] {
            assert_eq!(Code::parse_reply(reply), Err(expected), "{reply:?}");
        }
    }

    proptest! {
        #[test]
        fn a_reply_that_starts_with_no_code_never_allows(reply in "\\PC{0,40}") {
            let first = reply.split_whitespace().next().unwrap_or_default();
            if !["1", "2", "3", "4", "5", "6"].contains(&first) {
                prop_assert!(Code::parse_reply(&reply).is_err());
            }
        }
    }
}
