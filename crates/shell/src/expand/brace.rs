//! Brace expansion: `{rm,-rf,/}`, `{1..5}`, nested, before anything else happens to a word.

use std::borrow::Cow;

use crate::budget::Budget;
use crate::parse::Part;

/// More words than this are not listed: the word is left as it stands and said to be unknown.
const MAX_WORDS: usize = 256;
const MAX_BRACES: usize = 32;

/// The words that a word's braces make, or `None` when there are none to expand. `Err` when too many.
pub(crate) fn expand<'a>(parts: &[Part<'a>], paid: &Budget) -> Result<Option<Vec<Vec<Part<'a>>>>, TooMany> {
    let possible = parts.iter().any(|part| matches!(part, Part::Text { text, quoted: false } if text.contains('{')));
    if !possible {
        return Ok(None);
    }
    let atoms = atoms(parts);
    if atoms.iter().filter(|atom| matches!(atom, Atom::Char('{'))).count() > MAX_BRACES {
        return Err(TooMany);
    }
    let mut budget = Room { words: MAX_WORDS, paid };
    let words = sequence(&atoms, &mut budget, 0)?;
    if let [only] = words.as_slice()
        && only.len() == atoms.len()
    {
        return Ok(None);
    }
    Ok(Some(words.into_iter().map(|word| join(&word)).collect()))
}

#[derive(Debug)]
pub(crate) struct TooMany;

/// How many more words, and what they may cost with all the rest.
struct Room<'b> {
    words: usize,
    paid: &'b Budget,
}

impl Room<'_> {
    /// Takes so many words of so many characters in all.
    fn take(&mut self, words: usize, length: usize) -> Result<(), TooMany> {
        self.words = self.words.checked_sub(words).ok_or(TooMany)?;
        if self.paid.bytes(length) { Ok(()) } else { Err(TooMany) }
    }
}

/// One unquoted character, or any other part.
#[derive(Clone, Copy)]
enum Atom<'p, 'a> {
    Char(char),
    Part(&'p Part<'a>),
}

fn atoms<'p, 'a>(parts: &'p [Part<'a>]) -> Vec<Atom<'p, 'a>> {
    let mut atoms = Vec::new();
    for part in parts {
        match part {
            Part::Text { text, quoted: false } => atoms.extend(text.chars().map(Atom::Char)),
            other => atoms.push(Atom::Part(other)),
        }
    }
    atoms
}

fn join<'a>(atoms: &[Atom<'_, 'a>]) -> Vec<Part<'a>> {
    let mut parts: Vec<Part<'a>> = Vec::new();
    for atom in atoms {
        match atom {
            Atom::Part(part) => parts.push((*part).clone()),
            Atom::Char(c) => {
                if let Some(Part::Text { text, quoted: false }) = parts.last_mut() {
                    text.to_mut().push(*c);
                } else {
                    parts.push(Part::Text { text: Cow::Owned(c.to_string()), quoted: false });
                }
            }
        }
    }
    parts
}

type Words<'p, 'a> = Vec<Vec<Atom<'p, 'a>>>;

/// Expands the first brace expression in the atoms and everything after it, in the steps that bash takes: what it does
/// with odd braces (`{a},}` is `a}`) follows from them.
fn sequence<'p, 'a>(atoms: &[Atom<'p, 'a>], budget: &mut Room<'_>, depth: usize) -> Result<Words<'p, 'a>, TooMany> {
    if depth > MAX_BRACES {
        return Err(TooMany);
    }
    let mut from = 0;
    let (open, close) = loop {
        let Some(open) = find(atoms, from, '{') else { return Ok(vec![atoms.to_vec()]) };
        if let Some(close) = find(atoms, open + 1, '}') {
            break (open, close);
        }
        from = open + 1;
    };
    let inner = atoms.get(open + 1..close).unwrap_or_default();
    let after = atoms.get(close + 1..).unwrap_or_default();
    let choices = if inner.iter().any(|atom| matches!(atom, Atom::Char(','))) {
        alternatives(inner, budget, depth)?
    } else {
        match range(inner, budget)? {
            Some(words) => words,
            None if after.is_empty() => return Ok(vec![atoms.to_vec()]),
            None => vec![atoms.get(open..=close).unwrap_or_default().to_vec()],
        }
    };
    let words = product(&vec![atoms.get(..open).unwrap_or_default().to_vec()], &choices, budget)?;
    if after.is_empty() { Ok(words) } else { product(&words, &sequence(after, budget, depth + 1)?, budget) }
}

/// What stands between the commas of one brace expression.
fn alternatives<'p, 'a>(inner: &[Atom<'p, 'a>], budget: &mut Room<'_>, depth: usize) -> Result<Words<'p, 'a>, TooMany> {
    let mut words = Vec::new();
    let mut start = 0;
    loop {
        let end = find(inner, start, ',');
        let one = inner.get(start..end.unwrap_or(inner.len())).unwrap_or_default();
        words.extend(sequence(one, budget, depth + 1)?);
        match end {
            Some(end) => start = end + 1,
            None => return Ok(words),
        }
    }
}

/// The next such character outside inner braces. A closing brace counts only after a comma or `..`, and `{}` at the
/// beginning opens nothing.
fn find(atoms: &[Atom<'_, '_>], from: usize, wanted: char) -> Option<usize> {
    let char_at = |at: usize| match atoms.get(at) {
        Some(Atom::Char(c)) => Some(*c),
        _ => None,
    };
    let mut level = 0usize;
    let mut separated = wanted != '}';
    for at in from..atoms.len() {
        let Some(c) = char_at(at) else { continue };
        if c == wanted && level == 0 && separated {
            let nothing = c == '{' && at == 0 && (atoms.len() == 1 || char_at(1) == Some('}'));
            if !nothing {
                return Some(at);
            }
            continue;
        }
        match c {
            '{' => level += 1,
            '}' => level = level.saturating_sub(1),
            ',' if level == 0 => separated = true,
            '.' if level == 0 && char_at(at + 1) == Some('.') && char_at(at + 2) != Some('}') => separated = true,
            _ => {}
        }
    }
    None
}

fn product<'p, 'a>(
    left: &Words<'p, 'a>,
    right: &Words<'p, 'a>,
    budget: &mut Room<'_>,
) -> Result<Words<'p, 'a>, TooMany> {
    let count = left.len().saturating_mul(right.len());
    let length = |words: &Words<'_, '_>| words.iter().map(Vec::len).sum::<usize>();
    let all = length(left).saturating_mul(right.len()).saturating_add(length(right).saturating_mul(left.len()));
    budget.take(count, all)?;
    let mut out = Vec::with_capacity(count);
    for head in left {
        for tail in right {
            let mut word = head.clone();
            word.extend(tail.iter().copied());
            out.push(word);
        }
    }
    Ok(out)
}

/// `{1..5}`, `{a..e}`, `{1..9..2}`.
fn range<'p, 'a>(inner: &[Atom<'p, 'a>], budget: &mut Room<'_>) -> Result<Option<Words<'p, 'a>>, TooMany> {
    let mut text = String::new();
    for atom in inner {
        match atom {
            Atom::Char(c) => text.push(*c),
            Atom::Part(_) => return Ok(None),
        }
    }
    let mut pieces = text.split("..");
    let (Some(first), Some(last)) = (pieces.next(), pieces.next()) else { return Ok(None) };
    let step = pieces.next().map(str::parse::<i64>);
    if pieces.next().is_some() || matches!(step, Some(Err(_))) {
        return Ok(None);
    }
    let step = step.and_then(Result::ok).unwrap_or(1).unsigned_abs().max(1);
    let numbers = first.parse::<i64>().ok().zip(last.parse::<i64>().ok());
    let letters = letter(first).zip(letter(last));
    let (from, to, letters) = match (numbers, letters) {
        (Some((from, to)), _) => (from, to, false),
        (None, Some((from, to))) => (from, to, true),
        (None, None) => return Ok(None),
    };
    let count = usize::try_from(from.abs_diff(to) / step).unwrap_or(usize::MAX).saturating_add(1);
    let width = first.len().max(last.len());
    budget.take(count, count.saturating_mul(width))?;
    let padded = |text: &str| text.trim_start_matches('-').len() > 1 && text.trim_start_matches('-').starts_with('0');
    let width = if padded(first) || padded(last) { width } else { 0 };
    let mut words = Vec::with_capacity(count);
    for index in 0..count {
        let offset = i64::try_from(index as u64 * step).unwrap_or_default();
        let value = if from <= to { from + offset } else { from - offset };
        let text = if letters {
            u32::try_from(value).ok().and_then(char::from_u32).map(String::from).unwrap_or_default()
        } else {
            format!("{value:0width$}")
        };
        words.push(text.chars().map(Atom::Char).collect());
    }
    Ok(Some(words))
}

fn letter(text: &str) -> Option<i64> {
    let mut chars = text.chars();
    let c = chars.next()?;
    (c.is_ascii_alphabetic() && chars.next().is_none()).then(|| i64::from(u32::from(c)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Option<Vec<String>> {
        let parts = vec![Part::Text { text: text.into(), quoted: false }];
        let words = expand(&parts, &Budget::of("")).ok()??;
        let text = |word: &Vec<Part<'_>>| {
            word.iter()
                .map(|part| if let Part::Text { text, .. } = part { text.to_string() } else { String::new() })
                .collect()
        };
        Some(words.iter().map(text).collect())
    }

    #[test]
    fn expands_as_bash_does() {
        for (text, expected) in [
            ("{rm,-rf,/}", "rm|-rf|/"),
            ("a{b,c}d", "abd|acd"),
            ("{1..3}", "1|2|3"),
            ("{3..1}", "3|2|1"),
            ("{01..3}", "01|02|03"),
            ("{a..c}", "a|b|c"),
            ("{a,b{1,2}}", "a|b1|b2"),
            ("{a,b}{c,d}", "ac|ad|bc|bd"),
            ("{,x}", "|x"),
            ("{a},}", "a}|"),
            ("{}{a,b}", "{}a|{}b"),
            ("{a}{b,c}", "{a}b|{a}c"),
            ("{0..2}", "0|1|2"),
            ("shad{o..o}w", "shadow"),
        ] {
            assert_eq!(words(text).map(|w| w.join("|")).as_deref(), Some(expected), "{text}");
        }
        for text in ["{}", "{a}", "{a", "a}", "HEAD@{1}"] {
            assert_eq!(words(text), None, "{text}");
        }
        let parts = [Part::Text { text: "{1..9999}".into(), quoted: false }];
        assert!(expand(&parts, &Budget::of("")).is_err());
    }
}
