//! `countersign ask`: puts a question to the gate and waits for its answer. Whatever goes wrong, it is not a yes.

use std::hash::{BuildHasher, RandomState};
use std::os::unix::process::parent_id;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use countersign_model::{ApprovalId, escape_line};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::client::{self, Request, encode};
use crate::exit::{self, Usage};
use crate::locate::{Caller, Locator};
use crate::record::Decision;
use crate::{interrupt, output, when};

/// How long the gate may hold one request for the state.
const WAIT_SECS: u64 = 60;
/// Beyond what the gate holds, for the way there and back.
const SLACK: Duration = Duration::from_secs(15);
/// How long to believe that a gate which took the question and broke off will be back, before it has answered.
const CREATE_PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(250);
const MAX_TIMEOUT_SECS: u64 = 86_400;

#[derive(Debug, clap::Args)]
#[command(
    group = clap::ArgGroup::new("what").required(true).args(["command", "question", "action_type", "argv"]),
    after_help = "Examples:\n  countersign ask -c 'rm -rf ./build' && rm -rf ./build\n  countersign ask -- git push origin main\n  countersign ask --question 'Which region?' --option eu --option us\n  countersign ask --action-type http_request --title 'Pay' --preview 'POST /pay'\n\nExit codes: 0 allowed, 77 not allowed, 75 no answer came, 69 no gate reached. On 0, stdout has what the person changed it to, or their answer; if it is empty, do exactly what was asked."
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
    /// The agent's run, for which session answers hold [default: this shell's]
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

/// What the agent is told.
#[derive(Debug, Deserialize)]
struct View {
    approval_id: String,
    status: String,
    #[serde(default)]
    reason: Option<String>,
    #[serde(default)]
    expires_at: Option<i64>,
    #[serde(default)]
    decision: Option<Decision>,
}

pub fn run(args: Args, locator: &Locator) -> anyhow::Result<ExitCode> {
    let body = body(&args)?;
    let caller = Arc::new(locator.agent()?);
    let mut answer = create(&caller, &body)?;
    let mut view = read(&answer, None)?;
    if view.status == "pending" {
        let id = view.approval_id.clone();
        let until = deadline(&args, &view)?;
        let interrupted = cancel_on_signal(&caller, &id)?;
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

fn body(args: &Args) -> anyhow::Result<Value> {
    let mut body = Map::new();
    let mut put = |name: &str, value: Value| {
        if !value.is_null() {
            body.insert(name.to_owned(), value);
        }
    };
    if args.command.as_deref().is_some_and(|command| command.trim().is_empty()) {
        return Err(Usage("the command is empty; write it after `-c`".to_owned()).into());
    }
    put(
        "session_id",
        json!(args.session.clone().filter(|id| !id.is_empty()).unwrap_or_else(|| format!("cli-{}", parent_id()))),
    );
    put("agent_id", json!(args.agent_id));
    put("expires_in_sec", json!(args.timeout));
    // One name for this question, so that putting it again after a broken connection is still one question.
    put(
        "idempotency_key",
        json!(format!("ask-{}-{:016x}", std::process::id(), RandomState::new().hash_one(when::now()))),
    );
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
    Ok(Value::Object(body))
}

fn working_directory(given: Option<&str>) -> anyhow::Result<String> {
    let here =
        std::path::absolute(given.unwrap_or(".")).context("the current directory cannot be named; give `--cwd DIR`")?;
    let here = if given.is_none() { std::env::current_dir().unwrap_or(here) } else { here };
    let text = here
        .to_str()
        .ok_or_else(|| Usage("the working directory is not valid text; give another with `--cwd`".into()))?;
    Ok(text.to_owned())
}

/// Puts the question. A gate that is not there at all is told at once; one that broke off is tried again.
fn create(caller: &Caller, body: &Value) -> anyhow::Result<Value> {
    let started = Instant::now();
    let mut reached = false;
    loop {
        let error = match caller.send(Request::post("/v1/approvals", body.clone())) {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        reached |= !matches!(error, client::Error::Unreachable { .. });
        if !reached || !error.may_pass() || started.elapsed() > CREATE_PATIENCE {
            return Err(error.into());
        }
        pause(&error);
    }
}

fn wait(caller: &Caller, id: &str, until: Instant) -> anyhow::Result<(Value, View)> {
    let mut told = false;
    loop {
        let request = Request::get(format!("/v1/approvals/{}?wait={WAIT_SECS}", encode(id)));
        match caller.send::<Value>(request.timeout(Duration::from_secs(WAIT_SECS) + SLACK)) {
            Ok(answer) => {
                let view = read(&answer, Some(id))?;
                if view.status != "pending" {
                    return Ok((answer, view));
                }
                told = false;
            }
            Err(error) if error.may_pass() && Instant::now() < until => {
                if !told {
                    output::note("the gate does not answer; still waiting for it to come back");
                    told = true;
                }
                pause(&error);
            }
            Err(error) => return Err(error.into()),
        }
    }
}

fn pause(error: &client::Error) {
    let asked = error.refused().and_then(|refused| refused.retry_after).map(Duration::from_secs);
    thread::sleep(asked.unwrap_or(PAUSE).min(SLACK));
}

/// Until when a gate that went away is waited for: as long as the question would be open.
fn deadline(args: &Args, view: &View) -> anyhow::Result<Instant> {
    let expires_at = view.expires_at.ok_or_else(|| malformed("a pending answer without `expires_at`"))?;
    let left = u64::try_from(expires_at - when::now()).unwrap_or(0);
    // The asked-for time counts too: this machine's clock may be wrong.
    let secs = left.max(args.timeout.unwrap_or(0)).clamp(1, MAX_TIMEOUT_SECS);
    Ok(Instant::now() + Duration::from_secs(secs))
}

fn cancel_on_signal(caller: &Arc<Caller>, id: &str) -> anyhow::Result<Arc<AtomicBool>> {
    let (caller, id) = (Arc::clone(caller), id.to_owned());
    let interrupted = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&interrupted);
    interrupt::on_signal(move |code| {
        flag.store(true, Ordering::SeqCst);
        let request = Request::post(format!("/v1/approvals/{}/cancel", encode(&id)), json!({}));
        match caller.send::<Value>(request.timeout(Duration::from_secs(2))) {
            Ok(_) => output::note("cancelled; nothing was allowed"),
            Err(error) => output::note(&format!("not cancelled: {error}")),
        }
        std::process::exit(i32::from(code));
    })?;
    Ok(interrupted)
}

fn malformed(why: &str) -> client::Error {
    client::Error::Malformed(format!("the gate's answer is not as documented: {why}"))
}

/// Takes an answer only if its parts agree with each other and with what was asked.
fn read(answer: &Value, id: Option<&str>) -> Result<View, client::Error> {
    let view = View::deserialize(answer).map_err(|error| malformed(&error.to_string()))?;
    match id {
        Some(id) if id != view.approval_id => return Err(malformed("it is about another request")),
        None if view.approval_id.parse::<ApprovalId>().is_err() => return Err(malformed("it names no request")),
        Some(_) | None => {}
    }
    if view.status == "approved" {
        let decision = view.decision.as_ref().ok_or_else(|| malformed("approved without a decision"))?;
        match (decision.code.as_str(), &decision.replacement) {
            ("1" | "2" | "4" | "6", None) | ("5", Some(_)) => {}
            _ => return Err(malformed("approved by a decision that is no plain yes")),
        }
    }
    Ok(view)
}

fn report(args: &Args, answer: &Value, view: &View) -> anyhow::Result<ExitCode> {
    let code = exit::of_state(&view.status, view.reason.as_deref());
    let decision = view.decision.as_ref();
    output::note(&verdict(view));
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

/// The answer in words that leave an agent no wrong conclusion.
fn verdict(view: &View) -> String {
    let by = view.decision.as_ref().and_then(|decision| decision.by.as_deref()).map(escape_line);
    let by = by.map(|by| format!(" by {by}")).unwrap_or_default();
    let changed = view.decision.as_ref().is_some_and(|decision| decision.replacement.is_some());
    match (view.status.as_str(), view.reason.as_deref()) {
        ("approved", _) if changed => format!("allowed{by}, changed: do what stdout says instead, once"),
        ("approved", _) => format!("allowed{by}"),
        ("denied", Some("no_channel")) => {
            "no answer came: nobody could be reached. Silence is not consent: do not do it, and do not try another way"
                .to_owned()
        }
        ("expired", _) => {
            "no answer came in time. Silence is not consent: do not do it, and do not try another way".to_owned()
        }
        ("denied", reason) => {
            let why = reason.filter(|reason| *reason != "person").map(|why| format!(" ({})", escape_line(why)));
            format!("not allowed{by}{}: do not do it, and do not try another way", why.unwrap_or_default())
        }
        ("cancelled", _) => "cancelled before an answer came: not allowed".to_owned(),
        (status, _) => format!("not allowed: the gate says `{}`, which means nothing here", escape_line(status)),
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

    fn view(answer: Value) -> Result<View, client::Error> {
        read(&answer, Some("appr_1"))
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
        assert_eq!(
            (&argv["cwd"], &argv["session_id"], &argv["expires_in_sec"]),
            (&json!("/x"), &json!("s"), &json!(5))
        );
        assert!(argv.get("command").is_none() && argv["idempotency_key"].is_string());
        let question = body_of(&["--question", "q", "--option", "a", "--option", "b"]);
        assert_eq!((&question["question"], &question["options"]), (&json!("q"), &json!(["a", "b"])));
        assert!(question.get("cwd").is_none());
        assert!(body(&parse(&["-c", " "]).unwrap()).unwrap_err().is::<Usage>());
    }

    #[test]
    fn threat_76_only_a_sound_yes_is_a_yes() {
        let approved = |decision: Value| json!({"approval_id": "appr_1", "status": "approved", "decision": decision});
        for good in [
            json!({"code": "1"}),
            json!({"code": "6", "note": null, "override": null}),
            json!({"code": "5", "override": "x"}),
        ] {
            assert!(view(approved(good.clone())).is_ok(), "{good}");
        }
        for bad in [
            Value::Null,
            json!({"code": "3"}),
            json!({"code": "5"}),
            json!({"code": "5", "override": null}),
            json!({"code": "1", "override": "x"}),
            json!({"code": "7"}),
            json!({"code": 1}),
            json!("1"),
        ] {
            assert!(view(approved(bad.clone())).is_err(), "{bad}");
        }
        for bad in [
            json!({"status": "approved", "decision": {"code": "1"}}),
            json!({"approval_id": "appr_2", "status": "approved", "decision": {"code": "1"}}),
            json!({"approval_id": "appr_1"}),
            json!([]),
        ] {
            assert!(view(bad.clone()).is_err(), "{bad}");
        }
    }

    #[test]
    fn threat_78_silence_is_told_apart_from_a_no() {
        let words = |status: &str, reason: &str| {
            verdict(&view(json!({"approval_id": "appr_1", "status": status, "reason": reason})).unwrap())
        };
        for silence in [words("expired", "expired"), words("denied", "no_channel")] {
            for part in ["no answer came", "Silence is not consent", "do not try another way"] {
                assert!(silence.contains(part), "{silence}");
            }
        }
        assert!(words("denied", "person").starts_with("not allowed: do not do it"));
        assert!(words("denied", "rule").contains("(rule)"));
        assert!(words("weird\u{1b}", "").starts_with("not allowed") && !words("weird\u{1b}", "").contains('\u{1b}'));
    }
}
