//! What clients of the gateway do wrong, and what attackers try there.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use crate::support::Gate;
use crate::websocket::{Client, open, receive};

#[test]
fn threat_64_an_agents_key_asks_and_does_nothing_else_whatever_it_claims() {
    let gate = Gate::start();
    let key = gate.key("agent", "bot");
    let claims = json!({ "auth": { "token": key }, "scopes": ["operator.admin", "operator.approvals"] });
    let mut agent = Client::connect_as(&gate, claims).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(agent.hello["auth"], json!({ "role": "operator", "scopes": [] }));
    let asked = agent.request("exec.approval.request", json!({ "command": "make", "twoPhase": true }));
    let id = agent.answer(&asked).unwrap()["id"].clone();
    for (method, params) in [
        ("exec.approval.resolve", json!({ "id": id, "decision": "allow-once" })),
        ("approval.resolve", json!({ "id": id, "kind": "exec", "decision": "allow-once" })),
        ("exec.approval.list", json!({})),
        ("approval.get", json!({ "id": id })),
        ("approval.history", json!({})),
        ("exec.approval.grants.list", json!({})),
        ("exec.approval.grants.revoke", json!({ "grantId": "grant_x" })),
        ("node.list", json!({})),
        ("config.get", json!({})),
    ] {
        let error = agent.call(method, params).unwrap_err();
        let details = json!({
            "code": "MISSING_SCOPE", "missingScope": "operator.approvals", "requiredScopes": ["operator.approvals"],
        });
        assert_eq!((&error["code"], &error["details"]), (&json!("FORBIDDEN"), &details), "{method}");
    }
    for method in ["exec.approvals.get", "exec.approvals.set", "exec.approvals.node.get", "exec.approvals.node.set"] {
        let params = json!({ "file": { "version": 1 }, "baseHash": "", "nodeId": "n" });
        let error = agent.call(method, params).unwrap_err();
        assert_eq!(error["details"]["missingScope"], "operator.admin", "{method}");
    }
    assert_eq!(agent.call("exec.approval.get", json!({ "id": id })).unwrap()["id"], id);
}

#[test]
fn an_approver_does_not_configure_and_an_agent_sees_only_its_own() {
    let gate = Gate::start();
    let mut ann = Client::connect(&gate, &gate.key("approver", "ann"));
    assert_eq!(ann.call("exec.approvals.get", json!({})).unwrap_err()["details"]["missingScope"], "operator.admin");
    let mut bot = Client::connect(&gate, &gate.key("agent", "bot"));
    let mut spy = Client::connect(&gate, &gate.key("agent", "spy"));
    let asked =
        bot.request("exec.approval.request", json!({ "id": "secret-job", "command": "make", "twoPhase": true }));
    let id = bot.answer(&asked).unwrap()["approvalId"].clone();
    for id in [&id, &json!("secret-job")] {
        for method in ["exec.approval.get", "exec.approval.waitDecision"] {
            let error = spy.call(method, json!({ "id": id })).unwrap_err();
            assert_eq!(error["details"]["reason"], "APPROVAL_NOT_FOUND");
        }
    }
    assert_eq!(bot.event("exec.approval.requested")["approvalId"], id);
    assert_eq!(ann.event("exec.approval.requested")["approvalId"], id);
    spy.call("health", json!({})).unwrap();
    assert_eq!(spy.unheard(), Vec::<&str>::new());
}

#[test]
fn a_connect_without_a_good_key_role_or_protocol_is_refused_with_the_word_for_it() {
    let gate = Gate::start();
    let (agent, node) = (gate.key("agent", "bot"), gate.key("node", "mini"));
    let token = |key: &str| json!({ "token": key });
    for (fields, code) in [
        (json!({}), "AUTH_TOKEN_MISSING"),
        (json!({ "auth": {} }), "AUTH_TOKEN_MISSING"),
        (json!({ "auth": token("csk_nothing") }), "AUTH_TOKEN_MISMATCH"),
        (json!({ "auth": token(&format!("{agent}x")) }), "AUTH_TOKEN_MISMATCH"),
        (json!({ "auth": token(&agent), "minProtocol": 5, "maxProtocol": 6 }), "PROTOCOL_MISMATCH"),
        (json!({ "auth": token(&agent), "role": "node", "device": { "id": "x" } }), "AUTH_SCOPE_MISMATCH"),
        (json!({ "auth": token(&node) }), "AUTH_SCOPE_MISMATCH"),
        (json!({ "auth": token(&gate.key("inbox", "mail")) }), "AUTH_SCOPE_MISMATCH"),
    ] {
        let Err(error) = Client::connect_as(&gate, fields.clone()) else { panic!("let in: {fields}") };
        assert_eq!(error["details"]["code"], code, "{fields}: {error}");
        assert!(!error.to_string().contains(&agent), "{error}");
    }
    // The key may also come with the upgrade.
    let bearer = format!("Bearer {agent}");
    let mut socket = open(&gate, "/gateway", &[("authorization", &bearer)]).unwrap();
    receive(&mut socket).unwrap();
    let connect =
        json!({ "type": "req", "id": "1", "method": "connect", "params": { "minProtocol": 4, "maxProtocol": 4 } });
    socket.send(Message::text(connect.to_string())).unwrap();
    assert_eq!(receive(&mut socket).unwrap()["payload"]["type"], "hello-ok");
}

#[test]
fn before_a_connect_nothing_else_is_heard() {
    let gate = Gate::start();
    for frame in ["", "{", "[]", "{\"type\":\"event\",\"event\":\"x\"}", "\"connect\"", "null"] {
        let mut socket = open(&gate, "/gateway", &[]).unwrap();
        receive(&mut socket).unwrap();
        socket.send(Message::text(frame)).unwrap();
        assert_eq!(receive(&mut socket), Err(1008), "{frame}");
    }
    let mut socket = open(&gate, "/gateway", &[]).unwrap();
    receive(&mut socket).unwrap();
    let early = json!({ "type": "req", "id": "1", "method": "exec.approval.list" });
    socket.send(Message::text(early.to_string())).unwrap();
    assert_eq!(receive(&mut socket).unwrap()["error"]["code"], "INVALID_REQUEST");
    assert_eq!(receive(&mut socket), Err(1008));
    // A stranger may send 64 KiB and no more.
    let mut socket = open(&gate, "/gateway", &[]).unwrap();
    receive(&mut socket).unwrap();
    let _ = socket.send(Message::text("x".repeat(100_000)));
    assert!(receive(&mut socket).is_err());
}

#[test]
fn frames_that_mean_nothing_are_told_so_and_the_connection_goes_on() {
    let gate = Gate::start();
    let mut ann = Client::connect(&gate, &gate.key("approver", "ann"));
    for frame in ["", "{", "not json", "[1,2]", "{\"type\":\"res\"}", "{\"type\":\"req\"}", "{\"type\":\"nothing\"}"] {
        ann.send(frame);
        let told = ann.event("protocol.error");
        assert_eq!(told["code"], "INVALID_REQUEST", "{frame}");
    }
    ann.send(r#"{"type":"req","id":"x1","method":5}"#);
    assert_eq!(ann.answer("x1").unwrap_err()["code"], "INVALID_REQUEST");
    for (method, params) in [
        ("no.such.method", json!({})),
        ("connect", json!({ "minProtocol": 4, "maxProtocol": 4 })),
        ("exec.approval.request", json!({})),
        ("exec.approval.request", json!([])),
        ("exec.approval.request", json!({ "command": 5 })),
        ("exec.approval.request", json!({ "command": "make", "timeoutMs": 0 })),
        ("exec.approval.request", json!({ "command": "make", "timeoutMs": -1 })),
        ("exec.approval.request", json!({ "command": "make", "timeoutMs": 1e12 })),
        ("exec.approval.request", json!({ "command": "make", "security": "none" })),
        ("exec.approval.request", json!({ "command": "a\u{0}b" })),
        ("exec.approval.request", json!({ "command": "x".repeat(20_000) })),
        ("exec.approval.request", json!({ "command": "ls", "commandArgv": ["rm", "-rf", "/"] })),
        ("exec.approval.request", json!({ "command": "make", "id": "a\nb" })),
        ("exec.approval.resolve", json!({ "decision": "allow-once" })),
        ("approval.history", json!({ "limit": 1000 })),
        ("approval.history", json!({ "cursor": "x" })),
    ] {
        let error = ann.call(method, params.clone()).unwrap_err();
        assert_eq!(error["code"], "INVALID_REQUEST", "{method} {params}");
    }
    assert_eq!(ann.call("exec.approval.list", json!({})).unwrap(), json!([]));
    // Somebody who sends nothing but nonsense is not one of ours.
    for _ in 0..120 {
        if ann.socket.send(Message::text("nonsense")).is_err() {
            break;
        }
    }
    assert_eq!(ann.closed(), 1008);
}

#[test]
fn a_frame_of_30_mib_or_of_bytes_ends_the_connection_and_nothing_else() {
    let gate = Gate::start();
    let key = gate.key("approver", "ann");
    let mut other = Client::connect(&gate, &key);
    let mut large = Client::connect(&gate, &key);
    // It may be cut off while it is still sending.
    let _ = large.socket.send(Message::text("x".repeat(30 * 1024 * 1024)));
    assert!([1006, 1009].contains(&large.closed()));
    let mut bytes = Client::connect(&gate, &key);
    bytes.socket.send(Message::binary(vec![0, 159])).unwrap();
    assert_eq!(bytes.closed(), 1003);
    assert_eq!(other.call("exec.approval.list", json!({})).unwrap(), json!([]));
}

#[test]
fn threat_64_a_revoked_key_loses_its_gateway_connection_at_once() {
    let gate = Gate::start();
    let made = gate.post(&gate.admin, "/v1/keys", &json!({ "role": "approver", "name": "bob" })).expect(200);
    let mut bob = Client::connect(&gate, made["key"].as_str().unwrap());
    let path = format!("/v1/keys/{}", made["key_id"].as_str().unwrap());
    gate.call("DELETE", &path, &gate.admin, None).expect(200);
    assert_eq!(bob.closed(), 1008);
}

#[test]
fn threat_55_a_hostile_page_cannot_open_a_gateway_socket() {
    let gate = Gate::start();
    for path in ["/gateway", "/"] {
        assert_eq!(open(&gate, path, &[("origin", "https://evil.example")]).unwrap_err(), 403);
        assert_eq!(open(&gate, path, &[("origin", "null")]).unwrap_err(), 403);
        assert_eq!(open(&gate, path, &[("host", "evil.example")]).unwrap_err(), 403);
        let own = format!("http://{}", gate.address);
        assert!(open(&gate, path, &[("origin", &own)]).is_ok());
    }
}

#[test]
fn threat_66_a_gateway_client_that_never_reads_costs_little_and_holds_up_nobody() {
    let gate = Gate::start();
    let key = gate.key("approver", "ann");
    let mut agent = Client::connect(&gate, &gate.key("agent", "bot"));
    let mut deaf: Vec<Client> = (0..20).map(|_| Client::connect(&gate, &key)).collect();
    let mut ann = Client::connect(&gate, &key);
    let before = resident_kib(&gate);
    // Each event is about 16 KiB: what would pile up for the deaf is far over 100 MiB.
    let command = format!("npm publish {}", "x".repeat(15_000));
    let (mut asked, mut heard) = (0, 0);
    while asked < 250 {
        agent.request("exec.approval.request", json!({ "command": command, "id": format!("job-{asked}") }));
        asked += 1;
        agent.event("exec.approval.requested");
        ann.event("exec.approval.requested");
        heard += 1;
    }
    assert_eq!((asked, heard), (250, 250));
    let grown = resident_kib(&gate).saturating_sub(before);
    assert!(grown < 64 * 1024, "grew by {grown} KiB");
    // No record is lost: whoever missed events can list what they were about.
    let listed = deaf[0].call("exec.approval.list", json!({}));
    let count = listed.map_or(0, |rows| rows.as_array().unwrap().len());
    assert_eq!(count, 250);
}

fn resident_kib(gate: &Gate) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", gate.pid())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn a_machine_is_asked_by_its_own_key_and_its_end_is_told_at_once() {
    let gate = Gate::start();
    let (key, other) = (gate.key("node", "mini"), gate.key("node", "maxi"));
    let mut admin = Client::connect(&gate, &gate.admin);
    let missing = admin.call("exec.approvals.node.get", json!({ "nodeId": "mini" })).unwrap_err();
    assert_eq!((&missing["code"], &missing["details"]["code"]), (&json!("UNAVAILABLE"), &json!("NODE_NOT_CONNECTED")));
    let mut node = Client::node(&gate, &key, "mini").unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(node.hello["auth"], json!({ "role": "node", "scopes": [] }));
    // The machine belongs to the key, and the key to the machine.
    assert!(Client::node(&gate, &other, "mini").is_err());
    assert!(Client::node(&gate, &key, "elsewhere").is_err());
    assert!(Client::connect_as(&gate, json!({ "role": "node", "auth": { "token": other } })).is_err());
    assert_eq!(admin.call("node.list", json!({})).unwrap()["nodes"][0]["nodeId"], "mini");

    let asked = admin
        .request("exec.approvals.node.set", json!({ "nodeId": "mini", "file": { "version": 1 }, "baseHash": "h" }));
    let invoked = node.event("node.invoke.request");
    assert_eq!((&invoked["nodeId"], &invoked["command"]), (&json!("mini"), &json!("system.execApprovals.set")));
    let params: Value = serde_json::from_str(invoked["paramsJSON"].as_str().unwrap()).unwrap();
    assert_eq!(params, json!({ "file": { "version": 1 }, "baseHash": "h" }));
    let mut impostor = Client::node(&gate, &other, "maxi").unwrap_or_else(|error| panic!("{error}"));
    for node_id in ["mini", "maxi"] {
        let forged = json!({ "id": invoked["id"], "nodeId": node_id, "ok": true, "payload": {} });
        assert!(impostor.call("node.invoke.result", forged).is_err());
    }
    let result = json!({ "id": invoked["id"], "nodeId": "mini", "ok": true, "payloadJSON": "{\"hash\":\"h2\"}" });
    assert_eq!(node.call("node.invoke.result", result).unwrap(), json!({ "ok": true }));
    assert_eq!(admin.answer(&asked).unwrap(), json!({ "hash": "h2" }));

    let asked = admin.request("exec.approvals.node.get", json!({ "nodeId": "mini" }));
    let invoked = node.event("node.invoke.request");
    let failed =
        json!({ "id": invoked["id"], "nodeId": "mini", "ok": false, "error": { "code": "LOCKED", "message": "no" } });
    node.call("node.invoke.result", failed).unwrap();
    assert_eq!(admin.answer(&asked).unwrap_err()["details"]["code"], "LOCKED");

    let asked = admin.request("exec.approvals.node.get", json!({ "nodeId": "mini" }));
    node.event("node.invoke.request");
    let started = Instant::now();
    drop(node);
    assert_eq!(admin.answer(&asked).unwrap_err()["details"]["code"], "NODE_NOT_CONNECTED");
    assert!(started.elapsed() < Duration::from_secs(9), "told by its end, not by its time");
    // A node asks for nothing.
    for method in ["exec.approval.request", "exec.approval.list", "exec.approvals.get"] {
        assert_eq!(impostor.call(method, json!({ "command": "ls" })).unwrap_err()["code"], "FORBIDDEN");
    }
}

#[test]
fn threat_64_what_a_revoked_key_still_sends_decides_nothing() {
    let gate = Gate::start();
    let mut agent = Client::connect(&gate, &gate.key("agent", "bot"));
    for round in 0..20 {
        let made = gate.post(&gate.admin, "/v1/keys", &json!({ "role": "approver", "name": "bob" })).expect(200);
        let mut bob = Client::connect(&gate, made["key"].as_str().unwrap());
        let asked = agent.request("exec.approval.request", json!({ "command": "make", "twoPhase": true }));
        let id = agent.answer(&asked).unwrap()["approvalId"].as_str().unwrap().to_owned();
        gate.call("DELETE", &format!("/v1/keys/{}", made["key_id"].as_str().unwrap()), &gate.admin, None).expect(200);
        let resolve = json!({ "type": "req", "id": "late", "method": "exec.approval.resolve", "params": { "id": id, "decision": "allow-once" } });
        // It may be closed by then.
        let _ = bob.socket.send(Message::text(resolve.to_string()));
        bob.closed();
        let now = gate.get(&gate.admin, &format!("/v1/approvals/{id}")).expect(200);
        assert_eq!(now["status"], "pending", "round {round}");
    }
}

#[test]
fn what_another_gate_forwards_is_held_to_what_anybody_sends() {
    let gate = Gate::start();
    let mut agent = Client::connect(&gate, &gate.key("agent", "laptop"));
    let forward = |changes: Value| {
        let mut params = json!({
            "id": "fwd_1", "action": { "kind": "exec", "command": "make" }, "actionType": "exec_cmd",
            "sessionId": "s", "expiresInMs": 60000, "path": ["a"],
        });
        params.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        params
    };
    let exec = |command: &str| json!({ "kind": "exec", "command": command, "env": {} });
    let words = |command: &str| json!({ "kind": "exec", "command": command, "argv": ["rm", "-rf", "/"], "env": {} });
    let good = agent.request("forward.request", forward(json!({ "action": exec("make") })));
    assert_eq!(agent.answer(&good).unwrap()["status"], "accepted");
    for changes in [
        json!({ "action": exec("a\u{0}b") }),
        json!({ "action": exec(&"x".repeat(20_000)) }),
        json!({ "action": exec("make"), "actionType": "http_request" }),
        json!({ "action": exec("make"), "actionType": "a\nb" }),
        json!({ "action": exec("make"), "sessionId": "" }),
        json!({ "action": exec("make"), "expiresInMs": 90_000_000 }),
        json!({ "action": exec("make"), "id": "appr_1" }),
        json!({ "action": exec("make"), "path": vec!["a"; 9] }),
        json!({ "action": exec("make"), "path": ["x".repeat(5_000)] }),
        // Another action under a name that stands for one.
        json!({ "action": exec("rm x"), "id": "fwd_1" }),
        json!({ "action": {} }),
        // Shown as one thing, and another by its words.
        json!({ "action": words("ls") }),
        json!({ "action": { "kind": "exec", "command": "", "argv": [], "env": {} } }),
    ] {
        let mut params = json!({ "id": "fwd_2" });
        params.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        let error = agent.call("forward.request", forward(params)).unwrap_err();
        assert_eq!(error["code"], "INVALID_REQUEST", "{changes}");
    }
    let mut spy = Client::connect(&gate, &gate.key("agent", "spy"));
    assert_eq!(spy.call("forward.withdraw", json!({ "id": "fwd_1" })).unwrap(), json!({ "withdrawn": false }));
    assert_eq!(agent.call("forward.withdraw", json!({ "id": "fwd_1" })).unwrap(), json!({ "withdrawn": true }));
}
