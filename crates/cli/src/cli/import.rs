//! `countersign import`: the allowlist of another tool, put into a profile's policy.

use std::path::PathBuf;

use anyhow::{Context, bail};
use countersign_model::{Policy, escape_line};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::client::{self, Request, encode};
use crate::exit::Usage;
use crate::import::{Format, Merged, Source, Wishes, lines, merge};
use crate::locate::{Caller, Locator, Offline};
use crate::output;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  countersign import --dry-run ~/.claude/settings.json\n  countersign import .agents/terminal.json\n  countersign import exec-approvals.json --agent main --profile main --json"
)]
pub struct Args {
    /// `-` for stdin
    file: PathBuf,
    /// Which tool the file is from; told by its content if not given
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// The profile to import into
    #[arg(long, default_value = "default", value_name = "NAME")]
    profile: String,
    /// Of a gateway's file: import what this agent has, as the profile's own
    #[arg(long, value_name = "ID")]
    agent: Option<String>,
    /// Report, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Take `security: full` over, too: everything is allowed then that no rule denies
    #[arg(long)]
    allow_full: bool,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Deserialize)]
struct Stored {
    hash: String,
    policy: Value,
    #[serde(default)]
    error: Option<String>,
}

pub fn run(args: &Args, locator: &Locator) -> anyhow::Result<()> {
    let source = Source::read(&args.file, args.format)?;
    if args.agent.is_some() && source.format != Format::Gateway {
        return Err(Usage(format!("`--agent` is for a gateway's file, and this is `{}`", source.format.name())).into());
    }
    let home = std::env::var("HOME").ok().filter(|home| !home.is_empty());
    let wishes = Wishes { allow_full: args.allow_full, agent: args.agent.clone(), home };
    let lines = lines(&source, &wishes).with_context(|| format!("`{}` cannot be imported", args.file.display()))?;
    let held = held(args, locator)?;
    let before = held.as_ref().map_or_else(|| Ok(Policy::default()), |(_, stored)| readable(stored, &args.profile))?;
    let name = source.format.name();
    let merged = merge(before.clone(), lines, wishes.allow_full, &format!("import:{name}"));
    // The same checks that the gate makes, so that a dry run finds what a real one would.
    merged.policy.check().context("the policy would not be sound")?;
    let changed = merged.policy != before;
    if let Some((caller, stored)) = held.filter(|_| changed && !args.dry_run) {
        put(&caller, &args.profile, &stored.hash, &merged.policy)?;
    }
    report(args, &source, &merged, changed)
}

/// What the profile has now. A dry run makes no store: where there is none, the defaults are what it would find.
fn held(args: &Args, locator: &Locator) -> anyhow::Result<Option<(Caller, Stored)>> {
    let caller = match locator.person_or(if args.dry_run { Offline::Store } else { Offline::NewStore }) {
        Err(error) if args.dry_run && matches!(error.downcast_ref(), Some(client::Error::Unreachable { .. })) => {
            output::note("no gate and no store is here: this is what the defaults would become");
            return Ok(None);
        }
        found => found?,
    };
    let stored = caller.call(Request::get(path_of(&args.profile)))?;
    Ok(Some((caller, stored)))
}

fn path_of(profile: &str) -> String {
    format!("/v1/policy/{}", encode(profile))
}

fn readable(stored: &Stored, profile: &str) -> anyhow::Result<Policy> {
    let profile = escape_line(profile);
    if let Some(error) = &stored.error {
        bail!("the policy of `{profile}` cannot be used as it is: {}; mend it first", escape_line(error));
    }
    Policy::parse(&stored.policy.to_string()).with_context(|| format!("the policy of `{profile}` is not as documented"))
}

fn put(caller: &Caller, profile: &str, base_hash: &str, policy: &Policy) -> anyhow::Result<()> {
    let body = json!({"base_hash": base_hash, "policy": policy});
    let stored: anyhow::Result<Stored> = caller.call(Request::put(path_of(profile), body));
    let stored = stored.map_err(|error| match error.downcast_ref::<client::Error>() {
        Some(client::Error::Refused(refused)) if refused.status == 409 => {
            error.context("somebody changed the policy meanwhile, and nothing was imported; run it again")
        }
        Some(_) | None => error,
    })?;
    output::note(&format!("stored for `{}`, hash {}", escape_line(profile), escape_line(&stored.hash)));
    Ok(())
}

fn report(args: &Args, source: &Source, merged: &Merged, changed: bool) -> anyhow::Result<()> {
    let name = source.format.name();
    let detected = if source.detected { ", by its content" } else { "" };
    output::note(&format!("format {name}{detected}: {}", merged.report.summary()));
    if args.json {
        output::line(&output::json(&merged.report.to_json(name)))?;
    } else if merged.report.print()? {
        output::note("some is cut (…): see it whole with `--json`");
    }
    if !changed {
        output::note("nothing changes");
    } else if args.dry_run {
        output::note("nothing was changed: this was a dry run");
    }
    Ok(())
}
