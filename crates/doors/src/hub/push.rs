//! Tells the devices of people what is asked and how it ended: after the commit, from the record.

use countersign_gate::{Committed, Feed, Summary};
use countersign_model::{Approval, EventKind};
use serde_json::value::{RawValue, to_raw_value};

use super::Hub;
use super::card::{Card, Ending, is_for};
use super::wire::{APPROVAL_REQUEST, APPROVAL_RESOLVED};

/// Until the store is closed. A device that was not there, or did not read, lists what is pending.
pub(super) async fn follow(hub: Hub, mut feed: Feed) {
    while let Some(events) = feed.next_in_time().await {
        if hub.0.gate.is_closing() {
            return;
        }
        for committed in events {
            if let Err(error) = on_event(&hub, &committed).await {
                tracing::warn!(%error, seq = committed.event.seq, "the hub's devices were not told");
            }
        }
    }
}

async fn on_event(hub: &Hub, committed: &Committed) -> Result<(), countersign_gate::GateError> {
    let action = match committed.event.body.kind() {
        EventKind::Requested => APPROVAL_REQUEST,
        EventKind::Resolved => APPROVAL_RESOLVED,
        EventKind::Ruled
        | EventKind::Consumed
        | EventKind::WrongNumber
        | EventKind::StopAsked
        | EventKind::Ran
        | EventKind::GrantMade
        | EventKind::GrantRevoked
        | EventKind::PolicyPut
        | EventKind::KeyMade
        | EventKind::KeyRevoked
        | EventKind::NodeBound
        | EventKind::Trusted
        | EventKind::Untrusted
        | EventKind::Swept => return Ok(()),
    };
    // Rendering a card costs more than the rest of a request. A device that comes a moment later lists what is pending.
    if !hub.0.devices.has_approvers() {
        return Ok(());
    }
    let Some(approval) = approval_of(hub, committed).await? else { return Ok(()) };
    let hub_id = hub.id().await?;
    let payload = match action {
        APPROVAL_REQUEST => to_raw_value(&Card::of(&approval)),
        _ => to_raw_value(&Ending::of(&approval)),
    };
    if let Ok(payload) = payload {
        push(hub, &hub_id, &approval, action, &payload);
    }
    Ok(())
}

async fn approval_of(hub: &Hub, committed: &Committed) -> Result<Option<Summary>, countersign_gate::GateError> {
    match (&committed.approval, committed.event.body.approval_id()) {
        (Some(approval), _) => Ok(Some(Summary::new(approval.clone()))),
        (None, Some(id)) => hub.0.gate.owner().as_approver().summary(id).await.map(Some),
        (None, None) => Ok(None),
    }
}

fn push(hub: &Hub, hub_id: &str, approval: &Approval, action: &str, payload: &RawValue) {
    hub.0.devices.each_approver(|device, name| {
        if is_for(approval, name) && !device.sink.push(hub_id, &device.id, action, payload) {
            tracing::debug!(name, "a device is behind and missed a message");
        }
    });
}
