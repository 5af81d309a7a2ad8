//! `countersign engine`: tools behind the gate for any program that speaks lines of JSON. `session` reads and answers,
//! `calls` carries one call from the question to its result, `commands` runs one, `tools` does the work, `desk` talks to the gate.

mod calls;
mod commands;
mod confine;
mod desk;
mod out;
mod own_gate;
mod session;
mod tools;

pub use confine::{Confined, workspace};
pub use desk::{By, Desk, cancelled_reason, gate_error};
pub use out::Out;
pub use own_gate::OwnGate;
pub use session::{Settings, serve};
