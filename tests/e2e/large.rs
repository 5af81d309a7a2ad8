//! Threat 88: large requests. Lists cost what they show, not what was sent; what is pending is limited in bytes.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::hub::Device;
use crate::support::{Events, Gate, id_of};
use crate::websocket::Client;

fn nested(depth: usize, inner: Value) -> Value {
    (0..depth).fold(inner, |value, _| json!([value]))
}

/// As many small values as there may be, as deep as they may be, and a long text.
fn many_values() -> Value {
    let branch = nested(28, json!([1, 2, 3]));
    json!({ "session_id": "s", "tool": "Write", "args": { "file_path": "a", "rows": vec![branch; 600], "text": "y".repeat(100_000) } })
}

fn ask(gate: &Gate, key: &str, body: &Value) -> crate::support::Answer {
    gate.post(key, "/v1/approvals", body)
}

/// In KiB.
fn memory(gate: &Gate) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", gate.pid())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn threat_88_lists_cost_what_they_show() {
    let gate = Gate::start_with("[limits]\nmax_pending_bytes = 67108864\n");
    let (agent, ann) = (gate.key("agent", "bot"), gate.key("approver", "ann"));
    let (mut client, mut phone) = (Client::connect(&gate, &ann), Device::approver(&gate, "phone", &ann));
    let mut events = Events::open(&gate, &ann, None);
    let body = many_values();
    assert!(body.to_string().len() > 100_000);
    let ids: Vec<String> = (0..20).map(|_| id_of(&ask(&gate, &agent, &body).expect(200))).collect();
    let started = Instant::now();
    for _ in 0..5 {
        let listed = gate.get(&ann, "/v1/approvals?status=pending");
        assert!(listed.text.len() < 1_000_000, "{}", listed.text.len());
        let listed = listed.expect(200);
        assert_eq!(listed["approvals"].as_array().unwrap().len(), 20);
        assert!(listed["approvals"][0].to_string().contains("cut in this list"));
        phone.ok("listExecApprovals", &json!({}));
        client.call("exec.approval.list", json!({})).unwrap();
    }
    for _ in &ids {
        let event = events.next().unwrap();
        assert!(event.to_string().len() < 100_000, "{}", event.to_string().len());
    }
    let pending = gate.cli(&["pending"]);
    assert!(pending.status.success());
    let (elapsed, memory) = (started.elapsed(), memory(&gate));
    eprintln!("five lists on three doors: {elapsed:?}, peak {memory} KiB");
    assert!(elapsed < Duration::from_secs(5), "{elapsed:?}");
    assert!(memory < 400_000, "{memory} KiB");
    // All of it comes with the one that is asked for, and what is decided is the whole.
    let one = gate.get(&ann, &format!("/v1/approvals/{}", ids[0])).expect(200);
    assert!(!one["preview"].as_str().unwrap().contains("cut in this list"));
    assert!(gate.cli(&["show", &ids[0]]).status.success());
    gate.post(&ann, &format!("/v1/approvals/{}/decision", ids[0]), &json!({ "decision": "allow-once" })).expect(200);
    gate.post(&agent, &format!("/v1/approvals/{}/consume", ids[0]), &json!({})).expect(200);
    assert!(gate.cli(&["audit", "verify"]).status.success());
}

#[test]
fn threat_88_a_commands_text_stays_whole_in_lists() {
    let gate = Gate::start();
    let (agent, ann) = (gate.key("agent", "bot"), gate.key("approver", "ann"));
    let command = format!("make {}", "target ".repeat(2200));
    let env: Value =
        (0..2000).map(|n| (format!("V{n}"), json!("x".repeat(200)))).collect::<serde_json::Map<_, _>>().into();
    ask(&gate, &agent, &json!({ "session_id": "s", "command": command, "env": env })).expect(200);
    let listed = gate.get(&ann, "/v1/approvals?status=pending").expect(200);
    assert_eq!(listed["approvals"][0]["preview"].as_str().unwrap().trim_end(), command.trim_end());
    let mut client = Client::connect(&gate, &ann);
    let rows = client.call("exec.approval.list", json!({})).unwrap();
    assert_eq!(rows[0]["request"]["command"].as_str().unwrap().trim_end(), command.trim_end());
}

#[test]
fn threat_88_what_is_pending_is_limited_in_bytes_for_one_and_for_all() {
    let mut gate = Gate::start_with("[limits]\nmax_pending_bytes = 800000\nmax_pending_bytes_total = 1200000\n");
    let [bot, other] = ["bot", "other"].map(|name| gate.key("agent", name));
    let ann = gate.key("approver", "ann");
    let body = many_values();
    let fill = |gate: &Gate, key: &str| {
        let mut ids = Vec::new();
        loop {
            let answer = ask(gate, key, &body);
            if answer.status == 200 {
                ids.push(id_of(&answer.json()));
                continue;
            }
            assert!(answer.header("retry-after").is_some());
            let refused = answer.expect_error(429, "too_many_pending_bytes");
            assert_eq!(refused["error"]["retryable"], true);
            return (ids, refused["detail"].as_str().unwrap().to_owned());
        }
    };
    let (ids, why) = fill(&gate, &bot);
    assert!((2..=12).contains(&ids.len()) && why.contains("this client"), "{} {why}", ids.len());
    // Small ones go on, and others have their own share, until all together have too much.
    ask(&gate, &bot, &json!({ "session_id": "s", "command": "make" })).expect(200);
    let (theirs, why) = fill(&gate, &other);
    assert!(!theirs.is_empty() && why.contains("all clients"), "{why}");
    // The gateway says it too.
    let mut client = Client::connect(&gate, &bot);
    let env: Value =
        (0..900).map(|n| (format!("V{n}"), json!("x".repeat(1000)))).collect::<serde_json::Map<_, _>>().into();
    let error = client.call("exec.approval.request", json!({ "command": "make", "env": env })).unwrap_err();
    assert_eq!((&error["code"], &error["retryable"]), (&json!("UNAVAILABLE"), &json!(true)), "{error}");
    let figures = gate.get("", "/metrics").text;
    let figure = |name: &str| -> f64 {
        let line = figures.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name}: {figures}"));
        line.rsplit(' ').next().unwrap().parse().unwrap()
    };
    assert_eq!(figure("countersign_refused_total{limit=\"pending_bytes\"}"), 3.0);
    assert!(figure("countersign_pending_bytes ") > 400_000.0);
    // A restart forgets nothing; an answer makes room.
    gate.restart();
    ask(&gate, &bot, &body).expect_error(429, "too_many_pending_bytes");
    for id in ids.iter().chain(&theirs) {
        gate.post(&ann, &format!("/v1/approvals/{id}/decision"), &json!({ "decision": "deny" })).expect(200);
    }
    ask(&gate, &bot, &body).expect(200);
}

#[test]
fn threat_88_arguments_hold_so_many_values_that_somebody_could_read_them() {
    let gate = Gate::start();
    let agent = gate.key("agent", "bot");
    let body = |count: usize| json!({ "session_id": "s", "tool": "Write", "args": { "a": vec![1; count] } });
    ask(&gate, &agent, &body(19_000)).expect(200);
    ask(&gate, &agent, &body(21_000)).expect_error(422, "unshowable");
}

#[test]
fn threat_88_arguments_are_nested_at_most_32_deep() {
    let gate = Gate::start();
    let agent = gate.key("agent", "bot");
    let body = |depth: usize| json!({ "session_id": "s", "tool": "Write", "args": { "a": nested(depth, json!(1)) } });
    ask(&gate, &agent, &body(31)).expect(200);
    for depth in [32, 40, 100] {
        ask(&gate, &agent, &body(depth)).expect_error(422, "unshowable");
    }
    let mut client = Client::connect(&gate, &agent);
    let params = json!({
        "id": "fwd_1", "actionType": "custom:Write", "sessionId": "s", "expiresInMs": 60_000, "path": ["elsewhere"],
        "action": { "kind": "tool", "name": "Write", "args": nested(60, json!(1)) },
    });
    let error = client.call("forward.request", params).unwrap_err();
    assert!(error["message"].as_str().unwrap().contains("32"), "{error}");
}
