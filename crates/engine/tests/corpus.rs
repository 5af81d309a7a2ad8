//! Every frame of the protocol's own corpus is read as it says: golden and compatible ones parse, hostile ones are
//! refused.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code: a broken expectation is a failed test"
)]

use countersign_engine::{Command, Event};
use serde_json::Value;

#[test]
fn every_frame_gets_the_answer_it_names() {
    let text = include_str!("data/frames.jsonl");
    let mut seen = (0, 0);
    for row in text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        let frame = row["raw"].as_str().map_or_else(|| row["json"].to_string(), str::to_owned);
        let parses = row["expect"] == "parses";
        let read = match row["direction"].as_str().unwrap() {
            "host->agent" => Command::parse(&frame).map(drop),
            _ => Event::parse(&frame).map(drop),
        };
        assert_eq!(read.is_ok(), parses, "{}: {read:?}", row["id"]);
        if parses { seen.0 += 1 } else { seen.1 += 1 }
    }
    assert!(seen.0 >= 48 && seen.1 >= 16, "{seen:?}");
}
