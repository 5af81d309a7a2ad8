//! Follows the gate's events over broken connections, from where it left off. Shows nothing by itself, except
//! where there is no terminal to show it on.

use std::ops::ControlFlow;
use std::thread;
use std::time::Duration;

use super::news::News;
use crate::client::{self, Request};
use crate::locate::Caller;
use crate::record::Record;
use crate::{approvals, output};

const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub enum Heard {
    /// Connected; this is everything that waits now.
    Listed(Vec<Record>),
    News(Box<News>),
    /// The connection is gone; another is tried.
    Lost(String),
}

/// Until `hear` has enough, or the gate refuses to be followed.
pub fn follow(caller: &Caller, mut hear: impl FnMut(Heard) -> ControlFlow<()>) -> anyhow::Result<()> {
    let mut after = None;
    let mut pause = FIRST_PAUSE;
    loop {
        let before = after;
        let error = match connection(caller, &mut after, &mut hear) {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        let refused = error.downcast_ref::<client::Error>().and_then(client::Error::refused);
        if refused.is_some_and(|refused| !refused.retryable) {
            return Err(error);
        }
        if hear(Heard::Lost(format!("{error:#}"))).is_break() {
            return Ok(());
        }
        pause = if before == after { (pause * 2).min(LONGEST_PAUSE) } else { FIRST_PAUSE };
        thread::sleep(pause);
    }
}

fn connection(
    caller: &Caller,
    after: &mut Option<u64>,
    hear: &mut impl FnMut(Heard) -> ControlFlow<()>,
) -> anyhow::Result<()> {
    let path = after.map_or_else(|| "/v1/events".to_owned(), |seq| format!("/v1/events?after={seq}"));
    let mut events = caller.follow(Request::get(path))?;
    // Listed after the feed is open: whatever happens in between is in the feed.
    let waiting = approvals::list(caller, Some("pending"), usize::MAX)?.records()?;
    if hear(Heard::Listed(waiting)).is_break() {
        return Ok(());
    }
    loop {
        let next = events.next();
        // Whether it is an event or the end: from here the next connection goes on.
        *after = events.last_id().and_then(|id| id.parse().ok()).or(*after);
        let news = News::read(&next?)?;
        if hear(Heard::News(Box::new(news))).is_break() {
            return Ok(());
        }
    }
}

/// One line an event, for a pipe or a file.
pub fn print(caller: &Caller, as_json: bool) -> anyhow::Result<()> {
    let mut written = Ok(());
    let mut greeted = false;
    follow(caller, |heard| {
        written = match heard {
            Heard::News(news) if as_json => output::line(&output::json(&news.raw)),
            Heard::News(news) => output::line(&news.dated_line()),
            Heard::Listed(waiting) => {
                if !greeted && !waiting.is_empty() {
                    output::note(&format!("{} waiting already; see `countersign pending`", waiting.len()));
                }
                greeted = true;
                Ok(())
            }
            Heard::Lost(why) => {
                output::note(&format!("countersign: {why}; trying again"));
                Ok(())
            }
        };
        if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    written
}
