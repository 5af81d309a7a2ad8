//! Ids: 128 random bits behind a prefix that says what they name. Knowing one gives no power.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

use crate::canonical::{as_text, hex_digits, unhex};

#[derive(Debug, Error, PartialEq, Eq)]
#[error("expected `{prefix}` and 32 lower-case hex digits")]
pub struct IdError {
    prefix: &'static str,
}

macro_rules! random_id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name([u8; 16]);

        impl $name {
            pub const PREFIX: &str = $prefix;

            pub const fn from_random(bytes: [u8; 16]) -> Self {
                Self(bytes)
            }

            pub const fn as_bytes(&self) -> &[u8; 16] {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str($prefix)?;
                f.write_str(as_text(&hex_digits::<32>(&self.0)))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                text.strip_prefix($prefix)
                    .and_then(unhex)
                    .map(Self)
                    .ok_or(IdError { prefix: $prefix })
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

random_id!(
    /// One approval, the same id on every door and channel.
    ApprovalId,
    "appr_"
);
random_id!(
    /// One grant of any kind; the wire calls an action-type grant's id `rule_id`.
    GrantId,
    "grant_"
);
random_id!(
    /// A key's public half: finds the key, proves nothing.
    KeyId,
    "key_"
);

/// Fewer hex digits than this are a word like any other: a person's own abbreviation, or a caller's name for its request.
const MIN_PART_DIGITS: usize = 8;
const ID_DIGITS: usize = 32;

impl ApprovalId {
    /// Whether this reads as one of the gate's ids, whole or in part. Nobody may name a request so, and nothing is ever
    /// looked for by a part: what it means changes with every new request.
    pub fn is_like(text: &str) -> bool {
        let prefixed = text.get(..Self::PREFIX.len()).is_some_and(|start| start.eq_ignore_ascii_case(Self::PREFIX));
        let is_hex = text.bytes().all(|byte| byte.is_ascii_hexdigit());
        prefixed || (is_hex && (MIN_PART_DIGITS..=ID_DIGITS).contains(&text.len()))
    }
}

/// What the wire shows of a client: the first 12 hex digits of its key's SHA-256. Never used to find or to
/// compare a key, since 48 bits collide.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ClientId(String);

impl ClientId {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ClientId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_approval_id_is_its_prefix_and_32_hex_digits() {
        let id = ApprovalId::from_random([0xab; 16]);
        assert_eq!(id.to_string(), format!("appr_{}", "ab".repeat(16)));
        assert_eq!(id.to_string().parse(), Ok(id));
    }

    #[test]
    fn threat_83_ids_of_the_gate_are_known_whole_and_in_part() {
        let whole = ApprovalId::from_random([0xab; 16]).to_string();
        let digits = "ab".repeat(16);
        for like in
            [whole.as_str(), "appr_", "appr_ab12", "appr_job", "APPR_x", "Appr_1", &digits, "deadbeef", "DEADBEEF"]
        {
            assert!(ApprovalId::is_like(like), "{like}");
        }
        for own in
            ["", "ab12", "abcdefa", "job-1", "0194-44a0", "01944460-0000-7000-8000-000000000000", "appr", "xappr_1"]
        {
            assert!(!ApprovalId::is_like(own), "{own}");
        }
        assert!(!ApprovalId::is_like(&"a".repeat(33)));
    }

    #[test]
    fn other_prefixes_lengths_and_cases_are_refused() {
        for bad in ["", "appr_", "appr_AB", &format!("appr_{}", "AB".repeat(16)), &format!("key_{}", "ab".repeat(16))] {
            assert!(bad.parse::<ApprovalId>().is_err(), "{bad}");
        }
    }
}
