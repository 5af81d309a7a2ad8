//! A host on the pipes of `countersign engine` or `countersign relay`.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{BINARY, Gate};

/// Longer than anything here takes; what comes later does not come.
const PATIENCE: Duration = Duration::from_secs(20);

pub struct Host {
    pub child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Vec<u8>>,
    pub ready: Value,
    pub workspace: PathBuf,
    pub data: PathBuf,
    _folder: Option<tempfile::TempDir>,
}

impl Host {
    /// `countersign engine` on a store and in a workspace of its own.
    pub fn engine(args: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (workspace, data) = (folder.path().join("work"), folder.path().join("data"));
        std::fs::create_dir(&workspace).unwrap();
        let mut host = Self::engine_in(&workspace, &data, args);
        host._folder = Some(folder);
        host
    }

    pub fn engine_in(workspace: &Path, data: &Path, args: &[&str]) -> Self {
        let mut command = Command::new(BINARY);
        command.args(["engine", "--workspace"]).arg(workspace).arg("--data").arg(data).args(args);
        command.env_remove("COUNTERSIGN_URL").env_remove("COUNTERSIGN_KEY");
        Self::start(command, workspace, data)
    }

    /// `countersign engine` at a gate, with this key.
    pub fn engine_at(gate: &Gate, key: &str, workspace: &Path, args: &[&str]) -> Self {
        Self::start(
            at(gate, key, "engine", &[&["--workspace", workspace.to_str().unwrap()], args].concat()),
            workspace,
            &gate.data,
        )
    }

    /// `countersign relay` at a gate, before this engine.
    pub fn relay_at(gate: &Gate, key: &str, args: &[&str], engine: &[&str]) -> Self {
        let mut command = at(gate, key, "relay", args);
        command.arg("--").args(engine);
        Self::start(command, &gate.data, &gate.data)
    }

    pub fn relay_on(data: &Path, args: &[&str], engine: &[&str]) -> Self {
        let mut command = Command::new(BINARY);
        command.args(["relay", "--data"]).arg(data).args(args).arg("--").args(engine);
        command.env_remove("COUNTERSIGN_URL").env_remove("COUNTERSIGN_KEY");
        Self::start(command, data, data)
    }

    fn start(mut command: Command, workspace: &Path, data: &Path) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        // A host that is slow to read must still hold the engine up.
        let (sender, lines) = mpsc::sync_channel(64);
        std::thread::spawn(move || {
            loop {
                let mut line = Vec::new();
                if stdout.read_until(b'\n', &mut line).unwrap_or(0) == 0 || sender.send(line).is_err() {
                    return;
                }
            }
        });
        let stdin = child.stdin.take();
        let (workspace, data) = (workspace.to_owned(), data.to_owned());
        let mut host = Self { child, stdin, lines, ready: Value::Null, workspace, data, _folder: None };
        host.ready = host.next();
        host
    }

    pub fn send(&mut self, frame: &Value) {
        self.send_raw(format!("{frame}\n").as_bytes());
    }

    pub fn send_raw(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(bytes).unwrap();
        stdin.flush().unwrap();
    }

    pub fn take_stdin(&mut self) -> ChildStdin {
        self.stdin.take().unwrap()
    }

    pub fn call(&mut self, call_id: &str, name: &str, args: Value) {
        self.send(
            &json!({"type": "tool_call", "msg_id": "m1", "call_id": call_id, "tool": {"name": name, "args": args}}),
        );
    }

    pub fn bash(&mut self, call_id: &str, command: &str) {
        self.call(call_id, "Bash", json!({"command": command}));
    }

    pub fn approve(&mut self, call_id: &str, scope: Value) {
        self.send(&json!({"type": "tool_approve", "call_id": call_id, "scope": scope}));
    }

    pub fn close(&mut self) {
        drop(self.stdin.take());
    }

    pub fn next_line(&mut self) -> Option<Vec<u8>> {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("nothing came within {PATIENCE:?}"),
        }
    }

    #[track_caller]
    pub fn next(&mut self) -> Value {
        let line = self.next_line().expect("the engine ended");
        serde_json::from_slice(&line).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&line)))
    }

    /// The next event, which must be of this type.
    #[track_caller]
    pub fn expect(&mut self, kind: &str) -> Value {
        let event = self.next();
        assert_eq!(event["type"], kind, "{event}");
        event
    }

    #[track_caller]
    pub fn expect_error(&mut self, code: &str) -> Value {
        let event = self.expect("error");
        assert_eq!(event["error"]["code"], code, "{event}");
        event
    }

    /// The next event of this type, whatever comes before it.
    pub fn until(&mut self, kind: &str) -> Value {
        loop {
            let event = self.next();
            if event["type"] == kind {
                return event;
            }
        }
    }

    /// Everything up to the end.
    pub fn rest(&mut self) -> Vec<Value> {
        std::iter::from_fn(|| self.next_line()).map(|line| serde_json::from_slice(&line).unwrap()).collect()
    }

    /// Whether a command asks, without letting it run.
    #[track_caller]
    pub fn asks(&mut self, call_id: &str, command: &str) -> bool {
        self.bash(call_id, command);
        let event = self.next();
        match event["type"].as_str().unwrap() {
            "tool_request" => {
                self.send(&json!({"type": "tool_deny", "call_id": call_id}));
                self.expect("tool_cancelled");
                true
            }
            "call_announced" => {
                self.until("tool_result");
                false
            }
            other => panic!("{command}: {other}"),
        }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.close();
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn at(gate: &Gate, key: &str, verb: &str, args: &[&str]) -> Command {
    let mut command = Command::new(BINARY);
    command.arg(verb).arg("--gate").arg(format!("http://{}", gate.address)).args(args);
    command.env("COUNTERSIGN_KEY", key).env_remove("COUNTERSIGN_DATA").env_remove("COUNTERSIGN_URL");
    command
}
