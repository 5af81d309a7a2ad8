//! Passes on what a captured command prints, for people who follow it elsewhere. The command never waits for that: what
//! the gate does not take in time is left out, and said so at the end.

use std::sync::Arc;
use std::sync::mpsc::{self, SyncSender, TrySendError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use countersign_runner::Stream;
use serde_json::{Value, json};

use crate::client::{Request, encode};
use crate::locate::Caller;

/// Pieces on their way.
const AHEAD: usize = 64;
const PIECE: usize = 32 * 1024;
const PATIENCE: Duration = Duration::from_secs(5);

pub struct Upload {
    sender: Option<SyncSender<(Stream, Vec<u8>)>>,
    thread: Option<JoinHandle<()>>,
    left_out: u64,
}

impl Upload {
    pub fn start(caller: Arc<Caller>, id: &str) -> Self {
        let (sender, pieces) = mpsc::sync_channel::<(Stream, Vec<u8>)>(AHEAD);
        let path = format!("/v1/approvals/{}/output", encode(id));
        let thread = thread::spawn(move || {
            let (mut out, mut err) = (Vec::new(), Vec::new());
            for (stream, bytes) in pieces {
                let (name, rest) = match stream {
                    Stream::Stdout => ("stdout", &mut out),
                    Stream::Stderr => ("stderr", &mut err),
                };
                rest.extend(bytes);
                let text = whole_text(rest);
                let request = Request::post(path.clone(), json!({"stream": name, "text": text}));
                if !text.is_empty() && caller.send::<Value>(request.timeout(PATIENCE)).is_err() {
                    // Nobody hears it; the command goes on.
                    return;
                }
            }
        });
        Self { sender: Some(sender), thread: Some(thread), left_out: 0 }
    }

    pub fn pass_on(&mut self, stream: Stream, bytes: &[u8]) {
        for piece in bytes.chunks(PIECE) {
            let sent = self.sender.as_ref().map(|sender| sender.try_send((stream, piece.to_vec())));
            if let Some(Err(TrySendError::Full(_))) = sent {
                self.left_out += piece.len() as u64;
            }
        }
    }

    /// Waits until the last of it is there.
    pub fn end(mut self) -> u64 {
        self.sender = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        self.left_out
    }
}

/// Takes what is text so far; a character that is cut in two waits for its end.
fn whole_text(bytes: &mut Vec<u8>) -> String {
    let end = match std::str::from_utf8(bytes) {
        Ok(_) => bytes.len(),
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        Err(_) => bytes.len(),
    };
    let rest = bytes.split_off(end);
    let text = String::from_utf8_lossy(bytes).into_owned();
    *bytes = rest;
    text
}

#[cfg(test)]
mod tests {
    use super::whole_text;

    #[test]
    fn a_character_that_is_cut_waits_for_its_end() {
        let mut bytes = "aé".as_bytes()[..2].to_vec();
        assert_eq!((whole_text(&mut bytes), bytes.len()), ("a".to_owned(), 1));
        bytes.extend(&"é".as_bytes()[1..]);
        assert_eq!((whole_text(&mut bytes), bytes.len()), ("é".to_owned(), 0));
        let mut broken = vec![b'a', 0xff, b'b'];
        assert_eq!(whole_text(&mut broken), "a\u{fffd}b");
    }
}
