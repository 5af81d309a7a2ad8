//! The first exchange: who the client is, which protocol both speak, and what the key's role lets it do.

use countersign_gate::{AdminHandle, AgentHandle, ApproverHandle, Caller, NodeHandle};
use countersign_model::{Door, KeySecret};
use serde::Deserialize;
use serde_json::{Value, json};

use super::frame::{Code, Failure};
use super::{Gateway, methods};
use crate::socket::{MAX_BUFFERED, MAX_MESSAGE};

pub(super) const TICK_MS: u64 = 15_000;
const OLDEST: u64 = 3;
const NEWEST: u64 = 4;
pub(super) const APPROVALS: &str = "operator.approvals";
pub(super) const ADMIN: &str = "operator.admin";

/// Fields that nobody here goes by are not read: clients send more with each version.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Connect {
    min_protocol: u64,
    max_protocol: u64,
    #[serde(default)]
    client: Client,
    #[serde(default)]
    role: Option<String>,
    #[serde(default)]
    commands: Vec<String>,
    #[serde(default)]
    caps: Vec<String>,
    #[serde(default)]
    auth: Option<Auth>,
    #[serde(default)]
    device: Option<Device>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Client {
    id: Option<String>,
    display_name: Option<String>,
    version: Option<String>,
    platform: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Auth {
    token: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Device {
    id: String,
}

/// Who is on the other end. The handles are its rights.
#[derive(Debug)]
pub(super) enum Who {
    Agent(AgentHandle),
    Person { approver: ApproverHandle, admin: Option<AdminHandle> },
    Node { id: String, about: Value },
}

impl Who {
    fn role(&self) -> &'static str {
        match self {
            Self::Agent(_) | Self::Person { .. } => "operator",
            Self::Node { .. } => "node",
        }
    }

    /// What the key's role gives, whatever was asked for.
    fn scopes(&self) -> &'static [&'static str] {
        match self {
            Self::Person { admin: Some(_), .. } => &[ADMIN, APPROVALS],
            Self::Person { admin: None, .. } => &[APPROVALS],
            Self::Agent(_) | Self::Node { .. } => &[],
        }
    }
}

/// Finds out who connects. `header`: a key that came with the upgrade itself. `local`: over the data folder's socket.
pub(super) fn authenticate(
    gateway: &Gateway,
    connect: &Connect,
    header: Option<KeySecret>,
    local: bool,
) -> Result<Caller, Failure> {
    let sent = connect.auth.as_ref().and_then(|auth| auth.token.clone()).filter(|token| !token.is_empty());
    let refuse = |message: &str, code: &str| Failure::new(Code::Unauthorized, message).with(json!({ "code": code }));
    match sent.map(KeySecret::presented).or(header) {
        Some(key) => gateway.gate.authenticate(&key, Door::Gateway).map_err(|_| {
            let message =
                "unauthorized: the key is unknown, expired or revoked; make one with `countersign keys create`";
            refuse(message, "AUTH_TOKEN_MISMATCH")
        }),
        None if local => Ok(Caller::Agent(gateway.gate.local_agent())),
        None => {
            let message = "unauthorized: send a key as `auth.token`; make one with `countersign keys create`";
            Err(refuse(message, "AUTH_TOKEN_MISSING"))
        }
    }
}

/// The newest protocol both speak.
pub(super) fn protocol(connect: &Connect) -> Result<u64, Failure> {
    let common = connect.max_protocol.min(NEWEST);
    if connect.min_protocol <= common && common >= OLDEST {
        return Ok(common);
    }
    let expected = if connect.min_protocol > NEWEST { NEWEST } else { OLDEST };
    let details = json!({ "code": "PROTOCOL_MISMATCH", "expectedProtocol": expected });
    Err(Failure::invalid(format!("protocol mismatch: this gate speaks {OLDEST} to {NEWEST}")).with(details))
}

/// A key of one role cannot come as another.
pub(super) async fn admit(caller: Caller, connect: Connect) -> Result<Who, Failure> {
    let wants_node = connect.role.as_deref() == Some("node");
    let wrong =
        |message: &str| Err(Failure::new(Code::Forbidden, message).with(json!({ "code": "AUTH_SCOPE_MISMATCH" })));
    match caller {
        Caller::Node(node) if wants_node => admit_node(&node, connect).await,
        Caller::Node(_) => wrong("this is a node's key; connect with role `node`"),
        Caller::Inbox(_) => wrong("this key is for mail replies; use an agent's or an approver's"),
        _ if wants_node => wrong("role `node` needs a node's key; make one with `countersign keys create --role node`"),
        Caller::Agent(agent) => Ok(Who::Agent(agent)),
        Caller::Approver(approver) => Ok(Who::Person { approver, admin: None }),
        Caller::Admin(admin) => Ok(Who::Person { approver: admin.as_approver().clone(), admin: Some(admin) }),
    }
}

async fn admit_node(node: &NodeHandle, connect: Connect) -> Result<Who, Failure> {
    let Some(device) = connect.device else {
        return Err(Failure::invalid("a node says which machine it is in `device.id`"));
    };
    node.bind(&device.id).await?;
    let Client { display_name, version, platform, .. } = connect.client;
    let about = json!({
        "nodeId": device.id,
        "displayName": display_name,
        "version": version,
        "platform": platform,
        "caps": connect.caps,
        "commands": connect.commands,
        "connected": true,
    });
    Ok(Who::Node { id: device.id, about })
}

pub(super) fn hello(gateway: &Gateway, who: &Who, protocol: u64, connection: &str) -> Value {
    json!({
        "type": "hello-ok",
        "protocol": protocol,
        "server": { "version": env!("CARGO_PKG_VERSION"), "connId": connection },
        "features": { "methods": methods::NAMES, "events": methods::EVENTS },
        "snapshot": {
            "presence": [],
            "health": {},
            "stateVersion": { "presence": 0, "health": 0 },
            "uptimeMs": gateway.uptime_ms(),
        },
        "auth": { "role": who.role(), "scopes": who.scopes() },
        "policy": { "maxPayload": MAX_MESSAGE, "maxBufferedBytes": MAX_BUFFERED, "tickIntervalMs": TICK_MS },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_common_protocol_or_none() {
        let between = |min, max| {
            let connect: Connect = serde_json::from_value(json!({"minProtocol": min, "maxProtocol": max})).unwrap();
            protocol(&connect).map_err(|failure| failure.details.unwrap()["expectedProtocol"].clone())
        };
        assert_eq!(between(4, 4), Ok(4));
        assert_eq!(between(3, 3), Ok(3));
        assert_eq!(between(1, 9), Ok(4));
        assert_eq!(between(5, 9), Err(json!(4)));
        assert_eq!(between(1, 2), Err(json!(3)));
        assert_eq!(between(4, 3), Err(json!(3)));
    }
}
