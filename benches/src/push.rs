//! `bench push`: how soon a thousand devices of the hub know of a request, and what a device costs that only waits.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use crate::client::{Connection, Request};
use crate::report::{Samples, Table, against, millis, print_machine, say};
use crate::server::{Keys, Server, scratch};

const GOAL: Duration = Duration::from_millis(50);
const GOAL_BYTES: f64 = 20.0 * 1024.0;
const CARD: &[u8] = b"exec-approval-request";
/// Between two requests, so that one is over before the next: people are asked now and then, not in bursts.
const PAUSE: Duration = Duration::from_millis(100);
const PATIENCE: Duration = Duration::from_secs(30);
/// Opened at a time: as many as the listener's queue takes.
const OPENING: usize = 64;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  bench push --devices 1000 --idle 10000")]
pub struct Args {
    /// Devices that are told of each request
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=9000))]
    devices: u64,
    /// Requests
    #[arg(long, default_value_t = 100)]
    rounds: u64,
    /// Devices that only wait
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=19_000))]
    idle: u64,
}

/// How a device comes in.
#[derive(Clone, Copy, Debug)]
enum Transport {
    Plain,
    SocketIo,
}

impl Transport {
    const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain WebSocket",
            Self::SocketIo => "Socket.IO over WebSocket",
        }
    }
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let folder = scratch()?;
    print_machine();
    let mut told = Table::new(["devices", "transport", "told", "p50", "p99", "slowest", "goal for the p99"]);
    let mut idle = Table::new(["idle devices", "transport", "memory each", "goal"]);
    for transport in [Transport::Plain, Transport::SocketIo] {
        let data = folder.path().join(format!("push-{transport:?}"));
        crate::runtime()?.block_on(push(&data, args, transport, &mut told))?;
        let data = folder.path().join(format!("idle-{transport:?}"));
        crate::runtime()?.block_on(wait(&data, args.idle, transport, &mut idle))?;
    }
    told.print("From asking to a device having the card");
    idle.print("Devices that only wait");
    Ok(())
}

async fn push(data: &std::path::Path, args: &Args, transport: Transport, table: &mut Table) -> anyhow::Result<()> {
    say(format!("push: {} devices, {}", args.devices, transport.name()));
    let gate = Server::gate(data)?;
    let keys = Keys::make(&gate, data).await?;
    let (heard, mut hearing) = mpsc::unbounded_channel();
    for device in connect_all(gate.address, &keys, args.devices, transport).await? {
        let heard = heard.clone();
        tokio::spawn(async move { device.listen(&heard).await });
    }
    let mut agent = Connection::open(gate.address).await?;
    let mut samples = Samples::default();
    let mut slowest = Duration::ZERO;
    for round in 0..args.rounds {
        let body = format!(r#"{{"session_id":"bench","command":"rm -rf ./build/{round}","expires_in_sec":3600}}"#);
        // From before it is sent: what comes of it includes the commit.
        let asked = Instant::now();
        agent.call(Request { method: "POST", path: "/v1/approvals", key: &keys.agent, body: &body }).await?.ok()?;
        for _ in 0..args.devices {
            let at = tokio::time::timeout(PATIENCE, hearing.recv()).await.context("a device was not told")?;
            let took = at.context("the devices are gone")?.saturating_duration_since(asked);
            slowest = slowest.max(took);
            samples.push(took);
        }
        tokio::time::sleep(PAUSE).await;
    }
    let p99 = samples.percentile(99);
    table.row([
        args.devices.to_string(),
        transport.name().to_owned(),
        samples.len().to_string(),
        millis(samples.percentile(50)),
        millis(p99),
        millis(slowest),
        against("< 50 ms", p99 < GOAL),
    ]);
    Ok(())
}

async fn wait(data: &std::path::Path, count: u64, transport: Transport, table: &mut Table) -> anyhow::Result<()> {
    say(format!("push: {count} idle devices, {}", transport.name()));
    let gate = Server::gate(data)?;
    let keys = Keys::make(&gate, data).await?;
    // What the first connections need once is not theirs.
    let first = connect_all(gate.address, &keys, 64, transport).await?;
    let before = gate.resident_bytes()?;
    let there = connect_all(gate.address, &keys, count, transport).await?;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let each = gate.resident_bytes()?.saturating_sub(before) as f64 / count as f64;
    ensure!(there.len() as u64 == count && first.len() == 64, "not every device is there");
    table.row([
        count.to_string(),
        transport.name().to_owned(),
        format!("{:.1} KiB", each / 1024.0),
        against("< 20 KiB", each < GOAL_BYTES),
    ]);
    Ok(())
}

async fn connect_all(
    address: SocketAddr,
    keys: &Keys,
    count: u64,
    transport: Transport,
) -> anyhow::Result<Vec<Device>> {
    let key: Arc<str> = keys.approver.as_str().into();
    let mut devices = Vec::new();
    let mut opening = tokio::task::JoinSet::new();
    for number in 0..count {
        if opening.len() >= OPENING
            && let Some(opened) = opening.join_next().await
        {
            devices.push(opened??);
        }
        opening.spawn(Device::connect(address, key.clone(), number, transport));
    }
    while let Some(opened) = opening.join_next().await {
        devices.push(opened??);
    }
    Ok(devices)
}

/// A WebSocket client that spends as little as it can.
#[derive(Debug)]
struct Device {
    stream: TcpStream,
    input: Vec<u8>,
}

impl Device {
    async fn connect(address: SocketAddr, key: Arc<str>, number: u64, transport: Transport) -> anyhow::Result<Self> {
        let path = match transport {
            Transport::Plain => "/hub?",
            Transport::SocketIo => "/ws/?EIO=4&transport=websocket&",
        };
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let mut device = Self { stream, input: Vec::new() };
        // Those of another call are still there.
        let id = format!("{number}-{}", device.stream.local_addr()?.port());
        let head = format!(
            "GET {path}deviceId={id}&deviceType=client&key={key} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: upgrade\r\n\
             upgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        );
        device.stream.write_all(head.as_bytes()).await?;
        let end = device.read_until(|input| position(input, b"\r\n\r\n")).await?;
        ensure!(device.input.starts_with(b"HTTP/1.1 101"), "no WebSocket: {}", String::from_utf8_lossy(&device.input));
        device.input.drain(..end + 4);
        if let Transport::SocketIo = transport {
            device.frame().await?;
            // `40`, masked with zeros: joins the only namespace there is.
            device.stream.write_all(&[0x81, 0x82, 0, 0, 0, 0, b'4', b'0']).await?;
        }
        loop {
            let frame = device.frame().await?;
            if position(&frame, b"\"success\":true").is_some() {
                device.input.shrink_to_fit();
                return Ok(device);
            }
            ensure!(position(&frame, b"\"success\":false").is_none(), "not registered");
        }
    }

    /// Says when each card came.
    async fn listen(mut self, heard: &mpsc::UnboundedSender<Instant>) -> anyhow::Result<()> {
        loop {
            let frame = self.frame().await?;
            if position(&frame, CARD).is_some() && heard.send(Instant::now()).is_err() {
                return Ok(());
            }
            if frame == b"2" {
                // The transport's own ping.
                self.stream.write_all(&[0x81, 0x81, 0, 0, 0, 0, b'3']).await?;
            }
        }
    }

    /// The next text frame's text. A ping is answered.
    async fn frame(&mut self) -> anyhow::Result<Vec<u8>> {
        loop {
            self.read_until(|input| (input.len() >= 2).then_some(0)).await?;
            let (opcode, short) = match self.input.as_slice() {
                [first, second, ..] => (first & 0x0f, usize::from(second & 0x7f)),
                _ => bail!("no frame"),
            };
            let header = match short {
                126 => 4,
                127 => 10,
                _ => 2,
            };
            self.read_until(|input| (input.len() >= header).then_some(0)).await?;
            let size = match self.input.get(2..header) {
                Some([]) | None => short,
                Some(bytes) => bytes.iter().fold(0, |size, byte| size << 8 | usize::from(*byte)),
            };
            self.read_until(|input| (input.len() >= header + size).then_some(0)).await?;
            let frame: Vec<u8> = self.input.drain(..header + size).skip(header).collect();
            match opcode {
                0x1 => return Ok(frame),
                0x8 => bail!("closed: {}", String::from_utf8_lossy(&frame)),
                0x9 => self.stream.write_all(&[0x8a, 0x80, 0, 0, 0, 0]).await?,
                _ => {}
            }
        }
    }

    async fn read_until(&mut self, found: impl Fn(&[u8]) -> Option<usize>) -> anyhow::Result<usize> {
        loop {
            if let Some(at) = found(&self.input) {
                return Ok(at);
            }
            ensure!(self.stream.read_buf(&mut self.input).await? > 0, "the connection ended");
        }
    }
}

fn position(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}
