//! One line of text that a person is asked for.

use std::time::Duration;

use super::screen::{columns, open, restore, say, show};
use crate::keys::Burst;
use crate::line::{Line, Typed};
use crate::{interrupt, showing, width};
use anyhow::Context;

/// Asks for the second act.
pub const NUMBER: &str = "dangerous: type the number on the card to allow it: ";

/// How one line that was asked for ended.
pub enum Said {
    /// It will do.
    Taken,
    Left,
    Interrupted,
}

/// Shows these lines and asks for one line: `try_line` says whether it will do, or what to say before the next try.
pub fn ask(
    lines: &[showing::Line],
    label: &str,
    digits: bool,
    mut try_line: impl FnMut(&str) -> Result<bool, String>,
) -> anyhow::Result<Said> {
    // A signal must not leave the terminal as it is while a line is typed.
    interrupt::on_signal(|code| {
        restore();
        std::process::exit(i32::from(code));
    })?;
    let mut keyboard = open(lines).context("this terminal cannot be read by the key; give `--number` instead")?;
    let fresh = || Entering { label: label.to_owned(), line: if digits { Line::of_digits() } else { Line::new("") } };
    let mut entering = fresh();
    entering.show();
    keyboard.forget();
    let said = loop {
        let burst = match keyboard.next(Duration::from_secs(3600)) {
            Ok(Some(burst)) => burst,
            Ok(None) => continue,
            Err(error) => {
                restore();
                return Err(anyhow::Error::new(error).context("the keyboard cannot be read; nothing is decided"));
            }
        };
        match entering.take(&burst) {
            Typed::More | Typed::Refused(_) => {}
            Typed::Left => break Said::Left,
            Typed::Interrupted => break Said::Interrupted,
            Typed::Entered => {
                say("");
                match try_line(entering.line.text().trim()) {
                    Ok(true) => break Said::Taken,
                    Ok(false) => break Said::Left,
                    Err(why) => say(&why),
                }
                entering = fresh();
                entering.show();
            }
        }
    };
    restore();
    if !matches!(said, Said::Taken) {
        say("");
    }
    Ok(said)
}

/// A line that is being typed, behind the words that ask for it.
pub struct Entering {
    pub label: String,
    pub line: Line,
}

impl Entering {
    pub fn show(&self) {
        let columns = columns();
        let label = width::cut(&self.label, columns.saturating_sub(12));
        let before = width::of(&label);
        let (text, cursor) = self.line.view(columns.saturating_sub(before + 1));
        show(&format!("{label}{text}"), before + cursor);
    }

    /// All keys of the burst, up to the one that ends the line; what came with that one is dropped.
    pub fn take(&mut self, burst: &Burst) -> Typed {
        for key in &burst.keys {
            match self.line.take(key) {
                Typed::More => {}
                Typed::Refused(why) => {
                    say("");
                    say(why);
                }
                end @ (Typed::Entered | Typed::Left | Typed::Interrupted) => return end,
            }
        }
        self.show();
        Typed::More
    }
}
