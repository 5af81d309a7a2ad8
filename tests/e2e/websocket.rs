//! A WebSocket client for tests: one frame at a time, with a time limit on every wait.

use std::collections::VecDeque;
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{self, Message, WebSocket};

use crate::support::Gate;

pub const PATIENCE: Duration = Duration::from_secs(30);

/// Opens a WebSocket at this path, with these headers beside the usual ones.
pub fn open(gate: &Gate, path: &str, headers: &[(&'static str, &str)]) -> Result<WebSocket<TcpStream>, u16> {
    let mut request = format!("ws://{}{path}", gate.address).into_client_request().unwrap();
    for (name, value) in headers {
        request.headers_mut().insert(*name, value.parse().unwrap());
    }
    let stream = TcpStream::connect(gate.address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let config = WebSocketConfig::default().max_message_size(None).max_frame_size(None);
    match tungstenite::client::client_with_config(request, stream, Some(config)) {
        Ok((socket, _)) => Ok(socket),
        Err(tungstenite::HandshakeError::Failure(tungstenite::Error::Http(answer))) => Err(answer.status().as_u16()),
        Err(other) => panic!("{other}"),
    }
}

/// The next text message, or the code it was closed with (1006 where it just ended).
pub fn receive(socket: &mut WebSocket<TcpStream>) -> Result<Value, u16> {
    loop {
        match socket.read() {
            Ok(Message::Text(text)) => return Ok(serde_json::from_str(&text).unwrap()),
            Ok(Message::Close(frame)) => return Err(frame.map_or(1005, |frame| frame.code.into())),
            Ok(_) => {}
            Err(tungstenite::Error::Io(error)) if error.kind() == std::io::ErrorKind::WouldBlock => {
                panic!("nothing came in {PATIENCE:?}")
            }
            Err(_) => return Err(1006),
        }
    }
}

/// A client of the gateway.
pub struct Client {
    pub socket: WebSocket<TcpStream>,
    pub hello: Value,
    waiting: VecDeque<Value>,
    next: u64,
}

impl Client {
    pub fn connect(gate: &Gate, key: &str) -> Self {
        Self::connect_as(gate, json!({ "auth": { "token": key } })).unwrap_or_else(|error| panic!("{error}"))
    }

    /// With these fields beside the usual ones; the answer's error where it is refused.
    pub fn connect_as(gate: &Gate, fields: Value) -> Result<Self, Value> {
        Self::connect_at(gate, "/gateway", fields)
    }

    pub fn connect_at(gate: &Gate, path: &str, fields: Value) -> Result<Self, Value> {
        let socket = open(gate, path, &[]).unwrap();
        let mut client = Self { socket, hello: json!(null), waiting: VecDeque::new(), next: 0 };
        let challenge = client.event("connect.challenge");
        assert!(!challenge["nonce"].as_str().unwrap().is_empty() && challenge["ts"].is_i64(), "{challenge}");
        let mut params = json!({
            "minProtocol": 3, "maxProtocol": 4, "role": "operator", "scopes": ["operator.admin"], "caps": [],
            "client": { "id": "test", "version": "1", "platform": "linux", "mode": "backend" },
        });
        params.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        client.hello = client.call("connect", params)?;
        Ok(client)
    }

    pub fn node(gate: &Gate, key: &str, id: &str) -> Result<Self, Value> {
        Self::connect_as(gate, json!({ "role": "node", "device": { "id": id }, "auth": { "token": key } }))
    }

    pub fn send(&mut self, frame: &str) {
        self.socket.send(Message::text(frame)).unwrap();
    }

    /// Sends a request without waiting for its answer.
    pub fn request(&mut self, method: &str, params: Value) -> String {
        self.next += 1;
        let id = format!("r{}", self.next);
        self.send(&json!({ "type": "req", "id": id, "method": method, "params": params }).to_string());
        id
    }

    /// The next answer to that request.
    #[track_caller]
    pub fn answer(&mut self, id: &str) -> Result<Value, Value> {
        let frame = self.frame(|frame| frame["type"] == "res" && frame["id"] == id);
        assert_eq!(frame["ok"].as_bool().unwrap(), frame.get("error").is_none(), "{frame}");
        if frame["ok"] == true { Ok(frame["payload"].clone()) } else { Err(frame["error"].clone()) }
    }

    #[track_caller]
    pub fn call(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let id = self.request(method, params);
        self.answer(&id)
    }

    /// The payload of the next event of that name.
    #[track_caller]
    pub fn event(&mut self, name: &str) -> Value {
        self.frame(|frame| frame["type"] == "event" && frame["event"] == name)["payload"].clone()
    }

    /// Names of events that have come and not been asked for. A call in between shows that no more are under way.
    pub fn unheard(&self) -> Vec<&str> {
        self.waiting.iter().filter_map(|frame| frame["event"].as_str()).filter(|name| *name != "tick").collect()
    }

    /// The code that the server closes with.
    pub fn closed(&mut self) -> u16 {
        loop {
            if let Err(code) = receive(&mut self.socket) {
                return code;
            }
        }
    }

    #[track_caller]
    fn frame(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(place) = self.waiting.iter().position(&wanted) {
            return self.waiting.remove(place).unwrap();
        }
        loop {
            let frame = receive(&mut self.socket).unwrap_or_else(|code| panic!("closed with {code}"));
            if wanted(&frame) {
                return frame;
            }
            self.waiting.push_back(frame);
        }
    }
}
