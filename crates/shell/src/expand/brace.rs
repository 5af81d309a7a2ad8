//! Brace expansion: `{rm,-rf,/}`, `{1..5}`, nested, before anything else happens to a word.

use std::borrow::Cow;

use crate::parse::Part;

/// More words than this are not listed: the word is left as it stands and said to be unknown.
const MAX_WORDS: usize = 256;
const MAX_BRACES: usize = 32;

/// The words that a word's braces make, or `None` when there are none to expand. `Err` when too many.
pub(crate) fn expand<'a>(parts: &[Part<'a>]) -> Result<Option<Vec<Vec<Part<'a>>>>, TooMany> {
    let possible = parts.iter().any(|part| matches!(part, Part::Text { text, quoted: false } if text.contains('{')));
    if !possible {
        return Ok(None);
    }
    let atoms = atoms(parts);
    if atoms.iter().filter(|atom| matches!(atom, Atom::Char('{'))).count() > MAX_BRACES {
        return Err(TooMany);
    }
    let mut budget = MAX_WORDS;
    let words = sequence(&atoms, &mut budget, 0)?;
    if words.len() == 1 {
        return Ok(None);
    }
    Ok(Some(words.into_iter().map(|word| join(&word)).collect()))
}

#[derive(Debug)]
pub(crate) struct TooMany;

/// One unquoted character, or any other part.
#[derive(Clone)]
enum Atom<'a> {
    Char(char),
    Part(Part<'a>),
}

fn atoms<'a>(parts: &[Part<'a>]) -> Vec<Atom<'a>> {
    let mut atoms = Vec::new();
    for part in parts {
        match part {
            Part::Text { text, quoted: false } => atoms.extend(text.chars().map(Atom::Char)),
            other => atoms.push(Atom::Part(other.clone())),
        }
    }
    atoms
}

fn join<'a>(atoms: &[Atom<'a>]) -> Vec<Part<'a>> {
    let mut parts: Vec<Part<'a>> = Vec::new();
    for atom in atoms {
        match atom {
            Atom::Part(part) => parts.push(part.clone()),
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

type Words<'a> = Vec<Vec<Atom<'a>>>;

/// Expands the first brace expression in the atoms and everything after it.
fn sequence<'a>(atoms: &[Atom<'a>], budget: &mut usize, depth: usize) -> Result<Words<'a>, TooMany> {
    if depth > 16 {
        return Err(TooMany);
    }
    let mut words: Words<'a> = vec![Vec::new()];
    let mut at = 0;
    while let Some(atom) = atoms.get(at) {
        if let Atom::Char('{') = atom
            && let Some((close, commas)) = matching(atoms, at)
            && let Some(choices) = choices(atoms, at, close, &commas, budget, depth)?
        {
            words = product(&words, &choices, budget)?;
            at = close + 1;
            continue;
        }
        for word in &mut words {
            word.push(atom.clone());
        }
        at += 1;
    }
    Ok(words)
}

fn product<'a>(left: &Words<'a>, right: &Words<'a>, budget: &mut usize) -> Result<Words<'a>, TooMany> {
    let count = left.len() * right.len();
    *budget = budget.checked_sub(count).ok_or(TooMany)?;
    let mut out = Vec::with_capacity(count);
    for head in left {
        for tail in right {
            let mut word = head.clone();
            word.extend(tail.iter().cloned());
            out.push(word);
        }
    }
    Ok(out)
}

/// Where the brace at `open` closes, and the commas at its own level.
fn matching(atoms: &[Atom<'_>], open: usize) -> Option<(usize, Vec<usize>)> {
    let mut level = 0usize;
    let mut commas = Vec::new();
    for (at, atom) in atoms.iter().enumerate().skip(open) {
        match atom {
            Atom::Char('{') => level += 1,
            Atom::Char('}') => {
                level -= 1;
                if level == 0 {
                    return Some((at, commas));
                }
            }
            Atom::Char(',') if level == 1 => commas.push(at),
            _ => {}
        }
    }
    None
}

fn choices<'a>(
    atoms: &[Atom<'a>],
    open: usize,
    close: usize,
    commas: &[usize],
    budget: &mut usize,
    depth: usize,
) -> Result<Option<Words<'a>>, TooMany> {
    if commas.is_empty() {
        let inner = atoms.get(open + 1..close).unwrap_or_default();
        return range(inner, budget);
    }
    let mut words = Vec::new();
    let mut start = open + 1;
    for end in commas.iter().copied().chain([close]) {
        let inner = atoms.get(start..end).unwrap_or_default();
        words.extend(sequence(inner, budget, depth + 1)?);
        start = end + 1;
    }
    Ok(Some(words))
}

/// `{1..5}`, `{a..e}`, `{1..9..2}`.
fn range<'a>(inner: &[Atom<'a>], budget: &mut usize) -> Result<Option<Words<'a>>, TooMany> {
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
    *budget = budget.checked_sub(count).ok_or(TooMany)?;
    let width = if first.starts_with('0') || last.starts_with('0') { first.len().max(last.len()) } else { 0 };
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
        let words = expand(&parts).ok()??;
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
        ] {
            assert_eq!(words(text).map(|w| w.join("|")).as_deref(), Some(expected), "{text}");
        }
        for text in ["{}", "{a}", "{a", "a}", "HEAD@{1}"] {
            assert_eq!(words(text), None, "{text}");
        }
        let parts = [Part::Text { text: "{1..9999}".into(), quoted: false }];
        assert!(expand(&parts).is_err());
    }
}
