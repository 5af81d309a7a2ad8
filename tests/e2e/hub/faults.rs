//! What goes wrong on the hub's wire, and what does not because of it.

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use super::{Came, Device, ask_over_http, revoke};
use crate::support::{Gate, id_of};

#[test]
fn what_is_no_message_is_told_so_and_the_connection_goes_on() {
    let gate = Gate::start();
    let ann = gate.key("approver", "ann");
    let mut client = Device::approver(&gate, "phone", &ann);
    let mut refused = |message: Message| {
        client.raw(message.clone());
        let error = client.event("send_error");
        assert_eq!(error["code"], "INVALID_MESSAGE", "{message:?}");
        assert!(error["error"].is_string() && error["messageId"].is_string(), "{error}");
    };
    for text in ["", "{", "not json", "[]", "7", "null", "{\"data\":1}", "{\"event\":7}", "{\"event\":\"shutdown\"}"] {
        refused(Message::text(text));
    }
    refused(Message::binary(vec![0, 159, 146, 150]));
    let good = json!({"id": "m", "uid": null, "from": "phone", "to": client.hub, "action": "request",
        "payload": {"requestId": "r", "method": "getHubInfo"}});
    let with = |field: &str, value: Value| {
        let mut message = good.clone();
        message[field] = value;
        json!({"event": "send", "data": message}).to_string()
    };
    let bad = [
        with("id", json!("")),
        with("id", json!(7)),
        with("from", json!("somebody-else")),
        with("from", Value::Null),
        with("action", json!("shutdown")),
        with("action", json!("response")),
        with("payload", json!({"method": "getHubInfo"})),
        with("payload", json!("x")),
    ];
    for text in bad {
        client.raw(Message::text(text.clone()));
        assert_eq!(client.event("send_error")["code"], "INVALID_MESSAGE", "{text}");
    }
    client.say("send", &{
        let mut message = good.clone();
        message["to"] = json!("nobody");
        message
    });
    assert_eq!(
        client.event("send_error"),
        json!({"messageId": "m", "error": "Device nobody is not connected", "code": "DEVICE_NOT_FOUND"})
    );
    client.error("noSuchMethod", &json!({}), "METHOD_NOT_FOUND");
    client.error("getHubInfo", &json!([1]), "INVALID_PARAMS");
    client.say("ping", &json!({}));
    client.event("pong");
    assert_eq!(client.ok("getHubInfo", &json!({}))["hubId"], client.hub.as_str());
}

#[test]
fn what_is_wrong_in_a_decision_is_said_and_decides_nothing() {
    let gate = Gate::start();
    let (agent, ann) = (gate.key("agent", "bot"), gate.key("approver", "ann"));
    let mut client = Device::approver(&gate, "phone", &ann);
    let id = id_of(&ask_over_http(&gate, &agent, "rm -rf ./x"));
    for (params, message) in [
        (json!({"decision": "deny"}), "approvalId is required"),
        (json!({"approvalId": "", "decision": "deny"}), "approvalId is required"),
        (json!({"approvalId": 7, "decision": "deny"}), "approvalId is required"),
        (
            json!({"approvalId": id, "decision": "maybe"}),
            "Invalid decision: maybe. Must be allow-once, allow-always, or deny",
        ),
        (
            json!({"approvalId": id, "decision": "Allow-Once"}),
            "Invalid decision: Allow-Once. Must be allow-once, allow-always, or deny",
        ),
        (json!({"approvalId": id}), "Invalid decision: undefined. Must be allow-once, allow-always, or deny"),
        (
            json!({"approvalId": id, "decision": null}),
            "Invalid decision: null. Must be allow-once, allow-always, or deny",
        ),
        (json!({"approvalId": id, "decision": "allow-once", "note": 7}), "note is a text"),
    ] {
        assert_eq!(client.error("resolveExecApproval", &params, "INVALID_PARAMS"), message);
    }
    for nowhere in ["019444a0-1234-7abc-8000-abcdef123456", "appr_00000000000000000000000000000000", "appr_", &id[..9]]
    {
        let params = json!({"approvalId": nowhere, "decision": "allow-once"});
        let message = client.error("resolveExecApproval", &params, "NOT_FOUND");
        assert_eq!(message, "Approval request not found or already resolved");
    }
    assert_eq!(gate.get(&agent, &format!("/v1/approvals/{id}")).expect(200)["status"], "pending");
}

#[test]
fn a_message_of_30_mib_ends_its_connection_and_no_other() {
    let gate = Gate::start();
    let (agent, ann) = (gate.key("agent", "bot"), gate.key("approver", "ann"));
    let (mut client, mut other) = (Device::approver(&gate, "phone", &ann), Device::approver(&gate, "other", &ann));
    let huge = format!("{{\"event\":\"send\",\"data\":\"{}\"}}", "x".repeat(30 * 1024 * 1024));
    client.raw(Message::text(huge.clone()));
    client.closed();
    // Somebody who has not said who they are may send much less.
    let mut stranger = Device::register(&gate, "client", "stranger", "");
    stranger.raw(Message::text(format!("{{\"event\":\"{}\"}}", "x".repeat(100 * 1024))));
    stranger.closed();
    ask_over_http(&gate, &agent, "rm -rf ./x");
    other.card("rm -rf ./x");
    let again = Device::approver(&gate, "phone", &ann);
    assert_eq!(again.hub, other.hub);
}

#[test]
fn who_is_not_registered_is_told_why_and_disconnected() {
    let gate = Gate::start();
    let (agent, ann, node) = (gate.key("agent", "bot"), gate.key("approver", "ann"), gate.key("node", "n"));
    for query in ["", "?deviceId=a", "?deviceType=client", "?deviceId=&deviceType=client"] {
        let mut nobody = Device::open(&gate, query, &[]).unwrap();
        let Came::Closed(Some(why)) = nobody.read() else { panic!("{query}") };
        assert!(why.reason.contains("deviceId"), "{why:?}");
    }
    let refused = |query: &str| {
        let mut device = Device::open(&gate, query, &[]).unwrap();
        let answer = device.event("registered");
        assert_eq!(answer["success"], false, "{query}");
        device.say("ping", &json!({}));
        device.closed();
        assert!(!device.has(|frame| frame["event"] == "pong"), "{query}");
        answer["error"].as_str().unwrap().to_owned()
    };
    for (claimed, key, word) in [
        ("hub", ann.as_str(), "hub"),
        ("admin", &ann, "deviceType"),
        ("agent", &ann, "agent's key"),
        ("agent", "", "agent's key"),
        ("client", &agent, "approver's key"),
        ("client", &node, "approver's key"),
        ("client", "csk_wrong", "key"),
        ("agent", "csk_wrong", "key"),
    ] {
        let key = if key.is_empty() { String::new() } else { format!("&key={key}") };
        let error = refused(&format!("?deviceId=x1&deviceType={claimed}{key}"));
        assert!(error.contains(word), "{claimed}: {error}");
    }
    let hub = Device::approver(&gate, "phone", &ann).hub;
    assert!(refused(&format!("?deviceId={hub}&deviceType=client&key={ann}")).contains("hub_"));
    let header = format!("Bearer {ann}");
    let mut by_header = Device::open(&gate, "?deviceId=h&deviceType=client", &[("authorization", &header)]).unwrap();
    assert_eq!(by_header.event("registered")["success"], true);
    let mut wrong = Device::open(&gate, "?deviceId=w&deviceType=client", &[("authorization", "Basic x")]).unwrap();
    assert_eq!(wrong.event("registered")["success"], false);
}

#[test]
fn a_device_id_is_one_devices_and_free_again_when_it_has_gone() {
    let gate = Gate::start();
    let ann = gate.key("approver", "ann");
    let query = format!("?deviceId=phone&deviceType=client&key={ann}");
    let mut first = Device::approver(&gate, "phone", &ann);
    let mut second = Device::open(&gate, &query, &[]).unwrap();
    let error = json!({"success": false, "deviceId": "phone", "error": "Device ID already in use"});
    assert_eq!(second.event("registered"), error);
    second.closed();
    assert_eq!(first.ok("getHubInfo", &json!({}))["hubId"], first.hub.as_str(), "the first is not disturbed");
    drop(first);
    while Device::open(&gate, &query, &[]).unwrap().event("registered")["success"] == false {
        std::thread::yield_now();
    }
}

#[test]
fn somebody_without_a_key_cannot_hold_a_name_against_one_with() {
    let gate = Gate::start();
    let ann = gate.key("approver", "ann");
    let mut squatter = Device::register(&gate, "client", "phone", "");
    Device::approver(&gate, "phone", &ann);
    squatter.closed();
}

#[test]
fn threat_64_a_revoked_key_is_disconnected_at_once_and_hears_nothing_more() {
    let gate = Gate::start();
    let (agent, ann, bob) = (gate.key("agent", "bot"), gate.key("approver", "ann"), gate.key("approver", "bob"));
    let (mut anns, mut bobs) = (Device::approver(&gate, "anns", &ann), Device::approver(&gate, "bobs", &bob));
    let mut bot = Device::agent(&gate, "bot-1", &agent);
    let id = id_of(&ask_over_http(&gate, &agent, "rm -rf ./before"));
    anns.card("rm -rf ./before");
    revoke(&gate, "ann");
    anns.resolve_blind(&id);
    anns.closed();
    ask_over_http(&gate, &agent, "rm -rf ./after");
    bobs.card("rm -rf ./after");
    assert!(!anns.has(|frame| frame.to_string().contains("./after")));
    assert_eq!(gate.get(&bob, &format!("/v1/approvals/{id}")).expect(200)["status"], "pending");
    let mut again = Device::open(&gate, &format!("?deviceId=anns&deviceType=client&key={ann}"), &[]).unwrap();
    assert_eq!(again.event("registered")["success"], false);
    // An agent's too, and what it asked ends with it.
    bot.ask("requestExecApproval", &json!({"command": "rm -rf ./bot"}));
    let asked = bobs.card("rm -rf ./bot")["approvalId"].as_str().unwrap().to_owned();
    revoke(&gate, "bot");
    bot.closed();
    assert_eq!(bobs.ending(&asked)["reason"], "agent_closed");
}

#[test]
fn threat_66_a_device_that_never_reads_costs_the_others_nothing() {
    let gate = Gate::start();
    let (agent, ann) = (gate.key("agent", "bot"), gate.key("approver", "ann"));
    let _deaf = Device::approver(&gate, "deaf", &ann);
    let mut hearing = Device::approver(&gate, "hearing", &ann);
    let long = "x".repeat(12_000);
    // Far more than the socket and the queue of the one that does not read can hold.
    for round in 0..600 {
        let id = id_of(&ask_over_http(&gate, &agent, &format!("rm -rf ./{round} {long}")));
        let card = hearing.pushed("exec-approval-request", |payload| payload["approvalId"] == id.as_str());
        assert!(card["payload"]["command"].as_str().unwrap().starts_with(&format!("rm -rf ./{round} ")));
        if round % 100 == 0 {
            assert_eq!(hearing.resolve(&json!(id), "deny")["ok"], true);
        }
    }
    let status = std::fs::read_to_string(format!("/proc/{}/status", gate.pid())).unwrap();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap().trim().to_owned();
    let kib: u64 = resident.trim_end_matches(" kB").parse().unwrap();
    assert!(kib < 200_000, "{resident}");
    assert_eq!(gate.cli(&["audit", "verify"]).status.code(), Some(0), "no record is lost");
}

#[test]
fn a_client_that_goes_between_card_and_answer_leaves_the_time_running() {
    let gate = Gate::start();
    let (agent, ann) = (gate.key("agent", "bot"), gate.key("approver", "ann"));
    let mut bot = Device::agent(&gate, "bot-1", &agent);
    let mut client = Device::approver(&gate, "phone", &ann);
    let asked = bot.ask("requestExecApproval", &json!({"command": "rm -rf ./x", "timeoutMs": 1500}));
    let id = client.card("rm -rf ./x")["approvalId"].clone();
    drop(client);
    let answer = bot.answer(&asked)["payload"].clone();
    assert_eq!((&answer["decision"], &answer["reason"]), (&json!("deny"), &json!("expired")));
    let mut again = Device::approver(&gate, "phone-2", &ann);
    assert_eq!(again.resolve(&id, "allow-once")["error"]["code"], "NOT_FOUND");
}

#[test]
fn after_a_restart_a_client_lists_what_is_pending_and_answers_it() {
    let mut gate = Gate::start();
    let (agent, ann) = (gate.key("agent", "bot"), gate.key("approver", "ann"));
    let mut client = Device::approver(&gate, "phone", &ann);
    let mut bot = Device::agent(&gate, "bot-1", &agent);
    bot.ask("requestExecApproval", &json!({"command": "rm -rf ./by-hub", "timeoutMs": 600_000}));
    client.card("rm -rf ./by-hub");
    let id = id_of(&ask_over_http(&gate, &agent, "rm -rf ./by-http"));
    let card = client.card("rm -rf ./by-http");
    gate.kill();
    client.closed();
    gate.restart();
    let mut again = Device::approver(&gate, "phone", &ann);
    assert_eq!(again.hub, client.hub, "the hub is the same device");
    let listed = again.ok("listExecApprovals", &json!({}))["approvals"].clone();
    assert_eq!(listed[0], card);
    assert_eq!(listed[1]["command"], "rm -rf ./by-hub");
    assert_eq!(again.resolve(&json!(id), "allow-once")["payload"], json!({"ok": true}));
    assert_eq!(again.ok("listExecApprovals", &json!({}))["approvals"].as_array().unwrap().len(), 1);
}

#[test]
fn a_gate_that_stops_in_order_denies_nothing_its_agents_asked() {
    let mut gate = Gate::start();
    let (agent, ann) = (gate.key("agent", "bot"), gate.key("approver", "ann"));
    let mut client = Device::approver(&gate, "phone", &ann);
    let mut bot = Device::agent(&gate, "bot-1", &agent);
    bot.ask("requestExecApproval", &json!({"command": "rm -rf ./x", "timeoutMs": 600_000}));
    let id = client.card("rm -rf ./x")["approvalId"].as_str().unwrap().to_owned();
    gate.terminate();
    client.closed();
    gate.restart();
    assert_eq!(gate.get(&ann, &format!("/v1/approvals/{id}")).expect(200)["status"], "pending");
}

#[test]
fn threat_55_a_hostile_page_does_not_get_a_connection() {
    let gate = Gate::start();
    let ann = gate.key("approver", "ann");
    let query = format!("?deviceId=phone&deviceType=client&key={ann}");
    for origin in ["http://evil.com", "null", "http://localhost:9", "https://127.0.0.1"] {
        let opened = Device::open(&gate, &query, &[("origin", origin)]);
        assert_eq!(opened.err(), Some(403), "{origin}");
        let headers = [("Origin".to_owned(), origin.to_owned())];
        let polled = gate.raw("GET", &format!("/ws/{query}&EIO=4&transport=polling"), &headers, b"");
        polled.expect_error(403, "origin_not_allowed");
    }
    let rebound = Device::open(&gate, &query, &[("host", "evil.com")]);
    assert_eq!(rebound.err(), Some(403));
    let own = format!("http://{}", gate.address);
    assert!(Device::open(&gate, &query, &[("origin", &own)]).is_ok());
    gate.raw("GET", "/hub", &[], b"");
    assert_eq!(gate.get("", "/hub").status, 426, "a plain request is told to upgrade");
}

#[test]
fn messages_between_devices_are_a_persons_alone_and_never_look_like_the_hubs() {
    let gate = Gate::start();
    let ann = gate.key("approver", "ann");
    let (mut one, mut two) = (Device::approver(&gate, "one", &ann), Device::approver(&gate, "two", &ann));
    let mut stranger = Device::register(&gate, "client", "0123456789abcdef0123456789abcdef", "");
    let message = json!({"id": "m1", "uid": null, "from": "one", "to": "two", "action": "hello", "payload": [1, null]});
    one.say("send", &message);
    assert_eq!(two.event("receive"), message);
    for action in ["exec-approval-request", "exec-approval-resolved", "request", "response"] {
        let mut posing = message.clone();
        posing["action"] = json!(action);
        one.say("send", &posing);
        assert_eq!(one.event("send_error")["code"], "INVALID_MESSAGE", "{action}");
    }
    let mut unknown = message.clone();
    unknown["from"] = json!(stranger.id);
    stranger.say("send", &unknown);
    assert_eq!(stranger.event("send_error")["code"], "DEVICE_NOT_FOUND");
    // An id that is, or may become, a secret is told to nobody.
    one.say("list-devices", &json!({}));
    let devices = one.event("list-devices")["devices"].clone();
    assert!(!devices.to_string().contains(&stranger.id), "{devices}");
    let kinds: Vec<&str> = devices.as_array().unwrap().iter().map(|d| d["deviceType"].as_str().unwrap()).collect();
    assert_eq!((kinds.len(), kinds[0]), (4, "hub"));
    assert!(!two.has(|frame| frame["event"] == "receive"));
}

#[test]
fn threat_66_devices_are_among_the_connections_that_are_counted_whichever_way_they_came() {
    let gate = Gate::start_with("[limits]\nmax_connections = 4\n");
    let transports = ["/hub?", "/ws/?EIO=4&transport=websocket&"];
    for transport in transports {
        let open = |number: usize| {
            // A place may be free a moment after its connection has ended.
            let path = format!("{transport}deviceId=d{number}&deviceType=client");
            (0..500).find_map(|_| {
                let opened = Device::open_at(&gate, &path, &[]).ok();
                if opened.is_none() {
                    std::thread::sleep(std::time::Duration::from_millis(10));
                }
                opened
            })
        };
        let there: Vec<Device> = (0..4)
            .map(|number| {
                let mut device = open(number).unwrap();
                if transport.starts_with("/ws") {
                    device.join();
                }
                device
            })
            .collect();
        assert!(
            Device::open_at(&gate, &format!("{transport}deviceId=x&deviceType=client"), &[]).is_err(),
            "{transport}"
        );
        drop(there);
        assert!(open(9).is_some(), "{transport}");
    }
}
