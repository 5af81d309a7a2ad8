//! Who may do what: the whole matrix, and what each refusal looks like.

use serde_json::json;

use crate::support::{Events, Gate, ask_for, id_of};

/// Every route with the roles that may use it.
fn routes(id: &str) -> Vec<(&'static str, String, Vec<&'static str>)> {
    let readers = vec!["agent", "approver", "admin"];
    let approvers = vec!["approver", "admin"];
    let approval = |suffix: &str| format!("/v1/approvals/{id}{suffix}");
    vec![
        ("POST", "/v1/approvals".into(), vec!["agent"]),
        ("GET", approval(""), readers.clone()),
        ("GET", "/v1/approvals".into(), approvers.clone()),
        ("POST", approval("/decision"), approvers.clone()),
        ("POST", approval("/cancel"), vec!["agent"]),
        ("POST", approval("/consume"), vec!["agent"]),
        ("POST", approval("/run"), vec!["agent"]),
        ("POST", approval("/host-decision"), vec!["agent"]),
        ("GET", "/v1/engine".into(), vec!["agent"]),
        ("GET", approval("/stop"), vec!["agent"]),
        ("POST", approval("/output"), vec!["agent"]),
        ("GET", approval("/output"), approvers.clone()),
        ("POST", approval("/stop"), approvers.clone()),
        ("GET", approval("/offer"), approvers.clone()),
        ("GET", "/v1/trusts".into(), approvers.clone()),
        ("PUT", "/v1/trusts".into(), approvers.clone()),
        ("DELETE", "/v1/trusts?workspace=/x".into(), approvers.clone()),
        ("GET", "/v1/trusts/file?workspace=/x".into(), readers.clone()),
        ("POST", "/v1/inbox/email-reply".into(), vec!["inbox"]),
        ("GET", "/v1/grants".into(), readers.clone()),
        ("DELETE", "/v1/grants/x".into(), approvers.clone()),
        ("GET", "/v1/allow-rules".into(), readers.clone()),
        ("DELETE", "/v1/allow-rules/x".into(), approvers.clone()),
        ("GET", "/v1/session-allows".into(), readers),
        ("DELETE", "/v1/session-allows/x".into(), approvers),
        ("GET", "/v1/policy/default".into(), vec!["admin"]),
        ("PUT", "/v1/policy/default".into(), vec!["admin"]),
        ("GET", "/v1/policy/default/document".into(), vec!["admin"]),
        ("PUT", "/v1/policy/default/document".into(), vec!["admin"]),
        ("GET", "/v1/keys".into(), vec!["admin"]),
        ("POST", "/v1/keys".into(), vec!["admin"]),
        ("DELETE", "/v1/keys/x".into(), vec!["admin"]),
        ("POST", "/v1/pairings".into(), vec!["admin"]),
        ("GET", "/v1/audit".into(), vec!["admin"]),
    ]
}

#[test]
fn threat_48_only_the_documented_roles_may_use_a_route() {
    let gate = Gate::start();
    let agent = gate.key("agent", "bot");
    let id = id_of(&gate.post(&agent, "/v1/approvals", &ask_for("a", "b")).expect(200));
    for role in ["agent", "approver", "admin", "inbox", "node"] {
        let key = gate.key(role, &format!("some-{role}"));
        for (method, path, allowed) in routes(&id) {
            // A body that no route accepts: whoever may use the route gets past the door and no further.
            let body = (method == "POST" || method == "PUT").then(|| json!([]));
            let status = gate.call(method, &path, &key, body.as_ref()).status;
            assert_eq!(status == 403, !allowed.contains(&role), "{role} {method} {path}: {status}");
            assert!(status != 401 && status < 500, "{role} {method} {path}: {status}");
        }
        let events = gate.get(&key, "/v1/events?after=x").status;
        assert_eq!(events == 403, !["approver", "admin"].contains(&role), "{role} events: {events}");
    }
    for (method, path, _) in routes(&id) {
        let answer = gate.call(method, &path, "", Some(&json!([])));
        assert_eq!(answer.header("www-authenticate"), Some("Bearer"), "{method} {path}");
        answer.expect_error(401, "unauthorized");
    }
    assert_eq!(gate.get(&agent, &format!("/v1/approvals/{id}")).expect(200)["status"], "pending");
}

#[test]
fn threat_19_and_63_another_clients_id_is_the_same_as_none() {
    let gate = Gate::start();
    let (one, two, ann) = (gate.key("agent", "one"), gate.key("agent", "two"), gate.key("approver", "ann"));
    let id = id_of(&gate.post(&one, "/v1/approvals", &ask_for("a", "b")).expect(200));
    gate.post(&ann, &format!("/v1/approvals/{id}/decision"), &json!({"code": "1"})).expect(200);
    let nowhere = format!("appr_{}", "0".repeat(32));
    for suffix in ["", "?wait=1"] {
        let theirs = gate.get(&two, &format!("/v1/approvals/{id}{suffix}"));
        let none = gate.get(&two, &format!("/v1/approvals/{nowhere}{suffix}"));
        let garbage = gate.get(&two, &format!("/v1/approvals/appr_1{suffix}"));
        assert_eq!((theirs.status, &theirs.text), (404, &none.text));
        assert_eq!((none.status, &none.text), (404, &garbage.text));
    }
    for verb in ["cancel", "consume"] {
        let theirs = gate.call("POST", &format!("/v1/approvals/{id}/{verb}"), &two, None);
        let none = gate.call("POST", &format!("/v1/approvals/{nowhere}/{verb}"), &two, None);
        assert_eq!((theirs.status, theirs.text), (404, none.text));
    }
    gate.call("POST", &format!("/v1/approvals/{id}/consume"), &one, None).expect(200);
    // How a run ended, and whether to stop it, is its own client's business too.
    gate.post(&two, &format!("/v1/approvals/{id}/run"), &json!({"exit": 0})).expect_error(404, "not_found");
    gate.get(&two, &format!("/v1/approvals/{id}/stop")).expect_error(404, "not_found");
    let hex = id.strip_prefix("appr_").unwrap();
    assert!(hex.len() == 32 && hex.chars().all(|c| c.is_ascii_digit() || ('a'..='f').contains(&c)), "{id}");
}

#[test]
fn an_agent_sees_its_own_grants_alone() {
    let gate = Gate::start();
    let (one, two, ann) = (gate.key("agent", "one"), gate.key("agent", "two"), gate.key("approver", "ann"));
    let id = id_of(&gate.post(&one, "/v1/approvals", &ask_for("http_request", "b")).expect(200));
    gate.post(&ann, &format!("/v1/approvals/{id}/decision"), &json!({"code": "6"})).expect(200);
    let count = |key: &str| gate.get(key, "/v1/grants").expect(200)["grants"].as_array().unwrap().len();
    assert_eq!((count(&one), count(&two), count(&ann)), (1, 0, 1));
    let other = gate.post(&two, "/v1/approvals", &ask_for("http_request", "b")).expect(200);
    assert_eq!(other["status"], "pending", "a grant speaks for the client it was made for");
}

#[test]
fn bad_expired_and_revoked_keys_are_refused() {
    let gate = Gate::start();
    let agent = gate.key("agent", "bot");
    let mut tampered = agent.clone();
    let last = if tampered.pop() == Some('A') { 'B' } else { 'A' };
    tampered.push(last);
    for bad in ["x", "csk_", tampered.as_str(), &format!("{agent}x"), &agent[..agent.len() - 1]] {
        gate.post(bad, "/v1/approvals", &ask_for("a", "b")).expect_error(401, "unauthorized");
    }
    for header in [format!("Basic {agent}"), agent.clone(), format!("Bearer{agent}"), "Bearer ".to_owned()] {
        let answer = gate.raw("GET", "/v1/grants", &[("Authorization".to_owned(), header)], b"");
        answer.expect_error(401, "unauthorized");
    }
    let twice = [
        ("Authorization".to_owned(), format!("Bearer {agent}")),
        ("Authorization".to_owned(), format!("Bearer {agent}")),
    ];
    gate.raw("GET", "/v1/grants", &twice, b"").expect_error(401, "unauthorized");

    let made =
        gate.post(&gate.admin, "/v1/keys", &json!({"role": "agent", "name": "brief", "expires_in_sec": 1})).expect(200);
    let brief = made["key"].as_str().unwrap();
    gate.post(brief, "/v1/approvals", &ask_for("a", "b")).expect(200);
    // Until its second is over; the gate's own clock says when.
    while gate.post(brief, "/v1/approvals", &ask_for("a", "b")).status == 200 {
        std::thread::yield_now();
    }
    gate.post(brief, "/v1/approvals", &ask_for("a", "b")).expect_error(401, "unauthorized");

    let keys = gate.get(&gate.admin, "/v1/keys").expect(200);
    let own = keys["keys"].as_array().unwrap().iter().find(|key| key["role"] == "admin").unwrap()["key_id"].clone();
    gate.call("DELETE", &format!("/v1/keys/{}", own.as_str().unwrap()), &gate.admin, None).expect_error(409, "own_key");
    let listed = keys["keys"].as_array().unwrap().iter().find(|key| key["name"] == "bot").unwrap().clone();
    assert!(!keys.to_string().contains(&agent), "a key is shown once");
    gate.call("DELETE", &format!("/v1/keys/{}", listed["key_id"].as_str().unwrap()), &gate.admin, None).expect(200);
    gate.post(&agent, "/v1/approvals", &ask_for("a", "b")).expect_error(401, "unauthorized");
}

#[test]
fn threat_64_a_stream_ends_when_its_key_is_revoked() {
    let gate = Gate::start();
    let ann = gate.key("approver", "ann");
    let mut events = Events::open(&gate, &ann, None);
    let keys = gate.get(&gate.admin, "/v1/keys").expect(200);
    let id = keys["keys"].as_array().unwrap().iter().find(|key| key["name"] == "ann").unwrap()["key_id"].clone();
    gate.call("DELETE", &format!("/v1/keys/{}", id.as_str().unwrap()), &gate.admin, None).expect(200);
    while let Some(event) = events.next() {
        assert_eq!(event["type"], "key_revoked", "nothing but its own end is told after that");
    }
}

#[test]
fn threat_32_an_agent_cannot_make_or_widen_rules_whatever_it_sends() {
    let gate = Gate::start();
    let agent = gate.key("agent", "bot");
    let before = gate.get(&gate.admin, "/v1/policy/default").expect(200);
    let mut body = ask_for("http_request", "GET /");
    for (field, value) in [
        ("security", json!("full")),
        ("ask", json!("off")),
        ("decision", json!({"code": "6"})),
        ("status", json!("approved")),
        ("auto", json!(true)),
        ("role", json!("admin")),
        ("scopes", json!(["operator.admin"])),
        ("approvers", json!([])),
        ("grant", json!({"type": "action_type"})),
        ("client_id", json!("local")),
        ("profile", json!("lax")),
    ] {
        body[field] = value;
    }
    let asked = gate.post(&agent, "/v1/approvals", &body).expect(200);
    assert_ne!(asked["status"], "approved", "{asked}");
    let headers = vec![
        ("Authorization".to_owned(), format!("Bearer {agent}")),
        ("X-OpenClaw-Scopes".to_owned(), "operator.admin".to_owned()),
        ("X-Role".to_owned(), "admin".to_owned()),
    ];
    assert_eq!(gate.raw("GET", "/v1/policy/default", &headers, b"").status, 403);
    assert_eq!(gate.get(&gate.admin, "/v1/grants").expect(200)["grants"], json!([]));
    assert_eq!(gate.get(&gate.admin, "/v1/policy/default").expect(200)["hash"], before["hash"]);
}

#[test]
fn threat_42_named_approvers_are_the_only_ones() {
    let gate = Gate::start();
    let (agent, ann, bob) = (gate.key("agent", "bot"), gate.key("approver", "ann"), gate.key("approver", "bob"));
    gate.put_policy("default", &json!({"version": 1, "approvers": ["ann"]}));
    let id = id_of(&gate.post(&agent, "/v1/approvals", &ask_for("a", "b")).expect(200));
    let path = format!("/v1/approvals/{id}/decision");
    gate.post(&bob, &path, &json!({"code": "1"})).expect_error(403, "not_an_approver");
    gate.post(&gate.admin, &path, &json!({"code": "1"})).expect_error(403, "not_an_approver");
    gate.post(&ann, &path, &json!({"code": "1"})).expect(200);
    gate.put_policy("default", &json!({"version": 1, "approvers": []}));
    let nobody = gate.post(&agent, "/v1/approvals", &ask_for("a", "c")).expect(200);
    assert_eq!((&nobody["status"], &nobody["reason"]), (&json!("denied"), &json!("no_channel")));
}
