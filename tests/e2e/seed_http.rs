//! Seed 002's end-to-end test: create, reply, status, for all six codes; automatic answers; revocation.

use serde_json::json;

use crate::support::{Gate, ask_for, id_of};

struct Cast {
    gate: Gate,
    agent: String,
    ann: String,
}

fn cast() -> Cast {
    let gate = Gate::start();
    let (agent, ann) = (gate.key("agent", "bot"), gate.key("approver", "ann"));
    Cast { gate, agent, ann }
}

impl Cast {
    fn ask(&self, action_type: &str, preview: &str) -> String {
        let answer = self.gate.post(&self.agent, "/v1/approvals", &ask_for(action_type, preview)).expect(200);
        assert_eq!((&answer["status"], &answer["auto"]), (&json!("pending"), &json!(false)), "{answer}");
        assert!(answer["expires_at"].is_i64(), "{answer}");
        id_of(&answer)
    }

    fn reply(&self, id: &str, code: &str, text: Option<&str>) -> serde_json::Value {
        let body = json!({"code": code, "text": text});
        self.gate.post(&self.ann, &format!("/v1/approvals/{id}/decision"), &body).expect(200)
    }

    fn status(&self, id: &str) -> serde_json::Value {
        self.gate.get(&self.agent, &format!("/v1/approvals/{id}")).expect(200)
    }
}

#[test]
fn create_reply_status_for_all_six_codes() {
    let cast = cast();
    let cases = [
        ("1", None, "approved", json!(null), json!(null)),
        ("2", None, "approved", json!(null), json!(null)),
        ("3", None, "denied", json!(null), json!(null)),
        ("3", Some("not today"), "denied", json!("not today"), json!(null)),
        ("4", Some(" add logs "), "approved", json!("add logs"), json!(null)),
        ("5", Some("npm test"), "approved", json!(null), json!("npm test")),
        ("6", None, "approved", json!(null), json!(null)),
    ];
    for (number, (code, text, status, note, replacement)) in cases.into_iter().enumerate() {
        let id = cast.ask(&format!("custom:type{number}"), "POST https://api.example.com/pay");
        let pending = cast.status(&id);
        assert_eq!(pending["status"], "pending");
        cast.reply(&id, code, text);
        let ended = cast.status(&id);
        assert_eq!(ended["status"], status, "{ended}");
        assert_eq!(ended["reason"], "person");
        assert_eq!(ended["session_id"], "sess_123");
        assert_eq!(ended["action_type"], format!("custom:type{number}"));
        let decision = &ended["decision"];
        assert_eq!((&decision["code"], &decision["note"], &decision["override"]), (&json!(code), &note, &replacement));
        assert_eq!(decision["by"], "ann");
    }
}

#[test]
fn a_rule_and_a_session_allow_answer_by_themselves_until_revoked() {
    let cast = cast();
    let first = cast.ask("http_request", "GET /a");
    let decided = cast.reply(&first, "6", None);
    let rule = decided["decision"]["grant_id"].as_str().unwrap().to_owned();

    let auto = cast.gate.post(&cast.agent, "/v1/approvals", &ask_for("http_request", "GET /b")).expect(200);
    assert_eq!((&auto["status"], &auto["auto"]), (&json!("approved"), &json!(true)));
    assert_eq!((&auto["decision"]["code"], &auto["decision"]["by"]), (&json!("6"), &json!("policy")));
    assert_eq!((&auto["allow_rule_applied"], &auto["rule"]), (&json!(rule), &json!("grant")));

    let rules = cast.gate.get(&cast.agent, "/v1/allow-rules").expect(200);
    let listed = &rules["rules"][0];
    assert_eq!(
        (&listed["rule_id"], &listed["action_type"], &listed["enabled"]),
        (&json!(rule), &json!("http_request"), &json!(true))
    );
    assert_eq!(listed["client_id"].as_str().unwrap().len(), 12);
    cast.gate.call("DELETE", &format!("/v1/allow-rules/{rule}"), &cast.agent, None).expect_error(403, "forbidden");
    cast.gate.call("DELETE", &format!("/v1/allow-rules/{rule}"), &cast.ann, None).expect(200);
    cast.gate.call("DELETE", &format!("/v1/allow-rules/{rule}"), &cast.ann, None).expect_error(404, "not_found");
    cast.ask("http_request", "GET /c");

    let second = cast.ask("write_file", "a.txt");
    cast.reply(&second, "2", None);
    let auto = cast.gate.post(&cast.agent, "/v1/approvals", &ask_for("write_file", "b.txt")).expect(200);
    assert_eq!((&auto["auto"], &auto["decision"]["code"]), (&json!(true), &json!("2")));
    assert_eq!(auto["allow_rule_applied"], json!(null));
    let mut elsewhere = ask_for("write_file", "b.txt");
    elsewhere["session_id"] = json!("another");
    assert_eq!(cast.gate.post(&cast.agent, "/v1/approvals", &elsewhere).expect(200)["status"], "pending");
    let allows = cast.gate.get(&cast.ann, "/v1/session-allows").expect(200);
    let allow = allows["session_allows"][0]["id"].as_str().unwrap().to_owned();
    cast.gate.call("DELETE", &format!("/v1/session-allows/{allow}"), &cast.ann, None).expect(200);
    cast.ask("write_file", "c.txt");
    assert_eq!(cast.gate.get(&cast.ann, "/v1/grants").expect(200)["grants"], json!([]));
}

#[test]
fn the_menu_says_what_is_wrong_with_a_reply() {
    let cast = cast();
    let id = cast.ask("http_request", "GET /");
    for (code, text) in [
        ("1", Some("week away")),
        ("2", Some("x")),
        ("6", Some("x")),
        ("4", None),
        ("5", Some("  ")),
        ("7", None),
        ("", None),
    ] {
        let body = json!({"code": code, "text": text});
        cast.gate.post(&cast.ann, &format!("/v1/approvals/{id}/decision"), &body).expect_error(422, "invalid_code");
    }
    assert_eq!(cast.status(&id)["status"], "pending");
}

#[test]
fn the_seeds_examples_are_answered_as_it_shows() {
    let cast = cast();
    // The two request bodies of the seed, as given. No chat or mail is set up on this gate, and it says so.
    let telegram = json!({
        "session_id": "sess_123", "action_type": "exec_cmd", "title": "Run command",
        "preview": "rm -rf ./build && npm run build", "channel": "telegram",
        "target": {"tg_chat_id": "123456789"}, "expires_in_sec": 600
    });
    let asked = cast.gate.post(&cast.agent, "/v1/approvals", &telegram).expect(200);
    assert_eq!((&asked["status"], &asked["delivery"]), (&json!("pending"), &json!({"telegram": "not_configured"})));
    let email = json!({
        "session_id": "sess_123", "action_type": "http_request", "title": "POST request",
        "preview": "POST https://api.example.com/pay ...", "channel": "email",
        "target": {"email_to": "you@domain.com"}, "expires_in_sec": 600
    });
    let asked = cast.gate.post(&cast.agent, "/v1/approvals", &email).expect(200);
    assert_eq!((&asked["status"], &asked["delivery"]), (&json!("pending"), &json!({"email": "not_configured"})));
    let mut web = telegram;
    web["channel"] = json!("any");
    cast.gate.post(&cast.agent, "/v1/approvals", &web).expect_error(422, "unknown_target");
    web["target"] = json!({});
    let pending = cast.gate.post(&cast.agent, "/v1/approvals", &web).expect(200);
    assert_eq!((&pending["status"], &pending["auto"]), (&json!("pending"), &json!(false)));
    let inbox = cast.gate.key("inbox", "mail");
    let reply = json!({"subject": format!("Run command [{}]", id_of(&pending)), "body": "4 add logs\n\nOn Tue..."});
    let taken = cast.gate.post(&inbox, "/v1/inbox/email-reply", &reply).expect(200);
    assert_eq!((&taken["status"], &taken["reason"]), (&json!("ignored"), &json!("no_token")));
    assert_eq!(cast.status(&id_of(&pending))["status"], "pending");
}
