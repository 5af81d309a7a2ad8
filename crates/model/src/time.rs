//! Instants as the store and the wire keep them: UTC milliseconds since 1970. Reading a clock is not done here.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A UTC instant in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(i64);

impl Timestamp {
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// Unix seconds, rounded up: a reader that waits until this second never gives up too early.
    pub const fn as_secs_ceil(self) -> i64 {
        self.0.saturating_add(999).div_euclid(1000)
    }

    pub const fn plus_millis(self, millis: u64) -> Self {
        let millis = if millis > i64::MAX as u64 { i64::MAX } else { millis as i64 };
        Self(self.0.saturating_add(millis))
    }

    /// How long from `self` until `later`; zero when `later` has passed.
    pub const fn millis_until(self, later: Self) -> u64 {
        let left = later.0.saturating_sub(self.0);
        if left < 0 { 0 } else { left as u64 }
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(instant) => write!(f, "{instant}"),
            Err(_) => write!(f, "{} ms", self.0),
        }
    }
}
