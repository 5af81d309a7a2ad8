//! How agents and approvers' programs come in: one module a protocol, wire types beside their handlers.
//!
//! A door translates and decides nothing: every rule is the gate's.

mod entries;
mod gateway;
pub mod http;
mod hub;
pub mod profiles;
mod socket;
mod words;
