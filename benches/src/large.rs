//! `bench large`: what one request costs that is as large, as wide or as hostile as the door lets through.

use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::client::{Connection, Request};
use crate::report::{Table, against, print_machine, say};
use crate::server::{Keys, Server, scratch};

/// The first ones touch memory that the process has never had.
const WARM_UP: usize = 8;
const GOAL: Duration = Duration::from_millis(20);
const GOAL_BYTES: u64 = 50 * 1024 * 1024;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  bench large --requests 100")]
pub struct Args {
    /// Requests of each kind
    #[arg(long, default_value_t = 40, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    requests: u32,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let folder = scratch()?;
    print_machine();
    let mut table =
        Table::new(["one request", "bytes", "processor time", "peak memory of the first", "of all", "goal"]);
    for (name, body) in bodies() {
        say(format!("large: {name}"));
        let data = folder.path().join(name.replace(' ', "-"));
        crate::runtime()?.block_on(measure(&data, name, &body.to_string(), args.requests, &mut table))?;
    }
    table.print("Large and hostile requests, each kind on a gate of its own");
    Ok(())
}

async fn measure(
    data: &std::path::Path,
    name: &str,
    body: &str,
    requests: u32,
    table: &mut Table,
) -> anyhow::Result<()> {
    let gate = Server::gate(data)?;
    let keys = Keys::make(&gate, data).await?;
    let mut connection = Connection::open(gate.address).await?;
    let ask = Request { method: "POST", path: "/v1/approvals", key: &keys.agent, body };
    let idle = gate.resident_bytes()?;
    connection.call(ask).await?.ok()?;
    let grown = gate.peak_bytes()?.saturating_sub(idle);
    for _ in 1..WARM_UP {
        connection.call(ask).await?.ok()?;
    }
    let before = gate.processor_time()?;
    for _ in 0..requests {
        connection.call(ask).await?.ok()?;
    }
    let each = (gate.processor_time()? - before) / requests;
    let after_all = gate.peak_bytes()?.saturating_sub(idle);
    table.row([
        name.to_owned(),
        body.len().to_string(),
        format!("{:.1} ms", each.as_secs_f64() * 1000.0),
        format!("{:.0} MB", grown as f64 / 1e6),
        format!("{:.0} MB", after_all as f64 / 1e6),
        against("< 20 ms and 50 MB", each < GOAL && grown < GOAL_BYTES),
    ]);
    Ok(())
}

fn bodies() -> Vec<(&'static str, Value)> {
    let tool = |args: Value| json!({"session_id": "s", "tool": "Write", "args": args});
    let command = |text: String| json!({"session_id": "s", "command": text});
    let nested = (0..28).fold(json!([1, 2, 3]), |value, _| json!([value]));
    let wide: Map<String, Value> = (0..19_000).map(|at| (format!("k{at}"), json!(format!("v{at}")))).collect();
    let texts: Map<String, Value> = (0..1900).map(|at| (format!("k{at}"), json!("v".repeat(500)))).collect();
    vec![
        ("small", tool(json!({"file_path": "a"}))),
        ("one long text", tool(json!({"file_path": "a", "text": "y".repeat(1_000_000)}))),
        ("many texts", tool(Value::Object(texts))),
        ("many small values", tool(Value::Object(wide))),
        ("deep values", tool(json!({"rows": vec![nested; 600], "text": "y".repeat(100_000)}))),
        ("longest command", command(format!("echo {}", "a".repeat(16_000)))),
        ("doubling variables", command(format!("a=xxxxxxxx; {} rm $a", "a=$a$a; ".repeat(40)))),
        ("many commands", command("ls -la; ".repeat(500))),
        ("nested substitutions", command(format!("{}id{}", "echo $(".repeat(100), ")".repeat(100)))),
    ]
}
