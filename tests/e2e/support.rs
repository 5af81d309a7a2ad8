//! Drives the real binary: a gate on a free port in a folder of its own, and clients that talk to it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::{Value, json};

pub const BINARY: &str = env!("CARGO_BIN_EXE_countersign");

/// A running `countersign serve`.
pub struct Gate {
    child: Child,
    pub address: SocketAddr,
    pub data: PathBuf,
    pub admin: String,
    args: Vec<String>,
    _folder: Option<tempfile::TempDir>,
}

/// What came back.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub text: String,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    #[track_caller]
    pub fn expect(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text);
        self.json()
    }

    #[track_caller]
    pub fn expect_error(self, status: u16, code: &str) -> Value {
        let body = self.expect(status);
        assert_eq!(body["error"]["code"], code, "{body}");
        assert_eq!(body["error"]["message"], body["detail"], "{body}");
        body
    }
}

impl Gate {
    pub fn start() -> Self {
        Self::start_with("")
    }

    /// With this configuration file.
    pub fn start_with(config: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        let file = folder.path().join("config.toml");
        std::fs::write(&file, config).unwrap();
        let args = vec!["--config".to_owned(), file.display().to_string()];
        let mut gate = Self::start_in(&data, args);
        gate._folder = Some(folder);
        gate
    }

    pub fn start_in(data: &Path, args: Vec<String>) -> Self {
        let (child, url) = spawn(data, &args);
        let address = url.split("//").nth(1).unwrap().parse().unwrap();
        let admin = std::fs::read_to_string(data.join("admin.key")).unwrap().trim().to_owned();
        Self { child, address, data: data.to_owned(), admin, args, _folder: None }
    }

    /// Stops it as the machine losing power would.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// The same folder again, on another port.
    pub fn restart(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let (child, url) = spawn(&self.data, &self.args);
        self.child = child;
        self.address = url.split("//").nth(1).unwrap().parse().unwrap();
    }

    /// Asks it to stop, and waits until it has.
    pub fn terminate(&mut self) -> std::process::ExitStatus {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        self.child.wait().unwrap()
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn key(&self, role: &str, name: &str) -> String {
        self.key_in(role, name, "default")
    }

    pub fn key_in(&self, role: &str, name: &str, profile: &str) -> String {
        let body = json!({"role": role, "name": name, "profile": profile});
        let made = self.post(&self.admin, "/v1/keys", &body).expect(200);
        made["key"].as_str().unwrap().to_owned()
    }

    pub fn put_policy(&self, profile: &str, policy: &Value) -> Value {
        let path = format!("/v1/policy/{profile}");
        let hash = self.get(&self.admin, &path).expect(200)["hash"].clone();
        self.call("PUT", &path, &self.admin, Some(&json!({"base_hash": hash, "policy": policy}))).expect(200)
    }

    pub fn get(&self, key: &str, path: &str) -> Answer {
        self.call("GET", path, key, None)
    }

    pub fn post(&self, key: &str, path: &str, body: &Value) -> Answer {
        self.call("POST", path, key, Some(body))
    }

    /// One request on a connection of its own. An empty key sends none.
    pub fn call(&self, method: &str, path: &str, key: &str, body: Option<&Value>) -> Answer {
        let mut headers = Vec::new();
        if !key.is_empty() {
            headers.push(("Authorization".to_owned(), format!("Bearer {key}")));
        }
        let body = body.map(Value::to_string).unwrap_or_default();
        if !body.is_empty() {
            headers.push(("Content-Type".to_owned(), "application/json".to_owned()));
        }
        self.raw(method, path, &headers, body.as_bytes())
    }

    /// Exactly these headers and bytes. `Host` is the gate's own unless given.
    pub fn raw(&self, method: &str, path: &str, headers: &[(String, String)], body: &[u8]) -> Answer {
        let mut stream = TcpStream::connect(self.address).unwrap();
        let mut head = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            head.push_str(&format!("Host: {}\r\n", self.address));
        }
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        // A server that refuses early may close before all of a large body is sent: its answer still counts.
        let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
        read_answer(&mut stream)
    }

    /// Runs a command of the binary against this gate's folder.
    pub fn cli(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(BINARY);
        command.args(args).env("COUNTERSIGN_DATA", &self.data).env_remove("COUNTERSIGN_KEY").stdin(Stdio::null());
        command
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until it says where it listens; everything it logs after that goes to a file beside the store.
fn spawn(data: &Path, args: &[String]) -> (Child, String) {
    let mut child = Command::new(BINARY)
        .args(["serve", "--listen", "127.0.0.1:0", "--data"])
        .arg(data)
        .args(args)
        .env("COUNTERSIGN_LOG", "debug")
        .stderr(Stdio::piped())
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let stderr = child.stderr.take().unwrap();
    let (found, url) = mpsc::channel();
    let log = data.parent().unwrap().join("serve.log");
    std::thread::spawn(move || {
        let mut log = std::fs::OpenOptions::new().create(true).append(true).open(log).unwrap();
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            let _ = writeln!(log, "{line}");
            if let Some(url) = line.strip_prefix("countersign is listening on ") {
                let _ = found.send(url.to_owned());
            }
        }
    });
    let url = url.recv_timeout(Duration::from_secs(30)).unwrap_or_else(|_| {
        panic!(
            "the gate did not start: {}",
            std::fs::read_to_string(data.parent().unwrap().join("serve.log")).unwrap_or_default()
        )
    });
    (child, url)
}

/// Reads one whole answer; the connection closes after it.
pub fn read_answer(stream: &mut impl Read) -> Answer {
    let mut bytes = Vec::new();
    // A reset after the answer is not the answer's fault.
    let _ = stream.read_to_end(&mut bytes);
    let split = bytes.windows(4).position(|window| window == b"\r\n\r\n").unwrap_or_else(|| {
        panic!("no answer: {:?}", String::from_utf8_lossy(&bytes));
    });
    let head = String::from_utf8(bytes[..split].to_vec()).unwrap();
    let mut lines = head.split("\r\n");
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()))
        .collect();
    let body = &bytes[split + 4..];
    let chunked =
        headers.iter().any(|(name, value)| name.eq_ignore_ascii_case("transfer-encoding") && value == "chunked");
    let body = if chunked { unchunk(body) } else { body.to_vec() };
    Answer { status, headers, text: String::from_utf8(body).unwrap() }
}

fn unchunk(mut bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    while let Some(end) = bytes.windows(2).position(|window| window == b"\r\n") {
        let size = usize::from_str_radix(std::str::from_utf8(&bytes[..end]).unwrap().trim(), 16).unwrap();
        if size == 0 {
            break;
        }
        out.extend_from_slice(&bytes[end + 2..end + 2 + size]);
        bytes = &bytes[end + 2 + size + 2..];
    }
    out
}

/// Server-sent events as a real client reads them.
pub struct Events {
    reader: BufReader<TcpStream>,
}

impl Events {
    pub fn open(gate: &Gate, key: &str, after: Option<u64>) -> Self {
        let mut stream = TcpStream::connect(gate.address).unwrap();
        let query = after.map(|after| format!("?after={after}")).unwrap_or_default();
        write!(
            stream,
            "GET /v1/events{query} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {key}\r\nAccept: text/event-stream\r\n\r\n",
            gate.address
        )
        .unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let mut reader = BufReader::new(stream);
        let mut status = String::new();
        reader.read_line(&mut status).unwrap();
        assert!(status.contains("200"), "{status}");
        Self { reader }
    }

    /// The next event's data, or `None` when the server ended the stream.
    pub fn next(&mut self) -> Option<Value> {
        loop {
            let mut line = String::new();
            // The stream ends with its last chunk, or with the connection.
            if self.reader.read_line(&mut line).expect("an event or an end within 30 s") == 0 || line.trim_end() == "0"
            {
                return None;
            }
            if let Some(data) = line.strip_prefix("data: ") {
                return Some(serde_json::from_str(data.trim()).unwrap());
            }
        }
    }
}

/// The body of seed 002's example, for any action type.
pub fn ask_for(action_type: &str, preview: &str) -> Value {
    json!({"session_id": "sess_123", "action_type": action_type, "title": "A title", "preview": preview})
}

pub fn id_of(answer: &Value) -> String {
    answer["approval_id"].as_str().unwrap().to_owned()
}
