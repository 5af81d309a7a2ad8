//! The terminal while it is in our hands.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use crossterm::terminal;

use crate::keys::Keyboard;
use crate::output::Style;
use crate::showing;

/// Whether it is, so that it is given back once.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Shows these lines and takes the terminal over.
pub fn open(lines: &[showing::Line]) -> Option<Keyboard> {
    let style = Style::of_stderr();
    terminal::enable_raw_mode().ok()?;
    TAKEN.store(true, Ordering::SeqCst);
    // Pasted text is marked as such from here on.
    let _ = write!(io::stderr().lock(), "\x1b[?2004h");
    for line in lines {
        say(&line.paint(style));
    }
    Some(Keyboard::default())
}

/// Gives the terminal back as it was.
pub fn restore() {
    if TAKEN.swap(false, Ordering::SeqCst) {
        let _ = write!(io::stderr().lock(), "\x1b[?2004l");
        let _ = terminal::disable_raw_mode();
    }
}

/// In raw mode a line end does not go back to the left by itself.
pub fn say(text: &str) {
    let mut stderr = io::stderr().lock();
    let _ = write!(stderr, "{}\r\n", text.replace('\n', "\r\n"));
    let _ = stderr.flush();
}

pub fn show(text: &str, cursor: usize) {
    let mut stderr = io::stderr().lock();
    let _ = write!(stderr, "\r\x1b[K{text}\r");
    if cursor > 0 {
        let _ = write!(stderr, "\x1b[{cursor}C");
    }
    let _ = stderr.flush();
}

pub fn columns() -> usize {
    terminal::size().map_or(80, |(columns, _)| usize::from(columns)).max(20)
}
