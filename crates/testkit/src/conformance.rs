//! What every ledger must do, whatever it is made of. A backend's tests run each of these on a fresh store.

use std::sync::Arc;

use countersign_gate::{Clock as _, Command, Done, GrantFilter, Idempotency, Ledger, ListFilter, Refused, Withdrawal};
use countersign_model::{
    Answer, Approval, ApprovalId, Choice, ClientId, Consumption, Digest, Event, GrantId, KeyId, KeyRecord, KeySecret,
    MAX_SESSION_GRANT_MS, PERMIT_TTL_MS, Policy, Reason, Role, Status, Timestamp, sha256, verify_link,
};

use crate::sample::{
    CLIENT, allow_once, approval_id, create, custom, decide, exec, new_approval, question, request, tool,
};
use crate::{SimClock, doors, running};

/// One store that can be closed and opened again.
pub trait Harness: Send + Sync {
    fn open(&self, clock: Arc<SimClock>) -> Arc<dyn Ledger>;
}

#[expect(missing_debug_implementations, reason = "a ledger has nothing to print")]
pub struct World {
    pub ledger: Arc<dyn Ledger>,
    pub clock: Arc<SimClock>,
}

impl World {
    pub fn new(harness: &dyn Harness) -> Self {
        let clock = Arc::new(SimClock::default());
        Self { ledger: harness.open(clock.clone()), clock }
    }

    pub async fn run(&self, command: Command) -> Result<Done, Refused> {
        self.ledger.submit(command).await.expect("the store works")
    }

    pub async fn approval(&self, id: ApprovalId) -> Arc<Approval> {
        self.ledger.approval(id).await.unwrap().expect("the approval exists")
    }

    pub async fn created(&self, command: Command) -> Arc<Approval> {
        match self.run(command).await {
            Ok(Done::Created { approval, .. }) => approval,
            other => panic!("{other:?}"),
        }
    }

    pub async fn put_policy(&self, text: &str) {
        let base_hash = self.ledger.policy("default".into()).await.unwrap().stored.hash;
        let policy = Box::new(Policy::parse(text).unwrap());
        let command =
            Command::PutPolicy { profile: "default".into(), policy, base_hash, revoke: Vec::new(), by: "ann".into() };
        assert!(matches!(self.run(command).await, Ok(Done::Policy(_))));
    }
}

/// The whole record, its chain checked.
pub async fn verified_events(ledger: &dyn Ledger) -> Vec<Event> {
    let mut events: Vec<Event> = Vec::new();
    let mut last: Option<Digest> = None;
    for line in ledger.audit(0, 1_000_000).await.unwrap() {
        let previous = events.last().zip(last.as_ref());
        events.push(verify_link(previous, line.seq, &line.line, &line.hash).unwrap());
        last = Some(line.hash);
    }
    events
}

async fn kinds(ledger: &dyn Ledger) -> Vec<&'static str> {
    verified_events(ledger).await.iter().map(|event| event.body.kind().as_str()).collect()
}

/// Runs all of it; `fresh` makes a new empty store each time.
pub async fn run_all(fresh: &dyn Fn() -> Box<dyn Harness>) {
    created_and_read_back(&*fresh()).await;
    survives_reopening(&*fresh()).await;
    one_decision_wins(&*fresh()).await;
    losers_in_one_batch_learn_the_winner(&*fresh()).await;
    threat_18_one_consumer_wins(&*fresh()).await;
    threat_19_only_the_asking_client_uses_or_cancels(&*fresh()).await;
    threat_21_a_permit_goes_stale(&*fresh()).await;
    threat_22_a_revoked_grant_or_a_changed_policy_voids_the_permit(&*fresh()).await;
    deadlines_are_exact_and_never_name_a_person(&*fresh()).await;
    fallbacks_follow_the_policy_of_the_moment(&*fresh()).await;
    the_same_request_is_the_same_approval(&*fresh()).await;
    grants_answer_until_revoked(&*fresh()).await;
    threat_99_what_holds_for_a_session_ends_after_a_day(&*fresh()).await;
    threat_33_a_stale_policy_write_changes_nothing(&*fresh()).await;
    an_unreadable_answer_changes_nothing(&*fresh()).await;
    threat_42_nobody_to_ask_is_no_channel(&*fresh()).await;
    threat_52_flooding_limits_are_policy(&*fresh()).await;
    threat_78_a_retry_after_a_no_is_flagged(&*fresh()).await;
    pages_and_cursors(&*fresh()).await;
    keys_are_kept_as_hashes(&*fresh()).await;
    sweeping_removes_contents_and_keeps_the_record(&*fresh()).await;
    threat_70_the_records_time_never_goes_back(&*fresh()).await;
    running::a_file_is_trusted_by_its_bytes_until_it_is_not(&*fresh()).await;
    running::what_is_remembered_is_added_to_what_is_trusted(&*fresh()).await;
    running::a_permit_is_taken_at_once_only_where_nobody_is_asked(&*fresh()).await;
    running::a_run_ends_once_and_is_stopped_only_while_it_runs(&*fresh()).await;
    doors::threat_83_a_name_is_one_request_of_its_client_for_ever(&*fresh()).await;
    doors::threat_90_a_yes_is_used_once_told_or_taken(&*fresh()).await;
    doors::an_agent_that_is_gone_is_told_no(&*fresh()).await;
    doors::a_way_that_reaches_nobody_who_may_answer_is_a_no(&*fresh()).await;
    doors::a_machine_and_its_key_are_for_each_other(&*fresh()).await;
    doors::an_entry_knows_its_last_use(&*fresh()).await;
    doors::a_document_takes_grants_with_it_or_nothing_changes(&*fresh()).await;
    doors::a_host_answers_for_its_own_and_only_where_policy_says_so(&*fresh()).await;
}

async fn created_and_read_back(harness: &dyn Harness) {
    let world = World::new(harness);
    let asked = world.created(create(1, exec("make all"), 60_000)).await;
    assert_eq!(asked.status(), Status::Pending);
    assert_eq!(asked.terms.expires_at, world.clock.now().plus_millis(60_000));
    assert_eq!(*world.approval(approval_id(1)).await, *asked);
    assert_eq!(world.ledger.stats().pending, 1);
    assert_eq!(world.ledger.next_deadline().await.unwrap(), Some(asked.terms.expires_at));
    assert_eq!(kinds(&*world.ledger).await, ["requested"]);
    assert!(world.ledger.approval(approval_id(2)).await.unwrap().is_none());
}

async fn survives_reopening(harness: &dyn Harness) {
    let world = World::new(harness);
    world.created(create(1, custom("http_request", "GET /"), 60_000)).await;
    world.created(create(2, tool("Write"), 60_000)).await;
    world.run(allow_once(approval_id(2), "ann")).await.unwrap();
    let before = (world.approval(approval_id(1)).await, world.approval(approval_id(2)).await);
    let World { ledger, clock } = world;
    drop(ledger);
    let world = World { ledger: harness.open(clock.clone()), clock };
    let after = (world.approval(approval_id(1)).await, world.approval(approval_id(2)).await);
    assert_eq!(before, after);
    assert_eq!(world.ledger.stats().pending, 1);
    world.run(allow_once(approval_id(1), "bob")).await.unwrap();
    assert_eq!(kinds(&*world.ledger).await, ["requested", "requested", "resolved", "resolved"]);
}

async fn one_decision_wins(harness: &dyn Harness) {
    let world = Arc::new(World::new(harness));
    let id = world.created(create(1, exec("make"), 60_000)).await.id;
    let racers: Vec<_> = (0..64)
        .map(|racer| {
            let world = world.clone();
            let choice = if racer % 2 == 0 { Choice::AllowOnce } else { Choice::Deny };
            tokio::spawn(async move { world.run(decide(id, Answer::plain(choice), &format!("p{racer}"), racer)).await })
        })
        .collect();
    let mut winners = Vec::new();
    let mut told = Vec::new();
    for racer in racers {
        match racer.await.unwrap() {
            Ok(Done::Changed(approval)) => winners.push(approval),
            Err(Refused::Finished(approval)) => told.push(approval),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((winners.len(), told.len()), (1, 63));
    assert!(told.iter().all(|approval| approval == &winners[0]));
    assert_eq!(kinds(&*world.ledger).await, ["requested", "resolved"]);
}

/// Submitted without waiting in between, so that they share a transaction.
async fn losers_in_one_batch_learn_the_winner(harness: &dyn Harness) {
    let world = World::new(harness);
    let id = world.created(create(1, exec("make"), 60_000)).await.id;
    let (one, two) = tokio::join!(
        world.ledger.submit(allow_once(id, "ann")),
        world.ledger.submit(decide(id, Answer::plain(Choice::Deny), "bob", 0)),
    );
    let Ok(Ok(Done::Changed(winner))) = one else { panic!("{one:?}") };
    let Ok(Err(Refused::Finished(told))) = two else { panic!("{two:?}") };
    assert_eq!((winner.status(), told), (Status::Approved, winner.clone()));
}

async fn threat_18_one_consumer_wins(harness: &dyn Harness) {
    let world = Arc::new(World::new(harness));
    let id = world.created(create(1, exec("make"), 60_000)).await.id;
    let early = world.run(Command::Consume { id, client: CLIENT }).await;
    assert!(matches!(early, Err(Refused::Consumption(Consumption::NotApproved(Status::Pending)))));
    world.run(allow_once(id, "ann")).await.unwrap();
    let consumers: Vec<_> = (0..100)
        .map(|_| {
            let world = world.clone();
            tokio::spawn(async move { world.run(Command::Consume { id, client: CLIENT }).await })
        })
        .collect();
    let mut won = 0;
    for consumer in consumers {
        match consumer.await.unwrap() {
            Ok(_) => won += 1,
            Err(Refused::Consumption(Consumption::AlreadyUsed(_))) => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(won, 1);
    assert_eq!(kinds(&*world.ledger).await, ["requested", "resolved", "consumed"]);
}

async fn threat_19_only_the_asking_client_uses_or_cancels(harness: &dyn Harness) {
    let world = World::new(harness);
    let stranger = KeyId::from_random([9; 16]);
    let id = world.created(create(1, exec("make"), 60_000)).await.id;
    assert!(matches!(
        world.run(Command::Withdraw { id, client: stranger, why: Withdrawal::Cancelled }).await,
        Err(Refused::NotFound)
    ));
    world.run(allow_once(id, "ann")).await.unwrap();
    assert!(matches!(world.run(Command::Consume { id, client: stranger }).await, Err(Refused::NotFound)));
    assert!(world.run(Command::Consume { id, client: CLIENT }).await.is_ok());
}

async fn threat_21_a_permit_goes_stale(harness: &dyn Harness) {
    let world = World::new(harness);
    for number in [1, 2] {
        let id = world.created(create(number, exec("make"), 60_000)).await.id;
        world.run(allow_once(id, "ann")).await.unwrap();
    }
    world.clock.advance(PERMIT_TTL_MS - 1);
    assert!(world.run(Command::Consume { id: approval_id(1), client: CLIENT }).await.is_ok());
    world.clock.advance(1);
    let late = world.run(Command::Consume { id: approval_id(2), client: CLIENT }).await;
    assert!(matches!(late, Err(Refused::Consumption(Consumption::Stale))));
}

async fn threat_22_a_revoked_grant_or_a_changed_policy_voids_the_permit(harness: &dyn Harness) {
    let world = World::new(harness);
    let first = world.created(create(1, custom("http_request", "a"), 60_000)).await.id;
    world.run(decide(first, Answer::plain(Choice::AllowActionType), "ann", 7)).await.unwrap();
    let automatic = world.created(create(2, custom("http_request", "b"), 60_000)).await;
    assert_eq!(automatic.status(), Status::Approved);
    world.run(Command::RevokeGrant { id: GrantId::from_random([7; 16]), by: "ann".into() }).await.unwrap();
    let used = world.run(Command::Consume { id: automatic.id, client: CLIENT }).await;
    assert!(matches!(used, Err(Refused::ChangedSinceApproval)));

    let by_person = world.created(create(3, exec("make"), 60_000)).await.id;
    world.run(allow_once(by_person, "ann")).await.unwrap();
    world.put_policy(r#"{"version":1,"security":"deny"}"#).await;
    let used = world.run(Command::Consume { id: by_person, client: CLIENT }).await;
    assert!(matches!(used, Err(Refused::ChangedSinceApproval)));
}

async fn deadlines_are_exact_and_never_name_a_person(harness: &dyn Harness) {
    let world = World::new(harness);
    let first = world.created(create(1, exec("a"), 5_000)).await.id;
    let second = world.created(create(2, exec("b"), 6_000)).await.id;
    world.clock.advance(4_999);
    assert!(matches!(world.run(Command::ExpireDue { limit: 10 }).await, Ok(Done::Expired { count: 0 })));
    world.clock.advance(1);
    // The row's deadline counts, whether or not a timer has fired.
    let Err(Refused::Finished(late)) = world.run(allow_once(first, "ann")).await else { panic!() };
    assert_eq!((late.status(), late.outcome.as_ref().unwrap().decision.clone()), (Status::Expired, None));
    world.clock.advance(1_000);
    assert!(matches!(world.run(Command::ExpireDue { limit: 10 }).await, Ok(Done::Expired { count: 1 })));
    assert_eq!(world.approval(second).await.outcome.as_ref().unwrap().reason, Reason::Expired);
    assert_eq!(world.ledger.next_deadline().await.unwrap(), None);
}

async fn fallbacks_follow_the_policy_of_the_moment(harness: &dyn Harness) {
    let world = World::new(harness);
    world.put_policy(r#"{"version":1,"askFallback":"full"}"#).await;
    let runs = world.created(create(1, exec("a"), 1_000)).await.id;
    world.clock.advance(1_000);
    world.run(Command::ExpireDue { limit: 10 }).await.unwrap();
    let outcome = world.approval(runs).await.outcome.clone().unwrap();
    assert_eq!((outcome.status, outcome.reason), (Status::Approved, Reason::Fallback));
    assert_eq!(outcome.decision.unwrap().by, "policy");

    let shut = world.created(create(2, exec("a"), 1_000)).await.id;
    world.put_policy(r#"{"version":1,"security":"deny"}"#).await;
    world.clock.advance(1_000);
    world.run(Command::ExpireDue { limit: 10 }).await.unwrap();
    assert_eq!(world.approval(shut).await.status(), Status::Expired);

    world
        .put_policy(
            r#"{"version":1,"ask":"always","askFallback":"allowlist","tools":[{"name":"Read","effect":"allow"}]}"#,
        )
        .await;
    let (listed, other) = (
        world.created(create(3, tool("Read"), 1_000)).await.id,
        world.created(create(4, tool("Write"), 1_000)).await.id,
    );
    world.clock.advance(1_000);
    world.run(Command::ExpireDue { limit: 10 }).await.unwrap();
    assert_eq!(
        (world.approval(listed).await.status(), world.approval(other).await.status()),
        (Status::Approved, Status::Expired)
    );
}

async fn the_same_request_is_the_same_approval(harness: &dyn Harness) {
    let world = World::new(harness);
    let with = |number: u64, client: KeyId, key: &str, body: &str| {
        let mut new = new_approval(approval_id(number), request(client, "s", exec("make")), 60_000);
        new.idempotency = Some(Idempotency { key: key.into(), body: sha256(body.as_bytes()) });
        Command::Create(Box::new(new))
    };
    let first = world.created(with(1, CLIENT, "k", "body")).await.id;
    world.run(allow_once(first, "ann")).await.unwrap();
    let Ok(Done::Created { approval, fresh }) = world.run(with(2, CLIENT, "k", "body")).await else { panic!() };
    assert_eq!((approval.id, approval.status(), fresh), (first, Status::Approved, false));
    assert!(matches!(world.run(with(3, CLIENT, "k", "other")).await, Err(Refused::IdempotencyConflict)));
    assert_eq!(world.created(with(4, KeyId::from_random([2; 16]), "k", "other")).await.id, approval_id(4));
    world.clock.advance(24 * 3600 * 1000);
    assert_eq!(world.created(with(5, CLIENT, "k", "other")).await.id, approval_id(5));
}

async fn grants_answer_until_revoked(harness: &dyn Harness) {
    let world = World::new(harness);
    let ask = |number| create(number, custom("http_request", &format!("call {number}")), 60_000);
    let first = world.created(ask(1)).await.id;
    let decided = world.run(decide(first, Answer::plain(Choice::AllowActionTypeForSession), "ann", 3)).await;
    let Ok(Done::Changed(decided)) = decided else { panic!("{decided:?}") };
    assert_eq!(
        decided.outcome.as_ref().unwrap().decision.as_ref().unwrap().grant_id,
        Some(GrantId::from_random([3; 16]))
    );
    let auto = world.created(ask(2)).await;
    let outcome = auto.outcome.clone().unwrap();
    assert_eq!((outcome.status, outcome.grant), (Status::Approved, Some(GrantId::from_random([3; 16]))));
    let all = world.ledger.grants(GrantFilter { client: Some(CLIENT), include_ended: false }).await.unwrap();
    assert_eq!(all.iter().map(|grant| grant.id).collect::<Vec<_>>(), [GrantId::from_random([3; 16])]);
    assert!(
        world
            .ledger
            .grants(GrantFilter { client: Some(KeyId::from_random([8; 16])), include_ended: true })
            .await
            .unwrap()
            .is_empty()
    );
    let revoke = || Command::RevokeGrant { id: GrantId::from_random([3; 16]), by: "bob".into() };
    world.run(revoke()).await.unwrap();
    assert!(matches!(world.run(revoke()).await, Err(Refused::NoSuchGrant)));
    assert_eq!(world.created(ask(3)).await.status(), Status::Pending);
    assert!(world.ledger.grants(GrantFilter::default()).await.unwrap().is_empty());
    let expected = ["requested", "resolved", "grant_made", "ruled", "grant_revoked", "requested"];
    assert_eq!(kinds(&*world.ledger).await, expected);
}

async fn threat_99_what_holds_for_a_session_ends_after_a_day(harness: &dyn Harness) {
    let world = World::new(harness);
    let ask = |number| create(number, custom("http_request", &format!("call {number}")), 60_000);
    let first = world.created(ask(1)).await.id;
    world.run(decide(first, Answer::plain(Choice::AllowActionTypeForSession), "ann", 3)).await.unwrap();
    world.clock.advance(MAX_SESSION_GRANT_MS - 1);
    assert_eq!(world.created(ask(2)).await.status(), Status::Approved);
    world.clock.advance(1);
    assert_eq!(world.created(ask(3)).await.status(), Status::Pending);
}

async fn threat_33_a_stale_policy_write_changes_nothing(harness: &dyn Harness) {
    let world = Arc::new(World::new(harness));
    let base_hash = world.ledger.policy("default".into()).await.unwrap().stored.hash;
    let put = |security: &str, base_hash| {
        let text = format!(r#"{{"version":1,"security":"{security}"}}"#);
        let policy = Box::new(Policy::parse(&text).unwrap());
        Command::PutPolicy { profile: "default".into(), policy, base_hash, revoke: Vec::new(), by: "ann".into() }
    };
    let writers: Vec<_> = (0..20)
        .map(|writer| {
            let (world, command) = (world.clone(), put(if writer % 2 == 0 { "full" } else { "deny" }, base_hash));
            tokio::spawn(async move { world.run(command).await.is_ok() })
        })
        .collect();
    let mut won = 0;
    for writer in writers {
        won += usize::from(writer.await.unwrap());
    }
    assert_eq!(won, 1);
    let stored = world.ledger.policy("default".into()).await.unwrap();
    let refused = world.run(put("full", base_hash)).await;
    assert!(matches!(refused, Err(Refused::StalePolicy(hash)) if hash == stored.stored.hash));
    assert_eq!(stored.stored.hash, sha256(stored.text.unwrap().as_bytes()));
    assert!(world.run(put("allowlist", stored.stored.hash)).await.is_ok());
    assert_eq!(kinds(&*world.ledger).await, ["policy_put", "policy_put"]);
}

async fn an_unreadable_answer_changes_nothing(harness: &dyn Harness) {
    let world = World::new(harness);
    let asked = world.created(create(1, question("which?"), 60_000)).await.id;
    let command = world.created(create(2, exec("sudo make"), 60_000)).await.id;
    assert!(matches!(world.run(allow_once(asked, "ann")).await, Err(Refused::Answer(_))));
    let always = decide(command, Answer::plain(Choice::AllowAlways), "ann", 1);
    assert!(matches!(world.run(always).await, Err(Refused::Grant(_))));
    for id in [asked, command] {
        assert_eq!(world.approval(id).await.status(), Status::Pending);
    }
    assert_eq!(kinds(&*world.ledger).await, ["requested", "requested"]);
}

async fn threat_42_nobody_to_ask_is_no_channel(harness: &dyn Harness) {
    let world = World::new(harness);
    world.put_policy(r#"{"version":1,"approvers":[],"askFallback":"full"}"#).await;
    let asked = world.created(create(1, exec("make"), 60_000)).await;
    let outcome = asked.outcome.as_ref().unwrap();
    assert_eq!((outcome.status, outcome.reason), (Status::Denied, Reason::NoChannel));
    world.put_policy(r#"{"version":1,"approvers":["ann"]}"#).await;
    let asked = world.created(create(2, exec("make -B"), 60_000)).await.id;
    assert!(matches!(world.run(allow_once(asked, "bob")).await, Err(Refused::NotAnApprover(_))));
    assert!(world.run(allow_once(asked, "ann")).await.is_ok());
}

async fn threat_52_flooding_limits_are_policy(harness: &dyn Harness) {
    let world = World::new(harness);
    let ask = |number: u64| create(number, exec(&format!("job {number}")), 10_000);
    for number in 1..=5 {
        assert_eq!(world.created(ask(number)).await.status(), Status::Pending, "off by default");
    }
    world.put_policy(r#"{"version":1,"flood":{"maxPending":6,"coalesce":true}}"#).await;
    let Ok(Done::Created { approval, fresh }) = world.run(create(6, exec("job 1"), 10_000)).await else { panic!() };
    assert_eq!((approval.id, fresh), (approval_id(1), false));
    assert_eq!(world.created(ask(7)).await.status(), Status::Pending);
    let reason = |approval: Arc<Approval>| approval.outcome.as_ref().map(|outcome| outcome.reason);
    assert_eq!(reason(world.created(ask(8)).await), Some(Reason::Flooding));

    world.put_policy(r#"{"version":1,"flood":{"asksPerHour":6}}"#).await;
    assert_eq!(reason(world.created(ask(9)).await), Some(Reason::Flooding));
    world.clock.advance(3_600_000);
    world.run(Command::ExpireDue { limit: 100 }).await.unwrap();
    assert_eq!(reason(world.created(ask(10)).await), None);

    world.clock.advance(10_000);
    world.run(Command::ExpireDue { limit: 100 }).await.unwrap();
    world.put_policy(r#"{"version":1,"flood":{"ignored":3,"cooldownMs":60000}}"#).await;
    assert_eq!(reason(world.created(ask(11)).await), Some(Reason::Flooding));
    world.clock.advance(60_000);
    assert_eq!(reason(world.created(ask(12)).await), None);

    let mut full = new_approval(approval_id(99), request(CLIENT, "s", exec("x")), 1_000);
    full.max_pending = 1;
    assert!(matches!(world.run(Command::Create(Box::new(full))).await, Err(Refused::TooManyPending(1))));
}

async fn threat_78_a_retry_after_a_no_is_flagged(harness: &dyn Harness) {
    let world = World::new(harness);
    let titled = |number: u64, title: &str| {
        let action = countersign_model::Action::Custom {
            action_type: countersign_model::ActionType::new("http_request").unwrap(),
            title: title.into(),
            preview: "DELETE /prod".into(),
            options: Vec::new(),
        };
        create(number, action, 1_000)
    };
    let first = world.created(titled(1, "clean up")).await;
    assert_eq!(first.terms.prior, None);
    world.run(decide(first.id, Answer::plain(Choice::Deny), "ann", 0)).await.unwrap();
    let retry = world.created(titled(2, "urgent fix")).await;
    let prior = retry.terms.prior.unwrap();
    assert_eq!((prior.approval_id, prior.status), (first.id, Status::Denied));
    world.clock.advance(1_000);
    world.run(Command::ExpireDue { limit: 10 }).await.unwrap();
    let third = world.created(titled(3, "again")).await;
    assert_eq!(third.terms.prior.unwrap().status, Status::Expired);
    world.clock.advance(3_600_000);
    assert_eq!(world.created(titled(4, "next day")).await.terms.prior, None);
}

async fn pages_and_cursors(harness: &dyn Harness) {
    let world = World::new(harness);
    for number in 1..=7 {
        world.created(create(number, exec(&format!("job {number}")), 60_000)).await;
    }
    world.run(allow_once(approval_id(3), "ann")).await.unwrap();
    let mut seen = Vec::new();
    let mut before = None;
    loop {
        let page = world.ledger.list(ListFilter { status: None, before, limit: 3 }).await.unwrap();
        let Some((position, _)) = page.last() else { break };
        before = Some(*position);
        seen.extend(page.iter().map(|(_, approval)| approval.id));
    }
    assert_eq!(seen, (1..=7).rev().map(approval_id).collect::<Vec<_>>());
    let pending =
        world.ledger.list(ListFilter { status: Some(Status::Pending), before: None, limit: 100 }).await.unwrap();
    assert_eq!(pending.len(), 6);
    assert_eq!(world.ledger.events(5, 2).await.unwrap().iter().map(|c| c.event.seq).collect::<Vec<_>>(), [6, 7]);
    assert_eq!(world.ledger.cursor("telegram".into()).await.unwrap(), 0);
    world.run(Command::PutCursor { name: "telegram".into(), seq: 5 }).await.unwrap();
    world.run(Command::PutCursor { name: "telegram".into(), seq: 6 }).await.unwrap();
    assert_eq!(world.ledger.cursor("telegram".into()).await.unwrap(), 6);
    assert_eq!(*world.ledger.head().borrow(), 8);
}

async fn keys_are_kept_as_hashes(harness: &dyn Harness) {
    let world = World::new(harness);
    let id = KeyId::from_random([5; 16]);
    let secret = KeySecret::from_random(id, &[6; 32]);
    let key = KeyRecord {
        paired: false,
        node_id: None,
        id,
        hash: secret.hash(),
        client_id: ClientId::new("abcdefabcdef"),
        name: "bot".into(),
        role: Role::Agent,
        profile: "default".into(),
        created_at: world.clock.now(),
        expires_at: None,
        revoked_at: None,
    };
    world.run(Command::CreateKey { key: Box::new(key), by: "ann".into() }).await.unwrap();
    let stored = world.ledger.keys().await.unwrap();
    assert!(stored[0].hash.matches(&secret) && stored[0].is_active(world.clock.now()));
    world.run(Command::RevokeKey { id, by: "ann".into() }).await.unwrap();
    assert!(!world.ledger.keys().await.unwrap()[0].is_active(world.clock.now()));
    assert!(matches!(world.run(Command::RevokeKey { id, by: "ann".into() }).await, Err(Refused::NoSuchKey)));
    assert_eq!(kinds(&*world.ledger).await, ["key_made", "key_revoked"]);
}

async fn sweeping_removes_contents_and_keeps_the_record(harness: &dyn Harness) {
    let world = World::new(harness);
    let old = world.created(create(1, exec("old"), 60_000)).await.id;
    let open = world.created(create(2, exec("open"), 60_000)).await.id;
    world.run(allow_once(old, "ann")).await.unwrap();
    world.clock.advance(1_000);
    let before = world.clock.now();
    assert!(matches!(world.run(Command::Sweep { before, limit: 10 }).await, Ok(Done::Swept(1))));
    assert!(world.ledger.approval(old).await.unwrap().is_none());
    assert_eq!(world.approval(open).await.status(), Status::Pending);
    assert_eq!(kinds(&*world.ledger).await, ["requested", "requested", "resolved", "swept"]);
}

async fn threat_70_the_records_time_never_goes_back(harness: &dyn Harness) {
    let world = World::new(harness);
    let first = world.created(create(1, exec("a"), 60_000)).await;
    world.clock.set(Timestamp::from_millis(first.terms.created_at.as_millis() - 3_600_000));
    let second = world.created(create(2, exec("b"), 60_000)).await;
    assert!(second.terms.created_at >= first.terms.created_at);
    world.clock.set(first.terms.created_at.plus_millis(3_600_000));
    // Set forward: in doubt they expire.
    assert!(matches!(world.run(Command::ExpireDue { limit: 10 }).await, Ok(Done::Expired { count: 2 })));
    verified_events(&*world.ledger).await;
}
