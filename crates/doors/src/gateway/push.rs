//! What everybody hears: each event of the record is written once and handed to every connection that may see it.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use countersign_gate::{Committed, Summary};
use countersign_model::{Approval, EventKind, KeyId, Status};
use parking_lot::RwLock;
use serde_json::json;
use tokio_tungstenite::tungstenite::Utf8Bytes;

use super::connection::Session;
use super::hello::{TICK_MS, Who};
use super::{Gateway, frame, views};
use crate::socket::Outbox;

#[derive(Debug, Default)]
pub(super) struct Peers(RwLock<HashMap<String, Peer>>);

#[derive(Debug)]
pub(super) struct Peer {
    outbox: Outbox,
    sees: Sees,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sees {
    Everything,
    Own(KeyId),
    Nothing,
}

impl Peer {
    pub(super) fn of(session: &Session) -> Self {
        let sees = match &session.who {
            Who::Person { .. } => Sees::Everything,
            Who::Agent(agent) => Sees::Own(agent.key_id()),
            Who::Node { .. } => Sees::Nothing,
        };
        Self { outbox: session.outbox.clone(), sees }
    }

    fn may_see(&self, approval: &Approval) -> bool {
        match self.sees {
            Sees::Everything => true,
            Sees::Own(key) => approval.request.requester.key_id == key,
            Sees::Nothing => false,
        }
    }
}

impl Peers {
    pub(super) fn add(&self, peer: Peer, connection: &str) {
        self.0.write().insert(connection.to_owned(), peer);
    }

    pub(super) fn remove(&self, connection: &str) {
        self.0.write().remove(connection);
    }

    fn any(&self, hears: impl Fn(&Peer) -> bool) -> bool {
        self.0.read().values().any(hears)
    }

    fn tell(&self, text: &Utf8Bytes, may_hear: impl Fn(&Peer) -> bool) {
        // A peer whose queue is full misses it, and nobody else does.
        let missed = self.0.read().values().filter(|peer| may_hear(peer) && !peer.outbox.event(text)).count();
        if missed > 0 {
            tracing::debug!(missed, "some clients do not read fast enough to hear everything");
        }
    }
}

/// Carries the record to the connections. What was committed before this gate ran is not news; it can be listed.
pub(super) async fn follow(gateway: Arc<Gateway>) {
    let mut feed = gateway.gate.feed_from_now();
    let gateway = {
        let weak = Arc::downgrade(&gateway);
        drop(gateway);
        weak
    };
    while let Some(events) = feed.next_in_time().await {
        let Some(gateway) = gateway.upgrade() else { return };
        for committed in events {
            tell(&gateway, &committed).await;
        }
    }
}

async fn tell(gateway: &Gateway, committed: &Committed) {
    let kind = committed.event.body.kind();
    if !matches!(kind, EventKind::Requested | EventKind::Resolved | EventKind::Consumed) {
        return;
    }
    let approval = match (&committed.approval, committed.event.body.approval_id()) {
        (Some(approval), _) => Summary::new(approval.clone()),
        (None, Some(id)) => match gateway.gate.owner().as_approver().summary(id).await {
            Ok(approval) => approval,
            Err(_) => return,
        },
        (None, None) => return,
    };
    // Nothing is written for nobody: a view costs more than telling whom it is for.
    let hears = |peer: &Peer| peer.may_see(&approval) && hears(kind, &approval, peer.sees);
    if !views::is_exec(&approval) || !gateway.peers.any(hears) {
        return;
    }
    let ids = gateway.gate.shown_ids([&*approval]).await;
    let text = match kind {
        EventKind::Requested => frame::event("exec.approval.requested", &views::requested(&ids, &approval)),
        _ => frame::event("exec.approval.resolved", &views::resolved(&ids, &approval)),
    };
    gateway.peers.tell(&text, hears);
}

/// People hear of the end as it comes. To its requester a yes is told only once telling has used it up: heard before, it
/// could be used a second time elsewhere.
fn hears(kind: EventKind, approval: &Approval, sees: Sees) -> bool {
    let asked = approval.outcome.as_ref().is_none_or(|outcome| !outcome.is_automatic());
    match (kind, sees) {
        (EventKind::Consumed, Sees::Own(_)) => approval.told && asked,
        (EventKind::Consumed, Sees::Everything) => false,
        (_, Sees::Own(_)) => approval.status() != Status::Approved,
        (_, Sees::Everything) => true,
        (_, Sees::Nothing) => false,
    }
}

/// A sign of life for clients that would otherwise take a quiet gate for a dead one.
pub(super) async fn tick(gateway: Weak<Gateway>) {
    let mut ticks = tokio::time::interval(Duration::from_millis(TICK_MS));
    loop {
        ticks.tick().await;
        let Some(gateway) = gateway.upgrade() else { return };
        if gateway.gate.is_closing() {
            return;
        }
        let text = frame::event("tick", &json!({ "ts": gateway.gate.now().as_millis() }));
        gateway.peers.tell(&text, |_| true);
    }
}
