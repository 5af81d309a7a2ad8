//! A store changed behind the gate's back: the check finds it and names the row.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code: a broken expectation is a failed test"
)]

mod support;

use countersign_gate::Command;
use countersign_ledger::{Checkpoints, VerifyError, verify_export_line, verify_store};
use countersign_model::{Answer, ChainError, Choice, ClientId, KeyId, KeyRecord, KeySecret, Policy, Role};
use countersign_testkit::conformance::World;
use countersign_testkit::sample::{CLIENT, approval_id, create, custom, decide, exec};
use rusqlite::Connection;
use support::Sqlite;

/// A store with something in every table.
async fn filled() -> Sqlite {
    let store = Sqlite::fresh();
    let world = World::new(&store);
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
        created_at: countersign_model::Timestamp::from_millis(1),
        expires_at: None,
        revoked_at: None,
    };
    world.run(Command::CreateKey { key: Box::new(key), by: "ann".into() }).await.unwrap();
    world.run(create(1, exec("make"), 60_000)).await.unwrap();
    world.run(create(2, custom("http_request", "GET /"), 60_000)).await.unwrap();
    world.run(decide(approval_id(2), Answer::plain(Choice::AllowActionType), "ann", 3)).await.unwrap();
    world.run(Command::Consume { id: approval_id(2), client: CLIENT }).await.unwrap();
    let base_hash = world.ledger.policy("default".into()).await.unwrap().stored.hash;
    let policy = Box::new(Policy::parse(r#"{"version":1,"security":"deny"}"#).unwrap());
    world
        .run(Command::PutPolicy { profile: "default".into(), policy, base_hash, revoke: Vec::new(), by: "ann".into() })
        .await
        .unwrap();
    store
}

fn tamper(store: &Sqlite, sql: &str) -> Result<(), VerifyError> {
    let changed = Connection::open(store.path()).unwrap().execute(sql, []).unwrap();
    assert_eq!(changed, 1, "{sql}");
    verify_store(&store.path(), Checkpoints::default(), |_| {}).map(|_| ())
}

#[tokio::test]
async fn an_untouched_store_verifies() {
    let store = filled().await;
    let report = verify_store(&store.path(), Checkpoints::default(), |_| {}).unwrap();
    assert_eq!((report.events, report.approvals, report.grants, report.keys), (7, 2, 1, 1));
    verify_store(&store.path(), report.head.into(), |_| {}).unwrap();
}

#[tokio::test]
async fn threat_73_one_flipped_byte_of_an_event_names_its_row() {
    for seq in 1..=7u64 {
        let store = filled().await;
        let connection = Connection::open(store.path()).unwrap();
        let mut line: Vec<u8> =
            connection.query_row("SELECT line FROM events WHERE seq = ?", [seq], |row| row.get(0)).unwrap();
        let place = line.len() / 2;
        line[place] ^= 1;
        connection.execute("UPDATE events SET line = ? WHERE seq = ?", rusqlite::params![line, seq]).unwrap();
        let error = verify_store(&store.path(), Checkpoints::default(), |_| {}).unwrap_err();
        assert!(matches!(error, VerifyError::Chain(ChainError::Hash { seq: named }) if named == seq), "{error}");
        assert!(error.to_string().contains(&format!("event {seq}")), "{error}");
    }
}

#[tokio::test]
async fn threat_73_rows_beside_the_record_are_bound_to_it() {
    for sql in [
        "UPDATE events SET hash = zeroblob(32) WHERE seq = 3",
        "UPDATE events SET hash = x'00' WHERE seq = 3",
        "DELETE FROM events WHERE seq = 2",
        "UPDATE approvals SET request = replace(request, 'make', 'rm -rf /') WHERE request LIKE '%make%'",
        "UPDATE approvals SET terms = replace(terms, '\"deny\"', '\"full\"') WHERE n = 1",
        "UPDATE approvals SET status = 'approved' WHERE n = 1",
        "UPDATE approvals SET outcome = replace(outcome, 'ann', 'eve') WHERE n = 2",
        "UPDATE approvals SET consumed_at = NULL WHERE n = 2",
        "DELETE FROM approvals WHERE n = 1",
        "UPDATE grants SET body = replace(body, 'http_request', 'write_file')",
        "UPDATE grants SET revoked_at = 1",
        "UPDATE policies SET text = replace(text, 'deny', 'full')",
        "DELETE FROM policies",
        "UPDATE keys SET role = 'admin'",
        "UPDATE keys SET revoked_at = 1",
        "INSERT INTO keys SELECT x'00000000000000000000000000000001', hash, client_id, name, role, profile, created_at, expires_at, revoked_at, paired, node_id FROM keys",
        "UPDATE keys SET node_id = 'x'",
    ] {
        let store = filled().await;
        let found = tamper(&store, sql);
        assert!(found.is_err(), "not found: {sql}");
    }
}

#[tokio::test]
async fn threat_73_a_rewritten_history_does_not_hold_an_older_checkpoint() {
    let (one, two) = (filled().await, Sqlite::fresh());
    let checkpoint = verify_store(&one.path(), Checkpoints::default(), |_| {}).unwrap().head;
    World::new(&two).run(create(1, exec("other"), 60_000)).await.unwrap();
    let error = verify_store(&two.path(), checkpoint.into(), |_| {}).unwrap_err();
    assert!(matches!(error, VerifyError::Checkpoint { seq: 7, .. }), "{error}");
}

#[tokio::test]
async fn an_export_is_checked_without_the_store() {
    let store = filled().await;
    let world = World::new(&store);
    let lines: Vec<String> = world
        .ledger
        .audit(0, 100)
        .await
        .unwrap()
        .into_iter()
        .map(|line| {
            let event: serde_json::Value = serde_json::from_slice(&line.line).unwrap();
            serde_json::json!({"event": event, "hash": line.hash.to_hex()}).to_string()
        })
        .collect();
    let check = |lines: &[String]| {
        let mut last = None;
        for (number, line) in lines.iter().enumerate() {
            let previous = last.as_ref().map(|(event, hash)| (event, hash));
            last = Some(verify_export_line(previous, number as u64 + 1, line)?);
        }
        Ok::<_, VerifyError>(lines.len())
    };
    assert_eq!(check(&lines).unwrap(), 7);
    let mut changed = lines.clone();
    changed[3] = changed[3].replacen("approved", "denied", 1);
    assert!(check(&changed).is_err());
    let mut shorter = lines;
    shorter.remove(3);
    assert!(check(&shorter).is_err());
}
