//! `.agents/terminal.json`: two lists of commands. Its other settings stay where they are, since `run` reads the file
//! itself.

use super::Wishes;
use super::line::{Change, Line, Wish};
use super::pattern::{Pattern, Star, Word, words};
use super::reach;
use super::texts::{self, Object};

const OWN: [&str; 4] =
    ["commandTimeoutSeconds", "requireCommandConfirmation", "confirmationTimeoutSeconds", "rememberOnAllow"];

pub fn lines(document: &Object, wishes: &Wishes) -> anyhow::Result<Vec<Line>> {
    let mut lines = Vec::new();
    for text in texts::texts(document, "commandBlacklist", "")? {
        lines.push(Line { from: format!("commandBlacklist: {text}"), wish: forbidden(text) });
    }
    for text in texts::texts(document, "commandWhitelist", "")? {
        lines.push(Line { from: format!("commandWhitelist: {text}"), wish: allowed(text, wishes.home.as_deref()) });
    }
    for (key, value) in document {
        if key == "commandBlacklist" || key == "commandWhitelist" {
            continue;
        }
        let why =
            if OWN.contains(&key.as_str()) { "it stays the file's: `run` reads it there" } else { "not known here" };
        lines.push(Line::refuse(format!("{key}: {value}"), why));
    }
    Ok(lines)
}

/// A prefix. One that ends in the middle of a word, such as `rm -rf /`, means what goes on from there too.
fn forbidden(text: &str) -> Wish {
    let mut words = match words(text, Star::Shell) {
        Ok(words) => words,
        Err(why) => return Wish::Refuse(format!("{why}; the file's own list still counts where `run` reads it")),
    };
    let partial = |text: String| text.ends_with(|c: char| !c.is_alphanumeric());
    if words.len() > 1 && words.last().is_some_and(|word| word.known().is_some_and(partial)) {
        let last = words.pop().map(Word::prefix);
        words.extend(last);
    }
    Wish::taken(Change::Deny(Pattern { words, open: true }.spell()))
}

/// What was once allowed is allowed by its words. That more words may follow is not taken over: `rm -rf ./build`
/// would bring `rm -rf ./build /etc` with it.
fn allowed(text: &str, home: Option<&str>) -> Wish {
    let pattern = words(text, Star::Shell).and_then(|words| Pattern { words, open: false }.at_home(home));
    match pattern {
        Err(why) => Wish::Refuse(why),
        Ok(pattern) if pattern.is_bare() => reach::allow(&pattern, None, Change::Allow),
        Ok(pattern) => {
            reach::allow(&pattern, Some("exactly these words, with none after them".to_owned()), Change::Allow)
        }
    }
}
