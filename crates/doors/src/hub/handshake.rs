//! Who a connection says it is, and what it brings to prove it.

use axum::extract::Query;
use axum::http::request::Parts;
use countersign_gate::{Caller, Gate};
use countersign_model::{Digest, Door, KeySecret, sha256};
use serde::Deserialize;

use super::devices::{DeviceType, Who};
use crate::http::{Peer, bearer};

/// How a device that may have a secret for an id is known to others, and how ours begins: nobody may call itself so.
const RESERVED: [&str; 2] = ["dev_", "hub_"];
const MAX_ID_BYTES: usize = 256;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Asked {
    device_id: Option<String>,
    device_type: Option<String>,
    key: Option<String>,
}

#[derive(Debug)]
pub(super) struct Handshake {
    pub(super) device_id: String,
    device_type: String,
    key: Option<KeySecret>,
    is_local: bool,
}

/// Why a connection is not let in.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    /// Absent where there is no id to answer to.
    pub(super) device_id: Option<String>,
    pub(super) error: &'static str,
}

pub(super) const IN_USE: &str = "Device ID already in use";
pub(super) const UNAVAILABLE: &str = "the gate cannot answer now; connect again later";
const NO_IDS: &str = "deviceId and deviceType are required, once each";
const BAD_ID: &str = "deviceId is 1 to 256 characters without control characters, and does not begin with dev_ or hub_";
const BAD_TYPE: &str = "deviceType is `client` or `agent`; the hub is this gate";
const BAD_KEY: &str = "the key is unknown, expired or revoked; make one with `countersign keys create`";
const NEEDS_AGENT: &str = "a device of type `agent` needs an agent's key";
const NEEDS_APPROVER: &str = "a device of type `client` needs an approver's key, or none and a pairing code";

impl Handshake {
    /// From the request that opened the connection. `sent` is a key that came another way.
    pub(super) fn read(parts: &Parts, sent: Option<String>) -> Result<Self, Refusal> {
        let nobody = |error| Refusal { device_id: None, error };
        let Query(asked) = Query::<Asked>::try_from_uri(&parts.uri).map_err(|_| nobody(NO_IDS))?;
        let (Some(device_id), Some(device_type)) = (asked.device_id, asked.device_type) else {
            return Err(nobody(NO_IDS));
        };
        if device_id.is_empty() || device_type.is_empty() {
            return Err(nobody(NO_IDS));
        }
        if device_id.len() > MAX_ID_BYTES || device_id.chars().any(char::is_control) {
            return Err(nobody(BAD_ID));
        }
        let refusal = |error| Refusal { device_id: Some(device_id.clone()), error };
        if RESERVED.iter().any(|prefix| device_id.starts_with(prefix)) {
            return Err(refusal(BAD_ID));
        }
        let in_header = bearer(&parts.headers).map_err(|_| refusal(BAD_KEY))?;
        let key = in_header.or_else(|| asked.key.or(sent).map(KeySecret::presented));
        let is_local = parts.extensions.get::<Peer>() == Some(&Peer::Local);
        Ok(Self { device_id, device_type, key, is_local })
    }

    /// What the gate says of them. A wrong key is not the same as none.
    pub(super) fn authenticate(&self, gate: &Gate) -> Result<(DeviceType, Who), &'static str> {
        let kind = DeviceType::parse(&self.device_type).ok_or(BAD_TYPE)?;
        let caller = match &self.key {
            Some(key) => Some(gate.authenticate(key, Door::Hub).map_err(|_| BAD_KEY)?),
            None => None,
        };
        let who = match (kind, caller) {
            (DeviceType::Agent, Some(Caller::Agent(agent))) => Who::Agent(agent),
            // On the data folder's own socket an agent needs no key, on any door.
            (DeviceType::Agent, None) if self.is_local => Who::Agent(gate.local_agent()),
            (DeviceType::Agent, _) => return Err(NEEDS_AGENT),
            (DeviceType::Client, Some(Caller::Approver(approver))) => Who::Approver(approver),
            (DeviceType::Client, Some(Caller::Admin(admin))) => Who::Approver(admin.as_approver().clone()),
            (DeviceType::Client, Some(Caller::Agent(_) | Caller::Inbox(_) | Caller::Node(_))) => {
                return Err(NEEDS_APPROVER);
            }
            (DeviceType::Client, None) => match gate.authenticate_device(&self.device_id, Door::Hub) {
                Some(approver) => Who::Approver(approver),
                None => Who::Unverified,
            },
        };
        Ok((kind, who))
    }

    /// How others know the device. An id that came without a key is a secret, or may become one: it is not told.
    pub(super) fn address(&self) -> String {
        match &self.key {
            Some(_) => self.device_id.clone(),
            None if self.device_type == "agent" => self.device_id.clone(),
            None => secret_address(&self.device_id),
        }
    }

    pub(super) fn refused(&self, error: &'static str) -> Refusal {
        Refusal { device_id: Some(self.device_id.clone()), error }
    }
}

fn secret_address(device_id: &str) -> String {
    format!("dev_{}", first_half(sha256(device_id.as_bytes())))
}

/// The hub's own id: the same as long as the store lives.
pub(super) fn hub_id(identity: Option<Digest>) -> String {
    format!("hub_{}", first_half(identity.unwrap_or_else(|| sha256(b"countersign hub"))))
}

fn first_half(digest: Digest) -> String {
    digest.to_hex().chars().take(32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::Request;

    fn read(uri: &str) -> Result<Handshake, Refusal> {
        Handshake::read(&Request::builder().uri(uri).body(()).unwrap().into_parts().0, None)
    }

    #[test]
    fn ids_are_needed_once_each_and_may_not_pose_as_the_hubs() {
        assert_eq!(read("/ws/?EIO=4&deviceId=a%20b&deviceType=client").unwrap().device_id, "a b");
        for bad in ["/hub", "/hub?deviceId=a", "/hub?deviceType=client", "/hub?deviceId=&deviceType=client"] {
            assert_eq!(read(bad).unwrap_err(), Refusal { device_id: None, error: NO_IDS }, "{bad}");
        }
        let twice = read("/hub?deviceId=a&deviceId=b&deviceType=client").unwrap_err();
        assert_eq!(twice.error, NO_IDS);
        for id in ["hub_1", "dev_1", "a%0Ab", &"x".repeat(257)] {
            assert_eq!(read(&format!("/hub?deviceId={id}&deviceType=client")).unwrap_err().error, BAD_ID, "{id}");
        }
    }

    #[test]
    fn an_id_that_may_be_a_secret_is_not_how_others_know_the_device() {
        let secret = read("/hub?deviceId=0123456789abcdefghijkl&deviceType=client").unwrap();
        assert!(secret.address().starts_with("dev_") && !secret.address().contains("0123456789abcdefghijkl"));
        let keyed = read("/hub?deviceId=phone&deviceType=client&key=csk_x").unwrap();
        assert_eq!(keyed.address(), "phone");
    }
}
