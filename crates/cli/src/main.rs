//! The binary: reads the command line, runs one verb, ends with its number. What a verb does is in `cli`.

mod allocator;
mod approvals;
mod asking;
mod cli;
mod client;
mod config;
mod engine;
mod exit;
mod folder;
mod import;
mod interrupt;
mod keys;
mod line;
mod locate;
mod output;
mod prompt;
mod record;
mod relay;
mod rules;
mod running;
mod serve;
mod session;
mod showing;
mod table;
mod uploading;
mod verdict;
mod watch;
mod when;
mod width;
mod wire_up;
mod witness;
mod workspace;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let cli = match cli::Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return exit::code(if error.use_stderr() { exit::USAGE } else { exit::OK });
        }
    };
    match cli::run(cli) {
        Ok(code) => code,
        Err(error) => {
            if !error.is::<output::StdoutClosed>() {
                output::note(&format!("countersign: {error:#}"));
            }
            exit::code(exit::of_error(&error))
        }
    }
}
