//! Threat 90: one yes, used once, by whichever door. Gateway, forwarding and hub use it up by telling the requester; HTTP
//! has a verb for it.

use serde_json::{Value, json};

use crate::hub::Device;
use crate::support::Gate;
use crate::websocket::Client;

struct Cast {
    gate: Gate,
    key: String,
    ann: String,
}

fn cast() -> Cast {
    let gate = Gate::start();
    let (key, ann) = (gate.key("agent", "bot"), gate.key("approver", "ann"));
    Cast { gate, key, ann }
}

impl Cast {
    fn post(&self, key: &str, id: &str, verb: &str, body: Option<&Value>) -> crate::support::Answer {
        self.gate.call("POST", &format!("/v1/approvals/{id}/{verb}"), key, body)
    }

    fn decide(&self, id: &str, decision: &str) {
        self.post(&self.ann, id, "decision", Some(&json!({ "decision": decision }))).expect(200);
    }

    #[track_caller]
    fn used(&self, id: &str) {
        self.post(&self.key, id, "consume", None).expect_error(409, "already_consumed");
    }

    fn agent(&self) -> Client {
        Client::connect(&self.gate, &self.key)
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

fn ask(client: &mut Client, command: &str) -> (String, String) {
    let asked = client.request("exec.approval.request", json!({ "command": command, "twoPhase": true }));
    let id = text(&client.answer(&asked).unwrap()["approvalId"]);
    (asked, id)
}

#[test]
fn threat_90_told_over_the_gateway_it_cannot_be_consumed_over_http() {
    for decision in ["allow-once", "allow-always"] {
        let cast = cast();
        let mut agent = cast.agent();
        let (asked, id) = ask(&mut agent, "npm ci");
        cast.decide(&id, decision);
        assert_eq!(agent.answer(&asked).unwrap()["decision"], decision);
        cast.used(&id);
        // Telling the same again uses nothing: here, on another connection, and after the gate was killed.
        for mut client in [agent, cast.agent()] {
            let again = client.call("exec.approval.waitDecision", json!({ "id": id })).unwrap();
            assert_eq!((&again["decision"], &again["reason"]), (&json!(decision), &json!("person")));
        }
        cast.used(&id);
        let seen = cast.gate.get(&cast.key, &format!("/v1/approvals/{id}")).expect(200);
        assert_eq!((&seen["status"], seen["consumed_at"].is_i64()), (&json!("approved"), true));
    }
}

#[test]
fn threat_90_what_policy_allows_at_once_is_used_up_as_it_is_told() {
    let cast = cast();
    let mut agent = cast.agent();
    let ruled = agent.call("exec.approval.request", json!({ "id": "look", "command": "git status" })).unwrap();
    assert_eq!(ruled["decision"], "allow-once");
    cast.used(&text(&ruled["approvalId"]));
    assert_eq!(agent.call("exec.approval.waitDecision", json!({ "id": "look" })).unwrap()["decision"], "allow-once");
    // Over HTTP it stays to be used, once; and with `consume` it is used with the answer.
    let asked = |body: Value| text(&cast.gate.post(&cast.key, "/v1/approvals", &body).expect(200)["approval_id"]);
    let id = asked(json!({ "session_id": "s", "command": "git status" }));
    cast.post(&cast.key, &id, "consume", None).expect(200);
    cast.used(&id);
    let id = asked(json!({ "session_id": "s", "command": "git status", "consume": true }));
    cast.used(&id);
    let told = agent.call("exec.approval.waitDecision", json!({ "id": id })).unwrap();
    assert_eq!((&told["decision"], &told["reason"]), (&json!("deny"), &json!("already_used")));
}

#[test]
fn threat_90_consumed_over_http_first_the_other_doors_say_no() {
    let cast = cast();
    let mut agent = cast.agent();
    let (asked, id) = ask(&mut agent, "npm ci");
    drop(agent);
    // Nobody is there to be told.
    cast.decide(&id, "allow-once");
    let seen = cast.gate.get(&cast.key, &format!("/v1/approvals/{id}?wait=10")).expect(200);
    assert_eq!(
        (&seen["status"], &seen["consumed_at"]),
        (&json!("approved"), &Value::Null),
        "reading is not using: {asked}"
    );
    // A person who looks uses nothing either.
    let mut ann = Client::connect(&cast.gate, &cast.ann);
    assert_eq!(ann.call("exec.approval.waitDecision", json!({ "id": id })).unwrap()["decision"], "allow-once");
    cast.post(&cast.key, &id, "consume", None).expect(200);
    let mut agent = cast.agent();
    for _ in 0..2 {
        let told = agent.call("exec.approval.waitDecision", json!({ "id": id })).unwrap();
        assert_eq!((&told["decision"], &told["reason"]), (&json!("deny"), &json!("already_used")));
    }
    cast.used(&id);
}

#[test]
fn threat_90_asked_over_http_and_heard_over_the_gateway_it_is_one_yes() {
    let cast = cast();
    let mut agent = cast.agent();
    let ask = || {
        let asked = cast.gate.post(&cast.key, "/v1/approvals", &json!({ "session_id": "s", "command": "npm ci" }));
        text(&asked.expect(200)["approval_id"])
    };
    let id = ask();
    assert_eq!(agent.event("exec.approval.requested")["approvalId"], json!(id));
    cast.decide(&id, "allow-once");
    // What is pushed is no way round: a yes that nobody was told is not pushed to its requester.
    agent.call("health", json!({})).unwrap();
    assert_eq!(agent.unheard(), Vec::<&str>::new());
    assert_eq!(agent.call("exec.approval.waitDecision", json!({ "id": id })).unwrap()["decision"], "allow-once");
    assert_eq!(agent.event("exec.approval.resolved")["decision"], "allow-once");
    cast.used(&id);
    let id = ask();
    agent.event("exec.approval.requested");
    cast.decide(&id, "deny");
    assert_eq!(agent.event("exec.approval.resolved")["decision"], "deny");
    cast.post(&cast.key, &id, "consume", None).expect_error(409, "not_approved");
}

#[test]
fn threat_90_the_hub_and_the_other_doors_share_one_yes() {
    let cast = cast();
    let (mut phone, mut bot) =
        (Device::approver(&cast.gate, "phone", &cast.ann), Device::agent(&cast.gate, "bot-1", &cast.key));
    let asked = bot.ask("requestExecApproval", &json!({ "command": "npm ci" }));
    let id = text(&phone.card("npm ci")["approvalId"]);
    phone.resolve(&json!(id), "allow-once");
    assert_eq!(bot.answer(&asked)["payload"]["decision"], "allow-once");
    cast.used(&id);
    let ruled = bot.ok("requestExecApproval", &json!({ "command": "git log -1" }));
    cast.used(&text(&ruled["approvalId"]));
    // Denied is nothing to use.
    let asked = bot.ask("requestExecApproval", &json!({ "command": "npm publish" }));
    let id = text(&phone.card("npm publish")["approvalId"]);
    phone.resolve(&json!(id), "deny");
    assert_eq!(bot.answer(&asked)["payload"]["decision"], "deny");
    cast.post(&cast.key, &id, "consume", None).expect_error(409, "not_approved");
}

#[test]
fn threat_90_a_forwarded_yes_is_used_up_as_the_other_gate_is_told() {
    let cast = cast();
    let mut gate_below = cast.agent();
    let params = json!({
        "id": "fwd_1", "action": { "kind": "exec", "command": "npm ci" }, "actionType": "exec_cmd", "sessionId": "s",
        "expiresInMs": 60_000, "path": ["elsewhere"],
    });
    let asked = gate_below.request("forward.request", params.clone());
    let id = text(&gate_below.answer(&asked).unwrap()["approvalId"]);
    cast.decide(&id, "allow-once");
    assert_eq!(gate_below.answer(&asked).unwrap()["status"], "approved");
    cast.used(&id);
    assert_eq!(gate_below.call("forward.request", params.clone()).unwrap()["status"], "approved");
    // Used by another way first.
    let mut other = params;
    other["id"] = json!("fwd_2");
    let asked = gate_below.request("forward.request", other.clone());
    let id = text(&gate_below.answer(&asked).unwrap()["approvalId"]);
    drop(gate_below);
    cast.decide(&id, "allow-once");
    cast.post(&cast.key, &id, "consume", None).expect(200);
    let told = cast.agent().call("forward.request", other).unwrap();
    assert_eq!((&told["status"], &told["reason"]), (&json!("denied"), &json!("already_used")));
}

#[test]
fn threat_90_a_gate_that_dies_between_the_yes_and_the_telling_gives_it_once() {
    for consumed_over_http in [false, true] {
        let mut cast = cast();
        let mut agent = cast.agent();
        let (_, id) = ask(&mut agent, "npm ci");
        drop(agent);
        cast.decide(&id, "allow-once");
        cast.gate.kill();
        cast.gate.restart();
        if consumed_over_http {
            cast.post(&cast.key, &id, "consume", None).expect(200);
        }
        let told = cast.agent().call("exec.approval.waitDecision", json!({ "id": id })).unwrap();
        let expected = if consumed_over_http { ("deny", "already_used") } else { ("allow-once", "person") };
        assert_eq!((told["decision"].as_str().unwrap(), told["reason"].as_str().unwrap()), expected);
        cast.used(&id);
        // And between the transaction and the frame: what was told is told again, and is used all the same.
        cast.gate.kill();
        cast.gate.restart();
        let again = cast.agent().call("exec.approval.waitDecision", json!({ "id": id })).unwrap();
        assert_eq!((again["decision"].as_str().unwrap(), again["reason"].as_str().unwrap()), expected);
        cast.used(&id);
        assert!(cast.gate.cli(&["audit", "verify"]).status.success());
    }
}

#[test]
fn threat_90_policy_that_changed_since_takes_the_yes_away_on_every_door() {
    let cast = cast();
    let mut agent = cast.agent();
    let (_, id) = ask(&mut agent, "npm ci");
    drop(agent);
    cast.decide(&id, "allow-once");
    cast.gate.put_policy("default", &json!({ "version": 1, "deny": [{ "pattern": "npm **" }] }));
    let told = cast.agent().call("exec.approval.waitDecision", json!({ "id": id })).unwrap();
    assert_eq!((&told["decision"], &told["reason"]), (&json!("deny"), &json!("changed_since_approval")));
    cast.post(&cast.key, &id, "consume", None).expect_error(409, "changed_since_approval");
}
