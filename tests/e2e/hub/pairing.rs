//! From a code on the screen to a device that answers, and back.

use serde_json::{Value, json};

use super::{Device, ask_over_http};
use crate::support::{Gate, id_of};

const PHONE: &str = "3f0c2b6e-5d1a-4c7b-9e2f-8a6d0b1c4e7f";

fn pair(gate: &Gate, args: &[&str]) -> Value {
    let out = gate.cli(&[&["pair", "--json"], args].concat());
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&out.stdout).unwrap()
}

#[test]
fn a_code_pairs_a_device_which_then_comes_back_by_its_id_alone() {
    let gate = Gate::start();
    let agent = gate.key("agent", "bot");
    let made = pair(&gate, &["--name", "ann"]);
    let mut phone = Device::register(&gate, "client", PHONE, "");
    assert_eq!((&made["hub_id"], &made["gateway"]), (&json!(phone.hub), &json!(format!("http://{}", gate.address))));
    for method in ["getHubInfo", "listAgents", "listExecApprovals"] {
        phone.error(method, &json!({}), "UNAUTHORIZED");
    }
    for params in [json!({}), json!({"token": ""}), json!({"token": 7}), json!({"token": "AAAA-AAAA-AAAA-AAAA"})] {
        phone.error("verify", &params, "UNAUTHORIZED");
    }
    let verified = phone.ok("verify", &json!({"token": made["code"], "meta": {"name": "phone"}}));
    assert_eq!(verified["hubId"], phone.hub.as_str());
    let id = id_of(&ask_over_http(&gate, &agent, "rm -rf ./x"));
    phone.card("rm -rf ./x");
    drop(phone);
    let mut back = Device::register_soon(&gate, PHONE);
    back.ok("verify", &json!({}));
    back.ok("resolveExecApproval", &json!({"approvalId": id, "decision": "deny"}));
    let record = gate.get(&agent, &format!("/v1/approvals/{id}")).expect(200);
    assert_eq!((&record["decision"]["by"], &record["decision"]["via"]), (&json!("ann"), &json!("hub")));
    // Once, and only for this device.
    let mut other = Device::register(&gate, "client", "another-device-with-a-long-id", "");
    other.error("verify", &json!({"token": made["code"]}), "UNAUTHORIZED");
}

#[test]
fn paired_devices_are_listed_and_taken_back_and_then_gone_at_once() {
    let gate = Gate::start();
    let agent = gate.key("agent", "bot");
    let code = pair(&gate, &["--name", "ann-phone"])["code"].clone();
    let mut phone = Device::register(&gate, "client", PHONE, "");
    phone.ok("verify", &json!({"token": code}));
    let listed = pair(&gate, &["--list"]);
    assert_eq!(listed["devices"].as_array().unwrap().len(), 1);
    let device = &listed["devices"][0];
    assert_eq!(
        (&device["name"], &device["paired"], &device["role"]),
        (&json!("ann-phone"), &json!(true), &json!("approver"))
    );
    assert!(!listed.to_string().contains(PHONE), "a device's id is its secret");
    let table = gate.cli(&["pair", "--list"]);
    assert!(String::from_utf8_lossy(&table.stdout).contains("ann-phone"));
    let revoked = gate.cli(&["pair", "--revoke", device["key_id"].as_str().unwrap()]);
    assert!(revoked.status.success());
    phone.closed();
    ask_over_http(&gate, &agent, "rm -rf ./x");
    assert!(!phone.has(|frame| frame["data"]["action"] == "exec-approval-request"));
    let mut again = Device::register_soon(&gate, PHONE);
    again.error("verify", &json!({}), "UNAUTHORIZED");
    again.error("listExecApprovals", &json!({}), "UNAUTHORIZED");
}

#[test]
fn an_id_that_could_be_guessed_is_not_paired_and_the_code_stays_good() {
    let gate = Gate::start();
    let code = pair(&gate, &[])["code"].clone();
    let mut short = Device::register(&gate, "client", "phone", "");
    let message = short.error("verify", &json!({"token": code}), "INVALID_PARAMS");
    assert!(message.contains("22"), "{message}");
    let mut long = Device::register(&gate, "client", PHONE, "");
    long.ok("verify", &json!({"token": code}));
}

#[test]
fn the_picture_on_the_screen_holds_what_a_device_needs() {
    let gate = Gate::start();
    let out = gate.cli(&["pair", "--name", "ann"]);
    assert!(out.status.success());
    let text = String::from_utf8(out.stdout).unwrap();
    let code = text.lines().last().unwrap();
    assert!(code.len() == 19 && code.split('-').all(|group| group.len() == 4), "{code}");
    assert!(text.lines().count() > 15 && text.contains('█'), "{text}");
    let told = String::from_utf8(out.stderr).unwrap();
    assert!(told.contains("ann") && told.contains("hub_") && told.contains("--revoke"), "{told}");
    let none = gate.cli(&["pair", "--list", "--revoke", "x"]);
    assert_eq!(none.status.code(), Some(64));
}

#[test]
fn a_code_needs_a_gate_that_runs_and_an_admin() {
    let mut gate = Gate::start();
    let ann = gate.key("approver", "ann");
    gate.post(&ann, "/v1/pairings", &json!({})).expect_error(403, "forbidden");
    gate.post(&gate.admin, "/v1/pairings", &json!({"name": "a b"})).expect_error(422, "invalid_field");
    gate.terminate();
    let out = gate.cli(&["pair"]);
    assert_eq!(out.status.code(), Some(69), "{}", String::from_utf8_lossy(&out.stderr));
}

#[test]
fn who_goes_on_guessing_codes_is_cut_off() {
    let gate = Gate::start();
    let mut guesser = Device::register(&gate, "client", PHONE, "");
    for _ in 0..5 {
        guesser.error("verify", &json!({"token": "AAAA-AAAA-AAAA-AAAA"}), "UNAUTHORIZED");
    }
    guesser.ask("verify", &json!({"token": "AAAA-AAAA-AAAA-AAAA"}));
    guesser.closed();
}
