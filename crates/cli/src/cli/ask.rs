//! `countersign ask`: puts a question to the gate and waits for its answer. Whatever goes wrong, it is not a yes.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;

use countersign_model::escape_line;
use serde_json::{Map, Value, json};

use crate::asking::{
    MAX_TIMEOUT_SECS, View, cancel_on_signal, create, deadline, idempotency_key, read, verdict, wait, working_directory,
};
use crate::exit::{self, Usage};
use crate::locate::Locator;
use crate::output;
use crate::session::Session;

#[derive(Debug, clap::Args)]
#[command(
    group = clap::ArgGroup::new("what").required(true).args(["command", "question", "action_type", "argv"]),
    after_help = "Examples:\n  countersign ask -c 'rm -rf ./build' && rm -rf ./build\n  countersign ask -- git push origin main\n  countersign ask --question 'Which region?' --option eu --option us\n  countersign ask --action-type http_request --title 'Pay' --preview 'POST /pay'\n\nExit codes: 0 allowed, 77 not allowed, 75 no answer came, 69 no gate reached, 130 interrupted with Ctrl-C (the request is then cancelled), 64 wrong usage. On 0, stdout has what the person changed it to, or their answer; if it is empty, do exactly what was asked."
)]
pub struct Args {
    /// A shell command
    #[arg(short = 'c', value_name = "TEXT")]
    command: Option<String>,
    /// A question for a person
    #[arg(long, value_name = "TEXT")]
    question: Option<String>,
    /// An answer to choose (may be repeated)
    #[arg(long = "option", value_name = "TEXT", requires = "question", conflicts_with_all = ["command", "action_type", "argv"])]
    options: Vec<String>,
    /// Another kind of action, such as `http_request`
    #[arg(long, value_name = "TYPE", requires = "title", requires = "preview")]
    action_type: Option<String>,
    /// The action in a few words
    #[arg(long, value_name = "TEXT", requires = "action_type", conflicts_with_all = ["command", "question", "argv"])]
    title: Option<String>,
    /// The action in full
    #[arg(long, value_name = "TEXT", requires = "action_type", conflicts_with_all = ["command", "question", "argv"])]
    preview: Option<String>,
    /// A command without a shell
    #[arg(last = true, value_name = "ARGV")]
    argv: Vec<String>,
    /// The agent's run, for which session answers hold [default: this terminal's, or this call's own without a terminal]
    #[arg(long, env = "COUNTERSIGN_SESSION", value_name = "ID")]
    session: Option<String>,
    /// How long a person has to answer
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=MAX_TIMEOUT_SECS))]
    timeout: Option<u64>,
    /// What the agent calls itself
    #[arg(long, value_name = "NAME")]
    agent_id: Option<String>,
    /// Where a command would run [default: here]
    #[arg(long, value_name = "DIR")]
    cwd: Option<String>,
    /// Print the final record as one line of JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args, locator: &Locator) -> anyhow::Result<ExitCode> {
    let mut body = body(&args)?;
    let caller = Arc::new(locator.agent()?);
    let session = Session::find(args.session.clone(), locator, &caller)?;
    body.insert("session_id".to_owned(), json!(session.id));
    let body = Value::Object(body);
    let mut answer = create(&caller, &body)?;
    let mut view = read(&answer, None)?;
    if view.status == "pending" {
        let id = view.approval_id.clone();
        let until = deadline(args.timeout, &view)?;
        let interrupted = cancel_on_signal(&caller, &id, session)?;
        output::note(&format!(
            "waiting for an answer: {id}\nanswer with `countersign approve {id}` in another terminal, or in `countersign watch`"
        ));
        let waited = wait(&caller, &id, until);
        // The cancelling ends this wait too; the process then ends as the signal says.
        while interrupted.load(Ordering::SeqCst) {
            thread::park();
        }
        (answer, view) = waited?;
    }
    report(&args, &answer, &view)
}

fn body(args: &Args) -> anyhow::Result<Map<String, Value>> {
    let mut body = Map::new();
    let mut put = |name: &str, value: Value| {
        if !value.is_null() {
            body.insert(name.to_owned(), value);
        }
    };
    if args.command.as_deref().is_some_and(|command| command.trim().is_empty()) {
        return Err(Usage("the command is empty; write it after `-c`".to_owned()).into());
    }
    put("agent_id", json!(args.agent_id));
    put("expires_in_sec", json!(args.timeout));
    put("idempotency_key", json!(idempotency_key()));
    put("command", json!(args.command));
    put("question", json!(args.question));
    put("action_type", json!(args.action_type));
    put("title", json!(args.title));
    put("preview", json!(args.preview));
    if !args.argv.is_empty() {
        put("argv", json!(args.argv));
    }
    if !args.options.is_empty() {
        put("options", json!(args.options));
    }
    if args.command.is_some() || !args.argv.is_empty() {
        put("cwd", json!(working_directory(args.cwd.as_deref())?));
    }
    Ok(body)
}

fn report(args: &Args, answer: &Value, view: &View) -> anyhow::Result<ExitCode> {
    let code = exit::of_state(&view.status, view.reason.as_deref());
    let decision = view.decision.as_ref();
    output::note(&verdict(view, "do what stdout says instead, once"));
    if let Some(note) = decision.and_then(|decision| decision.note.as_deref()) {
        for line in note.lines() {
            output::note(&format!("note: {}", escape_line(line)));
        }
    }
    let given = decision.and_then(|decision| decision.replacement.as_deref().or(decision.answer.as_deref()));
    let written = match given {
        _ if args.json => output::line(&output::json(answer)),
        Some(text) if code == exit::OK => output::line(text),
        Some(_) | None => Ok(()),
    };
    match written {
        Ok(()) => Ok(exit::code(code)),
        // A yes whose text nobody received must not be taken for a yes to the original.
        Err(error) if code == exit::OK => Err(anyhow::anyhow!("the answer could not be handed over: {error:#}")),
        Err(error) => Err(error),
    }
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

    fn parse(words: &[&str]) -> Result<Args, clap::Error> {
        Wrapped::try_parse_from([&["ask"], words].concat()).map(|wrapped| wrapped.args)
    }

    #[test]
    fn exactly_one_thing_is_asked() {
        for words in [
            &[][..],
            &["-c", "ls", "--question", "q"],
            &["-c", "ls", "--", "ls"],
            &["--action-type", "x"],
            &["--action-type", "x", "--title", "t"],
            &["--option", "a", "-c", "ls"],
            &["--title", "t", "-c", "ls"],
            &["--preview", "p", "--", "ls"],
            &["ls"],
            &["-c", "ls", "--timeout", "0"],
        ] {
            assert!(parse(words).is_err(), "{words:?}");
        }
    }

    #[test]
    fn the_body_says_what_was_typed() {
        let body_of = |words: &[&str]| body(&parse(words).unwrap()).unwrap();
        let argv = body_of(&["--session", "s", "--cwd", "/x", "--timeout", "5", "--", "git", "push", "-f"]);
        assert_eq!(argv["argv"], json!(["git", "push", "-f"]));
        assert_eq!((&argv["cwd"], &argv["expires_in_sec"]), (&json!("/x"), &json!(5)));
        assert!(argv.get("command").is_none() && argv["idempotency_key"].is_string());
        let question = body_of(&["--question", "q", "--option", "a", "--option", "b"]);
        assert_eq!((&question["question"], &question["options"]), (&json!("q"), &json!(["a", "b"])));
        assert!(question.get("cwd").is_none());
        assert!(body(&parse(&["-c", " "]).unwrap()).unwrap_err().is::<Usage>());
    }
}
