//! A person at the terminal that runs `run` can answer there, beside everybody else: the first answer wins, and the
//! prompt goes away. Only a terminal is asked, never a pipe, and what was typed before the question does not count.
//!
//! INVARIANT: only a plain key that came alone chooses, and what is dangerous, changed or wide takes a second act.

mod line;
mod menu;
mod screen;
mod turn;

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::{self, JoinHandle};

use countersign_model::Exec;

use crate::approvals;
use crate::locate::Locator;
use crate::record::Record;
use crate::showing::request_lines;

pub use line::{NUMBER, Said, ask};
pub use screen::restore;
use turn::Prompt;

/// Asks, if a person can be there and a key to answer with is. The thread ends when `over` is set. `exec`: as it would
/// run, for whoever wants to change it.
pub fn at_terminal(locator: &Locator, id: &str, exec: &Exec, over: &Arc<AtomicBool>) -> Option<JoinHandle<()>> {
    if !is_there() {
        return None;
    }
    let caller = locator.person().ok()?;
    let record = Record::read(&approvals::get(&caller, id).ok()?).ok()?;
    let mut keyboard = screen::open(&request_lines(&record))?;
    let prompt = Prompt::new(caller, record, exec.clone(), Arc::clone(over));
    prompt.say_menu();
    keyboard.forget();
    Some(thread::spawn(move || {
        prompt.turn(&mut keyboard);
        restore();
    }))
}

/// Whether a person could read and type here.
pub fn is_there() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}
