//! `countersign serve`: runs the gate of a data folder until it is told to stop.

use std::io::IsTerminal as _;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use countersign_channels::Forward;
use countersign_doors::http::{Listener, router, serve, tls_config};
use countersign_doors::profiles;
use countersign_gate::Gate;
use countersign_model::CommandTypes;
use tokio::net::{TcpListener, UnixListener};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tracing_subscriber::EnvFilter;

use crate::config::{Config, DEFAULT_LISTEN};
use crate::folder::Folder;
use crate::rules;
use crate::wire_up::{ensure_admin_key, machine_rules, start_gate};
use crate::witness::Witness;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  countersign serve\n  countersign serve --listen 0.0.0.0:8443 --tls-cert cert.pem --tls-key key.pem --host gate.example.org"
)]
pub struct Args {
    /// Address to listen on
    #[arg(long, env = "COUNTERSIGN_LISTEN", value_name = "ADDR", help = format!("Address to listen on [default: {DEFAULT_LISTEN}]"))]
    pub listen: Option<SocketAddr>,
    /// Configuration file (TOML)
    #[arg(long, env = "COUNTERSIGN_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Certificate chain in PEM
    #[arg(long, value_name = "FILE")]
    pub tls_cert: Option<PathBuf>,
    /// Private key in PEM
    #[arg(long, value_name = "FILE")]
    pub tls_key: Option<PathBuf>,
    /// Listen beyond this machine without TLS, behind a proxy that does it
    #[arg(long)]
    pub insecure_listen: bool,
    /// A host name this gate answers to (may be repeated)
    #[arg(long, value_name = "NAME")]
    pub host: Vec<String>,
    /// An origin whose pages may talk to this gate (may be repeated)
    #[arg(long, value_name = "ORIGIN")]
    pub origin: Vec<String>,
    /// Remove the contents of what ended this many days ago; the record of it stays
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u64).range(1..=36_500))]
    pub retention_days: Option<u64>,
    /// Append signed checkpoints of the record to this file, somewhere else than the data folder
    #[arg(long, value_name = "FILE")]
    pub witness: Option<PathBuf>,
    /// What to log, such as `info` or `countersign_doors=debug`
    #[arg(long, env = "COUNTERSIGN_LOG", default_value = "info", value_name = "FILTER")]
    pub log: String,
}

pub fn run(args: Args, data: PathBuf) -> anyhow::Result<ExitCode> {
    let config = Config::load(&args)?;
    start_logging(&args.log)?;
    // Whatever this process makes is for its owner alone.
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    let folder = Folder::take(&data)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(serve_folder(&folder, config, &data))?;
    Ok(ExitCode::SUCCESS)
}

async fn serve_folder(folder: &Folder, mut config: Config, data: &Path) -> anyhow::Result<()> {
    let gate = start_gate(folder, config.gate).await?;
    let roots = config.roots.clone();
    gate.use_rules(machine_rules(data, rules::read(&config.rules)?, roots.clone()));
    tokio::spawn(reread_rules(gate.clone(), data.to_owned(), config.rules.clone(), roots));
    gate.use_command_types(CommandTypes::with(config.action_types.clone()));
    let made = ensure_admin_key(folder, &gate).await?;
    if let Some(upstream) = config.forward {
        tokio::spawn(Forward::new(&gate, upstream).await?.run());
    }
    let (ending, ended) = watch::channel(false);
    let witness = config.witness.take().map(|path| Witness::new(path, folder, data, &gate)).transpose()?;
    let witness = witness.map(|witness| tokio::spawn(witness.run(ended)));
    let tcp = TcpListener::bind(config.listen)
        .await
        .with_context(|| format!("cannot listen on `{}`; choose another address with `--listen`", config.listen))?;
    let address = tcp.local_addr()?;
    let scheme = if config.tls.is_some() { "https" } else { "http" };
    let url = format!("{scheme}://{address}");
    // By name where it has one: that is what others can reach, and what a certificate is for.
    let named = config.http.hosts.first().map(|host| format!("{scheme}://{host}:{}", address.port()));
    config.http.url = Some(named.unwrap_or_else(|| url.clone()));
    let tcp = match &config.tls {
        Some((certificate, key)) => Listener::Tls(tcp, tls_config(certificate, key)?),
        None => Listener::Tcp(tcp),
    };
    let listeners = vec![tcp, Listener::Unix(listen_on_socket(&folder.socket())?)];
    let (closing, closed) = watch::channel(false);
    let stopping = gate.clone();
    // Heard of from before anybody is told that the gate is there.
    let mut signals = Signals::listen();
    tokio::spawn(async move {
        signals.next().await;
        tracing::info!("stopping; whoever waits gets an answer to ask again with");
        stopping.close();
        closing.send_replace(true);
        signals.next().await;
        std::process::exit(1);
    });
    profiles::start(gate.clone(), profiles::folder_in(data));
    greet(&url, folder, data, made);
    serve(listeners, router(gate.clone(), config.http.clone()), config.http, closed).await;
    ending.send_replace(true);
    if let Some(witness) = witness {
        witness.await?;
    }
    gate.close();
    // Others must not find a socket that nobody serves.
    let _ = std::fs::remove_file(folder.socket());
    Ok(())
}

/// On SIGHUP the user's rules are read again. Broken ones change nothing: the last good ones stay.
async fn reread_rules(gate: Gate, data: PathBuf, files: Vec<PathBuf>, roots: Vec<String>) {
    let Ok(mut hangup) = signal(SignalKind::hangup()) else { return };
    while hangup.recv().await.is_some() {
        match rules::read(&files) {
            Ok(rules) => {
                gate.use_rules(machine_rules(&data, rules, roots.clone()));
                tracing::info!("the rules for commands were read again");
            }
            Err(error) => tracing::error!("the rules are not used, those from before stay: {error:#}"),
        }
    }
}

pub fn listen_on_socket(path: &Path) -> anyhow::Result<UnixListener> {
    // The lock is ours, so a socket file that is there belongs to nobody.
    let _ = std::fs::remove_file(path);
    let listener = UnixListener::bind(path).with_context(|| {
        format!(
            "cannot listen on `{}`; a socket's path is at most 107 bytes, so choose a shorter `--data`",
            path.display()
        )
    })?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// What ends the gate.
struct Signals(Option<(Signal, Signal)>);

impl Signals {
    fn listen() -> Self {
        Self(signal(SignalKind::interrupt()).ok().zip(signal(SignalKind::terminate()).ok()))
    }

    async fn next(&mut self) {
        let Some((interrupt, terminate)) = &mut self.0 else { return std::future::pending().await };
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    }
}

/// Tells the person where it listens and what to try next.
fn greet(url: &str, folder: &Folder, data: &Path, made_key: bool) {
    eprintln!("countersign is listening on {url}");
    eprintln!("  data folder   {}", data.display());
    if made_key {
        eprintln!(
            "  admin key     {} (made now; this user's commands find it by themselves)",
            folder.admin_key().display()
        );
    }
    eprintln!("  try next, in another terminal:");
    // As it was called, so that the lines work as they stand before it is on the PATH.
    let mut called = std::env::args();
    let program = called.next().unwrap_or_else(|| "countersign".to_owned());
    let folder = if called.any(|word| word.starts_with("--data")) {
        format!(" --data {}", data.display())
    } else {
        String::new()
    };
    eprintln!("    {program} watch{folder}");
    eprintln!("    {program} ask{folder} -c 'rm -rf ./build'");
}

fn start_logging(filter: &str) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(filter)
        .with_context(|| format!("`{filter}` is no log filter; try `info` or `countersign_doors=debug`"))?;
    let subscriber = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    if std::io::stderr().is_terminal() {
        subscriber.with_target(false).init();
    } else {
        subscriber.json().init();
    }
    Ok(())
}
