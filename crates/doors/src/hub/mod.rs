//! The hub door: devices that messages are routed between, people's among them. Socket.IO at `/ws` and plain
//! WebSocket at `/hub`, with one session behind both.
//!
//! It knows who is connected and how to say things to them; who may decide, and what comes of it, is the gate's.

mod asks;
mod card;
mod devices;
mod handshake;
pub(crate) mod plain;
mod push;
mod rpc;
mod session;
mod sink;
pub(crate) mod socketio;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use countersign_gate::{Gate, GateError};
use countersign_model::KeyId;
use tokio::sync::OnceCell;

use self::devices::Devices;
use crate::http::Limiter;

/// The largest message either way: all that the hub itself takes fits many times.
const MAX_MESSAGE: usize = 256 * 1024;
const PING_INTERVAL: Duration = Duration::from_secs(25);
const PING_TIMEOUT: Duration = Duration::from_secs(20);

/// Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Hub(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    gate: Gate,
    devices: Arc<Devices>,
    rate: Arc<Limiter<KeyId>>,
    id: OnceCell<Arc<str>>,
}

impl Hub {
    /// Follows the record from now on.
    pub(crate) fn start(gate: Gate, rate: Arc<Limiter<KeyId>>) -> Self {
        let devices = Arc::new(Devices::default());
        gate.add_presence(devices.clone());
        let feed = gate.feed_from_now();
        let hub = Self(Arc::new(Inner { gate, devices, rate, id: OnceCell::new() }));
        tokio::spawn(push::follow(hub.clone(), feed));
        hub
    }

    pub(crate) fn socket_io(&self) -> socketio::Service {
        socketio::service(self.clone())
    }

    /// Its own device id, the same after a restart.
    pub(crate) async fn id(&self) -> Result<Arc<str>, GateError> {
        let known = self
            .0
            .id
            .get_or_try_init(|| async { Ok::<_, GateError>(handshake::hub_id(self.0.gate.identity().await?).into()) });
        Ok(known.await?.clone())
    }
}
