//! Somebody changes things all the time while a command starts: what runs is the right thing, or nothing.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code: a broken expectation is a failed test"
)]

mod common;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use common::{World, stdout, wait};
use countersign_model::Exec;
use countersign_runner::{StartError, What};

/// Ends the other thread, however this one ends.
struct Ends<'e>(&'e AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn threat_16_a_link_that_flips_ten_thousand_times_never_moves_a_run() {
    let world = World::new();
    for name in ["right", "wrong"] {
        fs::create_dir(world.path().join(name)).unwrap();
        symlink(name, world.path().join(format!("to-{name}"))).unwrap();
    }
    let link = world.path().join("cwd");
    symlink("right", &link).unwrap();
    let bound = world.bind(What::Words(&["pwd".to_owned(), "-P".to_owned()]), &link, None).unwrap();
    let right = bound.folder.path.clone();
    let words = vec!["pwd".to_owned(), "-P".to_owned()];
    let cwd = Some(link.to_str().unwrap().to_owned());
    let exec = Exec { binding: Some(Box::new(bound)), ..Exec::of_words(words, cwd, [].into()) };
    let (flips, done) = (AtomicUsize::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        // Both the link that was asked for, and the directory itself: a link takes its place and goes again.
        scope.spawn(|| {
            let (right, aside) = (world.path().join("right"), world.path().join("aside"));
            while !done.load(Ordering::Relaxed) {
                for target in ["wrong", "right"] {
                    symlink(target, world.path().join("new")).unwrap();
                    fs::rename(world.path().join("new"), &link).unwrap();
                }
                fs::rename(&right, &aside).unwrap();
                symlink("wrong", &right).unwrap();
                fs::remove_file(&right).unwrap();
                fs::rename(&aside, &right).unwrap();
                flips.fetch_add(2, Ordering::Relaxed);
            }
        });
        let _ends = Ends(&done);
        let (mut ran, mut refused) = (0, 0);
        while flips.load(Ordering::Relaxed) < 10_000 || ran == 0 {
            match world.start(&exec) {
                Ok(running) => {
                    let at = stdout(&wait(running, None));
                    // The same directory, by whatever name it had when it was asked.
                    let aside = right.replace("/right", "/aside");
                    assert!(at.trim() == right || at.trim() == aside, "ran in {at}");
                    ran += 1;
                }
                Err(StartError::Changed(_)) => refused += 1,
                Err(other) => panic!("{other}"),
            }
        }
        assert!(ran > 0 && refused > 0, "{ran} ran, {refused} were refused: nothing was tried");
    });
}

#[test]
fn threat_16_a_program_that_is_swapped_all_the_time_is_the_right_one_or_none() {
    let world = World::new();
    for (name, from) in [("good", "/usr/bin/true"), ("bad", "/usr/bin/false")] {
        fs::copy(from, world.path().join(name)).unwrap();
        fs::set_permissions(world.path().join(name), fs::Permissions::from_mode(0o777)).unwrap();
    }
    let put = |name: &str| {
        fs::hard_link(world.path().join(name), world.path().join("new")).unwrap();
        fs::rename(world.path().join("new"), world.path().join("tool")).unwrap();
    };
    put("good");
    let exec = world.words(&["./tool"]);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                ["bad", "good"].iter().for_each(|name| put(name));
            }
        });
        let _ends = Ends(&done);
        let (mut ran, mut refused) = (0, 0);
        while ran < 50 || refused < 50 {
            match world.start(&exec) {
                Ok(running) => {
                    assert_eq!(wait(running, None).exit_code(), 0, "the other one ran");
                    ran += 1;
                }
                Err(StartError::Changed(_)) => refused += 1,
                Err(other) => panic!("{other}"),
            }
        }
    });
}
