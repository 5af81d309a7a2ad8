//! A store of its own for each test.

use std::path::PathBuf;
use std::sync::Arc;

use countersign_gate::Ledger;
use countersign_ledger::{SqliteLedger, Store};
use countersign_testkit::{Harness, SimClock};

pub struct Sqlite(tempfile::TempDir);

impl Sqlite {
    pub fn fresh() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self) -> PathBuf {
        self.0.path().join("countersign.db")
    }
}

impl Harness for Sqlite {
    fn open(&self, clock: Arc<SimClock>) -> Arc<dyn Ledger> {
        let store = Store::open(&self.path()).unwrap();
        Arc::new(SqliteLedger::start(store, clock).unwrap())
    }
}
