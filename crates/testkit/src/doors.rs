//! What every ledger must do for the doors that stay connected: names that requesters give, agents that go away, people
//! who are not there, machines, entries that are used, documents that take grants with them, hosts that answer.

use countersign_gate::{Clock as _, Command, NewDecision, Reach, Refused, Sought, Withdrawal};
use countersign_model::{
    Answer, ApprovalId, Choice, ClientId, EngineTerms, KeyId, KeyRecord, KeySecret, Mode, Policy, Reason, Role, Status,
};

use crate::conformance::{Harness, World, verified_events};
use crate::sample::{CLIENT, allow_once, approval_id, create, decide, exec, new_approval, request};

const OTHER: KeyId = KeyId::from_random([0x77; 16]);

/// Asked by this client under a name of its own.
fn named(number: u64, client: KeyId, alias: &str) -> Command {
    let mut request = request(client, "s", exec("make"));
    request.alias = Some(alias.to_owned());
    Command::Create(Box::new(new_approval(approval_id(number), request, 60_000)))
}

async fn found(world: &World, sought: Sought, pending: bool) -> Vec<ApprovalId> {
    let found = world.ledger.find(sought, pending, 10).await.unwrap();
    found.iter().map(|approval| approval.id).collect()
}

pub async fn a_name_is_one_open_request_of_its_client(harness: &dyn Harness) {
    let world = World::new(harness);
    world.created(named(1, CLIENT, "job-1")).await;
    assert!(matches!(world.run(named(2, CLIENT, "job-1")).await, Err(Refused::AliasPending)));
    world.created(named(3, OTHER, "job-1")).await;
    world.created(named(4, CLIENT, "job-12")).await;
    world.created(named(5, CLIENT, "Job-1")).await;
    let by_name = |text: &str| Sought::Alias(text.to_owned());
    // Each client's; case counts, and what only begins so is something else.
    assert_eq!(found(&world, by_name("job-1"), true).await, [3, 1].map(approval_id));
    assert_eq!(found(&world, by_name("job-2"), true).await, []);
    world.run(allow_once(approval_id(1), "ann")).await.unwrap();
    assert_eq!(found(&world, by_name("job-1"), true).await, [3].map(approval_id));
    assert_eq!(found(&world, by_name("job-1"), false).await, [1].map(approval_id));
    // Once it has ended the name is free.
    world.created(named(6, CLIENT, "job-1")).await;
    world.run(allow_once(approval_id(6), "ann")).await.unwrap();
    assert_eq!(found(&world, by_name("job-1"), false).await, [6].map(approval_id), "the newest of each client");
    let range = Sought::Id { first: approval_id(3), last: approval_id(5) };
    assert_eq!(found(&world, range.clone(), true).await, [3, 4, 5].map(approval_id));
    assert_eq!(found(&world, range, false).await, []);
}

pub async fn an_agent_that_is_gone_is_told_no(harness: &dyn Harness) {
    let world = World::new(harness);
    world.created(create(1, exec("make"), 60_000)).await;
    let close = |client| Command::Withdraw { id: approval_id(1), client, why: Withdrawal::AgentClosed };
    assert!(matches!(world.run(close(OTHER)).await, Err(Refused::NotFound)));
    world.run(close(CLIENT)).await.unwrap();
    let ended = world.approval(approval_id(1)).await;
    assert_eq!((ended.status(), ended.outcome.as_ref().unwrap().reason), (Status::Denied, Reason::AgentClosed));
    assert!(matches!(world.run(close(CLIENT)).await, Err(Refused::Finished(_))));
}

pub async fn a_way_that_reaches_nobody_who_may_answer_is_a_no(harness: &dyn Harness) {
    let world = World::new(harness);
    let asked = |number: u64, there: &[&str]| {
        let reach = Reach::Only(there.iter().map(|name| (*name).to_owned()).collect());
        let new = new_approval(approval_id(number), request(CLIENT, "s", exec("make")), 60_000);
        Command::Create(Box::new(countersign_gate::NewApproval { reach, ..new }))
    };
    let status = async |number, there: &[&str]| {
        let approval = world.created(asked(number, there)).await;
        (approval.status(), approval.outcome.as_ref().map(|outcome| outcome.reason))
    };
    assert_eq!(status(1, &[]).await, (Status::Denied, Some(Reason::NoChannel)));
    assert_eq!(status(2, &["bob"]).await, (Status::Pending, None));
    world.put_policy(r#"{"version":1,"approvers":["ann"]}"#).await;
    assert_eq!(status(3, &["bob"]).await, (Status::Denied, Some(Reason::NoChannel)));
    assert_eq!(status(4, &["bob", "ann"]).await, (Status::Pending, None));
    // Whom nobody has to be asked about needs nobody to be there.
    world.put_policy(r#"{"version":1,"security":"full"}"#).await;
    assert_eq!(status(5, &[]).await, (Status::Approved, Some(Reason::Policy)));
}

pub async fn a_machine_and_its_key_are_for_each_other(harness: &dyn Harness) {
    let world = World::new(harness);
    let ids = [KeyId::from_random([1; 16]), KeyId::from_random([2; 16])];
    for id in ids {
        let secret = KeySecret::from_random(id, &[6; 32]);
        let key = KeyRecord {
            id,
            hash: secret.hash(),
            client_id: ClientId::new("abcdefabcdef"),
            name: "mini".into(),
            role: Role::Node,
            profile: "default".into(),
            created_at: world.clock.now(),
            expires_at: None,
            revoked_at: None,
            paired: false,
            node_id: None,
        };
        world.run(Command::CreateKey { key: Box::new(key), by: "ann".into() }).await.unwrap();
    }
    let bind = |key: usize, node: &str| Command::BindNode { key: ids[key], node_id: node.into() };
    world.run(bind(0, "mini")).await.unwrap();
    world.run(bind(0, "mini")).await.unwrap();
    for other in [bind(0, "maxi"), bind(1, "mini")] {
        assert!(matches!(world.run(other).await, Err(Refused::OtherNode)));
    }
    world.run(bind(1, "maxi")).await.unwrap();
    let stored = world.ledger.keys().await.unwrap();
    let nodes: Vec<_> = stored.iter().map(|key| key.node_id.as_deref()).collect();
    assert_eq!(nodes, [Some("mini"), Some("maxi")]);
    let bound =
        verified_events(&*world.ledger).await.iter().filter(|event| event.body.kind().as_str() == "node_bound").count();
    assert_eq!(bound, 2);
}

pub async fn an_entry_knows_its_last_use(harness: &dyn Harness) {
    let world = World::new(harness);
    world.put_policy(r#"{"version":1,"allowlist":[{"pattern":"make **"},{"pattern":"npm ci"}]}"#).await;
    for (number, command) in [(1, "make a"), (2, "make b && git status"), (3, "cargo run"), (4, "git status")] {
        world.created(create(number, exec(command), 60_000)).await;
        world.clock.advance(1000);
    }
    let uses = world.ledger.entry_uses("default".into()).await.unwrap();
    assert_eq!(uses.len(), 1);
    assert_eq!((uses[0].pattern.as_str(), uses[0].command.as_str()), ("make **", "make b && git status"));
    assert_eq!(uses[0].at, world.approval(approval_id(2)).await.terms.created_at);
    assert!(world.ledger.entry_uses("other".into()).await.unwrap().is_empty());
}

pub async fn a_document_takes_grants_with_it_or_nothing_changes(harness: &dyn Harness) {
    let world = World::new(harness);
    world.created(create(1, exec("npm ci"), 60_000)).await;
    world.run(decide(approval_id(1), Answer::plain(Choice::AllowAlways), "ann", 9)).await.unwrap();
    let grant = world.ledger.grants(Default::default()).await.unwrap()[0].id;
    let stale = countersign_model::sha256(b"something else");
    let current = world.ledger.policy("default".into()).await.unwrap().stored.hash;
    let put = |base_hash| Command::PutPolicy {
        profile: "default".into(),
        policy: Box::new(Policy::default()),
        base_hash,
        revoke: vec![grant],
        by: "ann".into(),
    };
    assert!(matches!(world.run(put(stale)).await, Err(Refused::StalePolicy(_))));
    assert_eq!(world.ledger.grants(Default::default()).await.unwrap().len(), 1);
    world.run(put(current)).await.unwrap();
    assert!(world.ledger.grants(Default::default()).await.unwrap().is_empty());
    assert_eq!(world.created(create(2, exec("npm ci"), 60_000)).await.status(), Status::Pending);
}

pub async fn a_host_answers_for_its_own_and_only_where_policy_says_so(harness: &dyn Harness) {
    let world = World::new(harness);
    let terms = EngineTerms::of(Some(Mode::Default), None, &exec("make"), false);
    let by_engine = request(CLIENT, "s", exec("make")).from_engine(terms);
    world.created(Command::Create(Box::new(new_approval(approval_id(1), by_engine, 60_000)))).await;
    world.created(create(2, exec("make"), 60_000)).await;
    let by_host = |number, client| {
        let Command::Decide(new) = allow_once(approval_id(number), "host:bot") else { panic!("a decision") };
        Command::Decide(Box::new(NewDecision { host: Some(client), ..*new }))
    };
    assert!(matches!(world.run(by_host(1, CLIENT)).await, Err(Refused::HostMayNotDecide)));
    world.put_policy(r#"{"version":1,"hostMayDecide":true}"#).await;
    assert!(matches!(world.run(by_host(1, OTHER)).await, Err(Refused::NotFound)));
    // What no engine asked has no host beside it.
    assert!(matches!(world.run(by_host(2, CLIENT)).await, Err(Refused::HostMayNotDecide)));
    assert_eq!(world.approval(approval_id(1)).await.status(), Status::Pending);
    world.run(by_host(1, CLIENT)).await.unwrap();
    let ended = world.approval(approval_id(1)).await;
    let decision = ended.outcome.as_ref().unwrap().decision.as_ref().unwrap();
    assert_eq!((ended.status(), decision.by.as_str()), (Status::Approved, "host:bot"));
}
