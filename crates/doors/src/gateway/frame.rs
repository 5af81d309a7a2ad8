//! Frames: requests, their answers, and events, one JSON object a text message.

use countersign_gate::{GateError, Refused, StoreError};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Utf8Bytes;

/// A frame from a client. Anything else is told so.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(super) enum Incoming {
    Req {
        id: String,
        method: String,
        #[serde(default)]
        params: Value,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(super) enum Code {
    InvalidRequest,
    Unauthorized,
    Forbidden,
    Unavailable,
}

/// Why a request was not done. What is absent must not be in the frame at all: clients drop frames with nulls.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Failure {
    pub(super) code: Code,
    pub(super) message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) details: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retryable: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
}

impl Failure {
    pub(super) fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), details: None, retryable: None, retry_after_ms: None }
    }

    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::new(Code::InvalidRequest, message)
    }

    pub(super) fn with(self, details: Value) -> Self {
        Self { details: Some(details), ..self }
    }

    /// The same, with the word that clients go by.
    pub(super) fn because(self, reason: &'static str) -> Self {
        self.with(json!({ "reason": reason }))
    }

    pub(super) fn unavailable(message: impl Into<String>, retry_after_ms: u64) -> Self {
        let retry_after_ms = Some(retry_after_ms);
        Self { retryable: Some(true), retry_after_ms, ..Self::new(Code::Unavailable, message) }
    }

    pub(super) fn not_found() -> Self {
        Self::invalid("unknown or expired approval id").because("APPROVAL_NOT_FOUND")
    }

    pub(super) fn missing_scope(scope: &'static str) -> Self {
        let details = json!({ "code": "MISSING_SCOPE", "missingScope": scope, "requiredScopes": [scope] });
        Self::new(Code::Forbidden, format!("missing scope: {scope}; use a key whose role has it")).with(details)
    }

    pub(super) fn shutting_down() -> Self {
        Self::unavailable("the gate is shutting down; connect again and use exec.approval.waitDecision", 1000)
    }
}

impl From<GateError> for Failure {
    fn from(error: GateError) -> Self {
        let message = error.to_string();
        match error {
            GateError::Unauthenticated => Self::new(Code::Unauthorized, message),
            GateError::Request(_)
            | GateError::ChannelNotConfigured(_)
            | GateError::UnknownTarget(_)
            | GateError::Policy(_)
            | GateError::OutOfRange { .. } => Self::invalid(message),
            GateError::Refused(refused) => Self::from(refused),
            GateError::Store(StoreError::Closed) => Self::shutting_down(),
            GateError::Store(cause @ (StoreError::Unavailable(_) | StoreError::Corrupt(_))) => {
                tracing::error!(%cause, "the store failed; nothing was allowed");
                Self::unavailable("the record cannot be written or read now, so nothing is decided; ask again", 1000)
            }
            GateError::Random(cause) => {
                tracing::error!(%cause, "no random bytes; nothing was allowed");
                Self::unavailable("the gate cannot make an id now; ask again", 1000)
            }
        }
    }
}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Self {
        let message = refused.to_string();
        match refused {
            Refused::NotFound => Self::not_found(),
            Refused::Ambiguous(_) => Self::invalid(message).because("APPROVAL_ID_AMBIGUOUS"),
            Refused::PartOfAnId => Self::invalid(message).because("APPROVAL_ID_INCOMPLETE"),
            Refused::Grant(_) => Self::invalid(message).because("APPROVAL_ALLOW_ALWAYS_UNAVAILABLE"),
            Refused::Finished(_) => Self::invalid(message).because("APPROVAL_ALREADY_RESOLVED"),
            Refused::NotAnApprover(_) | Refused::OtherNode | Refused::HostMayNotDecide | Refused::NumberLocked => {
                Self::new(Code::Forbidden, message)
            }
            Refused::StalePolicy(hash) => {
                let details = json!({ "reason": "BASE_HASH_STALE", "hash": hash.to_hex() });
                Self::invalid("the document changed since it was read; get it again and repeat the change")
                    .with(details)
            }
            Refused::TooManyPending(_) | Refused::TooManyBytes { .. } => Self::unavailable(message, 5000),
            Refused::NoSuchGrant
            | Refused::NoSuchKey
            | Refused::NoSuchTrust
            | Refused::OwnKey
            | Refused::AliasPending
            | Refused::AliasUsed
            | Refused::WrongNumber
            | Refused::Answer(_)
            | Refused::OverrideDenied(_)
            | Refused::OverrideUnfit(_)
            | Refused::ConfirmRequired(_)
            | Refused::Consumption(_)
            | Refused::NotRunning
            | Refused::ChangedSinceApproval
            | Refused::IdempotencyConflict => Self::invalid(message),
        }
    }
}

/// Reads a request's parameters, or says which one is wrong.
pub(super) fn read<T: DeserializeOwned>(method: &str, params: Value) -> Result<T, Failure> {
    // A request without parameters is one with none of them.
    let params = if params.is_null() { json!({}) } else { params };
    serde_path_to_error::deserialize(params).map_err(|error| {
        let at = error.path().to_string();
        let place = if at == "." { String::new() } else { format!("`{at}`: ") };
        Failure::invalid(format!("invalid {method} params: {place}{}", error.inner()))
    })
}

#[derive(Serialize)]
struct Answer<'a> {
    r#type: &'static str,
    id: &'a str,
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a Failure>,
}

pub(super) fn answer(id: &str, result: &Result<Value, Failure>) -> Utf8Bytes {
    let (payload, error) = match result {
        Ok(payload) => (Some(payload), None),
        Err(failure) => (None, Some(failure)),
    };
    text(&Answer { r#type: "res", id, ok: error.is_none(), payload, error })
}

pub(super) fn event(name: &str, payload: &Value) -> Utf8Bytes {
    text(&json!({ "type": "event", "event": name, "payload": payload }))
}

fn text(frame: &impl Serialize) -> Utf8Bytes {
    // Maps with text for keys, made here: there is nothing that JSON could refuse.
    serde_json::to_string(frame).unwrap_or_default().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_absent_is_not_in_the_frame() {
        let text = answer("1", &Err(Failure::invalid("no")));
        let expected = r#"{"type":"res","id":"1","ok":false,"error":{"code":"INVALID_REQUEST","message":"no"}}"#;
        assert_eq!(text.as_str(), expected);
        assert_eq!(answer("1", &Ok(json!({}))).as_str(), r#"{"type":"res","id":"1","ok":true,"payload":{}}"#);
        assert_eq!(event("tick", &json!({"ts": 1})).as_str(), r#"{"event":"tick","payload":{"ts":1},"type":"event"}"#);
    }

    #[test]
    fn a_wrong_parameter_is_named() {
        #[derive(Debug, Deserialize)]
        struct Params {
            #[expect(dead_code, reason = "only its type is looked at")]
            id: String,
        }
        let failure = read::<Params>("x.y", json!({"id": 5})).unwrap_err();
        assert!(failure.message.starts_with("invalid x.y params: `id`: "), "{}", failure.message);
        assert!(read::<Params>("x.y", Value::Null).unwrap_err().message.contains("id"));
    }
}
