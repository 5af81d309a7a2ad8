//! Profiles as files: what the store has is in the file, what a person edits is in the store.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Device, ask_over_http};
use crate::support::{Gate, id_of};

/// As the hub's document has it.
const SEED: &str = r#"{
  "execApproval": {
    "security": "allowlist",
    "ask": "on-miss",
    "timeoutMs": 60000,
    "askFallback": "deny",
    "allowlist": [
      { "pattern": "git **" },
      { "pattern": "pnpm **" }
    ]
  }
}"#;

fn path(gate: &Gate, profile: &str) -> PathBuf {
    gate.data.join("agent-profiles").join(profile).join("config.json")
}

/// The file once it is as wanted: it is written soon after the change, not with it.
#[track_caller]
fn file_when(gate: &Gate, profile: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    let until = Instant::now() + Duration::from_secs(10);
    loop {
        let text = std::fs::read_to_string(path(gate, profile)).unwrap_or_default();
        match serde_json::from_str::<Value>(&text) {
            Ok(value) if wanted(&value) => return value,
            _ if Instant::now() > until => panic!("not in time: {text}"),
            _ => std::thread::yield_now(),
        }
    }
}

#[track_caller]
fn policy_when(gate: &Gate, profile: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    let until = Instant::now() + Duration::from_secs(10);
    loop {
        let policy = gate.get(&gate.admin, &format!("/v1/policy/{profile}")).expect(200)["policy"].clone();
        if wanted(&policy) {
            return policy;
        }
        assert!(Instant::now() < until, "not in time: {policy}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn patterns(value: &Value) -> Vec<&str> {
    let list = value["execApproval"]["allowlist"].as_array().unwrap();
    list.iter().map(|entry| entry["pattern"].as_str().unwrap()).collect()
}

#[test]
fn the_documents_configuration_is_taken_as_it_is_and_rules() {
    let gate = Gate::start();
    let file = path(&gate, "team");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, SEED).unwrap();
    let policy = policy_when(&gate, "team", |policy| !policy["allowlist"].as_array().is_none_or(Vec::is_empty));
    assert_eq!(policy["allowlist"], json!([{"pattern": "git **"}, {"pattern": "pnpm **"}]));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), SEED, "a good file is left as it is written");
    let agent = gate.key_in("agent", "bot", "team");
    assert_eq!(ask_over_http(&gate, &agent, "pnpm build")["status"], "approved");
    assert_eq!(ask_over_http(&gate, &agent, "npm build")["status"], "pending");
}

#[test]
fn every_profile_has_a_file_that_only_its_owner_reads() {
    use std::os::unix::fs::PermissionsExt as _;
    let gate = Gate::start();
    let shown = file_when(&gate, "default", |_| true);
    let empty =
        json!({"security": "allowlist", "ask": "on-miss", "timeoutMs": 60000, "askFallback": "deny", "allowlist": []});
    assert_eq!(shown, json!({"execApproval": empty}));
    let mode = std::fs::metadata(path(&gate, "default")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    gate.put_policy("ci", &json!({"version": 1, "security": "deny", "timeoutMs": 5000, "approvers": ["ann"]}));
    let shown = file_when(&gate, "ci", |_| true);
    assert_eq!(
        (&shown["execApproval"]["security"], &shown["execApproval"]["timeoutMs"]),
        (&json!("deny"), &json!(5000))
    );
}

#[test]
fn an_always_is_in_the_file_as_the_narrowest_entry_with_its_use_and_taking_it_out_ends_it() {
    let gate = Gate::start();
    let (agent, ann) = (gate.key("agent", "bot"), gate.key("approver", "ann"));
    let mut client = Device::approver(&gate, "phone", &ann);
    let id = id_of(&ask_over_http(&gate, &agent, "touch ./a ./b"));
    client.card("touch ./a ./b");
    client.ok("resolveExecApproval", &json!({"approvalId": id, "decision": "allow-always"}));
    let shown = file_when(&gate, "default", |file| !patterns(file).is_empty());
    let entry = &shown["execApproval"]["allowlist"][0];
    assert_eq!((&entry["pattern"], &entry["source"]), (&json!("touch ./a ./b"), &json!("grant")));

    assert_eq!(ask_over_http(&gate, &agent, "touch ./a ./b")["auto"], true);
    let shown = file_when(&gate, "default", |file| file["execApproval"]["allowlist"][0]["lastUsedAt"].is_i64());
    assert_eq!(shown["execApproval"]["allowlist"][0]["lastUsedCommand"], "touch ./a ./b");

    let mut edited = shown;
    edited["execApproval"]["allowlist"] = json!([]);
    edited["mine"] = json!({"kept": [1, 2]});
    std::fs::write(path(&gate, "default"), edited.to_string()).unwrap();
    let until = Instant::now() + Duration::from_secs(10);
    while gate.get(&ann, "/v1/grants").expect(200)["grants"] != json!([]) {
        assert!(Instant::now() < until, "the grant did not end");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(ask_over_http(&gate, &agent, "touch ./a ./b")["status"], "pending");
    // What is not ours stays, also when the store changes.
    gate.put_policy("default", &json!({"version": 1, "ask": "always"}));
    let shown = file_when(&gate, "default", |file| file["execApproval"]["ask"] == "always");
    assert_eq!(shown["mine"], json!({"kept": [1, 2]}));
}

#[test]
fn a_file_that_is_wrong_is_neither_used_nor_written_over() {
    let gate = Gate::start();
    gate.put_policy("default", &json!({"version": 1, "security": "deny"}));
    file_when(&gate, "default", |file| file["execApproval"]["security"] == "deny");
    let wrong = "{\n  \"execApproval\": {\n    \"securty\": \"full\"\n  }\n}";
    std::fs::write(path(&gate, "default"), wrong).unwrap();
    let log = gate.data.parent().unwrap().join("serve.log");
    let until = Instant::now() + Duration::from_secs(10);
    loop {
        let text = std::fs::read_to_string(&log).unwrap();
        if let Some(line) = text.lines().find(|line| line.contains("the policy from before stays")) {
            assert!(line.contains("securty") && line.contains("line 3 column"), "{line}");
            break;
        }
        assert!(Instant::now() < until, "nothing was said");
        std::thread::sleep(Duration::from_millis(20));
    }
    // A change of the store does not touch it either.
    gate.put_policy("default", &json!({"version": 1, "security": "deny", "ask": "always"}));
    gate.put_policy("other", &json!({"version": 1}));
    file_when(&gate, "other", |_| true);
    assert_eq!(std::fs::read_to_string(path(&gate, "default")).unwrap(), wrong);
    let policy = gate.get(&gate.admin, "/v1/policy/default").expect(200)["policy"].clone();
    assert_eq!((&policy["security"], &policy["ask"]), (&json!("deny"), &json!("always")));
    // Mended, it counts.
    std::fs::write(path(&gate, "default"), wrong.replace("securty", "security")).unwrap();
    policy_when(&gate, "default", |policy| policy["security"] == "full");
}

#[test]
fn after_a_restart_an_edit_is_told_from_a_change_of_the_store() {
    let mut gate = Gate::start();
    file_when(&gate, "default", |_| true);
    gate.key_in("agent", "bot", "second");
    let second = file_when(&gate, "second", |_| true);
    gate.terminate();
    // One by the command line, one by an editor, while no gate runs.
    let policy = gate.data.parent().unwrap().join("policy.json");
    std::fs::write(&policy, json!({"version": 1, "ask": "always"}).to_string()).unwrap();
    let set = gate.cli(&["policy", "set", "default", policy.to_str().unwrap()]);
    assert!(set.status.success(), "{}", String::from_utf8_lossy(&set.stderr));
    let mut edited = second;
    edited["execApproval"]["security"] = json!("deny");
    std::fs::write(path(&gate, "second"), edited.to_string()).unwrap();
    gate.restart();
    file_when(&gate, "default", |file| file["execApproval"]["ask"] == "always");
    policy_when(&gate, "second", |policy| policy["security"] == "deny");
}
