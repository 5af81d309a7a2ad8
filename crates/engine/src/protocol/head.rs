//! The beginning of understanding a line: which type it is and which call it is about. Whoever stands between two
//! parsers must not read a line otherwise than they do, so what could be read in two ways is refused.

use std::fmt;

use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use thiserror::Error;

/// A line's type, without the rest of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    pub kind: String,
}

#[derive(Debug, Error, PartialEq, Eq)]
#[error("{0}")]
pub struct HeadError(String);

impl Head {
    /// One JSON object with exactly one `type`, a string. Some parsers take the first of two fields with one name and
    /// some the last, and some do not tell upper case from lower: such a line has no type.
    ///
    /// ```
    /// use countersign_engine::Head;
    ///
    /// assert_eq!(Head::parse(r#"{"type":"ping"}"#)?.kind, "ping");
    /// for two_ways in [r#"{"type":"ping","type":"stop"}"#, r#"{"type":"ping","Type":"stop"}"#, "[]", "{}"] {
    ///     assert!(Head::parse(two_ways).is_err());
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn parse(line: &str) -> Result<Self, HeadError> {
        serde_json::from_str(line).map_err(|error| HeadError(error.to_string()))
    }
}

impl<'de> Deserialize<'de> for Head {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(HeadVisitor)
    }
}

/// Fields by which a line is acted on: two of a name, however spelled, could be read in two ways.
const DECISIVE: [&str; 4] = ["type", "call_id", "resume_token", "mode"];

struct HeadVisitor;

impl<'de> Visitor<'de> for HeadVisitor {
    type Value = Head;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with a `type`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Head, A::Error> {
        let mut kind: Option<String> = None;
        let mut seen = [false; DECISIVE.len()];
        while let Some(name) = map.next_key::<std::borrow::Cow<'_, str>>()? {
            let decisive = DECISIVE.iter().position(|known| known.eq_ignore_ascii_case(&name));
            if let Some(slot) = decisive.and_then(|at| seen.get_mut(at)) {
                if *slot || !DECISIVE.contains(&name.as_ref()) {
                    return Err(serde::de::Error::custom(format!("`{name}` could be read in two ways; send it once")));
                }
                *slot = true;
            }
            if name == "type" {
                kind = Some(map.next_value()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        let kind = kind.ok_or_else(|| serde::de::Error::missing_field("type"))?;
        Ok(Head { kind })
    }
}
