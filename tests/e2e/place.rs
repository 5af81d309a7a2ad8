//! A command is judged where it would run: its folder, the files of the project there, the programs on `PATH`, the
//! environment. What outlives an answer holds in that place alone.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::running::{Place, code, place, text};

/// What would be asked is denied at once, so that only what runs unasked runs.
fn unattended() -> Place {
    let place = place();
    place.gate.put_policy("default", &json!({"version": 1, "ask": "off"}));
    place
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn script(path: &Path, text: &str) {
    write(path, text);
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn git(folder: &Path, words: &[&str]) {
    fs::create_dir_all(folder).unwrap();
    let plain = ["-c", "user.name=a", "-c", "user.email=a@b"];
    let done = Command::new("git").args(plain).args(words).current_dir(folder).output().unwrap();
    assert!(done.status.success(), "{words:?}");
}

impl Place {
    /// A repository whose configuration runs a program that leaves a mark.
    fn hostile_repository(&self, name: &str) {
        let folder = self.path(name);
        git(&folder, &["init", "-q", "."]);
        script(&self.path("evil.sh"), &format!("#!/bin/sh\ntouch {}\n", self.path("HIT").display()));
        git(&folder, &["config", "core.fsmonitor", self.path("evil.sh").to_str().unwrap()]);
    }

    fn is_hit(&self) -> bool {
        fs::remove_file(self.path("HIT")).is_ok()
    }

    fn text(&self, line: &str) -> Output {
        self.run(&["-c", line])
    }
}

#[test]
fn threat_84_a_folder_that_is_not_known_is_not_this_one() {
    let place = unattended();
    place.hostile_repository("other");
    git(&place.path("honest"), &["init", "-q", "."]);
    symlink(place.path("other"), place.path("link")).unwrap();
    // The repository does run it, unless somebody is asked first.
    git(&place.path("other"), &["status"]);
    assert!(place.is_hit());
    for line in [
        "(cd other; git status)",
        "cd oth*; git status",
        "cd $PWD/other; git status",
        "cd $PWD/oth* && git status",
        "command cd other; git status",
        "builtin cd other && git status",
        "git -C oth* status",
        "git -C other status || true",
        "for d in */; do git -C $d status; done",
        "for d in honest other; do (cd $d && git status -s); done",
        "pushd other; git status",
        "cd nowhere; cd other; git status",
        "cd honest; cd ../other; git log",
        "cd ~+/other; git status",
        "OLDPWD=other; cd -; git status",
        "cd link && git diff",
        "cd link/../other; git status",
        "eval cd other; git status",
        "bash -c 'cd other; git status'",
        "find other -maxdepth 1 -name .git -execdir git status \\;",
        "ls | while read d; do git -C $d status; done",
        "cd \"$(pwd)/other\"; git status",
        "if true; then cd other; fi; git status",
    ] {
        let output = place.text(line);
        assert!(!place.is_hit(), "{line} ran it: {}", text(&output.stderr));
    }
    for line in ["cd honest && git status", "git -C honest status", "(cd honest; git log --oneline -1 2>&1); true"] {
        assert_eq!(code(&place.text(line)), 0, "{line}: {}", text(&place.text(line).stderr));
    }
}

#[test]
fn threat_84_files_that_programs_obey_are_looked_at() {
    let place = unattended();
    let evil = place.path("bin/evil");
    script(&evil, &format!("#!/bin/sh\ntouch {}\n", place.path("HIT").display()));
    write(&place.path("a/rust-toolchain.toml"), &format!("[toolchain]\npath = \"{}\"\n", place.path("tool").display()));
    for name in ["cargo", "rustc", "rustfmt"] {
        script(&place.path("tool/bin").join(name), &fs::read_to_string(&evil).unwrap());
    }
    write(&place.path("b/Cargo.toml"), "[package]\nname = \"x\"\nversion = \"0.1.0\"\nedition = \"2021\"\n");
    write(&place.path("b/src/lib.rs"), "");
    write(&place.path("b/.cargo/config.toml"), &format!("[build]\nrustc = \"{}\"\n", evil.display()));
    write(&place.path("c/.mvn/jvm.config"), "-javaagent:x.jar\n");
    write(&place.path("d/package.json"), "{\"packageManager\":\"yarn@4.0.0\"}");
    write(&place.path("e/.erlang"), "os:cmd(\"touch HIT\").");
    let look = |folder: &str, line: &str| {
        let folder = place.path(folder);
        let output = place.gate.cli(&["assess", "--look", "--json", "--cwd", folder.to_str().unwrap(), line]);
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    for (folder, line) in [
        ("a", "cargo --version"),
        ("a", "rustc -vV"),
        ("a", "rustfmt --version"),
        ("b", "cargo tree"),
        ("b/src", "cargo metadata --no-deps"),
        ("c", "mvn -v"),
        ("d", "yarn --version"),
        ("e", "elixir --version"),
    ] {
        let judged = look(folder, line);
        assert_eq!(judged["verdict"], "ask", "{line}: {judged}");
        let reasons = judged["reasons"].as_array().unwrap();
        assert!(reasons.iter().any(|reason| reason["message"].as_str().unwrap().contains("obeys")), "{line}: {judged}");
        // Without looking it counts as an honest project.
        let plain = place.gate.cli(&["assess", "--json", line]);
        assert_eq!(serde_json::from_slice::<Value>(&plain.stdout).unwrap()["verdict"], "allow", "{line}");
        let output = place.run(&["--cwd", place.path(folder).to_str().unwrap(), "-c", line]);
        assert!(!place.is_hit() && code(&output) == 77, "{line}: {}", text(&output.stderr));
    }
    assert_eq!(look("bin", "cargo --version")["verdict"], "allow");
    for line in ["pytest --version", "tox --version", "terraform show", "git log --format=%G?", "rspec --version"] {
        let judged = place.gate.cli(&["assess", "--json", line]);
        assert_eq!(serde_json::from_slice::<Value>(&judged.stdout).unwrap()["verdict"], "ask", "{line}");
    }
}

#[test]
fn threat_84_where_policy_assumes_nothing_unseen_files_ask() {
    let place = place();
    let agent = place.gate.key("agent", "bot");
    let ask = |command: &str| {
        let body = json!({"session_id": "s", "command": command, "cwd": "/work"});
        place.gate.post(&agent, "/v1/approvals", &body).expect(200)["status"].clone()
    };
    assert_eq!((ask("git status"), ask("ls")), (json!("approved"), json!("approved")));
    place.gate.put_policy("default", &json!({"version": 1, "assumeProjectFilesClean": false}));
    assert_eq!((ask("git status"), ask("ls")), (json!("pending"), json!("approved")));
}

#[test]
fn threat_86_the_folder_counts_for_secrets() {
    let place = place();
    let agent = place.gate.key("agent", "bot");
    let data = place.gate.data.to_str().unwrap().to_owned();
    let status = |command: &str, cwd: Option<&str>| {
        let body = json!({"session_id": "s", "command": command, "cwd": cwd});
        place.gate.post(&agent, "/v1/approvals", &body).expect(200)["status"].clone()
    };
    for (command, cwd) in [
        ("cat shadow", "/etc"),
        ("cat ./shadow", "/etc"),
        ("head -n1 *", "/etc"),
        ("grep -r root .", "/etc"),
        ("grep -rh root", "/etc"),
        ("ls | xargs cat", "/etc"),
        ("ls | while read f; do cat $f; done", "/etc"),
        ("cat etc/shadow", "/"),
        ("cat ../etc/shadow", "/usr"),
        ("cat *", "/root/.ssh"),
        ("cat config", "/home/ann/.ssh"),
        ("cat environ", "/proc/self"),
        ("cat self/environ", "/proc"),
        ("cat *", "/proc/1"),
        ("cat < shadow", "/etc"),
        ("cat $PWD/shadow", "/etc"),
        ("cat ~+/shadow", "/etc"),
        ("cd /; cat etc/shadow", "/tmp"),
        ("cd etc && cat shadow", "/"),
        ("cat hosts.yml", "/home/ann/.config/gh"),
        ("cat secret.txt", "/mnt/vault"),
    ] {
        assert_eq!(status(command, Some(cwd)), "pending", "{command} in {cwd}");
    }
    for command in ["grep -rh csk_", "cat admin.key", "cat *", "cat countersign.db", "grep -r csk_ .", "strings *"] {
        assert_eq!(status(command, Some(&data)), "pending", "{command} in the gate's own folder");
    }
    assert_eq!(status(&format!("grep -r csk_ {data}"), None), "pending");
    assert_eq!(status(&format!("cat {data}/x"), Some("/tmp")), "pending");
    for command in ["cat shadow", "cat ../../etc/shadow", "head environ", "cat credentials"] {
        assert_eq!(status(command, None), "pending", "{command} nowhere known");
    }
    for (command, cwd) in [
        ("cat hosts", "/etc"),
        ("cat *.conf", "/etc"),
        ("ls -la", "/etc"),
        ("cat README.md", "/home/ann/work"),
        ("grep -r TODO .", "/home/ann/work"),
        ("cat status", "/proc/self"),
    ] {
        assert_eq!(status(command, Some(cwd)), "approved", "{command} in {cwd}");
    }
    assert_eq!(status("cat README.md", None), "approved");
}

#[test]
fn threat_86_links_are_judged_by_where_they_lead() {
    let place = unattended();
    write(&place.path("secrets-elsewhere/.env"), "TOKEN=hidden\n");
    fs::create_dir_all(place.path("w/sub")).unwrap();
    symlink(place.path("secrets-elsewhere/.env"), place.path("w/notes.txt")).unwrap();
    symlink("/etc", place.path("w/etc")).unwrap();
    symlink("notes.txt", place.path("w/chain")).unwrap();
    write(&place.path("w/plain.txt"), "plain\n");
    write(&place.path("w/list"), place.path("secrets-elsewhere/.env").to_str().unwrap());
    write(&place.path("w/.env"), "TOKEN=hidden\n");
    let here = place.path("w");
    let here = here.to_str().unwrap();
    for line in [
        "cat notes.txt",
        "cat chain",
        "cat n*",
        "head -n 3 *",
        "cat < notes.txt",
        "cat etc/shadow",
        "cat ./sub/../notes.txt",
        "cat $PWD/notes.txt",
        "cd etc; cat shadow",
        "cd etc && egrep -r root .",
        "while read -r l; do echo \"$l\"; done < notes.txt",
        "ls | xargs cat",
        "cat ${x:-notes.txt}",
        "grep -R TOKEN .",
        "for f in *; do cat \"$f\"; done",
        "cat ~+/notes.txt",
        "read -r x < notes.txt; echo $x",
        "cat $(ls)",
        "find . -type l -exec cat {} +",
        "cp notes.txt x; cat x",
        "while read -r l; do cat \"$l\"; done < list",
        "read l < list; cat $l",
        "cat list | while read l; do cat < $l; done",
        "while read x l; do cat $l; done <<< \"a notes.txt\"",
        "sort --files0-from=list",
        "strings @list",
        "find . -name '.e*' -exec cat {} +",
        "grep -rn . .",
        "cat $OLDPWD/*",
    ] {
        let output = place.run(&["--cwd", here, "-c", line]);
        assert!(
            !text(&output.stdout).contains("hidden") && !text(&output.stdout).contains("root:"),
            "{line}: {}",
            text(&output.stdout)
        );
        assert_eq!(code(&output), 77, "{line}: {}", text(&output.stderr));
    }
    let output = place.run(&["--cwd", here, "-c", "cat plain.txt; grep -r plain sub; ls"]);
    assert_eq!(code(&output), 0, "{}", text(&output.stderr));
}

#[test]
fn threat_85_a_files_name_is_not_run() {
    let place = unattended();
    let name = "a[$(touch HIT)]";
    write(&place.path(name), "x");
    write(&place.path("-oHIT"), "x");
    for line in [
        "for f in a*; do [[ $f -gt 1 ]]; done",
        "for f in a*; do echo $((f)); done",
        "for f in a*; do echo ${HOME:$f}; done",
        "for f in a*; do [[ -v $f ]]; done",
        "for f in a*; do test -v \"$f\"; done",
        "for f in a*; do echo ${y[$f]}; done",
        "ls | while read x; do [[ $x -eq 0 ]]; done",
        "f=$(echo a*); echo $((f))",
        "f=$(wc -l a*); echo $((f))",
        "sort *",
        "for f in *; do sort \"$f\"; done",
    ] {
        let output = place.text(line);
        assert!(!place.is_hit(), "{line}: {}", text(&output.stderr));
        assert_eq!(code(&output), 77, "{line}");
    }
    for line in [
        "echo $((1 + 2))",
        "for i in 1 2 3; do echo $((i * 2)); done",
        "n=$(grep -c x a*); echo ok",
        "[[ $# -gt 0 ]] || true",
    ] {
        assert_eq!(code(&place.text(line)), 0, "{line}: {}", text(&place.text(line).stderr));
    }
}

#[test]
fn threat_87_a_short_line_that_unfolds_is_dangerous_and_costs_little() {
    let place = unattended();
    let agent = place.gate.key("agent", "bot");
    let doubled = |first: &str, again: &str| format!("{first};{}", again.repeat(40));
    for command in [
        doubled("a=xxxxxxxx", "a=$a$a;"),
        doubled("a=xxxxxxxx", "a+=$a;"),
        doubled("export a=xxxxxxxx", "export a=$a$a;"),
        doubled("set -- x x", "set -- $@ $@;"),
        doubled("a=(x x)", "a=(${a[@]} ${a[@]});"),
    ] {
        let answer =
            place.gate.post(&agent, "/v1/approvals", &json!({"session_id": "s", "command": command})).expect(200);
        assert_eq!(answer["status"], "denied", "{command}");
    }
    let held = fs::read_to_string(format!("/proc/{}/status", place.gate.pid())).unwrap();
    let peak: u64 = held
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap()
        .split_whitespace()
        .next()
        .unwrap()
        .parse()
        .unwrap();
    assert!(peak < 200 * 1024, "the gate needed {peak} KiB");
}

#[test]
fn threat_89_a_lasting_yes_holds_where_it_was_given() {
    let place = place();
    for folder in ["one", "two"] {
        write(&place.path(folder).join("Makefile"), "x:\n\t@echo made\n");
    }
    let make = |folder: &str, words: &[&str]| {
        let folder = place.path(folder);
        let words = [&["--ask-timeout", "1", "--cwd", folder.to_str().unwrap()], words].concat();
        code(&place.run(&words))
    };
    let folder = place.path("one");
    let (child, id) = place.asking(&["--cwd", folder.to_str().unwrap(), "--", "make", "x"]);
    let offer = place.gate.get(&place.ann, &format!("/v1/approvals/{id}/offer")).expect(200);
    let holds = offer["holds"].as_str().unwrap();
    assert!(
        holds.contains(folder.to_str().unwrap()) && holds.contains("Makefile") && holds.contains("same variables"),
        "{holds}"
    );
    place.decide(&id, &json!({"decision": "allow-always"})).expect(200);
    assert_eq!(code(&child.wait_with_output().unwrap()), 0);
    assert_eq!(make("one", &["--", "make", "x"]), 0, "the same again");
    // Asked again and not answered: 75.
    assert_eq!(make("two", &["--", "make", "x"]), 75, "another folder");
    assert_eq!(make("two", &["-c", "cd ../one; make x"]), 75, "from another folder");
    assert_eq!(make("one", &["-c", "cd ../two && make x"]), 75, "into another folder");
    assert_eq!(make("one", &["-c", "MAKEFILES=../two/Makefile make x"]), 75, "a variable in the text");
    assert_eq!(make("one", &["-c", "FOO=1 make x"]), 75, "any variable in the text");
    assert_eq!(make("one", &["--env", "FOO=1", "--", "make", "x"]), 75, "a variable of the request");
    let with = |name: &str| {
        let mut command = place.command(&["--ask-timeout", "1", "--cwd", folder.to_str().unwrap(), "--", "make", "x"]);
        code(&command.env(name, "x").output().unwrap())
    };
    for name in ["MAKEFILES", "CARGO_ENCODED_RUSTFLAGS", "CC_x86_64_unknown_linux_gnu", "PKG_CONFIG", "NEVER_HEARD_OF"]
    {
        assert_eq!(with(name), 75, "{name} inherited");
    }
    assert_eq!(with("TERM"), 0, "what changes nothing");
    write(&place.path("one/Makefile"), "x:\n\t@echo other\n");
    assert_eq!(make("one", &["--", "make", "x"]), 75, "an edited Makefile");
    let grants = place.gate.cli(&["grants", "list", "--json"]);
    assert!(text(&grants.stdout).contains("stays as it is"), "{}", text(&grants.stdout));
}

#[test]
fn threat_89_over_http_a_lasting_yes_holds_in_its_folder() {
    let place = place();
    let agent = place.gate.key("agent", "bot");
    let ask = |command: &str, cwd: Option<&str>, env: Value| {
        let body = json!({"session_id": "s", "command": command, "cwd": cwd, "env": env});
        place.gate.post(&agent, "/v1/approvals", &body).expect(200)
    };
    let asked = ask("make x", Some("/work/a"), json!({}));
    place.decide(asked["approval_id"].as_str().unwrap(), &json!({"decision": "allow-always"})).expect(200);
    assert_eq!(ask("make x", Some("/work/a"), json!({}))["status"], "approved");
    for (command, cwd, env) in [
        ("make x", Some("/work/b"), json!({})),
        ("make x", None, json!({})),
        ("make x", Some("/work/a"), json!({"FOO": "1"})),
        ("cd ../b; make x", Some("/work/a"), json!({})),
        ("cd $X; make x", Some("/work/a"), json!({})),
        ("make -C ../b x", Some("/work/a"), json!({})),
    ] {
        assert_eq!(ask(command, cwd, env.clone())["status"], "pending", "{command} {cwd:?} {env}");
    }
}

#[test]
fn threat_89_a_workspaces_own_entries_count_inside_it_alone() {
    let place = place();
    let agent = place.gate.key("agent", "bot");
    let workspace = place.path("w");
    let file = "{\"commandWhitelist\":[\"make x\"]}";
    write(&workspace.join(".agents/terminal.json"), file);
    let workspace = workspace.to_str().unwrap();
    assert!(place.gate.cli(&["trust", workspace]).status.success());
    let status = |command: &str, cwd: Value| {
        let body =
            json!({"session_id": "s", "command": command, "cwd": cwd, "workspace": workspace, "terminal_file": file});
        place.gate.post(&agent, "/v1/approvals", &body).expect(200)["status"].clone()
    };
    assert_eq!(status("make x", json!(workspace)), "approved");
    assert_eq!(status("make x", json!(format!("{workspace}/sub"))), "approved");
    for (command, cwd) in [
        ("make x", json!("/tmp")),
        ("make x", json!(null)),
        ("make x", json!(format!("{workspace}/../other"))),
        ("make x", json!(format!("{workspace}x"))),
        ("cd /tmp; make x", json!(workspace)),
        ("cd ..; make x", json!(workspace)),
        ("cd $X; make x", json!(workspace)),
    ] {
        assert_eq!(status(command, cwd.clone()), "pending", "{command} in {cwd}");
    }
}

#[test]
fn threat_93_the_executors_environment_steers_nothing_that_only_reads() {
    let place = unattended();
    let evil = place.path("w/bin/evil");
    script(&evil, &format!("#!/bin/sh\ntouch {}\n", place.path("HIT").display()));
    for name in ["ls", "git", "cat"] {
        fs::copy(&evil, place.path("w/bin").join(name)).unwrap();
    }
    let here = place.path("w");
    git(&here, &["init", "-q", "."]);
    write(&here.join("a.txt"), "1\n");
    git(&here, &["add", "a.txt"]);
    write(&here.join("a.txt"), "2\n");
    let run = |variable: (&str, &str), line: &str| {
        let mut command = place.gate.command(&["run", "--cwd", here.to_str().unwrap(), "-c", line]);
        command.env(variable.0, variable.1).output().unwrap()
    };
    let first = format!("{}:{}", here.join("bin").display(), std::env::var("PATH").unwrap());
    for (variable, line) in [
        (("PATH", first.as_str()), "ls"),
        (("PATH", "bin:/usr/bin:/bin"), "cat a.txt"),
        (("PATH", ":/usr/bin:/bin"), "git status"),
        (("GIT_EXTERNAL_DIFF", evil.to_str().unwrap()), "git diff"),
        (("GIT_CONFIG_COUNT", "1"), "git status"),
        (("LESSOPEN", &format!("|{} %s", evil.display())), "cat a.txt | less"),
        (("RIPGREP_CONFIG_PATH", evil.to_str().unwrap()), "git status"),
        (("GIT_PAGER", evil.to_str().unwrap()), "git log"),
    ] {
        let output = run(variable, line);
        assert!(!place.is_hit(), "{variable:?} {line}: {}", text(&output.stderr));
    }
    assert_eq!(code(&run(("PATH", &first), "ls")), 77);
    let output = run(("GIT_EXTERNAL_DIFF", evil.to_str().unwrap()), "git diff");
    assert!(text(&output.stdout).contains("+2"), "{}", text(&output.stderr));
}
