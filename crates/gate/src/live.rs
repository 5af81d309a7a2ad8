//! What running commands print, for whoever follows them: the last of it, in memory alone. The record has how they
//! ended, not what they said.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use countersign_model::ApprovalId;
use parking_lot::Mutex;
use tokio::sync::watch;

/// Of one run; what is older is let go.
const KEPT_BYTES: usize = 256 * 1024;
/// Runs that print at a time. More are run, and not heard.
const MAX_RUNS: usize = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputStream {
    Stdout,
    Stderr,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Output {
    /// From 0, without gaps but where older output was let go.
    pub number: u64,
    pub stream: OutputStream,
    pub text: String,
}

#[derive(Debug, Default)]
pub(crate) struct Live(Mutex<HashMap<ApprovalId, Arc<Tail>>>);

#[derive(Debug, Default)]
struct Tail {
    kept: Mutex<Kept>,
    /// How many pieces there were, or that there will be no more.
    told: watch::Sender<(u64, bool)>,
}

#[derive(Debug, Default)]
struct Kept {
    pieces: VecDeque<Arc<Output>>,
    bytes: usize,
    next: u64,
}

impl Live {
    /// Whether it is heard.
    pub(crate) fn print(&self, id: ApprovalId, stream: OutputStream, text: String) -> bool {
        let Some(tail) = self.tail(id) else { return false };
        let mut kept = tail.kept.lock();
        kept.bytes += text.len();
        let number = kept.next;
        kept.next += 1;
        kept.pieces.push_back(Arc::new(Output { number, stream, text }));
        while kept.bytes > KEPT_BYTES && kept.pieces.len() > 1 {
            kept.bytes -= kept.pieces.pop_front().map_or(0, |piece| piece.text.len());
        }
        drop(kept);
        tail.told.send_modify(|(count, _)| *count = number + 1);
        true
    }

    /// Whoever follows is told that this was all.
    pub(crate) fn end(&self, id: &ApprovalId) {
        if let Some(tail) = self.0.lock().remove(id) {
            tail.told.send_modify(|(_, over)| *over = true);
        }
    }

    /// From what is still there on; nothing when too many are followed already.
    pub(crate) fn follow(&self, id: ApprovalId) -> Option<Follower> {
        let tail = self.tail(id)?;
        Some(Follower { told: tail.told.subscribe(), tail, next: 0 })
    }

    fn tail(&self, id: ApprovalId) -> Option<Arc<Tail>> {
        let mut all = self.0.lock();
        if all.len() >= MAX_RUNS && !all.contains_key(&id) {
            // What nobody follows makes room: a run that never says how it ended must not keep others from being heard.
            let idle = all.iter().find(|(_, tail)| tail.told.receiver_count() == 0).map(|(id, _)| *id)?;
            all.remove(&idle);
        }
        Some(all.entry(id).or_default().clone())
    }
}

#[derive(Debug)]
pub struct Follower {
    tail: Arc<Tail>,
    told: watch::Receiver<(u64, bool)>,
    next: u64,
}

impl Follower {
    /// What was printed since, as soon as there is something; nothing more when the run has ended.
    pub async fn next(&mut self) -> Option<Vec<Arc<Output>>> {
        let from = self.next;
        let over = match self.told.wait_for(|(count, over)| *over || *count > from).await {
            Ok(told) => told.1,
            Err(_) => true,
        };
        let pieces: Vec<Arc<Output>> = {
            let kept = self.tail.kept.lock();
            kept.pieces.iter().filter(|piece| piece.number >= from).cloned().collect()
        };
        self.next = pieces.last().map_or(from, |piece| piece.number + 1);
        if pieces.is_empty() && over { None } else { Some(pieces) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: ApprovalId = ApprovalId::from_random([1; 16]);

    fn texts(pieces: &[Arc<Output>]) -> Vec<&str> {
        pieces.iter().map(|piece| piece.text.as_str()).collect()
    }

    #[tokio::test]
    async fn a_follower_hears_what_is_kept_then_what_comes_then_the_end() {
        let live = Live::default();
        live.print(ID, OutputStream::Stdout, "a".into());
        let mut follower = live.follow(ID).unwrap();
        assert_eq!(texts(&follower.next().await.unwrap()), ["a"]);
        let (heard, _) = tokio::join!(follower.next(), async { live.print(ID, OutputStream::Stderr, "b".into()) });
        assert_eq!(texts(&heard.unwrap()), ["b"]);
        live.print(ID, OutputStream::Stdout, "c".into());
        live.end(&ID);
        assert_eq!(texts(&follower.next().await.unwrap()), ["c"]);
        assert!(follower.next().await.is_none());
        assert!(live.0.lock().is_empty());
    }

    #[tokio::test]
    async fn runs_that_nobody_follows_make_room_for_others() {
        let live = Live::default();
        let id = |number: usize| ApprovalId::from_random((number as u128).to_be_bytes());
        let follower = live.follow(id(0)).unwrap();
        for number in 1..MAX_RUNS * 2 {
            assert!(live.print(id(number), OutputStream::Stdout, "x".into()));
        }
        assert!(live.0.lock().len() <= MAX_RUNS && live.0.lock().contains_key(&id(0)));
        drop(follower);
    }

    #[tokio::test]
    async fn only_the_last_of_much_output_is_kept() {
        let live = Live::default();
        for _ in 0..10 {
            live.print(ID, OutputStream::Stdout, "x".repeat(KEPT_BYTES / 4));
        }
        let heard = live.follow(ID).unwrap().next().await.unwrap();
        assert_eq!((heard.len(), heard[0].number), (4, 6));
    }
}
