//! What can go wrong between a command and its gate. None of it is ever a yes.

use std::{fmt, io};

use countersign_model::escape_line;
use serde_json::Value;

use super::Response;

#[derive(Debug)]
pub enum Error {
    /// Nobody listens there, or the TLS handshake failed.
    Unreachable { place: String, cause: io::Error },
    /// The connection ended before a whole answer came.
    Broken { place: String, cause: io::Error },
    /// What came is not an answer of a gate.
    Malformed(String),
    /// The gate answered, and not with a success.
    Refused(Box<Refused>),
}

/// The gate's own error document.
#[derive(Debug)]
pub struct Refused {
    pub status: u16,
    pub code: String,
    pub message: String,
    pub retryable: bool,
    /// In seconds.
    pub retry_after: Option<u64>,
    pub body: Value,
}

impl Error {
    /// Whether the same request may get an answer later: the gate restarts, or said so itself.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Broken { .. } => true,
            Self::Malformed(_) => false,
            Self::Refused(refused) => refused.retryable,
        }
    }

    pub fn refused(&self) -> Option<&Refused> {
        match self {
            Self::Refused(refused) => Some(refused),
            Self::Unreachable { .. } | Self::Broken { .. } | Self::Malformed(_) => None,
        }
    }
}

impl Refused {
    /// An error document that is missing or malformed is still an error, by its status.
    pub(super) fn read(response: &Response) -> Self {
        let body: Value = serde_json::from_slice(&response.body).unwrap_or(Value::Null);
        let text = |name: &str| body.pointer(&format!("/error/{name}")).and_then(Value::as_str);
        Self {
            status: response.status,
            code: text("code").unwrap_or("unknown").to_owned(),
            message: text("message").unwrap_or("no reason was given").to_owned(),
            retryable: body.pointer("/error/retryable").and_then(Value::as_bool).unwrap_or(false),
            retry_after: response.header("retry-after").and_then(|seconds| seconds.trim().parse().ok()),
            body,
        }
    }
}

impl Refused {
    /// What it means to whoever typed the command: what the gate says in words of its protocol, and what is no answer of
    /// a gate, is said otherwise here.
    fn plain(&self) -> String {
        match self.code.as_str() {
            "unknown" => format!(
                "what answers there is no gate, or gave no reason (it said {}); see that `--url` or `--data` names the right one",
                self.status
            ),
            "unauthorized" => {
                "the gate does not know this key, or it has expired or was revoked; set COUNTERSIGN_KEY to one from `countersign keys create`".to_owned()
            }
            "not_found" => {
                "the gate has nothing by that id; see `countersign pending`, `countersign history` or `countersign grants list`".to_owned()
            }
            "rate_limited" => match self.retry_after {
                Some(seconds) => format!("too many requests at once; try again in {seconds} seconds"),
                None => "too many requests at once; try again in a moment".to_owned(),
            },
            "method_not_allowed" => "this gate is older than this command and cannot do that".to_owned(),
            _ => escape_line(&self.message),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // That is how a certificate nobody vouches for is reported.
            Self::Unreachable { place, cause } if cause.kind() == io::ErrorKind::InvalidData => {
                write!(f, "{place} cannot be trusted: {cause}; name its certificate with `--ca FILE`")
            }
            Self::Unreachable { place, cause } => write!(
                f,
                "no gate answers at {place}: {cause}; run `countersign serve`, or name another with `--data` or `--url`"
            ),
            Self::Broken { place, cause } => {
                write!(f, "the connection to {place} broke off: {cause}; see that `countersign serve` still runs")
            }
            Self::Malformed(why) => write!(f, "{}", escape_line(why)),
            Self::Refused(refused) => {
                write!(f, "{}", refused.plain())
            }
        }
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_told_without_words_of_the_protocol() {
        let told = |status: u16, body: &str| {
            let response = Response { status, headers: Vec::new(), body: body.as_bytes().to_vec() };
            Error::Refused(Box::new(Refused::read(&response))).to_string()
        };
        let document =
            |code: &str| format!(r#"{{"error": {{"code": "{code}", "message": "send `Authorization: Bearer`"}}}}"#);
        for code in ["unauthorized", "not_found", "rate_limited", "method_not_allowed"] {
            let told = told(401, &document(code));
            assert!(!["Bearer", "401", "HTTP", code].iter().any(|word| told.contains(word)), "{told}");
        }
        assert_eq!(told(409, r#"{"error": {"code": "x", "message": "already denied"}}"#), "already denied");
        assert!(told(502, "<html>").contains("no gate"));
    }
}
