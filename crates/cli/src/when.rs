//! Times as people read them. The wire's times are Unix seconds.

use std::time::{SystemTime, UNIX_EPOCH};

pub fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

/// `2026-11-15 20:05:23 UTC`
pub fn utc(seconds: i64) -> String {
    match jiff::Timestamp::from_second(seconds) {
        Ok(instant) => instant.strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
        Err(_) => format!("second {seconds}"),
    }
}

/// `2026-11-15`
pub fn day(seconds: i64) -> String {
    match jiff::Timestamp::from_second(seconds) {
        Ok(instant) => instant.strftime("%Y-%m-%d").to_string(),
        Err(_) => format!("second {seconds}"),
    }
}

/// The largest unit that says enough: `45s`, `12m`, `3h`, `9d`.
pub fn span(seconds: i64) -> String {
    match seconds.max(0) {
        seconds @ 0..120 => format!("{seconds}s"),
        seconds @ 120..7_200 => format!("{}m", seconds / 60),
        seconds @ 7_200..172_800 => format!("{}h", seconds / 3_600),
        seconds => format!("{}d", seconds / 86_400),
    }
}

/// As somebody would say it: `45 seconds`, `1 minute`, `10 minutes`, `3 hours`, `9 days`.
pub fn words(seconds: i64) -> String {
    let (count, unit) = match seconds.max(0) {
        seconds @ 0..60 => (seconds, "second"),
        seconds @ 60..5_400 => ((seconds + 30) / 60, "minute"),
        seconds @ 5_400..129_600 => ((seconds + 1_800) / 3_600, "hour"),
        seconds => ((seconds + 43_200) / 86_400, "day"),
    };
    format!("{count} {unit}{}", if count == 1 { "" } else { "s" })
}

/// A countdown that ticks: `0:42`, `9:05`, then as `span`.
pub fn countdown(seconds: i64) -> String {
    match seconds.max(0) {
        seconds @ 0..6_000 => format!("{}:{:02}", seconds / 60, seconds % 60),
        seconds => span(seconds),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_read_as_people_say_them() {
        assert_eq!(utc(1_730_000_000), "2024-10-27 03:33:20 UTC");
        assert_eq!(utc(i64::MAX), format!("second {}", i64::MAX));
        let spans = [(-5, "0s"), (119, "119s"), (120, "2m"), (7_199, "119m"), (7_200, "2h"), (200_000, "2d")];
        for (seconds, text) in spans {
            assert_eq!(span(seconds), text);
        }
        let said = [(-1, "0 seconds"), (1, "1 second"), (59, "59 seconds"), (61, "1 minute"), (601, "10 minutes")];
        for (seconds, text) in
            said.into_iter().chain([(7_200, "2 hours"), (86_400, "24 hours"), (2_592_000, "30 days")])
        {
            assert_eq!(words(seconds), text);
        }
        assert_eq!((countdown(65), countdown(5_999), countdown(86_400)), ("1:05".into(), "99:59".into(), "24h".into()));
    }
}
