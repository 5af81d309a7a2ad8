//! Tool arguments as indented JSON, in the order of their canonical form.
//!
//! Strings keep their JSON escapes; a newline inside one is spelled and also breaks the line, so that the
//! contents of a file read like a file and cannot be taken for the structure around them.

use serde_json::Value;

use super::document::Document;
use super::escape::Style;
use super::fold::{self, Limit};
use crate::canonical::canonical_bytes;
use crate::mask::{self, Redaction};

/// Deeper levels are shown at this one: the indentation must not outgrow the text.
const MAX_INDENT: usize = 20;

pub(super) fn document(args: &Value) -> Document {
    fold::fitted(|limit| write(args, limit))
}

/// Of one list or object, values at each end are shown; beyond this the middle is folded before it is written.
const MAX_SHOWN_ITEMS: usize = 500;
/// Once this much is written, what follows is folded value by value: a person sees the beginning and the end of it.
const MAX_WRITTEN: usize = 64 * 1024;

enum Step<'a> {
    Own(String),
    /// Left out as it is, said with its length and digest.
    Hidden(String),
    Name {
        name: &'a str,
        depth: usize,
    },
    Value {
        value: &'a Value,
        name: Option<&'a str>,
        depth: usize,
    },
    Text {
        text: &'a str,
        secrets: Vec<Redaction>,
        depth: usize,
    },
}

/// Walks without recursion: the depth is the sender's to choose.
fn write(args: &Value, limit: Limit) -> Document {
    let mut out = Document::default();
    let mut steps = vec![Step::Value { value: args, name: None, depth: 0 }];
    while let Some(step) = steps.pop() {
        match step {
            Step::Own(text) => out.push_own(&text),
            Step::Hidden(mut text) => out.push_fold(&mut text),
            Step::Value { value, .. } if out.shown.len() > MAX_WRITTEN => out.push_fold(&mut value.to_string()),
            Step::Name { name, depth } => {
                push_string(&mut out, name, &mask::find(name), depth, limit);
                out.push_own(": ");
            }
            Step::Text { text, secrets, depth } => push_string(&mut out, text, &secrets, depth, limit),
            Step::Value { value, name, depth } => match value {
                Value::Null => out.push_own("null"),
                Value::Bool(yes) => out.push_own(if *yes { "true" } else { "false" }),
                Value::Number(_) => push_number(&mut out, value, name),
                Value::String(text) => {
                    let secrets = secrets(text, name);
                    push_string(&mut out, text, &secrets, depth, limit);
                }
                Value::Array(items) => steps.extend(array_steps(items, name, depth).into_iter().rev()),
                Value::Object(fields) => steps.extend(object_steps(fields, depth).into_iter().rev()),
            },
        }
    }
    out
}

fn array_steps<'a>(items: &'a [Value], name: Option<&'a str>, depth: usize) -> Vec<Step<'a>> {
    let words: Option<Vec<&str>> = items.iter().map(Value::as_str).collect();
    // A list of words may be a command line, where one word says what the next one is.
    let of_words = words.as_deref().map(mask::find_in_words).unwrap_or_default();
    let mut of_words = of_words.into_iter();
    let mut steps = vec![Step::Own("[".to_owned())];
    let middle = middle(items.len());
    for (index, value) in items.iter().enumerate() {
        if middle.contains(&index) {
            of_words.next();
            if index == middle.start {
                let hidden = items.get(middle.clone()).unwrap_or_default().iter().map(Value::to_string);
                steps.push(Step::Own(line(true, depth + 1)));
                steps.push(Step::Hidden(hidden.collect::<Vec<_>>().join(",")));
            }
            continue;
        }
        steps.push(Step::Own(line(index > 0, depth + 1)));
        let depth = depth + 1;
        steps.push(match (value, of_words.next()) {
            (Value::String(text), Some(found)) if !found.is_empty() => Step::Text { text, secrets: found, depth },
            _ => Step::Value { value, name, depth },
        });
    }
    steps.push(Step::Own(if items.is_empty() { "]".to_owned() } else { line(false, depth) + "]" }));
    steps
}

fn object_steps(fields: &serde_json::Map<String, Value>, depth: usize) -> Vec<Step<'_>> {
    let mut fields: Vec<(&str, &Value)> = fields.iter().map(|(name, value)| (name.as_str(), value)).collect();
    fields.sort_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
    let mut steps = vec![Step::Own("{".to_owned())];
    let close = if fields.is_empty() { "}".to_owned() } else { line(false, depth) + "}" };
    let middle = middle(fields.len());
    let mut hidden = String::new();
    for (index, (name, value)) in fields.into_iter().enumerate() {
        if middle.contains(&index) {
            hidden.push_str(&format!("{}:{value},", Value::from(name)));
            if index + 1 == middle.end {
                steps.push(Step::Own(line(true, depth + 1)));
                steps.push(Step::Hidden(std::mem::take(&mut hidden)));
            }
            continue;
        }
        steps.push(Step::Own(line(index > 0, depth + 1)));
        steps.push(Step::Name { name, depth: depth + 1 });
        steps.push(Step::Value { value, name: Some(name), depth: depth + 1 });
    }
    steps.push(Step::Own(close));
    steps
}

/// The indexes that are folded of so many.
fn middle(count: usize) -> std::ops::Range<usize> {
    if count <= MAX_SHOWN_ITEMS * 2 { 0..0 } else { MAX_SHOWN_ITEMS..count - MAX_SHOWN_ITEMS }
}

fn line(comma: bool, depth: usize) -> String {
    let comma = if comma { "," } else { "" };
    format!("{comma}\n{}", "  ".repeat(depth.min(MAX_INDENT)))
}

fn secrets(text: &str, name: Option<&str>) -> Vec<Redaction> {
    match name {
        Some(name) => mask::find_named(name, text),
        None => mask::find(text),
    }
}

fn push_string(out: &mut Document, text: &str, secrets: &[Redaction], depth: usize, limit: Limit) {
    let mut string = Document::default();
    let indent = (depth.min(MAX_INDENT) + 1) * 2;
    string.push_text(text, Style::Json { indent }, secrets);
    out.push_own("\"");
    out.append(string.folded(limit));
    out.push_own("\"");
}

fn push_number(out: &mut Document, number: &Value, name: Option<&str>) {
    let canonical = canonical_bytes(number).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let text = canonical.unwrap_or_else(|| number.to_string());
    out.push_text(&text, Style::Line, &secrets(&text, name));
}
