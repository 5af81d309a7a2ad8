//! What lists show of a large request. Made once, when it is asked: a list of many then costs what it shows, not what was
//! sent. A command stays whole; everything else is cut, and says so.

use serde_json::{Map, Value};

use crate::action::{Action, Exec};
use crate::binding::{Binding, BoundFile, BoundProgram};
use crate::request::Request;
use crate::terminal::TerminalTerms;

/// A request whose text is not longer than this is its own summary.
pub const SUMMARY_ABOVE: u64 = 8 * 1024;
const MAX_TEXT_CHARS: usize = 512;
const MAX_PREVIEW_CHARS: usize = 4096;
const MAX_ITEMS: usize = 16;
const MAX_OPTIONS: usize = 64;
const MAX_DEPTH: usize = 3;
/// Of all values of one tool's arguments together.
const MAX_VALUES: usize = 64;
/// Where an object or a list goes on.
const MORE: &str = "…";

impl Request {
    /// The same with what is large cut.
    pub fn summary(&self) -> Self {
        let action = match &self.action {
            Action::Exec(exec) => {
                let mut env: std::collections::BTreeMap<String, String> = exec
                    .env
                    .iter()
                    .take(MAX_OPTIONS)
                    .map(|(name, value)| (text(name, MAX_TEXT_CHARS), text(value, MAX_TEXT_CHARS)))
                    .collect();
                if exec.env.len() > MAX_OPTIONS {
                    env.insert(MORE.to_owned(), more(exec.env.len() - MAX_OPTIONS));
                }
                let binding = exec.binding.as_deref().map(|binding| Box::new(cut_binding(binding)));
                Action::Exec(Exec {
                    command: exec.command.clone(),
                    argv: exec.argv.clone(),
                    cwd: exec.cwd.clone(),
                    env,
                    binding,
                })
            }
            Action::Tool { name, category, args } => {
                let mut left = MAX_VALUES;
                let name = text(name, MAX_TEXT_CHARS);
                let category = category.as_deref().map(|category| text(category, MAX_TEXT_CHARS));
                Action::Tool { name, category, args: value(args, 0, &mut left) }
            }
            Action::Question { text: asked, options } => {
                Action::Question { text: text(asked, MAX_PREVIEW_CHARS), options: cut_options(options) }
            }
            Action::Custom { action_type, title, preview, options } => Action::Custom {
                action_type: action_type.clone(),
                title: text(title, MAX_TEXT_CHARS),
                preview: text(preview, MAX_PREVIEW_CHARS),
                options: cut_options(options),
            },
        };
        // What the workspace's file allows has been ruled by; nobody is shown it.
        let terminal = self.terminal.as_ref().map(|terms| TerminalTerms { whitelisted: Vec::new(), ..terms.clone() });
        // Field by field: a clone of the whole would copy what is cut.
        Self {
            action,
            terminal,
            requester: self.requester.clone(),
            session_id: self.session_id.clone(),
            context_id: self.context_id.clone(),
            alias: self.alias.clone(),
            action_type: self.action_type.clone(),
            digest: self.digest,
            effect: self.effect,
            assessment: self.assessment.clone(),
            words: self.words.clone(),
            channel: self.channel,
            target: self.target.clone(),
            terms: self.terms,
            engine: self.engine.clone(),
            not_configured: self.not_configured,
        }
    }
}

fn cut_binding(binding: &Binding) -> Binding {
    let file = |file: &BoundFile| BoundFile {
        path: text(&file.path, MAX_TEXT_CHARS),
        id: text(&file.id, MAX_TEXT_CHARS),
        ..file.clone()
    };
    let program = |of: &BoundProgram| BoundProgram { word: text(&of.word, MAX_TEXT_CHARS), file: file(&of.file) };
    let (mut helpers, kept) = (Vec::new(), |count: usize| count.saturating_sub(MAX_ITEMS));
    helpers.extend(binding.helpers.iter().take(MAX_ITEMS).map(|helper| text(helper, MAX_TEXT_CHARS)));
    let left_out = kept(binding.helpers.len()) + kept(binding.programs.len()) + kept(binding.scripts.len());
    if left_out > 0 {
        helpers.push(more(left_out));
    }
    Binding {
        folder: file(&binding.folder),
        workspace: binding.workspace.as_deref().map(|workspace| text(workspace, MAX_TEXT_CHARS)),
        shell: binding.shell.as_ref().map(file),
        programs: binding.programs.iter().take(MAX_ITEMS).map(program).collect(),
        scripts: binding.scripts.iter().take(MAX_ITEMS).map(file).collect(),
        helpers,
        links: binding.links.iter().take(MAX_ITEMS).map(|link| text(link, MAX_TEXT_CHARS)).collect(),
        environment: binding.environment,
        steering: binding.steering,
    }
}

fn cut_options(options: &[String]) -> Vec<String> {
    let mut cut: Vec<String> = options.iter().take(MAX_OPTIONS).map(|option| text(option, MAX_TEXT_CHARS)).collect();
    if options.len() > MAX_OPTIONS {
        cut.push(more(options.len() - MAX_OPTIONS));
    }
    cut
}

fn more(count: usize) -> String {
    format!("… {count} more, cut in this list; show it to see all")
}

fn text(whole: &str, most: usize) -> String {
    match whole.char_indices().nth(most) {
        None => whole.to_owned(),
        Some((end, _)) => {
            let (head, rest) = whole.split_at_checked(end).unwrap_or((whole, ""));
            format!("{head}… ({} bytes more, cut in this list; show it to see all)", rest.len())
        }
    }
}

/// INVARIANT: recursion ends at `MAX_DEPTH`, whatever was sent.
fn value(whole: &Value, depth: usize, left: &mut usize) -> Value {
    *left = left.saturating_sub(1);
    match whole {
        Value::Null | Value::Bool(_) | Value::Number(_) => whole.clone(),
        Value::String(whole) => Value::String(text(whole, MAX_TEXT_CHARS)),
        Value::Array(items) if depth >= MAX_DEPTH && !items.is_empty() => Value::String(more(items.len())),
        Value::Object(fields) if depth >= MAX_DEPTH && !fields.is_empty() => Value::String(more(fields.len())),
        Value::Array(items) => {
            let mut cut = Vec::new();
            for item in items.iter().take(MAX_ITEMS) {
                if *left == 0 {
                    break;
                }
                cut.push(value(item, depth + 1, left));
            }
            if cut.len() < items.len() {
                cut.push(Value::String(more(items.len() - cut.len())));
            }
            Value::Array(cut)
        }
        Value::Object(fields) => {
            let mut cut = Map::new();
            for (name, field) in fields.iter().take(MAX_ITEMS) {
                if *left == 0 {
                    break;
                }
                cut.insert(text(name, MAX_TEXT_CHARS), value(field, depth + 1, left));
            }
            if cut.len() < fields.len() {
                cut.insert(MORE.to_owned(), Value::String(more(fields.len() - cut.len())));
            }
            Value::Object(cut)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::tests::{custom, exec, request};
    use serde_json::json;

    fn size(request: &Request) -> usize {
        serde_json::to_string(request).unwrap().len()
    }

    #[test]
    fn threat_88_a_summary_is_small_whatever_was_sent_and_says_what_it_cut() {
        let mut nested = json!("x".repeat(1000));
        for _ in 0..30 {
            nested = json!([nested, { "y": [1, 2, 3] }]);
        }
        let wide: Map<String, Value> = (0..5000).map(|n| (format!("k{n}"), json!([n, "v"]))).collect();
        for args in [nested, json!(wide), json!(vec![json!([[]]); 9_000]), json!({ "content": "z".repeat(900_000) })] {
            let whole = request(Action::Tool { name: "Write".into(), category: Some("edit".into()), args });
            let cut = whole.summary();
            let text = serde_json::to_string(&cut.action).unwrap();
            assert!(size(&cut) < 48 * 1024 && text.contains("cut in this list"), "{} {text:.400}", size(&cut));
            assert_eq!((cut.digest, cut.action_type), (whole.digest, whole.action_type));
        }
        let cut = request(custom("note", &"p".repeat(500_000))).summary();
        assert!(size(&cut) < 16 * 1024);
    }

    #[test]
    fn a_command_stays_whole() {
        let command = "make ".repeat(3000);
        let cut = request(exec(&command)).summary();
        let Action::Exec(exec) = &cut.action else { panic!() };
        assert_eq!(exec.command, command);
    }
}
