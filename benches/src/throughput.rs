//! Closed loops of create and decide: every connection sends its next request when it has the answer to the
//! last. The gate and the echo server are driven by this same code.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use crate::client::{Connection, Request, string_field};
use crate::server::{Keys, Server};

/// For what was sent to be answered once the time is over.
const LAST_ANSWERS: Duration = Duration::from_secs(30);
const DECISION: &str = r#"{"decision":"allow-once"}"#;

/// What one run came to.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    pub pairs_per_second: f64,
    /// Of the server, for each request.
    pub processor: Duration,
}

/// `pairs`, with what they cost the server: the figure that others' work on the machine hardly touches.
pub async fn costed_pairs(
    server: &Server,
    keys: &Arc<Keys>,
    connections: usize,
    time: Duration,
) -> anyhow::Result<Run> {
    let (before, started) = (server.processor_time()?, Instant::now());
    let pairs_per_second = pairs(server.address, keys, connections, time).await?;
    let used = server.processor_time()? - before;
    let requests = 2.0 * pairs_per_second * started.elapsed().as_secs_f64();
    Ok(Run { pairs_per_second, processor: used.div_f64(requests.max(1.0)) })
}

/// Pairs a second over `connections` connections for about `time`.
pub async fn pairs(address: SocketAddr, keys: &Arc<Keys>, connections: usize, time: Duration) -> anyhow::Result<f64> {
    let barrier = Arc::new(Barrier::new(connections + 1));
    let mut loops = JoinSet::new();
    for lane in 0..connections {
        let (barrier, keys) = (barrier.clone(), keys.clone());
        let mut connection = Connection::open(address).await?;
        loops.spawn(async move {
            barrier.wait().await;
            let started = Instant::now();
            let mut done = 0u64;
            while started.elapsed() < time {
                pair(&mut connection, &keys, lane, done).await?;
                done += 1;
            }
            anyhow::Ok(done)
        });
    }
    barrier.wait().await;
    let started = Instant::now();
    let total = async {
        let mut total = 0;
        while let Some(done) = loops.join_next().await {
            total += done??;
        }
        anyhow::Ok(total)
    };
    let total = tokio::time::timeout(time + LAST_ANSWERS, total).await.context("answers did not come in time")??;
    Ok(total as f64 / started.elapsed().as_secs_f64())
}

async fn pair(connection: &mut Connection, keys: &Keys, lane: usize, number: u64) -> anyhow::Result<()> {
    let id = create(connection, keys, lane, number).await?;
    decide(connection, keys, &id).await
}

pub async fn create(connection: &mut Connection, keys: &Keys, lane: usize, number: u64) -> anyhow::Result<String> {
    let body = create_body(lane, number);
    let request = Request { method: "POST", path: "/v1/approvals", key: &keys.agent, body: &body };
    Ok(string_field(connection.call(request).await?.ok()?, "approval_id")?.to_owned())
}

pub async fn decide(connection: &mut Connection, keys: &Keys, id: &str) -> anyhow::Result<()> {
    let path = format!("/v1/approvals/{id}/decision");
    let request = Request { method: "POST", path: &path, key: &keys.approver, body: DECISION };
    connection.call(request).await?.ok()?;
    Ok(())
}

fn create_body(lane: usize, number: u64) -> String {
    format!(
        r#"{{"session_id":"sess_{lane}","action_type":"http_request","title":"POST request","preview":"POST https://api.example.com/pay?order={lane}-{number}","expires_in_sec":3600}}"#
    )
}

/// How long the two answers are.
pub async fn answer_sizes(address: SocketAddr, keys: &Keys) -> anyhow::Result<(usize, usize)> {
    let mut connection = Connection::open(address).await?;
    let body = create_body(0, 0);
    let request = Request { method: "POST", path: "/v1/approvals", key: &keys.agent, body: &body };
    let created = connection.call(request).await?.ok()?;
    let (created_bytes, path) =
        (created.len(), format!("/v1/approvals/{}/decision", string_field(created, "approval_id")?));
    let request = Request { method: "POST", path: &path, key: &keys.approver, body: DECISION };
    Ok((created_bytes, connection.call(request).await?.ok()?.len()))
}
