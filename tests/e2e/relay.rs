//! `countersign relay` between a host and an engine that runs nothing.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::host::Host;
use crate::support::{BINARY, Gate};

const FAKE_ENGINE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/fake_engine.py");

struct Place {
    gate: Gate,
    ann: String,
    bot: String,
}

fn place(policy: &Value) -> Place {
    let gate = Gate::start();
    gate.put_policy("work", policy);
    let (ann, bot) = (gate.key("approver", "ann"), gate.key_in("agent", "bot", "work"));
    Place { gate, ann, bot }
}

impl Place {
    fn relay(&self, args: &[&str]) -> Host {
        Host::relay_at(&self.gate, &self.bot, args, &["python3", FAKE_ENGINE])
    }

    fn pending(&self) -> String {
        let listed = self.gate.get(&self.ann, "/v1/approvals?status=pending").expect(200);
        listed["approvals"][0]["approval_id"].as_str().unwrap().to_owned()
    }

    fn decide(&self, id: &str, body: &Value) -> Value {
        self.gate.post(&self.ann, &format!("/v1/approvals/{id}/decision"), body).expect(200)
    }
}

#[test]
fn policy_answers_what_it_can() {
    let place = place(&json!({"version": 1, "allowlist": [{"pattern": "cargo **"}], "deny": [{"pattern": "rm **"}],
        "tools": [{"name": "Write", "effect": "allow"}, {"name": "mcp_pay", "effect": "deny"}]}));
    let mut host = place.relay(&[]);
    for (call_id, name, args) in [
        ("1", "Bash", json!({"command": "cargo build"})),
        ("2", "Bash", json!({"command": "git status"})),
        ("3", "Write", json!({"file_path": "a"})),
    ] {
        host.call(call_id, name, args.clone());
        let announced = host.expect("call_announced");
        assert_eq!((&announced["call_id"], &announced["tool"]["args"]), (&json!(call_id), &args));
        host.expect("tool_running");
        assert_eq!(host.expect("tool_result")["output"], format!("would run {name}, scope once"));
    }
    for (call_id, name, args) in [("4", "Bash", json!({"command": "ls; rm x"})), ("5", "mcp_pay", json!({}))] {
        host.call(call_id, name, args);
        host.expect("info");
        assert!(host.expect("tool_cancelled")["reason"].as_str().unwrap().contains("denied by policy (rule)"));
    }
}

#[test]
fn a_person_or_the_host_answers_and_the_first_one_counts() {
    let place = place(&json!({"version": 1, "hostMayDecide": true}));
    let mut host = place.relay(&[]);
    // A person.
    host.bash("1", "make");
    host.expect("tool_request");
    let id = place.pending();
    place.decide(&id, &json!({"decision": "allow-once"}));
    let info = host.until("info");
    assert!(info["message"].as_str().unwrap().contains("approved by ann"), "{info}");
    host.approve("1", json!("once"));
    while host.next()["error"]["code"] != "not_found" {}
    assert!(place.gate.get(&place.ann, &format!("/v1/approvals/{id}")).expect(200)["consumed_at"].is_number());
    // The host; what lasts is kept by the gate, and the engine hears of this once only.
    host.bash("2", "make all");
    host.until("tool_request");
    let id = place.pending();
    host.approve("2", json!("always"));
    assert!(host.until("tool_result")["output"].as_str().unwrap().ends_with("scope once"));
    let record = place.gate.get(&place.ann, &format!("/v1/approvals/{id}")).expect(200);
    assert_eq!((&record["decision"]["by"], &record["door"]), (&json!("host:bot"), &json!("engine")));
    place
        .gate
        .post(&place.ann, &format!("/v1/approvals/{id}/decision"), &json!({"decision": "deny"}))
        .expect_error(409, "already_decided");
    host.bash("3", "make all");
    host.until("call_announced");
    host.until("tool_result");
    // A person's no, with its reason; and a change that an engine cannot be told is a no.
    for (call_id, body, words) in [
        ("4", json!({"decision": "deny", "note": "too risky"}), "too risky"),
        ("5", json!({"decision": "allow-once", "override": "make -n"}), "instead: make -n"),
    ] {
        host.bash(call_id, "make install");
        // What was said of the call before may come after its end.
        host.until("tool_request");
        place.decide(&place.pending(), &body);
        assert!(host.until("tool_cancelled")["reason"].as_str().unwrap().contains(words));
    }
}

#[test]
fn threat_49_nothing_a_host_can_send_decides_where_it_may_not() {
    let place = place(&json!({"version": 1}));
    let mut host = place.relay(&["--allow-wire-modes"]);
    host.bash("1", "make");
    host.expect("tool_request");
    for (line, code) in [
        (r#"{"type":"tool_approve","call_id":"1"}"#, "forbidden"),
        (r#"{"type":"tool_approve","call_id":"2"}"#, "not_found"),
        (r#"{"type":"approval_resume","resume_token":"x","approved":true}"#, "not_found"),
        (r#"{"type":"set_mode","mode":"force"}"#, "forbidden"),
        (r#"{"type":"set_mode","mode":"yolo"}"#, "forbidden"),
        (r#"{"type":"resolve_interrupted_approval","decision":"approve"}"#, "forbidden"),
        (r#"{"type":"grant_path","path":"/"}"#, "forbidden"),
        // What another parser could read as an approval.
        (r#"{"type":"ping","type":"tool_approve","call_id":"1"}"#, "engine_error"),
        (r#"{"type":"tool_approve","type":"ping","call_id":"1"}"#, "engine_error"),
        (r#"{"type":"ping","Type":"tool_approve","call_id":"1"}"#, "engine_error"),
        (r#"{"Type":"tool_approve","call_id":"1"}"#, "engine_error"),
        (r#"{"ty\u0070e":"tool_approve","call_id":"1"}"#, "forbidden"),
        (r#"{"type":"tool\u005fapprove","call_id":"1"}"#, "forbidden"),
        (r#"{"type":"ping"}{"type":"tool_approve","call_id":"1"}"#, "engine_error"),
        (r#"{'type':'tool_approve','call_id':'1'}"#, "engine_error"),
        ("tool_approve 1", "engine_error"),
        ("[]", "engine_error"),
    ] {
        host.send_raw(format!("{line}\n").as_bytes());
        let error = host.expect("error");
        assert_eq!(error["error"]["code"], code, "{line}: {error}");
    }
    host.send_raw(b"{\"type\":\"x\xff\"}\n");
    host.expect_error("engine_error");
    let mut long = vec![b' '; 9 * 1024 * 1024];
    long.extend_from_slice(b"{\"type\":\"tool_approve\",\"call_id\":\"1\"}\n");
    host.send_raw(&long);
    host.expect_error("engine_error");
    // The engine heard nothing of all that.
    host.send(&json!({"type": "hello"}));
    assert_eq!(host.expect("echo")["line"], "{\"type\":\"hello\"}\n");
    assert_eq!(
        place.gate.get(&place.ann, "/v1/approvals?status=pending").expect(200)["approvals"].as_array().unwrap().len(),
        1
    );
}

#[test]
fn everything_else_passes_byte_for_byte_and_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    // What the engine says is what the host hears, whatever it is.
    let said = folder.path().join("said");
    let mut bytes = b"{\"type\":\"ready\"}\n".to_vec();
    for number in 0..2_000u32 {
        bytes.extend_from_slice(
            format!("{{\"type\":\"text_delta\",\"n\":{number},\"t\":\"é \\\"tool_x\"}}\r\n").as_bytes(),
        );
        bytes.extend_from_slice(b"\n  \n\xff\xfe not json \"tool_request\n");
    }
    bytes.extend(std::iter::repeat_n(b'z', 9 * 1024 * 1024));
    bytes.extend_from_slice(b"\n{\"type\":\"future\",\"critical\":false}\nhalf");
    std::fs::write(&said, &bytes).unwrap();
    let mut host = Host::relay_on(&data, &[], &["cat", said.to_str().unwrap()]);
    let mut heard = format!("{}\n", json!({"type": "ready"})).into_bytes();
    while let Some(line) = host.next_line() {
        heard.extend(line);
    }
    assert!(heard == bytes, "{} and {} bytes", heard.len(), bytes.len());
    // And the other way, where every line has to be one.
    let kept = folder.path().join("kept");
    let program = format!("echo '{{\"type\":\"ready\"}}'; cat > {}", kept.display());
    let mut host = Host::relay_on(&data, &[], &["sh", "-c", &program]);
    let mut sent = Vec::new();
    for number in 0..2_000u32 {
        sent.extend_from_slice(
            format!("{{ \"n\" : {number}, \"type\":\"message\" , \"x\":\"\\u00e9é\"}}\r\n\n").as_bytes(),
        );
    }
    host.send_raw(&sent);
    host.close();
    host.child.wait().unwrap();
    assert!(std::fs::read(&kept).unwrap() == sent);
}

#[test]
fn an_engine_that_floods_is_held_up_and_not_kept_in_memory() {
    let folder = tempfile::tempdir().unwrap();
    let program = "echo '{\"type\":\"ready\"}'; yes '{\"type\":\"text_delta\",\"text\":\"flood\"}'";
    let mut host = Host::relay_on(&folder.path().join("data"), &[], &["sh", "-c", program]);
    for _ in 0..1_000 {
        host.next_line().unwrap();
    }
    // Nobody reads for a while; then as much as before is waiting, and no more.
    std::thread::sleep(Duration::from_millis(300));
    let status = std::fs::read_to_string(format!("/proc/{}/status", host.child.id())).unwrap();
    let peak: u64 = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap()
        .split_whitespace()
        .next()
        .unwrap()
        .parse()
        .unwrap();
    assert!(peak < 64 * 1024, "{peak} KiB");
    let started = Instant::now();
    host.close();
    let drained = std::iter::from_fn(|| host.next_line()).count();
    assert!(drained > 0 && started.elapsed() < Duration::from_secs(4));
    host.child.wait().unwrap();
}

#[test]
fn a_flood_of_requests_is_answered_without_asking_people_for_all() {
    let folder = tempfile::tempdir().unwrap();
    let program = r#"echo '{"type":"ready"}'; i=0; while [ $i -lt 400 ]; do echo "{\"type\":\"tool_request\",\"msg_id\":\"m\",\"call_id\":\"$i\",\"tool\":{\"name\":\"Bash\",\"category\":\"exec\",\"args\":{\"command\":\"make $i\"}}}"; i=$((i+1)); done; cat | head -n 144 | grep -c 'too many'"#;
    let mut host = Host::relay_on(&folder.path().join("data"), &[], &["bash", "-c", program]);
    let mut asked = 0;
    let last = loop {
        let line = String::from_utf8(host.next_line().unwrap()).unwrap();
        if !line.contains("tool_request") {
            break line;
        }
        asked += 1;
    };
    assert_eq!((asked, last.trim()), (256, "144"));
}

#[test]
fn either_sides_end_is_the_others_and_what_waits_is_denied() {
    let place = place(&json!({"version": 1}));
    // The host goes.
    let mut host = place.relay(&[]);
    host.bash("1", "make");
    host.expect("tool_request");
    let id = place.pending();
    let started = Instant::now();
    host.close();
    let rest = host.rest();
    assert!(rest.iter().any(|event| event["type"] == "tool_cancelled" && event["call_id"] == "1"), "{rest:?}");
    assert!(host.child.wait().unwrap().success() && started.elapsed() < Duration::from_secs(2));
    assert_eq!(place.gate.get(&place.ann, &format!("/v1/approvals/{id}")).expect(200)["status"], "cancelled");
    // The engine goes.
    let request = r#"{"type":"tool_request","msg_id":"m","call_id":"2","tool":{"name":"Bash","category":"exec","args":{"command":"make"}}}"#;
    let program = format!("echo '{{\"type\":\"ready\"}}'; echo '{request}'; read line; exit 7");
    let mut host = Host::relay_at(&place.gate, &place.bot, &[], &["sh", "-c", &program]);
    host.expect("tool_request");
    let id = place.pending();
    host.send(&json!({"type": "bye"}));
    assert_eq!(host.expect("tool_cancelled")["call_id"], "2");
    assert_eq!(host.next_line(), None);
    assert_eq!(host.child.wait().unwrap().code(), Some(7));
    assert_eq!(place.gate.get(&place.ann, &format!("/v1/approvals/{id}")).expect(200)["status"], "cancelled");
    // An engine that does not want to end is ended.
    let program = "trap '' TERM; echo '{\"type\":\"ready\"}'; while :; do sleep 0.05; done";
    let mut host = Host::relay_at(&place.gate, &place.bot, &[], &["bash", "-c", program]);
    let started = Instant::now();
    host.close();
    host.child.wait().unwrap();
    assert!(started.elapsed() < Duration::from_secs(4));
}

#[test]
fn an_end_that_the_pipes_do_not_tell_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    // The engine does not read, the host has written more than fits, and goes.
    let program = "echo '{\"type\":\"ready\"}'; exec sleep 60";
    let mut host = Host::relay_on(&data, &[], &["sh", "-c", program]);
    let mut stdin = host.take_stdin();
    let writer = std::thread::spawn(move || {
        let line = format!("{{\"type\":\"message\",\"content\":\"{}\"}}\n", "x".repeat(60_000));
        for _ in 0..3 {
            std::io::Write::write_all(&mut stdin, line.as_bytes()).unwrap();
        }
    });
    let started = Instant::now();
    let _ = writer.join();
    host.child.wait().unwrap();
    assert!(started.elapsed() < Duration::from_secs(8), "{:?}", started.elapsed());
    // The engine is gone, and something it started keeps its output open.
    let program = "echo '{\"type\":\"ready\"}'; sleep 60 & exit 5";
    let mut host = Host::relay_on(&data, &[], &["sh", "-c", program]);
    let started = Instant::now();
    assert_eq!(host.child.wait().unwrap().code(), Some(5));
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
}

#[test]
fn a_suspended_call_survives_the_relay_and_its_answer_finds_it() {
    let place = place(&json!({"version": 1}));
    let token = "apr-0f8fad5b-d9cb-469f-a165-70867728950e";
    let suspend = json!({"type": "suspend_me", "call_id": "c-8b2d", "token": token});
    let mut host = place.relay(&["--session", "s-1"]);
    host.send(&suspend);
    assert_eq!(host.expect("approval_required")["resume_token"], token);
    let id = place.pending();
    // The token is the engine's; knowing it does not make a host somebody who decides.
    host.send(&json!({"type": "approval_resume", "resume_token": token, "approved": true}));
    host.expect_error("forbidden");
    host.child.kill().unwrap();
    host.child.wait().unwrap();
    place.decide(&id, &json!({"decision": "allow-once", "answer": "staging"}));
    let mut host = place.relay(&["--session", "s-1"]);
    host.send(&suspend);
    host.expect("approval_required");
    assert_eq!(host.until("tool_result")["output"], "staging");
}

#[test]
fn without_a_gate_the_host_decides_and_it_is_on_the_record() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut host = Host::relay_on(&data, &[], &["python3", FAKE_ENGINE]);
    host.call("1", "Write", json!({"file_path": "a"}));
    host.expect("tool_request");
    host.approve("1", json!("once"));
    host.until("tool_result");
    host.close();
    host.child.wait().unwrap();
    let history =
        std::process::Command::new(BINARY).args(["history", "--data", data.to_str().unwrap()]).output().unwrap();
    let text = String::from_utf8_lossy(&history.stdout).into_owned();
    assert!(text.contains("approved by host:local") && text.contains("Write"), "{text}");
}

#[test]
fn the_engine_has_none_of_our_keys_and_its_stderr_is_its_own() {
    let place = place(&json!({"version": 1}));
    let program =
        "echo '{\"type\":\"ready\"}'; echo \"{\\\"type\\\":\\\"env\\\",\\\"n\\\":$(env | grep -c COUNTERSIGN)}\"";
    let mut host = Host::relay_at(&place.gate, &place.bot, &[], &["sh", "-c", program]);
    assert_eq!(host.expect("env")["n"], 0);
}

#[test]
fn an_agent_loop_in_python_runs_through_the_relay() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/engine_host.py");
    let (workspace, data) = (folder.path().to_str().unwrap(), data.to_str().unwrap());
    let output = std::process::Command::new("python3")
        .args([script, workspace, BINARY, "relay", "--data", data, "--", "python3", FAKE_ENGINE])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    for part in [
        "Write: tool_result: would run Write",
        "Bash: tool_cancelled: not on my machine",
        "AskUserQuestion: tool_result: staging",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
}
