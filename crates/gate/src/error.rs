//! Why the gate did not do what it was asked. Doors translate; none of these ever means yes.

use countersign_model::{ChannelChoice, PolicyError, RequestError};
use thiserror::Error;

use crate::command::Refused;
use crate::ports::StoreError;

#[derive(Debug, Error)]
pub enum GateError {
    #[error("the key is missing, unknown, expired or revoked; make one with `countersign keys create`")]
    Unauthenticated,
    #[error(transparent)]
    Request(#[from] RequestError),
    #[error("channel `{0}` is not set up on this gate; use `any`, or configure it")]
    ChannelNotConfigured(ChannelChoice),
    #[error("the target is none of the people configured for channel `{0}`")]
    UnknownTarget(ChannelChoice),
    #[error("`{0}`")]
    Policy(#[from] PolicyError),
    #[error("`{field}` is {expected}")]
    OutOfRange { field: &'static str, expected: &'static str },
    #[error(transparent)]
    Refused(#[from] Refused),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the system's random source failed: {0}")]
    Random(String),
}
