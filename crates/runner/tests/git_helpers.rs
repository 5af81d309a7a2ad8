//! What a repository makes `git` run is found without running it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code: a broken expectation is a failed test"
)]

mod common;

use std::fs;
use std::os::unix::fs::symlink;

use common::{World, binding};
use countersign_runner::Change;

fn repository(config: &str) -> World {
    let world = World::new();
    init(&world, ".git", config);
    world
}

fn init(world: &World, git: &str, config: &str) {
    world.file(&format!("{git}/HEAD"), "ref: refs/heads/main\n");
    fs::create_dir_all(world.path().join(git).join("objects")).unwrap();
    world.file(&format!("{git}/config"), config);
}

fn helpers(world: &World, text: &str) -> Vec<String> {
    binding(&world.text(text)).helpers.clone()
}

#[test]
fn settings_that_run_programs_are_named() {
    for (config, key) in [
        ("[core]\nfsmonitor = .git/evil", "core.fsmonitor"),
        ("[core]\nfsmonitor = \"rm -rf ~ #\"", "core.fsmonitor"),
        ("[CORE]\nPager = evil", "core.pager"),
        ("[core]\npager = cat | evil", "core.pager"),
        ("[pager]\nstatus = evil", "pager.status"),
        ("[core]\neditor = evil", "core.editor"),
        ("[core]\nsshCommand = evil", "core.sshcommand"),
        ("[core]\nhooksPath = .husky", "core.hookspath"),
        ("[core]\ngitProxy = evil", "core.gitproxy"),
        ("[core]\naskPass = evil", "core.askpass"),
        ("[diff]\nexternal = evil", "diff.external"),
        ("[diff \"pdf\"]\ntextconv = evil", "diff.pdf.textconv"),
        ("[diff \"pdf\"]\ncommand = evil", "diff.pdf.command"),
        ("[filter \"x\"]\nclean = evil", "filter.x.clean"),
        ("[filter \"x\"]\nsmudge = evil", "filter.x.smudge"),
        ("[filter.x]\nprocess = evil", "filter.x.process"),
        ("[merge \"x\"]\ndriver = evil", "merge.x.driver"),
        ("[alias]\nlg = !evil", "alias.lg"),
        ("[alias]\nstatus = log", "alias.status"),
        ("[alias \"lg\"]\ncommand = !evil", "alias.lg.command"),
        ("[gpg]\nprogram = evil", "gpg.program"),
        ("[gpg \"ssh\"]\nprogram = evil", "gpg.ssh.program"),
        ("[credential]\nhelper = !evil", "credential.helper"),
        ("[credential \"https://x\"]\nhelper = /tmp/evil", "credential.https://x.helper"),
        ("[interactive]\ndiffFilter = evil", "interactive.difffilter"),
        ("[remote \"o\"]\nuploadpack = evil", "remote.o.uploadpack"),
        ("[remote \"o\"]\nreceivepack = evil", "remote.o.receivepack"),
        ("[remote \"o\"]\nurl = ext::sh -c evil", "remote.o.url"),
        ("[url \"ext::sh -c evil\"]\ninsteadOf = https://x/", "url.ext::sh -c evil.insteadof"),
        ("[sequence]\neditor = evil", "sequence.editor"),
        ("[submodule \"s\"]\nupdate = !evil", "submodule.s.update"),
        ("[trailer \"t\"]\ncommand = evil", "trailer.t.command"),
        ("[core]\nfsmonitor = \\\n  evil", "core.fsmonitor"),
        ("[core]\nfsmonitor = true\nfsmonitor = evil", "core.fsmonitor"),
        ("[core] fsmonitor = evil ; [core] fsmonitor = true", "core.fsmonitor"),
    ] {
        let world = repository(config);
        let found = helpers(&world, "git status");
        assert_eq!(found.len(), 1, "{config}: {found:?}");
        let file = world.path().join(".git/config");
        assert!(found[0].contains(&format!("`{key}` in `{}`", file.display())), "{config}: {found:?}");
    }
}

#[test]
fn ordinary_settings_are_not() {
    for config in [
        "",
        "[core]\nrepositoryformatversion = 0\nfilemode = true\nbare = false\n[remote \"origin\"]\nurl = https://x/y.git\n\
         fetch = +refs/heads/*:refs/remotes/origin/*\n[branch \"main\"]\nremote = origin\nmerge = refs/heads/main",
        "[core]\nfsmonitor = true\n[core]\nfsmonitor\n[core]\nfsmonitor = false",
        "[core]\npager = cat\n[pager]\nlog = false\ndiff",
        "[core]\nhooksPath =",
        "[remote \"o\"]\nurl = git@host:a/b.git\npushurl = ssh://git@[::1]/x",
        "[credential]\nhelper = cache --timeout=60\nhelper =",
        "[alias]\nlg = log --oneline",
        "# [core]\n; fsmonitor = evil",
        "[user]\nname = \"fsmonitor = evil\"",
        "[submodule \"s\"]\nupdate = rebase\nurl = ../s",
    ] {
        assert_eq!(helpers(&repository(config), "git status"), Vec::<String>::new(), "{config}");
    }
    assert!(helpers(&repository("[core]\nfsmonitor = evil"), "ls -l; gitk").is_empty(), "no git, no question");
}

#[test]
fn every_way_to_call_git_is_looked_at() {
    let config = "[core]\nfsmonitor = evil";
    let world = repository(config);
    fs::create_dir_all(world.path().join("deep/er")).unwrap();
    init(&world, "other/.git", config);
    let plain = World::new();
    init(&plain, "sub/.git", config);
    for text in [
        "git status",
        "/usr/bin/git status",
        "env A=1 git status",
        "bash -c 'git status'",
        "ls | xargs git log",
        "x=$(git rev-parse HEAD)",
        "cd deep/er && git status",
        "git -C deep/er status",
    ] {
        assert_eq!(helpers(&world, text).len(), 1, "{text}");
    }
    for text in ["cd sub && git status", "git -C sub status", "git -C ./sub -c a.b=c log", "git --git-dir=sub/.git log"]
    {
        assert_eq!(helpers(&plain, text).len(), 1, "{text}");
    }
    assert!(helpers(&plain, "git status").is_empty());
}

#[test]
fn a_folder_that_looks_like_a_repository_is_one() {
    let world = World::new();
    init(&world, "fixtures", "[core]\nfsmonitor = evil");
    assert_eq!(helpers(&world, "cd fixtures && git status").len(), 1);
}

#[test]
fn worktrees_and_submodules_have_theirs() {
    let world = repository("[core]\nfsmonitor = evil");
    world.file("tree/.git", "gitdir: ../.git/worktrees/tree\n");
    world.file(".git/worktrees/tree/HEAD", "x");
    world.file(".git/worktrees/tree/commondir", "../..\n");
    world.file(".git/worktrees/tree/config.worktree", "[core]\nsshCommand = evil");
    let found = helpers(&world, "git -C tree status");
    assert!(found.iter().any(|said| said.contains("config.worktree")), "{found:?}");
    assert!(found.iter().any(|said| said.contains("core.fsmonitor")), "{found:?}");
    init(&world, ".git/modules/a/b", "[diff]\nexternal = evil");
    assert!(helpers(&world, "git status").iter().any(|said| said.contains("modules/a/b/config")));
    init(&world, ".git/modules/a/b/modules/c", "[diff]\nexternal = evil");
    assert!(helpers(&world, "git status").iter().any(|said| said.contains("modules/c/config")));
}

#[test]
fn what_a_configuration_includes_is_looked_at() {
    for (include, file) in [
        ("[include]\npath = more", ".git/more"),
        ("[include]\npath = ../outside.cfg", "outside.cfg"),
        ("[includeIf \"gitdir:/never/\"]\npath = more", ".git/more"),
    ] {
        let world = repository(include);
        world.file(file, "[core]\nfsmonitor = evil");
        let found = helpers(&world, "git status");
        assert_eq!(found.len(), 1, "{include}");
        assert!(found[0].contains(file.rsplit('/').next().unwrap()));
    }
    // One that includes itself ends.
    assert!(helpers(&repository("[include]\npath = config"), "git status").is_empty());
    let world = repository("[include]\npath = c0");
    for at in 0..20 {
        world.file(&format!(".git/c{at}"), &format!("[include]\npath = c{}", at + 1));
    }
    assert_eq!(helpers(&world, "git status").len(), 1, "too deep is said");
}

#[test]
fn what_cannot_be_understood_is_said() {
    assert!(helpers(&repository("[core\nx"), "git status")[0].contains("could not be understood at line"));
    assert!(helpers(&repository(&"# x\n".repeat(300_000)), "git status")[0].contains("over 1 MiB"));
    let long = format!("[core]\nfsmonitor = {}", "é".repeat(500));
    let found = helpers(&repository(&long), "git status");
    assert!(found[0].contains(&format!("`{}…`", "é".repeat(120))), "{found:?}");
    let many: String = (0..1000).map(|n| format!("[alias]\na{n} = !evil\n")).collect();
    assert_eq!(helpers(&repository(&many), "git status").len(), 64);
}

#[test]
fn a_hook_that_reading_runs_is_named() {
    let world = repository("");
    world.program(".git/hooks/pre-commit", "");
    assert!(helpers(&world, "git status").is_empty());
    world.program(".git/hooks/post-index-change", "");
    assert_eq!(helpers(&world, "git status").len(), 1);
}

#[test]
fn a_helper_that_appears_after_approval_is_a_change() {
    let world = repository("");
    let exec = world.text("git status");
    world.file(".git/config", "[core]\nfsmonitor = evil");
    let changes = world.changes(&exec);
    assert!(matches!(&changes[..], [Change::Helper(said)] if said.contains("core.fsmonitor")), "{changes:?}");
    // A link in the way is followed: git would.
    let linked = World::new();
    symlink(world.path().join(".git"), linked.path().join(".git")).unwrap();
    assert_eq!(helpers(&linked, "git status").len(), 1);
}
