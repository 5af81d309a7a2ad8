//! The SQLite ledger against the suite that every ledger must pass, and against random histories.

use std::path::PathBuf;
use std::sync::Arc;

use countersign_gate::Ledger;
use countersign_ledger::{SqliteLedger, Store};
use countersign_testkit::{Harness, SimClock, conformance, history};
use proptest::prelude::*;

struct Sqlite(tempfile::TempDir);

impl Sqlite {
    fn fresh() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("countersign.db")
    }
}

impl Harness for Sqlite {
    fn open(&self, clock: Arc<SimClock>) -> Arc<dyn Ledger> {
        let store = Store::open(&self.path()).unwrap();
        Arc::new(SqliteLedger::start(store, clock).unwrap())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_is_a_ledger() {
    conformance::run_all(&|| Box::new(Sqlite::fresh())).await;
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn random_histories_end_as_the_model_says(steps in history::steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(history::check(&Sqlite::fresh(), &steps));
    }
}
