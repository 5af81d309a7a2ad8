//! How people are reached who are not at this gate: for now, by way of another one.
//!
//! A channel decides nothing: it carries requests out and answers back, and the gate's record says whose they were.

mod forward;
mod link;

pub use forward::{Dial, Forward, Upstream};
pub use link::{Event, Link, LinkError, RemoteError, Stream};
