//! The keys at hand: found by their public id, compared in constant time, refreshed when the record says
//! that one was made or revoked.

use std::collections::HashMap;
use std::sync::Arc;

use countersign_model::{KeyId, KeyRecord, KeySecret, Timestamp};
use parking_lot::RwLock;
use tokio::sync::watch;

#[derive(Debug)]
pub(crate) struct KeyRing {
    keys: RwLock<HashMap<KeyId, Arc<KeyRecord>>>,
    /// Paired devices by the hash of their id, which is all they have.
    devices: RwLock<HashMap<[u8; 32], KeyId>>,
    /// Counts changes, so that whoever holds a connection open can look again.
    generation: watch::Sender<u64>,
}

impl KeyRing {
    pub(crate) fn new(keys: Vec<KeyRecord>) -> Self {
        let ring = Self { keys: RwLock::default(), devices: RwLock::default(), generation: watch::Sender::new(0) };
        ring.replace(keys);
        ring
    }

    pub(crate) fn replace(&self, keys: Vec<KeyRecord>) {
        let devices = keys.iter().filter(|key| key.paired && key.revoked_at.is_none());
        *self.devices.write() = devices.map(|key| (*key.hash.as_bytes(), key.id)).collect();
        *self.keys.write() = keys.into_iter().map(|key| (key.id, Arc::new(key))).collect();
        self.generation.send_modify(|generation| *generation += 1);
    }

    pub(crate) fn authenticate(&self, presented: &KeySecret, now: Timestamp) -> Option<Arc<KeyRecord>> {
        let key = self.keys.read().get(&presented.key_id()?).cloned()?;
        (key.hash.matches(presented) && key.is_active(now)).then_some(key)
    }

    /// Found by the hash of a secret: how long it takes tells nothing about the secret.
    pub(crate) fn authenticate_device(&self, device_id: &str, now: Timestamp) -> Option<Arc<KeyRecord>> {
        let presented = KeySecret::presented(device_id);
        let id = self.devices.read().get(presented.hash().as_bytes()).copied()?;
        let key = self.keys.read().get(&id).cloned()?;
        (key.hash.matches(&presented) && key.is_active(now)).then_some(key)
    }

    pub(crate) fn is_active(&self, id: KeyId, now: Timestamp) -> bool {
        self.keys.read().get(&id).is_some_and(|key| key.is_active(now))
    }

    pub(crate) fn expiry_of(&self, id: KeyId) -> Option<Timestamp> {
        self.keys.read().get(&id)?.expires_at
    }

    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.generation.subscribe()
    }
}
