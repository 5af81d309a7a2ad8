//! What the live list knows and does: keys and news in, effects out. Pure: no terminal, no connection, no clock.
//!
//! INVARIANT: nothing is allowed that was not on the screen whole, and no key decides about a request that took
//! another's place under the person's finger.

use serde_json::{Value, json};

use super::news::News;
use super::view;
use crate::record::{Record, short_id};

/// After the selection moved by itself, a key that decides is not taken for this long: the person meant
/// what was there before.
const SETTLE_MS: i64 = 800;

#[derive(Clone, Debug, PartialEq, Eq)]
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
        text: String,
        back: Box<Mode>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prompt {
    DenyReason,
    AllowNote,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Key {
    Up,
    Down,
    PageUp,
    PageDown,
    Enter,
    Escape,
    Backspace,
    Char(char),
    Paste(String),
    Interrupt,
}

#[derive(Debug)]
pub enum Input {
    Key(Key),
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
            Input::Key(key) => self.key(key),
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

    fn key(&mut self, key: Key) -> Vec<Effect> {
        if key == Key::Interrupt {
            return vec![Effect::Interrupted];
        }
        match std::mem::replace(&mut self.mode, Mode::List) {
            Mode::Prompt { about, kind, text, back } => self.prompt_key(key, about, kind, text, back),
            mode => {
                self.mode = mode;
                self.command_key(key)
            }
        }
    }

    fn command_key(&mut self, key: Key) -> Vec<Effect> {
        let page = view::page(self.rows);
        match key {
            Key::Up | Key::Char('k') => self.go(-1),
            Key::Down | Key::Char('j') => self.go(1),
            Key::PageUp => self.go(-page),
            Key::PageDown | Key::Char(' ') => self.go(page),
            Key::Enter => {
                self.mode = match self.mode {
                    Mode::List if self.selected.is_some() => Mode::Open { scroll: 0 },
                    Mode::List | Mode::Open { .. } | Mode::Prompt { .. } => Mode::List,
                };
            }
            Key::Escape => self.mode = Mode::List,
            Key::Char('q') => return vec![Effect::Quit],
            Key::Char('a') => return self.allow(),
            Key::Char('n') if self.may_allow() => self.prompt(Prompt::AllowNote),
            Key::Char('d') if self.may_decide() => self.prompt(Prompt::DenyReason),
            // Pasted text is never a command.
            Key::Char(_) | Key::Paste(_) | Key::Backspace | Key::Interrupt => {}
        }
        Vec::new()
    }

    fn go(&mut self, by: isize) {
        match &mut self.mode {
            Mode::Open { scroll } => *scroll = scroll.saturating_add_signed(by),
            Mode::List | Mode::Prompt { .. } => {
                let to = self.at.saturating_add_signed(by).min(self.items.len().saturating_sub(1));
                self.selected = self.items.get(to).map(|item| item.approval_id.clone());
                self.moved_at = None;
            }
        }
    }

    fn allow(&mut self) -> Vec<Effect> {
        if !self.may_allow() {
            return Vec::new();
        }
        self.send(self.selected.clone(), json!({"decision": "allow-once"}))
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

    fn prompt(&mut self, kind: Prompt) {
        let back = Box::new(self.mode.clone());
        let about = self.selected.clone().unwrap_or_default();
        self.mode = Mode::Prompt { about, kind, text: String::new(), back };
    }

    fn prompt_key(&mut self, key: Key, about: String, kind: Prompt, mut text: String, back: Box<Mode>) -> Vec<Effect> {
        let is_open = self.items.iter().any(|item| item.approval_id == about);
        match key {
            Key::Enter if is_open && !(kind == Prompt::AllowNote && text.trim().is_empty()) => {
                self.mode = Mode::List;
                let word = match kind {
                    Prompt::DenyReason => "deny",
                    Prompt::AllowNote => "allow-once",
                };
                let mut body = json!({"decision": word});
                if let (Some(fields), false) = (body.as_object_mut(), text.trim().is_empty()) {
                    fields.insert("note".to_owned(), json!(text.trim()));
                }
                return self.send(Some(about), body);
            }
            Key::Escape => {
                self.mode = *back;
                return Vec::new();
            }
            // What was being answered is gone: the keys still coming were meant for it, not for the next one.
            Key::Enter if !is_open => {
                self.moved_at = Some(self.now_ms);
                return Vec::new();
            }
            Key::Enter => self.last = "a note needs words; Esc goes back".to_owned(),
            Key::Backspace => drop(text.pop()),
            Key::Char(c) if !c.is_control() => text.push(c),
            Key::Paste(pasted) => text.extend(pasted.chars().map(|c| if c.is_control() { ' ' } else { c })),
            Key::Char(_) | Key::Up | Key::Down | Key::PageUp | Key::PageDown | Key::Interrupt => {}
        }
        self.mode = Mode::Prompt { about, kind, text, back };
        Vec::new()
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

#[cfg(test)]
mod tests;
