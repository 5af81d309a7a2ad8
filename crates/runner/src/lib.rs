//! Runs an approved command, exactly: the one place that executes.
//!
//! Two calls, before and after a person's yes. `bind` looks at what a command would find on this machine and opens
//! nothing that stays; its answer becomes part of the action. `start` takes the stored action, looks again, refuses
//! when anything differs, and runs what it looked at. Knows no gate, no HTTP and no policy, and never asks anybody.
//!
//! A process that uses this should start no children in groups of their own by other means: what a command left behind
//! is told from them by being nobody else's.

mod bind;
mod change;
mod environment;
mod files;
mod folder;
mod git;
mod links;
mod lookup;
mod output;
mod project;
mod reading;
mod running;
mod scripts;
mod start;
mod strays;
mod terminal;

pub use bind::{BindError, Bound, Spec, What, bind};
pub use change::Change;
pub use environment::{EnvError, Inherited, check_request_env};
pub use output::{Captured, Stream};
pub use running::{Exit, Outcome, Running, Stopper};
pub use start::{StartError, Stdio, start};
pub use strays::kill_all;
