//! Where everything is written. The trait is the gate's; here are its implementations and the statements
//! they share. What a command does is not decided here: `countersign_gate::apply` runs inside the
//! transaction.

mod checkpoints;
mod migrate;
mod sql;
mod sqlite;
mod verify;

pub use checkpoints::{Checkpoints, PublicKey, Signer, WitnessError, Witnessed};
pub use sqlite::{OpenError, SqliteLedger, Store};
pub use verify::{AuditReport, VerifyError, verify_export_line, verify_store};
