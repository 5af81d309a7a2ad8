//! The one line above a card. Made from the action alone: nothing an agent says about it gets in.

use serde_json::Value;

use super::document::{Document, Kind, Piece};
use super::escape::{self, Style};
use super::fold::Limit;
use super::{count, plural};
use crate::action::{Action, Exec};
use crate::mask::{self, Redaction};

const MAX_COMMAND_CHARS: usize = 120;
const MAX_NAME_CHARS: usize = 80;

/// `sentence`: what a command does.
pub(super) fn headline(action: &Action, sentence: Option<&str>) -> String {
    match action {
        Action::Exec(exec) => match sentence {
            Some(sentence) => format!("{sentence} $ {}", command(exec)),
            None => format!("Run a command: {}", command(exec)),
        },
        Action::Tool { name, category, args } => {
            let mut tool = Document::default();
            push_tool(&mut tool, name, category.as_deref());
            let subject = subject(args).map(|text| format!(": {}", first_line(text, false))).unwrap_or_default();
            format!("Use the tool {}{subject}", shortened(&tool, MAX_NAME_CHARS, 0))
        }
        Action::Question { .. } => "Answer a question".to_owned(),
        Action::Custom { action_type, preview, .. } => {
            let mut name = Document::default();
            push_name(&mut name, action_type.as_str());
            format!("Allow the action {}: {}", shortened(&name, MAX_NAME_CHARS, 0), first_line(preview, false))
        }
    }
}

/// What a tool works on, by the names that tools give it: enough to tell two calls in a list apart.
fn subject(args: &Value) -> Option<&str> {
    const NAMES: [&str; 6] = ["file_path", "path", "command", "url", "pattern", "query"];
    NAMES.into_iter().find_map(|name| args.get(name)?.as_str())
}

/// `Write (edit)`; a name that could be taken for more than a name is quoted.
pub(super) fn push_tool(out: &mut Document, name: &str, category: Option<&str>) {
    push_name(out, name);
    if let Some(category) = category {
        out.push_own(" (");
        push_name(out, category);
        out.push_own(")");
    }
}

pub(super) fn push_name(out: &mut Document, name: &str) {
    let secrets = mask::find(name);
    let bare = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':' | '/' | '@');
    if !name.is_empty() && name.chars().all(bare) {
        out.push_text(name, Style::Line, &secrets);
    } else {
        out.push_own("\"");
        out.push_text(name, Style::Line, &secrets);
        out.push_own("\"");
    }
}

/// What runs is the words, when they are given; the command text is then only said to be the same.
fn command(exec: &Exec) -> String {
    match exec.argv.as_deref() {
        Some(words) if !words.is_empty() => {
            let line = self::words(words, false, Limit::SECTION);
            shortened(&line, MAX_COMMAND_CHARS, 0)
        }
        Some(_) | None => first_line(&exec.command, true),
    }
}

/// The first line that tells something, and how much more there is.
fn first_line(command: &str, is_shell: bool) -> String {
    let mut whole = Document::default();
    whole.push_text(command, Style::Line, &mask::find(command));
    let mut start = 0;
    let mut lines = Vec::new();
    for line in command.split('\n') {
        // Only what every reader sees as blank: an odd space has to show.
        let blank = [' ', '\t', '\r'];
        let indented = line.len() - line.trim_start_matches(blank).len();
        let text = line.trim_matches(blank);
        if !text.is_empty() {
            lines.push((start + indented, text));
        }
        start += line.len() + 1;
    }
    // A comment says what the agent wants it to say.
    let telling = lines.iter().find(|(_, text)| !is_shell || !text.starts_with('#'));
    let Some((start, text)) = telling.or(lines.first()) else {
        return "(nothing)".to_owned();
    };
    let line = whole.within(*start, start + text.len());
    shortened(&line, MAX_COMMAND_CHARS, lines.len() - 1)
}

/// The words of a command, quoted as a shell would need it, or all of them so that each one is seen to end.
pub(super) fn words(words: &[String], quote_all: bool, limit: Limit) -> Document {
    let mut out = Document::default();
    let texts: Vec<&str> = words.iter().map(String::as_str).collect();
    for (index, (word, secrets)) in texts.iter().zip(mask::find_in_words(&texts)).enumerate() {
        if index > 0 {
            out.push_own(" ");
        }
        push_word(&mut out, word, &secrets, quote_all, limit);
    }
    out
}

fn push_word(out: &mut Document, word: &str, secrets: &[Redaction], quote: bool, limit: Limit) {
    let bare = |c: char| c.is_alphanumeric() || "_-./:=@%+,".contains(c);
    let (open, style, close) = if word.chars().any(|c| escape::class(c).is_some()) {
        ("$'", Style::Dollar, "'")
    } else if quote || word.is_empty() || !word.chars().all(bare) {
        ("'", Style::Single, "'")
    } else {
        ("", Style::Line, "")
    };
    let mut text = Document::default();
    text.push_text(word, style, secrets);
    out.push_own(open);
    out.append(text.folded(limit));
    out.push_own(close);
}

/// The first `most` characters, and in words how much more there is.
fn shortened(document: &Document, most: usize, more_lines: usize) -> String {
    let mut line = String::new();
    let mut left = most;
    let mut hidden = 0;
    let (mut source_at, mut shown_at) = (0, 0);
    for Piece { source, shown, kind } in &document.pieces {
        let text = document.shown.get(shown_at..shown_at + shown).unwrap_or_default();
        let written = document.source.get(source_at..source_at + source).unwrap_or_default();
        let length = text.chars().count();
        source_at += source;
        shown_at += shown;
        if hidden == 0 && length <= left {
            line.push_str(text);
            left -= length;
        } else if hidden == 0 && *kind == Kind::Plain {
            line.extend(text.chars().take(left));
            hidden += length - left;
        } else {
            hidden += written.chars().count();
        }
    }
    let mut more = Vec::new();
    if hidden > 0 {
        more.push(format!("{} more {}", count(hidden), plural("character", hidden)));
    }
    if more_lines > 0 {
        more.push(format!("{} more {}", count(more_lines), plural("line", more_lines)));
    }
    if !more.is_empty() {
        line.push_str(&format!(" [… {}]", more.join(", ")));
    }
    line
}

impl Document {
    /// The pieces that a range of the source touches; plain ones are cut to it.
    fn within(&self, start: usize, end: usize) -> Self {
        let mut out = Self::default();
        let (mut source_at, mut shown_at) = (0, 0);
        for Piece { source, shown, kind } in &self.pieces {
            let (from, to) = (source_at.max(start), (source_at + source).min(end));
            if from < to {
                let written = self.source.get(source_at..source_at + source).unwrap_or_default();
                let text = self.shown.get(shown_at..shown_at + shown).unwrap_or_default();
                if *kind == Kind::Plain {
                    let cut = written.get(from - source_at..to - source_at).unwrap_or_default();
                    out.push(cut, cut, *kind);
                } else {
                    out.push(written, text, *kind);
                }
            }
            source_at += source;
            shown_at += shown;
        }
        out
    }
}
