//! Every example of the hub's document as it is given there, and the answer it shows; ids and times aside.

use serde_json::{Value, json};

use super::{Device, ask_over_http};
use crate::support::{Gate, id_of};

const CLIENT: &str = "019444a0-0000-7000-8000-00000000c11e";

/// The step's JSON with this connection's ids in it.
fn filled(text: &str, client: &Device, approval: &str) -> Value {
    let text = text
        .replace("<clientDeviceId>", &client.id)
        .replace("<hubDeviceId>", &client.hub)
        .replace("019444a0-1234-7abc-8000-abcdef123456", approval);
    serde_json::from_str(&text).unwrap()
}

fn is_uuid_v7(id: &Value) -> bool {
    let id = id.as_str().unwrap();
    id.len() == 36 && id.as_bytes()[14] == b'7' && id.split('-').map(str::len).eq([8, 4, 4, 4, 12])
}

#[test]
fn every_step_of_the_guide_is_as_it_is_written() {
    let gate = Gate::start();
    let (agent, ann) = (gate.key("agent", "bot"), gate.key("approver", "ann"));
    let mut client = Device::approver(&gate, CLIENT, &ann);
    let verified = client.ok("verify", &json!({}));
    assert_eq!(verified["hubId"], client.hub.as_str());

    let asked = gate
        .post(
            &agent,
            "/v1/approvals",
            &json!({"session_id": "s1", "agent_id": "019444a0-5678-7def-8000-123456abcdef",
                "command": "rm -rf /tmp/test-data", "cwd": "/Users/alice/projects/my-app"}),
        )
        .expect(200);
    let id = id_of(&asked);

    let step_1 = filled(
        r#"{
          "id": "019444a0-0000-7000-8000-000000000001",
          "from": "<hubDeviceId>",
          "to": "<clientDeviceId>",
          "action": "exec-approval-request",
          "payload": {
            "approvalId": "019444a0-1234-7abc-8000-abcdef123456",
            "agentId": "019444a0-5678-7def-8000-123456abcdef",
            "command": "rm -rf /tmp/test-data",
            "cwd": "/Users/alice/projects/my-app",
            "riskLevel": "dangerous",
            "riskReasons": [
              "Matches dangerous pattern: rm with -r or -f flags",
              "Uses recursive/force deletion flags"
            ],
            "expiresAtMs": 1738700060000
          }
        }"#,
        &client,
        &id,
    );
    let pushed = client.pushed("exec-approval-request", |_| true);
    assert!(is_uuid_v7(&pushed["id"]), "{pushed}");
    for field in ["from", "to", "action"] {
        assert_eq!(pushed[field], step_1[field]);
    }
    for (field, given) in step_1["payload"].as_object().unwrap() {
        let sent = &pushed["payload"][field];
        match field.as_str() {
            "riskReasons" => {
                let reasons = sent.as_array().unwrap();
                assert!(!reasons.is_empty() && reasons.iter().all(Value::is_string), "{sent}");
            }
            "expiresAtMs" => assert!(sent.as_i64().unwrap() > given.as_i64().unwrap()),
            _ => assert_eq!(sent, given, "{field}"),
        }
    }

    let step_2 = filled(
        r#"{
          "id": "019444a0-0000-7000-8000-000000000002",
          "from": "<clientDeviceId>",
          "to": "<hubDeviceId>",
          "action": "request",
          "payload": {
            "requestId": "client-req-001",
            "method": "resolveExecApproval",
            "params": {
              "approvalId": "019444a0-1234-7abc-8000-abcdef123456",
              "decision": "allow-once"
            }
          }
        }"#,
        &client,
        &id,
    );
    client.say("send", &step_2);
    let step_3 = filled(
        r#"{
          "id": "019444a0-0000-7000-8000-000000000003",
          "from": "<hubDeviceId>",
          "to": "<clientDeviceId>",
          "action": "response",
          "payload": { "requestId": "client-req-001", "ok": true, "payload": { "ok": true } }
        }"#,
        &client,
        &id,
    );
    assert_answers(&mut client, &step_3);
    assert_eq!(gate.get(&agent, &format!("/v1/approvals/{id}")).expect(200)["status"], "approved");

    client.say("send", &step_2);
    let step_4 = filled(
        r#"{
          "id": "019444a0-0000-7000-8000-000000000004",
          "from": "<hubDeviceId>",
          "to": "<clientDeviceId>",
          "action": "response",
          "payload": {
            "requestId": "client-req-001",
            "ok": false,
            "error": { "code": "NOT_FOUND", "message": "Approval request not found or already resolved" }
          }
        }"#,
        &client,
        &id,
    );
    assert_answers(&mut client, &step_4);
}

#[track_caller]
fn assert_answers(client: &mut Device, given: &Value) {
    let answer = client.pushed("response", |_| true);
    assert!(is_uuid_v7(&answer["id"]), "{answer}");
    for field in ["from", "to", "action", "payload"] {
        assert_eq!(answer[field], given[field], "{field}");
    }
}

#[test]
fn each_decision_does_what_the_table_says() {
    let gate = Gate::start();
    let (agent, ann) = (gate.key("agent", "bot"), gate.key("approver", "ann"));
    let mut client = Device::approver(&gate, CLIENT, &ann);
    for (decision, status, again) in
        [("allow-once", "approved", "pending"), ("deny", "denied", "pending"), ("allow-always", "approved", "approved")]
    {
        let command = format!("touch ./{decision}");
        let id = id_of(&ask_over_http(&gate, &agent, &command));
        client.card(&command);
        assert_eq!(client.resolve(&json!(id), decision)["payload"], json!({"ok": true}), "{decision}");
        assert_eq!(gate.get(&agent, &format!("/v1/approvals/{id}")).expect(200)["status"], status);
        assert_eq!(ask_over_http(&gate, &agent, &command)["status"], again, "{decision}");
        let ending = client.ending(&id);
        assert_eq!((&ending["decision"], &ending["resolvedBy"]), (&json!(decision), &json!("ann")));
    }
}

#[test]
fn the_default_time_to_answer_is_a_minute_and_then_it_is_no() {
    let gate = Gate::start();
    let (agent, ann) = (gate.key("agent", "bot"), gate.key("approver", "ann"));
    let mut client = Device::approver(&gate, CLIENT, &ann);
    let mut bot = Device::agent(&gate, "bot-1", &agent);
    bot.ask("requestExecApproval", &json!({"command": "rm -rf ./a"}));
    let card = client.card("rm -rf ./a");
    let record = gate.get(&ann, &format!("/v1/approvals/{}", card["approvalId"].as_str().unwrap())).expect(200);
    let open = record["expires_at"].as_i64().unwrap() - record["created_at"].as_i64().unwrap();
    assert!((60..=61).contains(&open), "{record}");
    let late = bot.ok("requestExecApproval", &json!({"command": "rm -rf ./b", "timeoutMs": 1000}));
    assert_eq!((&late["decision"], &late["reason"]), (&json!("deny"), &json!("expired")));
}

#[test]
fn each_fallback_does_what_the_table_says() {
    let gate = Gate::start();
    let ann = gate.key("approver", "ann");
    let _client = Device::approver(&gate, CLIENT, &ann);
    for (fallback, command, decision) in [
        ("deny", "rm -rf ./x", "deny"),
        ("full", "touch ./x", "allow-once"),
        ("allowlist", "touch ./x", "deny"),
        ("allowlist", "pnpm build", "allow-once"),
    ] {
        let policy = json!({"version": 1, "ask": "always", "askFallback": fallback,
            "allowlist": [{"pattern": "git **"}, {"pattern": "pnpm **"}]});
        gate.put_policy(&format!("p-{fallback}"), &policy);
        let key = gate.key_in("agent", &format!("bot-{fallback}"), &format!("p-{fallback}"));
        let mut bot = Device::agent(&gate, &format!("d-{fallback}-{decision}"), &key);
        let answer = bot.ok("requestExecApproval", &json!({"command": command, "timeoutMs": 1000}));
        assert_eq!(answer["decision"], decision, "{fallback} {command}: {answer}");
    }
}
