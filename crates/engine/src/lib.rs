//! Tool approval over stdio, JSON lines: what an engine and its host say to each other, how lines are told apart, and
//! who waits for which answer. For any engine written in Rust; it needs no gate and no server of ours.
//!
//! An engine registers a call, writes the `tool_request` and awaits the receiver:
//!
//! ```
//! use countersign_engine::{ApprovalScope, Tool, ToolApprovalManager, ToolApprovalResult};
//! use serde_json::json;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let manager = ToolApprovalManager::new();
//! let tool = Tool::new("Bash", json!({"command": "cargo test --lib"}));
//! assert!(manager.needs_approval(&tool));
//!
//! let answer = manager.request_call("c-1", &tool)?;
//! // … the `tool_request` goes to the host, and its `tool_approve` comes back …
//! manager.approve("c-1", ApprovalScope::AlwaysPrefix { prefix: "cargo ".to_owned() }, None)?;
//! assert_eq!(answer.await?, ToolApprovalResult::Approved { answer: None });
//!
//! // What the prefix speaks for runs without asking; what only looks like it does not.
//! let next = |command: &str| Tool::new("Bash", json!({"command": command}));
//! assert!(!manager.needs_approval(&next("cargo build && cargo test")));
//! assert!(manager.needs_approval(&next("cargo build | grep error")));
//! assert!(manager.needs_approval(&next("cargofoo")));
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod framing;
mod manager;
mod protocol;
mod scrub;
mod token;

pub use framing::{BadLine, Line, Lines, MAX_ECHO, MAX_LINE};
pub use manager::{
    ApproveError, DEFAULT_APPROVAL_TTL, DEFAULT_REAP_INTERVAL, DuplicateCall, NotPending, TIMED_OUT,
    ToolApprovalManager, ToolApprovalResult,
};
pub use protocol::{
    ApprovalResume, ApprovalScope, CallTool, Capabilities, Category, Command, ErrorInfo, Event, Head, OutputType,
    Persistence, Received, SetMode, Status, Tool, ToolApprove, ToolCall, ToolDeny, mode_word, parse_mode,
};
pub use scrub::{SCRUBBED, Scrubber, scrub};
pub use token::{RandomError, ResumeToken};
