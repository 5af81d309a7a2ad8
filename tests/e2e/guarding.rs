//! What every request passes first, and what connections must endure: hosts, origins, rates, slow and hostile
//! senders, TLS, the Unix socket.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::time::Duration;

use serde_json::json;

use crate::support::{BINARY, Events, Gate, ask_for, id_of, read_answer};

const EVERY_ROUTE: [&str; 8] =
    ["/healthz", "/readyz", "/metrics", "/openapi.json", "/v1/approvals", "/v1/events", "/v1/grants", "/nowhere"];

#[test]
fn threat_56_a_foreign_host_name_is_refused_on_every_route() {
    let gate = Gate::start();
    for path in EVERY_ROUTE {
        for host in ["evil.com", "evil.com:7391", "127.0.0.1.evil.com", ""] {
            let headers =
                [("Host".to_owned(), host.to_owned()), ("Authorization".to_owned(), format!("Bearer {}", gate.admin))];
            gate.raw("GET", path, &headers, b"").expect_error(403, "host_not_allowed");
        }
    }
    let twice = [("Host".to_owned(), "localhost".to_owned()), ("Host".to_owned(), "evil.com".to_owned())];
    assert_ne!(gate.raw("GET", "/healthz", &twice, b"").status, 200);
    for host in ["localhost", "127.0.0.1:1", "[::1]:9"] {
        assert_eq!(gate.raw("GET", "/healthz", &[("Host".to_owned(), host.to_owned())], b"").status, 200, "{host}");
    }
}

#[test]
fn threat_57_a_page_of_another_origin_is_refused_on_every_route() {
    let gate = Gate::start();
    for path in EVERY_ROUTE {
        for origin in ["http://evil.com", "null", "http://localhost:1"] {
            gate.raw("GET", path, &[("Origin".to_owned(), origin.to_owned())], b"")
                .expect_error(403, "origin_not_allowed");
        }
        let cross = [("Sec-Fetch-Site".to_owned(), "cross-site".to_owned())];
        gate.raw("GET", path, &cross, b"").expect_error(403, "origin_not_allowed");
    }
    let own = [("Origin".to_owned(), format!("http://{}", gate.address))];
    assert_eq!(gate.raw("GET", "/healthz", &own, b"").status, 200);
}

#[test]
fn threat_66_slow_and_oversized_senders_are_cut_off() {
    let gate = Gate::start_with("[limits]\nheader_timeout_ms = 200\nbody_timeout_ms = 200\n");
    let agent = gate.key("agent", "bot");
    // Headers that never end.
    let mut slow = TcpStream::connect(gate.address).unwrap();
    slow.write_all(b"GET /healthz HTTP/1.1\r\nHost: local").unwrap();
    slow.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let mut rest = Vec::new();
    slow.read_to_end(&mut rest).expect("the gate closes a connection whose headers do not come");
    assert!(!String::from_utf8_lossy(&rest).contains("200 OK"));
    // A body that never ends.
    let mut slow = TcpStream::connect(gate.address).unwrap();
    write!(
        slow,
        "POST /v1/approvals HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {agent}\r\nContent-Type: application/json\r\n\
         Connection: close\r\nContent-Length: 100\r\n\r\n{{",
        gate.address
    )
    .unwrap();
    read_answer(&mut slow).expect_error(408, "body_timeout");
    // Headers that are too big, and too many.
    let big = [("X-Big".to_owned(), "x".repeat(100 * 1024))];
    assert_eq!(gate.raw("GET", "/healthz", &big, b"").status, 431);
    let many: Vec<_> = (0..100).map(|n| (format!("X-{n}"), "x".to_owned())).collect();
    assert_eq!(gate.raw("GET", "/healthz", &many, b"").status, 431);
    assert_eq!(gate.get("", "/healthz").status, 200);
}

#[test]
fn threat_66_connections_beyond_the_limit_are_refused_and_places_come_free() {
    let gate = Gate::start_with("[limits]\nmax_connections = 4\n");
    let held: Vec<_> = (0..4)
        .map(|_| {
            let mut stream = TcpStream::connect(gate.address).unwrap();
            write!(stream, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
            let mut first = [0u8; 12];
            stream.read_exact(&mut first).unwrap();
            assert_eq!(&first, b"HTTP/1.1 200");
            stream
        })
        .collect();
    let mut fifth = TcpStream::connect(gate.address).unwrap();
    let _ = write!(fifth, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let mut answer = Vec::new();
    let _ = fifth.read_to_end(&mut answer);
    assert_eq!(answer, b"", "refused without an answer");
    drop(held);
    loop {
        let mut stream = TcpStream::connect(gate.address).unwrap();
        let _ = write!(stream, "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        if answer.starts_with(b"HTTP/1.1 200") {
            break;
        }
    }
}

#[test]
fn threat_66_a_reader_that_does_not_read_misses_nothing() {
    let gate = Gate::start();
    let (agent, ann) = (gate.key("agent", "bot"), gate.key("approver", "ann"));
    let mut events = Events::open(&gate, &ann, Some(0));
    let preview = "x".repeat(16 * 1024);
    let mut made = Vec::new();
    for n in 0..300 {
        let asked = gate.post(&agent, "/v1/approvals", &ask_for("a", &format!("{n}{preview}"))).expect(200);
        made.push(id_of(&asked));
    }
    let mut seen = Vec::new();
    let mut last = 0;
    while seen.len() < made.len() {
        let event = events.next().unwrap();
        assert_eq!(event["seq"].as_u64().unwrap(), last + 1);
        last += 1;
        if event["type"] == "requested" {
            seen.push(event["approval_id"].as_str().unwrap().to_owned());
        }
    }
    assert_eq!(seen, made);
}

#[test]
fn rates_are_limited_per_key_and_per_address() {
    let gate = Gate::start_with("[limits]\nrequests_per_key = 5\n");
    let (one, two) = (gate.key("agent", "one"), gate.key("agent", "two"));
    let limited = (0..20).map(|_| gate.get(&one, "/v1/grants")).find(|answer| answer.status == 429).expect("a limit");
    let wait: u64 = limited.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=2).contains(&wait), "{wait}");
    let body = limited.expect_error(429, "rate_limited");
    assert_eq!(body["error"]["retryable"], true);
    assert_eq!(gate.get(&two, "/v1/grants").status, 200, "another key is not affected");

    let gate = Gate::start_with("[limits]\nrequests_per_address = 20\nmax_pending = 2\n");
    let agent = gate.key("agent", "bot");
    for n in 0..2 {
        gate.post(&agent, "/v1/approvals", &ask_for("a", &n.to_string())).expect(200);
    }
    gate.post(&agent, "/v1/approvals", &ask_for("a", "3")).expect_error(429, "too_many_pending");
    let limited = (0..60).map(|_| gate.get("", "/healthz")).find(|answer| answer.status == 429).expect("a limit");
    limited.expect_error(429, "rate_limited");
}

#[test]
fn it_does_not_listen_beyond_loopback_without_tls_or_a_word() {
    let folder = tempfile::tempdir().unwrap();
    let run = |extra: &[&str]| {
        let data = folder.path().join("data");
        Command::new(BINARY).args(["serve", "--listen", "0.0.0.0:0", "--data"]).arg(&data).args(extra).output().unwrap()
    };
    let refused = run(&[]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains("--tls-cert") && said.contains("--insecure-listen"), "{said}");
    let half = run(&["--tls-cert", "x.pem"]);
    assert!(!half.status.success() && String::from_utf8_lossy(&half.stderr).contains("--tls-key"));
}

#[test]
fn tls_is_built_in() {
    let folder = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let (cert, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    std::fs::write(&cert, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let text = |path: &std::path::Path| path.display().to_string();
    let args = vec!["--tls-cert".to_owned(), text(&cert), "--tls-key".to_owned(), text(&key)];
    let gate = Gate::start_in(&folder.path().join("data"), args);
    let curl = |extra: &[&str]| {
        let url = format!("https://localhost:{}/readyz", gate.address.port());
        Command::new("curl")
            .args(["-sS", "--max-time", "30", "-w", " %{http_code} %{http_version}"])
            .args(extra)
            .arg(url)
            .output()
            .unwrap()
    };
    let trusted = curl(&["--cacert", &text(&cert)]);
    let said = String::from_utf8_lossy(&trusted.stdout).into_owned();
    assert!(said.ends_with("200 2"), "{said} {}", String::from_utf8_lossy(&trusted.stderr));
    assert!(!curl(&[]).status.success(), "an unknown certificate is not trusted");
    let mut plain = TcpStream::connect(gate.address).unwrap();
    let _ = plain.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP"), "no plain HTTP on a TLS port");
}

#[test]
fn threat_48_on_the_socket_a_caller_without_a_key_is_an_agent_and_nothing_more() {
    let gate = Gate::start();
    let socket = gate.data.join("gate.sock");
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&gate.data), mode(&socket), mode(&gate.data.join("admin.key"))), (0o700, 0o600, 0o600));
    assert_eq!(mode(&gate.data.join("countersign.db")), 0o600);
    let curl = |args: &[&str]| {
        let mut command = Command::new("curl");
        command.args(["-sS", "--max-time", "30", "--unix-socket"]).arg(&socket).args(args);
        serde_json::from_slice::<serde_json::Value>(&command.output().unwrap().stdout).unwrap()
    };
    let json_header = "Content-Type: application/json";
    let asked = curl(&["-H", json_header, "-d", r#"{"session_id":"s","command":"make"}"#, "http://x/v1/approvals"]);
    assert_eq!(asked["status"], "pending");
    let decision = format!("http://x/v1/approvals/{}/decision", id_of(&asked));
    let refused = curl(&["-H", json_header, "-d", r#"{"code":"1"}"#, &decision]);
    assert_eq!(refused["error"]["code"], "forbidden");
    assert_eq!(curl(&["http://x/v1/policy/default"])["error"]["code"], "forbidden");
    let admin = format!("Authorization: Bearer {}", gate.admin);
    assert_eq!(curl(&["-H", &admin, "-H", json_header, "-d", r#"{"code":"1"}"#, &decision])["status"], "approved");
}

#[test]
fn another_user_is_refused_on_the_socket() {
    let gate = Gate::start();
    let socket = gate.data.join("gate.sock");
    // Let them reach it, so that only the check of who they are is in the way.
    for path in [gate.data.parent().unwrap(), &gate.data, &socket] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).unwrap();
    }
    let ask = |user: &[&str]| {
        let mut words = user.to_vec();
        words.extend(["curl", "-sS", "--max-time", "30", "--unix-socket"]);
        Command::new(words[0]).args(&words[1..]).arg(&socket).arg("http://x/healthz").output().unwrap()
    };
    assert!(ask(&["env"]).status.success());
    let other = ask(&["setpriv", "--reuid=65534", "--clear-groups"]);
    let said = String::from_utf8_lossy(&other.stdout).into_owned();
    assert!(said.contains("other_user") && !said.contains("\"ok\""), "{other:?}");
}

#[test]
fn one_gate_to_a_folder() {
    let gate = Gate::start();
    let second =
        Command::new(BINARY).args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(&gate.data).output().unwrap();
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(!second.status.success() && said.contains("already running"), "{said}");
}

#[test]
fn figures_count_what_happened() {
    let gate = Gate::start();
    let (agent, ann) = (gate.key("agent", "bot"), gate.key("approver", "ann"));
    let mut events = Events::open(&gate, &ann, None);
    let id = id_of(&gate.post(&agent, "/v1/approvals", &ask_for("a", "b")).expect(200));
    gate.post(&ann, &format!("/v1/approvals/{id}/decision"), &json!({"code": "1"})).expect(200);
    for _ in 0..2 {
        events.next().unwrap();
    }
    let wanted = [
        r#"countersign_requests_total{door="http",ruling="ask"} 1"#,
        r#"countersign_outcomes_total{status="approved",reason="person"} 1"#,
        "countersign_decide_seconds_count 1",
        "countersign_pending 0",
        "countersign_waiters 0",
        "countersign_ledger_batches_total",
    ];
    loop {
        let text = gate.get("", "/metrics").text;
        if wanted.iter().all(|line| text.contains(line)) {
            break;
        }
        // Counted from the feed, a moment after the answer.
        std::thread::yield_now();
    }
    let closed = Gate::start_with("[metrics]\naccess = \"admin\"\n");
    assert_eq!(closed.get("", "/metrics").status, 401);
    assert_eq!(closed.get(&closed.admin, "/metrics").status, 200);
    let off = Gate::start_with("[metrics]\naccess = \"off\"\n");
    assert_eq!(off.get(&off.admin, "/metrics").status, 404);
}
