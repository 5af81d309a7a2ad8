//! Random histories, and the small model they are checked against. The model is written apart from the
//! product: plain states and a list of what must be on the record.

use countersign_gate::{Clock as _, Command, Done, Withdrawal};
use countersign_model::{Answer, ApprovalId, Choice, Event, GrantId, Status};
use proptest::prelude::*;

use crate::conformance::{Harness, World, verified_events};
use crate::sample::{CLIENT, approval_id, create, custom, decide};

#[derive(Clone, Copy, Debug)]
pub enum Step {
    Create { kind: u8, open_ms: u64 },
    Decide { which: usize, choice: Choice },
    Cancel { which: usize },
    Consume { which: usize },
    Advance { millis: u64 },
    Restart,
}

pub fn steps() -> impl Strategy<Value = Vec<Step>> {
    let choice = prop::sample::select(vec![
        Choice::AllowOnce,
        Choice::Deny,
        Choice::AllowActionTypeForSession,
        Choice::AllowActionType,
    ]);
    let step = prop_oneof![
        4 => (0u8..3, 1u64..10_000).prop_map(|(kind, open_ms)| Step::Create { kind, open_ms }),
        4 => (0usize..12, choice).prop_map(|(which, choice)| Step::Decide { which, choice }),
        1 => (0usize..12).prop_map(|which| Step::Cancel { which }),
        2 => (0usize..12).prop_map(|which| Step::Consume { which }),
        2 => prop_oneof![1u64..6_000, Just(120_000)].prop_map(|millis| Step::Advance { millis }),
        1 => Just(Step::Restart),
    ];
    prop::collection::vec(step, 1..60)
}

/// What an approval is in the model.
#[derive(Clone, Debug)]
struct Entry {
    kind: u8,
    status: Status,
    deadline: i64,
    decided_at: i64,
    automatic: bool,
    used: bool,
}

/// One line of the expected record: what happened to which approval.
type Line = (&'static str, Option<usize>);

#[derive(Debug, Default)]
struct Model {
    entries: Vec<Entry>,
    /// Kinds that a grant speaks for; every request here is of one session.
    granted: Vec<u8>,
    record: Vec<Line>,
}

impl Model {
    fn create(&mut self, kind: u8, now: i64, open_ms: u64) -> Status {
        let automatic = self.granted.contains(&kind);
        let status = if automatic { Status::Approved } else { Status::Pending };
        self.record.push((if automatic { "ruled" } else { "requested" }, Some(self.entries.len())));
        let deadline = now + i64::try_from(open_ms).unwrap();
        self.entries.push(Entry { kind, status, deadline, decided_at: now, automatic, used: false });
        status
    }

    /// Whether the answer counts.
    fn decide(&mut self, which: usize, choice: Choice, now: i64) -> bool {
        if !self.is_open(which, now) {
            return false;
        }
        let entry = &mut self.entries[which];
        entry.status = if choice == Choice::Deny { Status::Denied } else { Status::Approved };
        entry.decided_at = now;
        self.record.push(("resolved", Some(which)));
        if matches!(choice, Choice::AllowActionType | Choice::AllowActionTypeForSession) {
            self.granted.push(entry.kind);
            self.record.push(("grant_made", Some(which)));
        }
        true
    }

    fn cancel(&mut self, which: usize, now: i64) -> bool {
        if !self.is_open(which, now) {
            return false;
        }
        self.entries[which].status = Status::Cancelled;
        self.record.push(("resolved", Some(which)));
        true
    }

    /// Touching an overdue one ends it.
    fn is_open(&mut self, which: usize, now: i64) -> bool {
        let Some(entry) = self.entries.get_mut(which) else { return false };
        if entry.status == Status::Pending && now >= entry.deadline {
            entry.status = Status::Expired;
            self.record.push(("resolved", Some(which)));
            return false;
        }
        entry.status == Status::Pending
    }

    fn consume(&mut self, which: usize, now: i64) -> bool {
        let Some(entry) = self.entries.get_mut(which) else { return false };
        let good = entry.status == Status::Approved && !entry.used && now < entry.decided_at + 120_000;
        if good {
            entry.used = true;
            self.record.push(("consumed", Some(which)));
        }
        good
    }

    fn expire(&mut self, now: i64) {
        let mut due: Vec<usize> = (0..self.entries.len())
            .filter(|which| self.entries[*which].status == Status::Pending && now >= self.entries[*which].deadline)
            .collect();
        due.sort_by_key(|which| (self.entries[*which].deadline, *which));
        for which in due {
            self.entries[which].status = Status::Expired;
            self.record.push(("resolved", Some(which)));
        }
    }
}

fn line(event: &Event) -> Line {
    let which = event.body.approval_id().map(|id| {
        let number = u64::from_be_bytes(id.as_bytes()[8..].try_into().unwrap());
        usize::try_from(number).unwrap()
    });
    (event.body.kind().as_str(), which)
}

/// Runs the steps on a real ledger and on the model, and compares after each.
pub async fn check(harness: &dyn Harness, steps: &[Step]) {
    let mut world = World::new(harness);
    let mut model = Model::default();
    for step in steps {
        let now = world.clock.now().as_millis();
        match *step {
            Step::Create { kind, open_ms } => {
                let number = model.entries.len() as u64;
                let action = custom(&format!("type_{kind}"), &format!("call {number}"));
                let Ok(Done::Created { approval, .. }) = world.run(create(number, action, open_ms)).await else {
                    panic!("a create is never refused here");
                };
                assert_eq!(approval.status(), model.create(kind, now, open_ms), "{step:?}");
            }
            Step::Decide { which, choice } => {
                let id = approval_id(which as u64);
                let answer = world.run(decide_with_own_grant(id, choice, model.record.len())).await;
                assert_eq!(answer.is_ok(), model.decide(which, choice, now), "{step:?} {answer:?}");
            }
            Step::Cancel { which } => {
                let answer = world
                    .run(Command::Withdraw {
                        id: approval_id(which as u64),
                        client: CLIENT,
                        why: Withdrawal::Cancelled,
                    })
                    .await;
                assert_eq!(answer.is_ok(), model.cancel(which, now), "{step:?} {answer:?}");
            }
            Step::Consume { which } => {
                let answer = world.run(Command::Consume { id: approval_id(which as u64), client: CLIENT }).await;
                assert_eq!(answer.is_ok(), model.consume(which, now), "{step:?} {answer:?}");
            }
            Step::Advance { millis } => {
                world.clock.advance(millis);
                world.run(Command::ExpireDue { limit: 1000 }).await.unwrap();
                model.expire(world.clock.now().as_millis());
            }
            Step::Restart => {
                let World { ledger, clock } = world;
                drop(ledger);
                world = World { ledger: harness.open(clock.clone()), clock };
            }
        }
    }
    for (which, entry) in model.entries.iter().enumerate() {
        let approval = world.approval(approval_id(which as u64)).await;
        let automatic = approval.outcome.as_ref().is_some_and(|outcome| outcome.is_automatic());
        let found = (approval.status(), approval.consumed_at.is_some(), automatic);
        assert_eq!(found, (entry.status, entry.used, entry.automatic), "approval {which}");
    }
    let record: Vec<Line> = verified_events(&*world.ledger).await.iter().map(line).collect();
    assert_eq!(record, model.record);
}

/// Each answer brings an id of its own for the grant it may make.
fn decide_with_own_grant(id: ApprovalId, choice: Choice, number: usize) -> Command {
    let Command::Decide(mut new) = decide(id, Answer::plain(choice), "ann", 0) else {
        unreachable!("`decide` makes a decision")
    };
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&(number as u64).to_be_bytes());
    new.grant_id = GrantId::from_random(bytes);
    Command::Decide(new)
}
