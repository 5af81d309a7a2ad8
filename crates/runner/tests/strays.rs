//! A command that tries to get away. Alone in its process: what has no parent belongs to the one command that runs.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code: a broken expectation is a failed test"
)]

mod common;

use std::fs;
use std::time::{Duration, Instant};

use common::{World, wait};

/// Forks away, leaves the group and the session, loses its parent, ignores the request to end, drops the pipes.
const FUGITIVE: &str = r#"
setsid sh -c '
    trap "" TERM HUP INT
    (trap "" TERM; echo $$ > pid.tmp; exec 0<&- 1>&- 2>&-; mv pid.tmp pid; while :; do sleep 1000; done) &
' &
wait
(setsid sh -c 'trap "" TERM; echo $$ > pid2.tmp; mv pid2.tmp pid2; cat gate > /dev/null; while :; do sleep 1000; done' &)
cat gate > /dev/null
sleep 1000
"#;

#[test]
fn what_forked_away_and_ignores_term_is_gone_after_the_timeout() {
    let world = World::new();
    let mkfifo = std::process::Command::new("mkfifo").arg(world.folder.path().join("gate")).status().unwrap();
    assert!(mkfifo.success());
    let running = world.start(&world.text(FUGITIVE)).unwrap();
    // Both have spoken before the time is over: nothing is reached by waiting alone.
    let pids = ["pid", "pid2"].map(|name| {
        loop {
            if let Ok(text) = fs::read_to_string(world.folder.path().join(name)) {
                break text.trim().to_owned();
            }
            std::thread::yield_now();
        }
    });
    // Somebody else in this process starts a child of its own meanwhile.
    let mut other = std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
    let begun = Instant::now();
    let outcome = wait(running, Some(Duration::from_millis(1)));
    assert!(outcome.timed_out);
    assert!(begun.elapsed() < Duration::from_secs(30));
    for pid in pids {
        assert!(!fs::exists(format!("/proc/{pid}")).unwrap(), "{pid} is still there");
    }
    drop(other.stdin.take());
    assert!(other.wait().unwrap().success(), "it was ended too");
    let me = format!("/proc/{}/task", std::process::id());
    for task in fs::read_dir(me).unwrap() {
        let children = fs::read_to_string(task.unwrap().path().join("children")).unwrap_or_default();
        assert_eq!(children.trim(), "", "children are left");
    }
}
