//! `countersign engine` at a gate: people decide, everything is on the record, and the host only where policy says so.

use serde_json::{Value, json};

use crate::host::Host;
use crate::support::{BINARY, Events, Gate};

struct Place {
    gate: Gate,
    ann: String,
    bot: String,
    folder: tempfile::TempDir,
}

fn place(policy: &Value) -> Place {
    let gate = Gate::start();
    gate.put_policy("work", policy);
    let (ann, bot) = (gate.key("approver", "ann"), gate.key_in("agent", "bot", "work"));
    Place { gate, ann, bot, folder: tempfile::tempdir().unwrap() }
}

impl Place {
    fn engine(&self, args: &[&str]) -> Host {
        Host::engine_at(&self.gate, &self.bot, self.folder.path(), args)
    }

    fn decide(&self, id: &str, body: &Value) -> Value {
        self.gate.post(&self.ann, &format!("/v1/approvals/{id}/decision"), body).expect(200)
    }

    fn record(&self, id: &str) -> Value {
        self.gate.get(&self.ann, &format!("/v1/approvals/{id}")).expect(200)
    }

    /// The one that is pending.
    fn pending(&self) -> String {
        let listed = self.gate.get(&self.ann, "/v1/approvals?status=pending").expect(200);
        listed["approvals"][0]["approval_id"].as_str().unwrap().to_owned()
    }
}

#[test]
fn threat_48_a_host_does_not_decide_unless_policy_says_so() {
    let place = place(&json!({"version": 1}));
    let mut host = place.engine(&[]);
    host.bash("1", "touch ran");
    host.expect("tool_request");
    for frame in [
        json!({"type": "tool_approve", "call_id": "1"}),
        json!({"type": "tool_approve", "call_id": "1", "scope": "always"}),
        json!({"type": "tool_deny", "call_id": "1"}),
    ] {
        host.send(&frame);
        host.expect_error("forbidden");
    }
    // Nor by the route that hosts use, with any agent's key.
    let id = place.pending();
    let path = format!("/v1/approvals/{id}/host-decision");
    let allow = json!({"decision": "allow-once"});
    place.gate.post(&place.bot, &path, &allow).expect_error(403, "host_may_not_decide");
    let other = place.gate.key_in("agent", "other", "work");
    place.gate.post(&other, &path, &allow).expect_error(404, "not_found");
    assert_eq!(place.record(&id)["status"], "pending");
    // A person on another channel does.
    place.decide(&id, &json!({"decision": "allow-once"}));
    host.expect("tool_running");
    host.until("tool_result");
    let record = place.record(&id);
    assert_eq!(
        (&record["door"], &record["decision"]["by"], &record["run"]),
        (&json!("engine"), &json!("ann"), &json!({"exit": 0}))
    );
    assert!(place.folder.path().join("ran").exists());
}

#[test]
fn where_policy_lets_it_a_host_decides_by_its_keys_name() {
    let place = place(&json!({"version": 1, "hostMayDecide": true}));
    let mut host = place.engine(&[]);
    host.call("1", "Write", json!({"file_path": "a", "content": "x"}));
    host.expect("tool_request");
    let id = place.pending();
    host.approve("1", json!("always"));
    host.until("tool_result");
    let decision = &place.record(&id)["decision"];
    assert_eq!((&decision["by"], &decision["via"]), (&json!("host:bot"), &json!("engine")));
    host.call("2", "Write", json!({"file_path": "a", "content": "y"}));
    host.expect("call_announced");
    host.until("tool_result");
    // What a host grants ends with its session.
    let mut another = place.engine(&[]);
    another.call("1", "Write", json!({"file_path": "a", "content": "z"}));
    another.expect("tool_request");
    // An ordinary request of the same key is none of a host's business.
    let plain =
        place.gate.post(&place.bot, "/v1/approvals", &json!({"session_id": "s", "command": "make"})).expect(200);
    let path = format!("/v1/approvals/{}/host-decision", plain["approval_id"].as_str().unwrap());
    place.gate.post(&place.bot, &path, &json!({"decision": "allow-once"})).expect_error(403, "host_may_not_decide");
}

#[test]
fn policy_bounds_the_mode_and_its_rules_stand_above_it() {
    let strict = place(&json!({"version": 1}));
    let url = format!("http://{}", strict.gate.address);
    let refused = std::process::Command::new(BINARY)
        .args(["engine", "--force", "--gate", &url])
        .env("COUNTERSIGN_KEY", &strict.bot)
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    assert!(!refused.status.success() && refused.stdout.is_empty(), "{refused:?}");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("maxMode"));
    let mut host = strict.engine(&["--allow-wire-modes"]);
    host.send(&json!({"type": "set_mode", "mode": "auto_edit"}));
    host.expect_error("forbidden");

    let lenient = place(&json!({"version": 1, "maxMode": "force", "deny": [{"pattern": "touch **"}]}));
    let mut host = lenient.engine(&["--force"]);
    assert!(!host.asks("1", "true"));
    host.bash("2", "touch ran");
    let reason = host.expect("tool_cancelled")["reason"].as_str().unwrap().to_owned();
    assert!(reason.contains("rule"), "{reason}");
    assert!(!lenient.folder.path().join("ran").exists());
}

#[test]
fn a_person_may_change_a_command_and_refuse_with_a_word() {
    let place = place(&json!({"version": 1}));
    let mut host = place.engine(&[]);
    host.bash("1", "touch wrong");
    host.expect("tool_request");
    place.decide(&place.pending(), &json!({"decision": "allow-once", "override": "touch right"}));
    host.until("tool_result");
    assert!(place.folder.path().join("right").exists() && !place.folder.path().join("wrong").exists());
    host.call("2", "Write", json!({"file_path": "a", "content": "x"}));
    host.expect("tool_request");
    place.decide(&place.pending(), &json!({"decision": "allow-once", "override": "write to b instead"}));
    assert!(host.expect("tool_cancelled")["reason"].as_str().unwrap().contains("write to b instead"));
    host.bash("3", "make");
    host.expect("tool_request");
    place.decide(&place.pending(), &json!({"decision": "deny", "note": "not today"}));
    assert_eq!(host.expect("tool_cancelled")["reason"], "not today");
}

#[test]
fn a_suspended_question_survives_the_engine() {
    let place = place(&json!({"version": 1}));
    let ask = |host: &mut Host| host.call("q-1", "AskUserQuestion", json!({"question": "Which target?"}));
    let mut host = place.engine(&["--session", "s-1"]);
    assert_eq!(host.ready["session_persistence"], "journaled");
    ask(&mut host);
    host.expect("tool_request");
    let token = host.expect("approval_required")["resume_token"].clone();
    host.expect("suspend");
    host.child.kill().unwrap();
    host.child.wait().unwrap();
    let id = place.pending();
    // Taken up again it is the same question with the same token.
    let mut host = place.engine(&["--session", "s-1"]);
    ask(&mut host);
    host.expect("tool_request");
    assert_eq!(host.expect("approval_required")["resume_token"], token);
    host.close();
    assert!(host.rest().iter().any(|event| event["type"] == "tool_cancelled"));
    host.child.wait().unwrap();
    assert_eq!(place.pending(), id, "a clean end leaves it open too");
    // Answered while nobody was there, it is answered when somebody is.
    place.decide(&id, &json!({"decision": "allow-once", "answer": "staging"}));
    let mut host = place.engine(&["--session", "s-1"]);
    ask(&mut host);
    assert_eq!(host.expect("approval_resume")["resume_token"], token);
    assert_eq!(host.expect("tool_result")["output"], "staging");
    // In another session it is another question.
    let mut host = place.engine(&["--session", "s-2"]);
    ask(&mut host);
    host.expect("tool_request");
    assert_ne!(host.expect("approval_required")["resume_token"], token);
}

#[test]
fn a_command_that_a_person_stops_ends_and_one_whose_files_changed_does_not_start() {
    let place = place(&json!({"version": 1}));
    let mut host = place.engine(&[]);
    host.bash("1", "echo begun; sleep 60");
    host.expect("tool_request");
    let id = place.pending();
    place.decide(&id, &json!({"decision": "allow-once"}));
    host.until("tool_chunk");
    place.gate.post(&place.ann, &format!("/v1/approvals/{id}/stop"), &json!({})).expect(200);
    assert_eq!(host.expect("tool_result")["metadata"]["stopped"], true);
    let script = place.folder.path().join("s.sh");
    std::fs::write(&script, "echo good").unwrap();
    host.bash("2", "bash s.sh");
    host.expect("tool_request");
    std::fs::write(&script, "touch evil").unwrap();
    place.decide(&place.pending(), &json!({"decision": "allow-once"}));
    let result = host.until("tool_result");
    assert!(result["output"].as_str().unwrap().contains("changed since approval"), "{result}");
    assert!(!place.folder.path().join("evil").exists());
}

#[test]
fn a_gate_that_goes_away_is_never_a_yes() {
    let mut place = place(&json!({"version": 1, "hostMayDecide": true}));
    let mut host = place.engine(&["--approval-ttl-ms", "3000"]);
    host.bash("1", "touch ran");
    host.expect("tool_request");
    place.gate.kill();
    host.approve("1", json!("once"));
    host.expect_error("gate_error");
    host.bash("2", "touch ran");
    assert_eq!(host.until("tool_cancelled")["call_id"].as_str().map(str::len), Some(1));
    assert!(!place.folder.path().join("ran").exists());
}

#[test]
fn an_engine_beside_a_running_gate_uses_it() {
    let gate = Gate::start();
    let ann = gate.key("approver", "ann");
    let folder = tempfile::tempdir().unwrap();
    let mut events = Events::open(&gate, &ann, None);
    let mut host = Host::engine_in(folder.path(), &gate.data, &[]);
    host.bash("1", "true");
    host.expect("tool_request");
    host.approve("1", json!("once"));
    host.expect_error("forbidden");
    let asked = std::iter::from_fn(|| events.next()).find(|event| event["type"] == "requested").unwrap();
    let id = asked["approval_id"].as_str().unwrap();
    gate.post(&ann, &format!("/v1/approvals/{id}/decision"), &json!({"decision": "allow-once"})).expect(200);
    host.until("tool_result");
}
