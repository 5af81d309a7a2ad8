//! Who is connected now: each device once, how to reach it, and what it may do.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use countersign_gate::{AgentHandle, ApproverHandle, Presence};
use countersign_model::ChannelChoice;
use parking_lot::RwLock;
use tokio::sync::Notify;

use super::sink::Sink;

/// Wrong codes on one connection that are answered.
const MAX_GUESSES: u32 = 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DeviceType {
    Client,
    Agent,
}

impl DeviceType {
    pub(super) fn parse(text: &str) -> Option<Self> {
        [Self::Client, Self::Agent].into_iter().find(|kind| kind.as_str() == text)
    }

    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Agent => "agent",
        }
    }
}

/// What the gate said of whoever is at the other end. The handle is the right.
#[derive(Clone, Debug)]
pub(super) enum Who {
    Unverified,
    Approver(ApproverHandle),
    Agent(AgentHandle),
}

#[derive(Debug)]
pub(super) struct Device {
    /// As it registered; perhaps a secret.
    pub(super) id: String,
    /// As others know it.
    pub(super) address: String,
    pub(super) kind: DeviceType,
    pub(super) sink: Sink,
    who: RwLock<Who>,
    /// Codes it has guessed wrong.
    guesses: AtomicU32,
    over: AtomicBool,
    /// Who it is has changed, or it is over.
    pub(super) stirred: Notify,
}

impl Device {
    pub(super) fn new(id: String, address: String, kind: DeviceType, who: Who, sink: Sink) -> Self {
        let (who, guesses, over) = (RwLock::new(who), AtomicU32::new(0), AtomicBool::new(false));
        Self { id, address, kind, sink, who, guesses, over, stirred: Notify::new() }
    }

    pub(super) fn who(&self) -> Who {
        self.who.read().clone()
    }

    pub(super) fn approver(&self) -> Option<ApproverHandle> {
        match &*self.who.read() {
            Who::Approver(approver) => Some(approver.clone()),
            Who::Unverified | Who::Agent(_) => None,
        }
    }

    /// It has paired: from here on it is this person's.
    pub(super) fn verified(&self, approver: ApproverHandle) {
        *self.who.write() = Who::Approver(approver);
        self.stirred.notify_one();
    }

    /// It gave a wrong code. A person mistypes a few times; who goes on is not let.
    pub(super) fn guessed(&self) {
        if self.guesses.fetch_add(1, Ordering::Relaxed) >= MAX_GUESSES {
            self.end();
        }
    }

    /// It no longer counts, whatever its connection does.
    pub(super) fn end(&self) {
        self.over.store(true, Ordering::SeqCst);
        self.stirred.notify_one();
    }

    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }
}

#[derive(Debug, Default)]
pub(super) struct Devices(RwLock<HashMap<String, Arc<Device>>>);

impl Devices {
    /// Whether the id was free. One that nobody has vouched for gives way to one that somebody has.
    pub(super) fn add(&self, device: Arc<Device>) -> bool {
        let mut devices = self.0.write();
        if let Some(there) = devices.get(&device.id) {
            let gives_way = matches!(there.who(), Who::Unverified) && !matches!(device.who(), Who::Unverified);
            if !gives_way {
                return false;
            }
            there.end();
        }
        devices.insert(device.id.clone(), device);
        true
    }

    /// This very connection's entry: another may have taken its place.
    pub(super) fn remove(&self, device: &Arc<Device>) {
        let mut devices = self.0.write();
        if devices.get(&device.id).is_some_and(|there| Arc::ptr_eq(there, device)) {
            devices.remove(&device.id);
        }
    }

    pub(super) fn at(&self, address: &str) -> Option<Arc<Device>> {
        self.0.read().values().find(|device| device.address == address && !device.is_over()).cloned()
    }

    pub(super) fn all(&self) -> Vec<Arc<Device>> {
        self.0.read().values().filter(|device| !device.is_over()).cloned().collect()
    }

    /// Whether anybody's device is here to be told something.
    pub(super) fn has_approvers(&self) -> bool {
        let is_approver = |device: &Arc<Device>| matches!(&*device.who.read(), Who::Approver(_));
        self.0.read().values().any(|device| !device.is_over() && is_approver(device))
    }

    /// Calls for each device whose person it is now.
    pub(super) fn each_approver(&self, mut call: impl FnMut(&Device, &str)) {
        for device in self.0.read().values().filter(|device| !device.is_over()) {
            if let Who::Approver(approver) = &*device.who.read() {
                call(device, approver.name());
            }
        }
    }
}

/// The hub reaches those who are connected and read what they are sent.
impl Presence for Devices {
    fn kind(&self) -> ChannelChoice {
        ChannelChoice::Hub
    }

    fn names(&self) -> Vec<String> {
        let mut names = Vec::new();
        self.each_approver(|device, name| {
            if device.sink.has_room() && !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
        });
        names
    }
}
