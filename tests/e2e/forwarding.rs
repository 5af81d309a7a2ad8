//! A laptop's gate forwards to the team's: both sides' people are asked, and the first answer counts on both.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Gate, id_of};

/// A way to another gate that can be cut and mended, wherever that gate listens now.
struct Way {
    address: SocketAddr,
    there: Arc<Mutex<Option<SocketAddr>>>,
    open: Arc<Mutex<Vec<TcpStream>>>,
}

impl Way {
    fn to(gate: &Gate) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let there = Arc::new(Mutex::new(Some(gate.address)));
        let open: Arc<Mutex<Vec<TcpStream>>> = Arc::default();
        let (target, streams) = (there.clone(), open.clone());
        std::thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                let Some(far) = target.lock().unwrap().and_then(|address| TcpStream::connect(address).ok()) else {
                    continue;
                };
                streams.lock().unwrap().extend([near.try_clone().unwrap(), far.try_clone().unwrap()]);
                for (from, to) in [(near.try_clone().unwrap(), far.try_clone().unwrap()), (far, near)] {
                    std::thread::spawn(move || carry(from, to));
                }
            }
        });
        Self { address, there, open }
    }

    fn cut(&self) {
        *self.there.lock().unwrap() = None;
        for stream in self.open.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    fn mend(&self, gate: &Gate) {
        *self.there.lock().unwrap() = Some(gate.address);
    }
}

fn carry(mut from: TcpStream, mut to: TcpStream) {
    let mut bytes = [0; 4096];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        if to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}

struct Cast {
    laptop: Gate,
    team: Gate,
    way: Way,
    agent: String,
    ann: String,
    bob: String,
    _folder: tempfile::TempDir,
}

fn config(folder: &std::path::Path, name: &str, url: SocketAddr, key: &str) -> PathBuf {
    std::fs::write(folder.join(format!("{name}.key")), key).unwrap();
    let text = format!("[forward]\nurl = \"http://{url}\"\nkey_file = \"{name}.key\"\nname = \"{name}\"\n");
    let file = folder.join(format!("{name}.toml"));
    std::fs::write(&file, text).unwrap();
    file
}

fn cast() -> Cast {
    let folder = tempfile::tempdir().unwrap();
    let team = Gate::start();
    let way = Way::to(&team);
    let file = config(folder.path(), "team", way.address, &team.key("agent", "laptop"));
    let laptop = Gate::start_in(&folder.path().join("data"), vec!["--config".into(), file.display().to_string()]);
    let (agent, ann, bob) = (laptop.key("agent", "bot"), laptop.key("approver", "ann"), team.key("approver", "bob"));
    Cast { laptop, team, way, agent, ann, bob, _folder: folder }
}

/// Looks until there is something to see, for half a minute.
#[track_caller]
fn until<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + Duration::from_secs(30);
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(Instant::now() < end, "nothing came in half a minute");
        std::thread::sleep(Duration::from_millis(20));
    }
}

impl Cast {
    fn ask(&self, body: Value) -> String {
        let mut body = body;
        body["session_id"] = json!("s");
        id_of(&self.laptop.post(&self.agent, "/v1/approvals", &body).expect(200))
    }

    /// What the people there are asked, as soon as they are.
    fn asked_there(&self) -> Value {
        until(|| self.pending_there().pop())
    }

    fn pending_there(&self) -> Vec<Value> {
        let page = self.team.get(&self.bob, "/v1/approvals?status=pending").expect(200);
        page["approvals"].as_array().unwrap().clone()
    }

    fn decide_there(&self, id: &str, decision: Value) {
        self.team.post(&self.bob, &format!("/v1/approvals/{id}/decision"), &decision).expect(200);
    }

    fn ended_here(&self, id: &str) -> Value {
        let ended = self.laptop.get(&self.agent, &format!("/v1/approvals/{id}?wait=30")).expect(200);
        assert_ne!(ended["status"], "pending", "{ended}");
        ended
    }
}

#[test]
fn a_yes_of_the_teams_is_a_yes_here_in_their_name() {
    let cast = cast();
    let id = cast.ask(json!({ "command": "make deploy", "cwd": "/srv", "agent_id": "main" }));
    let there = cast.asked_there();
    assert_eq!((&there["preview"], &there["client_name"]), (&json!("make deploy"), &json!("laptop")));
    assert!(there["showing"]["agent_says"]["text"].as_str().unwrap().contains("bot"), "{there}");
    cast.decide_there(&id_of(&there), json!({ "code": "4", "text": "mind the load" }));
    let ended = cast.ended_here(&id);
    let decision = &ended["decision"];
    assert_eq!((&ended["status"], &ended["reason"]), (&json!("approved"), &json!("person")));
    assert_eq!(
        (&decision["by"], &decision["via"], &decision["note"]),
        (&json!("bob@team"), &json!("forward"), &json!("mind the load"))
    );
    let verified = cast.laptop.cli(&["audit", "verify"]);
    assert!(verified.status.success(), "{verified:?}");
}

#[test]
fn questions_tools_and_changed_commands_come_back_whole() {
    let cast = cast();
    let question = cast.ask(json!({ "question": "which port?", "options": ["80", "81"] }));
    cast.decide_there(&id_of(&cast.asked_there()), json!({ "decision": "allow-once", "answer": "81" }));
    assert_eq!(cast.ended_here(&question)["decision"]["answer"], "81");
    let tool = cast.ask(json!({ "tool": "Write", "category": "edit", "args": { "file_path": "/a" } }));
    cast.decide_there(&id_of(&cast.asked_there()), json!({ "code": "3", "text": "not that file" }));
    let ended = cast.ended_here(&tool);
    assert_eq!((&ended["status"], &ended["decision"]["note"]), (&json!("denied"), &json!("not that file")));
    let command = cast.ask(json!({ "command": "make deploy" }));
    cast.decide_there(&id_of(&cast.asked_there()), json!({ "code": "5", "text": "make stage" }));
    assert_eq!(cast.ended_here(&command)["decision"]["override"], "make stage");
}

#[test]
fn an_answer_here_takes_the_question_back_there() {
    let cast = cast();
    let id = cast.ask(json!({ "command": "make" }));
    let there = id_of(&cast.asked_there());
    cast.laptop.post(&cast.ann, &format!("/v1/approvals/{id}/decision"), &json!({ "code": "1" })).expect(200);
    until(|| cast.pending_there().is_empty().then_some(()));
    let late = cast.team.post(&cast.bob, &format!("/v1/approvals/{there}/decision"), &json!({ "code": "3" }));
    late.expect_error(409, "already_decided");
    let ended = cast.ended_here(&id);
    assert_eq!((&ended["status"], &ended["decision"]["by"]), (&json!("approved"), &json!("ann")));
}

#[test]
fn the_teams_policy_can_forbid_and_never_allows_by_itself() {
    let cast = cast();
    cast.team.put_policy("default", &json!({ "version": 1, "security": "full", "deny": [{ "pattern": "make evil" }] }));
    let forbidden = cast.ask(json!({ "command": "make evil" }));
    let ended = cast.ended_here(&forbidden);
    assert_eq!((&ended["status"], &ended["decision"]["by"]), (&json!("denied"), &json!("policy@team")));
    cast.ask(json!({ "command": "make good" }));
    assert_eq!(cast.asked_there()["status"], "pending");
}

#[test]
fn while_the_team_cannot_be_reached_people_here_decide_and_nothing_is_asked_twice() {
    let mut cast = cast();
    let kept = cast.ask(json!({ "command": "make kept" }));
    cast.asked_there();
    cast.way.cut();
    let gone = cast.ask(json!({ "command": "make gone" }));
    for id in [&kept, &gone] {
        let path = format!("/v1/approvals/{id}/decision");
        cast.laptop.post(&cast.ann, &path, &json!({ "code": "1" })).expect(200);
        assert_eq!(cast.ended_here(id)["decision"]["by"], "ann");
    }
    let open = cast.ask(json!({ "command": "make open" }));
    cast.team.restart();
    cast.way.mend(&cast.team);
    // What is open is asked there once the way is back, and what was answered meanwhile is withdrawn.
    let there = until(|| match cast.pending_there().as_slice() {
        [only] if only["preview"] == "make open" => Some(only.clone()),
        _ => None,
    });
    cast.decide_there(&id_of(&there), json!({ "code": "1" }));
    assert_eq!(cast.ended_here(&open)["decision"]["by"], "bob@team");
    let all = cast.team.get(&cast.bob, "/v1/approvals").expect(200);
    assert_eq!(all["approvals"].as_array().unwrap().len(), 2, "{all}");
}

#[test]
fn what_was_answered_there_while_this_gate_was_dead_is_taken_when_it_lives_again() {
    let mut cast = cast();
    let id = cast.ask(json!({ "command": "make" }));
    let there = id_of(&cast.asked_there());
    cast.laptop.kill();
    cast.decide_there(&there, json!({ "code": "3", "text": "no" }));
    cast.laptop.restart();
    let ended = cast.ended_here(&id);
    assert_eq!((&ended["status"], &ended["decision"]["by"]), (&json!("denied"), &json!("bob@team")));
}

#[test]
fn two_gates_that_forward_to_each_other_ask_each_of_their_people_once() {
    let folder = tempfile::tempdir().unwrap();
    // The second is told of the first before either key exists, by a way that is mended later.
    let first = Gate::start();
    let way = Way::to(&first);
    let second_config = config(folder.path(), "first", way.address, &first.key("agent", "second"));
    let data = folder.path().join("second");
    let second = Gate::start_in(&data, vec!["--config".into(), second_config.display().to_string()]);
    let third_config = config(folder.path(), "second", second.address, &second.key("agent", "first"));
    let mut first = first;
    first.kill();
    let first = Gate::start_in(&first.data, vec!["--config".into(), third_config.display().to_string()]);
    way.mend(&first);
    let agent = first.key("agent", "bot");
    let id = id_of(&first.post(&agent, "/v1/approvals", &json!({ "session_id": "s", "command": "make" })).expect(200));
    let bob = second.key("approver", "bob");
    let there = until(|| {
        let page = second.get(&bob, "/v1/approvals?status=pending").expect(200);
        page["approvals"].as_array().unwrap().first().cloned()
    });
    second.post(&bob, &format!("/v1/approvals/{}/decision", id_of(&there)), &json!({ "code": "1" })).expect(200);
    let ended = first.get(&agent, &format!("/v1/approvals/{id}?wait=30")).expect(200);
    assert_eq!(ended["decision"]["by"], "bob@second", "{ended}");
    let all = first.get(&first.admin, "/v1/approvals").expect(200);
    assert_eq!(all["approvals"].as_array().unwrap().len(), 1, "it came back: {all}");
}

#[test]
fn a_section_that_cannot_work_is_refused_at_the_start_and_says_why() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("k"), "csk_x").unwrap();
    for (section, why) in [
        ("url = \"team\"\nkey_file = \"k\"", "http://"),
        ("url = \"http://10.0.0.1\"\nkey_file = \"k\"", "insecure = true"),
        ("url = \"https://a\"\nkey_file = \"none\"", "none"),
        ("url = \"https://a\"\nkey_file = \"k\"\nname = \"a b\"", "forward.name"),
        ("url = \"https://a\"\nkey_file = \"k\"\nkey = \"x\"", "key"),
    ] {
        let file = folder.path().join("c.toml");
        std::fs::write(&file, format!("[forward]\n{section}\n")).unwrap();
        let data = folder.path().join("data");
        let output = std::process::Command::new(crate::support::BINARY)
            .args(["serve", "--listen", "127.0.0.1:0", "--config"])
            .arg(&file)
            .arg("--data")
            .arg(&data)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(why), "{section}: {said}");
    }
}
