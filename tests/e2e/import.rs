//! `import` through the real binary: what another tool allowed is asked over HTTP afterwards.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::support::{BINARY, Gate};

struct Cast {
    gate: Gate,
    agent: String,
    folder: tempfile::TempDir,
}

fn cast() -> Cast {
    let gate = Gate::start();
    let agent = gate.key("agent", "bot");
    Cast { gate, agent, folder: tempfile::tempdir().unwrap() }
}

impl Cast {
    fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    fn import(&self, document: &Value, flags: &[&str]) -> Output {
        let file = self.file("source.json", document.to_string());
        let mut args = vec!["import", file.to_str().unwrap()];
        args.extend(flags);
        self.gate.command(&args).env("HOME", "/home/ann").output().unwrap()
    }

    /// The report of an import that works.
    #[track_caller]
    fn report(&self, document: &Value, flags: &[&str]) -> Value {
        let done = self.import(document, &[flags, &["--json"]].concat());
        assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
        serde_json::from_slice(&done.stdout).unwrap()
    }

    fn ask(&self, body: &Value) -> String {
        let answer = self.gate.post(&self.agent, "/v1/approvals", body).expect(200);
        answer["status"].as_str().unwrap().to_owned()
    }

    #[track_caller]
    fn ruled(&self, cases: &[(&str, &str)]) {
        for (command, status) in cases {
            assert_eq!(self.ask(&json!({"session_id": "s", "command": command})), *status, "{command}");
        }
    }

    fn policy(&self) -> Value {
        self.gate.get(&self.gate.admin, "/v1/policy/default").expect(200)
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// How many lines ended how: taken, narrowed, refused, unchanged.
fn counts(report: &Value) -> [usize; 4] {
    ["taken", "narrowed", "refused", "unchanged"].map(|fate| report[fate].as_array().unwrap().len())
}

#[test]
fn a_gateways_file() {
    let cast = cast();
    let document = json!({"version": 1, "socket": {"path": "/s", "token": "hunter2hunter2"},
        "defaults": {"security": "allowlist", "ask": "on-miss", "askFallback": "full"},
        "agents": {
            "*": {"allowlist": [{"pattern": "npm"}, {"pattern": "**/make"}, {"pattern": "/usr/bin/cargo"},
                {"pattern": "pnpm", "argPattern": "^run build$"}, {"pattern": "/bin/bash"}]},
            "intern": {"security": "deny", "allowlist": [{"pattern": "yarn"}]}}});
    let report = cast.report(&document, &[]);
    assert_eq!(report["format"], "gateway");
    assert_eq!(counts(&report), [3, 2, 4, 2], "{report:#}");
    assert!(!report.to_string().contains("hunter2"), "{report}");
    cast.ruled(&[
        ("npm ci", "approved"),
        ("make all && npm test", "approved"),
        ("pnpm run build", "approved"),
        ("pnpm run deploy", "pending"),
        ("bash x.sh", "pending"),
        ("yarn add x", "pending"),
        // Which file `cargo` is, is not known over HTTP.
        ("cargo build", "pending"),
    ]);
    let intern = json!({"session_id": "s", "command": "npm ci", "agent_id": "intern"});
    assert_eq!(cast.ask(&intern), "denied");
    assert_eq!(cast.policy()["policy"]["askFallback"], "deny");

    let report = cast.report(&document, &["--agent", "intern", "--profile", "interns"]);
    assert_eq!(report["taken"][0], json!({"from": "agents.intern.security: deny", "to": ["security: deny"]}));
    assert_eq!(cast.gate.get(&cast.gate.admin, "/v1/policy/interns").expect(200)["policy"]["security"], "deny");
}

#[test]
fn a_hubs_profile() {
    let cast = cast();
    let document = json!({"model": "x", "execApproval": {"security": "allowlist", "ask": "off", "timeoutMs": 60000,
        "allowlist": [{"pattern": "git **"}, {"pattern": "pnpm run *"}, {"pattern": "python3 **"}]}});
    let report = cast.report(&document, &["--format", "hub"]);
    assert_eq!(counts(&report), [3, 1, 1, 1], "{report:#}");
    cast.ruled(&[
        ("git commit -m x", "approved"),
        ("pnpm run build", "approved"),
        // `ask: off` of the source is stricter than what held, and was taken.
        ("pnpm run build --prod", "denied"),
        ("python3 x.py", "denied"),
        ("git commit -m x > /etc/passwd", "denied"),
    ]);
}

#[test]
fn a_terminals_file() {
    let cast = cast();
    let document = json!({"commandBlacklist": ["rm -rf /", "git push"], "commandWhitelist": ["npm test", "rm -rf ./build"],
        "requireCommandConfirmation": false, "commandTimeoutSeconds": 600});
    let report = cast.report(&document, &[]);
    assert_eq!(counts(&report), [2, 2, 2, 0], "{report:#}");
    cast.ruled(&[
        ("npm test", "approved"),
        ("npm test --watch", "pending"),
        ("npm testing", "pending"),
        ("npm ci", "pending"),
        ("rm -rf ./build", "approved"),
        ("rm -rf ./build/../..", "pending"),
        ("rm -rf /etc", "denied"),
        ("sudo rm -rf / --no-preserve-root", "denied"),
        ("git push --force", "denied"),
        ("npm test && git push", "denied"),
    ]);
}

#[test]
fn claude_codes_settings() {
    let cast = cast();
    let document = json!({"model": "x", "permissions": {
        "allow": ["Bash(npm run test:*)", "Bash(cargo build *)", "Bash(npm run build)", "Bash(git *)", "Bash(python:*)", "WebSearch",
            "Read", "WebFetch(domain:x.example)", "mcp__files__write"],
        "deny": ["Bash(curl:*)", "Read(./.env)", "NotebookEdit"],
        "ask": ["Bash(git push *)", "mcp__files__write"],
        "defaultMode": "bypassPermissions", "additionalDirectories": ["../x"]}});
    let report = cast.report(&document, &[]);
    assert_eq!(counts(&report), [7, 1, 8, 0], "{report:#}");
    cast.ruled(&[
        ("npm run test", "approved"),
        ("npm run test --watch", "approved"),
        ("npm run tests", "pending"),
        ("npm run build", "approved"),
        ("npm run build --x", "pending"),
        ("cargo build --release", "approved"),
        ("git commit -m x", "pending"),
        ("git push origin main", "pending"),
        ("python x.py", "pending"),
        ("curl https://x.example", "denied"),
        ("npm run test && curl x", "denied"),
    ]);
    let tool = |name: &str| cast.ask(&json!({"session_id": "s", "tool": name}));
    for (name, status) in [
        ("WebSearch", "approved"),
        ("NotebookEdit", "denied"),
        ("Read", "pending"),
        ("WebFetch", "pending"),
        ("mcp__files__write", "pending"),
    ] {
        assert_eq!(tool(name), status, "{name}");
    }
    assert_eq!(cast.policy()["policy"]["security"], "allowlist");
    let report = cast.report(&json!({"permissions": {"defaultMode": "bypassPermissions"}}), &["--allow-full"]);
    assert_eq!(counts(&report), [1, 0, 0, 0]);
    cast.ruled(&[("git push origin main", "approved"), ("curl x", "denied")]);
}

#[test]
fn a_dry_run_changes_nothing_and_a_second_import_neither() {
    let cast = cast();
    let document = json!({"permissions": {"allow": ["Bash(npm *)", "Bash(bash *)"]}});
    let before = cast.policy();
    let done = cast.import(&document, &["--dry-run"]);
    assert_eq!(done.status.code(), Some(0));
    let (table, notes) = (text(&done.stdout), text(&done.stderr));
    assert!(table.contains("allowlist: npm **") && table.contains("any script"), "{table}");
    assert!(notes.contains("format claude-code, by its content: 1 taken, 0 narrowed, 1 refused"), "{notes}");
    assert!(notes.contains("dry run"), "{notes}");
    assert_eq!(cast.policy(), before);
    let done = cast.import(&document, &[]);
    let stored = cast.policy();
    assert!(text(&done.stderr).contains(stored["hash"].as_str().unwrap()));
    assert_eq!(stored["policy"]["allowlist"], json!([{"pattern": "npm **", "source": "import:claude-code"}]));
    let again = cast.import(&document, &[]);
    assert!(text(&again.stdout).contains("unchanged") && text(&again.stderr).contains("nothing changes"));
    assert_eq!(cast.policy(), stored);
}

#[test]
fn an_import_leaves_the_rest_of_a_policy_as_it_is() {
    let cast = cast();
    let policy = json!({"version": 1, "ask": "always", "allowSafe": false, "allowlist": [{"id": "a", "pattern": "npm **"}],
        "approvers": ["ann"], "flood": {"maxPending": 3}, "agents": {"x": {"security": "deny"}}});
    cast.gate.put_policy("default", &policy);
    let report = cast.report(
        &json!({"execApproval": {"ask": "on-miss", "allowlist": [{"pattern": "npm **"}, {"pattern": "go build **"}]}}),
        &[],
    );
    assert_eq!(counts(&report), [1, 0, 1, 1], "{report:#}");
    let after = cast.policy()["policy"].clone();
    for field in ["ask", "allowSafe", "approvers", "flood", "agents"] {
        assert_eq!(after[field], policy[field], "{field}");
    }
    assert_eq!((&after["allowlist"][0], after["allowlist"].as_array().unwrap().len()), (&policy["allowlist"][0], 2));
}

#[test]
fn only_an_admin_imports() {
    let cast = cast();
    let file = cast.file("source.json", json!({"permissions": {"allow": ["Bash(npm *)"]}}).to_string());
    let before = cast.policy();
    for role in ["agent", "approver"] {
        let key = cast.gate.key(role, &format!("{role}-2"));
        let done = cast.gate.command(&["import", file.to_str().unwrap()]).env("COUNTERSIGN_KEY", key).output().unwrap();
        assert_eq!(done.status.code(), Some(1), "{role}: {}", text(&done.stderr));
    }
    assert_eq!(cast.policy(), before);
}

#[test]
fn without_a_gate_the_store_is_imported_into() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("terminal.json");
    std::fs::write(&file, r#"{"commandWhitelist":["npm test"]}"#).unwrap();
    let run = |args: &[&str]| {
        let mut command = Command::new(BINARY);
        command.args(args).env("COUNTERSIGN_DATA", folder.path().join("data")).env_remove("COUNTERSIGN_KEY");
        command.output().unwrap()
    };
    let dry = run(&["import", file.to_str().unwrap(), "--dry-run"]);
    assert_eq!(dry.status.code(), Some(0), "{}", text(&dry.stderr));
    assert!(text(&dry.stderr).contains("the defaults") && text(&dry.stdout).contains("allowlist: npm test"));
    assert!(!folder.path().join("data").exists());
    let done = run(&["import", file.to_str().unwrap()]);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    assert!(text(&run(&["policy", "show"]).stdout).contains("npm test"));
}

#[test]
fn a_bad_file_is_told_plainly_and_changes_nothing() {
    let cast = cast();
    let before = cast.policy();
    for (name, bytes, code, says) in [
        ("not-json", b"{\n  nope".to_vec(), 1, "line 2 column 3"),
        ("empty", Vec::new(), 1, "it is empty"),
        ("binary", b"{\"a\": \"\xff\"}".to_vec(), 1, "not UTF-8"),
        ("large", vec![b' '; 10 * 1024 * 1024], 1, "larger than 1 MiB"),
        ("version", br#"{"version":2,"agents":{}}"#.to_vec(), 1, "`version` is 2"),
        ("types", br#"{"permissions":{"allow":{}}}"#.to_vec(), 1, "`permissions.allow` is an object"),
        ("unknown", b"{}".to_vec(), 64, "--format gateway"),
        ("ambiguous", br#"{"permissions":{},"execApproval":{}}"#.to_vec(), 64, "hub or claude-code"),
        ("tricks", "{\"permissions\":{\"allow\":[\"Bash(\u{1b}[2J\u{202e}x *)\"]}}".as_bytes().to_vec(), 1, "line 1"),
    ] {
        let file = cast.file(name, bytes);
        let done = cast.gate.cli(&["import", file.to_str().unwrap()]);
        let notes = text(&done.stderr);
        assert_eq!(done.status.code(), Some(code), "{name}: {notes}");
        assert!(notes.contains(says) && done.stdout.is_empty(), "{name}: {notes}");
    }
    let missing = cast.folder.path().join("missing");
    for path in [missing.as_path(), cast.folder.path()] {
        let done = cast.gate.cli(&["import", path.to_str().unwrap()]);
        assert_eq!(done.status.code(), Some(1));
        assert!(text(&done.stderr).contains("cannot be read"), "{}", text(&done.stderr));
    }
    let agent = cast.import(&json!({"permissions": {}}), &["--agent", "x"]);
    assert_eq!(agent.status.code(), Some(64));
    // What could trick a terminal is shown, not sent.
    let tricky = cast.import(&json!({"permissions": {"allow": ["Bash(\u{202e}x *)"]}}), &[]);
    assert!(!text(&tricky.stdout).contains('\u{202e}'));
    assert!(text(&tricky.stdout).contains("refused"), "{}", text(&tricky.stdout));
    assert_eq!(cast.policy(), before);
}

/// A gate whose policy somebody else changes between reading and storing.
#[test]
fn a_policy_that_was_changed_meanwhile_is_left_alone() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let stored = json!({"exists": false, "hash": "h", "policy": {"version": 1}});
        let refused =
            json!({"error": {"code": "conflict", "message": "changed", "retryable": false}, "detail": "changed"});
        for (status, body) in [("200 OK", stored), ("409 Conflict", refused)] {
            let (mut stream, _) = listener.accept().unwrap();
            let mut head = Vec::new();
            let mut byte = [0u8];
            while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap() == 1 {
                head.push(byte[0]);
            }
            let body = body.to_string();
            let length = body.len();
            write!(stream, "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}")
                .unwrap();
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("settings.json");
    std::fs::write(&file, r#"{"permissions":{"allow":["Bash(npm *)"]}}"#).unwrap();
    let mut command = Command::new(BINARY);
    let done = command.arg("import").arg(&file).args(["--url", &url]).env("COUNTERSIGN_KEY", "k").output().unwrap();
    server.join().unwrap();
    assert_eq!(done.status.code(), Some(1), "{}", text(&done.stderr));
    assert!(text(&done.stderr).contains("run it again") && done.stdout.is_empty(), "{}", text(&done.stderr));
}
