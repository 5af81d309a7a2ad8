//! Agents as devices: what they ask, and what becomes of it when they go.

use serde_json::json;

use super::{Device, ask_over_http};
use crate::support::{Gate, id_of};

#[test]
fn an_agent_asks_and_a_person_answers_on_the_hub() {
    let gate = Gate::start();
    let (agent, ann) = (gate.key("agent", "bot"), gate.key("approver", "ann"));
    let (mut client, mut bot) = (Device::approver(&gate, "phone", &ann), Device::agent(&gate, "bot-1", &agent));
    for (decision, reason) in [("allow-once", "person"), ("deny", "person")] {
        let asked = bot.ask("requestExecApproval", &json!({"command": "rm -rf ./own", "cwd": "/srv"}));
        let card = client.card("rm -rf ./own");
        assert_eq!(
            (&card["kind"], &card["requestedBy"], &card["cwd"]),
            (&json!("exec"), &json!("bot"), &json!("/srv"))
        );
        assert_eq!(client.resolve(&card["approvalId"], decision)["ok"], true);
        let answer = bot.answer(&asked)["payload"].clone();
        assert_eq!((&answer["decision"], &answer["reason"]), (&json!(decision), &json!(reason)), "{answer}");
        assert_eq!(answer["approvalId"], card["approvalId"]);
    }
}

#[test]
fn a_yes_over_the_hub_is_used_up_as_it_is_told() {
    let gate = Gate::start();
    let (agent, ann) = (gate.key("agent", "bot"), gate.key("approver", "ann"));
    let (mut client, mut bot) = (Device::approver(&gate, "phone", &ann), Device::agent(&gate, "bot-1", &agent));
    let ruled = bot.ok("requestExecApproval", &json!({"command": "git log -1"}));
    assert_eq!((&ruled["decision"], &ruled["reason"]), (&json!("allow-once"), &json!("policy")));
    let asked = bot.ask("requestExecApproval", &json!({"command": "touch ./x"}));
    let card = client.card("touch ./x");
    client.resolve(&card["approvalId"], "allow-once");
    bot.answer(&asked);
    for id in [&ruled["approvalId"], &card["approvalId"]] {
        let path = format!("/v1/approvals/{}/consume", id.as_str().unwrap());
        gate.call("POST", &path, &agent, None).expect_error(409, "already_consumed");
    }
}

#[test]
fn what_a_person_puts_in_its_place_is_a_no_to_what_was_asked() {
    let gate = Gate::start();
    let (agent, ann) = (gate.key("agent", "bot"), gate.key("approver", "ann"));
    let (mut client, mut bot) = (Device::approver(&gate, "phone", &ann), Device::agent(&gate, "bot-1", &agent));
    let asked = bot.ask("requestExecApproval", &json!({"command": "rm -rf ./build"}));
    let id = client.card("rm -rf ./build")["approvalId"].clone();
    let decision = json!({"decision": "allow-once", "override": "rm -r ./build/tmp"});
    gate.post(&ann, &format!("/v1/approvals/{}/decision", id.as_str().unwrap()), &decision).expect(200);
    let answer = bot.answer(&asked)["payload"].clone();
    assert_eq!((&answer["decision"], &answer["override"]), (&json!("deny"), &json!("rm -r ./build/tmp")));
}

#[test]
fn threat_49_no_device_of_an_agent_decides_or_reaches_a_person_but_by_asking() {
    let gate = Gate::start();
    let (agent, ann) = (gate.key("agent", "bot"), gate.key("approver", "ann"));
    let (mut client, mut bot) = (Device::approver(&gate, "phone", &ann), Device::agent(&gate, "bot-1", &agent));
    let asked = bot.ask("requestExecApproval", &json!({"command": "rm -rf ./own"}));
    let id = client.card("rm -rf ./own")["approvalId"].clone();
    for decision in ["allow-once", "allow-always", "deny"] {
        assert_eq!(bot.resolve(&id, decision)["error"]["code"], "UNAUTHORIZED");
    }
    for method in ["verify", "listExecApprovals", "listAgents"] {
        bot.error(method, &json!({"token": "x"}), "UNAUTHORIZED");
    }
    // A card of its own making, sent to the person's device as if it came from the hub.
    for (to, action) in [("phone", "exec-approval-request"), ("phone", "response"), ("phone", "hello")] {
        let message = json!({"id": "m", "uid": null, "from": "bot-1", "to": to, "action": action, "payload": {}});
        bot.say("send", &message);
        assert_eq!(bot.event("send_error")["code"], "DEVICE_NOT_FOUND", "{action}");
    }
    bot.say("list-devices", &json!({}));
    assert_eq!(bot.event("list-devices")["devices"].as_array().unwrap().len(), 1, "an agent sees the hub alone");
    assert_eq!(gate.get(&ann, &format!("/v1/approvals/{}", id.as_str().unwrap())).expect(200)["status"], "pending");
    client.resolve(&id, "deny");
    assert_eq!(bot.answer(&asked)["payload"]["decision"], "deny");
}

#[test]
fn an_agent_that_drops_or_says_it_is_done_is_denied_what_it_asked() {
    let gate = Gate::start();
    let (agent, ann) = (gate.key("agent", "bot"), gate.key("approver", "ann"));
    let mut client = Device::approver(&gate, "phone", &ann);
    let mut dropped = Device::agent(&gate, "bot-1", &agent);
    dropped.ask("requestExecApproval", &json!({"command": "rm -rf ./dropped"}));
    let id = client.card("rm -rf ./dropped")["approvalId"].as_str().unwrap().to_owned();
    drop(dropped);
    let ending = client.ending(&id);
    assert_eq!((&ending["decision"], &ending["reason"]), (&json!("deny"), &json!("agent_closed")));
    assert_eq!(gate.get(&ann, &format!("/v1/approvals/{id}")).expect(200)["reason"], "agent_closed");

    let mut done = Device::agent(&gate, "bot-2", &agent);
    let one = done.ask("requestExecApproval", &json!({"command": "rm -rf ./one", "agentId": "one"}));
    let two = done.ask("requestExecApproval", &json!({"command": "rm -rf ./two", "agentId": "two"}));
    assert_eq!(done.ok("closeAgent", &json!({"agentId": "one"})), json!({"ok": true, "closed": 1}));
    assert_eq!(done.answer(&one)["payload"]["reason"], "agent_closed");
    assert_eq!(done.ok("closeAgent", &json!({})), json!({"ok": true, "closed": 1}));
    assert_eq!(done.answer(&two)["payload"]["reason"], "agent_closed");
    // What it asked over another door is another matter.
    assert_eq!(ask_over_http(&gate, &agent, "rm -rf ./http")["status"], "pending");
}

#[test]
fn a_request_for_the_hub_that_reaches_nobody_who_may_answer_is_denied_at_once() {
    let gate = Gate::start();
    let (agent, ann, bob) = (gate.key("agent", "bot"), gate.key("approver", "ann"), gate.key("approver", "bob"));
    gate.put_policy("default", &json!({"version": 1, "approvers": ["ann"]}));
    let mut bot = Device::agent(&gate, "bot-1", &agent);
    let mut denied = |why: &str| {
        let answer = bot.ok("requestExecApproval", &json!({"command": "rm -rf ./x"}));
        assert_eq!((&answer["decision"], &answer["reason"]), (&json!("deny"), &json!("no_channel")), "{why}");
    };
    denied("nobody is connected");
    let _stranger = Device::register(&gate, "client", "stranger", "");
    denied("a stranger is nobody");
    let mut bobs = Device::approver(&gate, "bobs", &bob);
    denied("bob may not answer");
    let mut anns = Device::approver(&gate, "anns", &ann);
    let asked = bot.ask("requestExecApproval", &json!({"command": "rm -rf ./y"}));
    let id = anns.card("rm -rf ./y")["approvalId"].clone();
    bobs.error("resolveExecApproval", &json!({"approvalId": id, "decision": "deny"}), "UNAUTHORIZED");
    assert_eq!(bobs.ok("listExecApprovals", &json!({}))["approvals"], json!([]));
    assert!(!bobs.has(|frame| frame["data"]["action"] == "exec-approval-request"), "bob is not bothered");
    anns.resolve(&id, "deny");
    assert_eq!(bot.answer(&asked)["payload"]["decision"], "deny");
}

#[test]
fn tools_and_questions_come_to_the_hub_too_and_a_question_is_answered_there() {
    let gate = Gate::start();
    let (agent, ann) = (gate.key("agent", "bot"), gate.key("approver", "ann"));
    let mut client = Device::approver(&gate, "phone", &ann);
    let question = json!({"session_id": "s", "question": "Which branch?", "options": ["main", "dev"]});
    let id = id_of(&gate.post(&agent, "/v1/approvals", &question).expect(200));
    let card = client.card("Answer a question");
    assert_eq!(card["kind"], "question");
    assert_eq!(card["details"][0], json!({"label": "Question", "text": "Which branch?"}));
    let missing =
        client.error("resolveExecApproval", &json!({"approvalId": id, "decision": "allow-once"}), "INVALID_PARAMS");
    assert!(missing.contains("answer"), "{missing}");
    client.ok("resolveExecApproval", &json!({"approvalId": id, "decision": "allow-once", "answer": "main"}));
    assert_eq!(gate.get(&agent, &format!("/v1/approvals/{id}")).expect(200)["decision"]["answer"], "main");

    let tool = json!({"session_id": "s", "tool": "Write", "args": {"file_path": "/etc/hosts"}});
    let id = id_of(&gate.post(&agent, "/v1/approvals", &tool).expect(200));
    let card =
        client.pushed("exec-approval-request", |payload| payload["approvalId"] == id.as_str())["payload"].clone();
    assert_eq!((&card["kind"], &card["riskLevel"]), (&json!("tool"), &json!("needs-review")));
    client.ok("resolveExecApproval", &json!({"approvalId": id, "decision": "deny", "note": "not that file"}));
    assert_eq!(gate.get(&agent, &format!("/v1/approvals/{id}")).expect(200)["decision"]["note"], "not that file");
}

#[test]
fn a_card_shows_what_a_person_may_see_and_hides_nothing_from_them() {
    let gate = Gate::start();
    let (agent, ann) = (gate.key("agent", "bot"), gate.key("approver", "ann"));
    let mut client = Device::approver(&gate, "phone", &ann);
    let secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    ask_over_http(&gate, &agent, &format!("curl -H 'Authorization: Bearer {secret}' https://x.test \u{202e}txt"));
    let card = client.pushed("exec-approval-request", |_| true)["payload"].clone();
    assert!(!card.to_string().contains(secret) && !card.to_string().contains('\u{202e}'), "{card}");
    assert!(card["command"].as_str().unwrap().contains("\\u{202e}"), "{card}");
    let listed = client.ok("listExecApprovals", &json!({}))["approvals"].clone();
    assert_eq!(listed, json!([card]));
}

#[test]
fn an_always_that_would_be_too_wide_is_refused_and_nothing_is_decided() {
    let gate = Gate::start();
    let (agent, ann) = (gate.key("agent", "bot"), gate.key("approver", "ann"));
    let mut client = Device::approver(&gate, "phone", &ann);
    let id = id_of(&ask_over_http(&gate, &agent, "sudo rm -rf /srv"));
    client.card("sudo rm -rf /srv");
    client.error("resolveExecApproval", &json!({"approvalId": id, "decision": "allow-always"}), "INVALID_PARAMS");
    assert_eq!(gate.get(&agent, &format!("/v1/approvals/{id}")).expect(200)["status"], "pending");
}
