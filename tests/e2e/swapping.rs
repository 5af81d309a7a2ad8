//! Threat 83: an answer goes to the request that its card showed, or to none. What an agent calls its requests, when it
//! says so, and what other clients call theirs changes nothing about it.

use serde_json::{Value, json};

use crate::hub::Device;
use crate::support::Gate;
use crate::websocket::Client;

struct Cast {
    gate: Gate,
    agent: Client,
    agent_key: String,
    other: Client,
    ann: Client,
    ann_key: String,
}

fn cast() -> Cast {
    cast_at(Gate::start())
}

fn cast_at(gate: Gate) -> Cast {
    let [agent_key, other_key] = ["bot", "other"].map(|name| gate.key("agent", name));
    let ann_key = gate.key("approver", "ann");
    let [agent, other, ann] = [&agent_key, &other_key, &ann_key].map(|key| Client::connect(&gate, key));
    Cast { gate, agent, agent_key, other, ann, ann_key }
}

fn ask(client: &mut Client, id: &str, command: &str) -> Result<Value, Value> {
    let asked = client.request("exec.approval.request", json!({ "id": id, "command": command, "twoPhase": true }));
    client.answer(&asked)
}

fn resolve(client: &mut Client, id: &Value, decision: &str) -> Result<Value, Value> {
    client.call("exec.approval.resolve", json!({ "id": id, "decision": decision }))
}

fn reason(error: &Value) -> &str {
    error["details"]["reason"].as_str().unwrap_or_default()
}

impl Cast {
    fn status(&self, id: &Value) -> Value {
        self.gate.get(&self.ann_key, &format!("/v1/approvals/{}", id.as_str().unwrap())).expect(200)["status"].clone()
    }

    fn end(&mut self, id: &Value, how: &str) {
        let path = |verb: &str| format!("/v1/approvals/{}/{verb}", id.as_str().unwrap());
        let decision = |word: &str| json!({ "decision": word });
        match how {
            "cancelled" => drop(self.gate.call("POST", &path("cancel"), &self.agent_key, None).expect(200)),
            "denied" => drop(self.gate.post(&self.ann_key, &path("decision"), &decision("deny")).expect(200)),
            "approved" => drop(self.gate.post(&self.ann_key, &path("decision"), &decision("allow-once")).expect(200)),
            "expired" => {
                drop(self.gate.get(&self.agent_key, &format!("{}?wait=30", path("").trim_end_matches('/'))).expect(200))
            }
            _ => panic!("{how}"),
        }
        assert_eq!(self.status(id), how);
    }
}

#[test]
fn threat_83_an_answer_to_one_card_never_reaches_another_request_under_the_same_id() {
    for how in ["cancelled", "denied", "approved", "expired"] {
        let mut cast = cast();
        let timeout = if how == "expired" { 300 } else { 120_000 };
        let params = json!({ "id": "build-1", "command": "npm test", "twoPhase": true, "timeoutMs": timeout });
        let asked = cast.agent.request("exec.approval.request", params);
        let first = cast.agent.answer(&asked).unwrap()["approvalId"].clone();
        let card = cast.ann.event("exec.approval.requested");
        assert_eq!(
            (&card["id"], &card["callerId"], &card["approvalId"]),
            (&json!("build-1"), &json!("build-1"), &first)
        );
        assert_eq!(
            ask(&mut cast.agent, "build-1", "rm -rf /srv").unwrap_err()["message"],
            "approval id already pending"
        );
        // Also where policy would have answered at once, and with spaces around it.
        assert_eq!(
            ask(&mut cast.agent, " build-1 ", "git status").unwrap_err()["message"],
            "approval id already pending"
        );
        cast.end(&first, how);
        for command in ["rm -rf /srv", "git status", "npm test"] {
            let error = ask(&mut cast.agent, "build-1", command).unwrap_err();
            assert_eq!(
                (&error["code"], &error["message"]),
                (&json!("INVALID_REQUEST"), &json!("approval id already used")),
                "{how}"
            );
        }
        // The store knows it too, after the gate was killed.
        cast.gate.kill();
        cast.gate.restart();
        let mut agent = Client::connect(&cast.gate, &cast.agent_key);
        let mut ann = Client::connect(&cast.gate, &cast.ann_key);
        assert_eq!(ask(&mut agent, "build-1", "rm -rf /srv").unwrap_err()["message"], "approval id already used");
        for decision in ["allow-always", "allow-once", "deny"] {
            // To the first, which has ended, or to nothing.
            let _ = resolve(&mut ann, &card["id"], decision);
        }
        assert_eq!(cast.status(&first), how);
        assert_eq!(ann.call("exec.approval.list", json!({})).unwrap(), json!([]));
    }
}

#[test]
fn threat_83_a_name_is_used_for_ever_also_when_the_contents_are_gone() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut cast = cast_at(Gate::start_in(&data, Vec::new()));
    let first = ask(&mut cast.agent, "build-1", "npm test").unwrap()["approvalId"].clone();
    cast.end(&first, "cancelled");
    drop(cast.gate);
    // Long ago, as the store has it: the next start removes its contents.
    let store = std::fs::read_dir(&data)
        .unwrap()
        .map(|file| file.unwrap().path())
        .find(|path| path.extension().is_some_and(|ext| ext == "db"))
        .unwrap();
    let connection = rusqlite::Connection::open(store).unwrap();
    assert_eq!(connection.execute("UPDATE approvals SET ended_at = 1", []).unwrap(), 1);
    drop(connection);
    let gate = Gate::start_in(&data, vec!["--retention-days".to_owned(), "1".to_owned()]);
    let path = format!("/v1/approvals/{}", first.as_str().unwrap());
    while gate.get(&cast.ann_key, &path).status != 404 {
        std::thread::yield_now();
    }
    let mut agent = Client::connect(&gate, &cast.agent_key);
    assert_eq!(ask(&mut agent, "build-1", "rm -rf /srv").unwrap_err()["message"], "approval id already used");
    let mut ann = Client::connect(&gate, &cast.ann_key);
    assert_eq!(reason(&resolve(&mut ann, &json!("build-1"), "allow-always").unwrap_err()), "APPROVAL_NOT_FOUND");
}

#[test]
fn threat_83_an_id_of_ones_own_never_reads_like_one_of_the_gates() {
    let mut cast = cast();
    let victim = ask(&mut cast.other, "job", "make victim").unwrap()["approvalId"].as_str().unwrap().to_owned();
    let digits = victim.trim_start_matches("appr_");
    for bad in [
        victim.as_str(),
        digits,
        &digits[..8],
        &digits[..20],
        &digits.to_uppercase(),
        "appr_",
        "appr_mine",
        "APPR_mine",
        &format!(" {digits} "),
        "deadbeef",
        "12345678",
    ] {
        let error = ask(&mut cast.agent, bad, "rm -rf /srv").unwrap_err();
        assert_eq!(error["code"], "INVALID_REQUEST", "{bad}");
    }
    for good in ["0194444a-0000-7000-8000-000000000000", "job-12345678", &"a".repeat(33), "abc1234", "job"] {
        assert_eq!(ask(&mut cast.agent, good, "make mine").unwrap()["callerId"], good);
    }
    assert_eq!(cast.status(&json!(victim)), "pending");
}

#[test]
fn threat_83_anothers_same_id_neither_blocks_nor_redirects_an_answer() {
    for decision in ["deny", "allow-once", "allow-always"] {
        for first_is_open in [true, false] {
            let mut cast = cast();
            let first = ask(&mut cast.agent, "job-1", "npm test").unwrap();
            let card = cast.ann.event("exec.approval.requested");
            assert_eq!((&first["id"], &card["id"]), (&json!("job-1"), &json!("job-1")));
            if !first_is_open {
                cast.end(&first["approvalId"], "cancelled");
            }
            // The same text for something else: nobody is shown it for that, not even its requester.
            let second = ask(&mut cast.other, "job-1", "npm publish").unwrap();
            let other_card = cast.ann.event("exec.approval.requested");
            for frame in [&second, &other_card] {
                assert_eq!((&frame["id"], &frame["callerId"]), (&second["approvalId"], &json!("job-1")), "{frame}");
            }
            let answered = resolve(&mut cast.ann, &card["id"], decision);
            assert_eq!(answered.is_ok(), first_is_open, "{decision}: {answered:?}");
            assert_eq!(cast.status(&second["approvalId"]), "pending", "{decision}");
            if first_is_open {
                let expected = if decision == "deny" { "denied" } else { "approved" };
                assert_eq!(cast.status(&first["approvalId"]), expected);
            }
            // From now on every frame of both shows whole ids; each client's own lookups are its own.
            for row in cast.ann.call("exec.approval.list", json!({})).unwrap().as_array().unwrap() {
                assert_eq!(row["id"], row["approvalId"], "{row}");
            }
            let own = cast.other.call("exec.approval.get", json!({ "id": "job-1" })).unwrap();
            assert_eq!((&own["approvalId"], &own["commandText"]), (&second["approvalId"], &json!("npm publish")));
            resolve(&mut cast.ann, &other_card["id"], "deny").unwrap();
            assert_eq!(cast.status(&second["approvalId"]), "denied");
        }
    }
}

#[test]
fn threat_83_no_wire_takes_a_part_of_an_id() {
    let mut cast = cast();
    let id = ask(&mut cast.agent, "job-1", "npm test").unwrap()["approvalId"].as_str().unwrap().to_owned();
    let digits = id.trim_start_matches("appr_").to_owned();
    let mut phone = Device::approver(&cast.gate, "phone", &cast.ann_key);
    let parts = [&id[..36], &id[..20], &id[..9], "appr_", &digits, &digits[..31], &digits[..8]];
    for part in parts {
        for decision in ["deny", "allow-once"] {
            let error = resolve(&mut cast.ann, &json!(part), decision).unwrap_err();
            assert!(error["message"].as_str().unwrap().contains("whole id"), "{part}: {error}");
            let body = json!({ "decision": decision });
            let refused = cast.gate.post(&cast.ann_key, &format!("/v1/approvals/{part}/decision"), &body);
            let refused = refused.expect_error(404, "not_found");
            assert!(refused["detail"].as_str().unwrap().contains("whole id"), "{part}: {refused}");
            let refused = phone.resolve(&json!(part), decision)["error"].clone();
            assert_eq!(refused["code"], "NOT_FOUND");
        }
        for method in ["exec.approval.get", "exec.approval.waitDecision"] {
            assert!(cast.agent.call(method, json!({ "id": part })).is_err(), "{part}");
            assert!(cast.ann.call(method, json!({ "id": part })).is_err(), "{part}");
        }
        for verb in ["", "/consume", "/cancel", "/stop", "/host-decision"] {
            let method = if verb.is_empty() { "GET" } else { "POST" };
            let body = (verb == "/host-decision").then(|| json!({ "decision": "deny" }));
            let answer = cast.gate.call(method, &format!("/v1/approvals/{part}{verb}"), &cast.agent_key, body.as_ref());
            assert!([403, 404].contains(&answer.status), "{part}{verb}: {}", answer.text);
        }
    }
    for unknown in ["nothing", "job-", "JOB-1", "ab12", "appr_0000000000000000000000000000000f"] {
        let error = resolve(&mut cast.ann, &json!(unknown), "deny").unwrap_err();
        assert_eq!(
            (&error["message"], reason(&error)),
            (&json!("unknown or expired approval id"), "APPROVAL_NOT_FOUND")
        );
    }
    assert_eq!(cast.status(&json!(id)), "pending");
    // At a person's own terminal the beginning is enough, and what it means is said.
    let approved = cast.gate.cli(&["approve", &digits[..6]]);
    let said = String::from_utf8_lossy(&approved.stderr).into_owned();
    assert!(approved.status.success() && said.contains(&id) && said.contains("npm test"), "{said}");
    assert_eq!(cast.status(&json!(id)), "approved");
}

#[test]
fn threat_83_names_that_an_older_store_had_twice_are_answered_by_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut cast = cast_at(Gate::start_in(&data, Vec::new()));
    let [a, b, c] = [("old-1", "make a"), ("old-2", "make b"), ("old-3", "make c")]
        .map(|(id, command)| ask(&mut cast.agent, id, command).unwrap()["approvalId"].clone());
    drop(cast.gate);
    let store = std::fs::read_dir(&data)
        .unwrap()
        .map(|file| file.unwrap().path())
        .find(|path| path.extension().is_some_and(|ext| ext == "db"))
        .unwrap();
    // As the store was before: names beside the requests alone, and one of them used twice.
    let connection = rusqlite::Connection::open(store).unwrap();
    connection
        .execute_batch(
            "DROP TABLE wrong_numbers; DROP TABLE aliases; UPDATE approvals SET alias = 'old-1' WHERE alias = 'old-2';
             ALTER TABLE approvals DROP COLUMN told; ALTER TABLE approvals DROP COLUMN bytes;
             ALTER TABLE approvals DROP COLUMN summary;
             CREATE INDEX approvals_by_alias ON approvals (alias) WHERE alias IS NOT NULL; PRAGMA user_version = 3;",
        )
        .unwrap();
    drop(connection);
    let gate = Gate::start_in(&data, Vec::new());
    let mut ann = Client::connect(&gate, &cast.ann_key);
    for decision in ["deny", "allow-once"] {
        let error = resolve(&mut ann, &json!("old-1"), decision).unwrap_err();
        assert!(error["message"].as_str().unwrap().contains("approvalId"), "{error}");
    }
    let mut agent = Client::connect(&gate, &cast.agent_key);
    for id in ["old-1", "old-3"] {
        assert_eq!(ask(&mut agent, id, "rm -rf /srv").unwrap_err()["message"], "approval id already pending");
    }
    resolve(&mut ann, &json!("old-3"), "deny").unwrap();
    let status = |id: &Value| {
        gate.get(&cast.ann_key, &format!("/v1/approvals/{}", id.as_str().unwrap())).expect(200)["status"].clone()
    };
    assert_eq!([&a, &b, &c].map(status), ["pending", "pending", "denied"]);
}
