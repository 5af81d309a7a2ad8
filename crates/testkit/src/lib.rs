//! Not shipped: what the tests of several crates share. A clock that stands still until told, one conformance
//! suite a port, random histories with the model they are checked against.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code: a broken expectation is a failed test"
)]

mod clock;
pub mod conformance;
mod doors;
pub mod history;
mod running;
pub mod sample;

pub use clock::SimClock;
pub use conformance::Harness;
