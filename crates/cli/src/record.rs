//! An approval as the door shows it to people: the parts that commands need, read strictly.
//!
//! Texts inside `showing` are safe to print. Every other text is somebody's own words and goes through
//! `escape_line` first.

use countersign_model::{RunEnd, escape_line};
use serde::Deserialize;
use serde_json::Value;

use crate::client;

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
        let mut line = format!("“always” would allow {} from now on", quoted(&self.entries).join(" and "));
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
    use serde_json::json;

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
