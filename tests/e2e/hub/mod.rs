//! The hub door through the real binary.

mod asking;
mod device;
mod faults;
mod pairing;
mod profiles;
mod seed;
mod socketio;

pub use device::{Came, Device};

use serde_json::{Value, json};

use crate::support::Gate;

/// A command that policy asks about, from over HTTP, on any channel.
pub fn ask_over_http(gate: &Gate, key: &str, command: &str) -> Value {
    gate.post(key, "/v1/approvals", &json!({"session_id": "s1", "command": command})).expect(200)
}

pub fn key_id(gate: &Gate, name: &str) -> String {
    let keys = gate.get(&gate.admin, "/v1/keys").expect(200);
    let found = keys["keys"].as_array().unwrap().iter().find(|key| key["name"] == name).unwrap();
    found["key_id"].as_str().unwrap().to_owned()
}

pub fn revoke(gate: &Gate, name: &str) {
    gate.call("DELETE", &format!("/v1/keys/{}", key_id(gate, name)), &gate.admin, None).expect(200);
}
