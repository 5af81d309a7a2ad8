//! The HTTP door: `/v1` over TCP, TLS and the data folder's Unix socket.

mod approvals;
mod audit;
mod auth;
mod body;
mod engine;
mod events;
mod grants;
mod guard;
mod health;
mod inbox;
mod keys;
mod limits;
mod listen;
mod metrics;
mod openapi;
mod output;
mod policy;
mod problem;
mod router;
mod trusts;
mod wire;

pub use listen::{Listener, Peer, TlsError, serve, tls_config};
pub use openapi::document as openapi_document;
pub use router::{Access, HttpConfig, router};
