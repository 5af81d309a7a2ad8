//! Power cuts and full disks: nothing acknowledged is lost, nothing is decided twice, nothing is allowed that
//! could not be written.

use std::collections::HashMap;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use countersign_ledger::{Checkpoints, verify_store};
use serde_json::{Value, json};

use crate::support::{Gate, ask_for, id_of};

/// What the gate has acknowledged, by approval: its decision, once there is one.
type Acknowledged = Mutex<HashMap<String, Option<Value>>>;

#[test]
fn threat_68_kill_dash_nine_in_a_loop_loses_and_doubles_nothing() {
    let rounds: u64 = std::env::var("COUNTERSIGN_KILL_ROUNDS").map_or(50, |text| text.parse().unwrap());
    let mut gate = Gate::start_with("[limits]\nrequests_per_key = 1000000\nrequests_per_address = 1000000\n");
    let (agent, ann) = (gate.key("agent", "bot"), gate.key("approver", "ann"));
    let acknowledged = Acknowledged::default();
    for round in 0..rounds {
        let until = 5 + round * 7 % 60;
        let answered = AtomicU64::new(0);
        std::thread::scope(|scope| {
            let workers: Vec<_> =
                (0..4).map(|_| scope.spawn(|| work(gate.address, &agent, &ann, &acknowledged, &answered))).collect();
            while answered.load(Ordering::SeqCst) < until && workers.iter().any(|worker| !worker.is_finished()) {
                std::thread::yield_now();
            }
            rustix::process::kill_process(
                rustix::process::Pid::from_raw(gate.pid().cast_signed()).unwrap(),
                rustix::process::Signal::KILL,
            )
            .unwrap();
        });
        gate.restart();
        check(&gate, &ann, &acknowledged.lock().unwrap());
        verify_store(&gate.data.join("countersign.db"), Checkpoints::default(), |_| {}).unwrap();
    }
    let total = acknowledged.lock().unwrap();
    let decided = total.values().flatten().count();
    assert!(decided as u64 > rounds, "the loop did some work: {decided} decisions of {} requests", total.len());
}

/// Asks and decides until the gate is gone, noting what was acknowledged.
fn work(address: std::net::SocketAddr, agent: &str, ann: &str, acknowledged: &Acknowledged, answered: &AtomicU64) {
    let call = |path: &str, key: &str, body: &Value| -> Option<Value> {
        let mut stream = std::net::TcpStream::connect(address).ok()?;
        let body = body.to_string();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nAuthorization: Bearer {key}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(head.as_bytes()).ok()?;
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut stream, &mut bytes).ok()?;
        let text = String::from_utf8(bytes).ok()?;
        let (head, body) = text.split_once("\r\n\r\n")?;
        head.starts_with("HTTP/1.1 200").then(|| serde_json::from_str(body).ok())?
    };
    loop {
        let Some(asked) = call("/v1/approvals", agent, &ask_for("http_request", "GET /")) else { return };
        let id = id_of(&asked);
        acknowledged.lock().unwrap().insert(id.clone(), None);
        let body = json!({"code": "4", "text": id});
        let Some(decided) = call(&format!("/v1/approvals/{id}/decision"), ann, &body) else { return };
        acknowledged.lock().unwrap().insert(id, Some(decided["decision"].clone()));
        answered.fetch_add(1, Ordering::SeqCst);
    }
}

fn check(gate: &Gate, ann: &str, acknowledged: &HashMap<String, Option<Value>>) {
    let mut found = HashMap::new();
    let mut cursor = String::new();
    loop {
        let page = gate.get(ann, &format!("/v1/approvals?limit=200{cursor}")).expect(200);
        for record in page["approvals"].as_array().unwrap() {
            found.insert(id_of(record), record["decision"].clone());
        }
        let Some(next) = page["next_cursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    for (id, decision) in acknowledged {
        let stored = found.get(id).unwrap_or_else(|| panic!("{id} was acknowledged and is gone"));
        if let Some(decision) = decision {
            assert_eq!(stored, decision, "{id} was decided and reads otherwise");
        }
    }
}

/// A small file system of its own, unmounted at the end.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn new(megabytes: u32) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let size = format!("size={megabytes}m,mode=700");
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(folder.path()).status().unwrap();
        assert!(mounted.success(), "this test needs to mount a small file system: run it as root");
        Self(folder)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

#[test]
fn threat_69_on_a_full_disk_nothing_is_allowed_and_it_recovers() {
    let disk = SmallDisk::new(4);
    let gate = Gate::start_in(&disk.path().join("data"), vec![]);
    let (agent, ann) = (gate.key("agent", "bot"), gate.key("approver", "ann"));
    gate.put_policy("default", &json!({"version": 1, "tools": [{"name": "Read", "effect": "allow"}]}));
    let pending = id_of(&gate.post(&agent, "/v1/approvals", &ask_for("a", "b")).expect(200));
    let allowed = json!({"session_id": "s", "tool": "Read", "args": {"file_path": "x"}});
    assert_eq!(gate.post(&agent, "/v1/approvals", &allowed).expect(200)["status"], "approved");

    let filler = disk.path().join("filler");
    let mut file = std::fs::File::create(&filler).unwrap();
    while file.write_all(&[0u8; 4096]).is_ok() {}
    // The store may still have a page or two of its own to write to.
    let refused = (0..200)
        .map(|n| gate.post(&agent, "/v1/approvals", &ask_for("a", &format!("{n}{}", "x".repeat(8000)))))
        .find(|answer| answer.status != 200)
        .expect("a full disk");
    refused.expect_error(503, "store_unavailable");
    let auto = gate.post(&agent, "/v1/approvals", &allowed);
    assert_ne!(auto.status, 200, "even what policy allows needs its record: {}", auto.text);
    let decision = format!("/v1/approvals/{pending}/decision");
    let big = json!({"decision": "allow-once", "note": "x".repeat(15_000)});
    gate.post(&ann, &decision, &big).expect_error(503, "store_unavailable");
    assert_eq!(gate.get(&agent, &format!("/v1/approvals/{pending}")).expect(200)["status"], "pending");
    let not_ready = gate.get("", "/readyz");
    let why = not_ready.text.clone();
    not_ready.expect_error(503, "store_unavailable");
    assert!(why.contains("full"), "{why}");

    std::fs::remove_file(&filler).unwrap();
    drop(file);
    while gate.get("", "/readyz").status != 200 {
        std::thread::yield_now();
    }
    assert_eq!(gate.post(&agent, "/v1/approvals", &allowed).expect(200)["status"], "approved");
    gate.post(&ann, &decision, &big).expect(200);
    verify_store(&gate.data.join("countersign.db"), Checkpoints::default(), |_| {}).unwrap();
}

#[test]
fn threat_69_a_read_only_disk_is_said_at_the_start() {
    let disk = SmallDisk::new(8);
    let data = disk.path().join("data");
    drop(Gate::start_in(&data, vec![]));
    let remounted = Command::new("mount").args(["-o", "remount,ro"]).arg(disk.path()).status().unwrap();
    assert!(remounted.success());
    let refused = Command::new(crate::support::BINARY)
        .args(["serve", "--listen", "127.0.0.1:0", "--data"])
        .arg(&data)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&refused.stderr).to_lowercase();
    assert!(!refused.status.success() && said.contains("read-only"), "{said}");
}

#[test]
fn pending_approvals_and_waiting_agents_survive_a_restart() {
    let mut gate = Gate::start();
    let (agent, ann) = (gate.key("agent", "bot"), gate.key("approver", "ann"));
    let mut soon = ask_for("a", "soon");
    soon["expires_in_sec"] = json!(1);
    let soon = id_of(&gate.post(&agent, "/v1/approvals", &soon).expect(200));
    let id = id_of(&gate.post(&agent, "/v1/approvals", &ask_for("a", "b")).expect(200));
    gate.kill();
    gate.restart();
    gate.post(&ann, &format!("/v1/approvals/{id}/decision"), &json!({"code": "1"})).expect(200);
    assert_eq!(gate.get(&agent, &format!("/v1/approvals/{id}?wait=30")).expect(200)["status"], "approved");
    assert_eq!(gate.get(&agent, &format!("/v1/approvals/{soon}?wait=30")).expect(200)["status"], "expired");
}
