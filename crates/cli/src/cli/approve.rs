//! `countersign approve`: a person's yes, in one of its forms.

use countersign_model::escape_line;
use serde_json::{Value, json};

use crate::client;
use crate::locate::{Caller, Locator};
use crate::record::Record;
use crate::{approvals, output, when};

#[derive(Debug, clap::Args)]
#[command(
    group = clap::ArgGroup::new("how").multiple(false),
    after_help = "Examples:\n  countersign approve 12ab34cd\n  countersign approve 12ab34cd --note 'only on staging'\n  countersign approve 12ab34cd --override 'npm test'"
)]
pub struct Args {
    /// The request's id, or the beginning of it
    id: String,
    /// Allow once, and tell the agent this
    #[arg(long, value_name = "TEXT", group = "how")]
    note: Option<String>,
    /// Allow this instead, once
    #[arg(long = "override", value_name = "TEXT", group = "how")]
    replacement: Option<String>,
    /// With --override: the digest that the gate named when it asked to confirm
    #[arg(long, value_name = "DIGEST", requires = "replacement")]
    confirm: Option<String>,
    /// Answer a question
    #[arg(long, value_name = "TEXT", group = "how")]
    answer: Option<String>,
    /// Allow this for the rest of the agent's session
    #[arg(long, group = "how")]
    session: bool,
    /// Allow this from now on
    #[arg(long, group = "how")]
    always: bool,
    /// Allow every action of this type for the rest of the agent's session
    #[arg(long, group = "how")]
    type_session: bool,
    /// Allow every action of this type from now on
    #[arg(long, group = "how")]
    type_always: bool,
}

impl Args {
    fn body(&self) -> Value {
        if self.type_session {
            return json!({"code": "2"});
        }
        if self.type_always {
            return json!({"code": "6"});
        }
        let word = match (self.session, self.always) {
            (true, _) => "allow-session",
            (false, true) => "allow-always",
            (false, false) => "allow-once",
        };
        let mut body = json!({"decision": word});
        let texts = [
            ("note", &self.note),
            ("override", &self.replacement),
            ("confirm", &self.confirm),
            ("answer", &self.answer),
        ];
        if let Some(fields) = body.as_object_mut() {
            fields.extend(texts.into_iter().filter_map(|(name, text)| Some((name.to_owned(), json!(text.as_ref()?)))));
        }
        body
    }
}

pub fn run(args: &Args, locator: &Locator) -> anyhow::Result<()> {
    let caller = locator.person()?;
    let id = approvals::resolve(&caller, &args.id)?;
    decide(&caller, &id, args.body())
}

/// Sends a decision and says what became of it.
pub fn decide(caller: &Caller, id: &str, body: Value) -> anyhow::Result<()> {
    approvals::decide(caller, id, body).map_err(explain)?;
    let record = Record::read(&approvals::get(caller, id)?)?;
    output::note(&format!("{}: {}", record.outcome(), record.headline()));
    if let Some(grant) = record.decision.as_ref().and_then(|decision| decision.grant_id.as_deref()) {
        let grant = escape_line(grant);
        output::note(&format!("grant made: {grant}; take it back with `countersign grants revoke {grant}`"));
    }
    Ok(())
}

/// That somebody else was first is told with their answer; that an override needs a second look, with what to see.
fn explain(error: client::Error) -> anyhow::Error {
    if let Some(confirm) = error.refused().and_then(|refused| confirm(&refused.body)) {
        return anyhow::Error::from(error).context(confirm);
    }
    let winner = error.refused().and_then(|refused| {
        let decision = refused.body.get("decision")?;
        let by = escape_line(decision.get("by")?.as_str()?);
        let at = decision.get("at").and_then(Value::as_i64).map(|at| format!(" at {}", when::utc(at)));
        let word = if decision.get("code")?.as_str()? == "3" { "denied" } else { "allowed" };
        Some(format!("it was {word} before, by {by}{}; nothing changed", at.unwrap_or_default()))
    });
    let error = anyhow::Error::from(error);
    match winner {
        Some(winner) => error.context(winner),
        None => error,
    }
}

/// What the override would do, and how to say that it is meant.
fn confirm(body: &Value) -> Option<String> {
    let digest = escape_line(body.get("confirm")?.as_str()?);
    let assessment = body.get("assessment")?;
    let mut told =
        format!("nothing is decided yet: the override is {}", escape_line(assessment.get("risk")?.as_str()?));
    for reason in assessment.get("reasons")?.as_array()? {
        told.push_str(&format!("\n  {}", escape_line(reason.get("message")?.as_str()?)));
    }
    told.push_str(&format!("\nif you mean it, say the same again with `--confirm {digest}`"));
    Some(told)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Wrapped {
        #[command(flatten)]
        args: Args,
    }

    fn body(words: &[&str]) -> Option<Value> {
        Wrapped::try_parse_from([&["approve", "12ab"], words].concat()).ok().map(|wrapped| wrapped.args.body())
    }

    #[test]
    fn each_form_of_yes_has_its_body() {
        for (words, expected) in [
            (&[][..], json!({"decision": "allow-once"})),
            (&["--note", "n"], json!({"decision": "allow-once", "note": "n"})),
            (&["--override", "o"], json!({"decision": "allow-once", "override": "o"})),
            (
                &["--override", "o", "--confirm", "d"],
                json!({"decision": "allow-once", "override": "o", "confirm": "d"}),
            ),
            (&["--answer", "a"], json!({"decision": "allow-once", "answer": "a"})),
            (&["--session"], json!({"decision": "allow-session"})),
            (&["--always"], json!({"decision": "allow-always"})),
            (&["--type-session"], json!({"code": "2"})),
            (&["--type-always"], json!({"code": "6"})),
        ] {
            assert_eq!(body(words), Some(expected), "{words:?}");
        }
        assert_eq!(body(&["--always", "--session"]), None);
        assert_eq!(body(&["--confirm", "d"]), None);
    }
}
