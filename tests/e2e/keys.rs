//! A person's keyboard: what decides at a terminal, and what only looks like it. All through real terminals.

use serde_json::{Value, json};

use crate::running::{Place, Terminal, code, next_request, place, text};
use crate::support::{BINARY, Events};

const DANGER: &str = "touch ran; chmod -R 777 /nonexistent-place";
const MENU: &str = "[a] allow once";

/// Starts `run` in a terminal and answers it with the id of what it asks.
fn asked(place: &Place, words: &str) -> (Terminal, String) {
    let mut events = Events::open(&place.gate, &place.ann, None);
    let terminal = Terminal::start(place, words);
    terminal.shows("(or answer elsewhere)");
    (terminal, next_request(&mut events))
}

fn is_pending(place: &Place, id: &str) -> bool {
    place.record(id)["status"] == "pending"
}

/// Presses a key, again if it came together with another one, until the screen shows this.
fn press_until(terminal: &Terminal, key: &str, wanted: &str) -> String {
    loop {
        terminal.keys(&[key]);
        for _ in 0..20 {
            let screen = terminal.tmux(&["capture-pane", "-p", "-J"]);
            if screen.contains(wanted) {
                return screen;
            }
        }
    }
}

fn number(place: &Place, id: &str) -> String {
    place.record(id)["number"].as_str().unwrap().to_owned()
}

fn another(number: &str) -> String {
    format!("{:03}", (number.parse::<u32>().unwrap() + 1) % 1000)
}

#[test]
fn threat_99_no_key_but_a_plain_one_alone_decides_at_the_prompt() {
    let place = place();
    let (terminal, id) = asked(&place, "-c 'touch ran'");
    for keys in [
        &["C-a"][..],
        &["M-a"],
        &["C-s"],
        &["C-r"],
        &["Escape", "a"],
        &["C-m"],
        &["C-j"],
        &["F1"],
        &["F5"],
        &["C-Up"],
        &["S-F3"],
        &["KP0"],
        &["-l", "a\r"],
        &["-l", "aa"],
        &["-l", "\u{1b}Oa"],
        &["-l", "\u{1b}[97;5u"],
        &["-l", "\u{1b}[27;5;97~"],
        &["-l", "\u{1b}[200~a\u{1b}[201~"],
        &["-l", "\u{1b}[200~s\n\u{1b}[201~"],
    ] {
        terminal.keys(keys);
    }
    terminal.tmux(&["set-buffer", "a\n"]);
    terminal.tmux(&["paste-buffer", "-p"]);
    // Whatever was sent has been read when a later key is.
    press_until(&terminal, "d", "why not");
    assert!(is_pending(&place, &id));
    terminal.keys(&["Enter"]);
    terminal.shows("code 77");
    assert!(!place.path("ran").exists());
    assert_eq!(place.gate.get(&place.ann, "/v1/grants").expect(200)["grants"], json!([]));
}

#[test]
fn threat_99_what_was_typed_before_the_card_was_there_does_not_decide() {
    let place = place();
    let fifo = place.path("go");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let data = place.gate.data.display();
    let terminal = Terminal::line(
        &place,
        &format!(
            "echo waiting; cat {} >/dev/null; COUNTERSIGN_DATA={data} {BINARY} run -c 'touch ran'; echo code $?; sleep 600",
            fifo.display()
        ),
    );
    terminal.shows("waiting");
    terminal.keys(&["a", "Enter", "a", "yes", "Enter", "s"]);
    terminal.shows("ayes");
    std::fs::write(&fifo, "go").unwrap();
    terminal.shows("(or answer elsewhere)");
    press_until(&terminal, "d", "why not");
    terminal.keys(&["Enter"]);
    terminal.shows("code 77");
    assert!(!place.path("ran").exists());
}

#[test]
fn threat_99_the_edit_line_edits_and_a_changed_line_is_meant() {
    let place = place();
    let (terminal, id) = asked(&place, "-c 'touch one'");
    press_until(&terminal, "e", "run this instead: touch one");
    terminal.keys(&["C-u"]);
    terminal.keys(&["-l", "touch 日本x"]);
    terminal.keys(&["BSpace", "Left", "Left", "Left", "BSpace", "Right", "z", "C-e", "C-w", "C-a", "Home", "Delete"]);
    terminal.keys(&["-l", "t"]);
    terminal.shows("run this instead: touc");
    terminal.keys(&["C-k", "C-c"]);
    terminal.shows(MENU);
    assert!(is_pending(&place, &id), "leaving the line decides nothing");
    press_until(&terminal, "e", "run this instead: touch one");
    terminal.keys(&["C-w", "two", "Enter"]);
    let screen = terminal.shows("type yes to run the changed line");
    assert!(screen.contains("- touch one") && screen.contains("+ touch two"), "{screen}");
    assert!(is_pending(&place, &id), "Enter alone does not run it");
    terminal.keys(&["yes", "Enter"]);
    terminal.shows("code 0");
    assert!(place.path("two").exists() && !place.path("one").exists());
}

#[test]
fn threat_99_a_command_with_a_hidden_part_is_not_edited() {
    let place = place();
    for (words, why) in [
        ("-c 'touch one; AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY true'", "it holds a secret"),
        ("-c \"$(printf 'touch one\\ntouch two')\"", "line ends"),
    ] {
        let (terminal, id) = asked(&place, words);
        let screen = press_until(&terminal, "e", "cannot be edited here");
        assert!(screen.contains(why), "{screen}");
        assert!(is_pending(&place, &id));
    }
}

#[test]
fn threat_54_a_dangerous_one_takes_its_number_at_the_prompt() {
    let place = place();
    let (terminal, id) = asked(&place, &format!("-c '{DANGER}'"));
    let number = number(&place, &id);
    terminal.shows(&format!("number: {number}"));
    press_until(&terminal, "a", "type the number on the card");
    terminal.keys(&["a", "Enter"]);
    terminal.shows("with its number");
    assert!(is_pending(&place, &id), "no letter is a digit");
    press_until(&terminal, "a", "type the number on the card");
    terminal.keys(&[&another(&number), "Enter"]);
    terminal.shows("that is not its number");
    assert!(is_pending(&place, &id));
    terminal.keys(&[&number, "Enter"]);
    terminal.shows("code ");
    assert!(place.path("ran").exists());
    drop(terminal);
    std::fs::remove_file(place.path("ran")).unwrap();

    let (terminal, id) = asked(&place, &format!("-c '{DANGER}'"));
    let number = self::number(&place, &id);
    press_until(&terminal, "a", "type the number on the card");
    terminal.keys(&[&another(&number), "Enter"]);
    terminal.shows("that is not its number");
    terminal.keys(&[&another(&number), "Enter"]);
    terminal.shows("two wrong numbers");
    terminal.keys(&["a"]);
    terminal.keys(&[&number, "Enter"]);
    press_until(&terminal, "d", "why not");
    assert!(is_pending(&place, &id), "the right number is too late here");
    assert_eq!(wrong_numbers(&place, &id), [1, 2], "both are on the record");
    terminal.keys(&["Enter"]);
    terminal.shows("code 77");
    assert!(!place.path("ran").exists());
}

#[test]
fn threat_99_ctrl_c_is_one_code_and_cancels() {
    let place = place();
    for before in [None, Some(("d", "why not"))] {
        let (terminal, id) = asked(&place, "-c 'touch ran'");
        if let Some((key, shown)) = before {
            press_until(&terminal, key, shown);
        }
        terminal.keys(&["C-c"]);
        let screen = terminal.shows("code 130");
        assert!(screen.contains(&format!("interrupted: the request {id} is cancelled")), "{screen}");
        assert_eq!(place.record(&id)["status"], "cancelled");
    }
    assert!(!place.path("ran").exists());
    place
        .gate
        .post(&place.gate.key("agent", "bot"), "/v1/approvals", &json!({"session_id": "s", "command": "make"}))
        .expect(200);
    let data = place.gate.data.display();
    let watch = Terminal::line(&place, &format!("COUNTERSIGN_DATA={data} {BINARY} watch; echo code $?; sleep 600"));
    watch.shows("make");
    watch.keys(&["C-c"]);
    watch.shows("code 130");
}

#[test]
fn threat_54_a_dangerous_one_takes_its_number_in_approve_and_watch() {
    let place = place();
    let agent = place.gate.key("agent", "bot");
    let ask = || {
        let body = json!({"session_id": "s", "command": DANGER});
        place.gate.post(&agent, "/v1/approvals", &body).expect(200)["approval_id"].as_str().unwrap().to_owned()
    };
    let id = ask();
    let number = number(&place, &id);
    let approve = |more: &[&str]| place.gate.command(&[&["approve", &id], more].concat()).output().unwrap();
    let shown = place.gate.command(&["show", &id]).output().unwrap();
    assert!(text(&shown.stdout).contains(&format!("number: {number}")), "{}", text(&shown.stdout));
    assert!(text(&shown.stderr).contains(&format!("approve {id} --number NNN")), "{}", text(&shown.stderr));
    for more in [&[][..], &["--note", "n"], &["--type-session"]] {
        let refused = approve(more);
        let told = text(&refused.stderr);
        assert!(code(&refused) == 64 && told.contains("--number NNN") && told.contains("countersign show"), "{told}");
    }
    let wrong = approve(&["--number", &another(&number)]);
    assert!(code(&wrong) == 1 && text(&wrong.stderr).contains("not its number"), "{}", text(&wrong.stderr));
    assert_eq!(wrong_numbers(&place, &id), [1]);
    assert!(is_pending(&place, &id));
    assert_eq!(code(&approve(&["--number", &number])), 0);

    let data = place.gate.data.display();
    let id = ask();
    let number = self::number(&place, &id);
    let line = format!("COUNTERSIGN_DATA={data} {BINARY} approve {id}; echo code $?; sleep 600");
    let terminal = Terminal::line(&place, &line);
    terminal.shows("type the number on the card");
    terminal.keys(&["C-c"]);
    terminal.shows("code 130");
    drop(terminal);
    let terminal = Terminal::line(&place, &line);
    terminal.shows("type the number on the card");
    terminal.keys(&["Enter"]);
    terminal.shows("type the three digits");
    terminal.shows("code 1");
    assert!(is_pending(&place, &id) && wrong_numbers(&place, &id).is_empty());
    drop(terminal);
    let terminal = Terminal::line(&place, &line);
    terminal.shows("type the number on the card");
    terminal.keys(&[&another(&number), "Enter"]);
    terminal.shows("that is not its number");
    terminal.keys(&[&number, "Enter"]);
    terminal.shows("code 0");
    drop(terminal);

    let id = ask();
    let number = self::number(&place, &id);
    let watch = Terminal::line(&place, &format!("COUNTERSIGN_DATA={data} {BINARY} watch; echo code $?; sleep 600"));
    watch.shows(&format!("number: {number}"));
    watch.keys(&["a"]);
    watch.shows("type its number");
    assert!(is_pending(&place, &id), "a alone decides nothing");
    watch.keys(&[&number, "Enter"]);
    watch.shows("nothing waits");
    assert_eq!(place.record(&id)["status"], "approved");
}

/// What the record counts of wrong numbers about this request.
fn wrong_numbers(place: &Place, id: &str) -> Vec<u64> {
    let audit = place.gate.command(&["audit", "export"]).output().unwrap();
    let events = text(&audit.stdout);
    let events = events.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let wrong = events.map(|line| line["event"].clone()).filter(|event| event["type"] == "wrong_number");
    wrong.filter(|event| event["approval_id"] == id).map(|event| event["count"].as_u64().unwrap()).collect()
}

#[test]
fn threat_54_wrong_numbers_are_counted_by_the_gate_whatever_they_come_by() {
    let mut place = place();
    let agent = place.gate.key("agent", "bot");
    let body = json!({"session_id": "s", "command": DANGER});
    let asked = place.gate.post(&agent, "/v1/approvals", &body).expect(200);
    let id = asked["approval_id"].as_str().unwrap();
    let number = number(&place, id);
    let decide =
        |place: &Place, key: &str, body: Value| place.gate.post(key, &format!("/v1/approvals/{id}/decision"), &body);
    let (ann, bob) = (place.ann.clone(), place.gate.key("approver", "bob"));
    let guess = json!({"decision": "allow-once", "number": another(&number)});
    decide(&place, &ann, guess.clone()).expect_error(422, "wrong_number");
    // Neither another process nor a gate that was started anew begins to count again.
    place.gate.restart();
    let other = json!({"code": "2", "number": ""});
    decide(&place, &ann, other).expect_error(403, "number_locked");
    for body in [
        json!({"decision": "allow-once", "number": number}),
        json!({"decision": "allow-once"}),
        json!({"decision": "allow-once", "override": "rm -rf /nonexistent-place", "number": number}),
        json!({"code": "6", "number": number}),
    ] {
        decide(&place, &ann, body).expect_error(403, "number_locked");
    }
    let cli = place.gate.command(&["approve", id, "--number", &number]).env("COUNTERSIGN_KEY", &ann).output().unwrap();
    assert!(code(&cli) == 1 && text(&cli.stderr).contains("two wrong numbers"), "{}", text(&cli.stderr));
    assert_eq!(wrong_numbers(&place, id), [1, 2]);
    decide(&place, &bob, guess).expect_error(422, "wrong_number");
    decide(&place, &bob, json!({"decision": "allow-once", "number": number})).expect(200);
    let verified = place.gate.command(&["audit", "verify"]).output().unwrap();
    assert!(verified.status.success(), "{}", text(&verified.stderr));
    // Who may not allow it may still deny it.
    let asked = place.gate.post(&agent, "/v1/approvals", &body).expect(200);
    let id = asked["approval_id"].as_str().unwrap();
    for _ in 0..2 {
        let body = json!({"decision": "allow-once", "number": "x"});
        place.gate.post(&ann, &format!("/v1/approvals/{id}/decision"), &body);
    }
    place.decide(id, &json!({"decision": "deny"})).expect(200);
}

#[test]
fn what_is_wide_is_said_in_words_and_meant() {
    let place = place();
    let (terminal, id) = asked(&place, "-c 'touch ran'");
    let record = place.record(&id);
    let words: Vec<&str> =
        record["answers"].as_array().unwrap().iter().map(|one| one["words"].as_str().unwrap()).collect();
    assert!(words[1].contains("just `touch ran`") && words[3].contains("every command of"), "{words:?}");
    let shown = place.gate.command(&["show", &id]).output().unwrap();
    assert!(text(&shown.stderr).contains("--type-session: for the rest of this session"), "{}", text(&shown.stderr));
    let screen = press_until(&terminal, "w", "type one of these");
    assert!(screen.find("just `touch ran`").unwrap() < screen.find("every command of").unwrap(), "{screen}");
    terminal.keys(&["2", "Enter"]);
    terminal.shows("type yes to allow all of that");
    assert!(is_pending(&place, &id));
    terminal.keys(&["yes", "Enter"]);
    terminal.shows("code 0");
    let grants = place.gate.get(&place.ann, "/v1/grants").expect(200);
    let grant = &grants["grants"][0];
    let lasts = grant["expires_at"].as_i64().unwrap() - grant["created_at"].as_i64().unwrap();
    assert!((86_399..=86_401).contains(&lasts), "{grant}");
    let help = place.gate.command(&["approve", "--help"]).output().unwrap();
    let help: String = text(&help.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(help.find("--session Allow just this").unwrap() < help.find("--type-session Allow every action").unwrap());
    assert!(help.contains("every command of this client that is not dangerous"), "{help}");
}

#[test]
fn threat_99_a_session_is_a_terminals_own_and_ends_with_it() {
    let place = place();
    let (data, state) = (place.gate.data.display().to_string(), place.path("state"));
    let run = format!("env -u XDG_RUNTIME_DIR XDG_STATE_HOME={} COUNTERSIGN_DATA={data} {BINARY}", state.display());
    let session = |id: &str| place.record(id)["session_id"].as_str().unwrap().to_owned();
    let mut seen: Vec<String> = Vec::new();
    for _ in 0..2 {
        let mut events = Events::open(&place.gate, &place.ann, None);
        let terminal = Terminal::line(&place, &format!("{run} run -c 'touch a'; {run} run -c 'touch b'; sleep 600"));
        terminal.shows("(or answer elsewhere)");
        let first = session(&next_request(&mut events));
        terminal.keys(&["s"]);
        let second = session(&next_request(&mut events));
        assert_eq!(first, second, "two in one terminal are one session");
        assert!(first.len() >= 32 && !seen.contains(&first), "another terminal never has it: {first}");
        seen.push(first);
    }
    let alone = |more: &[&str]| {
        let (mut child, id) = place.asking(&[more, &["-c", "touch a"]].concat());
        child.kill().unwrap();
        child.wait().unwrap();
        session(&id)
    };
    let (first, second) = (alone(&[]), alone(&[]));
    assert!(first != second && !seen.contains(&first), "without a terminal each call is its own");
    assert_eq!(alone(&["--session", "mine"]), "mine");
    let kept: Vec<Value> = std::fs::read_dir(state.join("countersign/sessions"))
        .unwrap()
        .map(|file| {
            json!(std::os::unix::fs::PermissionsExt::mode(&file.unwrap().metadata().unwrap().permissions()) & 0o777)
        })
        .collect();
    assert!(kept.iter().all(|mode| *mode == 0o600), "{kept:?}");
}

#[test]
fn threat_99_what_was_allowed_for_a_session_ends_with_its_terminal() {
    let place = place();
    let (data, state) = (place.gate.data.display().to_string(), place.path("state"));
    let run = format!("env -u XDG_RUNTIME_DIR XDG_STATE_HOME={} COUNTERSIGN_DATA={data} {BINARY}", state.display());
    let grants = || place.gate.get(&place.ann, "/v1/grants").expect(200)["grants"].as_array().unwrap().len();
    let allow_for_session = |line: &str| {
        let terminal = Terminal::line(&place, line);
        terminal.shows("(or answer elsewhere)");
        terminal.keys(&["s"]);
        terminal.shows("code 0");
        assert_eq!(grants(), 1);
        terminal
    };
    // A command that the terminal takes down with it tells the gate.
    let asks = format!("{run} run -c 'touch a'; echo code $?; {run} run -c 'touch other'; sleep 600");
    let terminal = allow_for_session(&asks);
    terminal.shows("touch other");
    terminal.shows("just this, for this session");
    drop(terminal);
    while grants() > 0 {}
    // One that is killed, with all in it, tells nobody: the next command does, and never has what it had.
    let terminal = allow_for_session(&format!("echo leader $$; {run} run -c 'touch a'; echo code $?; sleep 600"));
    let screen = terminal.shows("leader ");
    let leader = screen.lines().find_map(|line| line.strip_prefix("leader ")).unwrap().trim().parse().unwrap();
    let leader = rustix::process::Pid::from_raw(leader).unwrap();
    rustix::process::kill_process(leader, rustix::process::Signal::KILL).unwrap();
    while std::path::Path::new(&format!("/proc/{}", leader.as_raw_pid())).exists() {}
    assert_eq!(grants(), 1, "nobody has heard");
    let terminal = Terminal::line(&place, &format!("{run} run -c 'touch a'; echo code $?; sleep 600"));
    terminal.shows("(or answer elsewhere)");
    assert_eq!(grants(), 0);
    let audit = place.gate.command(&["audit", "export"]).output().unwrap();
    let ended = text(&audit.stdout).lines().filter(|line| line.contains(r#""by":"session:"#)).count();
    assert_eq!(ended, 2, "{}", text(&audit.stdout));
    drop(terminal);
    // So does a look at what is in force.
    let terminal = allow_for_session(&format!("{run} run -c 'touch b'; echo code $?; sleep 600"));
    drop(terminal);
    let listed = || {
        let mut list = place.gate.command(&["grants", "list", "--json"]);
        text(&list.env_remove("XDG_RUNTIME_DIR").env("XDG_STATE_HOME", &state).output().unwrap().stdout)
    };
    while listed().contains("grant_id") {}
}
