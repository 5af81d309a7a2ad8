//! Keys: who a caller is. Only a key's hash is ever stored; its role is given when it is made.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::canonical::{Digest, sha256};
use crate::id::{ClientId, KeyId};
use crate::time::Timestamp;

const PREFIX: &str = "csk_";
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// One fixed set of rights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    Agent,
    Approver,
    Admin,
    Inbox,
    Node,
}

impl Role {
    pub const ALL: [Self; 5] = [Self::Agent, Self::Approver, Self::Admin, Self::Inbox, Self::Node];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Approver => "approver",
            Self::Admin => "admin",
            Self::Inbox => "inbox",
            Self::Node => "node",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == text)
    }
}

/// The key as its holder has it: `csk_`, the public id, `_`, 256 random bits. Shown once, never logged.
#[derive(Clone)]
pub struct KeySecret(String);

impl KeySecret {
    pub fn from_random(id: KeyId, random: &[u8; 32]) -> Self {
        let id = id.to_string();
        let id = id.strip_prefix(KeyId::PREFIX).unwrap_or(&id);
        Self(format!("{PREFIX}{id}_{}", base64url(random)))
    }

    /// What a caller presented. Anything may be in it.
    pub fn presented(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The public half, which finds the key; `None` when this is no key of ours.
    pub fn key_id(&self) -> Option<KeyId> {
        let (id, secret) = self.0.strip_prefix(PREFIX)?.split_once('_')?;
        (!secret.is_empty()).then(|| format!("{}{id}", KeyId::PREFIX).parse().ok())?
    }

    pub fn hash(&self) -> KeyHash {
        KeyHash(sha256(self.0.as_bytes()))
    }

    pub fn client_id(&self) -> ClientId {
        ClientId::new(self.hash().0.to_hex().chars().take(12).collect::<String>())
    }

    /// For handing it to its holder, and for nothing else.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for KeySecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeySecret(…)")
    }
}

/// A key's SHA-256. There is no `==`: the only comparison takes the same time wherever they differ, and
/// since both sides are hashes, what a caller tries says nothing about how near it was.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KeyHash(Digest);

impl KeyHash {
    pub fn matches(&self, presented: &KeySecret) -> bool {
        self.0.ct_eq(&presented.hash().0)
    }

    pub fn as_bytes(&self) -> &[u8; 32] {
        self.0.as_bytes()
    }

    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(Digest::from_bytes(bytes))
    }
}

#[derive(Clone, Debug)]
pub struct KeyRecord {
    pub id: KeyId,
    pub hash: KeyHash,
    pub client_id: ClientId,
    /// The name that stands on the record.
    pub name: String,
    pub role: Role,
    pub profile: String,
    pub created_at: Timestamp,
    pub expires_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
    /// A device that was paired: its secret is its device id, which has no public half.
    pub paired: bool,
    /// The machine a node's key is for, from its first use on.
    pub node_id: Option<String>,
}

impl KeyRecord {
    pub fn is_active(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|end| now < end)
    }
}

fn base64url(bytes: &[u8; 32]) -> String {
    let mut out = String::with_capacity(43);
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0u32, |word, byte| word << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for place in 0..=chunk.len() {
            let index = (word >> (18 - 6 * place)) & 0x3f;
            out.push(ALPHABET.get(index as usize).map_or('A', |byte| char::from(*byte)));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(fill: u8) -> KeySecret {
        KeySecret::from_random(KeyId::from_random([1; 16]), &[fill; 32])
    }

    #[test]
    fn a_key_is_its_id_and_256_bits() {
        let key = secret(0xff);
        assert_eq!(key.reveal(), format!("csk_{}_{}8", "01".repeat(16), "_".repeat(42)));
        assert_eq!(key.key_id(), Some(KeyId::from_random([1; 16])));
    }

    #[test]
    fn what_is_no_key_of_ours_has_no_id() {
        for text in [
            "",
            "csk_",
            "csk_zz_x",
            "Bearer",
            &format!("csk_{}", "01".repeat(16)),
            &format!("csk_{}_", "01".repeat(16)),
        ] {
            assert_eq!(KeySecret::presented(text).key_id(), None, "{text}");
        }
    }

    #[test]
    fn only_the_very_key_matches() {
        let hash = secret(1).hash();
        assert!(hash.matches(&secret(1)) && !hash.matches(&secret(2)));
        let mut longer = secret(1).reveal().to_owned();
        longer.push('A');
        assert!(!hash.matches(&KeySecret::presented(longer)));
    }

    #[test]
    fn threat_62_keys_with_one_client_id_are_still_two_keys() {
        // The shown id is 48 bits of hash; finding and comparing use the 128-bit id and the whole hash.
        let (one, two) = (KeyId::from_random([1; 16]), KeyId::from_random([2; 16]));
        assert_ne!(KeySecret::from_random(one, &[1; 32]).key_id(), KeySecret::from_random(two, &[1; 32]).key_id());
        assert_eq!(secret(1).client_id().as_str().len(), 12);
    }

    #[test]
    fn a_secret_never_prints_itself() {
        let key = secret(3);
        assert!(!format!("{key:?}").contains(key.reveal()));
    }
}
