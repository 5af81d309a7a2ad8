//! Real processes: what they get, what they write, how they end.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code: a broken expectation is a failed test"
)]

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use common::{World, stdout, wait};
use countersign_runner::{Exit, StartError, Stream, start};

const SOON: Option<Duration> = Some(Duration::from_millis(50));

#[test]
fn text_runs_byte_for_byte_through_the_shell() {
    let world = World::new();
    let outcome = world.run(&world.text("printf '%s|' \"$0\" 'a  b' $'\\x01é'; printf err >&2; exit 3"));
    assert_eq!(stdout(&outcome), "bash|a  b|\u{1}é|");
    assert_eq!(outcome.stderr.bytes, b"err");
    assert_eq!((outcome.exit, outcome.exit_code()), (Exit::Code(3), 3));
    assert!(outcome.changed_meanwhile.is_empty());
}

#[test]
fn words_run_without_a_shell_under_their_own_name() {
    let world = World::new();
    let outcome = world.run(&world.words(&["printf", "%s|", "$HOME", "a b", ";ls", "*"]));
    assert_eq!(stdout(&outcome), "$HOME|a b|;ls|*|");
    // What it is called is the word, although it was opened by its descriptor.
    let outcome = world.run(&world.words(&["cat", "/proc/self/cmdline"]));
    assert_eq!(stdout(&outcome), "cat\0/proc/self/cmdline\0");
    let outcome = world.run(&world.words(&["readlink", "/proc/self/exe"]));
    assert_eq!(stdout(&outcome).trim(), fs::canonicalize("/usr/bin/readlink").unwrap().to_str().unwrap());
}

#[test]
fn a_script_runs_by_its_name() {
    let world = World::new();
    world.program("deploy.sh", "#!/bin/sh\necho \"$0 $1\"\n");
    let outcome = world.run(&world.words(&["./deploy.sh", "now"]));
    assert_eq!(stdout(&outcome).trim(), format!("{}/deploy.sh now", world.path().display()));
}

#[test]
fn the_way_it_ended_is_told() {
    let world = World::new();
    for (text, exit, code) in [
        ("true", Exit::Code(0), 0),
        ("exit 77", Exit::Code(77), 77),
        ("kill -9 $$", Exit::Signal(9), 137),
        ("kill -TERM $$", Exit::Signal(15), 143),
        ("no-such-program-here", Exit::Code(127), 127),
    ] {
        let outcome = world.run(&world.text(text));
        assert_eq!((outcome.exit, outcome.exit_code()), (exit, code), "{text}");
        assert!(!outcome.timed_out && !outcome.stopped);
    }
}

#[test]
fn its_time_is_over() {
    let world = World::new();
    let outcome = wait(world.start(&world.text("sleep 1000")).unwrap(), SOON);
    assert!(outcome.timed_out && !outcome.stopped);
    assert_eq!((outcome.exit, outcome.exit_code()), (Exit::Signal(15), 124));
}

#[test]
fn somebody_stops_it_from_another_thread() {
    let world = World::new();
    let running = world.start(&world.text("echo ready; sleep 1000")).unwrap();
    let stopper = running.stopper();
    let outcome = running
        .wait(None, &mut |_, chunk| {
            assert_eq!(chunk, b"ready\n");
            let stopper = stopper.clone();
            std::thread::spawn(move || stopper.stop()).join().unwrap();
        })
        .unwrap();
    assert!(outcome.stopped && !outcome.timed_out);
    assert_eq!(outcome.exit_code(), 143);
}

#[test]
fn what_is_for_long_runs_is_done_once_it_lasts_and_never_for_one_that_is_over() {
    let world = World::new();
    let mut running = world.start(&world.text("sleep 1000")).unwrap();
    let stopper = running.stopper();
    running.if_it_lasts(Duration::from_millis(1), move || stopper.stop());
    let outcome = running.wait(None, &mut |_, _| {}).unwrap();
    assert!(outcome.stopped, "nobody else could have ended it");

    let mut running = world.start(&world.text("true")).unwrap();
    running.if_it_lasts(Duration::from_secs(1000), || panic!("it did not last"));
    assert_eq!(running.wait(None, &mut |_, _| {}).unwrap().exit_code(), 0);
}

#[test]
fn one_gib_is_read_and_little_of_it_kept() {
    let world = World::new();
    let before = peak_memory();
    let mut seen = 0_u64;
    let outcome = world
        .start(&world.words(&["head", "-c", "1G", "/dev/zero"]))
        .unwrap()
        .wait(None, &mut |stream, chunk| {
            assert_eq!(stream, Stream::Stdout);
            seen += chunk.len() as u64;
        })
        .unwrap();
    assert_eq!((outcome.stdout.total, seen), (1 << 30, 1 << 30));
    assert_eq!(outcome.stdout.bytes.len(), 1 << 20);
    assert!(outcome.stdout.truncated() && !outcome.stderr.truncated());
    let grown = peak_memory() - before;
    assert!(grown < 64 * 1024, "{grown} KiB more memory");
}

/// In KiB.
fn peak_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn binary_output_comes_through_whole() {
    let world = World::new();
    let bytes: Vec<u8> = (0..300_000_u32).flat_map(u32::to_le_bytes).take(1_000_000).collect();
    fs::File::create(world.folder.path().join("data")).unwrap().write_all(&bytes).unwrap();
    let outcome = world.run(&world.text("cat data; cat data >&2"));
    assert!(outcome.stdout.bytes == bytes && outcome.stderr.bytes == bytes);
    assert!(!outcome.stdout.truncated());
}

#[test]
fn a_background_child_that_holds_the_pipe_is_not_waited_for() {
    let world = World::new();
    let running = world.start(&world.text("sleep 60 & echo $!")).unwrap();
    let begun = Instant::now();
    let outcome = wait(running, None);
    assert!(begun.elapsed() < Duration::from_secs(20), "it was waited for");
    assert_eq!(outcome.exit_code(), 0);
    // It was started on purpose and lives on.
    let pid: i32 = stdout(&outcome).trim().parse().unwrap();
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
}

#[test]
fn a_background_writer_is_not_listened_to_for_ever() {
    let world = World::new();
    let outcome = wait(world.start(&world.text("yes & echo first")).unwrap(), Some(Duration::from_secs(60)));
    assert!(!outcome.timed_out);
    assert_eq!(outcome.exit_code(), 0);
}

#[test]
fn the_last_words_are_not_lost_when_others_hold_the_pipe() {
    let world = World::new();
    let text = "head -c 200000 /dev/zero; sleep 60 & echo; echo $!";
    let outcome = world.run(&world.text(text));
    let text = String::from_utf8_lossy(&outcome.stdout.bytes[200_000..]).into_owned();
    let pid = rustix::process::Pid::from_raw(text.trim().parse().unwrap()).unwrap();
    let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
}

#[test]
fn nothing_of_ours_reaches_the_child() {
    let world = World::new();
    let inherited = countersign_runner::Inherited::of(
        [
            ("PATH", "/usr/bin:/bin"),
            ("COUNTERSIGN_KEY", "secret"),
            ("LD_PRELOAD", "/x.so"),
            ("BASH_ENV", "/x"),
            ("A", "b"),
        ]
        .map(|(name, value)| (name.into(), value.into())),
    );
    let world = World { inherited, env: [("CI".to_owned(), "1".to_owned())].into(), ..world };
    let outcome = world.run(&world.words(&["env"]));
    let pwd = format!("PWD={}", world.path().display());
    let got: BTreeSet<String> = stdout(&outcome).lines().map(str::to_owned).collect();
    assert_eq!(got, ["A=b", "CI=1", "PATH=/usr/bin:/bin", &pwd].map(str::to_owned).into());
    assert!(outcome.stderr.bytes.is_empty(), "a loader spoke");
    // Whoever runs the tests may leave descriptors open for all; of ours there are none.
    let plain = std::process::Command::new("ls").arg("/proc/self/fd").output().unwrap();
    let plain = String::from_utf8(plain.stdout).unwrap();
    for exec in [world.words(&["ls", "/proc/self/fd"]), world.text("ls /proc/self/fd; :")] {
        assert_eq!(stdout(&world.run(&exec)), plain);
    }
}

#[test]
fn it_runs_in_a_group_of_its_own_and_in_its_folder() {
    let world = World::new();
    let running = world.start(&world.text("ps -o pgid= -p $$ | tr -d ' '; pwd")).unwrap();
    let group = running.id();
    let outcome = wait(running, None);
    assert_eq!(stdout(&outcome), format!("{group}\n{}\n", world.path().display()));
}

#[test]
fn dropped_without_waiting_it_is_ended() {
    let world = World::new();
    let running = world.start(&world.text("sleep 1000")).unwrap();
    let id = running.id();
    drop(running);
    assert!(!fs::exists(format!("/proc/{id}")).unwrap());
}

#[test]
fn ending_one_by_force_leaves_the_others_alone() {
    let world = World::new();
    let (victim, other) = (world.text("sleep 1000"), world.words(&["true"]));
    std::thread::scope(|scope| {
        let ending = scope.spawn(|| (0..100).for_each(|_| drop(world.start(&victim).unwrap())));
        while !ending.is_finished() {
            assert_eq!(world.run(&other).exit, Exit::Code(0));
        }
    });
}

#[test]
fn what_cannot_be_started_says_so() {
    let world = World::new();
    let path = world.program("tool", "no program at all\n");
    let exec = world.words(&["./tool"]);
    assert!(matches!(world.start(&exec), Err(StartError::Spawn { .. })));
    fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(world.changes(&exec)[0].to_string(), "`./tool` is not found any more");
    let unbound = countersign_model::Exec { binding: None, ..exec };
    assert!(matches!(start(&unbound, &world.inherited, countersign_runner::Stdio::Capture), Err(StartError::Unbound)));
}
