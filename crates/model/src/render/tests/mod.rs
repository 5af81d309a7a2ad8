//! What the tests of showing share.

mod properties;
mod threats;

use std::collections::BTreeMap;

use serde_json::{Value, json};
use unicode_properties::{GeneralCategory, UnicodeGeneralCategory};

use super::*;
use crate::action::ActionType;
use crate::binding::{BoundFile, BoundProgram};
use crate::canonical::sha256;
use crate::risk::Risk;

fn exec(command: &str) -> Action {
    Action::Exec(Exec { command: command.to_owned(), argv: None, cwd: None, env: BTreeMap::new(), binding: None })
}

fn custom(title: &str, preview: &str) -> Action {
    Action::Custom {
        action_type: ActionType::new("http_request").unwrap(),
        title: title.to_owned(),
        preview: preview.to_owned(),
        options: Vec::new(),
    }
}

fn tool(args: Value) -> Action {
    Action::Tool { name: "Write".to_owned(), category: Some("edit".to_owned()), args }
}

fn question(text: &str, options: &[&str]) -> Action {
    Action::Question { text: text.to_owned(), options: options.iter().map(|o| (*o).to_owned()).collect() }
}

fn plain(action: &Action) -> Showing {
    showing(action, None, &AgentWords::default())
}

fn section(showing: &Showing, label: &str) -> Shown {
    let found = showing.sections.iter().find(|s| s.label == label);
    found.unwrap_or_else(|| panic!("no section {label} in {showing:?}")).content.clone()
}

fn command(text: &str) -> Shown {
    section(&plain(&exec(text)), "Command")
}

fn details(text: &str) -> Shown {
    section(&plain(&custom("", text)), "Details")
}

fn assessed(spans: &[(usize, usize)]) -> Assessment {
    let reason = |(start, end): &(usize, usize)| RiskReason {
        code: "pipe_to_shell".to_owned(),
        message: "runs what it downloads".to_owned(),
        start: *start,
        end: *end,
        risk: Risk::Dangerous,
    };
    let Action::Exec(nothing) = exec("") else { unreachable!() };
    Assessment { risk: Risk::Dangerous, reasons: spans.iter().map(reason).collect(), ..Assessment::of(&nothing, None) }
}

#[test]
fn the_files_behind_a_command_are_shown_with_what_is_not_pinned() {
    let file = |path: &str, pinned| BoundFile { path: path.into(), id: "1:2".into(), digest: None, pinned };
    let Action::Exec(mut bound) = exec("make && ./x\u{202e}.sh") else { unreachable!() };
    bound.binding = Some(Box::new(Binding {
        folder: file("/work", true),
        workspace: None,
        shell: Some(file("/usr/bin/bash", true)),
        programs: vec![BoundProgram { word: "make".into(), file: file("/usr/bin/make", false) }],
        scripts: vec![file("/work/x\u{202e}.sh", false)],
        helpers: vec![],
        links: vec![],
        steering: None,
        environment: crate::canonical::sha256(b""),
    }));
    let shown = section(&plain(&Action::Exec(bound)), "Files").text;
    let expected = "the shell: /usr/bin/bash (pinned)\nmake: /usr/bin/make (not pinned; checked before and after)\nruns: /work/x\\u{202e}.sh (not pinned; checked before and after)";
    assert_eq!(shown, expected);
}

fn marked(shown: &Shown, is: impl Fn(&MarkKind) -> bool) -> Vec<&str> {
    let marks = shown.marks.iter().filter(|mark| is(&mark.kind));
    marks.map(|mark| shown.text.get(mark.start..mark.end).unwrap()).collect()
}

fn is_risk(kind: &MarkKind) -> bool {
    matches!(kind, MarkKind::Risk { .. })
}

fn codes(showing: &Showing) -> Vec<&str> {
    showing.notices.iter().map(|notice| notice.code.as_str()).collect()
}

/// Every string of a showing, with whether it is one line.
fn texts(showing: &Showing) -> Vec<(&str, bool)> {
    let mut all = vec![(showing.headline.as_str(), true)];
    for section in &showing.sections {
        let one_line = matches!(section.label.as_str(), "Folder" | "Tool" | "Action type" | "Argv");
        all.push((&section.content.text, one_line));
    }
    all.extend(showing.agent_says.iter().map(|said| (said.text.as_str(), false)));
    all.extend(showing.notices.iter().map(|notice| (notice.text.as_str(), true)));
    all
}

/// The same text in every place that someone else can write to.
fn everywhere(text: &str) -> Vec<Showing> {
    let words = AgentWords {
        title: Some(text.to_owned()),
        ask: Some(text.to_owned()),
        agent_id: Some(text.to_owned()),
        ..AgentWords::default()
    };
    let full = Action::Exec(Exec {
        command: text.to_owned(),
        argv: Some(vec![text.to_owned(), text.to_owned()]),
        cwd: Some(text.to_owned()),
        env: BTreeMap::from([(text.to_owned(), text.to_owned())]),
        binding: None,
    });
    let named = Action::Tool {
        name: text.to_owned(),
        category: Some(text.to_owned()),
        args: json!({ text: [text, { "x": text }], "n": 1 }),
    };
    let mut assessment = assessed(&[(0, text.len()), (1, 2), (text.len(), usize::MAX), (9, 3)]);
    for reason in &mut assessment.reasons {
        reason.message = text.to_owned();
    }
    [full, exec(text), named, question(text, &[text]), custom(text, text)]
        .iter()
        .map(|action| showing(action, Some(&assessment), &words))
        .collect()
}

fn must_be_spelled(c: char) -> bool {
    let ignorable = matches!(u32::from(c),
        0x34F | 0x115F | 0x1160 | 0x17B4 | 0x17B5 | 0x180B..=0x180F | 0x2065 | 0x3164 | 0xFE00..=0xFE0F | 0xFFA0
        | 0xFFF0..=0xFFF8 | 0x1BCA0..=0x1BCA3 | 0x1D173..=0x1D17A | 0xE0000..=0xE0FFF);
    let category = match c.general_category() {
        GeneralCategory::SpaceSeparator => c != ' ',
        GeneralCategory::Control => c != '\n',
        GeneralCategory::Format
        | GeneralCategory::LineSeparator
        | GeneralCategory::ParagraphSeparator
        | GeneralCategory::PrivateUse
        | GeneralCategory::Surrogate
        | GeneralCategory::Unassigned => true,
        _ => false,
    };
    ignorable || category
}
