//! What holds for any text.

use proptest::prelude::*;

use super::*;

/// Text with everything in it that the renderer treats in its own way.
fn nasty() -> impl Strategy<Value = String> {
    let parts = prop_oneof![
        any::<String>(),
        "[a-z ./-]{0,30}",
        Just("\\u{202e}".to_owned()),
        Just("\u{202e}\u{200b}\u{301}".to_owned()),
        Just("password='hunter2' ".to_owned()),
        Just("\r\n\t\u{1b}".to_owned()),
        Just("p\u{430}ypal.com".to_owned()),
        (1usize..300).prop_map(|n| "\n".repeat(n)),
        (1usize..300).prop_map(|n| " ".repeat(n)),
    ];
    proptest::collection::vec(parts, 0..12).prop_map(|parts| parts.concat())
}

fn check_marks(shown: &Shown) {
    for mark in &shown.marks {
        assert!(mark.start <= mark.end && shown.text.get(mark.start..mark.end).is_some());
    }
    assert_eq!(shown.folds.len(), shown.marks.iter().filter(|mark| mark.kind == MarkKind::Folded).count());
}

proptest! {
    #[test]
    fn threat_01_headline_ignores_the_agents_words(
        title in nasty(), other in nasty(), ask in nasty(), agent_id in nasty(), preview in nasty(),
    ) {
        let words = AgentWords { title: Some(other), ask: Some(ask), agent_id: Some(agent_id), ..AgentWords::default() };
        let command = exec(&preview);
        for (said, silent) in [(custom(&title, &preview), custom("", &preview)), (command.clone(), command)] {
            let said = showing(&said, None, &words);
            let silent = plain(&silent);
            prop_assert_eq!(said.headline, silent.headline);
            prop_assert_eq!(said.sections, silent.sections);
        }
    }

    #[test]
    fn threat_02_every_risk_span_is_in_the_text(
        before in "[a-z\n]{0,6000}", risky in "[A-Z]{1,200}", after in "[a-z\n]{0,6000}",
    ) {
        let text = format!("{before}{risky}{after}");
        let span = (before.len(), before.len() + risky.len());
        let whole = showing(&exec(&text), Some(&assessed(&[span])), &AgentWords::default());
        let shown = section(&whole, "Command");
        prop_assert_eq!(marked(&shown, is_risk), [risky.as_str()]);
        prop_assert!(shown.folds.is_empty());

        let mut folded = Document::default();
        folded.push_text(&text, Style::Block, &[]);
        folded.overlays.push(risk(&text, &assessed(&[span]).reasons[0]));
        let folded = folded.folded(Limit::STRING).finish();
        prop_assert_eq!(marked(&folded, is_risk), [risky.as_str()]);
        prop_assert!(text.len() < 2000 || !folded.folds.is_empty());
        for fold in &folded.folds {
            let label = format!("[… {} character", count(fold.chars));
            prop_assert!(folded.text.get(fold.at..).unwrap().starts_with(&label));
        }
        check_marks(&folded);
    }

    #[test]
    fn threat_02_what_is_shown_and_what_is_hidden_is_the_whole(text in "([a-zé]{1,30} ){200,600}") {
        let shown = details(&text);
        let mut length = shown.text.chars().count();
        for (fold, label) in shown.folds.iter().zip(marked(&shown, |kind| *kind == MarkKind::Folded)) {
            length += fold.chars;
            length -= label.chars().count();
        }
        prop_assert_eq!(length, text.chars().count());
    }

    #[test]
    fn threat_04_no_control_character_is_shown(text in nasty()) {
        for shown in everywhere(&text) {
            for (out, one_line) in texts(&shown) {
                let control = |c: char| c.is_control() && (one_line || c != '\n');
                prop_assert!(!out.contains(control), "{:?}", out);
                prop_assert!(!out.contains(|c| c != '\n' && must_be_spelled(c)), "{:?}", out);
            }
            for content in shown.sections.iter().map(|s| &s.content).chain(&shown.agent_says) {
                check_marks(content);
            }
        }
    }

    #[test]
    fn plain_text_is_shown_as_it_is(text in "([a-zA-Zäß日本]{1,9}[,.]?[ \n]){0,60}[a-z]") {
        let whole = plain(&exec(&text));
        let as_is = Shown { text: text.clone(), marks: Vec::new(), folds: Vec::new() };
        prop_assert_eq!(section(&whole, "Command"), as_is);
        prop_assert_eq!(escape_line(&text), text.replace('\n', "\\n"));
        prop_assert_eq!(whole.notices, []);
    }

    /// Taken as a source, what is shown in place of something else is shown as an imitation.
    #[test]
    fn threat_04_what_stands_for_something_cannot_be_written_by_an_agent(
        text in "(a|\\\\|\\\\u\\{|\u{200b}|\u{7}|\u{202e}| {30}|\\[… |\u{e0041}){1,9}",
    ) {
        let shown = escape_line(&text);
        prop_assert!(shown == text || escape_line(&shown) != shown, "{}", shown);
    }
}
