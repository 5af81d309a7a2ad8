//! The SQLite ledger against the suite that every ledger must pass, and against random histories.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code: a broken expectation is a failed test"
)]

mod support;

use countersign_testkit::{conformance, history};
use proptest::prelude::*;
use support::Sqlite;

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_is_a_ledger() {
    conformance::run_all(&|| Box::new(Sqlite::fresh())).await;
}

fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").map_or(48, |cases| cases.parse().unwrap())
}

proptest! {
    // `PROPTEST_CASES` asks for more.
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn random_histories_end_as_the_model_says(steps in history::steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(history::check(&Sqlite::fresh(), &steps));
    }
}
