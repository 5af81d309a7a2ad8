//! Who waits for which answer, how long, and what needs none. All in memory: an engine that wants its grants kept and
//! its answers on a record puts a gate behind it.

mod reaper;
mod session;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use countersign_model::Mode;
use parking_lot::Mutex;
use thiserror::Error;
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::protocol::{ApprovalScope, Category, Tool};
use session::Session;

/// How long a host has to answer.
pub const DEFAULT_APPROVAL_TTL: Duration = Duration::from_secs(300);
/// How often requesters that went away are looked for; deadlines are kept exactly, whatever this is.
pub const DEFAULT_REAP_INTERVAL: Duration = Duration::from_secs(30);
/// The reason of a denial that nobody gave.
pub const TIMED_OUT: &str = "approval timed out (no host response)";

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolApprovalResult {
    /// `answer`: what a person said to a question.
    Approved {
        answer: Option<String>,
    },
    Denied {
        reason: String,
    },
}

#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("call `{0}` is pending already; answer that one, or use another id")]
pub struct DuplicateCall(pub String);

#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("no call `{0}` is pending; it was never asked, or it has its answer")]
pub struct NotPending(pub String);

#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ApproveError {
    #[error(transparent)]
    NotPending(#[from] NotPending),
    /// The call is still pending: approve it once, or deny it.
    #[error("no grant can be made: {0}; approve it once")]
    Refused(String),
}

/// Pending calls, the session's mode and what it was granted. Shared by reference or [`Arc`]; no lock is held while
/// anybody waits.
#[derive(Debug)]
pub struct ToolApprovalManager {
    state: Mutex<State>,
    /// Wakes the reaper when a deadline may have come nearer.
    earlier: Notify,
    ttl: Duration,
}

#[derive(Debug)]
struct State {
    pending: HashMap<String, Pending>,
    session: Session,
}

#[derive(Debug)]
struct Pending {
    sender: oneshot::Sender<ToolApprovalResult>,
    expires_at: Instant,
    /// For the grant that the answer may make; unknown where only name and category were given.
    tool: Tool,
}

impl Default for ToolApprovalManager {
    fn default() -> Self {
        Self::new()
    }
}

impl ToolApprovalManager {
    pub fn new() -> Self {
        Self::with_ttl(DEFAULT_APPROVAL_TTL)
    }

    pub fn with_ttl(ttl: Duration) -> Self {
        let state = State { pending: HashMap::new(), session: Session::default() };
        Self { state: Mutex::new(state), earlier: Notify::new(), ttl }
    }

    pub fn mode(&self) -> Mode {
        self.state.lock().session.mode
    }

    /// Counts for later calls only: what is pending stays pending.
    pub fn set_mode(&self, mode: Mode) {
        self.state.lock().session.mode = mode;
    }

    /// Whether this call has to be asked for, by the mode and by what was granted before.
    ///
    /// ```
    /// use countersign_engine::{Tool, ToolApprovalManager, parse_mode};
    /// use serde_json::json;
    ///
    /// let manager = ToolApprovalManager::new();
    /// let read = Tool::new("Read", json!({"file_path": "a"}));
    /// assert!(manager.needs_approval(&read));
    /// manager.set_mode(parse_mode("auto_edit").unwrap());
    /// assert!(!manager.needs_approval(&read));
    /// assert!(manager.needs_approval(&Tool::new("Bash", json!({"command": "ls"}))));
    /// ```
    pub fn needs_approval(&self, tool: &Tool) -> bool {
        self.state.lock().session.needs_approval(tool)
    }

    /// Registers a call by its tool's name and category. Without its arguments no lasting grant can be made for a tool
    /// that runs commands: see [`Self::request_call`].
    pub fn request_approval(
        &self,
        call_id: &str,
        category: Category,
        tool_name: &str,
    ) -> Result<oneshot::Receiver<ToolApprovalResult>, DuplicateCall> {
        let tool = Tool { category, ..Tool::new(tool_name, serde_json::Value::Null) };
        self.request_call(call_id, &tool)
    }

    /// Registers a call. To be done before its `tool_request` is written, so that no answer comes too early.
    pub fn request_call(
        &self,
        call_id: &str,
        tool: &Tool,
    ) -> Result<oneshot::Receiver<ToolApprovalResult>, DuplicateCall> {
        let (sender, receiver) = oneshot::channel();
        let expires_at = Instant::now() + self.ttl;
        let mut state = self.state.lock();
        if state.pending.contains_key(call_id) {
            return Err(DuplicateCall(call_id.to_owned()));
        }
        state.pending.insert(call_id.to_owned(), Pending { sender, expires_at, tool: tool.clone() });
        drop(state);
        self.earlier.notify_one();
        Ok(receiver)
    }

    /// Moves a call's deadline, where somebody else keeps the exact one.
    pub fn expire_at(&self, call_id: &str, at: std::time::Instant) -> Result<(), NotPending> {
        let mut state = self.state.lock();
        let pending = state.pending.get_mut(call_id).ok_or_else(|| NotPending(call_id.to_owned()))?;
        pending.expires_at = at.into();
        drop(state);
        self.earlier.notify_one();
        Ok(())
    }

    /// The host says yes. What the scope grants holds for later calls of this session; if no such grant can be made,
    /// the call stays pending. `answer` counts for `AskUserQuestion` and for nothing else.
    ///
    /// ```
    /// use countersign_engine::{ApprovalScope, ApproveError, Tool, ToolApprovalManager};
    /// use serde_json::json;
    ///
    /// let manager = ToolApprovalManager::new();
    /// let shell = Tool::new("Bash", json!({"command": "bash -c 'make'"}));
    /// let _answer = manager.request_call("c-1", &shell)?;
    /// // A shell could run anything, so it is never allowed for good; once it may be.
    /// let refused = manager.approve("c-1", ApprovalScope::Always, None);
    /// assert!(matches!(refused, Err(ApproveError::Refused(_))) && manager.is_pending("c-1"));
    /// manager.approve("c-1", ApprovalScope::Once, None)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn approve(&self, call_id: &str, scope: ApprovalScope, answer: Option<String>) -> Result<(), ApproveError> {
        let mut guard = self.state.lock();
        let state = &mut *guard;
        let pending = state.pending.get(call_id).ok_or_else(|| NotPending(call_id.to_owned()))?;
        state.session.grant(&pending.tool, scope).map_err(ApproveError::Refused)?;
        if let Some(pending) = state.pending.remove(call_id) {
            let answer = answer.filter(|_| pending.tool.is_question());
            // Whoever asked may have gone away: then nobody runs it.
            let _ = pending.sender.send(ToolApprovalResult::Approved { answer });
        }
        Ok(())
    }

    /// Ends a call's wait with this result; nothing is granted.
    ///
    /// ```
    /// use countersign_engine::{Category, ToolApprovalManager, ToolApprovalResult};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let manager = ToolApprovalManager::new();
    /// let answer = manager.request_approval("c-1", Category::Exec, "Bash")?;
    /// let denied = ToolApprovalResult::Denied { reason: "not today".to_owned() };
    /// manager.resolve("c-1", denied.clone())?;
    /// assert_eq!(answer.await?, denied);
    /// assert!(manager.resolve("c-1", denied).is_err());
    /// # Ok(())
    /// # }
    /// ```
    pub fn resolve(&self, call_id: &str, result: ToolApprovalResult) -> Result<(), NotPending> {
        let pending = self.state.lock().pending.remove(call_id).ok_or_else(|| NotPending(call_id.to_owned()))?;
        let _ = pending.sender.send(result);
        Ok(())
    }

    pub fn is_pending(&self, call_id: &str) -> bool {
        self.state.lock().pending.contains_key(call_id)
    }

    pub fn pending_count(&self) -> usize {
        self.state.lock().pending.len()
    }

    /// The host has stopped or gone: everything that waits is denied. Answers their ids.
    ///
    /// ```
    /// use countersign_engine::{Category, ToolApprovalManager};
    ///
    /// let manager = ToolApprovalManager::new();
    /// let _answer = manager.request_approval("c-1", Category::Edit, "Write")?;
    /// assert_eq!(manager.deny_all_pending("stopped"), ["c-1"]);
    /// assert_eq!(manager.pending_count(), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn deny_all_pending(&self, reason: &str) -> Vec<String> {
        let all: Vec<(String, Pending)> = self.state.lock().pending.drain().collect();
        let denied = all.into_iter().map(|(call_id, pending)| {
            let _ = pending.sender.send(ToolApprovalResult::Denied { reason: reason.to_owned() });
            call_id
        });
        denied.collect()
    }

    /// Denies what is overdue and forgets requesters that went away; how many there were.
    ///
    /// ```
    /// use std::time::Duration;
    /// use countersign_engine::{Category, TIMED_OUT, ToolApprovalManager, ToolApprovalResult};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let manager = ToolApprovalManager::with_ttl(Duration::ZERO);
    /// let answer = manager.request_approval("c-1", Category::Edit, "Write")?;
    /// assert_eq!(manager.reap_now(), 1);
    /// assert_eq!(answer.await?, ToolApprovalResult::Denied { reason: TIMED_OUT.to_owned() });
    /// # Ok(())
    /// # }
    /// ```
    pub fn reap_now(&self) -> usize {
        let now = Instant::now();
        let mut state = self.state.lock();
        let due = |pending: &Pending| pending.expires_at <= now || pending.sender.is_closed();
        let ids: Vec<String> =
            state.pending.iter().filter(|(_, pending)| due(pending)).map(|(id, _)| id.clone()).collect();
        let reaped: Vec<Pending> = ids.iter().filter_map(|id| state.pending.remove(id)).collect();
        drop(state);
        let count = reaped.len();
        for pending in reaped {
            let _ = pending.sender.send(ToolApprovalResult::Denied { reason: TIMED_OUT.to_owned() });
        }
        count
    }

    /// Keeps deadlines exactly, on the runtime that this is called on. `interval` is how often requesters that went
    /// away are looked for. The task ends with the manager.
    ///
    /// ```
    /// use std::{sync::Arc, time::Duration};
    /// use countersign_engine::{Category, DEFAULT_REAP_INTERVAL, ToolApprovalManager, ToolApprovalResult};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let manager = Arc::new(ToolApprovalManager::with_ttl(Duration::from_millis(20)));
    /// let reaper = manager.spawn_reaper(DEFAULT_REAP_INTERVAL);
    /// let answer = manager.request_approval("c-1", Category::Exec, "Bash")?;
    /// assert!(matches!(answer.await?, ToolApprovalResult::Denied { .. }));
    /// # reaper.abort();
    /// # Ok(())
    /// # }
    /// ```
    pub fn spawn_reaper(self: &Arc<Self>, interval: Duration) -> JoinHandle<()> {
        tokio::spawn(reaper::run(Arc::downgrade(self), interval))
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.state.lock().pending.values().map(|pending| pending.expires_at).min()
    }
}

#[cfg(test)]
mod tests;
