//! The embedded store: SQLite with one writer thread and group commit.

mod copy_back;
mod ledger;
mod recent;
mod rows;
mod tx;
mod writer;

pub use ledger::{OpenError, SqliteLedger, Store};
pub(crate) use rows::{read_approval, read_grant, read_key};
