//! Waiting, racing, expiring, cancelling, consuming, and the feed.

use std::sync::{Arc, Barrier};

use serde_json::json;

use crate::support::{Events, Gate, ask_for, id_of};

#[test]
fn a_waiter_is_answered_when_it_is_decided() {
    let gate = Gate::start();
    let (agent, ann) = (gate.key("agent", "bot"), gate.key("approver", "ann"));
    let id = id_of(&gate.post(&agent, "/v1/approvals", &ask_for("a", "b")).expect(200));
    let mut events = Events::open(&gate, &ann, None);
    let path = format!("/v1/approvals/{id}");
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| gate.get(&agent, &format!("{path}?wait=60")).expect(200));
        // The figure says when the waiter is parked.
        while !gate.get("", "/metrics").text.contains("countersign_waiters 1") {
            std::thread::yield_now();
        }
        gate.post(&ann, &format!("{path}/decision"), &json!({"code": "4", "text": "go"})).expect(200);
        let woken = waiter.join().unwrap();
        assert_eq!((&woken["status"], &woken["decision"]["note"]), (&json!("approved"), &json!("go")));
    });
    let event = events.next().unwrap();
    assert_eq!((&event["type"], &event["approval"]["decision"]["by"]), (&json!("resolved"), &json!("ann")));
}

#[test]
fn creating_with_wait_answers_the_decision() {
    let gate = Gate::start();
    let (agent, ann) = (gate.key("agent", "bot"), gate.key("approver", "ann"));
    let mut events = Events::open(&gate, &ann, None);
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| {
            let mut body = ask_for("a", "b");
            body["wait"] = json!(60);
            gate.post(&agent, "/v1/approvals", &body).expect(200)
        });
        let asked = events.next().unwrap();
        assert_eq!(asked["type"], "requested");
        let id = asked["approval_id"].as_str().unwrap().to_owned();
        gate.post(&ann, &format!("/v1/approvals/{id}/decision"), &json!({"decision": "deny", "note": "no"}))
            .expect(200);
        let answer = asking.join().unwrap();
        assert_eq!(
            (&answer["status"], &answer["decision"]["note"], &answer["auto"]),
            (&json!("denied"), &json!("no"), &json!(false))
        );
    });
}

#[test]
fn of_64_racing_decisions_one_wins_and_the_others_learn_whose() {
    let gate = Gate::start();
    let (agent, ann, bob) = (gate.key("agent", "bot"), gate.key("approver", "ann"), gate.key("approver", "bob"));
    let id = id_of(&gate.post(&agent, "/v1/approvals", &ask_for("a", "b")).expect(200));
    let path = format!("/v1/approvals/{id}/decision");
    let start = Arc::new(Barrier::new(64));
    let answers: Vec<_> = std::thread::scope(|scope| {
        let racers: Vec<_> = (0..64)
            .map(|racer| {
                let (gate, path, start) = (&gate, &path, start.clone());
                let key = if racer % 2 == 0 { &ann } else { &bob };
                let body = json!({"code": if racer % 3 == 0 { "3" } else { "1" }});
                scope.spawn(move || {
                    start.wait();
                    gate.post(key, path, &body)
                })
            })
            .collect();
        racers.into_iter().map(|racer| racer.join().unwrap()).collect()
    });
    let winner = gate.get(&ann, &format!("/v1/approvals/{id}")).expect(200);
    let (won, lost): (Vec<_>, Vec<_>) = answers.into_iter().partition(|answer| answer.status == 200);
    assert_eq!((won.len(), lost.len()), (1, 63));
    for loser in lost {
        let told = loser.expect_error(409, "already_decided");
        assert_eq!(told["decision"], winner["decision"]);
    }
}

#[test]
fn threat_18_of_100_consumers_one_wins() {
    let gate = Gate::start();
    let (agent, ann) = (gate.key("agent", "bot"), gate.key("approver", "ann"));
    let id = id_of(&gate.post(&agent, "/v1/approvals", &ask_for("a", "b")).expect(200));
    let path = format!("/v1/approvals/{id}/consume");
    gate.call("POST", &path, &agent, None).expect_error(409, "not_approved");
    gate.post(&ann, &format!("/v1/approvals/{id}/decision"), &json!({"code": "1"})).expect(200);
    let won = std::thread::scope(|scope| {
        let consumers: Vec<_> =
            (0..100).map(|_| scope.spawn(|| gate.call("POST", &path, &agent, None).status)).collect();
        let statuses: Vec<u16> = consumers.into_iter().map(|consumer| consumer.join().unwrap()).collect();
        assert!(statuses.iter().all(|status| [200, 409].contains(status)), "{statuses:?}");
        statuses.iter().filter(|status| **status == 200).count()
    });
    assert_eq!(won, 1);
    assert!(gate.get(&agent, &format!("/v1/approvals/{id}")).expect(200)["consumed_at"].is_i64());
}

#[test]
fn what_nobody_answers_expires_by_itself_and_says_what_that_means() {
    let gate = Gate::start();
    let (agent, ann) = (gate.key("agent", "bot"), gate.key("approver", "ann"));
    let mut body = ask_for("a", "b");
    body["expires_in_sec"] = json!(1);
    let id = id_of(&gate.post(&agent, "/v1/approvals", &body).expect(200));
    let ended = gate.get(&agent, &format!("/v1/approvals/{id}?wait=30")).expect(200);
    assert_eq!(
        (&ended["status"], &ended["reason"], &ended["decision"]),
        (&json!("expired"), &json!("expired"), &json!(null))
    );
    let message = ended["message"].as_str().unwrap();
    assert!(message.contains("silence is not consent") && message.contains("do not try another way"), "{message}");
    gate.post(&ann, &format!("/v1/approvals/{id}/decision"), &json!({"code": "1"})).expect_error(410, "expired");
    gate.call("POST", &format!("/v1/approvals/{id}/consume"), &agent, None).expect_error(409, "not_approved");
    gate.call("POST", &format!("/v1/approvals/{id}/cancel"), &agent, None).expect_error(410, "expired");
    // The same effect asked again is shown with what became of it before.
    let again = id_of(&gate.post(&agent, "/v1/approvals", &ask_for("a", "b")).expect(200));
    let record = gate.get(&ann, &format!("/v1/approvals/{again}")).expect(200);
    assert_eq!((&record["prior"]["approval_id"], &record["prior"]["status"]), (&json!(id), &json!("expired")));
}

#[test]
fn cancelling_ends_it_for_everyone() {
    let gate = Gate::start();
    let (agent, ann) = (gate.key("agent", "bot"), gate.key("approver", "ann"));
    let id = id_of(&gate.post(&agent, "/v1/approvals", &ask_for("a", "b")).expect(200));
    let cancelled = gate.call("POST", &format!("/v1/approvals/{id}/cancel"), &agent, None).expect(200);
    assert_eq!((&cancelled["status"], &cancelled["reason"]), (&json!("cancelled"), &json!("cancelled")));
    gate.post(&ann, &format!("/v1/approvals/{id}/decision"), &json!({"code": "1"}))
        .expect_error(409, "already_decided");
    gate.call("POST", &format!("/v1/approvals/{id}/cancel"), &agent, None).expect_error(409, "already_decided");
}

#[test]
fn the_feed_resumes_where_it_was_left() {
    let gate = Gate::start();
    let (agent, ann) = (gate.key("agent", "bot"), gate.key("approver", "ann"));
    let ids: Vec<String> =
        (0..5).map(|n| id_of(&gate.post(&agent, "/v1/approvals", &ask_for("a", &n.to_string())).expect(200))).collect();
    let mut events = Events::open(&gate, &ann, Some(0));
    let mut seen = Vec::new();
    let mut last = 0;
    while seen.len() < 3 {
        let event = events.next().unwrap();
        assert_eq!(event["seq"].as_u64().unwrap(), last + 1, "none left out");
        last += 1;
        if event["type"] == "requested" {
            seen.push(event["approval_id"].as_str().unwrap().to_owned());
        }
    }
    drop(events);
    let mut events = Events::open(&gate, &ann, Some(last));
    while seen.len() < 5 {
        seen.push(events.next().unwrap()["approval_id"].as_str().unwrap().to_owned());
    }
    assert_eq!(seen, ids);
}

#[test]
fn lists_page_through_everything_once() {
    let gate = Gate::start();
    let (agent, ann) = (gate.key("agent", "bot"), gate.key("approver", "ann"));
    let mut made: Vec<String> =
        (0..7).map(|n| id_of(&gate.post(&agent, "/v1/approvals", &ask_for("a", &n.to_string())).expect(200))).collect();
    made.reverse();
    let mut seen = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = gate.get(&ann, &format!("/v1/approvals?limit=3{cursor}")).expect(200);
        seen.extend(page["approvals"].as_array().unwrap().iter().map(id_of));
        let Some(next) = page["next_cursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(seen, made);
}

#[test]
fn stopping_answers_whoever_waits_with_a_state_they_can_ask_again_with() {
    let mut gate = Gate::start();
    let agent = gate.key("agent", "bot");
    let id = id_of(&gate.post(&agent, "/v1/approvals", &ask_for("a", "b")).expect(200));
    let path = format!("/v1/approvals/{id}?wait=60");
    let (address, key) = (gate.address, agent.clone());
    let waiter = std::thread::spawn(move || {
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        let head = format!(
            "GET {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {key}\r\nConnection: close\r\n\r\n"
        );
        std::io::Write::write_all(&mut stream, head.as_bytes()).unwrap();
        crate::support::read_answer(&mut stream)
    });
    while !gate.get("", "/metrics").text.contains("countersign_waiters 1") {
        std::thread::yield_now();
    }
    assert!(gate.terminate().success());
    assert_eq!(waiter.join().unwrap().expect(200)["status"], "pending");
    gate.restart();
    assert_eq!(gate.get(&agent, &format!("/v1/approvals/{id}")).expect(200)["status"], "pending");
}

#[test]
fn what_always_would_have_let_through_is_seen_before_it_is_said() {
    let gate = Gate::start();
    let (agent, ann) = (gate.key("agent", "bot"), gate.key("approver", "ann"));
    let ask = |command: &str| {
        id_of(&gate.post(&agent, "/v1/approvals", &json!({"session_id": "s", "command": command})).expect(200))
    };
    for command in ["npm ci", "npm ci && git status", "npm test", "git status"] {
        ask(command);
    }
    let id = ask("npm ci");
    let offer = gate.get(&ann, &format!("/v1/approvals/{id}/offer")).expect(200);
    assert_eq!((&offer["entries"], &offer["looked_at"], &offer["covered"]), (&json!(["npm ci"]), &json!(4), &json!(2)));
    assert_eq!(offer["examples"], json!(["npm ci && git status", "npm ci"]));
    let shown = gate.cli(&["show", &id]);
    let said = String::from_utf8(shown.stderr).unwrap();
    assert!(
        said.contains("would allow `npm ci` from now on, where no folder is named,")
            && said.contains("; of the last 4 commands it would have let through 2"),
        "{said}"
    );
    let dangerous = ask("rm -rf /srv");
    let refused = gate.get(&ann, &format!("/v1/approvals/{dangerous}/offer")).expect(200);
    assert!(refused["refused"].is_string() && refused["covered"] == 0, "{refused}");
}
