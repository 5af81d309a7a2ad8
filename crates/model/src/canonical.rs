//! Canonical bytes (RFC 8785 JSON) and their SHA-256: the one way anything here is hashed or bound.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq;

use crate::ordered::plain_bytes;

/// The RFC 8785 form of a value: one byte string for one meaning, whoever wrote it.
pub fn canonical_bytes<T: Serialize>(value: &T) -> Result<Vec<u8>, serde_json::Error> {
    match plain_bytes(value) {
        Some(bytes) => Ok(bytes),
        None => serde_json_canonicalizer::to_vec(value),
    }
}

pub fn sha256(bytes: &[u8]) -> Digest {
    Digest(Sha256::digest(bytes).into())
}

/// A SHA-256, shown as 64 lower-case hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The hash of several pieces laid end to end.
    pub fn of_parts(parts: &[&[u8]]) -> Self {
        let mut hasher = Sha256::new();
        for part in parts {
            hasher.update(part);
        }
        Self(hasher.finalize().into())
    }

    /// Equality whose running time does not depend on where two digests differ.
    pub fn ct_eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }

    pub fn to_hex(&self) -> String {
        as_text(&hex_digits::<64>(&self.0)).to_owned()
    }

    pub fn from_hex(text: &str) -> Option<Self> {
        unhex(text).map(Self)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(as_text(&hex_digits::<64>(&self.0)))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({})", self.to_hex())
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(as_text(&hex_digits::<64>(&self.0)))
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::from_hex(&text).ok_or_else(|| serde::de::Error::custom("expected 64 hex digits"))
    }
}

/// Lower-case digits, two a byte.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().flat_map(|byte| hex_digits::<2>(&[*byte])).map(char::from).collect()
}

/// Two digits a byte, on the stack: ids and digests are written many times a request.
pub(crate) fn hex_digits<const DIGITS: usize>(bytes: &[u8]) -> [u8; DIGITS] {
    let mut out = [b'0'; DIGITS];
    for (pair, byte) in out.chunks_exact_mut(2).zip(bytes) {
        for (slot, nibble) in pair.iter_mut().zip([byte >> 4, byte & 0x0f]) {
            *slot = if nibble < 10 { b'0' + nibble } else { b'a' + nibble - 10 };
        }
    }
    out
}

/// Of digits, which are text.
pub(crate) fn as_text(digits: &[u8]) -> &str {
    std::str::from_utf8(digits).unwrap_or_default()
}

/// Exactly `N` bytes from lower-case hex; upper case is another spelling and is refused.
pub fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    if digits.len() != N * 2 {
        return None;
    }
    let mut out = [0u8; N];
    for (slot, pair) in out.iter_mut().zip(digits.chunks_exact(2)) {
        for digit in pair {
            let value = match digit {
                b'0'..=b'9' => digit - b'0',
                b'a'..=b'f' => digit - b'a' + 10,
                _ => return None,
            };
            *slot = *slot << 4 | value;
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn key_order_and_spacing_do_not_change_the_bytes() {
        let one: serde_json::Value = serde_json::from_str(r#"{"b":1, "a":[1.0, "é"]}"#).unwrap();
        let two = json!({"a": [1, "é"], "b": 1});
        assert_eq!(canonical_bytes(&one).unwrap(), canonical_bytes(&two).unwrap());
        assert_eq!(canonical_bytes(&one).unwrap(), r#"{"a":[1,"é"],"b":1}"#.as_bytes());
    }

    #[test]
    fn hex_round_trips_and_refuses_other_spellings() {
        let digest = sha256(b"abc");
        assert_eq!(digest.to_hex(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(Digest::from_hex(&digest.to_hex()), Some(digest));
        assert_eq!(Digest::from_hex(&digest.to_hex().to_uppercase()), None);
        assert_eq!(Digest::from_hex("ab"), None);
    }
}
