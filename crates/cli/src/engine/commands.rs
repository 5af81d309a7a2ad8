//! The part of a call that runs a command: starts it, passes on what it writes, and says how it ended, to the host and to
//! the record.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use countersign_engine::Event;
use countersign_model::Exec;
use countersign_runner::{Change, Outcome, Running, StartError, Stdio, start};
use serde_json::json;

use super::calls::Live;
use super::tools::{Said, Streams, finish};
use crate::running::end_of;

/// Most commands are over before anybody elsewhere could want them ended.
const LISTEN_AFTER: Duration = Duration::from_millis(200);
/// Of what a command in the background wrote, in its last `info`.
const SPAWN_TAIL: usize = 4 * 1024;

impl Live {
    fn start(&self, exec: &Exec, id: &str) -> Result<Running, Said> {
        start(exec, &self.session.inherited, Stdio::Capture).map_err(|error| {
            let changed: Vec<String> = match &error {
                StartError::Changed(changes) => changes.iter().map(Change::to_string).collect(),
                StartError::Unbound | StartError::Bind(_) | StartError::Spawn { .. } => vec![error.to_string()],
            };
            let _ = self.session.desk.ran(id, json!({ "changed": changed }));
            Said::failed(error.to_string())
        })
    }

    pub(super) fn bash(&self, exec: &Exec, id: &str, limit: Duration) -> Said {
        let mut running = match self.start(exec, id) {
            Ok(running) => running,
            Err(said) => return said,
        };
        let stopper = running.stopper();
        let stop = self.session.calls.lock().get_mut(&self.call_id).is_some_and(|open| {
            open.stopper = Some(stopper.clone());
            open.stopped
        });
        if stop {
            stopper.stop();
        }
        self.stop_when_asked(id, &mut running);
        let mut streams = Streams::default();
        let ended = running.wait(Some(limit), &mut |stream, bytes| self.chunk(streams.push(stream, bytes)));
        self.chunk(streams.end());
        match ended {
            Ok(outcome) => {
                self.report(id, &outcome);
                finish(&outcome)
            }
            Err(error) => Said::failed(format!("how it ended is not known: {error}")),
        }
    }

    fn chunk(&self, chunk: String) {
        if !chunk.is_empty() {
            self.session.out.send(&Event::ToolChunk {
                msg_id: self.msg_id.clone(),
                call_id: self.call_id.clone(),
                tool_name: self.tool.name.clone(),
                chunk,
            });
        }
    }

    /// Starts it and lets the call end; its own end is told when it comes.
    pub(super) fn spawn(self, exec: &Exec, id: &str) {
        let mut running = match self.start(exec, id) {
            Ok(running) => running,
            Err(said) => return self.told(said),
        };
        let number = running.id();
        self.session.spawned.lock().insert(number, running.stopper());
        self.stop_when_asked(id, &mut running);
        let (session, msg_id, id) = (Arc::clone(&self.session), self.msg_id.clone(), id.to_owned());
        let said = Said { success: true, metadata: Some(json!({ "id": number })), ..Said::failed(number.to_string()) };
        self.told(said);
        let message = match running.wait(None, &mut |_, _| {}) {
            Ok(outcome) => {
                let _ = session.desk.ran(&id, end_of(&outcome));
                let said = finish(&outcome).fit();
                let from = said.output.ceil_char_boundary(said.output.len().saturating_sub(SPAWN_TAIL));
                let tail = said.output.get(from..).unwrap_or_default();
                format!("{number} ended with exit code {}\n{tail}", outcome.exit_code())
            }
            Err(error) => format!("how {number} ended is not known: {error}"),
        };
        session.spawned.lock().remove(&number);
        session.out.send(&Event::Info { msg_id, message });
    }

    /// Hears from the gate when a person wants it ended; the thread ends when nothing runs under the approval.
    fn stop_when_asked(&self, id: &str, running: &mut Running) {
        let (session, id, stopper) = (Arc::clone(&self.session), id.to_owned(), running.stopper());
        let listen = move || loop {
            match session.desk.stop_asked(&id) {
                Ok(Some(_)) => return stopper.stop(),
                Ok(None) => {}
                Err(error) if error.may_pass() => thread::sleep(LISTEN_AFTER),
                Err(_) => return,
            }
        };
        running.if_it_lasts(LISTEN_AFTER, || drop(thread::spawn(listen)));
    }

    fn report(&self, id: &str, outcome: &Outcome) {
        if let Err(error) = self.session.desk.ran(id, end_of(outcome)) {
            let message = format!("how `{}` ended is not on the record: {error}", self.call_id);
            self.session.out.send(&Event::Info { msg_id: self.msg_id.clone(), message });
        }
    }
}
