//! What the live list knows and does: keys and news in, effects out. Pure: no terminal, no connection, no clock.
//!
//! INVARIANT: nothing is allowed that was not on the screen whole, and no key decides about a request that took
//! another's place under the person's finger.

use serde_json::{Value, json};

use super::news::News;
use super::view;
use crate::keys::{Burst, Key};
use crate::line::Line;
use crate::record::{Longer, Record, short_id};

/// After the selection moved by itself, a key that decides is not taken for this long: the person meant
/// what was there before.
const SETTLE_MS: i64 = 800;

#[derive(Clone, Debug, PartialEq)]
pub enum Mode {
    List,
    /// The whole showing, scrolled by so many lines.
    Open {
        scroll: usize,
    },
    /// One line of text about the request, and where to go back to.
    Prompt {
        about: String,
        kind: Prompt,
        line: Line,
        back: Box<Mode>,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub enum Prompt {
    DenyReason,
    AllowNote,
    /// Of what is dangerous; then this is sent.
    Number(Value),
    /// One of what is offered for longer than this once.
    Longer,
    /// A yes to one of them.
    LongerYes(Longer),
}

#[derive(Debug)]
pub enum Input {
    Keys(Burst),
    Resize {
        columns: usize,
        rows: usize,
    },
    /// Time passed.
    Tick,
    Listed(Vec<Record>),
    News(Box<News>),
    Lost(String),
    /// What came of a decision sent from here; the error is for the person.
    Answered {
        id: String,
        error: Option<String>,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    Decide {
        id: String,
        body: Value,
    },
    /// The list may be stale: read it again.
    Refresh,
    Quit,
    /// Quit as a program that was interrupted.
    Interrupted,
}

#[derive(Debug)]
pub struct State {
    /// Oldest first.
    pub items: Vec<Record>,
    pub selected: Option<String>,
    /// The selection's place in the list.
    pub at: usize,
    pub mode: Mode,
    /// The last thing that happened.
    pub last: String,
    pub lost: Option<String>,
    pub columns: usize,
    pub rows: usize,
    pub now_ms: i64,
    /// Sent from here, and not answered yet.
    pub sent: Vec<String>,
    /// The request whose whole showing was on the screen to its end.
    seen: Option<String>,
    moved_at: Option<i64>,
}

impl State {
    pub fn new(items: Vec<Record>, columns: usize, rows: usize, now_ms: i64) -> Self {
        let mut state = Self {
            items,
            selected: None,
            at: 0,
            mode: Mode::List,
            last: String::new(),
            lost: None,
            columns,
            rows,
            now_ms,
            sent: Vec::new(),
            seen: None,
            moved_at: None,
        };
        state.items.retain(Record::is_pending);
        state.settle();
        state.moved_at = None;
        state
    }

    pub fn take(&mut self, now_ms: i64, input: Input) -> Vec<Effect> {
        self.now_ms = now_ms;
        let effects = match input {
            Input::Keys(burst) => self.keys(&burst),
            Input::Resize { columns, rows } => {
                (self.columns, self.rows) = (columns, rows);
                Vec::new()
            }
            Input::Tick => Vec::new(),
            Input::Listed(items) => {
                self.lost = None;
                self.items = items;
                self.items.retain(Record::is_pending);
                Vec::new()
            }
            Input::News(news) => self.news(*news),
            Input::Lost(why) => {
                self.lost = Some(why);
                Vec::new()
            }
            Input::Answered { id, error } => {
                self.sent.retain(|sent| *sent != id);
                if let Some(error) = error {
                    self.last = format!("{} not decided: {error}", short_id(&id));
                    return vec![Effect::Refresh];
                }
                self.items.retain(|item| item.approval_id != id);
                Vec::new()
            }
        };
        self.settle();
        effects
    }

    pub fn current(&self) -> Option<&Record> {
        let selected = self.selected.as_deref()?;
        self.items.iter().find(|item| item.approval_id == selected)
    }

    fn news(&mut self, news: News) -> Vec<Effect> {
        self.lost = None;
        self.last = match &news.approval_id {
            Some(id) => format!("{} {}", short_id(id), news.line()),
            None => news.line(),
        };
        match (news.record, news.approval_id) {
            (Some(record), _) => {
                let known = self.items.iter().position(|item| item.approval_id == record.approval_id);
                match (known, record.is_pending()) {
                    (Some(_), true) => {}
                    (None, true) => self.items.push(record),
                    (Some(at), false) => drop(self.items.remove(at)),
                    (None, false) => {}
                }
                Vec::new()
            }
            // Something about a request that was not sent along.
            (None, Some(_)) => vec![Effect::Refresh],
            (None, None) => Vec::new(),
        }
    }

    /// In words every key counts. Elsewhere only one that came alone does, except for moving: what a terminal sends
    /// with other things is not a person's choice.
    fn keys(&mut self, burst: &Burst) -> Vec<Effect> {
        if burst.interrupts() {
            return vec![Effect::Interrupted];
        }
        let alone = burst.keys.len() == 1;
        let mut effects = Vec::new();
        for key in &burst.keys {
            match std::mem::replace(&mut self.mode, Mode::List) {
                Mode::Prompt { about, kind, line, back } => {
                    effects.extend(self.prompt_key(key, about, kind, line, back));
                    // What came with the key that ended the line was not meant for what is there now.
                    if !matches!(self.mode, Mode::Prompt { .. }) {
                        break;
                    }
                }
                mode => {
                    self.mode = mode;
                    let moves = matches!(key, Key::Up | Key::Down | Key::PageUp | Key::PageDown);
                    if alone || moves {
                        effects.extend(self.command_key(key));
                    }
                }
            }
        }
        effects
    }

    fn command_key(&mut self, key: &Key) -> Vec<Effect> {
        let page = view::page(self.rows);
        match key {
            Key::Up | Key::Plain('k') => self.go(-1),
            Key::Down | Key::Plain('j') => self.go(1),
            Key::PageUp => self.go(-page),
            Key::PageDown | Key::Plain(' ') => self.go(page),
            Key::Enter => {
                self.mode = match self.mode {
                    Mode::List if self.selected.is_some() => Mode::Open { scroll: 0 },
                    Mode::List | Mode::Open { .. } | Mode::Prompt { .. } => Mode::List,
                };
            }
            Key::Escape => self.mode = Mode::List,
            Key::Plain('q') => return vec![Effect::Quit],
            Key::Plain('a') if self.may_allow() => return self.allow(json!({"decision": "allow-once"})),
            Key::Plain('n') if self.may_allow() => self.prompt(Prompt::AllowNote, Line::new("")),
            Key::Plain('w') if self.may_allow() => {
                if self.current().is_some_and(|record| record.longer().is_empty()) {
                    self.last = "it can be allowed this once, and no wider".to_owned();
                } else {
                    self.prompt(Prompt::Longer, Line::new(""));
                }
            }
            Key::Plain('d') if self.may_decide() => self.prompt(Prompt::DenyReason, Line::new("")),
            // Pasted text is never a command, nor is a key with Ctrl or Alt.
            _ => {}
        }
        Vec::new()
    }

    fn go(&mut self, by: isize) {
        match &mut self.mode {
            Mode::Open { scroll } => *scroll = scroll.saturating_add_signed(by),
            Mode::List | Mode::Prompt { .. } => {
                let to = self.at.saturating_add_signed(by).min(self.items.len().saturating_sub(1));
                self.selected = self.items.get(to).map(|item| item.approval_id.clone());
                self.at = to;
                self.moved_at = None;
            }
        }
    }

    /// At once, or after the number where it is dangerous.
    fn allow(&mut self, body: Value) -> Vec<Effect> {
        let Some(record) = self.current() else { return Vec::new() };
        if !record.is_dangerous() {
            return self.send(self.selected.clone(), body);
        }
        self.prompt(Prompt::Number(body), Line::of_digits());
        Vec::new()
    }

    fn send(&mut self, id: Option<String>, body: Value) -> Vec<Effect> {
        let Some(id) = id else { return Vec::new() };
        self.sent.push(id.clone());
        vec![Effect::Decide { id, body }]
    }

    /// Whether a yes may be given now. What was not seen whole is opened instead.
    fn may_allow(&mut self) -> bool {
        if !self.may_decide() {
            return false;
        }
        if self.seen == self.selected {
            return true;
        }
        if self.mode == Mode::List {
            self.mode = Mode::Open { scroll: 0 };
        }
        self.last = "read it to the end first (space goes on), then press again".to_owned();
        false
    }

    fn may_decide(&mut self) -> bool {
        let Some(selected) = &self.selected else { return false };
        if self.sent.contains(selected) {
            return false;
        }
        if self.moved_at.is_some_and(|at| self.now_ms.saturating_sub(at) < SETTLE_MS) {
            self.last = "the selection has just changed by itself; look again, then press again".to_owned();
            return false;
        }
        true
    }

    /// Puts order and selection right after any change.
    fn settle(&mut self) {
        self.items.sort_by(|a, b| (a.created_at, &a.approval_id).cmp(&(b.created_at, &b.approval_id)));
        if self.current().is_none() {
            let next = self.at.min(self.items.len().saturating_sub(1));
            let next = self.items.get(next).map(|item| item.approval_id.clone());
            if next.is_some() {
                self.moved_at = Some(self.now_ms);
            }
            self.selected = next;
            if matches!(self.mode, Mode::Open { .. }) {
                self.mode = Mode::List;
            }
        }
        self.at = self.items.iter().position(|item| Some(&item.approval_id) == self.selected.as_ref()).unwrap_or(0);
        let end = view::last_scroll(self);
        if let Mode::Open { scroll } = &mut self.mode {
            *scroll = (*scroll).min(end);
        }
        if view::is_seen_whole(self) {
            self.seen.clone_from(&self.selected);
        } else if self.seen != self.selected {
            self.seen = None;
        }
    }
}

mod words;

#[cfg(test)]
mod tests;
