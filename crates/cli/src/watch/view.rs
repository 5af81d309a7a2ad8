//! What the live list looks like, as lines: pure, from the state alone. It also says what of a request is on
//! the screen, which is what a yes depends on.

use countersign_model::escape_line;

use super::state::{Mode, Prompt, State};
use crate::output::Tone;
use crate::record::Record;
use crate::showing::{self, Line};
use crate::{when, width};

/// Title, rule, last event, help.
const FRAME_ROWS: usize = 4;
/// Where the client's name has room beside the headline.
const WIDE_COLUMNS: usize = 60;

pub fn lines(state: &State) -> Vec<Line> {
    let mut lines = vec![title(state)];
    let body = body_rows(state.rows);
    match shown_mode(state) {
        _ if longer(state).is_some() => {
            lines.push(rule(state.columns));
            lines.extend(longer(state).unwrap_or_default());
        }
        Mode::Open { scroll } => {
            let all = request(state);
            lines.push(rule(state.columns));
            lines.extend(all.into_iter().skip(*scroll).take(body));
        }
        Mode::List | Mode::Prompt { .. } => {
            lines.extend(list(state));
            lines.push(rule(state.columns));
            lines.extend(pane(state).0);
        }
    }
    lines.truncate(body + 2);
    lines.resize(body + 2, Line::new("", Tone::Plain));
    lines.push(Line::new(width::cut(&state.last, state.columns), Tone::Faint));
    lines.push(footer(state));
    lines
}

/// By how many lines a page key moves; one stays for the eye to hold on to.
pub fn page(rows: usize) -> isize {
    isize::try_from(body_rows(rows).saturating_sub(1).max(1)).unwrap_or(1)
}

pub fn last_scroll(state: &State) -> usize {
    request(state).len().saturating_sub(body_rows(state.rows))
}

/// Whether the end of the selected request is on the screen, with all before it on the screen now or earlier.
pub fn is_seen_whole(state: &State) -> bool {
    let Some(record) = state.current() else { return false };
    match &state.mode {
        Mode::Open { scroll } => *scroll >= last_scroll(state),
        Mode::List => pane(state).1 && !record.has_folds(),
        Mode::Prompt { .. } => false,
    }
}

fn body_rows(rows: usize) -> usize {
    rows.saturating_sub(FRAME_ROWS).max(1)
}

/// What the words on the footer are about, where that is not the request itself.
fn longer(state: &State) -> Option<Vec<Line>> {
    let Mode::Prompt { about, kind, .. } = &state.mode else { return None };
    let record = state.items.iter().find(|item| item.approval_id == *about)?;
    let mut lines = vec![Line::new(record.headline(), Tone::Strong)];
    match kind {
        Prompt::Longer => {
            lines.push(Line::new("allow for longer, the narrowest first:", Tone::Faint));
            lines.extend(showing::longer_lines(&record.longer()));
        }
        Prompt::LongerYes(longer) => {
            lines.push(Line::new("this would be allowed:", Tone::Faint));
            lines.extend(showing::longer_lines(std::slice::from_ref(longer)));
        }
        Prompt::DenyReason | Prompt::AllowNote | Prompt::Number(_) => return None,
    }
    Some(lines.iter().flat_map(|line| line.wrap(state.columns)).collect())
}

/// The mode to draw behind a prompt.
fn shown_mode(state: &State) -> &Mode {
    match &state.mode {
        Mode::Prompt { back, .. } => back,
        mode => mode,
    }
}

fn title(state: &State) -> Line {
    if let Some(why) = &state.lost {
        let text = format!("connection lost, trying again: {why}");
        return Line::new(width::cut(&text, state.columns), Tone::Warning);
    }
    let text = match state.items.len() {
        0 => "nothing waits for an answer".to_owned(),
        count => format!("{} of {count} waiting", state.at + 1),
    };
    Line::new(width::cut(&text, state.columns), Tone::Strong)
}

fn rule(columns: usize) -> Line {
    Line::new("─".repeat(columns), Tone::Faint)
}

fn list_rows(state: &State) -> usize {
    let most = (body_rows(state.rows) / 3).max(1);
    state.items.len().min(most)
}

/// The part of the list around the selection.
fn list(state: &State) -> Vec<Line> {
    let rows = list_rows(state);
    let first = state.at.saturating_sub(rows / 2).min(state.items.len().saturating_sub(rows));
    let shown = state.items.iter().enumerate().skip(first).take(rows);
    shown.map(|(at, record)| entry(record, at == state.at, state)).collect()
}

fn entry(record: &Record, selected: bool, state: &State) -> Line {
    let mark = if selected { ">" } else { " " };
    let left = when::countdown(record.expires_at - state.now_ms.div_euclid(1000));
    let risk = match record.risk.as_deref() {
        Some("dangerous") => "danger".to_owned(),
        Some("needs-review") => "review".to_owned(),
        Some(other) => width::cut(&escape_line(other), 6),
        None => String::new(),
    };
    let sent = if state.sent.contains(&record.approval_id) { "(sent) " } else { "" };
    let client =
        if state.columns >= WIDE_COLUMNS { format!("  {}", width::cut(&record.client(), 20)) } else { String::new() };
    let head = format!("{mark} {left:>5} {risk:<6} {sent}");
    let room = state.columns.saturating_sub(width::of(&head) + width::of(&client));
    let text = format!("{head}{}{client}", width::cut(&record.headline(), room));
    Line::new(width::cut(&text, state.columns), if selected { Tone::Reversed } else { Tone::Plain })
}

/// Everything there is to know about the selected request, wrapped to the screen.
fn request(state: &State) -> Vec<Line> {
    let Some(record) = state.current() else { return Vec::new() };
    let mut lines = showing::request_lines(record);
    lines.push(Line::new("", Tone::Plain));
    lines.extend(showing::fact_lines(record, state.now_ms.div_euclid(1000)));
    lines.iter().flat_map(|line| line.wrap(state.columns)).collect()
}

/// What is asked, under the list, and whether it all fits there.
fn pane(state: &State) -> (Vec<Line>, bool) {
    let Some(record) = state.current() else { return (Vec::new(), false) };
    let room = body_rows(state.rows).saturating_sub(list_rows(state));
    let mut lines: Vec<Line> = Vec::new();
    let from = format!("from {}, session {}", record.client(), escape_line(&record.session_id));
    for line in showing::request_lines(record).iter().chain([&Line::new(from, Tone::Faint)]) {
        lines.extend(line.wrap(state.columns));
    }
    if lines.len() <= room {
        return (lines, true);
    }
    let kept = room.saturating_sub(1);
    let hidden = lines.len() - kept;
    lines.truncate(kept);
    lines.push(Line::new(width::cut(&format!("… {hidden} more lines: Enter"), state.columns), Tone::Warning));
    (lines, false)
}

fn footer(state: &State) -> Line {
    let text = match &state.mode {
        Mode::Prompt { about, kind, line, .. } => {
            let is_open = state.items.iter().any(|item| item.approval_id == *about);
            let label = match kind {
                _ if !is_open => {
                    return Line::new(width::cut("it ended meanwhile: Enter goes back", state.columns), Tone::Warning);
                }
                Prompt::DenyReason => "deny, reason (or none): ",
                Prompt::AllowNote => "allow, note: ",
                Prompt::Number(_) => "dangerous, type its number: ",
                Prompt::Longer => "type one of these: ",
                Prompt::LongerYes(_) => "type yes for all of that: ",
            };
            let (text, cursor) = line.view(state.columns.saturating_sub(width::of(label)));
            return Line::new(format!("{label}{text}"), Tone::Strong).with_cursor(width::of(label) + cursor);
        }
        Mode::Open { .. } => "a allow d deny n note space more ⏎ back",
        Mode::List if state.columns >= WIDE_COLUMNS => "a allow d deny n note w for longer ⏎ whole q quit",
        Mode::List => "a allow d deny n note ⏎ whole q quit",
    };
    Line::new(width::cut(text, state.columns), Tone::Faint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::{Burst, Key};
    use crate::record::tests::sample;
    use crate::watch::state::Input;
    use serde_json::json;

    fn many(count: usize, columns: usize, rows: usize) -> State {
        let records = (0..count).map(|at| {
            let mut value = sample(&format!("appr_{at:032x}"));
            value["created_at"] = json!(at);
            value["risk"] = json!("dangerous");
            Record::read(&value).unwrap()
        });
        State::new(records.collect(), columns, rows, 1_300_000)
    }

    fn text(state: &State) -> Vec<String> {
        lines(state).into_iter().map(|line| line.text).collect()
    }

    #[test]
    fn every_screen_is_exactly_as_large_as_the_terminal_allows() {
        for (columns, rows) in [(40, 10), (40, 24), (80, 24), (200, 50)] {
            for count in [0, 1, 30] {
                let mut state = many(count, columns, rows);
                for keys in ["", "j", "\n", "d", "x"] {
                    for key in keys.chars() {
                        let key = if key == '\n' { Key::Enter } else { Key::Plain(key) };
                        state.take(1_300_000, Input::Keys(Burst { keys: vec![key] }));
                    }
                    let shown = text(&state);
                    assert_eq!(shown.len(), rows, "{columns}x{rows}, {count}, {keys:?}");
                    for line in &shown {
                        assert!(width::of(line) <= columns, "{columns}: {line}");
                    }
                }
            }
        }
    }

    #[test]
    fn at_40_columns_the_essentials_are_there() {
        let shown = text(&many(2, 40, 24)).join("\n");
        for part in ["1 of 2 waiting", "> ", "5:00", "danger", "run a comm", "make all", "from ci", "a allow", "q quit"]
        {
            assert!(shown.contains(part), "{part} in\n{shown}");
        }
    }

    #[test]
    fn what_does_not_fit_is_announced() {
        let state = many(1, 40, 9);
        assert!(text(&state).join("\n").contains("more lines: Enter"));
        assert!(!is_seen_whole(&state));
        assert!(is_seen_whole(&many(1, 80, 24)));
    }
}
