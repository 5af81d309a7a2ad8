//! Figures for the operator. What happened is counted from the feed, so a figure is never ahead of the
//! record; what is now is read when asked for.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

use countersign_gate::{Feed, Gate};
use countersign_model::{Approval, EventKind, Reason};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    door: &'static str,
    ruling: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabels {
    status: &'static str,
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResponseLabels {
    status: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RefusedLabels {
    limit: &'static str,
}

#[derive(Debug)]
pub(super) struct Metrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    outcomes: Family<OutcomeLabels, Counter>,
    decide_seconds: Histogram,
    responses: Family<ResponseLabels, Counter>,
    pending: Gauge,
    pending_bytes: Gauge,
    refused: Family<RefusedLabels, Counter>,
    waiters: Gauge,
    batches: Counter,
    commands: Counter,
    commit_seconds: Counter<f64, AtomicU64>,
}

impl Metrics {
    pub(super) fn new() -> Self {
        let decide_buckets = [0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 3600.0];
        let mut metrics = Self {
            registry: Registry::with_prefix("countersign"),
            requests: Family::default(),
            outcomes: Family::default(),
            decide_seconds: Histogram::new(decide_buckets),
            responses: Family::default(),
            pending: Gauge::default(),
            pending_bytes: Gauge::default(),
            refused: Family::default(),
            waiters: Gauge::default(),
            batches: Counter::default(),
            commands: Counter::default(),
            commit_seconds: Counter::default(),
        };
        metrics.register();
        metrics
    }

    fn register(&mut self) {
        let registry = &mut self.registry;
        registry.register("requests", "Requests by door and policy's ruling", self.requests.clone());
        registry.register("outcomes", "Approvals that ended, by status and reason", self.outcomes.clone());
        registry.register("decide_seconds", "From asking a person to their answer", self.decide_seconds.clone());
        registry.register("http_responses", "HTTP answers by status", self.responses.clone());
        registry.register("pending", "Approvals waiting for an answer", self.pending.clone());
        registry.register(
            "pending_bytes",
            "Bytes of pending requests that count towards the limits",
            self.pending_bytes.clone(),
        );
        registry.register("refused", "Requests that were not taken, by limit", self.refused.clone());
        registry.register("waiters", "Callers held until an approval ends", self.waiters.clone());
        registry.register("ledger_batches", "Transactions committed", self.batches.clone());
        registry.register("ledger_commands", "Commands committed, many to a batch", self.commands.clone());
        registry.register("ledger_commit_seconds", "Time spent in transactions", self.commit_seconds.clone());
    }

    pub(super) fn response(&self, status: u16) {
        self.responses.get_or_create(&ResponseLabels { status }).inc();
    }

    /// Counts from the feed until the store closes.
    pub(super) async fn follow(&self, gate: &Gate, mut feed: Feed) {
        while let Ok(events) = feed.next().await {
            for committed in events {
                let kind = committed.event.body.kind();
                match (&committed.approval, committed.event.body.approval_id()) {
                    (Some(approval), _) => self.count(kind, approval),
                    (None, Some(id)) => {
                        if let Ok(approval) = gate.owner().as_approver().summary(id).await {
                            self.count(kind, &approval);
                        }
                    }
                    (None, None) => {}
                }
            }
        }
    }

    fn count(&self, kind: EventKind, approval: &Approval) {
        let door = approval.request.requester.door.as_str();
        match (kind, &approval.outcome) {
            (EventKind::Requested, _) => {
                self.requests.get_or_create(&RequestLabels { door, ruling: "ask" }).inc();
            }
            (EventKind::Ruled, Some(outcome)) => {
                let ruling = if outcome.allowed_by.is_some() { "allow" } else { "deny" };
                self.requests.get_or_create(&RequestLabels { door, ruling }).inc();
            }
            (EventKind::Resolved, Some(outcome)) => {
                let labels = OutcomeLabels { status: outcome.status.as_str(), reason: outcome.reason.as_str() };
                self.outcomes.get_or_create(&labels).inc();
                if outcome.reason == Reason::Person {
                    let millis = approval.terms.created_at.millis_until(outcome.at);
                    self.decide_seconds.observe(millis as f64 / 1000.0);
                }
            }
            (
                EventKind::Ruled
                | EventKind::Resolved
                | EventKind::Consumed
                | EventKind::GrantMade
                | EventKind::GrantRevoked
                | EventKind::PolicyPut
                | EventKind::WrongNumber
                | EventKind::StopAsked
                | EventKind::Ran
                | EventKind::Trusted
                | EventKind::Untrusted
                | EventKind::KeyMade
                | EventKind::KeyRevoked
                | EventKind::NodeBound
                | EventKind::Swept,
                _,
            ) => {}
        }
    }

    pub(super) fn render(&self, gate: &Gate) -> String {
        let stats = gate.figures();
        self.pending.set(i64::try_from(stats.pending).unwrap_or(i64::MAX));
        self.pending_bytes.set(i64::try_from(stats.pending_bytes).unwrap_or(i64::MAX));
        for (limit, count) in [("pending", stats.refused_pending), ("pending_bytes", stats.refused_bytes)] {
            self.refused.get_or_create(&RefusedLabels { limit }).inner().store(count, Ordering::Relaxed);
        }
        self.waiters.set(i64::try_from(gate.waiting()).unwrap_or(i64::MAX));
        self.batches.inner().store(stats.batches, Ordering::Relaxed);
        self.commands.inner().store(stats.commands, Ordering::Relaxed);
        self.commit_seconds.inner().store((stats.commit_nanos as f64 / 1e9).to_bits(), Ordering::Relaxed);
        let mut text = String::new();
        if let Err(error) = prometheus_client::encoding::text::encode(&mut text, &self.registry) {
            text.clear();
            // Writing to a string does not fail.
            let _ = writeln!(text, "# the figures could not be written: {error}");
        }
        text
    }
}
