//! The line that is typed about a request: a reason, a note, a number, a choice.

use serde_json::{Value, json};

use super::{Effect, Mode, Prompt, State};
use crate::keys::Key;
use crate::line::{Line, Typed};

impl State {
    pub(super) fn prompt(&mut self, kind: Prompt, line: Line) {
        let back = Box::new(self.mode.clone());
        let about = self.selected.clone().unwrap_or_default();
        self.mode = Mode::Prompt { about, kind, line, back };
    }

    pub(super) fn prompt_key(
        &mut self,
        key: &Key,
        about: String,
        kind: Prompt,
        mut line: Line,
        back: Box<Mode>,
    ) -> Vec<Effect> {
        match line.take(key) {
            Typed::More => {}
            Typed::Refused(why) => self.last = why.to_owned(),
            Typed::Left | Typed::Interrupted => {
                self.mode = *back;
                return Vec::new();
            }
            // What was being answered is gone: the keys still coming were meant for it, not for the next one.
            Typed::Entered if !self.items.iter().any(|item| item.approval_id == about) => {
                self.moved_at = Some(self.now_ms);
                return Vec::new();
            }
            Typed::Entered => {
                if let Some(effects) = self.entered(&about, &kind, line.text().trim(), &back) {
                    return effects;
                }
            }
        }
        self.mode = Mode::Prompt { about, kind, line, back };
        Vec::new()
    }

    /// `None`: the line stays. The mode is the list unless this says otherwise.
    fn entered(&mut self, about: &str, kind: &Prompt, text: &str, back: &Mode) -> Option<Vec<Effect>> {
        let dangerous = self.items.iter().any(|item| item.approval_id == about && item.is_dangerous());
        match kind {
            Prompt::DenyReason if text.is_empty() => {
                Some(self.send(Some(about.to_owned()), json!({"decision": "deny"})))
            }
            Prompt::DenyReason => Some(self.send(Some(about.to_owned()), json!({"decision": "deny", "note": text}))),
            Prompt::AllowNote if text.is_empty() => {
                self.last = "a note needs words; Esc goes back".to_owned();
                None
            }
            Prompt::AllowNote => {
                Some(self.allow_about(about, json!({"decision": "allow-once", "note": text}), dangerous, back))
            }
            Prompt::Number(_) if text.is_empty() => {
                self.mode = back.clone();
                Some(Vec::new())
            }
            // Whether it is the right one is the gate's to say, and to count.
            Prompt::Number(body) => {
                let mut body = body.clone();
                if let Some(fields) = body.as_object_mut() {
                    fields.insert("number".to_owned(), json!(text));
                }
                Some(self.send(Some(about.to_owned()), body))
            }
            Prompt::Longer => {
                let record = self.items.iter().find(|item| item.approval_id == about)?;
                let chosen = record.longer().into_iter().find(|longer| longer.key == text);
                let Some(chosen) = chosen else {
                    self.last = "type one of what is shown; Esc goes back".to_owned();
                    return None;
                };
                self.reopen(about, Prompt::LongerYes(chosen), Line::new(""), back);
                Some(Vec::new())
            }
            Prompt::LongerYes(longer) if text == "yes" => {
                Some(self.allow_about(about, longer.body.clone(), dangerous, back))
            }
            Prompt::LongerYes(_) => {
                self.mode = back.clone();
                Some(Vec::new())
            }
        }
    }

    fn reopen(&mut self, about: &str, kind: Prompt, line: Line, back: &Mode) {
        self.mode = Mode::Prompt { about: about.to_owned(), kind, line, back: Box::new(back.clone()) };
    }

    /// As `allow`, for the request that the words were about.
    fn allow_about(&mut self, about: &str, body: Value, dangerous: bool, back: &Mode) -> Vec<Effect> {
        self.mode = back.clone();
        if !dangerous {
            self.mode = Mode::List;
            return self.send(Some(about.to_owned()), body);
        }
        if self.selected.as_deref() == Some(about) { self.allow(body) } else { Vec::new() }
    }
}
