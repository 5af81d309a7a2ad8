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
    keys.chars().flat_map(|key| state.take(now, one(key_of(key)))).collect()
}

fn one(key: Key) -> Input {
    Input::Keys(Burst { keys: vec![key] })
}

fn key_of(c: char) -> Key {
    match c {
        '\n' => Key::Enter,
        '\u{8}' => Key::Backspace,
        '\u{1b}' => Key::Escape,
        '\u{3}' => Key::Interrupt,
        c => Key::Plain(c),
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
    assert_eq!(state.take(START, one(Key::Paste("a\nq".into()))), []);
    press(&mut state, "d");
    state.take(START, one(Key::Paste("x\ny".into())));
    assert!(state.last.contains("line ends"), "{}", state.last);
    state.take(START, one(Key::Paste("x y\n".into())));
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
    assert_eq!(swapped.take(START + 100, one(Key::Plain('a'))), []);
    assert_eq!(swapped.take(START + 100, one(Key::Plain('d'))), []);
    assert_eq!(swapped.mode, Mode::List);
    assert_eq!(swapped.take(START + 1_000, one(Key::Plain('a'))), [allow("b")]);
    let mut empty = state(Vec::new());
    empty.take(START, asked("c", 3));
    assert_eq!(empty.take(START + 100, one(Key::Plain('a'))), []);
    assert_eq!(empty.take(START + 1_000, one(Key::Plain('a'))), [allow("c")]);
}

#[test]
fn words_for_a_request_that_ended_are_not_commands_for_the_next() {
    let mut state = state(vec![item("a", 1), item("b", 2)]);
    press(&mut state, "dno");
    state.take(START, ended("a"));
    assert_eq!(state.take(START + 5_000, one(Key::Plain('a'))), []);
    assert!(matches!(state.mode, Mode::Prompt { .. }));
    assert_eq!(state.take(START + 5_000, one(Key::Enter)), []);
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

fn dangerous(id: &str) -> Record {
    let mut value = sample(id);
    value["risk"] = json!("dangerous");
    value["number"] = json!("042");
    Record::read(&value).unwrap()
}

fn offered(id: &str) -> Record {
    let mut value = sample(id);
    value["answers"] = json!([
        {"decision": "allow-once", "words": "this, once"},
        {"decision": "allow-session", "words": "for this session, just `make`"},
        {"decision": "allow-always", "words": "for 30 days, just `make`"},
        {"code": "2", "words": "for this session, every command"},
        {"code": "6", "words": "until revoked, every command"},
    ]);
    Record::read(&value).unwrap()
}

#[test]
fn threat_99_a_key_with_others_around_it_does_not_decide() {
    use crate::keys::Decoder;
    for bytes in [
        &b"\x01"[..],
        b"\x13",
        b"\x1ba",
        b"\x1b[97;5u",
        b"\x1bOa",
        b"\x1b[15~",
        b"a\r",
        b"aa",
        b"da\r",
        b"na\r",
        b"\x1b[200~a\x1b[201~",
        b"\x1b[Aa",
    ] {
        let mut state = state(vec![item("a", 1)]);
        let effects = state.take(START, Input::Keys(Decoder::default().decode(bytes)));
        assert!(effects.is_empty() && !matches!(state.mode, Mode::Prompt { .. }), "{bytes:?}: {effects:?}");
    }
    let mut three = state(vec![item("a", 1), item("b", 2), item("c", 3)]);
    three.take(START, Input::Keys(Decoder::default().decode(b"\x1b[B\x1b[B")));
    assert_eq!(three.selected.as_deref(), Some("c"), "moving is no decision");
}

#[test]
fn threat_54_what_is_dangerous_takes_its_number_which_the_gate_judges() {
    let fresh = || state(vec![dangerous("a"), item("b", 2000)]);
    let sent = |body: Value| [Effect::Decide { id: "a".into(), body }];
    assert_eq!(press(&mut fresh(), "a"), []);
    assert_eq!(press(&mut fresh(), "aaaa\n"), [], "no letter is a digit");
    assert_eq!(press(&mut fresh(), "a042\n"), sent(json!({"decision": "allow-once", "number": "042"})));
    assert_eq!(press(&mut fresh(), "a041\n"), sent(json!({"decision": "allow-once", "number": "041"})));
    assert_eq!(press(&mut fresh(), "nok\n"), []);
    let noted = sent(json!({"decision": "allow-once", "note": "ok", "number": "042"}));
    assert_eq!(press(&mut fresh(), "nok\n042\n"), noted);
    let mut wrong = fresh();
    press(&mut wrong, "a041\n");
    let error = Some("that is not its number".to_owned());
    assert_eq!(wrong.take(START, Input::Answered { id: "a".into(), error }), [Effect::Refresh]);
    assert!(wrong.last.contains("not its number"), "{}", wrong.last);
    assert_eq!(press(&mut wrong, "a042\n"), sent(json!({"decision": "allow-once", "number": "042"})));
    let deny = Effect::Decide { id: "a".into(), body: json!({"decision": "deny"}) };
    assert_eq!(press(&mut fresh(), "d\n"), [deny], "a no takes none");
    assert_eq!(press(&mut fresh(), "ja"), [allow("b")], "and the others are as they were");
}

#[test]
fn what_is_wide_is_said_first_and_meant() {
    let wide = |body: Value| [Effect::Decide { id: "a".into(), body }];
    assert_eq!(press(&mut state(vec![offered("a")]), "w2\n"), []);
    assert_eq!(press(&mut state(vec![offered("a")]), "w2\n\n"), []);
    assert_eq!(press(&mut state(vec![offered("a")]), "w2\nno\n"), []);
    assert_eq!(press(&mut state(vec![offered("a")]), "w1\nyes\n"), [], "there is no such thing");
    assert_eq!(press(&mut state(vec![offered("a")]), "w2\nyes\n"), wide(json!({"code": "2"})));
    assert_eq!(press(&mut state(vec![offered("a")]), "w6\nyes\n"), wide(json!({"code": "6"})));
    assert_eq!(press(&mut state(vec![offered("a")]), "ws\nyes\n"), wide(json!({"decision": "allow-session"})));
    let mut shown = state(vec![offered("a")]);
    press(&mut shown, "w");
    let lines: Vec<String> = view::lines(&shown).into_iter().map(|line| line.text).collect();
    let at = |words: &str| lines.iter().position(|line| line.contains(words)).unwrap();
    assert!(at("just `make`") < at("every command"), "{lines:?}");
    assert_eq!(press(&mut state(vec![item("a", 1)]), "w"), [], "nothing is offered");
}
