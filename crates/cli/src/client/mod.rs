//! A small blocking HTTP/1.1 client for the gate's own routes: one connection a request, over the data
//! folder's Unix socket, TCP or TLS.
//!
//! It fails closed: whatever is not one whole, well-formed answer is an error. It knows nothing of approvals.

mod dial;
mod error;
mod http;
mod place;
mod sse;
mod stream;
mod tls;

use std::fmt;
use std::io::{BufReader, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use countersign_channels::Dial;
use rustls::ClientConfig;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub use error::{Error, Refused};
pub use place::Place;
pub use sse::{Event, Events};
use stream::{Patience, Stream};

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
/// The gate sends a comment now and then; a feed that is silent for this long is taken for dead.
const FEED_SILENCE: Duration = Duration::from_secs(60);

#[derive(Clone)]
pub struct Request {
    pub method: &'static str,
    /// With its query, already percent-encoded.
    pub path: String,
    pub body: Option<Value>,
    /// For the whole exchange, from connecting to the last byte.
    pub timeout: Duration,
    /// Whom it is from; none: the local agent.
    pub key: Option<String>,
}

impl Request {
    pub fn get(path: impl Into<String>) -> Self {
        Self::new("GET", path, None)
    }

    pub fn post(path: impl Into<String>, body: Value) -> Self {
        Self::new("POST", path, Some(body))
    }

    pub fn put(path: impl Into<String>, body: Value) -> Self {
        Self::new("PUT", path, Some(body))
    }

    pub fn delete(path: impl Into<String>) -> Self {
        Self::new("DELETE", path, None)
    }

    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    pub fn key(self, key: Option<&Key>) -> Self {
        Self { key: key.map(|Key(key)| key.clone()), ..self }
    }

    fn new(method: &'static str, path: impl Into<String>, body: Option<Value>) -> Self {
        Self { method, path: path.into(), body, timeout: DEFAULT_TIMEOUT, key: None }
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Request({} {})", self.method, self.path)
    }
}

#[derive(Clone, Debug)]
pub struct Response {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Response {
    pub fn header(&self, name: &str) -> Option<&str> {
        http::header(&self.headers, name)
    }

    /// The body of a success as the type it must be. Anything else is an error.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Error> {
        if !(200..300).contains(&self.status) {
            return Err(Error::Refused(Box::new(Refused::read(self))));
        }
        serde_json::from_slice(&self.body)
            .map_err(|error| Error::Malformed(format!("the gate's answer is not as documented: {error}")))
    }
}

/// A secret that never shows in a message or a log.
#[derive(Clone)]
pub struct Key(String);

impl Key {
    /// Only what can stand in a header; the text itself is never part of the error.
    pub fn new(text: &str) -> Result<Self, Error> {
        let text = text.trim();
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(Error::Malformed("the key is not one word of visible characters".to_owned()));
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

/// A gate somewhere.
#[derive(Clone, Debug)]
pub struct Gate {
    place: Place,
    tls: Option<Arc<ClientConfig>>,
}

impl Gate {
    /// Reads the certificate roots, but only for a place that needs them.
    pub fn new(place: Place, ca: Option<&Path>) -> Result<Self, Error> {
        let tls = if place.is_tls() { Some(tls::config(ca)?) } else { None };
        Ok(Self { place, tls })
    }

    /// A connection that stays, and the URL to ask for there.
    pub fn dialer(&self, path: &str) -> (Dial, String) {
        let (place, tls) = (self.place.clone(), self.tls.clone());
        let scheme = if place.is_tls() { "wss" } else { "ws" };
        let url = format!("{scheme}://{}{}{path}", place.host_header(), place.prefix());
        (Arc::new(move || Box::pin(dial::dial(place.clone(), tls.clone()))), url)
    }

    pub fn send(&self, request: &Request) -> Result<Response, Error> {
        let (head, mut body) = self.open(request, Patience::Until(Instant::now() + request.timeout))?;
        let body = http::read_all(&mut body).map_err(|fault| self.fault(fault))?;
        Ok(Response { status: head.status, headers: head.headers, body })
    }

    /// Follows a feed of server-sent events until it breaks.
    pub fn follow(&self, request: &Request) -> Result<Events, Error> {
        let (head, mut body) = self.open(request, Patience::Silence(FEED_SILENCE))?;
        let is_feed = http::header(&head.headers, "content-type")
            .is_some_and(|kind| kind.split(';').next().unwrap_or_default().trim() == "text/event-stream");
        if head.status == 200 && is_feed {
            return Ok(Events::new(body, self.place.to_string()));
        }
        let body = http::read_all(&mut body).map_err(|fault| self.fault(fault))?;
        let answer = Response { status: head.status, headers: head.headers, body };
        match answer.json::<Value>() {
            Err(error) => Err(error),
            Ok(_) => Err(Error::Malformed("the gate's answer is no feed of events".to_owned())),
        }
    }

    fn open(
        &self,
        request: &Request,
        patience: Patience,
    ) -> Result<(http::Head, http::Body<BufReader<Stream>>), Error> {
        let stream = Stream::connect(&self.place, self.tls.as_ref(), patience)
            .map_err(|cause| Error::Unreachable { place: self.place.to_string(), cause })?;
        let mut stream = BufReader::new(stream);
        let bytes = http::request_bytes(request, &self.place);
        // The gate may answer before it has read everything (too big, say), so a failed write is not the end.
        let written = stream.get_mut().write_all(&bytes).and_then(|()| stream.get_mut().flush());
        let head = match (http::read_head(&mut stream), written) {
            (Ok(head), _) => head,
            (Err(http::Fault::Io(_)), Err(cause)) => return Err(self.fault(http::Fault::Io(cause))),
            (Err(fault), _) => return Err(self.fault(fault)),
        };
        let body = http::body(&head, stream).map_err(|fault| self.fault(fault))?;
        Ok((head, body))
    }

    fn fault(&self, fault: http::Fault) -> Error {
        match fault {
            http::Fault::Io(cause) => Error::Broken { place: self.place.to_string(), cause },
            http::Fault::Malformed(why) => Error::Malformed(format!("{} does not answer as a gate: {why}", self.place)),
        }
    }
}

/// One segment of a path, or one value of a query.
pub fn encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::TcpListener;
    use std::thread;

    /// Answers one connection with these bytes and closes it.
    fn answering(bytes: &'static [u8]) -> Gate {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        thread::spawn(move || {
            let (mut peer, _) = listener.accept().unwrap();
            let mut seen = [0u8; 4096];
            let _ = peer.read(&mut seen);
            let _ = peer.write_all(bytes);
        });
        Gate::new(Place::parse_url(&url).unwrap(), None).unwrap()
    }

    fn ask(bytes: &'static [u8]) -> Result<Value, Error> {
        answering(bytes).send(&Request::get("/v1/x"))?.json()
    }

    #[test]
    fn a_whole_answer_is_read() {
        let value = ask(b"HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\n{\"a\":1}").unwrap();
        assert_eq!(value, serde_json::json!({"a": 1}));
    }

    #[test]
    fn threat_76_nothing_but_a_whole_success_is_one() {
        for (bytes, what) in [
            (&b""[..], "nothing"),
            (b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{\"a\":1}", "truncated"),
            (b"HTTP/1.1 200 OK\r\n\r\n{\"a\":1}", "no length"),
            (b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nyes!", "not JSON"),
            (b"HTTP/1.1 2x0 OK\r\ncontent-length: 7\r\n\r\n{\"a\":1}", "status"),
            (b"HTTP/1.1 500 Oops\r\ncontent-length: 7\r\n\r\n{\"a\":1}", "500"),
            (b"HTTP/1.1 302 Found\r\nlocation: /y\r\ncontent-length: 7\r\n\r\n{\"a\":1}", "redirect"),
            (b"SSH-2.0-OpenSSH_9.6\r\n", "another protocol"),
        ] {
            assert!(ask(bytes).is_err(), "{what}");
        }
    }

    #[test]
    fn a_silent_gate_times_out_and_an_absent_one_is_unreachable() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let place = Place::parse_url(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
        let gate = Gate::new(place, None).unwrap();
        let slow = gate.send(&Request::get("/").timeout(Duration::from_millis(50)));
        assert!(matches!(slow, Err(Error::Broken { .. })), "{slow:?}");
        drop(listener);
        let gone = gate.send(&Request::get("/"));
        assert!(matches!(gone, Err(Error::Unreachable { .. })), "{gone:?}");
    }

    #[test]
    fn a_key_is_one_word_and_never_shows() {
        for bad in ["", " ", "a b", "a\r\nX: y", "é"] {
            assert!(Key::new(bad).is_err());
        }
        let key = Key::new("secret\n").unwrap();
        assert_eq!(format!("{key:?}"), "Key(…)");
        assert_eq!(format!("{:?}", Request::get("/x").key(Some(&key))), "Request(GET /x)");
    }

    #[test]
    fn what_is_put_into_a_path_cannot_leave_it() {
        assert_eq!(encode("a/../b?c=d e\r\n"), "a%2F..%2Fb%3Fc%3Dd%20e%0D%0A");
    }
}
