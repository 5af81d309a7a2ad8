//! What was approved is what runs: each way in which it could become another thing, tried.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code: a broken expectation is a failed test"
)]

mod common;

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use common::{World, binding};
use countersign_model::{Action, Exec};
use countersign_runner::{BindError, Change, EnvError, Inherited, What};

const TRUE: What<'_> = What::Text { text: "true", shell: None };

fn said(changes: &[Change]) -> Vec<String> {
    changes.iter().map(ToString::to_string).collect()
}

fn words_of(exec: &Exec) -> Vec<&str> {
    binding(exec).programs.iter().map(|program| program.word.as_str()).collect()
}

#[test]
fn the_folder_is_found_by_its_real_name() {
    let world = World::new();
    fs::create_dir(world.path().join("real")).unwrap();
    symlink("real", world.path().join("link")).unwrap();
    let bound = world.bind(TRUE, &world.path().join("link"), None).unwrap();
    assert_eq!(bound.folder.path, world.path().join("real").to_str().unwrap());
    assert!(bound.folder.pinned && bound.folder.digest.is_none());
    assert!(bound.shell.unwrap().pinned);
}

#[test]
fn threat_16_a_folder_outside_the_workspace_is_refused() {
    let world = World::new();
    for name in ["work/in", "workshop", "other"] {
        fs::create_dir_all(world.path().join(name)).unwrap();
    }
    symlink("../other", world.path().join("work/way-out")).unwrap();
    symlink("work", world.path().join("alias")).unwrap();
    let bind = |cwd: &str, workspace: &str| {
        world.bind(TRUE, &world.path().join(cwd), Some(&world.path().join(workspace))).map(|bound| bound.folder.path)
    };
    for cwd in ["workshop", "other", "work/way-out", "work/../other", "."] {
        assert!(matches!(bind(cwd, "work"), Err(BindError::Outside { .. })), "{cwd}");
    }
    for (cwd, workspace) in [("work", "work"), ("work/in", "work"), ("alias/in", "work"), ("work/in", "alias")] {
        assert!(bind(cwd, workspace).is_ok(), "{cwd} in {workspace}");
    }
}

#[test]
fn a_folder_that_is_none_is_refused() {
    let world = World::new();
    world.file("file", "");
    let bind = |cwd: &Path| world.bind(TRUE, cwd, None).unwrap_err();
    assert!(matches!(bind(&world.path().join("missing")), BindError::NoFolder(_)));
    assert!(matches!(bind(&world.path().join("file")), BindError::NotAFolder(_)));
    assert!(matches!(bind(Path::new("relative")), BindError::RelativeFolder(_)));
    let odd = world.path().join(std::ffi::OsStr::from_bytes(b"odd\xff"));
    fs::create_dir(&odd).unwrap();
    assert!(matches!(bind(&odd), BindError::NotUtf8(_)));
    let odd_program = world.path().join(std::ffi::OsStr::from_bytes(b"tool\xff"));
    fs::copy("/usr/bin/true", &odd_program).unwrap();
    symlink(&odd_program, world.path().join("tool")).unwrap();
    let words = ["./tool".to_owned()];
    assert!(matches!(world.bind(What::Words(&words), &world.path(), None), Err(BindError::NotUtf8(_))));
    symlink("loop", world.path().join("loop")).unwrap();
    assert!(matches!(bind(&world.path().join("loop")), BindError::Io { .. }));
}

#[test]
fn no_command_is_no_command() {
    let world = World::new();
    let words = |words: &[&str]| {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        world.bind(What::Words(&words), &world.path(), None).unwrap_err()
    };
    let text = |text: &str| world.bind(What::Text { text, shell: None }, &world.path(), None).unwrap_err();
    assert!(matches!(words(&[]), BindError::Empty));
    assert!(matches!(words(&[""]), BindError::Empty));
    assert!(matches!(text(" \t\n"), BindError::Empty));
    assert!(matches!(text("a\0b"), BindError::Nul));
    assert!(matches!(words(&["ls", "a\0b"]), BindError::Nul));
    assert!(matches!(words(&["no-such-program-here"]), BindError::NoProgram(_)));
    assert!(matches!(words(&["."]), BindError::NoProgram(_)));
    let shell = |shell| world.bind(What::Text { text: "true", shell: Some(shell) }, &world.path(), None);
    assert!(matches!(shell("/usr/bin/env"), Err(BindError::NoShell(_))));
    assert!(matches!(shell("/missing/sh"), Err(BindError::NoShell(_))));
    assert!(shell("sh").is_ok());
    // Nothing here is about length: what is too long to show is refused where actions are made.
    assert!(world.bind(What::Text { text: &"true;".repeat(60_000), shell: None }, &world.path(), None).is_ok());
}

#[test]
fn threat_16_another_folder_of_the_same_name_is_another() {
    let world = World::new();
    fs::create_dir(world.path().join("w")).unwrap();
    let bound = world.bind(TRUE, &world.path().join("w"), None).unwrap();
    let exec = Exec { binding: Some(Box::new(bound)), ..world.text("true") };
    fs::rename(world.path().join("w"), world.path().join("w2")).unwrap();
    let expected = [format!("the working directory `{}/w` is another one", world.path().display())];
    assert_eq!(said(&world.changes(&exec)), expected, "missing");
    symlink("w2", world.path().join("w")).unwrap();
    assert_eq!(said(&world.changes(&exec)), expected, "a link to the very one");
    fs::remove_file(world.path().join("w")).unwrap();
    fs::create_dir(world.path().join("w")).unwrap();
    assert_eq!(said(&world.changes(&exec)), expected, "a new one");
}

#[test]
fn threat_15_a_script_edited_after_approval_does_not_run() {
    for (name, text) in [
        ("deploy.sh", "./deploy.sh"),
        ("deploy.sh", "bash deploy.sh --now"),
        ("deploy.sh", "bash -x deploy.sh"),
        ("deploy.sh", "source deploy.sh"),
        ("deploy.sh", ". ./deploy.sh"),
        ("deploy.sh", "env A=1 sh ./deploy.sh"),
        ("deploy.sh", "bash -c 'sh deploy.sh'"),
        ("sub/deploy.sh", "cd sub && ./deploy.sh"),
        ("sub/deploy.sh", "cd sub && sh deploy.sh"),
        ("tool.py", "python3 -u tool.py data"),
        ("tool.py", "python3.11 -X dev -- tool.py"),
        ("a.js", "node --import=./a.js -e 1"),
        ("a.js", "node -r ./a.js other"),
        ("Makefile", "make all"),
        ("sub/Makefile", "make -C sub"),
        ("rules.mk", "make -frules.mk"),
        ("rules.mk", "make --file rules.mk"),
        ("package.json", "npm run build"),
        ("prog.awk", "awk -f prog.awk input"),
    ] {
        let world = World::new();
        let path = world.program(name, "#!/bin/sh\necho one\n");
        let exec = world.text(text);
        world.program(name, "#!/bin/sh\necho two\n");
        let real = path.canonicalize().unwrap();
        let expected = format!("the contents of `{}` changed", real.display());
        assert!(said(&world.changes(&exec)).contains(&expected), "{text}: {:?}", binding(&exec));
        // The same bytes written again are what was approved.
        world.program(name, "#!/bin/sh\necho one\n");
        assert!(world.start(&exec).is_ok(), "{text}");
    }
}

#[test]
fn threat_15_an_interpreter_is_bound_with_its_script() {
    let world = World::with_path("{}/bin:/usr/bin:/bin");
    world.program("bin/interp", "#!/bin/sh\n");
    world.program("run", "#!/usr/bin/env interp\n");
    let exec = world.text("./run");
    for word in ["./run", "/usr/bin/env", "interp", "/bin/sh"] {
        assert!(words_of(&exec).contains(&word), "{word}: {:?}", words_of(&exec));
    }
    world.program("bin/interp", "#!/bin/sh\nevil\n");
    assert_eq!(world.changes(&exec).len(), 1);
}

#[test]
fn threat_15_what_changes_while_it_runs_is_told() {
    let world = World::new();
    let path = world.program("deploy.sh", "#!/bin/sh\nprintf '#changed\\n' >> deploy.sh\n");
    let outcome = world.run(&world.text("sh deploy.sh"));
    let expected = format!("the contents of `{}` changed", path.canonicalize().unwrap().display());
    assert_eq!(said(&outcome.changed_meanwhile), [expected]);
}

#[test]
fn threat_15_a_file_that_appears_is_not_run_unseen() {
    let world = World::new();
    let make = world.text("make; ./later; sh other.sh");
    world.program("later", "#!/bin/sh\n");
    world.file("Makefile", "all:\n");
    world.file("other.sh", "");
    let said = said(&world.changes(&make));
    assert!(said.iter().any(|said| said.starts_with("`./later` is now")), "{said:?}");
    for name in ["Makefile", "other.sh"] {
        assert!(said.iter().any(|said| said.contains(name) && said.ends_with("was not there")), "{said:?}");
    }
}

#[test]
fn threat_16_another_program_first_on_the_path_does_not_run() {
    let world = World::with_path("{}/first:/usr/bin:/bin");
    fs::create_dir(world.path().join("first")).unwrap();
    for exec in [world.text("make all"), world.words(&["make", "all"])] {
        let fake = world.program("first/make", "#!/bin/sh\n");
        let now = format!("`make` is now `{}`", fake.canonicalize().unwrap().display());
        assert!(said(&world.changes(&exec)).contains(&now));
        fs::remove_file(fake).unwrap();
    }
}

#[test]
fn threat_16_a_program_replaced_under_its_name_does_not_run() {
    let world = World::new();
    let tool = world.path().join("tool");
    for pinned in [true, false] {
        fs::copy("/usr/bin/true", &tool).unwrap();
        let exec = if pinned { world.words(&["./tool"]) } else { world.text("./tool") };
        assert_eq!(binding(&exec).programs[0].file.pinned, pinned);
        assert_eq!(world.run(&exec).exit_code(), 0);
        fs::remove_file(&tool).unwrap();
        fs::copy("/usr/bin/false", &tool).unwrap();
        assert_eq!(said(&world.changes(&exec)), [format!("the contents of `{}` changed", tool.display())]);
        fs::remove_file(&tool).unwrap();
        assert_eq!(said(&world.changes(&exec)), ["`./tool` is not found any more"]);
    }
}

#[test]
fn an_empty_part_of_the_path_is_the_working_directory() {
    for path in ["/usr/bin::/bin", ":/usr/bin", "/usr/bin:", ".:/usr/bin"] {
        let world = World::with_path(path);
        world.program("here-only", "#!/bin/sh\n");
        let exec = world.text("here-only");
        assert_eq!(binding(&exec).file_of("here-only"), world.path().join("here-only").to_str(), "{path}");
        assert_eq!(world.run(&exec).exit_code(), 0);
        // From another directory it would be another file, so the word stands for none.
        fs::create_dir(world.path().join("sub")).unwrap();
        assert_eq!(binding(&world.text("cd sub; here-only")).file_of("here-only"), None);
    }
}

#[test]
fn words_that_could_mean_two_files_stand_for_none() {
    let world = World::new();
    world.program("tool", "#!/bin/sh\n");
    world.program("sub/tool", "#!/bin/sh\n");
    let exec = world.text("./tool; cd sub; ./tool");
    assert_eq!(binding(&exec).file_of("./tool"), None);
    assert_eq!(binding(&exec).scripts.len(), 2);
    assert_eq!(binding(&world.text("PATH=/tmp:$PATH; make")).file_of("make"), None);
    assert_eq!(binding(&world.text("export PATH=/x; env make")).file_of("make"), None);
}

#[test]
fn a_word_with_directories_also_binds_its_bare_name() {
    let world = World::new();
    let exec = world.words(&["/usr/bin/make", "x"]);
    assert_eq!(binding(&exec).file_of("make"), binding(&exec).file_of("/usr/bin/make"));
    fs::copy("/usr/bin/false", world.path().join("make")).unwrap();
    let exec = world.words(&["./make"]);
    assert_ne!(binding(&exec).file_of("make"), binding(&exec).file_of("./make"));
}

#[test]
fn only_what_others_can_write_is_hashed() {
    let world = World::new();
    let digest = |exec: &Exec| binding(exec).programs[0].file.digest.is_some();
    let tool = world.path().join("tool");
    fs::copy("/usr/bin/true", &tool).unwrap();
    let root = rustix::process::geteuid().is_root();
    assert!(!digest(&world.words(&["/usr/bin/true"])));
    assert_eq!(digest(&world.words(&["./tool"])), !root);
    fs::set_permissions(&tool, fs::Permissions::from_mode(0o777)).unwrap();
    assert!(digest(&world.words(&["./tool"])));
}

#[test]
fn threat_14_the_digest_covers_what_it_was_bound_to() {
    let world = World::new();
    world.program("deploy.sh", "#!/bin/sh\n");
    let digest = |exec: &Exec| Action::Exec(exec.clone()).digest().unwrap();
    let before = world.text("./deploy.sh");
    assert_eq!(digest(&before), digest(&world.text("./deploy.sh")));
    world.program("deploy.sh", "#!/bin/sh\nevil\n");
    assert_ne!(digest(&before), digest(&world.text("./deploy.sh")));
    let read: Action = serde_json::from_slice(&Action::Exec(before.clone()).canonical().unwrap()).unwrap();
    assert_eq!(read, Action::Exec(before));
}

#[test]
fn threat_14_one_changed_word_is_not_what_was_bound() {
    let world = World::new();
    let exec = world.words(&["printf", "100"]);
    let swapped =
        |words: &[&str]| Exec { argv: Some(words.iter().map(|word| (*word).to_owned()).collect()), ..exec.clone() };
    assert_eq!(said(&world.changes(&swapped(&["touch", "x"]))).len(), 2);
    let text = Exec { command: "touch x".to_owned(), ..world.text("printf 1") };
    assert!(said(&world.changes(&text)).iter().any(|said| said.starts_with("`touch` is now")));
    assert!(!fs::exists(world.path().join("x")).unwrap());
}

#[test]
fn threat_17_the_environment_is_part_of_it() {
    let world = World::new();
    let exec = world.text("true");
    let other = Inherited::of(
        [("PATH", "/usr/bin:/bin"), ("HOME", "/nonexistent"), ("KEPT", "2")].map(|(a, b)| (a.into(), b.into())),
    );
    let world = World { inherited: other, ..world };
    assert_eq!(said(&world.changes(&exec)), ["the inherited environment is another one"]);
}

#[test]
fn threat_17_smuggled_names_are_refused_when_bound_and_when_started() {
    let world = World::new();
    let exec = world.text("true");
    for name in ["PATH", "LD_PRELOAD", "BASH_ENV", "GIT_SSH_COMMAND", "GIT_CONFIG_COUNT", "git_ssh", "COUNTERSIGN_URL"]
    {
        let env = std::collections::BTreeMap::from([(name.to_owned(), "x".to_owned())]);
        let smuggled = Exec { env: env.clone(), ..exec.clone() };
        let refused = BindError::Environment(EnvError::Dangerous(name.to_owned())).to_string();
        assert_eq!(world.start(&smuggled).unwrap_err().to_string(), refused);
        let world = World { env, ..World::new() };
        assert_eq!(world.bind(TRUE, &world.path(), None).unwrap_err().to_string(), refused);
    }
}
