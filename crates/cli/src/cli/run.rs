//! `countersign run`: asks the gate, then runs exactly what was approved, or nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use countersign_model::{Action, CONFIRMATION_SECS, Exec};
use countersign_runner::{BindError, Inherited, Spec, What, bind};
use serde_json::{Value, json};

use crate::asking::{MAX_TIMEOUT_SECS, create, idempotency_key, read, working_directory};
use crate::exit::Usage;
use crate::locate::Locator;
use crate::output;
use crate::running::{Report, Run};
use crate::session::Session;
use crate::workspace::Workspace;

#[derive(Debug, clap::Args)]
#[command(
    group = clap::ArgGroup::new("what").required(true).args(["command", "argv"]),
    after_help = "Examples:\n  countersign run -- npm test\n  countersign run -c 'make build && make check'\n  countersign run --json --workspace . -- cargo build\n\nExit codes: the command's own when it ran (128+n by a signal, 124 when its time was over), 77 not allowed or changed since it was approved, 75 no answer came, 69 no gate reached, 127 there is no such program, 130 interrupted with Ctrl-C before it ran, 64 wrong usage."
)]
pub struct Args {
    /// Shell text, run as it is by bash
    #[arg(short = 'c', value_name = "TEXT")]
    command: Option<String>,
    /// A command without a shell
    #[arg(last = true, value_name = "ARGV")]
    argv: Vec<String>,
    /// The folder that the work belongs to; the command must run inside [default: the nearest one around with a `.agents/terminal.json`]
    #[arg(long, env = "COUNTERSIGN_WORKSPACE", value_name = "DIR")]
    workspace: Option<PathBuf>,
    /// Where to run it [default: here]
    #[arg(long, value_name = "DIR")]
    cwd: Option<String>,
    /// A variable to set for it (may be repeated)
    #[arg(long = "env", value_name = "NAME=VALUE", value_parser = variable)]
    env: Vec<(String, String)>,
    /// How long it may run [default: 60 with --json, else no limit]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(5..=600))]
    timeout: Option<u64>,
    /// How long a person has to answer
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=MAX_TIMEOUT_SECS))]
    ask_timeout: Option<u64>,
    /// The agent's run, for which session answers hold [default: this terminal's, or this call's own without a terminal]
    #[arg(long, env = "COUNTERSIGN_SESSION", value_name = "ID")]
    session: Option<String>,
    /// What the agent calls itself
    #[arg(long, value_name = "NAME")]
    agent_id: Option<String>,
    /// Capture the output and print one JSON object
    #[arg(long)]
    json: bool,
}

fn variable(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write it as NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

pub fn run(args: Args, locator: &Locator) -> anyhow::Result<ExitCode> {
    if args.command.as_deref().is_some_and(|command| command.trim().is_empty()) {
        return Err(Usage("the command is empty; write it after `-c`".to_owned()).into());
    }
    let here = working_directory(args.cwd.as_deref())?;
    let workspace = Workspace::find(args.workspace.as_deref(), Path::new(&here))?;
    let env: BTreeMap<String, String> = args.env.iter().cloned().collect();
    let inherited = Inherited::capture();
    // Our own settings are nobody else's business; what would steer other programs is worth a word.
    let dropped: Vec<&str> =
        inherited.dropped().iter().map(String::as_str).filter(|name| !name.starts_with("COUNTERSIGN_")).collect();
    if !dropped.is_empty() {
        output::note(&format!("not handed on: {}", dropped.join(", ")));
    }
    let what = match &args.command {
        Some(text) => What::Text { text, shell: None },
        None => What::Words(&args.argv),
    };
    let spec = Spec {
        what,
        cwd: Path::new(&here),
        workspace: workspace.as_ref().map(|workspace| Path::new(&workspace.path)),
        env: &env,
        inherited: &inherited,
    };
    let binding = match bind(&spec) {
        Ok(bound) => bound.into_binding(),
        Err(error) => return unbound(&args, &error),
    };
    let cwd = Some(binding.folder.path.clone());
    let exec = match &args.command {
        Some(text) => Exec { command: text.clone(), argv: None, cwd, env, binding: None },
        None => Exec::of_words(args.argv.clone(), cwd, env),
    };
    let exec = Exec { binding: Some(Box::new(binding)), ..exec };
    let caller = Arc::new(locator.agent()?);
    let session = Session::find(args.session.clone(), locator, &caller)?;
    let answer = create(&caller, &body(&args, &exec, workspace.as_ref(), &session))?;
    let view = read(&answer, None)?;
    let run = Run {
        caller,
        person: locator,
        exec: &exec,
        session,
        digest: Action::Exec(exec.clone()).digest()?.to_hex(),
        inherited: &inherited,
        workspace: workspace.as_ref(),
        capture: args.json,
        timeout: args.timeout,
        ask_timeout: args.ask_timeout,
    };
    let report = run.carry_through(view)?;
    report.tell(args.json)
}

/// What cannot be looked at is not asked for.
fn unbound(args: &Args, error: &BindError) -> anyhow::Result<ExitCode> {
    let cause = match error {
        BindError::Empty | BindError::NoFolder(_) | BindError::NotAFolder(_) | BindError::RelativeFolder(_) => {
            return Err(Usage(error.to_string()).into());
        }
        BindError::Outside { .. } => "outside_workspace",
        BindError::Environment(_) => "forbidden_variable",
        BindError::NoProgram(_) | BindError::NoShell(_) => "no_such_program",
        BindError::Nul | BindError::NotUtf8(_) => "unshowable",
        BindError::NoPermission(_) | BindError::Io { .. } => "unreadable",
    };
    Report::refused(None, cause, error.to_string()).tell(args.json)
}

fn body(args: &Args, exec: &Exec, workspace: Option<&Workspace>, session: &Session) -> Value {
    let mut body = json!({
        "session_id": session.id,
        "idempotency_key": idempotency_key(),
        "consume": true,
        "cwd": exec.cwd,
        "env": exec.env,
        "binding": exec.binding,
    });
    let mut put = |name: &str, value: Value| {
        if let (false, Some(fields)) = (value.is_null(), body.as_object_mut()) {
            fields.insert(name.to_owned(), value);
        }
    };
    match &exec.argv {
        Some(argv) => put("argv", json!(argv)),
        None => put("command", json!(exec.command)),
    }
    put("agent_id", json!(args.agent_id));
    // Where there is a workspace, its file may say how long a person has.
    let ask_timeout = args.ask_timeout.or(workspace.is_none().then_some(CONFIRMATION_SECS));
    put("expires_in_sec", json!(ask_timeout));
    put("workspace", json!(workspace.map(|workspace| &workspace.path)));
    put("terminal_file", json!(workspace.and_then(|workspace| workspace.file.as_ref())));
    body
}
