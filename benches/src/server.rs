//! Processes under measurement: the real binary on a folder of its own, and the echo server. Each ends with
//! its handle.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use serde_json::Value;

use crate::client::{Connection, Request};

const START_LIMIT: Duration = Duration::from_secs(60);
/// Nothing but the machine's speed limits a benchmark.
const CONFIG: &str = "[limits]\nrequests_per_key = 1000000000\nrequests_per_address = 1000000000\n\
                      max_pending = 100000000\nmax_pending_bytes = 100000000000\nmax_pending_bytes_total = 100000000000\n";

/// A child that listens on loopback.
#[derive(Debug)]
pub struct Server {
    child: Child,
    pub address: SocketAddr,
    /// From being spawned to saying that it listens.
    pub started_in: Duration,
}

impl Server {
    /// `countersign serve` on this data folder, as it was built beside this program.
    pub fn gate(data: &Path) -> anyhow::Result<Self> {
        let binary = built("countersign")?;
        let config = data.with_extension("toml");
        std::fs::write(&config, CONFIG)?;
        let mut command = Command::new(binary);
        command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(data).arg("--config").arg(config);
        Self::spawn(command)
    }

    pub fn echo(create_bytes: usize, decide_bytes: usize) -> anyhow::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("echo").arg(create_bytes.to_string()).arg(decide_bytes.to_string());
        Self::spawn(command)
    }

    fn spawn(mut command: Command) -> anyhow::Result<Self> {
        let started = Instant::now();
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        let stderr = child.stderr.take().context("no stderr")?;
        let (found, listening) = mpsc::channel();
        // Read to its end: a child must never wait for somebody to read its log.
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                if let Some((_, address)) = line.split_once("listening on http://") {
                    let _ = found.send((started.elapsed(), address.to_owned()));
                } else if line.contains("\"WARN\"") || line.contains("\"ERROR\"") || line.starts_with("Error") {
                    eprintln!("server: {line}");
                }
            }
        });
        let heard = listening.recv_timeout(START_LIMIT);
        if heard.is_err() {
            let _ = child.kill();
        }
        let (started_in, address) = heard.context("the server did not say where it listens")?;
        Ok(Self { child, address: address.trim().parse()?, started_in })
    }

    pub fn resident_bytes(&self) -> anyhow::Result<u64> {
        resident_bytes(&self.child.id().to_string())
    }

    /// The most it ever had.
    pub fn peak_bytes(&self) -> anyhow::Result<u64> {
        Ok(status_field(&self.child.id().to_string(), "VmHWM:")? * 1024)
    }

    /// Of all its threads, since it was started.
    pub fn processor_time(&self) -> anyhow::Result<Duration> {
        processor_time(&self.child.id().to_string())
    }

    pub fn threads(&self) -> anyhow::Result<u64> {
        status_field(&self.child.id().to_string(), "Threads:")
    }

    /// As the machine losing power would stop it.
    pub fn kill(mut self) -> anyhow::Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A program of the same build as this one.
pub fn built(name: &str) -> anyhow::Result<PathBuf> {
    let path = std::env::current_exe()?.with_file_name(name);
    ensure!(path.exists(), "`{}` is not there; run `cargo build --release -p countersign`", path.display());
    Ok(path)
}

/// A folder that goes away by itself, on the disk that the build is on.
pub fn scratch() -> anyhow::Result<tempfile::TempDir> {
    let exe = std::env::current_exe()?;
    let target = exe.parent().and_then(Path::parent).context("no folder to work in")?;
    Ok(tempfile::Builder::new().prefix("bench-").tempdir_in(target)?)
}

/// `process` is a number, or `self`.
pub fn resident_bytes(process: &str) -> anyhow::Result<u64> {
    Ok(status_field(process, "VmRSS:")? * 1024)
}

/// User and system time, which the kernel counts in hundredths of a second.
pub fn processor_time(process: &str) -> anyhow::Result<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    let (_, after_name) = stat.rsplit_once(')').context("no name in stat")?;
    let fields = after_name.split_whitespace().skip(11).take(2).map(str::parse::<u64>);
    Ok(Duration::from_millis(10 * fields.sum::<Result<u64, _>>()?))
}

fn status_field(process: &str, field: &str) -> anyhow::Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let value = status.lines().find_map(|line| line.strip_prefix(field)).context("no such field")?;
    Ok(value.split_whitespace().next().context("an empty field")?.parse()?)
}

/// The keys a benchmark works with.
#[derive(Clone, Debug)]
pub struct Keys {
    pub agent: String,
    pub approver: String,
}

impl Keys {
    /// Made over the wire with the folder's admin key, as an operator would.
    pub async fn make(gate: &Server, data: &Path) -> anyhow::Result<Self> {
        let admin = std::fs::read_to_string(data.join("admin.key"))?.trim().to_owned();
        let mut connection = Connection::open(gate.address).await?;
        let mut made = Vec::new();
        for role in ["agent", "approver"] {
            let body = format!(r#"{{"role":"{role}","name":"bench","profile":"default"}}"#);
            let request = Request { method: "POST", path: "/v1/keys", key: &admin, body: &body };
            let answer: Value = serde_json::from_slice(connection.call(request).await?.ok()?)?;
            made.push(answer.get("key").and_then(Value::as_str).context("no key in the answer")?.to_owned());
        }
        let approver = made.pop().context("no approver's key")?;
        Ok(Self { agent: made.pop().context("no agent's key")?, approver })
    }
}

/// How many commands shared how many commits, since the start.
#[derive(Clone, Copy, Debug, Default)]
pub struct Commits {
    pub batches: f64,
    pub commands: f64,
}

impl Commits {
    pub async fn read(gate: &Server) -> anyhow::Result<Self> {
        let mut connection = Connection::open(gate.address).await?;
        let request = Request { method: "GET", path: "/metrics", key: "", body: "" };
        let text = String::from_utf8(connection.call(request).await?.ok()?.to_vec())?;
        let figure = |name: &str| -> anyhow::Result<f64> {
            let line = text.lines().find_map(|line| line.strip_prefix(name)).with_context(|| format!("no `{name}`"))?;
            Ok(line.trim().parse()?)
        };
        Ok(Self {
            batches: figure("countersign_ledger_batches_total ")?,
            commands: figure("countersign_ledger_commands_total ")?,
        })
    }

    pub fn batch_size_since(self, before: Self) -> f64 {
        (self.commands - before.commands) / (self.batches - before.batches).max(1.0)
    }
}
