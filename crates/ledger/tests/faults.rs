//! A store that fails: nothing is allowed, nothing half-written, and it recovers by itself.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code: a broken expectation is a failed test"
)]

mod support;

use countersign_gate::{Command, Done, StoreError, Withdrawal};
use countersign_model::Status;
use countersign_testkit::conformance::{World, verified_events};
use countersign_testkit::sample::{CLIENT, allow_once, approval_id, create, exec};
use rusqlite::Connection;
use support::Sqlite;

#[tokio::test]
async fn threat_74_and_47_nothing_is_decided_or_acknowledged_that_the_record_does_not_take() {
    let store = Sqlite::fresh();
    let world = World::new(&store);
    world.run(create(1, exec("make"), 60_000)).await.unwrap();
    world.run(create(2, exec("make -B"), 60_000)).await.unwrap();
    world.run(allow_once(approval_id(2), "ann")).await.unwrap();
    let side = Connection::open(store.path()).unwrap();
    side.execute_batch("CREATE TRIGGER sink_down BEFORE INSERT ON events BEGIN SELECT RAISE(ABORT, 'sink down'); END")
        .unwrap();
    for command in [
        allow_once(approval_id(1), "ann"),
        create(3, exec("ls"), 60_000),
        Command::Consume { id: approval_id(2), client: CLIENT },
        Command::Withdraw { id: approval_id(1), client: CLIENT, why: Withdrawal::Cancelled },
    ] {
        let answer = world.ledger.submit(command).await;
        assert!(matches!(answer, Err(StoreError::Unavailable(ref why)) if why.contains("sink down")), "{answer:?}");
    }
    assert_eq!(world.approval(approval_id(1)).await.status(), Status::Pending);
    assert!(world.ledger.approval(approval_id(3)).await.unwrap().is_none());
    side.execute_batch("DROP TRIGGER sink_down").unwrap();
    assert!(matches!(world.run(allow_once(approval_id(1), "ann")).await, Ok(Done::Changed(_))));
    assert!(world.run(Command::Consume { id: approval_id(2), client: CLIENT }).await.is_ok());
    assert_eq!(world.ledger.stats().pending, 0, "what was given up is not counted");
    assert_eq!(verified_events(&*world.ledger).await.len(), 5);
}

#[tokio::test]
async fn a_store_held_by_another_program_is_an_error_until_it_is_let_go() {
    let store = Sqlite::fresh();
    let world = World::new(&store);
    world.run(create(1, exec("make"), 60_000)).await.unwrap();
    let side = Connection::open(store.path()).unwrap();
    side.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert!(matches!(world.ledger.submit(allow_once(approval_id(1), "ann")).await, Err(StoreError::Unavailable(_))));
    assert!(world.ledger.probe().await.is_err());
    side.execute_batch("ROLLBACK").unwrap();
    assert!(world.ledger.probe().await.is_ok());
    assert!(world.run(allow_once(approval_id(1), "ann")).await.is_ok());
}

#[tokio::test]
async fn a_row_that_cannot_be_read_fails_alone() {
    let store = Sqlite::fresh();
    {
        let world = World::new(&store);
        world.run(create(1, exec("broken"), 60_000)).await.unwrap();
        world.run(create(2, exec("fine"), 60_000)).await.unwrap();
    }
    Connection::open(store.path()).unwrap().execute("UPDATE approvals SET request = '{' WHERE n = 1", []).unwrap();
    let world = World::new(&store);
    let (broken, fine) = tokio::join!(
        world.ledger.submit(allow_once(approval_id(1), "ann")),
        world.ledger.submit(allow_once(approval_id(2), "ann")),
    );
    assert!(matches!(broken, Err(StoreError::Corrupt(_))), "{broken:?}");
    assert!(matches!(fine, Ok(Ok(Done::Changed(_)))), "{fine:?}");
}

#[tokio::test]
async fn a_policy_that_cannot_be_read_denies() {
    let store = Sqlite::fresh();
    drop(World::new(&store));
    Connection::open(store.path())
        .unwrap()
        .execute("INSERT INTO policies VALUES ('default', '{\"version\":1,')", [])
        .unwrap();
    let world = World::new(&store);
    let Ok(Done::Created { approval, .. }) = world.run(create(1, exec("ls"), 60_000)).await else { panic!() };
    assert_eq!(
        (approval.status(), approval.outcome.as_ref().unwrap().reason.as_str()),
        (Status::Denied, "policy_unreadable")
    );
}

#[tokio::test]
async fn a_store_of_a_newer_version_is_left_alone() {
    let store = Sqlite::fresh();
    drop(World::new(&store));
    Connection::open(store.path()).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let error = countersign_ledger::Store::open(&store.path()).unwrap_err().to_string();
    assert!(error.contains("newer version"), "{error}");
}
