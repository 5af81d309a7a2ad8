//! A device of the hub over the plain transport, written without the door's own code.

use std::collections::VecDeque;
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::{Error, Message, WebSocket};

use crate::support::Gate;

/// Longer than anything here takes, shorter than a person's patience.
const PATIENCE: Duration = Duration::from_secs(20);

pub struct Device {
    socket: WebSocket<TcpStream>,
    pub id: String,
    pub hub: String,
    /// Frames that came while another was waited for.
    early: VecDeque<Value>,
    count: usize,
}

/// What came over the connection.
#[derive(Debug)]
pub enum Came {
    Frame(Value),
    Closed(Option<CloseFrame>),
}

impl Device {
    /// Opens a connection with this query and these headers; nothing is said yet.
    pub fn open(gate: &Gate, query: &str, headers: &[(&'static str, &str)]) -> Result<Self, u16> {
        Self::open_at(gate, &format!("/hub{query}"), headers)
    }

    pub fn open_at(gate: &Gate, path: &str, headers: &[(&'static str, &str)]) -> Result<Self, u16> {
        let mut request = format!("ws://{}{path}", gate.address).into_client_request().unwrap();
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().unwrap());
        }
        let stream = TcpStream::connect(gate.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        match tokio_tungstenite::tungstenite::client(request, stream) {
            Ok((socket, _)) => {
                Ok(Self { socket, id: String::new(), hub: String::new(), early: VecDeque::new(), count: 0 })
            }
            Err(tokio_tungstenite::tungstenite::HandshakeError::Failure(Error::Http(answer))) => {
                Err(answer.status().as_u16())
            }
            // Closed before it was answered.
            Err(_) => Err(0),
        }
    }

    /// Registers, and learns which device the hub is.
    pub fn register(gate: &Gate, kind: &str, id: &str, key: &str) -> Self {
        let key = if key.is_empty() { String::new() } else { format!("&key={key}") };
        let mut device = Self::open(gate, &format!("?deviceId={id}&deviceType={kind}{key}"), &[]).unwrap();
        assert_eq!(device.event("registered"), json!({"success": true, "deviceId": id}));
        id.clone_into(&mut device.id);
        device.find_hub();
        device
    }

    /// Registers without a key as soon as the id is free: its connection before may not have ended yet.
    pub fn register_soon(gate: &Gate, id: &str) -> Self {
        loop {
            let mut device = Self::open(gate, &format!("?deviceId={id}&deviceType=client"), &[]).unwrap();
            if device.event("registered")["success"] == true {
                id.clone_into(&mut device.id);
                device.find_hub();
                return device;
            }
        }
    }

    fn find_hub(&mut self) {
        self.say("list-devices", &json!({}));
        let devices = self.event("list-devices")["devices"].clone();
        let hub = devices.as_array().unwrap().iter().find(|device| device["deviceType"] == "hub").unwrap();
        self.hub = hub["deviceId"].as_str().unwrap().to_owned();
    }

    pub fn approver(gate: &Gate, id: &str, key: &str) -> Self {
        Self::register(gate, "client", id, key)
    }

    pub fn agent(gate: &Gate, id: &str, key: &str) -> Self {
        Self::register(gate, "agent", id, key)
    }

    pub fn raw(&mut self, message: Message) {
        // A server that has had enough may have closed: what it said still counts.
        let _ = self.socket.send(message);
    }

    /// Over Socket.IO: joins the namespace, and waits until it is registered there.
    pub fn join(&mut self) {
        self.raw(Message::text("40"));
        loop {
            match self.socket.read() {
                Ok(Message::Text(text)) if text.contains("registered") => return,
                Ok(_) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }

    pub fn say(&mut self, event: &str, data: &Value) {
        self.raw(Message::text(json!({"event": event, "data": data}).to_string()));
    }

    /// What the connection gives next.
    pub fn read(&mut self) -> Came {
        loop {
            match self.socket.read() {
                Ok(Message::Text(text)) => return Came::Frame(serde_json::from_str(&text).unwrap()),
                Ok(Message::Close(frame)) => return Came::Closed(frame),
                Ok(_) => {}
                Err(Error::Io(error)) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    panic!("nothing came for {PATIENCE:?}")
                }
                Err(_) => return Came::Closed(None),
            }
        }
    }

    /// The next frame that is wanted; others stay for later.
    pub fn next(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(place) = self.early.iter().position(&wanted) {
            return self.early.remove(place).unwrap();
        }
        loop {
            match self.read() {
                Came::Frame(frame) if wanted(&frame) => return frame,
                Came::Frame(frame) => self.early.push_back(frame),
                Came::Closed(why) => panic!("closed: {why:?}, after {:?}", self.early),
            }
        }
    }

    pub fn event(&mut self, name: &str) -> Value {
        self.next(|frame| frame["event"] == name)["data"].clone()
    }

    /// The close frame's reason, once the connection has ended.
    pub fn closed(&mut self) -> String {
        loop {
            match self.read() {
                Came::Frame(frame) => self.early.push_back(frame),
                Came::Closed(why) => return why.map(|why| why.reason.to_string()).unwrap_or_default(),
            }
        }
    }

    /// Whether something like it has come already.
    pub fn has(&self, wanted: impl Fn(&Value) -> bool) -> bool {
        self.early.iter().any(wanted)
    }

    /// A message of the hub's with this action.
    pub fn pushed(&mut self, action: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let frame = self.next(|frame| {
            frame["event"] == "receive" && frame["data"]["action"] == action && wanted(&frame["data"]["payload"])
        });
        frame["data"].clone()
    }

    pub fn card(&mut self, command: &str) -> Value {
        self.pushed("exec-approval-request", |payload| payload["command"] == command)["payload"].clone()
    }

    pub fn ending(&mut self, id: &str) -> Value {
        self.pushed("exec-approval-resolved", |payload| payload["approvalId"] == id)["payload"].clone()
    }

    /// Sends a request without waiting for its answer.
    pub fn ask(&mut self, method: &str, params: &Value) -> String {
        self.count += 1;
        let id = format!("r{}", self.count);
        let payload = json!({"requestId": id, "method": method, "params": params});
        let (from, to) = (self.id.clone(), self.hub.clone());
        let message = json!({"id": format!("m-{id}"), "uid": null, "from": from, "to": to, "action": "request",
            "payload": payload});
        self.say("send", &message);
        id
    }

    pub fn answer(&mut self, request: &str) -> Value {
        self.pushed("response", |payload| payload["requestId"] == request)["payload"].clone()
    }

    pub fn request(&mut self, method: &str, params: &Value) -> Value {
        let id = self.ask(method, params);
        self.answer(&id)
    }

    #[track_caller]
    pub fn ok(&mut self, method: &str, params: &Value) -> Value {
        let answer = self.request(method, params);
        assert_eq!(answer["ok"], true, "{answer}");
        answer["payload"].clone()
    }

    #[track_caller]
    pub fn error(&mut self, method: &str, params: &Value, code: &str) -> String {
        let answer = self.request(method, params);
        assert_eq!((&answer["ok"], &answer["error"]["code"]), (&json!(false), &json!(code)), "{answer}");
        answer["error"]["message"].as_str().unwrap().to_owned()
    }

    pub fn resolve(&mut self, id: &Value, decision: &str) -> Value {
        self.request("resolveExecApproval", &json!({"approvalId": id, "decision": decision}))
    }

    /// A decision whose answer may never come.
    pub fn resolve_blind(&mut self, id: &str) {
        self.ask("resolveExecApproval", &json!({"approvalId": id, "decision": "allow-once"}));
    }
}
