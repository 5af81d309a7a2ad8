//! `countersign run`: what is approved runs, exactly; everything else does not.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::support::{Events, Gate};

const NOT_APPROVED: &str = "Error: Command was not approved (rejected or timed out).";

const SHELL: &str = "/bin/sh";

pub struct Place {
    pub gate: Gate,
    pub ann: String,
    pub folder: tempfile::TempDir,
}

pub fn place() -> Place {
    let gate = Gate::start();
    let ann = gate.key("approver", "ann");
    Place { gate, ann, folder: tempfile::tempdir().unwrap() }
}

impl Place {
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = self.gate.command(&[&["run"], words].concat());
        // A terminal sets this one for what it runs; where whoever runs the tests has none, a lasting yes that was given
        // in a terminal rightly does not hold outside of it.
        command.env("SHELL", SHELL);
        command.current_dir(self.folder.path()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub fn run(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    /// Starts it and answers the id of what it asks.
    pub fn asking(&self, words: &[&str]) -> (Child, String) {
        let mut events = Events::open(&self.gate, &self.ann, None);
        let child = self.command(words).spawn().unwrap();
        (child, next_request(&mut events))
    }

    pub fn decide(&self, id: &str, body: &Value) -> crate::support::Answer {
        self.gate.post(&self.ann, &format!("/v1/approvals/{id}/decision"), body)
    }

    fn terminal_file(&self, text: &str) {
        std::fs::create_dir_all(self.path(".agents")).unwrap();
        std::fs::write(self.path(".agents/terminal.json"), text).unwrap();
    }

    fn trust(&self) -> Output {
        self.gate.command(&["trust", self.folder.path().to_str().unwrap()]).output().unwrap()
    }

    pub fn record(&self, id: &str) -> Value {
        self.gate.get(&self.ann, &format!("/v1/approvals/{id}")).expect(200)
    }
}

/// The id of what is asked next.
pub fn next_request(events: &mut Events) -> String {
    let asked = std::iter::from_fn(|| events.next()).find(|event| event["type"] == "requested").unwrap();
    asked["approval_id"].as_str().unwrap().to_owned()
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn last_line(output: &Output) -> Value {
    serde_json::from_str(text(&output.stdout).lines().last().unwrap()).unwrap()
}

pub fn code(output: &Output) -> i32 {
    output.status.code().unwrap_or_else(|| panic!("no code: {}", told(output)))
}

fn told(output: &Output) -> String {
    format!("{}\nstdout: {}\nstderr: {}", output.status, text(&output.stdout), text(&output.stderr))
}

/// The code, or what was printed instead.
#[track_caller]
fn ends(output: &Output, expected: i32, why: &str) {
    assert_eq!(output.status.code(), Some(expected), "{why}: {}", told(output));
}

#[test]
fn what_policy_allows_runs_with_its_own_streams_and_code() {
    let place = place();
    let mut child = place.command(&["-c", "cat; ls nothing-here"]).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"a\x00\xffb").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((code(&output), output.stdout.as_slice()), (2, &b"a\x00\xffb"[..]), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("nothing-here"));
}

#[test]
fn a_yes_runs_it_once_and_its_end_is_on_the_record() {
    let place = place();
    let (child, id) = place.asking(&["--json", "--", "sh", "-c", "echo out; echo err >&2; exit 7"]);
    place.decide(&id, &json!({"decision": "allow-once"})).expect(200);
    let output = child.wait_with_output().unwrap();
    let told = last_line(&output);
    assert_eq!(
        (
            &told["exitCode"],
            &told["stdout"],
            &told["stderr"],
            &told["timedOut"],
            &told["truncated"],
            &told["approvalId"]
        ),
        (&json!(7), &json!("out\n"), &json!("err\n"), &json!(false), &json!(false), &json!(id))
    );
    ends(&output, 7, "");
    assert_eq!(place.record(&id)["run"], json!({"exit": 7}));
    let verified = place.gate.command(&["audit", "verify"]).output().unwrap();
    assert!(verified.status.success(), "{}", text(&verified.stderr));
    // The permit is used: the same agent does not get it a second time.
    let socket = place.gate.data.join("gate.sock");
    let consume = format!("http://x/v1/approvals/{id}/consume");
    let again = Command::new("curl").args(["-sS", "-X", "POST", "--unix-socket"]).arg(socket).arg(consume).output();
    let again: Value = serde_json::from_slice(&again.unwrap().stdout).unwrap();
    assert_eq!(again["error"]["code"], "already_consumed");
}

#[test]
fn a_permit_that_somebody_else_took_does_not_run() {
    let place = place();
    let (child, id) = place.asking(&["--json", "-c", "touch ran"]);
    // Whoever has the same agent's rights takes it before the runner can: the runner is stopped meanwhile.
    let runner = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(runner, rustix::process::Signal::STOP).unwrap();
    place.decide(&id, &json!({"decision": "allow-once"})).expect(200);
    let socket = place.gate.data.join("gate.sock");
    let consume = format!("http://x/v1/approvals/{id}/consume");
    let taken = Command::new("curl").args(["-sS", "-X", "POST", "--unix-socket"]).arg(socket).arg(consume).output();
    assert!(text(&taken.unwrap().stdout).contains("consumed_at"));
    rustix::process::kill_process(runner, rustix::process::Signal::CONT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((code(&output), &last_line(&output)["cause"]), (77, &json!("permit_refused")), "{}", told(&output));
    assert!(!place.path("ran").exists());
}

#[test]
fn a_no_and_silence_are_one_error_line_and_nothing_ran() {
    let place = place();
    let (child, id) = place.asking(&["--json", "-c", "touch ran"]);
    place.decide(&id, &json!({"decision": "deny", "note": "not now"})).expect(200);
    let refused = child.wait_with_output().unwrap();
    assert_eq!((code(&refused), &last_line(&refused)["error"]), (77, &json!(NOT_APPROVED)), "{}", told(&refused));
    assert_eq!((&last_line(&refused)["cause"], &last_line(&refused)["exitCode"]), (&json!("rejected"), &json!(null)));
    let silent = place.run(&["--ask-timeout", "1", "-c", "touch ran"]);
    ends(&silent, 75, "");
    assert!(text(&silent.stderr).contains(NOT_APPROVED), "{}", text(&silent.stderr));
    assert!(!place.path("ran").exists());
}

#[test]
fn what_is_no_command_or_in_no_place_is_not_asked() {
    let place = place();
    for (words, expected) in [
        (&["-c", ""][..], 64),
        (&["-c", " \n"], 64),
        (&["--cwd", "/nowhere/at/all", "--", "true"], 64),
        (&["--workspace", ".", "--cwd", "/", "--", "true"], 77),
        (&["--env", "LD_PRELOAD=/tmp/x.so", "--", "true"], 77),
        (&["--env", "BASH_ENV=/tmp/x", "-c", "true"], 77),
        (&["--env", "GIT_SSH_COMMAND=x", "--", "git", "status"], 77),
        (&["--", "no-such-program-here"], 127),
    ] {
        let output = place.run(words);
        assert_eq!(code(&output), expected, "{words:?}: {}", text(&output.stderr));
    }
    let long = "x".repeat(120 * 1024);
    ends(&place.run(&["-c", &long]), 77, "");
    assert_eq!(place.gate.get(&place.ann, "/v1/approvals").expect(200)["approvals"], json!([]));
}

#[test]
fn threat_15_a_script_edited_after_the_yes_does_not_run() {
    let place = place();
    let script = place.path("deploy.sh");
    std::fs::write(&script, "#!/bin/sh\ntouch ran\n").unwrap();
    let run = |change: &dyn Fn()| {
        let (child, id) = place.asking(&["--json", "-c", "sh ./deploy.sh"]);
        change();
        place.decide(&id, &json!({"decision": "allow-once"})).expect(200);
        (child.wait_with_output().unwrap(), id)
    };
    let (output, id) = run(&|| std::fs::write(&script, "#!/bin/sh\ntouch ran; touch more\n").unwrap());
    assert_eq!(
        (code(&output), &last_line(&output)["cause"]),
        (77, &json!("changed_since_approval")),
        "{}",
        told(&output)
    );
    assert!(last_line(&output)["error"].as_str().unwrap().contains("deploy.sh"));
    assert!(place.record(&id)["run"]["changed"][0].as_str().unwrap().contains("deploy.sh"));
    assert!(!place.path("ran").exists() && !place.path("more").exists());
    let (output, _) = run(&|| ());
    ends(&output, 0, "");
    assert!(place.path("ran").exists());
}

#[test]
fn an_override_runs_in_place_of_what_was_asked() {
    let place = place();
    let (child, id) = place.asking(&["-c", "touch asked"]);
    place.decide(&id, &json!({"decision": "allow-once", "override": "touch changed"})).expect(200);
    ends(&child.wait_with_output().unwrap(), 0, "");
    assert!(place.path("changed").exists() && !place.path("asked").exists());
}

#[test]
fn a_workspaces_file_counts_as_far_as_it_is_trusted() {
    let place = place();
    let off = r#"{"requireCommandConfirmation": false, "commandBlacklist": ["touch forbidden"]}"#;
    place.terminal_file(off);
    ends(&place.run(&["--ask-timeout", "1", "-c", "touch a"]), 75, "an untrusted file turns nothing off");
    assert!(place.trust().status.success());
    ends(&place.run(&["-c", "touch a"]), 0, "");
    let black = place.run(&["--json", "-c", "true && touch forbidden"]);
    assert_eq!((code(&black), &last_line(&black)["cause"]), (77, &json!("blacklisted")), "{}", told(&black));
    place.terminal_file(&off.replace("false", "false "));
    ends(&place.run(&["--ask-timeout", "1", "-c", "touch b"]), 75, "other bytes are another file");
    place.terminal_file(r#"{"commandWhitelist": ["touch"]}"#);
    ends(&place.run(&["--ask-timeout", "1", "-c", "touch b"]), 75, "");
    assert!(place.trust().status.success());
    ends(&place.run(&["-c", "touch b"]), 0, "");
    let untrust = place.gate.command(&["untrust", place.folder.path().to_str().unwrap()]).output().unwrap();
    assert!(untrust.status.success(), "{}", text(&untrust.stderr));
    ends(&place.run(&["--ask-timeout", "1", "-c", "touch c"]), 75, "");
    assert!(place.path("a").exists() && place.path("b").exists() && !place.path("c").exists());
}

#[test]
fn a_broken_file_is_told_with_its_line_and_cannot_be_trusted() {
    let place = place();
    place.terminal_file("{\n\"commandTimeoutSeconds\": 1\n}");
    let refused = place.trust();
    assert!(!refused.status.success() && text(&refused.stderr).contains("line 2"), "{}", text(&refused.stderr));
    let output = place.run(&["-c", "ls"]);
    assert!(code(&output) == 0 && text(&output.stderr).contains("line 2"), "{}", text(&output.stderr));
    for broken in ["{\"commandWhitelist\":[\"touch\"],", "\u{0}", ""] {
        place.terminal_file(broken);
        assert!(!place.trust().status.success(), "{broken:?}");
        ends(&place.run(&["--ask-timeout", "1", "-c", "touch x"]), 75, "");
    }
    place.terminal_file(&format!("{{\"commandWhitelist\":[\"touch\"]}}{}", " ".repeat(10 * 1024 * 1024)));
    assert!(!place.trust().status.success());
    ends(&place.run(&["--ask-timeout", "1", "-c", "touch x"]), 75, "");
    assert!(!place.path("x").exists());
}

#[test]
fn remembering_writes_the_file_and_trusts_it_and_two_at_once_lose_nothing() {
    let place = place();
    place.terminal_file(r#"{"commandBlacklist": ["rm"]}"#);
    let remember = json!({"decision": "allow-once", "remember": true});
    let (child, id) = place.asking(&["--", "touch", "a"]);
    place.decide(&id, &remember).expect_error(422, "grant_refused");
    place.decide(&id, &json!({"decision": "allow-once"})).expect(200);
    ends(&child.wait_with_output().unwrap(), 0, "");
    assert!(place.trust().status.success());
    let (first, first_id) = place.asking(&["--", "touch", "b"]);
    let (second, second_id) = place.asking(&["--", "touch", "c"]);
    for id in [&first_id, &second_id] {
        place.decide(id, &remember).expect(200);
    }
    for child in [first, second] {
        let output = child.wait_with_output().unwrap();
        ends(&output, 0, "");
    }
    let file: Value = serde_json::from_slice(&std::fs::read(place.path(".agents/terminal.json")).unwrap()).unwrap();
    assert_eq!(file, json!({"commandBlacklist": ["rm"], "commandWhitelist": ["touch b", "touch c"]}));
    for word in ["b", "c"] {
        ends(&place.run(&["--", "touch", word]), 0, "remembered, and the file is trusted as it is now");
    }
    ends(&place.run(&["--ask-timeout", "1", "--", "touch", "d"]), 75, "");
    // A link that an agent planted is not written through.
    let victim = place.path("victim");
    std::fs::write(&victim, "mine").unwrap();
    std::fs::remove_file(place.path(".agents/.terminal.lock")).unwrap();
    std::os::unix::fs::symlink(&victim, place.path(".agents/.terminal.lock")).unwrap();
    let (child, id) = place.asking(&["--", "touch", "f"]);
    place.decide(&id, &remember).expect(200);
    let output = child.wait_with_output().unwrap();
    assert!(text(&output.stderr).contains("not remembered in the file"), "{}", text(&output.stderr));
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "mine");
    std::fs::remove_file(place.path(".agents/.terminal.lock")).unwrap();
    // Where the file says so, a plain yes is remembered too.
    place.terminal_file(r#"{"rememberOnAllow": true}"#);
    assert!(place.trust().status.success());
    let (child, id) = place.asking(&["--", "touch", "e"]);
    let decided = place.decide(&id, &json!({"decision": "allow-once"})).expect(200);
    assert_eq!(decided["decision"]["remembered"], json!(["touch e"]));
    ends(&child.wait_with_output().unwrap(), 0, "");
    ends(&place.run(&["--", "touch", "e"]), 0, "");
}

#[test]
fn a_running_command_is_stopped_from_elsewhere_with_all_it_started() {
    let place = place();
    let mut child = {
        let (child, id) = place.asking(&["-c", "trap '' TERM; sleep 600 & echo $!; wait"]);
        let path = format!("/v1/approvals/{id}/stop");
        place.gate.post(&place.ann, &path, &json!({})).expect_error(409, "not_running");
        place.decide(&id, &json!({"decision": "allow-once"})).expect(200);
        (child, id)
    };
    let mut first = String::new();
    let mut stdout = std::io::BufReader::new(child.0.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut stdout, &mut first).unwrap();
    let stop = place.gate.command(&["stop", &child.1]).output().unwrap();
    assert!(stop.status.success(), "{}", text(&stop.stderr));
    let output = child.0.wait_with_output().unwrap();
    ends(&output, 137, "");
    assert!(!Path::new(&format!("/proc/{}", first.trim())).exists(), "what it started is gone too");
    assert_eq!(place.record(&child.1)["run"], json!({"signal": 9, "stopped": true}));
    let verified = place.gate.command(&["audit", "verify"]).output().unwrap();
    assert!(verified.status.success(), "{}", text(&verified.stderr));
}

#[test]
fn what_a_captured_command_prints_is_followed_from_elsewhere_until_its_end() {
    let place = place();
    let fifo = place.path("go");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let (child, id) =
        place.asking(&["--json", "-c", "printf 'one\\n\\033[2J'; read x < go; echo two >&2; touch done; exit 3"]);
    place.gate.command(&["show", "--follow", &id]).output().map(|early| assert!(!early.status.success())).unwrap();
    place.decide(&id, &json!({"decision": "allow-once"})).expect(200);
    // Whoever follows before the end hears all of it, and how it ended.
    while place.record(&id)["consumed_at"].is_null() {}
    let mut follow = place.gate.command(&["show", "--follow", &id]);
    let mut follower = follow.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut heard = std::io::BufReader::new(follower.stdout.take().unwrap());
    let mut first = String::new();
    std::io::BufRead::read_line(&mut heard, &mut first).unwrap();
    assert_eq!(first, "one\n");
    std::fs::write(&fifo, "go\n").unwrap();
    ends(&child.wait_with_output().unwrap(), 3, "");
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut heard, &mut rest).unwrap();
    assert!(rest.contains("\\u{1b}[2J") && rest.ends_with("two\n"), "{rest:?}");
    let output = follower.wait_with_output().unwrap();
    assert!(output.status.success() && text(&output.stderr).contains("exit 3"), "{}", text(&output.stderr));
}

#[test]
fn a_file_of_another_user_says_nothing() {
    let place = place();
    place.terminal_file(r#"{"requireCommandConfirmation": false}"#);
    assert!(place.trust().status.success());
    std::os::unix::fs::chown(place.path(".agents/terminal.json"), Some(65534), None).unwrap();
    ends(&place.run(&["--ask-timeout", "1", "-c", "touch x"]), 75, "");
    assert!(!place.trust().status.success());
}

#[test]
fn a_gate_that_goes_away_means_nothing_ran() {
    let mut place = place();
    let (child, _) = place.asking(&["--ask-timeout", "2", "-c", "touch ran"]);
    place.gate.kill();
    let output = child.wait_with_output().unwrap();
    ends(&output, 69, "");
    assert!(!place.path("ran").exists());
}

#[test]
fn a_gate_that_comes_back_is_asked_on() {
    let mut place = place();
    let (child, id) = place.asking(&["--ask-timeout", "60", "-c", "touch ran"]);
    place.gate.restart();
    place.decide(&id, &json!({"decision": "allow-once"})).expect(200);
    let output = child.wait_with_output().unwrap();
    ends(&output, 0, "");
    assert!(place.path("ran").exists());
}

/// Runs the words in a terminal of its own and answers what types keys there and what is on its screen.
pub struct Terminal {
    socket: String,
}

impl Terminal {
    pub fn start(place: &Place, words: &str) -> Self {
        let data = place.gate.data.display();
        Self::line(
            place,
            &format!("COUNTERSIGN_DATA={data} {} run {words}; echo code $?; sleep 600", crate::support::BINARY),
        )
    }

    pub fn line(place: &Place, line: &str) -> Self {
        // One a terminal: a server that is being killed still answers on its socket for a while.
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = place.folder.path().file_name().unwrap().to_string_lossy();
        let socket = format!("countersign-{}-{number}-{folder}", std::process::id());
        let terminal = Self { socket };
        let folder = place.folder.path().to_str().unwrap();
        terminal.tmux(&["new-session", "-d", "-x", "120", "-y", "40", "-c", folder, line]);
        terminal
    }

    pub fn tmux(&self, words: &[&str]) -> String {
        let mut tmux = Command::new("tmux");
        tmux.env("SHELL", SHELL).args(["-L", &self.socket, "-f", "/dev/null"]).args(words);
        let output = tmux.output().unwrap();
        text(&output.stdout)
    }

    pub fn keys(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat());
    }

    /// Waits until this is on the screen.
    pub fn shows(&self, wanted: &str) -> String {
        loop {
            let screen = self.tmux(&["capture-pane", "-p"]);
            if screen.contains(wanted) {
                return screen;
            }
            std::thread::yield_now();
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

#[test]
fn a_person_at_the_terminal_answers_there() {
    let place = place();
    let terminal = Terminal::start(&place, "-c 'touch allowed'");
    let screen = terminal.shows("[a] allow once");
    assert!(screen.contains("touch allowed"), "{screen}");
    terminal.keys(&["a"]);
    terminal.shows("code 0");
    assert!(place.path("allowed").exists());
    drop(terminal);
    let terminal = Terminal::start(&place, "-c 'touch refused'");
    terminal.shows("[a] allow once");
    terminal.keys(&["d"]);
    terminal.shows("why not");
    terminal.keys(&["not", "Space", "today", "Enter"]);
    let screen = terminal.shows("code 77");
    assert!(screen.contains(NOT_APPROVED), "{screen}");
    let listed = place.gate.get(&place.ann, "/v1/approvals?status=denied").expect(200);
    assert_eq!(listed["approvals"][0]["decision"]["note"], "not today");
}

#[test]
fn always_shows_its_entry_first_and_an_edit_runs_instead() {
    let place = place();
    let terminal = Terminal::start(&place, "-- touch x");
    terminal.shows("[a] allow once");
    terminal.keys(&["A"]);
    terminal.shows("would allow `touch x` from now on");
    terminal.shows("type yes for that");
    terminal.keys(&["yes", "Enter"]);
    terminal.shows("code 0");
    ends(&place.run(&["--", "touch", "x"]), 0, "covered from now on");
    drop(terminal);
    let terminal = Terminal::start(&place, "-c 'touch one'");
    terminal.shows("[a] allow once");
    terminal.keys(&["e"]);
    terminal.shows("run this instead");
    terminal.keys(&["BSpace", "BSpace", "BSpace", "two", "Enter"]);
    let screen = terminal.shows("type yes to run the changed line");
    assert!(screen.contains("- touch one") && screen.contains("+ touch two"), "{screen}");
    terminal.keys(&["yes", "Enter"]);
    terminal.shows("code 0");
    assert!(place.path("two").exists() && !place.path("one").exists());
}

#[test]
fn an_answer_from_elsewhere_takes_the_prompt_away() {
    let place = place();
    let mut events = Events::open(&place.gate, &place.ann, None);
    let terminal = Terminal::start(&place, "-c 'touch elsewhere'");
    terminal.shows("[a] allow once");
    let id = next_request(&mut events);
    place.decide(&id, &json!({"decision": "allow-once"})).expect(200);
    terminal.shows("code 0");
    assert!(Path::new(&place.path("elsewhere")).exists());
}
