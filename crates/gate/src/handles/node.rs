//! What a node may do: say which machine it is. It asks for nothing and decides nothing.

use countersign_model::{KeyId, KeyRecord};

use crate::command::Command;
use crate::error::GateError;
use crate::gate::Gate;

const MAX_NODE_ID_CHARS: usize = 128;

/// A machine that serves its own policy document.
#[derive(Clone, Debug)]
pub struct NodeHandle {
    gate: Gate,
    key_id: KeyId,
}

impl NodeHandle {
    pub(crate) fn new(gate: Gate, key: &KeyRecord) -> Self {
        Self { gate, key_id: key.id }
    }

    pub fn key_id(&self) -> KeyId {
        self.key_id
    }

    /// Binds the key to this machine at its first use; afterwards it is for no other, and no other key for it.
    pub async fn bind(&self, node_id: &str) -> Result<(), GateError> {
        let plain = |c: char| c.is_ascii_graphic();
        if node_id.is_empty() || node_id.len() > MAX_NODE_ID_CHARS || !node_id.chars().all(plain) {
            return Err(GateError::OutOfRange { field: "device.id", expected: "1 to 128 visible ASCII characters" });
        }
        let command = Command::BindNode { key: self.key_id, node_id: node_id.to_owned() };
        self.gate.0.submit(command).await.map(|_| ())
    }
}
