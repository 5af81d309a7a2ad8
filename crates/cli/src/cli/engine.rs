//! `countersign engine`: an agent's tools behind the gate, over stdin and stdout.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::bail;
use countersign_engine::mode_word;
use countersign_model::Mode;

use crate::engine::{Confined, Desk, Settings, serve, workspace};
use crate::exit;
use crate::locate::{Flags, Locator};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "A program starts this and speaks lines of JSON with it: `tool_call` in, `tool_request`, `tool_result` and the like out.\n\nExamples:\n  countersign engine --workspace . --data ./.gate\n  countersign engine --gate https://gate.example        with the key in COUNTERSIGN_KEY\n\nWithout a running gate it keeps the record itself, in the data folder, and its host decides. At a gate, people decide, and the host where its policy says so."
)]
pub struct Args {
    /// Where its tools may work [default: here]
    #[arg(long, env = "COUNTERSIGN_WORKSPACE", value_name = "DIR")]
    workspace: Option<PathBuf>,
    #[command(flatten)]
    at: At,
    /// Run every tool without asking; rules that deny still do
    #[arg(long)]
    force: bool,
}

/// What an engine and a relay share.
#[derive(Debug, clap::Args)]
pub struct At {
    /// The gate to ask, with the key in COUNTERSIGN_KEY
    #[arg(long, value_name = "URL", conflicts_with_all = ["data", "url"])]
    gate: Option<String>,
    /// Let the host move to modes that ask less
    #[arg(long)]
    pub allow_wire_modes: bool,
    /// How long an answer may take [default: 300000]
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..=86_400_000))]
    approval_ttl_ms: Option<u64>,
    /// A name for the session: what is suspended in it is found again after a restart [default: a random one]
    #[arg(long, env = "COUNTERSIGN_SESSION", value_name = "ID")]
    session: Option<String>,
}

impl At {
    pub fn locate(&self, flags: Flags) -> anyhow::Result<Locator> {
        Locator::from_env(&Flags { url: self.gate.clone().or(flags.url), ..flags })
    }

    /// Whether the session was given a name.
    pub fn is_named(&self) -> bool {
        self.session.is_some()
    }

    pub fn desk(&self, locator: &Locator, workspace: Option<String>) -> anyhow::Result<Desk> {
        let (caller, _) = locator.engine()?;
        let session = match &self.session {
            Some(session) => session.clone(),
            None => {
                let mut bytes = [0; 8];
                getrandom::fill(&mut bytes)?;
                format!("engine-{:016x}", u64::from_be_bytes(bytes))
            }
        };
        Ok(Desk { caller: Arc::new(caller), session, ttl_ms: self.approval_ttl_ms, workspace })
    }
}

pub fn run(args: Args, flags: Flags) -> anyhow::Result<ExitCode> {
    let locator = args.at.locate(flags)?;
    let folder = workspace(args.workspace.as_deref())?;
    // Before the folder is there it cannot be told from its links.
    let desk = args.at.desk(&locator, None)?;
    let confined = Confined::open(&folder, locator.data())?;
    let desk = Desk { workspace: confined.path().to_str().map(str::to_owned), ..desk };
    let rights = desk.rights()?;
    let mode = if args.force { Mode::Force } else { Mode::Default };
    if mode > rights.max_mode {
        let most = mode_word(rights.max_mode);
        bail!(
            "policy lets this engine go no further than mode `{most}`; leave `--force` out, or set `maxMode` in the policy"
        );
    }
    let settings =
        Settings { mode, wire_modes: args.force || args.at.allow_wire_modes, named: args.at.is_named(), rights };
    serve(desk, confined, settings)?;
    Ok(exit::code(exit::OK))
}
