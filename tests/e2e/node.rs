//! `countersign node`: a machine's own document, read and changed from a gate elsewhere.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::support::Gate;
use crate::websocket::Client;

struct Node(Child);

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts it on `machine`'s folder and waits until it serves.
fn node(machine: &Gate, gate: &Gate, key: &str, args: &[&str]) -> Node {
    let mut command = machine.command(&["node", "--gateway", &format!("http://{}", gate.address), "--id", "mini"]);
    let mut child = command.args(args).env("COUNTERSIGN_NODE_KEY", key).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    assert!(first.contains("serving the policy document of `mini`"), "{first}");
    std::thread::spawn(move || lines.for_each(drop));
    Node(child)
}

fn get(admin: &mut Client) -> Value {
    admin.call("exec.approvals.node.get", json!({ "nodeId": "mini" })).unwrap()
}

#[test]
fn a_machines_document_is_read_and_changed_from_the_gate_it_serves() {
    let (gate, machine) = (Gate::start(), Gate::start());
    let key = gate.key("node", "mini");
    let mut admin = Client::connect(&gate, &gate.admin);
    let running = node(&machine, &gate, &key, &[]);
    let before = get(&mut admin);
    assert_eq!(before, machine.get(&machine.admin, "/v1/policy/default/document").expect(200));
    let file = json!({ "version": 1, "agents": { "*": { "allowlist": [{ "pattern": "make **" }] } } });
    let set = |admin: &mut Client, hash: &Value| {
        admin.call("exec.approvals.node.set", json!({ "nodeId": "mini", "file": file, "baseHash": hash }))
    };
    let after = set(&mut admin, &before["hash"]).unwrap();
    assert_eq!(machine.get(&machine.admin, "/v1/policy/default").expect(200)["hash"], after["hash"]);
    let stale = set(&mut admin, &before["hash"]).unwrap_err();
    assert!(stale["message"].as_str().unwrap().contains("changed"), "{stale}");
    let untouched = gate.get(&gate.admin, "/v1/policy/default").expect(200);
    assert_eq!(untouched["exists"], false);
    drop(running);
    let gone = admin.call("exec.approvals.node.get", json!({ "nodeId": "mini" })).unwrap_err();
    assert_eq!(gone["details"]["code"], "NODE_NOT_CONNECTED");
}

#[test]
fn a_machine_that_only_shows_takes_no_changes() {
    let (gate, machine) = (Gate::start(), Gate::start());
    let key = gate.key("node", "mini");
    let mut admin = Client::connect(&gate, &gate.admin);
    let _running = node(&machine, &gate, &key, &["--read-only"]);
    let before = get(&mut admin);
    let params = json!({ "nodeId": "mini", "file": { "version": 1 }, "baseHash": before["hash"] });
    assert!(admin.call("exec.approvals.node.set", params).is_err());
    assert_eq!(get(&mut admin), before);
}

#[test]
fn a_key_that_is_not_a_nodes_is_told_so_and_not_tried_again() {
    let (gate, machine) = (Gate::start(), Gate::start());
    let url = format!("http://{}", gate.address);
    for (key, why) in [(gate.key("agent", "bot"), "node"), ("csk_x_y".to_owned(), "key")] {
        let output = machine.command(&["node", "--gateway", &url]).env("COUNTERSIGN_NODE_KEY", &key).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(why) && !said.contains(&key), "{said}");
    }
    let output = machine.command(&["node", "--gateway", &url]).env_remove("COUNTERSIGN_NODE_KEY").output().unwrap();
    assert_eq!(output.status.code(), Some(64));
}
