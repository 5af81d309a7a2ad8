//! `countersign approve`: a person's yes, in one of its forms.

use std::process::ExitCode;

use countersign_model::escape_line;
use serde_json::{Value, json};

use crate::client::Request;
use crate::exit::{self, Usage};
use crate::locate::{Caller, Locator};
use crate::prompt::{self, Said};
use crate::record::Record;
use crate::{approvals, client, output, showing, when};

#[derive(Debug, clap::Args)]
#[command(
    group = clap::ArgGroup::new("how").multiple(false),
    after_help = "Examples:\n  countersign approve 12ab34cd\n  countersign approve 12ab34cd --note 'only on staging'\n  countersign approve 12ab34cd --override 'npm test'\n  countersign approve 12ab34cd --number 042\n  countersign approve 12ab34cd --answer eu\n\nWhat is dangerous needs the number that `countersign show` and its card have: typed at the terminal, or given with --number. Two wrong ones, and that key can only deny it.\n\nExit codes: 0 allowed, 1 not decided (somebody else was first, a wrong number, no yes), 69 no gate reached, 130 interrupted with Ctrl-C, 64 wrong usage."
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
    /// The number on its card, for something dangerous where there is no terminal to type it at
    #[arg(long, value_name = "NNN")]
    number: Option<String>,
    /// Allow just this for the rest of the agent's session, a day at most
    #[arg(long, group = "how")]
    session: bool,
    /// Allow just this for 30 days, in every session
    #[arg(long, group = "how")]
    always: bool,
    /// Allow every action of this type for the rest of the agent's session, a day at most. Of a command: every command of this client that is not dangerous, not only this one; --session is narrower
    #[arg(long, group = "how")]
    type_session: bool,
    /// Allow every action of this type until revoked. Of a command: every command of this client that is not dangerous, not only this one; --always is narrower
    #[arg(long, group = "how")]
    type_always: bool,
}

impl Args {
    fn body(&self) -> Value {
        if self.type_session || self.type_always {
            let body = json!({"code": if self.type_session { "2" } else { "6" }});
            return self.number.as_ref().map_or(body.clone(), |number| numbered(body, number));
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
            ("number", &self.number),
        ];
        if let Some(fields) = body.as_object_mut() {
            fields.extend(texts.into_iter().filter_map(|(name, text)| Some((name.to_owned(), json!(text.as_ref()?)))));
        }
        body
    }
}

pub fn run(args: &Args, locator: &Locator) -> anyhow::Result<ExitCode> {
    let caller = locator.person()?;
    let id = approvals::resolve(&caller, &args.id)?;
    let (record, body) = (Record::read(&approvals::get(&caller, &id)?)?, args.body());
    // What has ended is the gate's to say.
    if record.is_pending() {
        if record.is_question() && args.answer.is_none() && args.note.is_none() && args.replacement.is_none() {
            return Err(
                Usage(format!("this is a question: answer it with `countersign approve {id} --answer TEXT`")).into()
            );
        }
        if let Some(not) = meant(&record, &body)? {
            return Ok(exit::code(not));
        }
        if record.is_dangerous() && args.number.is_none() {
            return with_number(&caller, &record, &body).map(exit::code);
        }
    }
    decide(&caller, &id, body)?;
    Ok(exit::code(exit::OK))
}

/// The second act, where the yes is wide. The code to end with where it was not meant.
fn meant(record: &Record, body: &Value) -> anyhow::Result<Option<u8>> {
    let code = body.get("code").map(|code| json!({"code": code}));
    let Some(words) = code.and_then(|code| record.words_of(&code)) else { return Ok(None) };
    output::note(&format!("this allows, {words}"));
    if !prompt::is_there() {
        return Ok(None);
    }
    let said = prompt::ask(&[], "type yes to allow all of that: ", false, |text| Ok(text == "yes"))?;
    if matches!(said, Said::Left) {
        output::note(
            "nothing is decided: to allow all of that, type `yes` and Enter; `--session` and `--always` are narrower",
        );
    }
    Ok(not(&said))
}

/// The second act, where it is dangerous. The gate says whether the number is right.
fn with_number(caller: &Caller, record: &Record, body: &Value) -> anyhow::Result<u8> {
    let id = &record.approval_id;
    if !prompt::is_there() {
        return Err(Usage(format!(
            "this is dangerous: give its number with `--number NNN`; it is shown by `countersign show {id}`"
        ))
        .into());
    }
    let mut failed = None;
    let said = prompt::ask(&showing::request_lines(record), prompt::NUMBER, true, |text| {
        if text.is_empty() {
            return Ok(false);
        }
        match approvals::decide(caller, id, numbered(body.clone(), text)) {
            Ok(()) => Ok(true),
            Err(error) if error.refused().is_some_and(|refused| refused.code == "wrong_number") => {
                Err(error.to_string())
            }
            Err(error) => {
                failed = Some(error);
                Ok(false)
            }
        }
    })?;
    if let Some(error) = failed {
        return Err(explain(error));
    }
    match not(&said) {
        None => {
            tell(caller, id)?;
            Ok(exit::OK)
        }
        Some(code) => {
            if matches!(said, Said::Left) {
                output::note("nothing is decided: to allow it, type the three digits of its number and Enter");
            }
            Ok(code)
        }
    }
}

fn numbered(mut body: Value, number: &str) -> Value {
    if let Some(fields) = body.as_object_mut() {
        fields.insert("number".to_owned(), json!(number));
    }
    body
}

fn not(said: &Said) -> Option<u8> {
    match said {
        Said::Taken => None,
        Said::Left => Some(exit::OTHER),
        Said::Interrupted => {
            output::note("interrupted: nothing is decided");
            Some(exit::INTERRUPTED)
        }
    }
}

/// Sends a decision and says what became of it.
pub fn decide(caller: &Caller, id: &str, body: Value) -> anyhow::Result<()> {
    approvals::decide(caller, id, body).map_err(explain)?;
    tell(caller, id)
}

/// What became of it.
fn tell(caller: &Caller, id: &str) -> anyhow::Result<()> {
    let record = Record::read(&approvals::get(caller, id)?)?;
    output::note(&format!("{}: {}", record.outcome(), record.headline()));
    if let Some(grant) = record.decision.as_ref().and_then(|decision| decision.grant_id.as_deref()) {
        let (until, grant) = (until(caller, grant), escape_line(grant));
        output::note(&format!("grant made: {grant}, {until}; take it back with `countersign grants revoke {grant}`"));
    }
    Ok(())
}

/// How long a grant holds, in words.
fn until(caller: &Caller, grant: &str) -> String {
    let all = caller.call::<Value>(Request::get("/v1/grants")).unwrap_or_default();
    let all = all.get("grants").and_then(Value::as_array);
    let found = all.and_then(|all| all.iter().find(|one| one.get("grant_id").and_then(Value::as_str) == Some(grant)));
    match found.map(|grant| grant.get("expires_at").and_then(Value::as_i64)) {
        Some(Some(at)) => format!("until {}", when::utc(at)),
        Some(None) => "until it is revoked".to_owned(),
        None => "which has ended already".to_owned(),
    }
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
