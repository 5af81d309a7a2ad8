//! The gateway door: seed 001's examples as given, and what its clients rely on.

use serde_json::{Value, json};

use crate::support::Gate;
use crate::websocket::Client;

struct Cast {
    gate: Gate,
    agent: Client,
    ann: Client,
    agent_key: String,
}

fn cast() -> Cast {
    let gate = Gate::start();
    let agent_key = gate.key("agent", "bot");
    let agent = Client::connect(&gate, &agent_key);
    let ann = Client::connect(&gate, &gate.key("approver", "ann"));
    Cast { gate, agent, ann, agent_key }
}

/// Seed 001, 11.1.
fn seed_request() -> Value {
    json!({ "command": "rm -rf /", "cwd": "/tmp", "ask": "정말 삭제하시겠습니까?", "timeoutMs": 60000 })
}

fn reason(error: &Value) -> &Value {
    &error["details"]["reason"]
}

#[test]
fn the_seeds_examples_run_as_given() {
    let Cast { gate: _gate, mut agent, mut ann, .. } = cast();
    let asked = agent.request("exec.approval.request", seed_request());
    let requested = ann.event("exec.approval.requested");
    let request = &requested["request"];
    assert_eq!(request["command"], "rm -rf /");
    assert_eq!((&request["cwd"], &request["ask"]), (&json!("/tmp"), &json!("정말 삭제하시겠습니까?")));
    for absent in ["host", "security", "agentId", "resolvedPath", "sessionKey"] {
        assert_eq!(request.get(absent), Some(&Value::Null), "{request}");
    }
    let lifetime = requested["expiresAtMs"].as_i64().unwrap() - requested["createdAtMs"].as_i64().unwrap();
    assert_eq!(lifetime, 60_000);
    assert_eq!(requested["riskLevel"], "dangerous");
    // Seed 001, 11.2.
    let resolved = ann.call("exec.approval.resolve", json!({ "id": requested["id"], "decision": "allow-once" }));
    assert_eq!(resolved.unwrap(), json!({ "ok": true }));
    let answer = agent.answer(&asked).unwrap();
    assert_eq!((&answer["id"], &answer["decision"]), (&requested["id"], &json!("allow-once")));
    assert_eq!(answer["expiresAtMs"], requested["expiresAtMs"]);
    let event = ann.event("exec.approval.resolved");
    assert_eq!(
        (&event["id"], &event["decision"], &event["resolvedBy"]),
        (&requested["id"], &json!("allow-once"), &json!("ann"))
    );
    assert!(event["ts"].is_i64() && event["request"] == *request, "{event}");
}

#[test]
fn two_phases_answer_twice_under_one_id() {
    let Cast { gate: _gate, mut agent, mut ann, .. } = cast();
    let params = json!({ "id": " mine-1 ", "command": "make deploy", "twoPhase": true });
    let asked = agent.request("exec.approval.request", params);
    let accepted = agent.answer(&asked).unwrap();
    assert_eq!((&accepted["status"], &accepted["id"]), (&json!("accepted"), &json!("mine-1")));
    assert_eq!(accepted["expiresAtMs"].as_i64().unwrap() - accepted["createdAtMs"].as_i64().unwrap(), 120_000);
    ann.call("exec.approval.resolve", json!({ "id": "mine-1", "decision": "deny" })).unwrap();
    let last = agent.answer(&asked).unwrap();
    assert_eq!((&last["decision"], &last["reason"]), (&json!("deny"), &json!("person")));
    assert!(last.get("status").is_none(), "{last}");
    // Ruled without asking: one answer, no event.
    let ruled = agent.call("exec.approval.request", json!({ "command": "git status", "twoPhase": true })).unwrap();
    assert_eq!((&ruled["decision"], &ruled["reason"]), (&json!("allow-once"), &json!("policy")));
    ann.call("exec.approval.list", json!({})).unwrap();
    let mut heard = ann.unheard();
    heard.sort_unstable();
    assert_eq!(heard, ["exec.approval.requested", "exec.approval.resolved"]);
}

#[test]
fn policy_denies_at_once_and_time_runs_out_exactly() {
    let Cast { gate, mut agent, mut ann, .. } = cast();
    gate.put_policy("default", &json!({ "version": 1, "deny": [{ "pattern": "rm **" }] }));
    let denied = agent.call("exec.approval.request", json!({ "command": "sudo rm x" })).unwrap();
    assert_eq!((&denied["decision"], &denied["reason"]), (&json!("deny"), &json!("rule")));
    let expired = agent.call("exec.approval.request", json!({ "command": "make", "timeoutMs": 250 })).unwrap();
    assert_eq!(expired["decision"], Value::Null);
    assert_eq!(expired["expiresAtMs"].as_i64().unwrap() - expired["createdAtMs"].as_i64().unwrap(), 250);
    let event = ann.event("exec.approval.resolved");
    assert_eq!(
        (&event["decision"], &event["reason"], &event["resolvedBy"]),
        (&Value::Null, &json!("expired"), &Value::Null)
    );
    let late = ann.call("exec.approval.resolve", json!({ "id": expired["approvalId"], "decision": "allow-once" }));
    assert_eq!(reason(&late.unwrap_err()), "APPROVAL_NOT_FOUND");
}

#[test]
fn what_is_pending_can_be_listed_looked_at_and_answered_in_both_shapes() {
    let Cast { gate: _gate, mut agent, mut ann, .. } = cast();
    let params = json!({
        "command": "make deploy", "cwd": "/srv", "agentId": "main", "host": "gateway", "nodeId": "n1",
        "sessionKey": "agent:main", "resolvedPath": "/usr/bin/npm", "warningText": "careful", "twoPhase": true,
    });
    let asked = agent.request("exec.approval.request", params);
    let id = agent.answer(&asked).unwrap()["id"].clone();
    let listed = ann.call("exec.approval.list", json!({})).unwrap();
    let request = &listed[0]["request"];
    assert_eq!((&listed[0]["id"], listed.as_array().unwrap().len()), (&id, 1));
    assert_eq!(
        (&request["sessionKey"], &request["nodeId"], &request["warningText"]),
        (&json!("agent:main"), &json!("n1"), &json!("careful"))
    );
    for reader in [&mut agent, &mut ann] {
        let one = reader.call("exec.approval.get", json!({ "id": id })).unwrap();
        assert_eq!(
            (&one["commandText"], &one["host"], &one["agentId"]),
            (&json!("make deploy"), &json!("gateway"), &json!("main"))
        );
        assert_eq!(one["allowedDecisions"], json!(["allow-once", "allow-always", "deny"]));
    }
    let snapshot = ann.call("approval.get", json!({ "id": id })).unwrap();
    assert_eq!(
        (&snapshot["approval"]["status"], &snapshot["approval"]["presentation"]["kind"]),
        (&json!("pending"), &json!("exec"))
    );
    let error = ann.call("exec.approval.resolve", json!({ "id": id, "decision": "maybe" })).unwrap_err();
    assert!(error["message"].as_str().unwrap().starts_with("invalid decision"), "{error}");
    let applied =
        ann.call("approval.resolve", json!({ "id": id, "kind": "exec", "decision": "allow-always" })).unwrap();
    assert_eq!((&applied["applied"], &applied["approval"]["status"]), (&json!(true), &json!("allowed")));
    let again = ann.call("approval.resolve", json!({ "id": id, "kind": "exec", "decision": "allow-always" })).unwrap();
    assert_eq!(again["applied"], false);
    assert_eq!(agent.answer(&asked).unwrap()["decision"], "allow-always");
    let history = ann.call("approval.history", json!({ "limit": 1 })).unwrap();
    assert_eq!((&history["items"][0]["id"], &history["items"][0]["reason"]), (&id, &json!("person")));
    let rest = ann.call("approval.history", json!({ "cursor": history["nextCursor"] })).unwrap();
    assert_eq!(rest, json!({ "items": [] }));
    for (method, expected) in [("plugin.approval.list", json!([])), ("openclaw.approval.list", json!([]))] {
        assert_eq!(ann.call(method, json!({})).unwrap(), expected);
    }
    assert_eq!(ann.call("config.get", json!({})).unwrap()["valid"], true);
}

#[test]
fn an_always_makes_a_grant_that_is_listed_used_and_revoked() {
    let Cast { gate: _gate, mut agent, mut ann, .. } = cast();
    let asked = agent.request("exec.approval.request", json!({ "command": "npm ci" }));
    let id = ann.event("exec.approval.requested")["id"].clone();
    ann.call("exec.approval.resolve", json!({ "id": id, "decision": "allow-always", "grantExpiresInDays": 2 }))
        .unwrap();
    agent.answer(&asked).unwrap();
    assert_eq!(agent.call("exec.approval.request", json!({ "command": "npm ci" })).unwrap()["decision"], "allow-once");
    let grants = ann.call("exec.approval.grants.list", json!({})).unwrap();
    let grant = &grants["grants"][0];
    assert_eq!((&grant["command"], &grant["mintedByApprovalId"]), (&json!("npm ci"), &id));
    assert_eq!(grant["expiresAtMs"].as_i64().unwrap() - grant["createdAtMs"].as_i64().unwrap(), 2 * 86_400_000);
    let revoke = json!({ "grantId": grant["grantId"] });
    assert_eq!(ann.call("exec.approval.grants.revoke", revoke.clone()).unwrap(), json!({ "outcome": "revoked" }));
    assert_eq!(ann.call("exec.approval.grants.revoke", revoke).unwrap(), json!({ "outcome": "already-revoked" }));
    let unknown = ann.call("exec.approval.grants.revoke", json!({ "grantId": "x" })).unwrap();
    assert_eq!(unknown, json!({ "outcome": "not-found" }));
    agent.request("exec.approval.request", json!({ "command": "npm ci" }));
    let asked_again = ann.event("exec.approval.requested");
    assert_eq!(asked_again["request"]["command"], "npm ci");
    let dangerous = agent.request("exec.approval.request", json!({ "command": "rm -rf /srv", "twoPhase": true }));
    let id = agent.answer(&dangerous).unwrap()["id"].clone();
    let error = ann.call("exec.approval.resolve", json!({ "id": id, "decision": "allow-always" })).unwrap_err();
    assert_eq!(reason(&error), "APPROVAL_ALLOW_ALWAYS_UNAVAILABLE");
    let pending = ann.call("exec.approval.get", json!({ "id": id })).unwrap();
    assert_eq!(pending["allowedDecisions"], json!(["allow-once", "deny"]));
}

#[test]
fn a_command_that_a_person_changed_is_no_yes_to_the_one_that_was_asked() {
    let Cast { gate, mut agent, .. } = cast();
    let ann = gate.key("approver", "bea");
    let asked = agent.request("exec.approval.request", json!({ "command": "npm publish", "twoPhase": true }));
    let id = agent.answer(&asked).unwrap()["approvalId"].as_str().unwrap().to_owned();
    let body = json!({ "code": "5", "text": "npm pack" });
    gate.post(&ann, &format!("/v1/approvals/{id}/decision"), &body).expect(200);
    let answer = agent.answer(&asked).unwrap();
    assert_eq!((&answer["decision"], &answer["override"]), (&json!("deny"), &json!("npm pack")));
}

#[test]
fn whoever_waits_when_the_gate_dies_gets_the_answer_from_the_next_one() {
    let Cast { mut gate, mut agent, agent_key, .. } = cast();
    let ann_key = gate.key("approver", "bea");
    let asked = agent.request("exec.approval.request", json!({ "id": "deploy", "command": "make", "twoPhase": true }));
    let first = agent.answer(&asked).unwrap();
    gate.kill();
    gate.restart();
    let mut agent = Client::connect(&gate, &agent_key);
    let waiting = agent.request("exec.approval.waitDecision", json!({ "id": "deploy" }));
    let mut ann = Client::connect(&gate, &ann_key);
    let listed = ann.call("exec.approval.list", json!({})).unwrap();
    assert_eq!((&listed[0]["approvalId"], &listed[0]["id"]), (&first["approvalId"], &json!("deploy")));
    ann.call("exec.approval.resolve", json!({ "id": "deploy", "decision": "allow-once" })).unwrap();
    assert_eq!(agent.answer(&waiting).unwrap()["decision"], "allow-once");
    assert_eq!(agent.call("exec.approval.waitDecision", json!({ "id": "deploy" })).unwrap()["decision"], "allow-once");
}

#[test]
fn a_gate_that_stops_tells_whoever_waits_to_come_back() {
    let Cast { mut gate, mut agent, mut ann, .. } = cast();
    let asked = agent.request("exec.approval.request", json!({ "command": "make", "twoPhase": true }));
    agent.answer(&asked).unwrap();
    ann.event("exec.approval.requested");
    assert!(gate.terminate().success());
    let error = agent.answer(&asked).unwrap_err();
    assert_eq!((&error["code"], &error["retryable"]), (&json!("UNAVAILABLE"), &json!(true)));
    agent.event("shutdown");
    ann.event("shutdown");
    assert_eq!((agent.closed(), ann.closed()), (1012, 1012));
}

#[test]
fn the_root_speaks_it_too_and_both_protocols_are_spoken() {
    let gate = Gate::start();
    let key = gate.key("approver", "ann");
    let auth = json!({ "token": key });
    for (min, max, spoken) in [(4, 4, 4), (3, 3, 3), (1, 99, 4)] {
        let fields = json!({ "auth": auth, "minProtocol": min, "maxProtocol": max });
        let client = Client::connect_at(&gate, "/", fields).unwrap_or_else(|error| panic!("{error}"));
        let hello = &client.hello;
        assert_eq!((&hello["type"], &hello["protocol"]), (&json!("hello-ok"), &json!(spoken)));
        assert_eq!(hello["auth"], json!({ "role": "operator", "scopes": ["operator.approvals"] }));
        assert_eq!(
            hello["policy"],
            json!({ "maxPayload": 26214400, "maxBufferedBytes": 52428800, "tickIntervalMs": 15000 })
        );
        assert_eq!(hello["snapshot"]["stateVersion"], json!({ "presence": 0, "health": 0 }));
        assert!(hello["server"]["connId"].is_string() && hello["features"]["methods"].is_array(), "{hello}");
    }
    assert_eq!(gate.get("", "/").status, 404);
}
