//! What a person's keys come to, from the first one to an answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use countersign_model::{Assessment, Exec, Risk, mask};
use serde_json::{Value, json};

use super::line::{Entering, NUMBER};
use super::menu::Menu;
use super::screen::{columns, restore, say, show};
use crate::approvals;
use crate::client;
use crate::keys::{Burst, Keyboard};
use crate::line::{self, Line, Typed};
use crate::locate::Caller;
use crate::output::Style;
use crate::record::{Longer, Record};
use crate::showing::{change_lines, longer_lines};

/// How often it is looked whether somebody else answered.
const TICK: Duration = Duration::from_millis(50);

/// What the line is for.
enum What {
    Reason,
    Edit,
    /// One of what is offered for longer than this once.
    Longer(Vec<Longer>),
    /// A yes to what was just shown; whether the number must follow.
    Yes {
        body: Value,
        dangerous: bool,
    },
    /// The number of what is dangerous.
    Number(Value),
}

pub struct Prompt {
    caller: Caller,
    record: Record,
    exec: Exec,
    over: Arc<AtomicBool>,
    entering: Option<(What, Entering)>,
    menu: Menu,
}

/// What a key comes to.
enum Step {
    Wait,
    Decide(Value),
    /// As after Ctrl-C without a prompt.
    Interrupt,
}

impl Prompt {
    pub fn new(caller: Caller, record: Record, exec: Exec, over: Arc<AtomicBool>) -> Self {
        Self { caller, record, exec, over, entering: None, menu: Menu::default() }
    }

    pub fn say_menu(&self) {
        say(&self.menu.text(&self.record, columns()));
    }

    pub fn turn(mut self, keyboard: &mut Keyboard) {
        while !self.over.load(Ordering::SeqCst) {
            let burst = match keyboard.next(TICK) {
                Ok(Some(burst)) => burst,
                Ok(None) => continue,
                // Nobody is there any more; others may still answer.
                Err(_) => return,
            };
            match self.take(&burst) {
                Step::Wait => {}
                Step::Interrupt => {
                    restore();
                    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::INT);
                    return;
                }
                Step::Decide(body) => match approvals::decide(&self.caller, &self.record.approval_id, body.clone()) {
                    Ok(()) => return,
                    Err(error) => self.refused(&error, body),
                },
            }
        }
        show("", 0);
    }

    /// What the gate says to an answer it does not take. An override that is riskier than what was asked is shown with
    /// why, and asked for once more; so is a number that was not the one on the card.
    fn refused(&mut self, error: &client::Error, mut body: Value) {
        say(&format!("\n{error}"));
        let refused = error.refused();
        let confirm = refused.and_then(|refused| refused.body.get("confirm").cloned());
        let Some(fields) = body.as_object_mut() else { return self.say_menu() };
        match refused.map(|refused| refused.code.as_str()) {
            Some("wrong_number") => {
                fields.remove("number");
                return self.ask_number(body);
            }
            Some("number_locked") => self.menu.locked = true,
            _ => {}
        }
        if let Some(confirm) = confirm {
            let risk = refused.and_then(|refused| refused.body.pointer("/assessment/risk")).and_then(Value::as_str);
            fields.insert("confirm".to_owned(), confirm);
            let dangerous = !fields.contains_key("number") && risk != Some("needs-review") && risk != Some("safe");
            self.enter(What::Yes { body, dangerous }, Line::new(""), "type yes to allow the change all the same: ");
        } else {
            self.say_menu();
        }
    }

    fn enter(&mut self, what: What, line: Line, label: &str) {
        say("");
        let entering = Entering { label: label.to_owned(), line };
        entering.show();
        self.entering = Some((what, entering));
    }

    fn back(&mut self) -> Step {
        say("");
        self.say_menu();
        Step::Wait
    }

    fn take(&mut self, burst: &Burst) -> Step {
        let Some((what, mut entering)) = self.entering.take() else {
            return match burst.alone() {
                _ if burst.interrupts() => Step::Interrupt,
                Some(key) => self.chosen(key),
                None => Step::Wait,
            };
        };
        match entering.take(burst) {
            Typed::More | Typed::Refused(_) => {
                self.entering = Some((what, entering));
                Step::Wait
            }
            Typed::Entered => self.entered(what, &entering),
            Typed::Left => self.back(),
            // In the edit line it is how people take back what they typed.
            Typed::Interrupted if matches!(what, What::Edit) => self.back(),
            Typed::Interrupted => Step::Interrupt,
        }
    }

    fn chosen(&mut self, key: char) -> Step {
        if !self.menu.has(key, &self.record) {
            return Step::Wait;
        }
        match key {
            'a' => return self.allow(json!({"decision": "allow-once"})),
            's' => return self.allow(json!({"decision": "allow-session"})),
            'r' => return self.allow(json!({"decision": "allow-once", "remember": true})),
            'A' => self.offer(),
            'w' => self.offer_wider(),
            'e' => self.edit(),
            'd' => self.enter(What::Reason, Line::new(""), "why not (Enter for no reason): "),
            _ => {}
        }
        Step::Wait
    }

    /// At once, or after the number where it is dangerous.
    fn allow(&mut self, body: Value) -> Step {
        if !self.record.is_dangerous() {
            return Step::Decide(body);
        }
        self.ask_number(body);
        Step::Wait
    }

    fn ask_number(&mut self, body: Value) {
        self.enter(What::Number(body), Line::of_digits(), NUMBER);
    }

    /// What "always" would stand for is seen before it is said.
    fn offer(&mut self) {
        let offer = approvals::offer(&self.caller, &self.record.approval_id);
        match offer.map_err(|error| format!("{error:#}")).and_then(|offer| offer.lines()) {
            Ok(means) => {
                say(&format!("\n{means}"));
                let (body, dangerous) = (json!({"decision": "allow-always"}), self.record.is_dangerous());
                self.enter(What::Yes { body, dangerous }, Line::new(""), "type yes for that: ");
            }
            Err(why) => {
                say(&format!("\n{why}"));
                self.say_menu();
            }
        }
    }

    /// The wide ones stand behind the narrow ones, each with what it means.
    fn offer_wider(&mut self) {
        let longer = self.record.longer();
        say("");
        for line in longer_lines(&longer) {
            say(&line.paint(Style::of_stderr()));
        }
        self.enter(What::Longer(longer), Line::new(""), "type one of these (Esc goes back): ");
    }

    /// The line starts from the command as it would run, so only one that can be shown as it is gets there.
    fn edit(&mut self) {
        let command = self.exec.command.clone();
        let why = if !mask(&command).redactions.is_empty() {
            "it holds a secret, which is not put on the screen; without it the changed command would be another"
        } else if !line::is_plain(&command) {
            "it has line ends or characters that cannot be seen, which one line would not show"
        } else {
            return self.enter(What::Edit, Line::new(&command), "run this instead: ");
        };
        let id = &self.record.approval_id;
        say(&format!(
            "\nthis command cannot be edited here: {why}\ngive the whole text with `countersign approve {id} --override TEXT`, or deny it"
        ));
        self.say_menu();
    }

    fn entered(&mut self, what: What, entering: &Entering) -> Step {
        say("");
        let text = entering.line.text();
        match (what, text.trim()) {
            (What::Reason, "") => return Step::Decide(json!({"decision": "deny"})),
            (What::Reason, why) => return Step::Decide(json!({"decision": "deny", "note": why})),
            (What::Edit, "") => {}
            (What::Edit, _) if text == self.exec.command => say("nothing was changed"),
            (What::Edit, _) => return self.changed(text.to_owned()),
            (What::Longer(longer), typed) => {
                if let Some(chosen) = longer.into_iter().find(|longer| longer.key == typed) {
                    say(&chosen.words);
                    let dangerous = self.record.is_dangerous();
                    let what = What::Yes { body: chosen.body, dangerous };
                    self.enter(what, Line::new(""), "type yes to allow all of that: ");
                    return Step::Wait;
                }
            }
            (What::Yes { body, dangerous }, "yes") => {
                if dangerous {
                    self.ask_number(body);
                    return Step::Wait;
                }
                return Step::Decide(body);
            }
            (What::Yes { .. }, _) => {}
            (What::Number(_), "") => {}
            // Whether it is the right one is the gate's to say, and to count.
            (What::Number(mut body), typed) => {
                if let Some(fields) = body.as_object_mut() {
                    fields.insert("number".to_owned(), json!(typed));
                }
                return Step::Decide(body);
            }
        }
        self.back()
    }

    /// A changed line is a new action: judged, shown beside the old one, and meant.
    fn changed(&mut self, text: String) -> Step {
        let assessment = Assessment::of(&self.exec.replaced_with(text.clone()), None);
        for line in change_lines(&self.exec.command, &text, &assessment) {
            say(&line.paint(Style::of_stderr()));
        }
        let body = json!({"decision": "allow-once", "override": text});
        if assessment.risk >= Risk::Dangerous {
            say(&format!("number: {}", self.record.number.as_deref().unwrap_or("none")));
            self.ask_number(body);
        } else {
            let what = What::Yes { body, dangerous: false };
            self.enter(what, Line::new(""), "type yes to run the changed line instead: ");
        }
        Step::Wait
    }
}
