//! End to end through the real binary. One test program, since linking is the slow part.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "test code: a broken expectation is a failed test"
)]

mod bad_input;
mod commands;
mod deciding;
mod durability;
mod engine;
mod engine_bad_input;
mod engine_gate;
mod forwarding;
mod gateway;
mod gateway_document;
mod gateway_faults;
mod guarding;
mod host;
mod hub;
mod import;
mod keys;
mod large;
mod node;
mod older_clients;
mod permits;
mod place;
mod relay;
mod rights;
mod running;
mod seed_http;
mod shell_commands;
mod support;
mod swapping;
mod threats;
mod websocket;
