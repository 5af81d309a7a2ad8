//! Bad input over HTTP: each gets a clear error, and nothing is lost or allowed.

use std::io::Write as _;
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::support::{Gate, ask_for, id_of, read_answer};

fn json_headers(key: &str) -> Vec<(String, String)> {
    vec![
        ("Authorization".to_owned(), format!("Bearer {key}")),
        ("Content-Type".to_owned(), "application/json".to_owned()),
    ]
}

#[test]
fn bodies_that_are_not_what_they_should_be() {
    let gate = Gate::start();
    let agent = gate.key("agent", "bot");
    let send = |body: &[u8]| gate.raw("POST", "/v1/approvals", &json_headers(&agent), body);
    for (body, what) in [
        (&b""[..], "empty"),
        (b"{", "cut off"),
        (b"not json", "text"),
        (b"{\"session_id\":\"\xff\xfe\"}", "not UTF-8"),
        (b"{\"session_id\":\"\\ud800\"}", "half a surrogate"),
        (&[&b"{\"session_id\":\"s\",\"args\":"[..], &b"[".repeat(5000)].concat(), "deeply nested"),
    ] {
        let answer = send(body);
        assert_eq!(answer.status, 400, "{what}: {}", answer.text);
        assert_eq!(answer.json()["error"]["code"], "invalid_json", "{what}");
    }
    let unnamed =
        send(json!({"session_id": "s", "command": 5}).to_string().as_bytes()).expect_error(422, "invalid_field");
    assert!(unnamed["error"]["message"].as_str().unwrap().contains("`command`"), "the field is named: {unnamed}");
    for body in [
        json!({}),
        json!([]),
        json!("x"),
        json!(["s", "http_request", "title", "preview"]),
        json!({"session_id": "s", "command": "ls", "target": [null, null]}),
        json!({"session_id": 5, "command": "ls"}),
        json!({"session_id": "s", "command": ["ls"]}),
        json!({"session_id": "s", "command": "ls", "expires_in_sec": "soon"}),
        json!({"session_id": "s", "command": "ls", "expires_in_sec": -1}),
        json!({"session_id": "s", "command": "ls", "security": "lax"}),
        json!({"session_id": "s", "command": "ls", "channel": "pigeon"}),
    ] {
        send(body.to_string().as_bytes()).expect_error(422, "invalid_field");
    }
    for (body, code) in [
        (json!({"session_id": "s"}), "missing_field"),
        (json!({"session_id": "s", "action_type": "http_request", "title": "t"}), "missing_field"),
        (json!({"session_id": "s", "command": "ls", "tool": "Read"}), "ambiguous_action"),
        (json!({"session_id": "s", "command": "ls", "argv": ["rm", "-rf", "/"]}), "ambiguous_action"),
        (json!({"session_id": "s", "argv": []}), "invalid_field"),
        (json!({"session_id": "s", "tool": ""}), "invalid_field"),
        (json!({"session_id": "s", "command": "ls", "wait": 86401}), "invalid_field"),
        (json!({"session_id": "", "command": "ls"}), "invalid_field"),
        (json!({"session_id": "s", "command": "ls", "expires_in_sec": 0}), "invalid_field"),
        (json!({"session_id": "s", "command": "ls", "expires_in_sec": 86401}), "invalid_field"),
        (json!({"session_id": "s", "command": "ls", "action_type": "http_request"}), "invalid_field"),
        (json!({"session_id": "s", "command": "a\u{0}b"}), "unshowable"),
        (json!({"session_id": "s", "command": "x".repeat(16 * 1024 + 1)}), "unshowable"),
        (
            json!({"session_id": "s", "action_type": "exec_cmd", "title": "t", "preview": "x".repeat(16 * 1024 + 1)}),
            "unshowable",
        ),
        (json!({"session_id": "s", "tool": "pay", "args": {"amount": 9_007_199_254_740_993u64}}), "invalid_field"),
        (
            json!({"session_id": "s", "command": "ls", "callback_url": "http://169.254.169.254/"}),
            "channel_not_configured",
        ),
    ] {
        send(body.to_string().as_bytes()).expect_error(422, code);
    }
    let form = vec![
        ("Authorization".to_owned(), format!("Bearer {agent}")),
        ("Content-Type".to_owned(), "application/x-www-form-urlencoded".to_owned()),
    ];
    gate.raw("POST", "/v1/approvals", &form, b"session_id=s").expect_error(415, "unsupported_media_type");
    let list = gate.get(&gate.admin, "/v1/approvals").expect(200);
    assert_eq!(list["approvals"], json!([]), "what was refused left no record");
}

#[test]
fn unknown_fields_are_ignored_on_requests_and_refused_by_name_in_policies() {
    let gate = Gate::start();
    let agent = gate.key("agent", "bot");
    let body = json!({"session_id": "s", "command": "ls", "colour": "blue"});
    gate.post(&agent, "/v1/approvals", &body).expect(200);
    let hash = gate.get(&gate.admin, "/v1/policy/default").expect(200)["hash"].clone();
    let put = |policy: Value| {
        gate.call("PUT", "/v1/policy/default", &gate.admin, Some(&json!({"base_hash": hash, "policy": policy})))
    };
    let refused = put(json!({"version": 1, "securty": "deny"})).expect_error(422, "invalid_policy");
    assert!(refused["error"]["message"].as_str().unwrap().contains("securty"), "{refused}");
    put(json!({"version": 1, "security": "deny"})).expect(200);
    let stale = put(json!({"version": 1})).expect_error(409, "stale_policy");
    let current = gate.get(&gate.admin, "/v1/policy/default").expect(200);
    assert_eq!((&stale["hash"], &current["policy"]["security"]), (&current["hash"], &json!("deny")));
}

#[test]
fn a_body_over_the_limit_gets_its_answer() {
    let gate = Gate::start();
    let agent = gate.key("agent", "bot");
    for megabytes in [2, 7] {
        let mut body = ask_for("http_request", "").to_string().into_bytes();
        body.extend(std::iter::repeat_n(b' ', megabytes * 1024 * 1024));
        gate.raw("POST", "/v1/approvals", &json_headers(&agent), &body).expect_error(413, "too_large");
    }
    // Without a length, in chunks.
    let mut stream = TcpStream::connect(gate.address).unwrap();
    write!(
        stream,
        "POST /v1/approvals HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {agent}\r\nContent-Type: application/json\r\n\
         Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n",
        gate.address
    )
    .unwrap();
    let chunk = vec![b' '; 64 * 1024];
    for _ in 0..40 {
        write!(stream, "{:x}\r\n", chunk.len()).unwrap();
        stream.write_all(&chunk).unwrap();
        stream.write_all(b"\r\n").unwrap();
    }
    stream.write_all(b"0\r\n\r\n").unwrap();
    read_answer(&mut stream).expect_error(413, "too_large");
}

#[test]
fn paths_methods_and_queries() {
    let gate = Gate::start();
    let (agent, ann) = (gate.key("agent", "bot"), gate.key("approver", "ann"));
    gate.get(&ann, "/v1/nothing").expect_error(404, "not_found");
    let wrong = gate.call("PATCH", "/v1/approvals", &ann, None);
    assert!(wrong.header("allow").is_some(), "{wrong:?}");
    wrong.expect_error(405, "method_not_allowed");
    for query in ["status=lost", "limit=0", "limit=201", "limit=x", "cursor=x", "cursor=-1"] {
        gate.get(&ann, &format!("/v1/approvals?{query}")).expect_error(422, "invalid_query");
    }
    let id = id_of(&gate.post(&agent, "/v1/approvals", &ask_for("a", "b")).expect(200));
    gate.get(&agent, &format!("/v1/approvals/{id}?wait=-1")).expect_error(422, "invalid_query");
    gate.get(&gate.admin, "/v1/audit?after=x").expect_error(422, "invalid_query");
    gate.get(&gate.admin, "/v1/policy/..%2f..%2fetc").expect_error(422, "invalid_field");
    gate.post(&gate.admin, "/v1/keys", &json!({"role": "agent", "name": "a b"})).expect_error(422, "invalid_field");
    gate.post(&gate.admin, "/v1/keys", &json!({"role": "god", "name": "x"})).expect_error(422, "invalid_field");
}

#[test]
fn decisions_that_do_not_fit_leave_it_pending() {
    let gate = Gate::start();
    let (agent, ann) = (gate.key("agent", "bot"), gate.key("approver", "ann"));
    let id = id_of(&gate.post(&agent, "/v1/approvals", &ask_for("a", "b")).expect(200));
    let path = format!("/v1/approvals/{id}/decision");
    for body in [
        json!({}),
        json!({"decision": "yes"}),
        json!({"decision": 1}),
        json!({"code": 1}),
        json!({"code": "1", "decision": "deny"}),
    ] {
        gate.post(&ann, &path, &body).expect_error(422, "invalid_field");
    }
    for body in [
        json!({"decision": "allow-once", "answer": "x"}),
        json!({"decision": "deny", "override": "x"}),
        json!({"decision": "allow-always", "override": "x"}),
        json!({"decision": "allow-once", "note": "x".repeat(20_000)}),
        json!({"decision": "allow-once", "note": "a\u{0}"}),
    ] {
        gate.post(&ann, &path, &body).expect_error(422, "invalid_answer");
    }
    let body = json!({"decision": "allow-always", "grant": {"expires_in_sec": 0}});
    gate.post(&ann, &path, &body).expect_error(422, "invalid_field");
    assert_eq!(gate.get(&agent, &format!("/v1/approvals/{id}")).expect(200)["status"], "pending");
    gate.post(&ann, &path, &json!({"decision": "allow-always", "grant": {"expires_in_sec": 3600}})).expect(200);
    let grant = gate.get(&ann, "/v1/grants").expect(200)["grants"][0].clone();
    assert_eq!(
        (&grant["type"], grant["expires_at"].as_i64().unwrap() - grant["created_at"].as_i64().unwrap()),
        (&json!("exact"), 3600)
    );
}

#[test]
fn an_override_of_a_command_is_a_new_action() {
    let gate = Gate::start();
    let (agent, ann) = (gate.key("agent", "bot"), gate.key("approver", "ann"));
    let ask =
        || id_of(&gate.post(&agent, "/v1/approvals", &json!({"session_id": "s", "command": "make all"})).expect(200));
    let id = ask();
    let path = format!("/v1/approvals/{id}/decision");
    let decided = gate.post(&ann, &path, &json!({"decision": "allow-once", "override": "make -n all"})).expect(200);
    let decision = &decided["decision"];
    assert_eq!((&decision["code"], &decision["override"]), (&json!("5"), &json!("make -n all")));
    assert_ne!(decision["override_digest"], decided["digest"]);
    assert_eq!(decision["override_digest"].as_str().unwrap().len(), 64);
    let told = gate.get(&agent, &format!("/v1/approvals/{id}")).expect(200);
    assert_eq!(told["digest"], decision["override_digest"], "the digest is of what may run");
    assert!(told["message"].as_str().unwrap().contains("decision.override"), "{told}");
    let id = ask();
    gate.put_policy("default", &json!({"version": 1, "security": "deny"}));
    let path = format!("/v1/approvals/{id}/decision");
    gate.post(&ann, &path, &json!({"code": "5", "text": "rm -rf /"})).expect_error(422, "override_denied");
}

#[test]
fn the_same_key_and_body_is_the_same_request() {
    let gate = Gate::start();
    let (agent, ann) = (gate.key("agent", "bot"), gate.key("approver", "ann"));
    let mut body = ask_for("http_request", "GET /");
    body["idempotency_key"] = json!("k1");
    let first = id_of(&gate.post(&agent, "/v1/approvals", &body).expect(200));
    gate.post(&ann, &format!("/v1/approvals/{first}/decision"), &json!({"code": "1"})).expect(200);
    gate.call("POST", &format!("/v1/approvals/{first}/consume"), &agent, None).expect(200);
    body["wait"] = json!(1);
    let again = gate.post(&agent, "/v1/approvals", &body).expect(200);
    assert_eq!((id_of(&again), &again["status"]), (first.clone(), &json!("approved")));
    gate.call("POST", &format!("/v1/approvals/{first}/consume"), &agent, None).expect_error(409, "already_consumed");
    body["preview"] = json!("GET /other");
    gate.post(&agent, "/v1/approvals", &body).expect_error(409, "idempotency_conflict");
}
