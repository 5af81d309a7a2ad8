//! The gate's service over a real store with a clock that the test moves: timers, waiters, channels.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code: a broken expectation is a failed test"
)]

mod support;

use std::sync::Arc;

use countersign_gate::{
    AgentHandle, BoxFuture, Caller, Channel, ChannelError, Clock, Committed, Gate, GateConfig, GateError, NewRequest,
};
use countersign_model::{
    Action, AgentWords, Answer, ApprovalId, ChannelChoice, Choice, Door, Status, Target, TermsAsked,
};
use countersign_testkit::sample::{custom, exec, type_of};
use countersign_testkit::{Harness as _, SimClock};
use support::Sqlite;
use tokio::sync::mpsc;

async fn gate(store: &Sqlite, clock: &Arc<SimClock>, channels: Vec<Arc<dyn Channel>>) -> Gate {
    Gate::start(store.open(clock.clone()), clock.clone(), channels, GateConfig::default()).await.unwrap()
}

fn new_request(action: Action, seconds: u64) -> NewRequest {
    NewRequest {
        engine: None,
        session_id: "s".into(),
        context_id: None,
        alias: None,
        action_type: type_of(&action),
        action,
        words: AgentWords::default(),
        channel: ChannelChoice::Any,
        target: Target::default(),
        terms: TermsAsked::default(),
        expires_in_ms: Some(seconds * 1000),
        default_ms: 600_000,
        idempotency: None,
        terminal: None,
        take: countersign_gate::Take::No,
    }
}

async fn ask(agent: &AgentHandle, preview: &str, seconds: u64) -> ApprovalId {
    agent.request(new_request(custom("a", preview), seconds)).await.unwrap().0.id
}

async fn approver(gate: &Gate) -> countersign_gate::ApproverHandle {
    let secret = gate.first_admin_key("ann").await.unwrap();
    let Ok(Caller::Admin(admin)) = gate.authenticate(&secret, Door::Http) else { panic!() };
    admin.as_approver().clone()
}

/// Lets every task that can run do so, until this many callers are parked.
async fn until_waiting(gate: &Gate, count: usize) {
    while gate.waiting() != count {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn an_approval_expires_on_the_millisecond_and_wakes_who_waits() {
    let (store, clock) = (Sqlite::fresh(), Arc::new(SimClock::default()));
    let gate = gate(&store, &clock, vec![]).await;
    let agent = gate.local_agent();
    let (later, sooner) = (ask(&agent, "1", 20).await, ask(&agent, "2", 10).await);
    let far = clock.now().plus_millis(3_600_000);
    let waits = |id| {
        let agent = agent.clone();
        tokio::spawn(async move { agent.wait(id, far).await.unwrap() })
    };
    let (first, second) = (waits(sooner), waits(later));
    until_waiting(&gate, 2).await;
    clock.advance(9_999);
    assert_eq!(agent.get(sooner).await.unwrap().status(), Status::Pending);
    clock.advance(1);
    let expired = first.await.unwrap();
    assert_eq!((expired.status(), expired.outcome.as_ref().unwrap().at), (Status::Expired, clock.now()));
    assert_eq!(agent.get(later).await.unwrap().status(), Status::Pending);
    clock.advance(10_000);
    assert_eq!(second.await.unwrap().status(), Status::Expired);
    assert_eq!(gate.waiting(), 0);
}

#[tokio::test]
async fn deadlines_are_recomputed_at_start() {
    let (store, clock) = (Sqlite::fresh(), Arc::new(SimClock::default()));
    let id = {
        let gate = gate(&store, &clock, vec![]).await;
        let id = ask(&gate.local_agent(), "1", 10).await;
        gate.close();
        id
    };
    clock.advance(60_000);
    let gate = gate(&store, &clock, vec![]).await;
    let ended = gate.local_agent().wait(id, clock.now().plus_millis(1_000)).await.unwrap();
    assert_eq!(ended.status(), Status::Expired);
}

#[tokio::test]
async fn threat_70_a_clock_set_forward_expires_and_one_set_back_gives_no_time() {
    let (store, clock) = (Sqlite::fresh(), Arc::new(SimClock::default()));
    let gate = gate(&store, &clock, vec![]).await;
    let (agent, ann) = (gate.local_agent(), approver(&gate).await);
    let id = ask(&agent, "1", 10).await;
    let start = clock.now();
    clock.set(start.plus_millis(86_400_000));
    assert_eq!(agent.wait(id, clock.now().plus_millis(1_000)).await.unwrap().status(), Status::Expired);
    clock.set(start);
    let refused = ann.decide(id, Answer::plain(Choice::AllowOnce)).await;
    assert!(matches!(refused, Err(GateError::Refused(_))));
}

#[tokio::test]
async fn a_waiter_that_leaves_is_forgotten_and_one_whose_time_is_over_gets_the_state() {
    let (store, clock) = (Sqlite::fresh(), Arc::new(SimClock::default()));
    let gate = gate(&store, &clock, vec![]).await;
    let agent = gate.local_agent();
    let id = ask(&agent, "1", 600).await;
    let waiting = {
        let (agent, until) = (agent.clone(), clock.now().plus_millis(5_000));
        tokio::spawn(async move { agent.wait(id, until).await.unwrap() })
    };
    let leaving = {
        let (agent, until) = (agent.clone(), clock.now().plus_millis(5_000));
        tokio::spawn(async move { agent.wait(id, until).await.unwrap() })
    };
    until_waiting(&gate, 2).await;
    leaving.abort();
    until_waiting(&gate, 1).await;
    clock.advance(5_000);
    assert_eq!(waiting.await.unwrap().status(), Status::Pending);
    assert_eq!(gate.waiting(), 0);
}

#[tokio::test]
async fn closing_answers_everybody_who_waits() {
    let (store, clock) = (Sqlite::fresh(), Arc::new(SimClock::default()));
    let gate = gate(&store, &clock, vec![]).await;
    let agent = gate.local_agent();
    let id = ask(&agent, "1", 600).await;
    let until = clock.now().plus_millis(60_000);
    let waiting = {
        let agent = agent.clone();
        tokio::spawn(async move { agent.wait(id, until).await.unwrap() })
    };
    until_waiting(&gate, 1).await;
    gate.close();
    assert_eq!(waiting.await.unwrap().status(), Status::Pending);
}

/// Tells the test what it was given, and fails as often as it is told to.
struct Recording {
    seen: mpsc::UnboundedSender<u64>,
    failures: std::sync::atomic::AtomicU32,
}

impl Channel for Recording {
    fn kind(&self) -> ChannelChoice {
        ChannelChoice::Telegram
    }

    fn name(&self) -> &str {
        "recording"
    }

    fn knows(&self, target: &Target) -> bool {
        target.tg_chat_id.as_deref() == Some("42")
    }

    fn deliver<'a>(&'a self, committed: &'a Committed) -> BoxFuture<'a, Result<(), ChannelError>> {
        use std::sync::atomic::Ordering::SeqCst;
        let failing = self.failures.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1)).is_ok();
        Box::pin(async move {
            if failing {
                return Err(ChannelError("no network".into()));
            }
            self.seen.send(committed.event.seq).unwrap();
            Ok(())
        })
    }
}

fn recording(failures: u32) -> (Arc<dyn Channel>, mpsc::UnboundedReceiver<u64>) {
    let (seen, events) = mpsc::unbounded_channel();
    (Arc::new(Recording { seen, failures: failures.into() }), events)
}

#[tokio::test]
async fn threat_68_a_channel_gets_every_event_after_failures_and_restarts() {
    let (store, clock) = (Sqlite::fresh(), Arc::new(SimClock::default()));
    {
        let (channel, mut events) = recording(0);
        let gate = gate(&store, &clock, vec![channel]).await;
        ask(&gate.local_agent(), "1", 600).await;
        assert_eq!(events.recv().await, Some(1));
        // Its cursor is in the store once the next event has been asked for.
        ask(&gate.local_agent(), "2", 600).await;
        assert_eq!(events.recv().await, Some(2));
        gate.close();
        // Committed while nobody carries it: a crash between commit and delivery.
        ask(&gate.local_agent(), "3", 600).await;
    }
    let (channel, mut events) = recording(3);
    let gate = gate(&store, &clock, vec![channel]).await;
    let ticking = clock.clone();
    tokio::spawn(async move {
        loop {
            ticking.advance(10);
            tokio::task::yield_now().await;
        }
    });
    let mut seen = vec![events.recv().await.unwrap()];
    while *seen.last().unwrap() < 3 {
        seen.push(events.recv().await.unwrap());
    }
    assert!(seen == [3] || seen == [2, 3], "again rather than never, in order: {seen:?}");
    drop(gate);
}

#[tokio::test]
async fn a_target_is_one_of_the_people_the_channel_knows() {
    let (store, clock) = (Sqlite::fresh(), Arc::new(SimClock::default()));
    let (channel, _events) = recording(0);
    let gate = gate(&store, &clock, vec![channel]).await;
    let agent = gate.local_agent();
    let to = |channel, chat: Option<&str>| NewRequest {
        channel,
        target: Target { tg_chat_id: chat.map(str::to_owned), email_to: None },
        ..new_request(exec("ls"), 60)
    };
    assert!(agent.request(to(ChannelChoice::Telegram, Some("42"))).await.is_ok());
    assert!(agent.request(to(ChannelChoice::Any, Some("42"))).await.is_ok());
    for choice in [ChannelChoice::Telegram, ChannelChoice::Any, ChannelChoice::Web] {
        let refused = agent.request(to(choice, Some("666"))).await;
        assert!(matches!(refused, Err(GateError::UnknownTarget(_))), "{choice}: {refused:?}");
    }
    // A way that is not set up reaches everybody, and nobody whom the agent named.
    let (asked, _) = agent.request(to(ChannelChoice::Email, Some("666"))).await.unwrap();
    assert_eq!((asked.request.channel, &asked.request.target), (ChannelChoice::Any, &Target::default()));
    assert_eq!(asked.request.not_configured, Some(ChannelChoice::Email));
}
