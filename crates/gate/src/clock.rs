//! The machine's clock, made safe to set deadlines by.

use std::time::Duration;

use countersign_model::Timestamp;
use parking_lot::Mutex;
use rustix::time::{ClockId, clock_gettime};

use crate::ports::{BoxFuture, Clock};

/// Wall time that never goes back: it is at least what the boot clock (which counts through suspend) says
/// has passed since the start. A wall clock set back is ignored; one set forward counts, so that in doubt
/// things expire.
#[derive(Debug)]
pub struct SystemClock {
    base: i64,
    boot_at_base: i64,
    last: Mutex<i64>,
}

impl SystemClock {
    /// `floor` is the last time the record knows: a clock that was set back while the gate was down does
    /// not give anyone more time.
    pub fn starting_after(floor: Timestamp) -> Self {
        let base = wall_millis().max(floor.as_millis());
        Self { base, boot_at_base: boot_millis(), last: Mutex::new(base) }
    }

    /// How far the wall clock is behind the record, if it is.
    pub fn millis_behind(&self) -> i64 {
        (self.base - wall_millis()).max(0)
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let passed = self.base + (boot_millis() - self.boot_at_base);
        let mut last = self.last.lock();
        *last = (*last).max(passed).max(wall_millis());
        Timestamp::from_millis(*last)
    }

    fn sleep_until(&self, at: Timestamp) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            // The runtime's timer neither sees a clock that is set nor counts through suspend: look again
            // every second.
            loop {
                let left = self.now().millis_until(at);
                if left == 0 {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(left.min(1000))).await;
            }
        })
    }

    fn sleep_for(&self, millis: u64) -> BoxFuture<'_, ()> {
        Box::pin(tokio::time::sleep(Duration::from_millis(millis)))
    }
}

fn wall_millis() -> i64 {
    millis(ClockId::Realtime)
}

fn boot_millis() -> i64 {
    millis(ClockId::Boottime)
}

fn millis(clock: ClockId) -> i64 {
    let time = clock_gettime(clock);
    time.tv_sec * 1000 + time.tv_nsec / 1_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threat_70_a_record_from_the_future_is_the_least_time_there_is() {
        let future = Timestamp::from_millis(wall_millis() + 3_600_000);
        let clock = SystemClock::starting_after(future);
        assert!(clock.now() >= future);
        assert!(clock.millis_behind() > 3_500_000);
    }

    #[test]
    fn time_never_goes_back() {
        let clock = SystemClock::starting_after(Timestamp::from_millis(0));
        let mut last = clock.now();
        for _ in 0..10_000 {
            let now = clock.now();
            assert!(now >= last);
            last = now;
        }
    }
}
