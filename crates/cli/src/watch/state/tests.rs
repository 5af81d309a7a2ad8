//! The live list driven by hand: keys and news in, effects and selection out.

use serde_json::json;

use super::*;
use crate::record::tests::sample;
use crate::watch::news::tests::news;

const START: i64 = 1_000_000;

fn item(id: &str, created_at: i64) -> Record {
    let mut value = sample(id);
    value["created_at"] = json!(created_at);
    Record::read(&value).unwrap()
}

fn long(id: &str, created_at: i64, lines: usize) -> Record {
    let mut value = sample(id);
    value["created_at"] = json!(created_at);
    value["showing"]["sections"][0]["content"] =
        json!({"text": vec!["line"; lines].join("\n"), "marks": [], "folds": []});
    Record::read(&value).unwrap()
}

fn state(items: Vec<Record>) -> State {
    State::new(items, 80, 24, START)
}

fn press(state: &mut State, keys: &str) -> Vec<Effect> {
    let now = state.now_ms;
    keys.chars().flat_map(|key| state.take(now, Input::Key(key_of(key)))).collect()
}

fn key_of(c: char) -> Key {
    match c {
        '\n' => Key::Enter,
        '\u{8}' => Key::Backspace,
        '\u{1b}' => Key::Escape,
        '\u{3}' => Key::Interrupt,
        c => Key::Char(c),
    }
}

fn allow(id: &str) -> Effect {
    Effect::Decide { id: id.to_owned(), body: json!({"decision": "allow-once"}) }
}

fn ended(id: &str) -> Input {
    let mut value = sample(id);
    value["status"] = json!("denied");
    value["decision"] = json!({"code": "3", "by": "ann"});
    Input::News(Box::new(news(9, "resolved", Some(value))))
}

fn asked(id: &str, created_at: i64) -> Input {
    let mut value = sample(id);
    value["created_at"] = json!(created_at);
    Input::News(Box::new(news(8, "requested", Some(value))))
}

#[test]
fn the_oldest_is_first_and_keys_move_the_selection() {
    let mut state = state(vec![item("b", 2), item("c", 3), item("a", 1)]);
    assert_eq!(state.selected.as_deref(), Some("a"));
    for (keys, expected) in [("j", "b"), ("jjj", "c"), ("k", "b"), ("kkk", "a")] {
        assert_eq!(press(&mut state, keys), []);
        assert_eq!(state.selected.as_deref(), Some(expected), "{keys}");
    }
}

#[test]
fn a_allows_what_is_shown_whole() {
    let mut state = state(vec![item("a", 1), item("b", 2)]);
    assert_eq!(press(&mut state, "ja"), [allow("b")]);
    assert_eq!(press(&mut state, "a"), [], "once only, while the answer is under way");
    state.take(START, Input::Answered { id: "b".into(), error: None });
    assert_eq!(state.items.len(), 1);
}

#[test]
fn what_is_too_long_for_the_screen_is_opened_and_read_first() {
    let mut state = state(vec![long("a", 1, 60)]);
    assert_eq!(press(&mut state, "a"), []);
    assert_eq!(state.mode, Mode::Open { scroll: 0 });
    assert_eq!(press(&mut state, "a "), [], "still not read to the end");
    assert_eq!(press(&mut state, "n"), []);
    assert!(matches!(state.mode, Mode::Open { .. }));
    assert_eq!(press(&mut state, "     a"), [allow("a")]);
}

#[test]
fn what_has_folds_is_opened_first() {
    let mut value = sample("a");
    value["showing"]["sections"][0]["content"]["folds"] = json!([{"bytes": 9}]);
    let mut state = state(vec![Record::read(&value).unwrap()]);
    assert_eq!(press(&mut state, "a"), []);
    assert!(matches!(state.mode, Mode::Open { .. }));
    assert_eq!(press(&mut state, "a"), [allow("a")]);
}

#[test]
fn having_read_one_says_nothing_of_the_next() {
    let mut state = state(vec![item("a", 1), long("b", 2, 60)]);
    assert_eq!(press(&mut state, "ja"), []);
    assert!(matches!(state.mode, Mode::Open { .. }));
}

#[test]
fn d_asks_for_a_reason_that_may_be_empty() {
    let deny = |reason: Option<&str>| {
        let body = match reason {
            Some(reason) => json!({"decision": "deny", "note": reason}),
            None => json!({"decision": "deny"}),
        };
        [Effect::Decide { id: "a".into(), body }]
    };
    assert_eq!(press(&mut state(vec![item("a", 1)]), "d\n"), deny(None));
    assert_eq!(press(&mut state(vec![item("a", 1)]), "dno!\u{8}w q\n"), deny(Some("now q")));
    assert_eq!(press(&mut state(vec![long("a", 1, 60)]), "d\n"), deny(None), "a no needs no reading");
    let mut back = state(vec![item("a", 1)]);
    assert_eq!(press(&mut back, "dxx\u{1b}"), []);
    assert_eq!(back.mode, Mode::List);
}

#[test]
fn n_needs_words() {
    let mut state = state(vec![item("a", 1)]);
    assert_eq!(press(&mut state, "n \n"), []);
    assert!(matches!(state.mode, Mode::Prompt { .. }));
    let body = json!({"decision": "allow-once", "note": "ok"});
    assert_eq!(press(&mut state, "ok\n"), [Effect::Decide { id: "a".into(), body }]);
}

#[test]
fn pasted_text_is_words_and_never_a_command() {
    let mut state = state(vec![item("a", 1)]);
    assert_eq!(state.take(START, Input::Key(Key::Paste("a\nq".into()))), []);
    press(&mut state, "d");
    state.take(START, Input::Key(Key::Paste("x\ny".into())));
    let body = json!({"decision": "deny", "note": "x y"});
    assert_eq!(press(&mut state, "\n"), [Effect::Decide { id: "a".into(), body }]);
}

#[test]
fn decided_elsewhere_goes_away_and_says_so() {
    let mut state = state(vec![item("a", 1), item("b", 2)]);
    assert_eq!(state.take(START, ended("a")), []);
    assert_eq!(state.selected.as_deref(), Some("b"));
    assert!(state.last.contains("denied by ann"), "{}", state.last);
    state.take(START, asked("c", 3));
    assert_eq!(state.items.len(), 2);
    assert_eq!(state.selected.as_deref(), Some("b"), "a newcomer does not move the selection");
}

#[test]
fn a_request_that_slips_under_the_finger_is_not_decided() {
    let mut swapped = state(vec![item("a", 1), item("b", 2)]);
    swapped.take(START, ended("a"));
    assert_eq!(swapped.take(START + 100, Input::Key(Key::Char('a'))), []);
    assert_eq!(swapped.take(START + 100, Input::Key(Key::Char('d'))), []);
    assert_eq!(swapped.mode, Mode::List);
    assert_eq!(swapped.take(START + 1_000, Input::Key(Key::Char('a'))), [allow("b")]);
    let mut empty = state(Vec::new());
    empty.take(START, asked("c", 3));
    assert_eq!(empty.take(START + 100, Input::Key(Key::Char('a'))), []);
    assert_eq!(empty.take(START + 1_000, Input::Key(Key::Char('a'))), [allow("c")]);
}

#[test]
fn words_for_a_request_that_ended_are_not_commands_for_the_next() {
    let mut state = state(vec![item("a", 1), item("b", 2)]);
    press(&mut state, "dno");
    state.take(START, ended("a"));
    assert_eq!(state.take(START + 5_000, Input::Key(Key::Char('a'))), []);
    assert!(matches!(state.mode, Mode::Prompt { .. }));
    assert_eq!(state.take(START + 5_000, Input::Key(Key::Enter)), []);
    assert_eq!(state.mode, Mode::List);
}

#[test]
fn news_without_its_request_asks_for_the_list() {
    let mut state = state(vec![item("a", 1)]);
    let mut bare = news(9, "requested", None);
    bare.approval_id = Some("b".into());
    assert_eq!(state.take(START, Input::News(Box::new(bare))), [Effect::Refresh]);
    assert_eq!(state.take(START, Input::News(Box::new(news(10, "policy_put", None)))), []);
}

#[test]
fn a_lost_connection_shows_until_the_next_list() {
    let mut state = state(vec![item("a", 1)]);
    state.take(START, Input::Lost("gone".into()));
    assert!(state.lost.is_some());
    state.take(START, Input::Listed(vec![item("b", 2)]));
    assert_eq!((state.lost.is_none(), state.selected.as_deref()), (true, Some("b")));
}

#[test]
fn a_refused_decision_is_told_and_can_be_tried_again() {
    let mut state = state(vec![item("a", 1)]);
    press(&mut state, "a");
    let effects = state.take(START, Input::Answered { id: "a".into(), error: Some("nope".into()) });
    assert_eq!(effects, [Effect::Refresh]);
    assert!(state.last.contains("nope"));
    assert_eq!(press(&mut state, "a"), [allow("a")]);
}

#[test]
fn q_quits_except_in_words_and_an_interrupt_always_does() {
    let mut state = state(vec![item("a", 1)]);
    assert_eq!(press(&mut state, "dq"), []);
    assert_eq!(press(&mut state, "\u{3}"), [Effect::Interrupted]);
    press(&mut state, "\u{1b}");
    assert_eq!(press(&mut state, "\nq"), [Effect::Quit]);
}
