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
mod offers;
mod openapi;
mod output;
mod pairings;
mod policy;
mod problem;
mod router;
mod trusts;
mod wire;

pub(crate) use auth::bearer;
pub(crate) use limits::Limiter;
pub(crate) use listen::Place;
pub use listen::{Listener, Peer, TlsError, serve, tls_config};
pub use openapi::document as openapi_document;
pub(crate) use problem::Problem;
pub(crate) use router::AppState;
pub use router::{Access, HttpConfig, router};
