//! A person at the terminal that runs `run` can answer there, beside everybody else: the first answer wins, and the
//! prompt goes away. Only a terminal is asked, never a pipe, and what was typed before the question does not count.

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use countersign_model::escape_line;
use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use crossterm::terminal;
use rustix::termios::{QueueSelector, tcflush};
use serde_json::{Value, json};

use crate::approvals;
use crate::locate::{Caller, Locator};
use crate::output::Style;
use crate::record::Record;
use crate::showing::request_lines;

/// How often it is looked whether somebody else answered.
const TICK: Duration = Duration::from_millis(50);
const MENU: &str = "[a] allow once  [s] for this session  [A] always  [r] allow and remember  [e] edit  [d] deny  (or answer elsewhere)";

/// Asks, if a person can be there and a key to answer with is. The thread ends when `over` is set. `command`: as it would run, for whoever wants to change it.
pub fn at_terminal(locator: &Locator, id: &str, command: &str, over: &Arc<AtomicBool>) -> Option<JoinHandle<()>> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return None;
    }
    let caller = locator.person().ok()?;
    let record = Record::read(&approvals::get(&caller, id).ok()?).ok()?;
    let style = Style::of_stderr();
    for line in request_lines(&record) {
        say(&line.paint(style));
    }
    tcflush(io::stdin(), QueueSelector::IFlush).ok()?;
    terminal::enable_raw_mode().ok()?;
    say(MENU);
    let prompt = Prompt { caller, record, command: command.to_owned(), over: Arc::clone(over), entering: None };
    Some(thread::spawn(move || {
        prompt.turn();
        restore();
    }))
}

/// Gives the terminal back as it was.
pub fn restore() {
    let _ = terminal::disable_raw_mode();
}

/// In raw mode a line end does not go back to the left by itself.
fn say(text: &str) {
    let _ = write!(io::stderr().lock(), "{}\r\n", text.replace('\n', "\r\n"));
}

fn show(text: &str) {
    let mut stderr = io::stderr().lock();
    let _ = write!(stderr, "\r\x1b[K{text}");
    let _ = stderr.flush();
}

/// What is being typed.
struct Entering {
    what: What,
    label: String,
    text: String,
}

impl Entering {
    fn show(&self) {
        show(&format!("{}{}", self.label, escape_line(&self.text)));
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Reason,
    Edit,
    /// A yes to the entries that were just shown.
    Always,
    /// A yes to an override that was found riskier.
    Confirm,
}

struct Prompt {
    caller: Caller,
    record: Record,
    command: String,
    over: Arc<AtomicBool>,
    entering: Option<Entering>,
}

/// What a key comes to.
enum Step {
    Wait,
    Decide(Value),
    /// As after Ctrl-C without a prompt.
    Interrupt,
}

impl Prompt {
    fn turn(mut self) {
        let mut pending: Option<Value> = None;
        while !self.over.load(Ordering::SeqCst) {
            if !matches!(event::poll(TICK), Ok(true)) {
                continue;
            }
            let Ok(Event::Key(key)) = event::read() else { continue };
            if key.kind == KeyEventKind::Release {
                continue;
            }
            match self.take(key, &mut pending) {
                Step::Wait => {}
                Step::Interrupt => {
                    restore();
                    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::INT);
                    return;
                }
                Step::Decide(body) => match approvals::decide(&self.caller, &self.record.approval_id, body.clone()) {
                    Ok(()) => return,
                    Err(error) => self.refused(&error, body, &mut pending),
                },
            }
        }
        show("");
    }

    /// An override that is riskier than what was asked is shown with why, and asked for once more.
    fn refused(&mut self, error: &crate::client::Error, body: Value, pending: &mut Option<Value>) {
        say(&format!("\n{error}"));
        let confirm = error.refused().and_then(|refused| refused.body.get("confirm").cloned());
        if let (Some(confirm), Some(mut fields)) = (confirm, body.as_object().cloned()) {
            fields.insert("confirm".to_owned(), confirm);
            *pending = Some(Value::Object(fields));
            self.enter(What::Confirm, "", "type yes to allow the change all the same: ");
        } else {
            say(MENU);
        }
    }

    fn enter(&mut self, what: What, text: &str, label: &str) {
        say("");
        let entering = Entering { what, label: label.to_owned(), text: text.to_owned() };
        entering.show();
        self.entering = Some(entering);
    }

    fn take(&mut self, key: KeyEvent, pending: &mut Option<Value>) -> Step {
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
            return Step::Interrupt;
        }
        match self.entering.take() {
            Some(entering) => self.typed(entering, key, pending),
            None => self.chosen(key),
        }
    }

    fn chosen(&mut self, key: KeyEvent) -> Step {
        match key.code {
            KeyCode::Char('a') => Step::Decide(json!({"decision": "allow-once"})),
            KeyCode::Char('s') => Step::Decide(json!({"decision": "allow-session"})),
            KeyCode::Char('r') => Step::Decide(json!({"decision": "allow-once", "remember": true})),
            KeyCode::Char('A') => {
                self.offer();
                Step::Wait
            }
            KeyCode::Char('d') => {
                self.enter(What::Reason, "", "why not (Enter for no reason): ");
                Step::Wait
            }
            KeyCode::Char('e') => {
                // Not what is shown: a masked secret is no part of a command.
                let command = self.command.clone();
                self.enter(What::Edit, &command, "run this instead: ");
                Step::Wait
            }
            _ => Step::Wait,
        }
    }

    /// What "always" would stand for is seen before it is said.
    fn offer(&mut self) {
        let offer = approvals::offer(&self.caller, &self.record.approval_id);
        match offer.map_err(|error| format!("{error:#}")).and_then(|offer| offer.lines()) {
            Ok(means) => {
                say(&format!("\n{means}"));
                self.enter(What::Always, "", "type yes for that: ");
            }
            Err(why) => {
                say(&format!("\n{why}"));
                say(MENU);
            }
        }
    }

    fn typed(&mut self, mut entering: Entering, key: KeyEvent, pending: &mut Option<Value>) -> Step {
        match key.code {
            KeyCode::Enter => return self.entered(entering, pending),
            KeyCode::Esc => {
                say("");
                say(MENU);
                return Step::Wait;
            }
            KeyCode::Backspace => {
                entering.text.pop();
            }
            KeyCode::Char(c) => entering.text.push(c),
            _ => {}
        }
        entering.show();
        self.entering = Some(entering);
        Step::Wait
    }

    fn entered(&mut self, entering: Entering, pending: &mut Option<Value>) -> Step {
        say("");
        let text = entering.text.trim();
        match entering.what {
            What::Reason if text.is_empty() => Step::Decide(json!({"decision": "deny"})),
            What::Reason => Step::Decide(json!({"decision": "deny", "note": text})),
            What::Edit if !text.is_empty() => {
                Step::Decide(json!({"decision": "allow-once", "override": entering.text}))
            }
            What::Always if text == "yes" => Step::Decide(json!({"decision": "allow-always"})),
            What::Confirm if text == "yes" => pending.take().map_or(Step::Wait, Step::Decide),
            What::Edit | What::Always | What::Confirm => {
                say(MENU);
                Step::Wait
            }
        }
    }
}
