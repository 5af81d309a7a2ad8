//! Which allowlist entry to offer for a command: the narrowest that covers it, or none and why.

use crate::assess::Part;
use crate::command::Simple;
use crate::cover;
use crate::reason::Risk;
use crate::unwrap;
use crate::word::{Value, Word};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Offer {
    /// A pattern that covers exactly this, with what a wider one would let in.
    Entry {
        pattern: String,
        wider_refused: String,
    },
    Refused(String),
}

pub(crate) fn narrowest(simples: &[Simple], parts: &[Part], risk: Risk, coverable: bool) -> Offer {
    match risk {
        Risk::Safe => return refuse("it is safe and needs no entry"),
        Risk::Dangerous => return refuse("dangerous commands are decided each time"),
        Risk::NeedsReview => {}
    }
    if !coverable {
        return refuse("it holds a construct that no entry covers");
    }
    let mut asking = simples.iter().zip(parts).filter(|(_, part)| part.risk.is_some());
    let (Some((simple, part)), None) = (asking.next(), asking.next()) else {
        return refuse("more than one of its commands would need an entry");
    };
    if part.exact_only || part.role.carrier || !simple.via.is_empty() {
        return refuse("it runs another command or inline code");
    }
    let Some(program) = simple.argv.first().and_then(Word::known) else {
        return refuse("its program is only known when it runs");
    };
    if unwrap::is_shell(program) || unwrap::is_wrapper(program) || unwrap::is_interpreter(program) {
        return refuse("an entry for a shell, an interpreter or a wrapper would allow anything");
    }
    let words: Option<Vec<&str>> = simple.argv.iter().map(plain).collect();
    match words {
        Some(words) => Offer::Entry {
            pattern: cover::render(&words),
            wider_refused: format!("`{program} **` would allow everything else `{program}` can do too"),
        },
        None => refuse("some of its words are only known when it runs"),
    }
}

fn plain(word: &Word) -> Option<&str> {
    match &word.value {
        Value::Known(text) => Some(text),
        Value::Glob(_) | Value::Dynamic(_) => None,
    }
}

fn refuse(why: &str) -> Offer {
    Offer::Refused(why.to_owned())
}
