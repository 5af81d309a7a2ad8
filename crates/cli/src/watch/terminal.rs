//! Owns the screen and the threads around it. Decides nothing: it carries inputs to the state and effects out.

use std::io::{self, Write};
use std::ops::ControlFlow;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use crossterm::style::Print;
use crossterm::terminal::{self, EnterAlternateScreen, LeaveAlternateScreen};
use crossterm::{cursor, execute};
use serde_json::Value;

use super::feed::{self, Heard};
use super::state::{Effect, Input, State};
use super::view;
use crate::keys::Keyboard;
use crate::locate::Caller;
use crate::output::Style;
use crate::record::Record;
use crate::{approvals, exit, interrupt};

/// Countdowns move this often.
const TICK: Duration = Duration::from_millis(500);
const PATIENCE: Duration = Duration::from_secs(3600);

/// What the threads tell the loop.
enum Told {
    Input(Input),
    Signal(u8),
    /// The gate will not be followed any more.
    Failed(anyhow::Error),
}

pub fn run(caller: Arc<Caller>, waiting: Vec<Record>) -> anyhow::Result<ExitCode> {
    let (sender, receiver) = mpsc::channel();
    let signals = sender.clone();
    interrupt::on_signal(move |code| drop(signals.send(Told::Signal(code))))?;
    let screen = Screen::enter()?;
    let (columns, rows) = terminal::size().unwrap_or((80, 24));
    let state = State::new(waiting, usize::from(columns), usize::from(rows), now_ms());
    let news = (Arc::clone(&caller), sender.clone());
    thread::spawn(move || listen(&news.0, &news.1));
    draw(&state, Style::of_stdout()).context("the terminal cannot be written to")?;
    let keys = sender.clone();
    thread::spawn(move || read_keys(&keys));
    let ended = turn(state, &receiver, &Hands { caller, sender });
    drop(screen);
    ended
}

/// Draws, waits, reacts; until something ends it.
fn turn(mut state: State, receiver: &Receiver<Told>, hands: &Hands) -> anyhow::Result<ExitCode> {
    let style = Style::of_stdout();
    loop {
        draw(&state, style).context("the terminal cannot be written to")?;
        let input = match receiver.recv_timeout(TICK) {
            Ok(Told::Input(input)) => input,
            Ok(Told::Signal(code)) => return Ok(exit::code(code)),
            Ok(Told::Failed(error)) => return Err(error),
            Err(RecvTimeoutError::Timeout) => Input::Tick,
            Err(RecvTimeoutError::Disconnected) => anyhow::bail!("nothing feeds the list any more; start it again"),
        };
        if let Ok((columns, rows)) = terminal::size() {
            state.take(now_ms(), Input::Resize { columns: usize::from(columns), rows: usize::from(rows) });
        }
        for effect in state.take(now_ms(), input) {
            match effect {
                Effect::Quit => return Ok(exit::code(exit::OK)),
                Effect::Interrupted => return Ok(exit::code(exit::INTERRUPTED)),
                Effect::Decide { id, body } => hands.decide(id, body),
                Effect::Refresh => hands.refresh(),
            }
        }
    }
}

/// Does what takes time, beside the loop.
struct Hands {
    caller: Arc<Caller>,
    sender: Sender<Told>,
}

impl Hands {
    fn decide(&self, id: String, body: Value) {
        let (caller, sender) = (Arc::clone(&self.caller), self.sender.clone());
        thread::spawn(move || {
            let error = approvals::decide(&caller, &id, body).err().map(|error| error.to_string());
            let _ = sender.send(Told::Input(Input::Answered { id, error }));
        });
    }

    fn refresh(&self) {
        let (caller, sender) = (Arc::clone(&self.caller), self.sender.clone());
        thread::spawn(move || {
            let listed = approvals::list(&caller, Some("pending"), usize::MAX).and_then(|listing| listing.records());
            let input = match listed {
                Ok(records) => Input::Listed(records),
                Err(error) => Input::Lost(format!("{error:#}")),
            };
            let _ = sender.send(Told::Input(input));
        });
    }
}

fn listen(caller: &Caller, sender: &Sender<Told>) {
    let followed = feed::follow(caller, |heard| {
        let input = match heard {
            Heard::Listed(records) => Input::Listed(records),
            Heard::News(news) => Input::News(news),
            Heard::Lost(why) => Input::Lost(why),
        };
        match sender.send(Told::Input(input)) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    });
    if let Err(error) = followed {
        let _ = sender.send(Told::Failed(error));
    }
}

fn read_keys(sender: &Sender<Told>) {
    let mut keyboard = Keyboard::default();
    // The list is on the screen by now; what was typed before was not meant for it.
    keyboard.forget();
    loop {
        let told = match keyboard.next(PATIENCE) {
            Ok(Some(burst)) => Told::Input(Input::Keys(burst)),
            Ok(None) => continue,
            Err(error) => Told::Failed(anyhow::Error::new(error).context("the keyboard cannot be read")),
        };
        let failed = matches!(told, Told::Failed(_));
        if sender.send(told).is_err() || failed {
            return;
        }
    }
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

fn draw(state: &State, style: Style) -> io::Result<()> {
    let mut frame = String::new();
    let mut cursor = "\x1b[?25l".to_owned();
    for (at, line) in view::lines(state).iter().enumerate() {
        if let Some(column) = line.cursor {
            cursor = format!("\x1b[{};{}H\x1b[?25h", at + 1, column + 1);
        }
        // Cleared first: a full line leaves the cursor on its last column, and clearing then would eat it.
        frame.push_str(&format!("\x1b[{};1H\x1b[2K{}", at + 1, line.paint(style)));
    }
    frame.push_str(&cursor);
    let mut stdout = io::stdout().lock();
    stdout.write_all(frame.as_bytes())?;
    stdout.flush()
}

/// The terminal while it is ours. Given back however this ends: on return, on a signal, on a panic.
struct Screen;

impl Screen {
    fn enter() -> anyhow::Result<Self> {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            give_back();
            before(panic);
        }));
        terminal::enable_raw_mode()
            .context("this terminal cannot be taken over; pipe the output to follow as lines")?;
        let screen = Self;
        execute!(io::stdout(), EnterAlternateScreen, cursor::Hide, Print("\x1b[?2004h"))
            .context("this terminal cannot be taken over; pipe the output to follow as lines")?;
        Ok(screen)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

fn give_back() {
    let _ = execute!(io::stdout(), Print("\x1b[?2004l"), cursor::Show, LeaveAlternateScreen);
    let _ = terminal::disable_raw_mode();
}
