//! What every ledger must do for the doors that stay connected: names that requesters give, agents that go away, people
//! who are not there, machines, entries that are used, documents that take grants with them, hosts that answer.

use countersign_gate::{Clock as _, Command, Done, Named, NewApproval, NewDecision, Reach, Refused, Take, Withdrawal};
use countersign_model::{
    Answer, Choice, ClientId, Consumption, EngineTerms, KeyId, KeyRecord, KeySecret, Mode, PERMIT_TTL_MS, Policy,
    Reason, Role, Status,
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

pub async fn threat_83_a_name_is_one_request_of_its_client_for_ever(harness: &dyn Harness) {
    let world = World::new(harness);
    let of = async |alias: &str, client| world.ledger.named(alias.to_owned(), client).await.unwrap();
    let one = |number| Named::One(approval_id(number));
    world.created(named(1, CLIENT, "job-1")).await;
    assert!(matches!(world.run(named(2, CLIENT, "job-1")).await, Err(Refused::AliasPending)));
    assert!(world.ledger.shared_names(vec!["job-1".to_owned()]).await.unwrap().is_empty());
    world.created(named(3, OTHER, "job-1")).await;
    world.created(named(4, CLIENT, "job-12")).await;
    world.created(named(5, CLIENT, "Job-1")).await;
    // Case counts, and what only begins so is something else. People mean the first client's, whose card showed it.
    assert_eq!((of("job-1", Some(CLIENT)).await, of("job-1", Some(OTHER)).await), (one(1), one(3)));
    assert_eq!(
        (of("job-1", None).await, of("job-2", None).await, of("job-2", Some(CLIENT)).await),
        (one(1), Named::Nothing, Named::Nothing)
    );
    let shared = world.ledger.shared_names(["job-1", "job-12", "none"].map(str::to_owned).to_vec()).await.unwrap();
    assert_eq!(shared.into_iter().collect::<Vec<_>>(), ["job-1"]);
    // However it ended, and also when its contents are gone, the name is never another's.
    world.run(Command::Withdraw { id: approval_id(1), client: CLIENT, why: Withdrawal::Cancelled }).await.unwrap();
    assert!(matches!(world.run(named(6, CLIENT, "job-1")).await, Err(Refused::AliasUsed)));
    world.run(allow_once(approval_id(3), "ann")).await.unwrap();
    assert!(matches!(world.run(named(7, OTHER, "job-1")).await, Err(Refused::AliasUsed)));
    let before = world.clock.now().plus_millis(1);
    world.run(Command::Sweep { before, limit: 10 }).await.unwrap();
    assert!(world.ledger.approval(approval_id(1)).await.unwrap().is_none(), "its contents are gone");
    assert!(matches!(world.run(named(8, CLIENT, "job-1")).await, Err(Refused::AliasUsed)));
    assert_eq!(of("job-1", None).await, one(1));
}

pub async fn threat_90_a_yes_is_used_once_told_or_taken(harness: &dyn Harness) {
    let world = World::new(harness);
    let tell = async |number, client| match world.run(Command::Tell { id: approval_id(number), client }).await {
        Ok(Done::Told(told)) => Ok((told.approval.status(), told.unusable)),
        other => Err(format!("{other:?}")),
    };
    let consume = |number| Command::Consume { id: approval_id(number), client: CLIENT };
    for number in 1..=3 {
        world.created(create(number, exec("make"), 60_000)).await;
    }
    assert_eq!(tell(1, CLIENT).await, Ok((Status::Pending, None)));
    for number in 1..=3 {
        world.run(allow_once(approval_id(number), "ann")).await.unwrap();
    }
    // Told first: telling again uses nothing, and there is nothing left to take.
    assert!(tell(1, OTHER).await.is_err());
    assert_eq!(tell(1, CLIENT).await, Ok((Status::Approved, None)));
    assert_eq!(tell(1, CLIENT).await, Ok((Status::Approved, None)));
    assert!(matches!(world.run(consume(1)).await, Err(Refused::Consumption(Consumption::AlreadyUsed(_)))));
    // Taken first: it is no yes any more.
    world.run(consume(2)).await.unwrap();
    assert_eq!(tell(2, CLIENT).await, Ok((Status::Approved, Some(Reason::AlreadyUsed))));
    // Too late, it is none either.
    world.clock.advance(PERMIT_TTL_MS);
    assert_eq!(tell(3, CLIENT).await, Ok((Status::Approved, Some(Reason::PermitExpired))));
    assert_eq!(tell(1, CLIENT).await, Ok((Status::Approved, None)));
    // What policy allows at once is told at once.
    let new = new_approval(approval_id(4), request(CLIENT, "s", exec("ls")), 60_000);
    let ruled = world.created(Command::Create(Box::new(NewApproval { take: Take::Tell, ..new }))).await;
    assert!(ruled.told && ruled.consumed_at.is_some());
    assert_eq!(tell(4, CLIENT).await, Ok((Status::Approved, None)));
    assert!(matches!(world.run(consume(4)).await, Err(Refused::Consumption(Consumption::AlreadyUsed(_)))));
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
