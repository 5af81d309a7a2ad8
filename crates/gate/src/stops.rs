//! Runs that somebody wants ended: who asked, and runners that wait to hear of it. In memory alone; that it was asked is
//! on the record.

use std::collections::HashMap;
use std::future::Future;

use countersign_model::ApprovalId;
use parking_lot::Mutex;
use tokio::sync::watch;

#[derive(Debug, Default)]
pub(crate) struct Stops(Mutex<HashMap<ApprovalId, watch::Sender<Option<String>>>>);

impl Stops {
    /// Whoever runs it hears now, or when it asks next.
    pub(crate) fn ask(&self, id: ApprovalId, by: &str) {
        self.0.lock().entry(id).or_default().send_replace(Some(by.to_owned()));
    }

    /// It has ended: there is nothing left to stop.
    pub(crate) fn forget(&self, id: &ApprovalId) {
        self.0.lock().remove(id);
    }

    /// Who wants it ended, as soon as somebody does; nobody when `given_up` comes first.
    pub(crate) async fn asked(&self, id: ApprovalId, given_up: impl Future<Output = ()>) -> Option<String> {
        let mut hears = self.0.lock().entry(id).or_default().subscribe();
        let asked = tokio::select! {
            heard = hears.wait_for(Option::is_some) => heard.ok().and_then(|by| by.clone()),
            () = given_up => None,
        };
        drop(hears);
        let mut all = self.0.lock();
        let idle =
            |waiting: &watch::Sender<Option<String>>| waiting.receiver_count() == 0 && waiting.borrow().is_none();
        if all.get(&id).is_some_and(idle) {
            all.remove(&id);
        }
        asked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: ApprovalId = ApprovalId::from_random([1; 16]);

    #[tokio::test]
    async fn a_stop_is_heard_before_and_after_it_is_waited_for() {
        let stops = Stops::default();
        stops.ask(ID, "ann");
        assert_eq!(stops.asked(ID, std::future::pending()).await.as_deref(), Some("ann"));
        stops.forget(&ID);
        let (waited, ()) = tokio::join!(stops.asked(ID, std::future::pending()), async { stops.ask(ID, "bob") });
        assert_eq!(waited.as_deref(), Some("bob"));
    }

    #[tokio::test]
    async fn waiting_in_vain_leaves_nothing_behind() {
        let stops = Stops::default();
        assert_eq!(stops.asked(ID, async {}).await, None);
        assert!(stops.0.lock().is_empty());
    }
}
