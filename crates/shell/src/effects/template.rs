//! Sentences with holes: `Puts release {1}[ in {-n|--namespace}] back to [revision {2}|the one before].`
//!
//!   {1} {2} …       the operand at that place, after the words that chose the sentence
//!   {*} {2*}        all operands, or all from that place on
//!   {last}          the last operand
//!   {-n|--name}     what the option was given, under the first of these spellings that is there
//!   {1:host}        of a URL, or of `user@host:path`, the host; {1:path} as a path, seen from where the text starts;
//!                   {1:base} the last part of a path; {1:name} before a version (`left-pad` of `left-pad@1.3`)
//!   [ … | … ]       the first alternative whose holes can all be filled, or nothing
//!
//! Used by the build script to check what is written, and at run time to fill it.

/// What stands in a hole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hole<'t> {
    /// From 1 on.
    Operand(usize),
    /// All from this place on.
    Operands(usize),
    Last,
    /// Spellings, with `|` between them.
    Value(&'t str),
}

/// What is taken of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Take {
    Whole,
    Host,
    Path,
    Base,
    Name,
}

/// Reads what stands between braces.
pub fn hole(text: &str) -> Result<(Hole<'_>, Take), String> {
    let (what, take) = match text.rsplit_once(':') {
        None => (text, Take::Whole),
        Some((what, "host")) => (what, Take::Host),
        Some((what, "path")) => (what, Take::Path),
        Some((what, "base")) => (what, Take::Base),
        Some((what, "name")) => (what, Take::Name),
        Some((_, other)) => return Err(format!("`{other}` is none of host, path, base, name")),
    };
    let number = |digits: &str| digits.parse().ok().filter(|number| (1..=9).contains(number));
    let hole = match what {
        "*" => Hole::Operands(1),
        "last" => Hole::Last,
        spellings if spellings.starts_with('-') && spellings.split('|').all(|one| one.starts_with('-')) => {
            Hole::Value(spellings)
        }
        rest => match rest.strip_suffix('*') {
            Some(digits) => Hole::Operands(number(digits).ok_or_else(|| format!("`{{{text}}}` is no hole"))?),
            None => Hole::Operand(number(rest).ok_or_else(|| format!("`{{{text}}}` is no hole"))?),
        },
    };
    Ok((hole, take))
}

/// Fills a template. `None`: a hole outside of brackets has nothing to fill it with.
pub fn fill(template: &str, mut filling: impl FnMut(Hole<'_>, Take) -> Option<String>) -> Option<String> {
    let mut out = String::with_capacity(template.len() + 32);
    let mut rest = template;
    while let Some(at) = rest.find(['[', '{']) {
        let (before, after) = rest.split_at_checked(at)?;
        out.push_str(before);
        if let Some(inner) = after.strip_prefix('[') {
            let (inside, behind) = inner.split_once(']')?;
            if let Some(text) = alternatives(inside).find_map(|one| plain(one, &mut filling)) {
                out.push_str(&text);
            }
            rest = behind;
        } else {
            let (name, behind) = after.strip_prefix('{')?.split_once('}')?;
            let (hole, take) = hole(name).ok()?;
            out.push_str(&filling(hole, take)?);
            rest = behind;
        }
    }
    out.push_str(rest);
    Some(out)
}

/// Text with holes and no brackets.
fn plain(text: &str, filling: &mut impl FnMut(Hole<'_>, Take) -> Option<String>) -> Option<String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(before);
        let (name, behind) = after.split_once('}')?;
        let (hole, take) = hole(name).ok()?;
        out.push_str(&filling(hole, take)?);
        rest = behind;
    }
    out.push_str(rest);
    Some(out)
}

/// Split at `|`, but not inside braces.
fn alternatives(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0u8;
    text.split(move |c: char| {
        match c {
            '{' => depth = depth.saturating_add(1),
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == '|' && depth == 0
    })
}

/// Whether it can be filled at all: every hole is one, every bracket closes.
#[cfg_attr(not(test), allow(dead_code, reason = "for the build script and the tests"))]
pub fn check(template: &str) -> Result<(), String> {
    let mut wrong = None;
    let mut rest = template;
    while let Some((_, after)) = rest.split_once('{') {
        let (name, behind) = after.split_once('}').ok_or_else(|| format!("a brace stays open in `{template}`"))?;
        if let Err(error) = hole(name) {
            wrong = Some(error);
        }
        rest = behind;
    }
    if let Some(error) = wrong {
        return Err(error);
    }
    match fill(template, |_, _| Some(String::new())) {
        Some(_) if template.matches('[').count() == template.matches(']').count() => Ok(()),
        _ => Err(format!("a bracket stays open in `{template}`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(template: &str, operands: &[&str], namespace: Option<&str>) -> Option<String> {
        fill(template, |hole, _| match hole {
            Hole::Operand(at) => operands.get(at - 1).map(|text| (*text).to_owned()),
            Hole::Operands(from) => operands.get(from - 1..).filter(|all| !all.is_empty()).map(|all| all.join(", ")),
            Hole::Last => operands.last().map(|text| (*text).to_owned()),
            Hole::Value(spellings) => {
                assert_eq!(spellings, "-n|--namespace");
                namespace.map(str::to_owned)
            }
        })
    }

    #[test]
    fn what_is_not_given_is_left_out() {
        let template = "Puts release {1}[ in {-n|--namespace}] back to [revision {2}|the one before].";
        let full = filled(template, &["api", "41"], Some("pay"));
        assert_eq!(full.as_deref(), Some("Puts release api in pay back to revision 41."));
        assert_eq!(filled(template, &["api"], None).as_deref(), Some("Puts release api back to the one before."));
        assert_eq!(filled(template, &[], None), None);
        assert_eq!(filled("Deletes {2*}.", &["x", "a", "b"], None).as_deref(), Some("Deletes a, b."));
    }

    #[test]
    fn what_cannot_be_filled_is_found_when_it_is_written() {
        for wrong in ["{0}", "{x}", "{1", "a [b", "{1:size}", "{-n|x}", "b] c", "{10}"] {
            assert!(check(wrong).is_err(), "{wrong}");
        }
        for right in ["{1}", "[ in {-n|--namespace}]", "{*:path}", "{last:base}", "plain", "{2*}"] {
            check(right).unwrap();
        }
    }
}
