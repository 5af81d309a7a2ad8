//! Which calls wait for an answer. Whoever takes a call out settles it, so each is settled once.

use std::collections::{HashMap, HashSet};

use countersign_model::{Digest, sha256};
use parking_lot::Mutex;

/// More than anybody could answer; beyond this the engine is told no.
pub const MAX_WAITING: usize = 256;

/// Calls of one session; beyond this the engine is told no.
const MAX_USED: usize = 1_000_000;

#[derive(Clone, Debug)]
pub struct Waiting {
    pub approval_id: String,
    pub msg_id: String,
    pub tool_name: String,
    /// How the engine wants its answer: by the call, or by a token of its own.
    pub by: AnswerBy,
    pub question: bool,
    /// Of the action that was asked: the gate must have approved just that.
    pub digest: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnswerBy {
    Call,
    Token,
}

#[derive(Debug, Default)]
struct Calls {
    waiting: HashMap<String, Waiting>,
    /// The engine's resume tokens, with the calls they are for.
    tokens: HashMap<String, String>,
    /// Every call and token that was ever asked under, so that an answer to one is never taken for another by its name.
    used: HashSet<Digest>,
    closed: bool,
}

#[derive(Debug, Default)]
pub struct Table(Mutex<Calls>);

impl Table {
    pub fn has_room(&self) -> bool {
        let calls = self.0.lock();
        !calls.closed && calls.waiting.len() < MAX_WAITING
    }

    pub fn contains(&self, call_id: &str) -> bool {
        self.0.lock().waiting.contains_key(call_id)
    }

    /// Whether the engine may ask under this call id: once, however that ended.
    pub fn claim(&self, call_id: &str) -> bool {
        let mut calls = self.0.lock();
        calls.used.len() < MAX_USED && calls.used.insert(sha256(format!("call\n{call_id}").as_bytes()))
    }

    pub fn insert(&self, call_id: &str, waiting: Waiting) {
        self.0.lock().waiting.insert(call_id.to_owned(), waiting);
    }

    pub fn get(&self, call_id: &str) -> Option<Waiting> {
        self.0.lock().waiting.get(call_id).cloned()
    }

    /// Whether the token may stand for this call: it stands for no other, ever.
    pub fn name(&self, token: &str, call_id: &str) -> bool {
        let mut calls = self.0.lock();
        let fresh = calls.used.len() < MAX_USED && calls.used.insert(sha256(format!("token\n{token}").as_bytes()));
        let same = calls.tokens.get(token).is_some_and(|known| known == call_id);
        if fresh {
            calls.tokens.insert(token.to_owned(), call_id.to_owned());
        }
        fresh || same
    }

    pub fn call_of(&self, token: &str) -> Option<String> {
        self.0.lock().tokens.get(token).cloned()
    }

    /// The token that a call goes by, if it has one.
    pub fn token_of(&self, call_id: &str) -> Option<String> {
        self.0.lock().tokens.iter().find(|(_, call)| *call == call_id).map(|(token, _)| token.clone())
    }

    pub fn take(&self, call_id: &str) -> Option<Waiting> {
        self.0.lock().waiting.remove(call_id)
    }

    /// The call is over: its tokens mean nothing any more.
    pub fn forget(&self, call_id: &str) {
        self.0.lock().tokens.retain(|_, call| call != call_id);
    }

    pub fn close(&self) {
        self.0.lock().closed = true;
    }

    pub fn take_all(&self) -> Vec<(String, Waiting)> {
        self.0.lock().waiting.drain().collect()
    }
}
