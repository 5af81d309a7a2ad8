//! Approvals as a person has them: pages of them, one of them, deciding one, and which one an abbreviated id means.

use anyhow::bail;
use countersign_model::escape_line;
use serde::Deserialize;
use serde_json::Value;

use crate::client::{self, Request, encode};
use crate::exit::Usage;
use crate::locate::Caller;
use crate::output;
use crate::record::{Offer, Record};

/// The most a page holds.
const PAGE: usize = 200;
/// How far back an abbreviated id is looked for.
const SEARCHED: usize = 5_000;
const PREFIX: &str = "appr_";
const DIGITS: usize = 32;
/// As many digits nobody hits by asking often.
const SURE_DIGITS: usize = 8;

#[derive(Debug, Deserialize)]
struct Page {
    approvals: Vec<Value>,
    next_cursor: Option<String>,
}

#[derive(Debug)]
pub struct Listing {
    /// Newest first.
    pub rows: Vec<Value>,
    /// There are older ones.
    pub more: bool,
}

impl Listing {
    pub fn records(&self) -> anyhow::Result<Vec<Record>> {
        Ok(self.rows.iter().map(Record::read).collect::<Result<_, _>>()?)
    }
}

/// What an answer for longer than this once would mean.
pub fn offer(caller: &Caller, id: &str) -> anyhow::Result<Offer> {
    caller.call(Request::get(format!("/v1/approvals/{}/offer", encode(id))))
}

pub fn list(caller: &Caller, status: Option<&str>, limit: usize) -> anyhow::Result<Listing> {
    let mut rows: Vec<Value> = Vec::new();
    let mut cursor: Option<String> = None;
    loop {
        let mut path = format!("/v1/approvals?limit={}", limit.saturating_sub(rows.len()).clamp(1, PAGE));
        for (name, value) in [("status", status), ("cursor", cursor.as_deref())] {
            if let Some(value) = value {
                path.push_str(&format!("&{name}={}", encode(value)));
            }
        }
        let page: Page = caller.call(Request::get(path))?;
        let progress = !page.approvals.is_empty();
        rows.extend(page.approvals);
        cursor = page.next_cursor;
        if cursor.is_none() || rows.len() >= limit || !progress {
            rows.truncate(limit);
            return Ok(Listing { rows, more: cursor.is_some() && progress });
        }
    }
}

/// Sends a decision. What comes back says that it stands; the record itself is read afterwards by whoever shows
/// it.
pub fn decide(caller: &Caller, id: &str, body: Value) -> Result<(), client::Error> {
    let request = Request::post(format!("/v1/approvals/{}/decision", encode(id)), body);
    let decided: Decided = caller.send(request)?;
    if decided.approval_id != id || decided.decision.is_null() {
        return Err(client::Error::Malformed("the gate's answer to the decision is about something else".to_owned()));
    }
    Ok(())
}

/// The part of the answer that tells whether the decision stands.
#[derive(Deserialize)]
struct Decided {
    approval_id: String,
    decision: Value,
}

pub fn get(caller: &Caller, id: &str) -> anyhow::Result<Value> {
    caller.call(Request::get(format!("/v1/approvals/{}", encode(id))))
}

/// The approval that was meant: a whole id as it is, an abbreviated one looked up among what is pending, then
/// among what was.
pub fn resolve(caller: &Caller, typed: &str) -> anyhow::Result<String> {
    let prefix = normal(typed)?;
    if prefix.len() == PREFIX.len() + DIGITS {
        return Ok(prefix);
    }
    let mut records = list(caller, Some("pending"), usize::MAX)?.records()?;
    // Few digits can be hit by asking often enough: what has just ended counts too, so that a beginning which was shown
    // for it is not taken for another's.
    let few = prefix.len() < PREFIX.len() + SURE_DIGITS;
    if few || !records.iter().any(|record| record.approval_id.starts_with(&prefix)) {
        let older = list(caller, None, SEARCHED)?.records()?;
        records.extend(older.into_iter().filter(|record| record.status != "pending"));
    }
    if let Some(record) = choose(&prefix, &records)? {
        let (id, shown) = (record.approval_id.clone(), escape_line(&record.approval_id));
        output::note(&format!("`{}` is {shown}: {}", escape_line(typed), record.headline()));
        return Ok(id);
    }
    bail!("no approval begins with `{prefix}`; see `countersign pending` or `countersign history`")
}

/// `appr_` and hex digits, however much of it was typed.
fn normal(typed: &str) -> anyhow::Result<String> {
    let digits = typed.strip_prefix(PREFIX).unwrap_or(typed).to_ascii_lowercase();
    let sound = (1..=DIGITS).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !sound {
        let typed = escape_line(typed);
        return Err(Usage(format!(
            "`{typed}` is no approval id; give one from `countersign pending`, or its beginning"
        ))
        .into());
    }
    Ok(format!("{PREFIX}{digits}"))
}

fn choose<'r>(prefix: &str, records: &'r [Record]) -> anyhow::Result<Option<&'r Record>> {
    let matching: Vec<&Record> = records.iter().filter(|record| record.approval_id.starts_with(prefix)).collect();
    match matching.as_slice() {
        [] => Ok(None),
        [one] => Ok(Some(one)),
        several => {
            let mut text = format!("`{prefix}` could be any of {}; type more of it:", several.len());
            for record in several.iter().take(10) {
                text.push_str(&format!("\n  {}  {}", escape_line(&record.approval_id), record.headline()));
            }
            if several.len() > 10 {
                text.push_str(&format!("\n  … and {} more", several.len() - 10));
            }
            Err(Usage(text).into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::record;

    fn id(start: &str) -> String {
        format!("appr_{start:0<32}")
    }

    #[test]
    fn ids_are_taken_with_and_without_their_prefix() {
        for (typed, expected) in [("12ab", "appr_12ab"), ("appr_12AB", "appr_12ab"), (&id("f"), &id("f"))] {
            assert_eq!(normal(typed).unwrap(), expected);
        }
        for typed in ["", "appr_", "xyz", "grant_12", "../keys", "12ab?x", &format!("{}0", id("f"))] {
            assert!(normal(typed).unwrap_err().is::<Usage>(), "{typed}");
        }
    }

    #[test]
    fn a_beginning_must_mean_one() {
        let records: Vec<Record> = [id("12ab"), id("12ac"), id("99")].iter().map(|id| record(id)).collect();
        let chosen = |prefix| choose(prefix, &records).unwrap().map(|record| record.approval_id.clone());
        assert_eq!(chosen("appr_12ab"), Some(id("12ab")));
        assert_eq!(chosen("appr_9"), Some(id("99")));
        assert_eq!(chosen("appr_7"), None);
        let error = choose("appr_12a", &records).unwrap_err().to_string();
        assert!(error.contains(&id("12ab")) && error.contains(&id("12ac")) && !error.contains(&id("99")), "{error}");
    }

    #[test]
    fn many_candidates_are_counted_not_hidden() {
        let records: Vec<Record> = (10..35).map(|at| record(&id(&format!("a{at}")))).collect();
        assert!(choose("appr_a", &records).unwrap_err().to_string().ends_with("… and 15 more"));
    }
}
