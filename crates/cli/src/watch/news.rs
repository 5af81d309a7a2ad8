//! One event of the gate's feed, as a person hears of it.

use countersign_model::escape_line;
use serde_json::Value;

use crate::client::{self, Event};
use crate::record::{Record, short_id};
use crate::when;

#[derive(Clone, Debug)]
pub struct News {
    pub kind: String,
    pub approval_id: Option<String>,
    pub record: Option<Record>,
    pub raw: Value,
}

impl News {
    pub fn read(event: &Event) -> Result<Self, client::Error> {
        let wrong = |why: &str| client::Error::Malformed(format!("an event of the feed is not as documented: {why}"));
        let raw: Value = serde_json::from_str(&event.data).map_err(|error| wrong(&error.to_string()))?;
        let text = |name: &str| raw.get(name).and_then(Value::as_str).map(str::to_owned);
        raw.get("seq").and_then(Value::as_u64).ok_or_else(|| wrong("it has no number"))?;
        let record = raw.get("approval").filter(|record| !record.is_null()).map(Record::read).transpose()?;
        Ok(Self {
            kind: if event.name.is_empty() { text("type").unwrap_or_default() } else { event.name.clone() },
            approval_id: record.as_ref().map(|record| record.approval_id.clone()).or_else(|| text("approval_id")),
            record,
            raw,
        })
    }

    /// In one line, without the time.
    pub fn line(&self) -> String {
        let by = self.raw.get("by").and_then(Value::as_str).map(|by| format!(" by {}", escape_line(by)));
        match (&self.record, self.kind.as_str()) {
            (Some(record), "requested") => format!("{} asks: {}", record.client(), record.headline()),
            (Some(record), "resolved" | "ruled") => format!("{}: {}", record.outcome(), record.headline()),
            (Some(record), "consumed") => format!("used: {}", record.headline()),
            (record, kind) => {
                let about = record.as_ref().map(|record| format!(": {}", record.headline()));
                let kind = escape_line(kind).replace('_', " ");
                format!("{kind}{}{}", by.unwrap_or_default(), about.unwrap_or_default())
            }
        }
    }

    /// In one line that stands alone.
    pub fn dated_line(&self) -> String {
        // Events have milliseconds, unlike everything else on the wire.
        let at = self.raw.get("at").and_then(Value::as_i64).map(|at| when::utc(at.div_euclid(1000)));
        let id = self.approval_id.as_deref().map(short_id).unwrap_or_else(|| "-".to_owned());
        format!("{}  {}  {id}  {}", at.unwrap_or_default(), escape_line(&self.kind), self.line())
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::record::tests::sample;
    use serde_json::json;

    pub fn news(seq: u64, kind: &str, record: Option<Value>) -> News {
        let data = json!({"seq": seq, "at": 1_730_000_000_000_u64, "type": kind, "by": "ann", "approval": record});
        News::read(&Event { id: Some(seq.to_string()), name: kind.to_owned(), data: data.to_string() }).unwrap()
    }

    #[test]
    fn each_kind_has_its_sentence() {
        assert_eq!(news(1, "requested", Some(sample("appr_1"))).line(), "ci asks: run a command appr_1");
        let mut ended = sample("appr_1");
        ended["status"] = json!("expired");
        ended["reason"] = json!("expired");
        assert_eq!(news(2, "resolved", Some(ended)).line(), "expired: run a command appr_1");
        assert_eq!(news(3, "policy_put", None).line(), "policy put by ann");
        assert_eq!(news(4, "key_made", None).dated_line(), "2024-10-27 03:33:20 UTC  key_made  -  key made by ann");
    }

    #[test]
    fn what_is_no_event_is_an_error() {
        for data in ["", "x", "{}", r#"{"seq":1,"approval":{"status":"approved"}}"#] {
            let event = Event { id: None, name: "resolved".to_owned(), data: data.to_owned() };
            assert!(News::read(&event).is_err(), "{data}");
        }
    }
}
