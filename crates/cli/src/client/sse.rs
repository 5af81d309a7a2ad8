//! Server-sent events: bytes in, events out. What an event means is not known here.

use std::collections::VecDeque;
use std::io::{self, BufReader, Read};

use super::Error;
use super::http::Body;
use super::stream::Stream;

const MAX_EVENT: usize = 32 * 1024 * 1024;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    pub id: Option<String>,
    pub name: String,
    pub data: String,
}

/// Takes bytes as they come, however they are cut.
#[derive(Debug, Default)]
struct Parser {
    line: Vec<u8>,
    /// The last byte was a CR that ended a line; an LF right after it belongs to it.
    after_cr: bool,
    event: Event,
    /// The last id that was sent, with an event or alone: where to go on from.
    last_id: Option<String>,
    has_data: bool,
    size: usize,
}

impl Parser {
    fn push(&mut self, bytes: &[u8], out: &mut VecDeque<Event>) -> Result<(), String> {
        for byte in bytes {
            let after_cr = std::mem::replace(&mut self.after_cr, *byte == b'\r');
            match byte {
                b'\n' if after_cr => {}
                b'\n' | b'\r' => self.end_line(out)?,
                _ => self.line.push(*byte),
            }
            self.size += 1;
            if self.size > MAX_EVENT {
                return Err("an event of the feed is too long".to_owned());
            }
        }
        Ok(())
    }

    fn end_line(&mut self, out: &mut VecDeque<Event>) -> Result<(), String> {
        let line = String::from_utf8(std::mem::take(&mut self.line)).map_err(|_| "the feed is not text")?;
        if line.is_empty() {
            self.size = 0;
            let mut event = std::mem::take(&mut self.event);
            if event.id.is_some() {
                self.last_id.clone_from(&event.id);
            }
            if std::mem::take(&mut self.has_data) {
                event.data.pop();
                out.push_back(event);
            }
            return Ok(());
        }
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "id" if !value.contains('\0') => self.event.id = Some(value.to_owned()),
            "event" => value.clone_into(&mut self.event.name),
            "data" => {
                self.has_data = true;
                self.event.data.push_str(value);
                self.event.data.push('\n');
            }
            // A comment has an empty name; a field nobody knows says nothing.
            _ => {}
        }
        Ok(())
    }
}

/// The events of an open connection, one after the other, until it breaks.
#[derive(Debug)]
pub struct Events {
    body: Body<BufReader<Stream>>,
    place: String,
    parser: Parser,
    ready: VecDeque<Event>,
}

impl Events {
    pub(super) fn new(body: Body<BufReader<Stream>>, place: String) -> Self {
        Self { body, place, parser: Parser::default(), ready: VecDeque::new() }
    }

    /// Waits for the next one. A feed has no end: that it ended is an error too.
    pub fn next(&mut self) -> Result<Event, Error> {
        let mut buffer = [0u8; 16 * 1024];
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(event);
            }
            let read = match self.body.read(&mut buffer) {
                Ok(0) => return Err(self.broken(io::ErrorKind::UnexpectedEof.into())),
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(self.broken(error)),
            };
            self.parser.push(buffer.get(..read).unwrap_or_default(), &mut self.ready).map_err(Error::Malformed)?;
        }
    }

    /// Where the feed has got to, also before its first event.
    pub fn last_id(&self) -> Option<&str> {
        self.parser.last_id.as_deref()
    }

    fn broken(&self, cause: io::Error) -> Error {
        Error::Broken { place: self.place.clone(), cause }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(pieces: &[&[u8]]) -> Vec<Event> {
        let (mut parser, mut out) = (Parser::default(), VecDeque::new());
        for piece in pieces {
            parser.push(piece, &mut out).unwrap();
        }
        out.into()
    }

    fn event(id: &str, name: &str, data: &str) -> Event {
        Event { id: Some(id.to_owned()), name: name.to_owned(), data: data.to_owned() }
    }

    const FEED: &[u8] =
        ": hello\n\nid: 7\nevent: requested\ndata: {\"a\":\ndata:  1}\n\n:keep\r\n\r\nid:8\r\nevent:resolved\r\n\
        data:é\r\nretry: 5\r\n\r\nid: 9\rdata: x\r\rid: 10\ndata: unfinished"
            .as_bytes();

    #[test]
    fn split_at_every_byte_it_reads_the_same() {
        let expected = vec![event("7", "requested", "{\"a\":\n 1}"), event("8", "resolved", "é"), event("9", "", "x")];
        assert_eq!(parse(&[FEED]), expected);
        for at in 0..=FEED.len() {
            let (left, right) = FEED.split_at(at);
            assert_eq!(parse(&[left, right]), expected, "split at {at}");
        }
        let bytes: Vec<&[u8]> = FEED.chunks(1).collect();
        assert_eq!(parse(&bytes), expected);
    }

    #[test]
    fn an_event_without_data_is_none() {
        assert_eq!(parse(&[b"id: 1\nevent: x\n\ndata\n\n"]), vec![Event::default()]);
    }

    #[test]
    fn what_is_not_text_or_too_long_breaks_the_feed() {
        let (mut parser, mut out) = (Parser::default(), VecDeque::new());
        assert!(parser.push(b"data: \xff\n", &mut out).is_err());
        let mut parser = Parser::default();
        assert!(parser.push(&vec![b'x'; MAX_EVENT + 1], &mut out).is_err());
    }
}
