//! How often one key or one address may call: a token bucket in its virtual-time form, one number a caller.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Instant;

use parking_lot::Mutex;

/// Above this many callers, those that have long been quiet are forgotten.
const PRUNE_ABOVE: usize = 16_384;
const NANOS: u64 = 1_000_000_000;

#[derive(Debug)]
pub(crate) struct Limiter<K> {
    started: Instant,
    nanos_each: u64,
    /// When each caller's bucket is full again, in nanoseconds since the start.
    full_at: Mutex<HashMap<K, u64>>,
}

impl<K: Eq + Hash> Limiter<K> {
    /// `per_second` calls a second, and as many at once.
    pub(crate) fn new(per_second: u32) -> Self {
        Self { started: Instant::now(), nanos_each: NANOS / u64::from(per_second.max(1)), full_at: Mutex::default() }
    }

    /// Takes one call, or answers in how many seconds to try again.
    pub(crate) fn check(&self, caller: K) -> Result<(), u64> {
        let now = u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.check_at(caller, now)
    }

    fn check_at(&self, caller: K, now: u64) -> Result<(), u64> {
        let mut full_at = self.full_at.lock();
        if full_at.len() > PRUNE_ABOVE {
            full_at.retain(|_, at| *at > now);
        }
        let slot = full_at.entry(caller).or_insert(0);
        let next = (*slot).max(now) + self.nanos_each;
        let over = next.saturating_sub(now).saturating_sub(NANOS);
        if over > 0 {
            return Err(over.div_ceil(NANOS).max(1));
        }
        *slot = next;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_of_calls_at_once_then_one_at_a_time() {
        let limiter = Limiter::new(10);
        let taken = (0..20).filter(|_| limiter.check_at("a", 0).is_ok()).count();
        assert_eq!(taken, 10);
        assert_eq!(limiter.check_at("a", 0), Err(1));
        assert_eq!(limiter.check_at("b", 0), Ok(()));
        assert_eq!(limiter.check_at("a", NANOS / 10), Ok(()));
        assert_eq!(limiter.check_at("a", NANOS / 10), Err(1));
    }

    #[test]
    fn quiet_callers_are_forgotten() {
        let limiter = Limiter::new(1000);
        for caller in 0..=PRUNE_ABOVE {
            limiter.check_at(caller, 0).unwrap();
        }
        limiter.check_at(usize::MAX, 10 * NANOS).unwrap();
        assert_eq!(limiter.full_at.lock().len(), 1);
    }
}
