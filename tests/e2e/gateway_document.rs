//! The policy document over the gateway and over HTTP: one policy, several views.

use serde_json::{Value, json};

use crate::support::Gate;
use crate::websocket::Client;

fn set(client: &mut Client, file: Value, base: &Value) -> Result<Value, Value> {
    client.call("exec.approvals.set", json!({ "file": file, "baseHash": base }))
}

#[test]
fn a_profile_without_a_document_has_one_that_can_be_sent_back() {
    let gate = Gate::start();
    let mut admin = Client::connect(&gate, &gate.admin);
    let before = admin.call("exec.approvals.get", json!({})).unwrap();
    assert_eq!((&before["path"], &before["exists"]), (&json!("store:policy/default"), &json!(false)));
    assert_eq!(before["hash"].as_str().unwrap().len(), 64);
    let defaults =
        json!({ "security": "allowlist", "ask": "on-miss", "askFallback": "deny", "autoAllowSkills": false });
    assert_eq!((&before["file"]["defaults"], &before["resolvedDefaults"]), (&defaults, &defaults));
    let after = set(&mut admin, before["file"].clone(), &before["hash"]).unwrap();
    assert_eq!((&after["exists"], &after["file"]), (&json!(true), &before["file"]));
    let text = gate.get(&gate.admin, "/v1/policy/default").expect(200);
    assert_eq!(text["hash"], after["hash"]);
}

#[test]
fn a_change_needs_the_hash_it_was_made_to_and_changes_nothing_else() {
    let gate = Gate::start();
    let policy = json!({
        "version": 1, "timeoutMs": 5000, "deny": [{ "pattern": "rm **" }], "approvers": ["ann"],
        "agents": { "x": { "security": "deny", "deny": [{ "pattern": "git push **" }] } },
    });
    gate.put_policy("default", &policy);
    let mut admin = Client::connect(&gate, &gate.admin);
    let before = admin.call("exec.approvals.get", json!({})).unwrap();
    let file = json!({
        "version": 1,
        "socket": { "path": "/run/x.sock", "token": "hush-hush" },
        "defaults": { "security": "allowlist", "ask": "always" },
        "agents": { "*": { "allowlist": [{ "pattern": "git **" }] }, "y": { "ask": "off", "allowlist": [] } },
    });
    for base in [json!(null), json!("x"), json!("0".repeat(64))] {
        let error = set(&mut admin, file.clone(), &base).unwrap_err();
        assert_eq!(error["code"], "INVALID_REQUEST", "{error}");
    }
    let after = set(&mut admin, file.clone(), &before["hash"]).unwrap();
    assert_eq!(set(&mut admin, file, &before["hash"]).unwrap_err()["details"]["reason"], "BASE_HASH_STALE");
    let entry = &after["file"]["agents"]["*"]["allowlist"][0];
    assert_eq!((&entry["pattern"], entry["id"].as_str().unwrap().is_empty()), (&json!("git **"), false));
    assert_eq!(after["file"]["socket"], json!({ "path": "/run/x.sock" }));
    let stored = gate.get(&gate.admin, "/v1/policy/default").expect(200);
    let stored_policy = &stored["policy"];
    assert_eq!((&stored_policy["ask"], &stored_policy["timeoutMs"]), (&json!("always"), &json!(5000)));
    assert_eq!((&stored_policy["deny"], &stored_policy["approvers"]), (&policy["deny"], &policy["approvers"]));
    // An agent that is left out keeps what the document could not have shown.
    assert_eq!(stored_policy["agents"]["x"], json!({ "deny": [{ "pattern": "git push **" }] }));
    assert_eq!(stored_policy["agents"]["y"], json!({ "ask": "off", "allowlist": [] }));
    assert!(!stored.to_string().contains("hush-hush"), "{stored}");
    // Path and token stay when they are left out.
    let mut file = after["file"].clone();
    file.as_object_mut().unwrap().remove("socket");
    let token = stored_policy["socket"]["tokenHash"].clone();
    set(&mut admin, file, &after["hash"]).unwrap();
    let kept = gate.get(&gate.admin, "/v1/policy/default").expect(200);
    assert_eq!(kept["policy"]["socket"], json!({ "path": "/run/x.sock", "tokenHash": token }));
}

#[test]
fn fields_nobody_knows_are_refused_by_name_and_nothing_changes() {
    let gate = Gate::start();
    let mut admin = Client::connect(&gate, &gate.admin);
    let before = admin.call("exec.approvals.get", json!({})).unwrap();
    for (file, named) in [
        (json!({ "version": 1, "defualts": {} }), "defualts"),
        (json!({ "version": 1, "defaults": { "securty": "deny" } }), "securty"),
        (json!({ "version": 1, "agents": { "*": { "allowlsit": [] } } }), "allowlsit"),
        (json!({ "version": 1, "agents": { "*": { "allowlist": [{ "pattern": "a", "x": 1 }] } } }), "x"),
        (json!({ "version": 1, "defaults": { "ask": "never" } }), "never"),
        (json!({ "version": 2 }), "version"),
        (json!({ "version": 1, "defaults": { "autoAllowSkills": true } }), "autoAllowSkills"),
        (json!({ "version": 1, "agents": { "*": { "allowlist": [{ "pattern": "git 'log" }] } } }), "git 'log"),
    ] {
        let error = set(&mut admin, file.clone(), &before["hash"]).unwrap_err();
        assert!(error["message"].as_str().unwrap().contains(named), "{file}: {error}");
    }
    assert_eq!(admin.call("exec.approvals.get", json!({})).unwrap(), before);
}

#[test]
fn an_answers_entry_stands_in_the_document_with_its_use_and_ends_when_it_is_taken_out() {
    let gate = Gate::start();
    let mut admin = Client::connect(&gate, &gate.admin);
    let mut agent = Client::connect(&gate, &gate.key("agent", "bot"));
    let asked = agent.request("exec.approval.request", json!({ "command": "npm ci" }));
    let id = admin.event("exec.approval.requested")["id"].clone();
    let before = admin.call("exec.approvals.get", json!({})).unwrap();
    admin.call("exec.approval.resolve", json!({ "id": id, "decision": "allow-always" })).unwrap();
    agent.answer(&asked).unwrap();
    agent.call("exec.approval.request", json!({ "command": "npm ci" })).unwrap();
    let with_grant = admin.call("exec.approvals.get", json!({})).unwrap();
    assert_eq!(with_grant["hash"], before["hash"], "grants do not change the policy");
    let entry = &with_grant["file"]["agents"]["*"]["allowlist"][0];
    assert_eq!((&entry["pattern"], &entry["source"]), (&json!("npm ci"), &json!("grant")));
    assert!(entry["lastUsedAt"].is_i64() && entry["lastUsedCommand"] == "npm ci", "{entry}");
    // Sent back as it was, nothing changes; taken out, the grant ends.
    let same = set(&mut admin, with_grant["file"].clone(), &with_grant["hash"]).unwrap();
    assert_eq!(same["file"], with_grant["file"]);
    let without = json!({ "version": 1, "agents": { "*": { "allowlist": [] } } });
    set(&mut admin, without, &same["hash"]).unwrap();
    assert_eq!(admin.call("exec.approval.grants.list", json!({})).unwrap(), json!({ "grants": [] }));
    agent.request("exec.approval.request", json!({ "command": "npm ci" }));
    assert_eq!(admin.event("exec.approval.requested")["request"]["command"], "npm ci");
}

#[test]
fn the_same_document_is_there_over_http() {
    let gate = Gate::start();
    let path = "/v1/policy/default/document";
    let before = gate.get(&gate.admin, path).expect(200);
    let mut admin = Client::connect(&gate, &gate.admin);
    assert_eq!(admin.call("exec.approvals.get", json!({})).unwrap(), before);
    let file = json!({ "version": 1, "agents": { "*": { "allowlist": [{ "pattern": "make **" }] } } });
    let put = |base: &Value| gate.call("PUT", path, &gate.admin, Some(&json!({ "file": file, "baseHash": base })));
    put(&before["hash"]).expect(200);
    put(&before["hash"]).expect_error(409, "stale_policy");
    put(&json!(null)).expect_error(422, "invalid_document");
    let agent = gate.key("agent", "bot");
    let made = gate.post(&agent, "/v1/approvals", &json!({ "session_id": "s", "command": "make all" })).expect(200);
    assert_eq!((&made["status"], &made["rule"]), (&json!("approved"), &json!("allowlist")));
}
