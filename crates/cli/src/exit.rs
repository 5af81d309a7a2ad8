//! How a command ends, as a number. Only an approval is 0; whatever is unknown is not.

use std::fmt;
use std::process::ExitCode;

use crate::client;
use crate::output::StdoutClosed;

pub const OK: u8 = 0;
pub const OTHER: u8 = 1;
pub const USAGE: u8 = 64;
pub const UNREACHABLE: u8 = 69;
pub const NO_ANSWER: u8 = 75;
pub const DENIED: u8 = 77;
/// There is no such program, as a shell says it.
pub const NOT_FOUND: u8 = 127;

/// By Ctrl-C, as by the signal: nothing was decided.
pub const INTERRUPTED: u8 = 130;

/// The command line itself is wrong, in a way that only the verb can see.
#[derive(Debug)]
pub struct Usage(pub String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// What an approval's state says to the agent that waits for it.
pub fn of_state(status: &str, reason: Option<&str>) -> u8 {
    match (status, reason) {
        ("approved", _) => OK,
        ("denied", Some("no_channel")) | ("expired", _) => NO_ANSWER,
        ("denied" | "cancelled", _) => DENIED,
        _ => OTHER,
    }
}

pub fn of_error(error: &anyhow::Error) -> u8 {
    if error.is::<Usage>() {
        return USAGE;
    }
    // Whoever closed the pipe has read what it wanted.
    if error.is::<StdoutClosed>() {
        return OK;
    }
    match error.downcast_ref::<client::Error>() {
        Some(client::Error::Unreachable { .. } | client::Error::Broken { .. }) => UNREACHABLE,
        Some(client::Error::Refused(refused)) if refused.code == "unshowable" => DENIED,
        Some(client::Error::Refused(_) | client::Error::Malformed(_)) | None => OTHER,
    }
}

pub fn code(number: u8) -> ExitCode {
    ExitCode::from(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    const REASONS: [Option<&str>; 16] = [
        None,
        Some("person"),
        Some("policy"),
        Some("rule"),
        Some("security"),
        Some("not_allowlisted"),
        Some("policy_unreadable"),
        Some("flooding"),
        Some("expired"),
        Some("fallback"),
        Some("cancelled"),
        Some("agent_closed"),
        Some("no_channel"),
        Some("changed_since_approval"),
        Some("approved"),
        Some(""),
    ];

    #[test]
    fn every_state_and_reason_has_its_number() {
        for reason in REASONS {
            let denied = if reason == Some("no_channel") { NO_ANSWER } else { DENIED };
            for (status, expected) in [
                ("approved", OK),
                ("denied", denied),
                ("expired", NO_ANSWER),
                ("cancelled", DENIED),
                ("pending", OTHER),
                ("", OTHER),
                ("Approved", OTHER),
                ("approved ", OTHER),
                ("allowed", OTHER),
            ] {
                assert_eq!(of_state(status, reason), expected, "{status} {reason:?}");
            }
        }
    }

    #[test]
    fn errors_have_their_numbers() {
        let io = || std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        let place = || "here".to_owned();
        let refused = |code: &str| {
            let refused = client::Refused {
                status: 422,
                code: code.to_owned(),
                message: String::new(),
                retryable: false,
                retry_after: None,
                body: serde_json::Value::Null,
            };
            client::Error::Refused(Box::new(refused))
        };
        let cases: [(anyhow::Error, u8); 7] = [
            (Usage("x".into()).into(), USAGE),
            (client::Error::Unreachable { place: place(), cause: io() }.into(), UNREACHABLE),
            (client::Error::Broken { place: place(), cause: io() }.into(), UNREACHABLE),
            (client::Error::Malformed("x".into()).into(), OTHER),
            (refused("unshowable").into(), DENIED),
            (refused("not_found").into(), OTHER),
            (anyhow::anyhow!("x").context("y"), OTHER),
        ];
        for (error, expected) in cases {
            assert_eq!(of_error(&error), expected, "{error:?}");
        }
    }
}
