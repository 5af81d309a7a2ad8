//! Lays a record out as lines for a person: everything the gate shows, nothing cut. The same lines serve
//! `show` and `watch`.

use std::collections::BTreeSet;

use countersign_model::{Assessment, RunEnd, escape_line};
use similar::{ChangeTag, TextDiff};

use crate::output::{Style, Tone};
use crate::record::{Decision, Longer, Mark, Prior, Record, Showing, Shown};
use crate::{when, width};

/// How much of a risky piece is repeated beside its reason.
const REASON_COLUMNS: usize = 40;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    pub text: String,
    pub tone: Tone,
    /// Byte ranges that stand out.
    marks: Vec<(usize, usize, Tone)>,
    /// Columns that the line's continuations are moved in by.
    indent: usize,
    /// Our own words, which break between words; what is asked breaks anywhere, as it is.
    prose: bool,
    /// Where a person types in it.
    pub cursor: Option<usize>,
}

impl Line {
    pub fn new(text: impl Into<String>, tone: Tone) -> Self {
        Self { text: text.into(), tone, marks: Vec::new(), indent: 0, prose: false, cursor: None }
    }

    pub fn with_cursor(self, column: usize) -> Self {
        Self { cursor: Some(column), ..self }
    }

    pub fn prose(text: impl Into<String>, indent: usize, tone: Tone) -> Self {
        Self { indent, prose: true, ..Self::new(text, tone) }
    }

    pub fn indented(text: &str, indent: usize, tone: Tone) -> Self {
        Self { indent, ..Self::new(format!("{}{text}", " ".repeat(indent)), tone) }
    }

    /// The line in as many as it takes.
    pub fn wrap(&self, columns: usize) -> Vec<Self> {
        let indent = if columns > self.indent + 8 { self.indent } else { 0 };
        let mut lines = Vec::new();
        let (mut start, mut lead) = (0, 0);
        loop {
            let rest = self.text.get(start..).unwrap_or_default();
            let end = start + self.break_at(rest, columns.saturating_sub(lead).max(1));
            let piece = self.text.get(start..end).unwrap_or_default();
            let within = |&(from, to, tone): &(usize, usize, Tone)| {
                let (from, to) = (from.clamp(start, end), to.clamp(start, end));
                (from < to).then_some((from - start + lead, to - start + lead, tone))
            };
            let marks = self.marks.iter().filter_map(within).collect();
            lines.push(Self { text: format!("{}{piece}", " ".repeat(lead)), marks, ..self.clone() });
            if end >= self.text.len() {
                return lines;
            }
            (start, lead) = (end, indent);
        }
    }

    fn break_at(&self, rest: &str, columns: usize) -> usize {
        let hard = width::break_at(rest, columns);
        let space = rest.get(..hard).and_then(|piece| piece.rfind(' ')).map(|at| at + 1);
        match space {
            // Not so early that half the line stays empty.
            Some(space) if self.prose && hard < rest.len() && space > hard / 2 => space,
            Some(_) | None => hard,
        }
    }

    pub fn paint(&self, style: Style) -> String {
        let mut out = String::new();
        let mut at = 0;
        for &(from, to, tone) in &self.marks {
            let (Some(before), Some(marked)) = (self.text.get(at..from), self.text.get(from..to)) else { continue };
            out.push_str(&style.paint(before, self.tone));
            out.push_str(&style.paint(marked, tone));
            at = to;
        }
        out.push_str(&style.paint(self.text.get(at..).unwrap_or_default(), self.tone));
        out
    }
}

/// What is asked: the part that must be seen before a yes.
pub fn request_lines(record: &Record) -> Vec<Line> {
    let mut lines: Vec<Line> = record.showing.headline.split('\n').map(|text| Line::new(text, Tone::Strong)).collect();
    lines.extend(action_lines(&record.showing));
    if let Some(prior) = &record.prior {
        lines.push(Line::prose(format!("! {}", asked_before(prior)), 2, Tone::Warning));
    }
    if record.is_pending() && record.is_dangerous() {
        let number =
            record.number.as_deref().map_or_else(|| "none, so it cannot be allowed here".to_owned(), escape_line);
        lines.push(Line::new(format!("number: {number}"), Tone::Strong));
    }
    lines
}

/// What it may be allowed for besides this once, each with what is typed for it.
pub fn longer_lines(longer: &[Longer]) -> Vec<Line> {
    longer.iter().map(|longer| Line::prose(format!("  {}  {}", longer.key, longer.words), 5, Tone::Plain)).collect()
}

/// A command and what somebody made of it, with what that would do.
pub fn change_lines(before: &str, after: &str, assessment: &Assessment) -> Vec<Line> {
    let diff = TextDiff::from_words(before, after);
    let (mut old, mut new) = (Line::new("- ", Tone::Plain), Line::new("+ ", Tone::Plain));
    for change in diff.iter_all_changes() {
        let text = escape_line(change.value());
        let add = |line: &mut Line, marked: bool| {
            let start = line.text.len();
            line.text.push_str(&text);
            if marked {
                line.marks.push((start, line.text.len(), Tone::Underlined));
            }
        };
        match change.tag() {
            ChangeTag::Equal => {
                add(&mut old, false);
                add(&mut new, false);
            }
            ChangeTag::Delete => add(&mut old, true),
            ChangeTag::Insert => add(&mut new, true),
        }
    }
    let mut lines = vec![old, new, Line::new(format!("risk: {}", assessment.risk.as_str()), Tone::Strong)];
    if !assessment.sentence.is_empty() {
        lines.insert(0, Line::prose(escape_line(&assessment.sentence), 0, Tone::Strong));
    }
    let told = assessment.told_reasons().into_iter();
    let reasons = told.map(|reason| format!("! {}", escape_line(&reason.message)));
    lines.extend(reasons.map(|reason| Line::prose(reason, 2, Tone::Warning)));
    lines
}

/// The action in full, without its headline.
pub fn action_lines(showing: &Showing) -> Vec<Line> {
    let mut lines = Vec::new();
    for section in &showing.sections {
        lines.push(Line::new(format!("{}:", section.label.replace('\n', " ")), Tone::Faint));
        lines.extend(content(&section.content, 2));
        lines.extend(reasons(&section.content));
    }
    if let Some(words) = &showing.agent_says {
        lines.push(Line::new("the agent's own words:", Tone::Faint));
        lines.extend(words.text.split('\n').map(|text| Line::indented(&format!("> {text}"), 2, Tone::Plain)));
    }
    for notice in &showing.notices {
        lines.extend(notice.text.split('\n').map(|text| Line::prose(format!("! {text}"), 2, Tone::Warning)));
    }
    lines
}

/// Who asked, when, and what became of it.
pub fn fact_lines(record: &Record, now: i64) -> Vec<Line> {
    let mut facts = vec![("id", escape_line(&record.approval_id)), ("status", record.outcome())];
    if let Some(risk) = &record.risk {
        facts.push(("risk", escape_line(risk)));
    }
    facts.push(("client", format!("{} ({})", record.client(), escape_line(&record.client_id))));
    facts.push(("session", escape_line(&record.session_id)));
    if let Some(agent) = &record.agent_id {
        facts.push(("agent", format!("{} (as it calls itself)", escape_line(agent))));
    }
    if let Some(profile) = &record.profile {
        facts.push(("profile", escape_line(profile)));
    }
    facts.push(("type", escape_line(&record.action_type)));
    facts.push(("asked", format!("{}, {} ago", when::utc(record.created_at), when::span(now - record.created_at))));
    let left =
        if record.is_pending() { format!(", {} left", when::span(record.expires_at - now)) } else { String::new() };
    facts.push(("until", format!("{}{left}", when::utc(record.expires_at))));
    if let Some(decision) = &record.decision {
        facts.extend(decision_facts(decision));
    }
    if let Some(at) = record.consumed_at {
        facts.push(("used", when::utc(at)));
    }
    if let Some(run) = &record.run {
        facts.push(("ran", how_it_ended(run)));
    }
    facts.push(("digest", escape_line(&record.digest)));
    facts.into_iter().map(|(name, value)| Line::prose(format!("{name:<9}{value}"), 9, Tone::Plain)).collect()
}

pub fn how_it_ended(run: &RunEnd) -> String {
    let mut told = match (run.exit, run.signal) {
        (Some(code), _) => format!("exit {code}"),
        (None, Some(signal)) => format!("ended by signal {signal}"),
        (None, None) => "not started".to_owned(),
    };
    for (is, words) in [(run.timed_out, ", its time was over"), (run.stopped, ", stopped")] {
        told.push_str(if is { words } else { "" });
    }
    for change in &run.changed {
        told.push_str(&format!("; changed: {}", escape_line(change)));
    }
    told
}

/// An agent that asks again for what it was refused may be looking for a softer answer.
fn asked_before(prior: &Prior) -> String {
    let (status, id) = (escape_line(&prior.status), escape_line(&prior.approval_id));
    format!("this was asked before and {status} at {} ({id})", when::utc(prior.at))
}

fn decision_facts(decision: &Decision) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    if let Some(at) = decision.at {
        let via = decision.via.as_deref().map(|via| format!(", by {}", escape_line(via))).unwrap_or_default();
        facts.push(("decided", format!("{}{via}, code {}", when::utc(at), escape_line(&decision.code))));
    }
    let texts = [
        ("note", &decision.note),
        ("override", &decision.replacement),
        ("answer", &decision.answer),
        ("grant", &decision.grant_id),
    ];
    for (name, text) in texts {
        if let Some(text) = text {
            facts.push((name, text.split('\n').map(escape_line).collect::<Vec<_>>().join(" / ")));
        }
    }
    facts
}

/// Why each risky piece is one, in words: a colour alone tells nothing where there is none. Said once, of the first.
fn reasons(shown: &Shown) -> impl Iterator<Item = Line> + '_ {
    let mut said = BTreeSet::new();
    shown.marks.iter().filter_map(move |mark| {
        let message = mark.message.as_ref().filter(|message| said.insert(message.as_str()))?.replace('\n', " ");
        let piece = shown.text.get(mark.start..mark.end)?;
        // The piece itself stands above, whole and underlined; this only says which one is meant.
        let text = if piece.trim() == shown.text.trim() || piece.is_empty() {
            format!("! {message}")
        } else {
            format!("! `{}`: {message}", width::cut(&piece.replace('\n', " "), REASON_COLUMNS))
        };
        Some(Line::prose(text, 2, Tone::Warning))
    })
}

fn tone_of(mark: &Mark) -> Tone {
    match mark.kind.as_str() {
        "risk" => Tone::Underlined,
        "masked" | "folded" => Tone::Faint,
        _ => Tone::Warning,
    }
}

/// Splits at line ends and gives each line its own part of the marks.
fn content(shown: &Shown, indent: usize) -> Vec<Line> {
    let mut marks: Vec<Mark> = shown.marks.clone();
    marks.sort_by_key(|mark| (mark.start, mark.end));
    let mut start = 0;
    let mut lines = Vec::new();
    for text in shown.text.split('\n') {
        let end = start + text.len();
        let mut line = Line::indented(text, indent, Tone::Plain);
        let mut free = start;
        for mark in &marks {
            let (from, to) = (mark.start.clamp(free, end.max(free)), mark.end.clamp(free, end.max(free)));
            let sound = shown.text.is_char_boundary(from) && shown.text.is_char_boundary(to);
            if from < to && sound {
                line.marks.push((from - start + indent, to - start + indent, tone_of(mark)));
                free = to;
            }
        }
        lines.push(line);
        start = end + 1;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::record;

    fn shown(text: &str, marks: &[(usize, usize)]) -> Shown {
        let mark = |&(start, end): &(usize, usize)| Mark { start, end, kind: "risk".to_owned(), message: None };
        let marks = marks.iter().map(mark).collect();
        Shown { text: text.to_owned(), marks, folds: Vec::new() }
    }

    fn marked(lines: &[Line]) -> Vec<String> {
        let pieces = lines
            .iter()
            .flat_map(|line| line.marks.iter().map(|&(from, to, _)| line.text.get(from..to).unwrap().to_owned()));
        pieces.collect()
    }

    #[test]
    fn everything_the_gate_shows_is_there() {
        let text: Vec<String> = request_lines(&record("appr_1")).into_iter().map(|line| line.text).collect();
        let expected = [
            "run a command appr_1",
            "command:",
            "  make all",
            "! `all`: builds everything",
            "the agent's own words:",
            "  > it is fine",
            "! asked before",
        ];
        assert_eq!(text, expected);
    }

    #[test]
    fn marks_follow_lines_and_wrapping() {
        let lines = content(&shown("rm -rf /\nécho x\nlast", &[(3, 6), (10, 14), (7, 9)]), 2);
        assert_eq!(marked(&lines), ["-rf", "/"]);
        let lines = content(&shown("one\ntwo three", &[(2, 7), (8, 13), (90, 99)]), 2);
        assert_eq!(marked(&lines), ["e", "two", "three"]);
        let wrapped: Vec<Line> = lines.iter().flat_map(|line| line.wrap(6)).collect();
        assert_eq!(marked(&wrapped).concat(), "etwothree");
        assert!(wrapped.iter().all(|line| width::of(&line.text) <= 6));
    }

    #[test]
    fn our_own_words_break_between_words() {
        let pieces = Line::prose("! the command was not examined", 2, Tone::Plain).wrap(16);
        let text: Vec<&str> = pieces.iter().map(|piece| piece.text.as_str()).collect();
        assert_eq!(text, ["! the command ", "  was not ", "  examined"]);
    }

    #[test]
    fn a_reason_names_its_piece_only_where_there_is_a_choice() {
        let reason = |text: &str, end: usize| {
            let mut shown = shown(text, &[(0, end)]);
            shown.marks[0].message = Some("risky".to_owned());
            reasons(&shown).map(|line| line.text).collect::<Vec<_>>()
        };
        assert_eq!(reason("rm x", 4), ["! risky"]);
        assert_eq!(reason("rm x", 2), ["! `rm`: risky"]);
        assert!(reason("rm x", 9).is_empty());
    }

    #[test]
    fn wrapping_loses_nothing() {
        let line = Line::indented(&"abc 日本 ".repeat(20), 2, Tone::Plain);
        for columns in [1, 5, 11, 40, 80] {
            let pieces = line.wrap(columns);
            let joined: String = pieces.iter().map(|piece| piece.text.replace(' ', "")).collect();
            assert_eq!(joined, line.text.replace(' ', ""), "{columns}");
        }
        assert_eq!(Line::new("", Tone::Plain).wrap(10).len(), 1);
    }
}
