//! What every ledger must do for commands that are run: workspaces that are trusted, what is remembered, how runs end.

use countersign_gate::{Clock as _, Command, Refused};
use countersign_model::{Answer, Choice, Consumption, GrantError, RunEnd, Status, TerminalInput, sha256};

use crate::conformance::{Harness, World, verified_events};
use crate::sample::{CLIENT, allow_once, approval_id, create, decide, exec, exec_in, new_approval, request};

const WORKSPACE: &str = "/work/app";

fn trust(text: &str) -> Command {
    Command::Trust { workspace: WORKSPACE.into(), text: text.into(), by: "ann".into() }
}

/// A command asked from the workspace, with this file.
fn asked(number: u64, command: &str, file: Option<&str>) -> Command {
    let input = TerminalInput { workspace: WORKSPACE.into(), file: file.map(|text| text.as_bytes().to_vec()) };
    let request = request(CLIENT, "s", exec_in(command, WORKSPACE)).in_workspace(&input);
    Command::Create(Box::new(new_approval(approval_id(number), request, 60_000)))
}

pub async fn a_file_is_trusted_by_its_bytes_until_it_is_not(harness: &dyn Harness) {
    let world = World::new(harness);
    let file = r#"{"commandWhitelist":["make"]}"#;
    assert_eq!(world.created(asked(1, "make", Some(file))).await.status(), Status::Pending);
    world.run(trust(file)).await.unwrap();
    let listed = world.ledger.trusts().await.unwrap();
    assert_eq!((listed.len(), listed[0].hash(), listed[0].by.as_str()), (1, sha256(file.as_bytes()), "ann"));
    assert_eq!(world.ledger.trust(WORKSPACE.into()).await.unwrap().unwrap().text, file);
    assert_eq!(world.created(asked(2, "make", Some(file))).await.status(), Status::Approved);
    assert_eq!(world.created(asked(3, "make", Some(&format!("{file} ")))).await.status(), Status::Pending);
    // A yes that rested on the trust is void when that is taken back.
    let untrust = || Command::Untrust { workspace: WORKSPACE.into(), by: "bob".into() };
    world.run(untrust()).await.unwrap();
    let used = world.run(Command::Consume { id: approval_id(2), client: CLIENT }).await;
    assert!(matches!(used, Err(Refused::ChangedSinceApproval)), "{used:?}");
    assert!(matches!(world.run(untrust()).await, Err(Refused::NoSuchTrust)));
    assert!(world.ledger.trust(WORKSPACE.into()).await.unwrap().is_none());
    assert_eq!(world.created(asked(4, "make", Some(file))).await.status(), Status::Pending);
}

pub async fn what_is_remembered_is_added_to_what_is_trusted(harness: &dyn Harness) {
    let world = World::new(harness);
    let remember = |number: u64| {
        let answer = Answer { remember: true, ..Answer::plain(Choice::AllowOnce) };
        decide(approval_id(number), answer, "ann", 0)
    };
    let file = r#"{"commandBlacklist":["rm"]}"#;
    world.created(asked(1, "make a", Some(file))).await;
    let refused = world.run(remember(1)).await;
    assert!(matches!(refused, Err(Refused::Grant(GrantError::NotTrusted))), "{refused:?}");
    assert_eq!(world.approval(approval_id(1)).await.status(), Status::Pending);
    world.run(trust(file)).await.unwrap();
    for number in [2, 3] {
        world.created(asked(number, &format!("make {number}"), Some(file))).await;
    }
    // Both were asked under the same file; the second adds to what the first made of it.
    for number in [2, 3] {
        world.run(remember(number)).await.unwrap();
    }
    let text = world.ledger.trust(WORKSPACE.into()).await.unwrap().unwrap().text;
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value, serde_json::json!({"commandBlacklist": ["rm"], "commandWhitelist": ["make 2", "make 3"]}));
    assert_eq!(world.created(asked(4, "make 3", Some(&text))).await.status(), Status::Approved);
    world.created(create(5, exec("make 5"), 60_000)).await;
    assert!(matches!(world.run(remember(5)).await, Err(Refused::Grant(GrantError::NoWorkspace))));
}

pub async fn a_permit_is_taken_at_once_only_where_nobody_is_asked(harness: &dyn Harness) {
    let world = World::new(harness);
    let taking = |number: u64, command: &str| {
        let new = new_approval(approval_id(number), request(CLIENT, "s", exec(command)), 60_000);
        Command::Create(Box::new(countersign_gate::NewApproval { take: countersign_gate::Take::Consume, ..new }))
    };
    let allowed = world.created(taking(1, "ls")).await;
    assert_eq!((allowed.status(), allowed.consumed_at), (Status::Approved, Some(world.clock.now())));
    let again = world.run(Command::Consume { id: approval_id(1), client: CLIENT }).await;
    assert!(matches!(again, Err(Refused::Consumption(Consumption::AlreadyUsed(_)))), "{again:?}");
    assert_eq!(world.created(taking(2, "make")).await.consumed_at, None);
    world.run(allow_once(approval_id(2), "ann")).await.unwrap();
    world.run(Command::Consume { id: approval_id(2), client: CLIENT }).await.unwrap();
    world.put_policy(r#"{"version":1,"security":"deny"}"#).await;
    let denied = world.created(taking(3, "ls")).await;
    assert_eq!((denied.status(), denied.consumed_at), (Status::Denied, None));
}

pub async fn a_run_ends_once_and_is_stopped_only_while_it_runs(harness: &dyn Harness) {
    let world = World::new(harness);
    let id = approval_id(1);
    let end = RunEnd { exit: Some(3), signal: None, timed_out: false, stopped: true, changed: vec!["x".into()] };
    let ran = || Command::Ran { id, client: CLIENT, run: end.clone() };
    let stop = || Command::Stop { id, by: "ann".into() };
    world.created(create(1, exec("make"), 60_000)).await;
    world.run(allow_once(id, "ann")).await.unwrap();
    for early in [ran(), stop()] {
        assert!(matches!(world.run(early).await, Err(Refused::NotRunning)));
    }
    world.run(Command::Consume { id, client: CLIENT }).await.unwrap();
    world.run(stop()).await.unwrap();
    let stranger = countersign_model::KeyId::from_random([9; 16]);
    let theirs = Command::Ran { id, client: stranger, run: end.clone() };
    assert!(matches!(world.run(theirs).await, Err(Refused::NotFound)));
    world.run(ran()).await.unwrap();
    assert_eq!(world.approval(id).await.run, Some(end.clone()));
    for late in [ran(), stop()] {
        assert!(matches!(world.run(late).await, Err(Refused::NotRunning)));
    }
    let World { ledger, clock } = world;
    drop(ledger);
    let world = World { ledger: harness.open(clock.clone()), clock };
    assert_eq!(world.approval(id).await.run, Some(end));
    let kinds: Vec<&str> =
        verified_events(&*world.ledger).await.iter().map(|event| event.body.kind().as_str()).collect();
    assert_eq!(kinds, ["requested", "resolved", "consumed", "stop_asked", "ran"]);
}
