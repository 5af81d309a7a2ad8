//! A profile's `config.json` of the hub: its `execApproval` is much like a policy here, and its patterns are too.

use serde_json::Value;

use super::gateway;
use super::line::{Change, Line, Term, Wish, from_word};
use super::pattern::{Pattern, Star, Word, words};
use super::reach;
use super::texts::{self, Object, join};
use countersign_model::{Ask, Security};

const LONGEST_MS: u64 = 86_400_000;

pub fn lines(document: &Object) -> anyhow::Result<Vec<Line>> {
    const AT: &str = "execApproval";
    let Some(section) = document.get(AT) else { anyhow::bail!("there is no `{AT}` in it") };
    let section = texts::object(section, AT)?;
    let mut lines = Vec::new();
    let security = section.get("security").and_then(Value::as_str).and_then(from_word);
    for key in ["security", "ask", "askFallback"] {
        let Some(value) = section.get(key) else { continue };
        let at = join(AT, key);
        let word = texts::text(value, &at)?;
        let term = gateway::term(key, word, &at)?;
        let from = format!("{key}: {word}");
        lines.push(if term == Term::Ask(Ask::Off) && security == Some(Security::Full) {
            Line::refuse(from, "with `security: full` it means that everything runs unasked")
        } else {
            Line::change(from, Change::Term(term))
        });
    }
    if let Some(value) = section.get("timeoutMs") {
        let Some(ms) = value.as_f64() else { anyhow::bail!("`{AT}.timeoutMs` is {value}, expected a number") };
        let from = format!("timeoutMs: {value}");
        lines.push(match value.as_u64() {
            Some(ms @ 1..=LONGEST_MS) => Line::change(from, Change::Term(Term::TimeoutMs(ms))),
            Some(_) | None if ms <= 0.0 => Line::refuse(from, "here every request ends, after 1 ms at least"),
            Some(_) | None => Line::refuse(from, "here it is whole milliseconds, a day at most"),
        });
    }
    if let Some(list) = section.get("allowlist") {
        let at = join(AT, "allowlist");
        for (index, value) in texts::list(list, &at)?.iter().enumerate() {
            lines.push(entry(&format!("{at}[{index}]"), value)?);
        }
    }
    let known = ["security", "ask", "askFallback", "timeoutMs", "allowlist"];
    for key in section.keys().filter(|key| !known.contains(&key.as_str())) {
        lines.push(Line::refuse(join(AT, key), "not known here"));
    }
    Ok(lines)
}

fn entry(at: &str, value: &Value) -> anyhow::Result<Line> {
    let entry = texts::object(value, at)?;
    let Some(pattern) = entry.get("pattern") else { anyhow::bail!("`{at}` has no `pattern`") };
    let from = texts::text(pattern, &join(at, "pattern"))?.to_owned();
    let remarks = ["pattern", "id", "lastUsedAt", "lastUsedCommand", "source"];
    let wish = match entry.keys().find(|key| !remarks.contains(&key.as_str())) {
        Some(unknown) => Wish::Refuse(format!("`{unknown}` is not known here and may make it narrower")),
        None => wish(from.trim()),
    };
    Ok(Line { from, wish })
}

fn wish(text: &str) -> Wish {
    let (head, open) = match text.strip_suffix("**") {
        Some(head) if head.is_empty() || head.ends_with([' ', '\t']) => (head, true),
        Some(_) | None => (text, false),
    };
    if open && head.trim().is_empty() {
        return Wish::Refuse("it names no program, so it would allow every one".to_owned());
    }
    let words = match words(head, Star::Wild) {
        Ok(words) => words,
        Err(why) => return Wish::Refuse(why),
    };
    let pattern = Pattern { words, open };
    if pattern.is_bare() {
        let why = "it is for the program without arguments, and an entry of one word would allow any";
        return Wish::Refuse(why.to_owned());
    }
    // There `*` may stand for several words, here for one.
    let wild = pattern.words.iter().any(Word::is_wild);
    reach::allow(&pattern, wild.then(|| "`*` is one word here".to_owned()), Change::Allow)
}
