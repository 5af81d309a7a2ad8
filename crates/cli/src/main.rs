mod client { #[derive(Debug)] pub struct Request { pub method: &'static str, pub path: String, pub body: Option<serde_json::Value>, pub key: Option<String> } #[derive(Debug)] pub struct Response { pub status: u16, pub headers: Vec<(String,String)>, pub body: Vec<u8> } }
mod config; mod folder; mod serve; mod wire_up;
use clap::Parser;
#[derive(Parser)] struct Cli { #[arg(long, global=true, env="COUNTERSIGN_DATA")] data: Option<std::path::PathBuf>, #[command(subcommand)] verb: Verb }
#[derive(clap::Subcommand)] enum Verb { Serve(serve::Args) }
fn main() -> anyhow::Result<std::process::ExitCode> { let cli = Cli::parse(); match cli.verb { Verb::Serve(a) => serve::run(a, cli.data.unwrap()) } }
