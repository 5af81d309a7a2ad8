//! The command line: every verb and what it takes. One file a verb.

mod approve;
mod ask;
mod assess;
mod audit;
mod completions;
mod deny;
mod engine;
mod grants;
mod history;
mod import;
mod keys;
mod node;
mod pair;
mod pending;
mod policy;
mod relay;
mod run;
mod show;
mod stop;
mod trust;
mod verbs;
mod watch;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser};

use crate::locate::{self, Flags, Locator};
use crate::{exit, serve};
use verbs::verbs;

/// The gate between AI agents and what they want to do.
#[derive(Debug, Parser)]
#[command(
    name = "countersign",
    version,
    max_term_width = 100,
    after_help = "Example:\n  countersign serve                     in one terminal\n  countersign ask -c 'rm -rf ./build'   in another\n  countersign watch                     and decide in a third\n\nExit codes: 0 done or allowed, 77 not allowed, 75 no answer came, 69 no gate reached, 64 wrong usage, 130 interrupted with Ctrl-C, 1 anything else. `run` ends with the command's own code, and with 127 when there is no such program."
)]
pub struct Cli {
    #[command(flatten)]
    flags: Flags,
    #[command(subcommand)]
    verb: Verb,
}

verbs! {
    /// Run the gate of a data folder
    "serve" => Serve(Box<serve::Args>),
    /// Run a command once it is allowed, exactly as it was approved
    "run" => Run(Box<run::Args>),
    /// Ask whether something may be done, and wait for the answer
    "ask" => Ask(ask::Args),
    /// Say what a command would do; needs no gate
    "assess" => Assess(assess::Args),
    /// List what waits for an answer, oldest first
    "pending" => Pending(pending::Args),
    /// Show one request whole
    "show" => Show(show::Args),
    /// Allow a request
    "approve" => Approve(approve::Args),
    /// Refuse a request
    "deny" => Deny(deny::Args),
    /// End a command that was approved and runs
    "stop" => Stop(stop::Args),
    /// Follow requests live, and decide them
    "watch" => Watch(watch::Args),
    /// List requests and how they ended, newest first
    "history" => History(history::Args),
    /// List and revoke what earlier answers allow
    "grants" => Grants(grants::Args),
    /// Trust a workspace's `.agents/terminal.json` as it is
    "trust" => Trust(trust::TrustArgs),
    /// Take that trust back
    "untrust" => Untrust(trust::UntrustArgs),
    /// Show, check and change policy
    "policy" => Policy(policy::Args),
    /// Run an agent's tools behind the gate, over stdin and stdout
    "engine" => Engine(engine::Args),
    /// Stand between a host and an engine that asks for approval over stdio
    "relay" => Relay(relay::Args),
    /// Put another tool's allowlist into a policy
    "import" => Import(import::Args),
    /// Make, list and revoke keys
    "keys" => Keys(keys::Args),
    /// Serve this machine's policy document to a gate elsewhere
    "node" => Node(node::Args),
    /// Let a phone or another device answer
    "pair" => Pair(pair::Args),
    /// Check and export the record
    "audit" => Audit(audit::Args),
    /// Print a completion script for a shell
    "completions" => Completions(completions::Args),
}

impl Cli {
    /// The command line with the flags of every verb, for who reads it all.
    fn whole() -> clap::Command {
        Verb::every().into_iter().fold(Self::command(), |whole, verb| {
            let name = verb.get_name().to_owned();
            whole.mut_subcommand(name, |_| verb)
        })
    }
}

pub fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    let Cli { flags, verb } = cli;
    let locate = || Locator::from_env(&flags);
    let done = match verb {
        Verb::Serve(args) => return serve::run(*args, locate::local_data(&flags)?),
        Verb::Run(args) => return run::run(*args, &locate()?),
        Verb::Ask(args) => return ask::run(args, &locate()?),
        Verb::Assess(args) => assess::run(&args),
        Verb::Pending(args) => pending::run(&args, &locate()?),
        Verb::Show(args) => show::run(&args, &locate()?),
        Verb::Approve(args) => return approve::run(&args, &locate()?),
        Verb::Deny(args) => deny::run(&args, &locate()?),
        Verb::Stop(args) => stop::run(&args, &locate()?),
        Verb::Watch(args) => return watch::run(&args, &locate()?),
        Verb::History(args) => history::run(&args, &locate()?),
        Verb::Grants(args) => grants::run(&args, &locate()?),
        Verb::Trust(args) => trust::trust(&args, &locate()?),
        Verb::Untrust(args) => trust::untrust(&args, &locate()?),
        Verb::Policy(args) => policy::run(&args, &flags),
        Verb::Engine(args) => return engine::run(args, flags),
        Verb::Relay(args) => return relay::run(args, flags),
        Verb::Import(args) => import::run(&args, &locate()?),
        Verb::Keys(args) => keys::run(&args, &locate()?),
        Verb::Node(args) => node::run(&args, locate()?),
        Verb::Pair(args) => pair::run(&args, &locate()?),
        Verb::Audit(args) => audit::run(&args, &flags),
        Verb::Completions(args) => completions::run(&args),
    };
    done.map(|()| exit::code(exit::OK))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound_and_every_verb_shows_an_example() {
        Cli::command().debug_assert();
        let mut command = Cli::whole();
        command.build();
        let mut verbs: Vec<&clap::Command> =
            command.get_subcommands().filter(|verb| verb.get_name() != "help").collect();
        while let Some(verb) = verbs.pop() {
            let help = verb.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("Example") && help.contains("countersign"), "{}", verb.get_name());
            verbs.extend(verb.get_subcommands().filter(|verb| verb.get_name() != "help"));
        }
    }

    #[test]
    fn wrong_usage_is_told_from_help() {
        let parse = |words: &[&str]| Cli::try_parse_from(words).map(|_| ()).map_err(|error| error.use_stderr());
        assert_eq!(parse(&["countersign", "--help"]), Err(false));
        assert_eq!(parse(&["countersign", "--version"]), Err(false));
        assert_eq!(parse(&["countersign", "frobnicate"]), Err(true));
        assert_eq!(parse(&["countersign", "approve"]), Err(true));
        assert_eq!(parse(&["countersign", "pending", "--data", "/d", "--url", "http://a"]), Err(true));
        assert_eq!(parse(&["countersign", "--data", "/d", "pending", "--json"]), Ok(()));
    }
}
