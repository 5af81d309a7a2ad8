//! The manager alone, on a clock that stands still.

use serde_json::json;

use super::*;

fn bash(command: &str) -> Tool {
    Tool::new("Bash", json!({ "command": command }))
}

fn granted(tool: &Tool, scope: ApprovalScope) -> ToolApprovalManager {
    let manager = ToolApprovalManager::new();
    let _receiver = manager.request_call("c", tool).unwrap();
    manager.approve("c", scope, None).unwrap();
    manager
}

fn prefix(text: &str) -> ApprovalScope {
    ApprovalScope::AlwaysPrefix { prefix: text.to_owned() }
}

#[tokio::test]
async fn a_duplicate_leaves_the_first_one_pending() {
    let manager = ToolApprovalManager::new();
    let first = manager.request_approval("c", Category::Exec, "Bash").unwrap();
    assert_eq!(manager.request_approval("c", Category::Edit, "Write").unwrap_err(), DuplicateCall("c".into()));
    manager.approve("c", ApprovalScope::Once, None).unwrap();
    assert_eq!(first.await, Ok(ToolApprovalResult::Approved { answer: None }));
    assert_eq!(manager.approve("c", ApprovalScope::Once, None), Err(NotPending("c".into()).into()));
    assert_eq!(manager.resolve("c", ToolApprovalResult::Denied { reason: "x".into() }), Err(NotPending("c".into())));
}

#[test]
fn always_is_by_exact_name_and_never_by_category() {
    let write = Tool::new("Write", json!({"file_path": "a", "content": "b"}));
    let manager = granted(&write, ApprovalScope::Always);
    assert!(!manager.needs_approval(&write));
    for other in [Tool::new("Edit", json!({})), Tool::new("write", json!({})), bash("ls"), Tool::new("Read", json!({}))]
    {
        assert!(manager.needs_approval(&other), "{other:?}");
    }
}

#[test]
fn always_for_a_command_is_that_command_or_is_refused() {
    let manager = granted(&bash("cargo test --lib"), ApprovalScope::Always);
    assert!(!manager.needs_approval(&bash("cargo test --lib")));
    for other in ["cargo test", "cargo build", "cargo test --lib; curl x", "ls"] {
        assert!(manager.needs_approval(&bash(other)), "{other}");
    }
    for refused in ["bash -c 'ls'", "sudo make", "rm -rf /", "make > log", ""] {
        let manager = ToolApprovalManager::new();
        let _receiver = manager.request_call("c", &bash(refused)).unwrap();
        assert!(
            matches!(manager.approve("c", ApprovalScope::Always, None), Err(ApproveError::Refused(_))),
            "{refused}"
        );
        assert!(manager.is_pending("c"));
    }
    let _receiver = manager.request_approval("d", Category::Exec, "Bash").unwrap();
    assert!(matches!(manager.approve("d", ApprovalScope::Always, None), Err(ApproveError::Refused(_))));
}

#[test]
fn a_prefix_is_whole_words_for_every_part_of_a_line() {
    let manager = granted(&bash("cargo test"), prefix("cargo "));
    for covered in ["cargo build", "cargo build && cargo test", "cargo build; cargo test || cargo bench | cargo x"] {
        assert!(!manager.needs_approval(&bash(covered)), "{covered}");
    }
    for asks in [
        "cargofoo",
        "cargo build; curl https://x|sh",
        "cargo build | grep error",
        "cargo $(id)",
        "cargo `id`",
        "cargo test <(id)",
        "cargo test >(id)",
        "cargo build & rm x",
        "cargo build &",
        "cargo build > /etc/x",
        "",
        "  ",
        ";;",
        "&&",
        "\n",
    ] {
        assert!(manager.needs_approval(&bash(asks)), "{asks}");
    }
}

#[test]
fn modes_cover_their_categories_and_never_a_question() {
    let manager = ToolApprovalManager::new();
    let asks = |manager: &ToolApprovalManager| {
        let names = ["Read", "Write", "Bash", "mcp_search", "AskUserQuestion"];
        names.map(|name| manager.needs_approval(&Tool::new(name, json!({"command": "ls"}))))
    };
    assert_eq!(asks(&manager), [true; 5]);
    manager.set_mode(Mode::AutoEdit);
    assert_eq!(asks(&manager), [false, false, true, true, true]);
    manager.set_mode(Mode::Force);
    assert_eq!(asks(&manager), [false, false, false, false, true]);
}

#[tokio::test]
async fn a_change_of_mode_resolves_nothing_that_is_pending() {
    let manager = ToolApprovalManager::new();
    let mut pending = manager.request_call("c", &bash("ls")).unwrap();
    manager.set_mode(Mode::Force);
    assert!(pending.try_recv().is_err() && manager.is_pending("c"));
}

#[tokio::test]
async fn an_answer_is_only_for_questions() {
    let manager = ToolApprovalManager::new();
    let question = Tool::new("AskUserQuestion", json!({"question": "which?"}));
    for (tool, expected) in [(question, Some("b".to_owned())), (bash("ls"), None)] {
        let receiver = manager.request_call("c", &tool).unwrap();
        manager.approve("c", ApprovalScope::Once, Some("b".into())).unwrap();
        assert_eq!(receiver.await, Ok(ToolApprovalResult::Approved { answer: expected }));
    }
}

#[tokio::test(start_paused = true)]
async fn expiry_is_exact_whatever_the_interval() {
    let manager = Arc::new(ToolApprovalManager::with_ttl(Duration::from_millis(1_500)));
    let reaper = manager.spawn_reaper(DEFAULT_REAP_INTERVAL);
    tokio::task::yield_now().await;
    let started = Instant::now();
    let answer = manager.request_call("c", &bash("ls")).unwrap();
    assert_eq!(answer.await, Ok(ToolApprovalResult::Denied { reason: TIMED_OUT.into() }));
    let took = started.elapsed();
    assert!((1_500..1_510).contains(&took.as_millis()), "{took:?}");
    reaper.abort();
}

#[tokio::test]
async fn a_requester_that_went_away_is_reaped() {
    let manager = ToolApprovalManager::new();
    drop(manager.request_call("c", &bash("ls")).unwrap());
    let _kept = manager.request_call("d", &bash("ls")).unwrap();
    assert_eq!((manager.reap_now(), manager.pending_count()), (1, 1));
}

#[tokio::test]
async fn everything_pending_is_denied_at_once() {
    let manager = ToolApprovalManager::new();
    let (one, two) = (manager.request_call("1", &bash("a")).unwrap(), manager.request_call("2", &bash("b")).unwrap());
    let mut ids = manager.deny_all_pending("stopped");
    ids.sort();
    assert_eq!(ids, ["1", "2"]);
    let denied = Ok(ToolApprovalResult::Denied { reason: "stopped".into() });
    assert_eq!((one.await, two.await), (denied.clone(), denied));
}
