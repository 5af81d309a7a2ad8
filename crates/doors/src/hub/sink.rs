//! What is sent to one device, over whichever transport it came by. Bounded: a device that does not read costs no
//! more than its queue, and holds up nobody.

use serde::Serialize;
use serde_json::value::RawValue;
use socketioxide::extract::SocketRef;

use super::wire::{Envelope, RECEIVE, message_id};
use crate::socket::Outbox;

#[derive(Clone)]
pub(super) enum Sink {
    Plain(Outbox),
    SocketIo(SocketRef),
}

/// A frame of the plain transport.
#[derive(Serialize)]
struct Frame<'a, T: ?Sized> {
    event: &'a str,
    data: &'a T,
}

impl Sink {
    /// What the device asked for, or must hear. Whether it will.
    pub(super) async fn answer<T: Serialize + ?Sized + Sync>(&self, event: &str, data: &T) -> bool {
        match self {
            Self::Plain(outbox) => match serde_json::to_string(&Frame { event, data }) {
                Ok(text) => outbox.answer(text.into()).await,
                Err(_) => false,
            },
            Self::SocketIo(socket) => socket.emit(event, data).is_ok(),
        }
    }

    /// What everybody hears. A device that is behind misses it: what is pending can be listed at any time.
    pub(super) fn tell<T: Serialize + ?Sized>(&self, event: &str, data: &T) -> bool {
        match self {
            Self::Plain(outbox) => {
                serde_json::to_string(&Frame { event, data }).is_ok_and(|text| outbox.message(text.into()))
            }
            Self::SocketIo(socket) => socket.emit(event, data).is_ok(),
        }
    }

    /// A push of the hub's. The payload was written once; only what stands around it is this device's.
    pub(super) fn push(&self, hub: &str, to: &str, action: &str, payload: &RawValue) -> bool {
        let id = message_id();
        self.tell(RECEIVE, &Envelope { id: &id, uid: None, from: hub, to, action, payload })
    }

    pub(super) fn has_room(&self) -> bool {
        match self {
            Self::Plain(outbox) => outbox.has_room(),
            Self::SocketIo(socket) => socket.connected(),
        }
    }
}

impl std::fmt::Debug for Sink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Plain(_) => "Plain",
            Self::SocketIo(_) => "SocketIo",
        })
    }
}
