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
                let Refused { status, code, message, .. } = refused.as_ref();
                write!(f, "{} (`{}`, {status})", escape_line(message), escape_line(code))
            }
        }
    }
}

impl std::error::Error for Error {}
