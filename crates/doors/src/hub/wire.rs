//! What goes over the hub's wires: the envelope that is routed, requests and answers inside it, and their codes.

use std::time::{SystemTime, UNIX_EPOCH};

use countersign_gate::{GateError, Refused};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// Events a device sends.
pub(super) const SEND: &str = "send";
pub(super) const LIST_DEVICES: &str = "list-devices";
pub(super) const PING: &str = "ping";
/// Events a device hears.
pub(super) const REGISTERED: &str = "registered";
pub(super) const RECEIVE: &str = "receive";
pub(super) const SEND_ERROR: &str = "send_error";
pub(super) const PONG: &str = "pong";

/// Actions of the hub itself. Between devices they are refused: a card or an answer comes from the hub alone.
pub(super) const REQUEST: &str = "request";
pub(super) const RESPONSE: &str = "response";
pub(super) const APPROVAL_REQUEST: &str = "exec-approval-request";
pub(super) const APPROVAL_RESOLVED: &str = "exec-approval-resolved";

pub(super) fn is_the_hubs_own(action: &str) -> bool {
    [REQUEST, RESPONSE, APPROVAL_REQUEST, APPROVAL_RESOLVED].contains(&action)
}

/// A message on its way to a device.
#[derive(Debug, Serialize)]
pub(super) struct Envelope<'a> {
    pub(super) id: &'a str,
    pub(super) uid: Option<()>,
    pub(super) from: &'a str,
    pub(super) to: &'a str,
    pub(super) action: &'a str,
    pub(super) payload: &'a RawValue,
}

/// A message as a device sent it.
#[derive(Debug, PartialEq)]
pub(super) struct Message {
    pub(super) id: String,
    pub(super) from: String,
    pub(super) to: String,
    pub(super) action: String,
    pub(super) payload: Value,
}

impl Message {
    /// Read field by field, so that the answer to a bad one says which field, and has its id where it has one.
    pub(super) fn read(data: Value) -> Result<Self, SendError> {
        let Value::Object(mut fields) = data else {
            return Err(SendError::invalid(String::new(), "a message is an object `{id, from, to, action, payload}`"));
        };
        let mut text = |name: &str| match fields.remove(name) {
            Some(Value::String(text)) if !text.is_empty() => Some(text),
            Some(_) | None => None,
        };
        let id = text("id");
        let message_id = id.clone().unwrap_or_default();
        let missing = |name: &str| {
            SendError::invalid(message_id.clone(), format!("`{name}` is missing; it is a text that is not empty"))
        };
        let id = id.ok_or_else(|| missing("id"))?;
        let from = text("from").ok_or_else(|| missing("from"))?;
        let to = text("to").ok_or_else(|| missing("to"))?;
        let action = text("action").ok_or_else(|| missing("action"))?;
        Ok(Self { id, from, to, action, payload: fields.remove("payload").unwrap_or_default() })
    }
}

/// Why a message went nowhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct SendError {
    #[serde(rename = "messageId")]
    pub(super) message_id: String,
    pub(super) error: String,
    pub(super) code: &'static str,
}

impl SendError {
    pub(super) fn invalid(message_id: String, error: impl Into<String>) -> Self {
        Self { message_id, error: error.into(), code: "INVALID_MESSAGE" }
    }

    /// The same whether there is no such device or none that the sender may know of.
    pub(super) fn not_found(message_id: String, to: &str) -> Self {
        Self { message_id, error: format!("Device {to} is not connected"), code: "DEVICE_NOT_FOUND" }
    }

    pub(super) fn not_registered(message_id: String) -> Self {
        let error = "this connection is no longer registered; connect again".to_owned();
        Self { message_id, error, code: "NOT_REGISTERED" }
    }
}

/// A request inside an envelope.
#[derive(Debug, Deserialize)]
pub(super) struct RpcRequest {
    #[serde(rename = "requestId")]
    pub(super) request_id: String,
    pub(super) method: String,
    #[serde(default)]
    pub(super) params: Value,
}

/// The answer to it.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum RpcResponse<'a> {
    Ok {
        #[serde(rename = "requestId")]
        request_id: &'a str,
        ok: bool,
        payload: &'a Value,
    },
    Error {
        #[serde(rename = "requestId")]
        request_id: &'a str,
        ok: bool,
        error: &'a RpcError,
    },
}

impl<'a> RpcResponse<'a> {
    pub(super) fn of(request_id: &'a str, answer: &'a Result<Value, RpcError>) -> Self {
        match answer {
            Ok(payload) => Self::Ok { request_id, ok: true, payload },
            Err(error) => Self::Error { request_id, ok: false, error },
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct RpcError {
    pub(super) code: &'static str,
    pub(super) message: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) retryable: bool,
}

impl RpcError {
    fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), retryable: false }
    }

    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::new("INVALID_PARAMS", message)
    }

    pub(super) fn unauthorized(message: impl Into<String>) -> Self {
        Self::new("UNAUTHORIZED", message)
    }

    pub(super) fn method_not_found(method: &str) -> Self {
        Self::new("METHOD_NOT_FOUND", format!("Unknown method: {method}"))
    }

    pub(super) fn not_found() -> Self {
        Self::new("NOT_FOUND", "Approval request not found or already resolved")
    }

    pub(super) fn unavailable(message: impl Into<String>) -> Self {
        Self { retryable: true, ..Self::new("UNAVAILABLE", message) }
    }
}

impl From<GateError> for RpcError {
    fn from(error: GateError) -> Self {
        match error {
            GateError::Unauthenticated => Self::unauthorized(error.to_string()),
            GateError::Refused(Refused::NotFound | Refused::Finished(_)) => Self::not_found(),
            GateError::Refused(Refused::NotAnApprover(_)) => Self::unauthorized(error.to_string()),
            GateError::Refused(Refused::TooManyPending(_) | Refused::TooManyBytes { .. }) => {
                Self::unavailable(error.to_string())
            }
            GateError::OutOfRange { field: "expires_in_sec", .. } => {
                Self::invalid("`timeoutMs` is from 1000 to 86400000 milliseconds")
            }
            GateError::Refused(_)
            | GateError::Request(_)
            | GateError::ChannelNotConfigured(_)
            | GateError::UnknownTarget(_)
            | GateError::Policy(_)
            | GateError::OutOfRange { .. } => Self::invalid(error.to_string()),
            GateError::Store(_) | GateError::Random(_) => {
                tracing::error!(%error, "a hub request could not be served");
                Self::unavailable("the gate cannot answer now; nothing was decided, try again")
            }
        }
    }
}

/// A new message's id: a UUID of version 7, so that they sort by time.
pub(super) fn message_id() -> String {
    let millis = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
    let mut random = [0; 10];
    // Without random bytes ids of one millisecond are alike, and nothing rests on them.
    let _ = getrandom::fill(&mut random);
    uuid_v7(millis, random)
}

fn uuid_v7(millis: u64, random: [u8; 10]) -> String {
    let [a, b, c, d, e, f, g, h, i, j] = random.map(u64::from);
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        (millis >> 16) & 0xffff_ffff,
        millis & 0xffff,
        0x7000 | ((a << 8 | b) & 0x0fff),
        0x8000 | ((c << 8 | d) & 0x3fff),
        e << 40 | f << 32 | g << 24 | h << 16 | i << 8 | j,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_id_is_a_uuid_of_version_7_with_its_time_first() {
        assert_eq!(uuid_v7(0x0194_44a0_0000, [0; 10]), "019444a0-0000-7000-8000-000000000000");
        assert_eq!(uuid_v7(0x0194_44a0_1234, [0xff; 10]), "019444a0-1234-7fff-bfff-ffffffffffff");
    }

    #[test]
    fn a_bad_message_is_refused_with_its_id_and_the_field() {
        let good = json!({"id": "m1", "uid": null, "from": "a", "to": "b", "action": "x", "payload": {"y": 1}});
        assert_eq!(Message::read(good.clone()).unwrap().payload, json!({"y": 1}));
        for field in ["from", "to", "action"] {
            for bad in [json!(""), json!(7), Value::Null] {
                let mut message = good.clone();
                message[field] = bad;
                let error = Message::read(message).unwrap_err();
                assert_eq!((error.message_id.as_str(), error.code), ("m1", "INVALID_MESSAGE"));
                assert!(error.error.contains(field), "{error:?}");
            }
        }
        for data in [json!(null), json!([1]), json!("x"), json!({})] {
            assert_eq!(Message::read(data).unwrap_err().message_id, "");
        }
    }

    #[test]
    fn what_has_ended_and_what_never_was_answer_alike() {
        let error = RpcError::from(GateError::from(Refused::NotFound));
        assert_eq!(error, RpcError::not_found());
        assert_eq!(
            serde_json::to_value(&error).unwrap(),
            json!({"code": "NOT_FOUND", "message": "Approval request not found or already resolved"})
        );
    }
}
