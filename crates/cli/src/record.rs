//! An approval as the door shows it to people: the parts that commands need, read strictly.
//!
//! Texts inside `showing` are safe to print. Every other text is somebody's own words and goes through
//! `escape_line` first.

use countersign_model::{DEFAULT_ENTRY_GRANT_MS, RunEnd, escape_line};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{client, when};

/// How long "always" holds.
const MONTH_SECS: i64 = (DEFAULT_ENTRY_GRANT_MS / 1000) as i64;

#[derive(Clone, Debug, Deserialize)]
pub struct Record {
    pub approval_id: String,
    pub status: String,
    #[serde(default)]
    pub reason: Option<String>,
    pub created_at: i64,
    pub expires_at: i64,
    pub session_id: String,
    #[serde(default)]
    pub agent_id: Option<String>,
    pub action_type: String,
    #[serde(default)]
    pub risk: Option<String>,
    pub digest: String,
    pub client_id: String,
    #[serde(default)]
    pub client_name: Option<String>,
    #[serde(default)]
    pub profile: Option<String>,
    #[serde(default)]
    pub decision: Option<Decision>,
    #[serde(default)]
    pub consumed_at: Option<i64>,
    #[serde(default)]
    pub prior: Option<Prior>,
    #[serde(default)]
    pub offer: Option<Offer>,
    #[serde(default)]
    pub run: Option<RunEnd>,
    /// The ways to allow it, the narrowest first.
    #[serde(default)]
    pub answers: Vec<AnswerWords>,
    /// What it can be answered with.
    #[serde(default)]
    pub options: Vec<String>,
    #[serde(default)]
    pub terminal: Option<Terminal>,
    /// What is typed to allow something dangerous.
    #[serde(default)]
    pub number: Option<String>,
    pub showing: Showing,
}

/// What an agent is told of the answer, and what a person is told besides.
#[derive(Clone, Debug, Deserialize)]
pub struct Decision {
    pub code: String,
    #[serde(default)]
    pub note: Option<String>,
    #[serde(default, rename = "override")]
    pub replacement: Option<String>,
    #[serde(default)]
    pub answer: Option<String>,
    #[serde(default)]
    pub by: Option<String>,
    #[serde(default)]
    pub at: Option<i64>,
    #[serde(default)]
    pub via: Option<String>,
    #[serde(default)]
    pub grant_id: Option<String>,
    /// What was added to the workspace's whitelist.
    #[serde(default)]
    pub remembered: Vec<String>,
}

/// What "always" would stand for, or why it would not.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Offer {
    #[serde(default)]
    pub entries: Vec<String>,
    #[serde(default)]
    pub refused: Option<String>,
    /// Where the entries would hold, in words.
    #[serde(default)]
    pub holds: Option<String>,
    /// Of the last commands: how many were looked at, how many it would have let through, and some of those.
    #[serde(default)]
    pub looked_at: usize,
    #[serde(default)]
    pub covered: usize,
    #[serde(default)]
    pub examples: Vec<String>,
}

impl Offer {
    /// What "always" would stand for and would have let through lately; or why it is not offered.
    pub fn lines(&self) -> Result<String, String> {
        if self.entries.is_empty() {
            let why = self.refused.as_deref().map(escape_line).unwrap_or_default();
            return Err(format!("“always” is not offered: {why}"));
        }
        let quoted = |texts: &[String]| texts.iter().map(|text| format!("`{}`", escape_line(text))).collect::<Vec<_>>();
        let mut line = format!(
            "“always” is for 30 days, until {} if it is said now; it would allow {} from now on",
            when::day(when::now() + MONTH_SECS),
            quoted(&self.entries).join(" and ")
        );
        if let Some(holds) = &self.holds {
            line.push_str(&format!(", {}", escape_line(holds)));
        }
        if self.looked_at > 0 {
            line.push_str(&format!(
                "; of the last {} commands it would have let through {}",
                self.looked_at, self.covered
            ));
        }
        if !self.examples.is_empty() {
            line.push_str(&format!(", such as {}", quoted(&self.examples).join(", ")));
        }
        Ok(line)
    }
}

/// One way to allow it, and what it would stand for.
#[derive(Clone, Debug, Deserialize)]
pub struct AnswerWords {
    #[serde(default)]
    pub decision: Option<String>,
    #[serde(default)]
    pub code: Option<String>,
    pub words: String,
}

/// A yes for longer than this once, as it is offered at a terminal.
#[derive(Clone, Debug, PartialEq)]
pub struct Longer {
    /// What is typed for it.
    pub key: String,
    pub words: String,
    pub body: Value,
}

/// The workspace that a command was asked from.
#[derive(Clone, Debug, Deserialize)]
pub struct Terminal {
    /// Whether its whitelist can be added to.
    #[serde(default)]
    pub may_remember: bool,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Prior {
    pub approval_id: String,
    pub status: String,
    pub at: i64,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Showing {
    pub headline: String,
    #[serde(default)]
    pub sections: Vec<Section>,
    #[serde(default)]
    pub agent_says: Option<Shown>,
    #[serde(default)]
    pub notices: Vec<Notice>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Section {
    pub label: String,
    pub content: Shown,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Shown {
    pub text: String,
    #[serde(default)]
    pub marks: Vec<Mark>,
    #[serde(default)]
    pub folds: Vec<Value>,
}

/// Bytes of the text that are not simply as they were written, or that a person should look at.
#[derive(Clone, Debug, Deserialize)]
pub struct Mark {
    pub start: usize,
    pub end: usize,
    pub kind: String,
    /// Why, where it is a risk.
    #[serde(default)]
    pub message: Option<String>,
}

/// Something to know before answering.
#[derive(Clone, Debug, Deserialize)]
pub struct Notice {
    pub text: String,
}

impl Record {
    pub fn read(value: &Value) -> Result<Self, client::Error> {
        Self::deserialize(value)
            .map_err(|error| client::Error::Malformed(format!("the gate's record is not as documented: {error}")))
    }

    pub fn is_pending(&self) -> bool {
        self.status == "pending"
    }

    /// Whether a yes needs the number too. A risk that is not known here is no small one.
    pub fn is_dangerous(&self) -> bool {
        !matches!(self.risk.as_deref(), None | Some("safe" | "needs-review"))
    }

    /// Whether it is answered in words: a question, or an action with options.
    pub fn is_question(&self) -> bool {
        self.action_type == "question" || !self.options.is_empty()
    }

    /// Whether a yes could put it on its workspace's whitelist.
    pub fn can_be_remembered(&self) -> bool {
        let entries = self.offer.as_ref().is_some_and(|offer| !offer.entries.is_empty());
        entries && self.terminal.as_ref().is_some_and(|terminal| terminal.may_remember)
    }

    /// What it may be allowed for besides this once, the narrowest first.
    pub fn longer(&self) -> Vec<Longer> {
        let offered = self.answers.iter().filter_map(|answer| {
            let (key, body) = match (answer.decision.as_deref(), answer.code.as_deref()) {
                (Some("allow-session"), None) => ("s", json!({"decision": "allow-session"})),
                (Some("allow-always"), None) => ("A", json!({"decision": "allow-always"})),
                (None, Some(code @ ("2" | "6"))) => (code, json!({"code": code})),
                _ => return None,
            };
            Some(Longer { key: key.to_owned(), words: escape_line(&answer.words), body })
        });
        offered.collect()
    }

    /// What the answer with this body would stand for.
    pub fn words_of(&self, body: &Value) -> Option<String> {
        self.longer().into_iter().find(|longer| longer.body == *body).map(|longer| longer.words)
    }

    /// The headline in one line.
    pub fn headline(&self) -> String {
        self.showing.headline.replace('\n', " / ")
    }

    /// The key's own name, not what a client calls itself.
    pub fn client(&self) -> String {
        escape_line(self.client_name.as_deref().unwrap_or(&self.client_id))
    }

    pub fn risk(&self) -> String {
        self.risk.as_deref().map(escape_line).unwrap_or_default()
    }

    /// Whether the gate left something out of the showing, with its length and digest in its place.
    pub fn has_folds(&self) -> bool {
        let mut shown = self.showing.sections.iter().map(|section| &section.content).chain(&self.showing.agent_says);
        shown.any(|shown| !shown.folds.is_empty())
    }

    /// `approved by ann` and the like: how it stands, in a few words.
    pub fn outcome(&self) -> String {
        let mut text = escape_line(&self.status);
        match (self.decision.as_ref().and_then(|decision| decision.by.as_deref()), self.reason.as_deref()) {
            (Some(by), _) => text.push_str(&format!(" by {}", escape_line(by))),
            (None, Some(reason)) if reason != self.status => text.push_str(&format!(" ({})", escape_line(reason))),
            (None, _) => {}
        }
        text
    }
}

/// The part of an id that people type: without its prefix, and as short as is useful.
pub fn short_id(id: &str) -> String {
    let digits = id.strip_prefix("appr_").unwrap_or(id);
    escape_line(&digits.chars().take(8).collect::<String>())
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A pending record as the door would send it.
    pub fn sample(id: &str) -> Value {
        json!({
            "approval_id": id, "status": "pending", "reason": null, "created_at": 1_000, "expires_at": 1_600,
            "session_id": "s", "agent_id": "a", "action_type": "exec_cmd", "title": "t", "preview": "make", "choices": ["1"],
            "risk": "needs-review", "digest": "ab", "channel": "any", "target": {}, "client_id": "c0ffee",
            "client_name": "ci", "profile": "default", "decision": null,
            "showing": {
                "headline": format!("run a command {id}"),
                "sections": [{"label": "command", "content": {"text": "make all", "marks": [{"start": 5, "end": 8, "kind": "risk", "code": "c", "message": "builds everything"}], "folds": []}}],
                "agent_says": {"text": "it is fine", "marks": [], "folds": []},
                "notices": [{"code": "x", "section": "command", "text": "asked before"}],
            },
        })
    }

    pub fn record(id: &str) -> Record {
        Record::read(&sample(id)).unwrap()
    }

    #[test]
    fn a_record_without_its_showing_is_none() {
        let mut value = sample("appr_1");
        assert!(Record::read(&value).is_ok());
        value.as_object_mut().unwrap().remove("showing");
        assert!(Record::read(&value).is_err());
        assert!(Record::read(&json!({"status": "approved"})).is_err());
    }

    #[test]
    fn what_others_wrote_is_escaped() {
        let mut value = sample("appr_1");
        value["client_name"] = json!("ci\u{1b}[2J");
        value["status"] = json!("denied");
        value["decision"] = json!({"code": "3", "by": "ann\n"});
        let record = Record::read(&value).unwrap();
        assert!(!record.client().contains('\u{1b}') && !record.outcome().contains('\n'));
        assert!(record.outcome().starts_with("denied by ann"));
    }
}
