//! What a person is shown of an action: the one rendering that every channel gets.
//!
//! Owns the sections and their labels. Masking finds secrets, `escape` judges characters, `fold` shortens;
//! `document` puts them together and knows every offset. Knows no channel and no markup: what comes out is
//! text, with marks on it.

mod answers;
mod document;
mod escape;
mod fold;
mod headline;
mod json;
mod lookalikes;
mod notice;
mod padding;
mod punycode;
mod scripts;
mod tally;

use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use self::document::{Document, Overlay};
use self::escape::Style;
use self::fold::Limit;
use crate::action::{Action, Exec};
use crate::binding::Binding;
use crate::canonical::Digest;
use crate::mask;
use crate::risk::{Assessment, RiskReason};

pub use self::answers::{AnswerWords, answers};
pub use self::escape::escape_line;

const AGENT_SAYS: &str = "Agent says";

/// What an agent says about itself and its request. Shown as its words, believed nowhere.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentWords {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// Where it says that this belongs: host, node, run.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Showing {
    /// One line, from the action alone: of a command what it does, and the command.
    pub headline: String,
    /// What a command does, in one sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sentence: Option<String>,
    pub sections: Vec<Section>,
    pub agent_says: Option<Shown>,
    pub notices: Vec<Notice>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Section {
    pub label: String,
    pub content: Shown,
}

/// Text that is safe to show as it is, in any channel that shows text as text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shown {
    pub text: String,
    /// In order of their start, the outer before the inner.
    pub marks: Vec<Mark>,
    pub folds: Vec<Fold>,
}

/// A remark on `text[start..end]`, in bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    pub start: usize,
    pub end: usize,
    #[serde(flatten)]
    pub kind: MarkKind,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum MarkKind {
    Risk { code: String, message: String },
    Escaped,
    Padding,
    MixedScript,
    Masked,
    Folded,
}

/// A part that is not shown: `at` is the byte offset of the sign that says so, the digest that of what was
/// written there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fold {
    pub at: usize,
    pub chars: usize,
    pub lines: usize,
    pub digest: Digest,
}

/// Something a person should know about a section before answering.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    pub code: String,
    pub section: String,
    pub text: String,
}

/// Everything a person sees of an action.
pub fn showing(action: &Action, assessment: Option<&Assessment>, words: &AgentWords) -> Showing {
    let mut card = Card::default();
    let mut title = None;
    match action {
        Action::Exec(exec) => card.exec(exec, assessment),
        Action::Tool { name, category, args } => {
            let mut tool = Document::default();
            headline::push_tool(&mut tool, name, category.as_deref());
            card.section("Tool", tool.folded(Limit::SECTION));
            card.section("Arguments", json::document(args));
        }
        Action::Question { text, options } => {
            card.text("Question", text, Style::Block);
            card.options(options);
        }
        Action::Custom { action_type, title: said, preview, options } => {
            card.text("Action type", action_type.as_str(), Style::Line);
            card.text("Details", preview, Style::Block);
            card.options(options);
            title = Some(said.as_str());
        }
    }
    let agent_says = card.agent_says(title, words);
    let sentence = assessment.and_then(Assessment::shown_sentence);
    let headline = headline::headline(action, sentence.as_deref());
    Showing { headline, sentence, sections: card.sections, agent_says, notices: card.notices }
}

#[derive(Default)]
struct Card {
    sections: Vec<Section>,
    notices: Vec<Notice>,
}

impl Card {
    fn exec(&mut self, exec: &Exec, assessment: Option<&Assessment>) {
        let secrets = mask::find(&exec.command);
        let mut command = Document::default();
        command.push_text(&exec.command, Style::Block, &secrets);
        let told = assessment.map(Assessment::told_reasons).unwrap_or_default();
        // What is told once may be true of several places in the text.
        let all = assessment.map(|assessment| assessment.reasons.as_slice()).unwrap_or_default();
        let marked = all.iter().filter(|one| one.end > 0 && told.iter().any(|reason| reason.message == one.message));
        command.overlays.extend(marked.map(|reason| risk(&exec.command, reason)));
        for reason in told.iter().filter(|reason| reason.end == 0) {
            let about = if exec.env.is_empty() { "Command" } else { "Environment" };
            self.notice(about, &escape_line(&reason.code), &line(&reason.message));
        }
        notice::masked_risks("Command", &command, &secrets, &mut self.notices);
        // Never folded: a command too long to be read whole is refused before it gets here.
        self.section("Command", command);
        if let Some(words) = &exec.argv {
            self.section("Argv", fold::fitted(|limit| headline::words(words, true, limit)));
            if letters(&words.concat()) != letters(&exec.command) {
                self.notice("Argv", "argv_differs", "the command text is not what runs: the words under Argv are");
            }
        }
        if let Some(folder) = &exec.cwd {
            self.text("Folder", folder, Style::Line);
        }
        if !exec.env.is_empty() {
            self.section("Environment", fold::fitted(|limit| environment(&exec.env, limit)));
        }
        if let Some(binding) = &exec.binding {
            self.section("Files", fold::fitted(|limit| files(binding, limit)));
        }
    }

    fn options(&mut self, options: &[String]) {
        if options.is_empty() {
            return;
        }
        self.section("Options", fold::fitted(|limit| numbered(options, limit)));
    }

    fn agent_says(&mut self, title: Option<&str>, words: &AgentWords) -> Option<Shown> {
        let other_title = words.title.as_deref().filter(|other| Some(*other) != title);
        let said = [
            ("The agent's title: ", title),
            ("The agent's title: ", other_title),
            ("The agent's words: ", words.ask.as_deref()),
            ("The agent calls itself: ", words.agent_id.as_deref()),
        ];
        let mut quoted = Document::default();
        let labels: Vec<(String, &str)> = words
            .labels
            .iter()
            .map(|(name, text)| (format!("The agent says, {}: ", escape_line(name)), text.as_str()))
            .collect();
        let labels = labels.iter().map(|(label, text)| (label.as_str(), Some(*text)));
        for (label, text) in said.into_iter().chain(labels) {
            let Some(text) = text.filter(|text| !text.is_empty()) else {
                continue;
            };
            quoted.push_own(if quoted.shown.is_empty() { "" } else { "\n" });
            quoted.push_own(label);
            quoted.push_own("\"");
            quoted.push_text(text, Style::Json { indent: 2 }, &mask::find(text));
            quoted.push_own("\"");
        }
        if quoted.shown.is_empty() {
            return None;
        }
        let quoted = quoted.folded(Limit::SECTION);
        notice::notices(AGENT_SAYS, &quoted, &mut self.notices);
        Some(quoted.finish())
    }

    fn text(&mut self, label: &str, text: &str, style: Style) {
        let mut document = Document::default();
        document.push_text(text, style, &mask::find(text));
        self.section(label, document.folded(Limit::SECTION));
    }

    fn section(&mut self, label: &str, document: Document) {
        notice::notices(label, &document, &mut self.notices);
        self.sections.push(Section { label: label.to_owned(), content: document.finish() });
    }

    fn notice(&mut self, section: &str, code: &str, text: &str) {
        self.notices.push(Notice { code: code.to_owned(), section: section.to_owned(), text: text.to_owned() });
    }
}

fn environment(env: &BTreeMap<String, String>, limit: Limit) -> Document {
    let mut lines = Document::default();
    for (index, (name, value)) in env.iter().enumerate() {
        lines.push_own(if index == 0 { "" } else { "\n" });
        lines.push_text(name, Style::Line, &mask::find(name));
        lines.push_own("=");
        let mut text = Document::default();
        text.push_text(value, Style::Line, &mask::find_named(name, value));
        lines.append(text.folded(limit));
    }
    lines
}

/// What would run, file by file: what is pinned is what runs, the rest is looked at just before and after.
fn files(binding: &Binding, limit: Limit) -> Document {
    let shell = binding.shell.iter().map(|file| ("the shell", file));
    let programs = binding.programs.iter().map(|program| (program.word.as_str(), &program.file));
    let scripts = binding.scripts.iter().map(|file| ("runs", file));
    let mut lines = Document::default();
    for (word, file) in shell.chain(programs).chain(scripts) {
        lines.push_own(if lines.shown.is_empty() { "" } else { "\n" });
        let mut text = Document::default();
        text.push_text(word, Style::Line, &mask::find(word));
        text.push_own(": ");
        text.push_text(&file.path, Style::Line, &mask::find(&file.path));
        lines.append(text.folded(limit));
        lines.push_own(if file.pinned { " (pinned)" } else { " (not pinned; checked before and after)" });
    }
    lines
}

fn numbered(options: &[String], limit: Limit) -> Document {
    let mut lines = Document::default();
    for (index, option) in options.iter().enumerate() {
        lines.push_own(if index == 0 { "" } else { "\n" });
        lines.push_own(&format!("{}. ", index + 1));
        let mut text = Document::default();
        text.push_text(option, Style::Line, &mask::find(option));
        lines.append(text.folded(limit));
    }
    lines
}

/// A reason's span on the command, moved outwards to whole characters: a span that is off must still show.
fn risk(command: &str, reason: &RiskReason) -> Overlay {
    let source = whole_chars(command, reason.start..reason.end);
    Overlay { source, kind: MarkKind::Risk { code: escape_line(&reason.code), message: line(&reason.message) } }
}

fn whole_chars(text: &str, range: Range<usize>) -> Range<usize> {
    let start = text.floor_char_boundary(range.start);
    let end = text.ceil_char_boundary(range.end.min(text.len()));
    start..end.max(start)
}

/// A text of someone else's inside a sentence of ours: secrets masked, hidden characters spelt out.
pub(crate) fn line(text: &str) -> String {
    let mut line = Document::default();
    line.push_text(text, Style::Line, &mask::find(text));
    line.finish().text
}

/// A command without blanks, quotes and backslashes: equal for a list of words and any way to write them.
fn letters(text: &str) -> String {
    let written = |c: &char| !c.is_whitespace() && !matches!(c, '\'' | '"' | '\\' | '$');
    text.chars().filter(written).collect()
}

/// `18,204`
fn count(number: usize) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

fn plural(word: &str, number: usize) -> String {
    if number == 1 { word.to_owned() } else { format!("{word}s") }
}

#[cfg(test)]
mod tests;
