//! `exec-approvals.json`, version 1: terms by default and by agent, and globs over the files that programs are.
//!
//! There an agent has what `*` has and its own entries beside; here an agent can only be held to less. So `*` becomes
//! the profile, and an agent's own entries need a profile of their own.

use serde_json::Value;

use super::Wishes;
use super::line::{Change, Line, Term, Wish, from_word};
use super::pattern::{Pattern, Word, hidden};
use super::reach;
use super::texts::{self, Object, join};
use countersign_model::{Ask, Security};

const TERMS: [&str; 3] = ["security", "ask", "askFallback"];
/// What an entry may say beside its pattern without meaning less or more by it.
const REMARKS: [&str; 6] = ["id", "source", "lastUsedAt", "lastUsedCommand", "lastResolvedPath", "commandText"];

/// Whom a section is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum For<'a> {
    Profile,
    Agent(&'a str),
    /// Another agent than the one that was asked for.
    Nobody,
}

pub fn lines(document: &Object, wishes: &Wishes) -> anyhow::Result<Vec<Line>> {
    texts::version_is_1(document)?;
    let mut lines = Vec::new();
    let empty = Object::new();
    let section = |key: &str| document.get(key).map_or(Ok(&empty), |value| texts::object(value, key));
    let (defaults, agents) = (section("defaults")?, section("agents")?);
    // The strongest first: what it says, the weaker ones say to nobody.
    let mut sections: Vec<(String, &Object)> = Vec::new();
    for agent in wishes.agent.as_deref().into_iter().chain(["*"]) {
        if let Some(found) = agents.get(agent) {
            let at = format!("agents.{agent}");
            sections.push((at.clone(), texts::object(found, &at)?));
        } else if agent != "*" {
            anyhow::bail!("there is no agent `{agent}` in it; its agents are {}", names(agents));
        }
    }
    sections.push(("defaults".to_owned(), defaults));
    let security = sections.iter().find_map(|(_, section)| section.get("security").and_then(Value::as_str));
    terms(&sections, security, For::Profile, &mut lines)?;
    for (at, section) in &sections {
        rest(at, section, For::Profile, wishes, &mut lines)?;
    }
    for (agent, section) in agents.iter().filter(|(agent, _)| *agent != "*" && Some(*agent) != wishes.agent.as_ref()) {
        let at = format!("agents.{agent}");
        let section = texts::object(section, &at)?;
        let whom = if wishes.agent.is_some() { For::Nobody } else { For::Agent(agent) };
        let own = section.get("security").and_then(Value::as_str);
        terms(&[(at.clone(), section)], own.or(security), whom, &mut lines)?;
        rest(&at, section, whom, wishes, &mut lines)?;
    }
    for key in document.keys().filter(|key| !["version", "defaults", "agents"].contains(&key.as_str())) {
        let why = if key == "socket" { "how that gateway is reached is no policy" } else { "not known here" };
        lines.push(Line::refuse(key.clone(), why));
    }
    Ok(lines)
}

fn names(agents: &Object) -> String {
    let names: Vec<String> = agents.keys().map(|name| format!("`{name}`")).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// The terms of sections that overrule each other, the strongest first. `security`: what they come to, together with
/// what they inherit.
fn terms(
    sections: &[(String, &Object)],
    security: Option<&str>,
    whom: For<'_>,
    lines: &mut Vec<Line>,
) -> anyhow::Result<()> {
    for key in TERMS {
        let mut said = None;
        for (at, section) in sections {
            let Some(value) = section.get(key).filter(|value| !value.is_null()) else { continue };
            let at = join(at, key);
            let word = texts::text(value, &at)?;
            let term = term(key, word, &at)?;
            let from = format!("{at}: {word}");
            lines.push(match (&said, whom) {
                (Some(stronger), _) => Line::refuse(from, format!("`{stronger}` overrules it")),
                (None, For::Nobody) => Line::refuse(from, "it is another agent's"),
                (None, For::Profile | For::Agent(_)) if never_asks(term, security) => Line::refuse(
                    from,
                    "with `security: full` it means that everything runs unasked; here it would deny what is not covered",
                ),
                (None, For::Profile) => Line::change(from, Change::Term(term)),
                (None, For::Agent(agent)) => Line::change(from, Change::AgentTerm(agent.to_owned(), term)),
            });
            said = said.or(Some(at));
        }
    }
    Ok(())
}

fn never_asks(term: Term, security: Option<&str>) -> bool {
    term == Term::Ask(Ask::Off) && security.and_then(from_word) == Some(Security::Full)
}

/// Reads one of the terms that gateway and hub share.
pub fn term(key: &str, word: &str, at: &str) -> anyhow::Result<Term> {
    let (term, known) = match key {
        "security" => (from_word(word).map(Term::Security), "`deny`, `allowlist` or `full`"),
        "ask" => (from_word(word).map(Term::Ask), "`off`, `on-miss` or `always`"),
        _ => (from_word(word).map(Term::Fallback), "`deny`, `allowlist` or `full`"),
    };
    term.ok_or_else(|| texts::unknown_word(at, word, known))
}

/// Everything of a section but its terms.
fn rest(at: &str, section: &Object, whom: For<'_>, wishes: &Wishes, lines: &mut Vec<Line>) -> anyhow::Result<()> {
    for (key, value) in section {
        let place = join(at, key);
        match key.as_str() {
            key if TERMS.contains(&key) => {}
            "allowlist" => {
                for (index, value) in texts::list(value, &place)?.iter().enumerate() {
                    lines.push(entry(&format!("{place}[{index}]"), value, whom, wishes)?);
                }
            }
            "autoAllowSkills" if value == &Value::Bool(false) => {
                lines.push(Line::keep(place, "nothing is allowed for being a skill's"));
            }
            "autoAllowSkills" => lines.push(Line::refuse(place, "which programs that means is not in the file")),
            _ => lines.push(Line::refuse(place, "not known here")),
        }
    }
    Ok(())
}

fn entry(at: &str, value: &Value, whom: For<'_>, wishes: &Wishes) -> anyhow::Result<Line> {
    let entry = texts::object(value, at)?;
    let Some(pattern) = entry.get("pattern") else { anyhow::bail!("`{at}` has no `pattern`") };
    let pattern = texts::text(pattern, &join(at, "pattern"))?.trim();
    let arguments = entry.get("argPattern").filter(|value| !value.is_null());
    let arguments = arguments.map(|value| texts::text(value, &join(at, "argPattern"))).transpose()?;
    let from = match arguments {
        Some(arguments) => format!("{at}: {pattern} with {arguments}"),
        None => format!("{at}: {pattern}"),
    };
    if whom == For::Nobody {
        return Ok(Line::refuse(from, "it is another agent's"));
    }
    let known = |key: &&String| REMARKS.contains(&key.as_str()) || ["pattern", "argPattern"].contains(&key.as_str());
    if let Some(unknown) = entry.keys().find(|key| !known(key)) {
        return Ok(Line::refuse(from, format!("`{unknown}` is not known here and may make it narrower")));
    }
    let made = program(pattern, wishes.home.as_deref()).and_then(|(program, why)| {
        let words = arguments.map_or(Ok(Vec::new()), words_of)?;
        Ok((Pattern { words: [program].into_iter().chain(words).collect(), open: false }, why))
    });
    let wish = match made {
        Err(why) => Wish::Refuse(why),
        Ok((pattern, why)) => reach::allow(&pattern, why, |pattern| match whom {
            For::Agent(agent) => Change::AgentAllow(agent.to_owned(), pattern),
            For::Profile | For::Nobody => Change::Allow(pattern),
        }),
    };
    Ok(Line { from, wish })
}

/// A glob over files as the program of an entry, and how it is narrower.
fn program(glob: &str, home: Option<&str>) -> Result<(Word, Option<String>), String> {
    if glob.is_empty() || glob.chars().any(hidden) {
        return Err("it names no program".to_owned());
    }
    if let Some(c) = glob.chars().find(|c| "?[]{}!\\".contains(*c)) {
        return Err(format!("`{c}` in a path cannot be said here; name the file"));
    }
    if glob.chars().all(|c| c == '*') {
        return Err("it names no program, so it would allow every one".to_owned());
    }
    if !glob.contains('/') && glob.contains(char::is_whitespace) {
        return Err("it is a command, and there a pattern is a program; so it never allowed anything".to_owned());
    }
    if let Some(name) = glob.strip_prefix("**/").filter(|name| !name.contains(['/', '*'])) {
        return Ok((
            Word::literal(name),
            Some(format!("only the `{name}` that is found by its name, not any file of that name")),
        ));
    }
    let folder = glob.strip_suffix("/**").unwrap_or(glob);
    if folder.contains("**") {
        return Err("`**` stands only at the end of a path here; name the folder".to_owned());
    }
    let pattern = Pattern { words: vec![Word::glob(glob)], open: false }.at_home(home)?;
    pattern.words.into_iter().next().map(|word| (word, None)).ok_or_else(|| "it names no program".to_owned())
}

/// Arguments that an anchored expression without any operator stands for.
fn words_of(expression: &str) -> Result<Vec<Word>, String> {
    let cannot =
        || "its `argPattern` is more than a list of words, and entries know only words; allow them by hand".to_owned();
    let inner = expression.strip_prefix('^').and_then(|rest| rest.strip_suffix('$')).ok_or_else(cannot)?;
    let by_nul = inner.contains('\0') || inner.contains(r"\x00");
    let mut words = vec![String::new()];
    let inner = inner.replace(r"\x00", "\0");
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        let c = match c {
            '\0' => {
                words.push(String::new());
                continue;
            }
            ' ' if !by_nul => {
                words.push(String::new());
                continue;
            }
            '\\' => chars.next().filter(|c| c.is_ascii_punctuation() || *c == ' ').ok_or_else(cannot)?,
            c if ".^$*+?()[]{}|".contains(c) => return Err(cannot()),
            c => c,
        };
        if let Some(word) = words.last_mut() {
            word.push(c);
        }
    }
    // One stands after every argument.
    if by_nul && words.pop().is_none_or(|last| !last.is_empty()) {
        return Err(cannot());
    }
    if words.iter().all(String::is_empty) {
        return Err("it is for no arguments at all, and an entry of one word would allow any".to_owned());
    }
    if words.iter().any(String::is_empty) {
        return Err(cannot());
    }
    Ok(words.iter().map(|word| Word::literal(word)).collect())
}
