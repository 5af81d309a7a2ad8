//! From a person's answer being sent to the waiting agent having it: the time that people feel.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use tokio::task::JoinSet;

use crate::client::{Connection, Request, string_field};
use crate::report::Samples;
use crate::server::Keys;
use crate::throughput::{create, decide};

const LAST_ANSWERS: Duration = Duration::from_secs(60);
/// For the waiter to be parked before the decision is sent.
const PARKING: Duration = Duration::from_millis(5);

/// When the decisions are sent.
#[derive(Clone, Copy, Debug)]
pub enum Pace {
    /// As soon as the waiter is parked: the machine is the limit, and requests queue for it.
    Flat,
    /// So that all triples together decide about this often a second.
    PerSecond(u32),
}

impl Pace {
    fn pause(self, triples: usize) -> Duration {
        match self {
            Self::Flat => PARKING,
            Self::PerSecond(rate) => (Duration::from_secs(triples as u64) / rate.max(1)).max(PARKING),
        }
    }
}

/// `triples` times an agent that creates, a waiter of its own and an approver, each on its connection.
pub async fn wakes(
    address: SocketAddr,
    keys: &Arc<Keys>,
    triples: usize,
    pace: Pace,
    time: Duration,
) -> anyhow::Result<Samples> {
    let started = Instant::now();
    let pause = pace.pause(triples);
    let mut loops = JoinSet::new();
    for lane in 0..triples {
        let keys = keys.clone();
        let mut triple = Triple::open(address).await?;
        loops.spawn(async move {
            // Spread over one pause, so that the triples do not march in step.
            tokio::time::sleep(pause * lane as u32 / triples as u32).await;
            let (mut samples, mut number) = (Samples::default(), 0);
            while started.elapsed() < time {
                samples.push(triple.wake(&keys, lane, number, pause).await?);
                number += 1;
            }
            anyhow::Ok(samples)
        });
    }
    let all = async {
        let mut all = Samples::default();
        while let Some(samples) = loops.join_next().await {
            all.extend(samples??);
        }
        anyhow::Ok(all)
    };
    tokio::time::timeout(time + LAST_ANSWERS, all).await.context("answers did not come in time")?
}

struct Triple {
    agent: Connection,
    waiter: Connection,
    approver: Connection,
}

impl Triple {
    async fn open(address: SocketAddr) -> anyhow::Result<Self> {
        Ok(Self {
            agent: Connection::open(address).await?,
            waiter: Connection::open(address).await?,
            approver: Connection::open(address).await?,
        })
    }

    async fn wake(&mut self, keys: &Keys, lane: usize, number: u64, pause: Duration) -> anyhow::Result<Duration> {
        let id = create(&mut self.agent, keys, lane, number).await?;
        let path = format!("/v1/approvals/{id}?wait=60");
        self.waiter.send(Request { method: "GET", path: &path, key: &keys.agent, body: "" }).await?;
        tokio::time::sleep(pause).await;
        let sent = Instant::now();
        let woken = async {
            let answer = self.waiter.answer().await?;
            let woken = sent.elapsed();
            let status = string_field(answer.ok()?, "status")?;
            anyhow::ensure!(status == "approved", "the waiter was answered `{status}`");
            Ok(woken)
        };
        let (woken, ()) = tokio::try_join!(woken, decide(&mut self.approver, keys, &id))?;
        Ok(woken)
    }
}
