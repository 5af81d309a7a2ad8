//! Whether whoever holds a connection open may still hold it.

use countersign_model::KeyId;

use crate::gate::{Gate, LOCAL_KEY};

#[derive(Clone, Debug)]
pub struct Standing {
    gate: Gate,
    key_id: KeyId,
}

impl Standing {
    pub(crate) fn new(gate: Gate, key_id: KeyId) -> Self {
        Self { gate, key_id }
    }

    /// Whether the key still holds. A caller on the data folder's own socket has none that could be taken away.
    pub fn holds(&self) -> bool {
        self.key_id == LOCAL_KEY || self.gate.0.keys.is_active(self.key_id, self.gate.0.clock.now())
    }

    /// Returns once the key no longer holds or the gate closes.
    pub async fn lost(&self) {
        let mut keys = self.gate.0.keys.changes();
        let mut closing = self.gate.0.closing.subscribe();
        while self.holds() && !*closing.borrow_and_update() {
            let expiry = self.gate.0.keys.expiry_of(self.key_id);
            let expired = async {
                match expiry {
                    Some(at) => self.gate.0.clock.sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                changed = keys.changed() => if changed.is_err() { return },
                changed = closing.changed() => if changed.is_err() { return },
                () = expired => {}
            }
        }
    }
}
