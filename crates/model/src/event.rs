//! Events: what happened, in order, each bound to all before it by a hash.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::approval::{Reason, RunEnd, Status};
use crate::canonical::{Digest, canonical_bytes};
use crate::id::{ApprovalId, ClientId, GrantId, KeyId};
use crate::key::Role;
use crate::menu::Code;
use crate::time::Timestamp;

/// What the first event's hash is chained to.
pub const GENESIS: Digest = Digest::from_bytes([0; 32]);

/// One line of the record. `hash` is of the previous hash and this line's canonical bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    pub seq: u64,
    pub at: Timestamp,
    #[serde(flatten)]
    pub body: EventBody,
}

/// The contents themselves are in the tables beside the record; `request`, `outcome` and `grant` bind their
/// stored bytes, so a row changed behind the gate's back is found too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum EventBody {
    /// A person is asked.
    Requested {
        approval_id: ApprovalId,
        client_id: ClientId,
        digest: Digest,
        request: Digest,
        expires_at: Timestamp,
    },
    /// Policy answered without asking.
    Ruled {
        approval_id: ApprovalId,
        client_id: ClientId,
        digest: Digest,
        request: Digest,
        outcome: Digest,
        status: Status,
        reason: Reason,
    },
    /// A pending approval ended.
    Resolved {
        approval_id: ApprovalId,
        outcome: Digest,
        status: Status,
        reason: Reason,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<Code>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
    },
    Consumed {
        approval_id: ApprovalId,
        /// By telling the requester, and not by a verb of its own.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        told: bool,
    },
    /// Somebody typed another number than the one on the card of something dangerous. What was typed is not kept.
    WrongNumber {
        approval_id: ApprovalId,
        key_id: KeyId,
        by: String,
        /// By this key, about this request, with this one.
        count: u32,
    },
    /// Somebody wants the run that used it ended.
    StopAsked {
        approval_id: ApprovalId,
        by: String,
    },
    /// How the run that used it ended.
    Ran {
        approval_id: ApprovalId,
        run: RunEnd,
    },
    GrantMade {
        grant_id: GrantId,
        approval_id: ApprovalId,
        grant: Digest,
        by: String,
    },
    GrantRevoked {
        grant_id: GrantId,
        by: String,
    },
    PolicyPut {
        profile: String,
        hash: Digest,
        base_hash: Digest,
        by: String,
    },
    KeyMade {
        key_id: KeyId,
        name: String,
        role: Role,
        profile: String,
        by: String,
    },
    KeyRevoked {
        key_id: KeyId,
        by: String,
    },
    /// A node's key is for this machine from now on.
    NodeBound {
        key_id: KeyId,
        node_id: String,
    },
    /// A person trusts just these bytes of a workspace's file.
    Trusted {
        workspace: String,
        hash: Digest,
        by: String,
    },
    Untrusted {
        workspace: String,
        by: String,
    },
    /// Contents of what ended before this time were removed by the retention setting.
    Swept {
        before: Timestamp,
        count: u64,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventKind {
    Requested,
    Ruled,
    Resolved,
    Consumed,
    WrongNumber,
    StopAsked,
    Ran,
    GrantMade,
    GrantRevoked,
    PolicyPut,
    KeyMade,
    KeyRevoked,
    NodeBound,
    Trusted,
    Untrusted,
    Swept,
}

impl EventKind {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Requested => "requested",
            Self::Ruled => "ruled",
            Self::Resolved => "resolved",
            Self::Consumed => "consumed",
            Self::WrongNumber => "wrong_number",
            Self::StopAsked => "stop_asked",
            Self::Ran => "ran",
            Self::GrantMade => "grant_made",
            Self::GrantRevoked => "grant_revoked",
            Self::PolicyPut => "policy_put",
            Self::KeyMade => "key_made",
            Self::KeyRevoked => "key_revoked",
            Self::NodeBound => "node_bound",
            Self::Trusted => "trusted",
            Self::Untrusted => "untrusted",
            Self::Swept => "swept",
        }
    }
}

impl EventBody {
    pub fn kind(&self) -> EventKind {
        match self {
            Self::Requested { .. } => EventKind::Requested,
            Self::Ruled { .. } => EventKind::Ruled,
            Self::Resolved { .. } => EventKind::Resolved,
            Self::Consumed { .. } => EventKind::Consumed,
            Self::WrongNumber { .. } => EventKind::WrongNumber,
            Self::StopAsked { .. } => EventKind::StopAsked,
            Self::Ran { .. } => EventKind::Ran,
            Self::GrantMade { .. } => EventKind::GrantMade,
            Self::GrantRevoked { .. } => EventKind::GrantRevoked,
            Self::PolicyPut { .. } => EventKind::PolicyPut,
            Self::KeyMade { .. } => EventKind::KeyMade,
            Self::KeyRevoked { .. } => EventKind::KeyRevoked,
            Self::NodeBound { .. } => EventKind::NodeBound,
            Self::Trusted { .. } => EventKind::Trusted,
            Self::Untrusted { .. } => EventKind::Untrusted,
            Self::Swept { .. } => EventKind::Swept,
        }
    }

    pub fn approval_id(&self) -> Option<ApprovalId> {
        match self {
            Self::Requested { approval_id, .. }
            | Self::Ruled { approval_id, .. }
            | Self::Resolved { approval_id, .. }
            | Self::Consumed { approval_id, .. }
            | Self::WrongNumber { approval_id, .. }
            | Self::StopAsked { approval_id, .. }
            | Self::Ran { approval_id, .. }
            | Self::GrantMade { approval_id, .. } => Some(*approval_id),
            Self::GrantRevoked { .. }
            | Self::PolicyPut { .. }
            | Self::KeyMade { .. }
            | Self::KeyRevoked { .. }
            | Self::NodeBound { .. }
            | Self::Trusted { .. }
            | Self::Untrusted { .. }
            | Self::Swept { .. } => None,
        }
    }
}

impl Event {
    /// The stored line and its hash.
    pub fn seal(&self, prev: &Digest) -> Result<(Vec<u8>, Digest), serde_json::Error> {
        let line = canonical_bytes(self)?;
        let hash = Digest::of_parts(&[prev.as_bytes(), &line]);
        Ok((line, hash))
    }
}

#[derive(Debug, Error, PartialEq, Eq)]
pub enum ChainError {
    #[error("event {seq}: the hash does not fit what is written; this line or one before it was changed")]
    Hash { seq: u64 },
    #[error("event {seq}: expected number {expected} here; lines are missing or out of order")]
    Gap { seq: u64, expected: u64 },
    #[error("event {expected}: the line does not read as an event: {why}")]
    Unreadable { expected: u64, why: String },
    #[error("event {seq}: its time is before the previous event's")]
    Time { seq: u64 },
}

/// Checks one stored line against the link before it, and answers the event.
pub fn verify_link(
    previous: Option<(&Event, &Digest)>,
    stored_seq: u64,
    line: &[u8],
    hash: &Digest,
) -> Result<Event, ChainError> {
    let expected = previous.map_or(1, |(event, _)| event.seq + 1);
    if stored_seq != expected {
        return Err(ChainError::Gap { seq: stored_seq, expected });
    }
    let prev = previous.map_or(GENESIS, |(_, hash)| *hash);
    if Digest::of_parts(&[prev.as_bytes(), line]) != *hash {
        return Err(ChainError::Hash { seq: stored_seq });
    }
    let event: Event =
        serde_json::from_slice(line).map_err(|error| ChainError::Unreadable { expected, why: error.to_string() })?;
    if event.seq != expected {
        return Err(ChainError::Gap { seq: event.seq, expected });
    }
    if previous.is_some_and(|(before, _)| event.at < before.at) {
        return Err(ChainError::Time { seq: event.seq });
    }
    Ok(event)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn chain(length: u64) -> Vec<(u64, Vec<u8>, Digest)> {
        let mut prev = GENESIS;
        (1..=length)
            .map(|seq| {
                let body = EventBody::Consumed { approval_id: ApprovalId::from_random([seq as u8; 16]), told: false };
                let (line, hash) = Event { seq, at: Timestamp::from_millis(seq as i64), body }.seal(&prev).unwrap();
                prev = hash;
                (seq, line, hash)
            })
            .collect()
    }

    fn verify(chain: &[(u64, Vec<u8>, Digest)]) -> Result<(), ChainError> {
        let mut last: Option<(Event, Digest)> = None;
        for (seq, line, hash) in chain {
            let event = verify_link(last.as_ref().map(|(event, hash)| (event, hash)), *seq, line, hash)?;
            last = Some((event, *hash));
        }
        Ok(())
    }

    #[test]
    fn an_untouched_chain_verifies() {
        assert_eq!(verify(&chain(5)), Ok(()));
    }

    proptest! {
        #[test]
        fn threat_73_any_flipped_bit_is_found_at_its_event(at in 0usize..5, byte in 0usize..1000, bit in 0u8..8) {
            let mut chain = chain(5);
            let seq = chain[at].0;
            let line = &mut chain[at].1;
            let place = byte % line.len();
            line[place] ^= 1 << bit;
            prop_assert_eq!(verify(&chain), Err(ChainError::Hash { seq }));
        }

        #[test]
        fn threat_73_a_removed_event_is_found(at in 0usize..4) {
            let mut chain = chain(5);
            chain.remove(at);
            prop_assert!(verify(&chain).is_err());
        }
    }
}
