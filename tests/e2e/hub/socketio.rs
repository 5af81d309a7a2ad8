//! The hub over Socket.IO, by hand: long-polling as any HTTP client can do it. The published client has its own tests.

use serde_json::{Value, json};

use super::{Device, ask_over_http};
use crate::support::{Gate, id_of};

const RECORD_SEPARATOR: char = '\u{1e}';

struct Polling<'g> {
    gate: &'g Gate,
    path: String,
    early: Vec<String>,
}

impl<'g> Polling<'g> {
    fn open(gate: &'g Gate, query: &str) -> Self {
        let path = format!("/ws/?EIO=4&transport=polling&{query}");
        let opened = gate.raw("GET", &path, &[], b"");
        assert_eq!(opened.status, 200, "{}", opened.text);
        let handshake: Value = serde_json::from_str(opened.text.strip_prefix('0').unwrap()).unwrap();
        assert_eq!((&handshake["pingInterval"], &handshake["pingTimeout"]), (&json!(25_000), &json!(20_000)));
        assert_eq!(handshake["upgrades"], json!(["websocket"]));
        let mut polling =
            Self { gate, path: format!("{path}&sid={}", handshake["sid"].as_str().unwrap()), early: Vec::new() };
        polling.post("40");
        while !polling.packet().starts_with("40") {}
        polling
    }

    fn post(&self, packets: &str) {
        let answer = self.gate.raw("POST", &self.path, &[], packets.as_bytes());
        assert_eq!((answer.status, answer.text.as_str()), (200, "ok"));
    }

    /// The next one that is not the transport's own question whether we live, which comes when it likes.
    fn packet(&mut self) -> String {
        while self.early.is_empty() {
            let polled = self.gate.raw("GET", &self.path, &[], b"");
            assert_eq!(polled.status, 200, "{}", polled.text);
            let packets = polled.text.split(RECORD_SEPARATOR).filter(|packet| *packet != "2");
            self.early = packets.map(str::to_owned).collect();
        }
        self.early.remove(0)
    }

    fn emit(&self, event: &str, data: &Value) {
        self.post(&format!("42{}", json!([event, data])));
    }

    /// The next event of this name, as it is written.
    fn event(&mut self, name: &str) -> Value {
        loop {
            let packet = self.packet();
            let Some(text) = packet.strip_prefix("42") else { continue };
            let event: Value = serde_json::from_str(text).unwrap();
            if event[0] == name {
                return event[1].clone();
            }
        }
    }
}

#[test]
fn long_polling_registers_verifies_shows_and_resolves() {
    let gate = Gate::start();
    let (agent, ann) = (gate.key("agent", "bot"), gate.key("approver", "ann"));
    let mut phone = Polling::open(&gate, &format!("deviceId=phone&deviceType=client&key={ann}"));
    assert_eq!(phone.event("registered"), json!({"success": true, "deviceId": "phone"}));
    // With an argument and without: the acknowledgement has the devices.
    let mut hub = String::new();
    for (ack, sent) in [(0, "420[\"list-devices\"]"), (1, "421[\"list-devices\",{}]")] {
        phone.post(sent);
        let packet = phone.packet();
        let devices: Value = serde_json::from_str(packet.strip_prefix(&format!("43{ack}")).unwrap()).unwrap();
        assert_eq!(devices[0]["devices"][0]["deviceType"], "hub", "{packet}");
        hub = devices[0]["devices"][0]["deviceId"].as_str().unwrap().to_owned();
    }
    phone.emit("ping", &Value::Null);
    phone.event("pong");
    let id = id_of(&ask_over_http(&gate, &agent, "rm -rf ./x"));
    let card = phone.event("receive");
    assert_eq!((&card["from"], &card["to"]), (&json!(hub), &json!("phone")));
    assert_eq!((&card["action"], &card["payload"]["approvalId"]), (&json!("exec-approval-request"), &json!(id)));
    let payload = json!({"requestId": "r1", "method": "resolveExecApproval",
        "params": {"approvalId": id, "decision": "deny"}});
    phone.emit("send", &json!({"id": "m1", "from": "phone", "to": hub, "action": "request", "payload": payload}));
    let answer = phone.event("receive");
    let (answer, ending) = match &answer["action"] {
        action if action == "response" => (answer.clone(), phone.event("receive")),
        _ => (phone.event("receive"), answer),
    };
    assert_eq!(answer["payload"], json!({"requestId": "r1", "ok": true, "payload": {"ok": true}}));
    assert_eq!(
        (&ending["action"], &ending["payload"]["resolvedBy"]),
        (&json!("exec-approval-resolved"), &json!("ann"))
    );
    assert_eq!(gate.get(&agent, &format!("/v1/approvals/{id}")).expect(200)["status"], "denied");
}

#[test]
fn one_session_is_behind_both_transports() {
    let gate = Gate::start();
    let ann = gate.key("approver", "ann");
    let mut plain = Device::approver(&gate, "plain", &ann);
    let mut polling = Polling::open(&gate, &format!("deviceId=polling&deviceType=client&key={ann}"));
    polling.event("registered");
    let message = |from: &str, to: &str| json!({"id": "m1", "uid": null, "from": from, "to": to, "action": "hi", "payload": {"a": 1}});
    plain.say("send", &message("plain", "polling"));
    assert_eq!(polling.event("receive"), message("plain", "polling"));
    polling.emit("send", &message("polling", "plain"));
    assert_eq!(plain.event("receive"), message("polling", "plain"));
    polling.emit("send", &message("plain", "polling"));
    assert_eq!(polling.event("send_error")["code"], "INVALID_MESSAGE");
    // An id is in use whichever way its device came.
    let mut second = Polling::open(&gate, "deviceId=plain&deviceType=client");
    assert_eq!(second.event("registered")["error"], "Device ID already in use");
    assert_eq!(second.packet(), "41", "and it is disconnected");
}

#[test]
fn what_is_too_large_or_no_packet_ends_its_session_and_no_other() {
    let gate = Gate::start();
    let ann = gate.key("approver", "ann");
    let mut plain = Device::approver(&gate, "plain", &ann);
    let mut polling = Polling::open(&gate, &format!("deviceId=polling&deviceType=client&key={ann}"));
    polling.event("registered");
    let large = vec![b'x'; 1024 * 1024];
    assert_eq!(gate.raw("POST", &polling.path, &[], &large).status, 413);
    for unknown in ["42[\"shutdown\",1]", "42[\"send\",null]", "42[\"send\"]", "42[\"send\",[1,2]]"] {
        polling.post(unknown);
        assert_eq!(polling.event("send_error")["code"], "INVALID_MESSAGE", "{unknown}");
    }
    let garbage = gate.raw("POST", &polling.path, &[], b"4garbage");
    assert!(garbage.status < 500, "{}", garbage.text);
    assert_eq!(plain.ok("getHubInfo", &json!({}))["hubId"], plain.hub.as_str());
    // Its id is free again.
    drop(polling);
    let query = format!("?deviceId=polling&deviceType=client&key={ann}");
    while Device::open(&gate, &query, &[]).unwrap().event("registered")["success"] == false {
        std::thread::yield_now();
    }
}
