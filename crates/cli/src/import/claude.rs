//! Claude Code's `settings.json`: rules `Tool` and `Tool(specifier)` in the lists deny, ask and allow, which count in
//! that order. A `*` stands there for any text, blanks and all; here it stands for one word.

use serde_json::Value;

use super::Wishes;
use super::line::{Change, Line, Term, Wish};
use super::pattern::{Glob, Pattern, Star, glob, hidden, meet, words};
use super::reach;
use super::texts::{self, Object};
use countersign_model::{Ask, Security, ToolEffect};
use countersign_shell::{Options, Risk, assess};

const AT: &str = "permissions";
const SHELL: &str = "Bash";
/// A rule on one of these is a rule on all that do the same.
const FAMILIES: [(&str, &[&str]); 2] = [
    ("Edit", &["Edit", "MultiEdit", "NotebookEdit", "Write"]),
    ("Read", &["Read", "Glob", "Grep", "LS", "NotebookRead"]),
];

struct Rule<'r> {
    raw: &'r str,
    tool: &'r str,
    /// Absent: all that the tool does.
    specifier: Option<&'r str>,
}

/// What a rule on commands means.
enum Command {
    Every,
    Fits { pattern: Pattern, one_word: bool },
    Unsayable(String),
}

/// Rules that outrank an allow and that no pattern holds up here: what they mean must not be allowed by an entry.
#[derive(Default)]
struct Guards<'r> {
    commands: Vec<(&'r str, Vec<Glob>)>,
    tools: Vec<(&'r str, Vec<&'r str>)>,
}

pub fn lines(document: &Object, wishes: &Wishes) -> anyhow::Result<Vec<Line>> {
    let Some(permissions) = document.get(AT) else { anyhow::bail!("there is no `{AT}` in it") };
    let permissions = texts::object(permissions, AT)?;
    let mut guards = Guards::default();
    let mut lines = Vec::new();
    for raw in texts::texts(permissions, "deny", AT)? {
        let wish = rule(raw).map_or_else(Wish::Refuse, |rule| deny(&rule, &mut guards));
        lines.push(Line { from: format!("deny {raw}"), wish });
    }
    for raw in texts::texts(permissions, "ask", AT)? {
        let wish = rule(raw).map_or_else(Wish::Refuse, |rule| ask(&rule, &mut guards));
        lines.push(Line { from: format!("ask {raw}"), wish });
    }
    for raw in texts::texts(permissions, "allow", AT)? {
        let wish = rule(raw).map_or_else(Wish::Refuse, |rule| allow(&rule, &guards, wishes));
        lines.push(Line { from: format!("allow {raw}"), wish });
    }
    for (key, value) in permissions {
        match key.as_str() {
            "deny" | "ask" | "allow" => {}
            "defaultMode" => lines.push(mode(texts::text(value, "permissions.defaultMode")?, &guards)),
            "additionalDirectories" => {
                for folder in texts::texts(permissions, key, AT)? {
                    let why = "which folders a tool may use is not in a policy here";
                    lines.push(Line::refuse(format!("{key} {folder}"), why));
                }
            }
            _ => lines.push(Line::refuse(format!("{key}: {}", shortly(value)), "not known here")),
        }
    }
    Ok(lines)
}

fn shortly(value: &Value) -> String {
    match value {
        Value::Array(_) => "[…]".to_owned(),
        Value::Object(_) => "{…}".to_owned(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
    }
}

fn rule(raw: &str) -> Result<Rule<'_>, String> {
    let text = raw.trim();
    let broken = || "it is no rule; one reads `Tool` or `Tool(specifier)`".to_owned();
    let (tool, specifier) = match text.split_once('(') {
        None => (text, None),
        Some((tool, rest)) => (tool, Some(rest.strip_suffix(')').ok_or_else(broken)?.trim())),
    };
    if tool.is_empty() || tool.contains(|c: char| c.is_whitespace() || hidden(c) || c == ')') {
        return Err(broken());
    }
    Ok(Rule { raw, tool, specifier: specifier.filter(|specifier| !["", "*"].contains(specifier)) })
}

impl<'r> Rule<'r> {
    fn is_shell(&self) -> bool {
        self.tool == SHELL
    }

    /// All tools that a rule against this one is against.
    fn family(&self) -> Vec<&'r str> {
        let found = FAMILIES.iter().find(|(name, _)| *name == self.tool);
        found.map_or_else(|| vec![self.tool], |(_, family)| family.to_vec())
    }

    /// Whether it means tools that it does not name.
    fn is_many(&self) -> bool {
        self.tool.contains('*') || (self.tool.starts_with("mcp__") && self.tool.split("__").count() < 3)
    }

    fn command(&self) -> Command {
        let Some(text) = self.specifier else { return Command::Every };
        let parameter =
            |(name, value): (&str, &str)| value != "*" && name.chars().all(|c| c.is_alphanumeric() || c == '_');
        if !text.contains(' ') && text.split_once(':').is_some_and(parameter) {
            return Command::Unsayable("it is about a parameter of the tool, not about a command".to_owned());
        }
        match pattern(text) {
            Ok((pattern, one_word)) => Command::Fits { pattern, one_word },
            Err(why) => Command::Unsayable(why),
        }
    }

    /// All texts it fits.
    fn globs(&self) -> Vec<Glob> {
        let Some(text) = self.specifier else { return vec![glob("*")] };
        match prefix(text) {
            Some(prefix) => vec![glob(prefix), glob(&format!("{prefix} *"))],
            None => vec![glob(text)],
        }
    }
}

/// A prefix that ends with a word: `npm run:*`, `npm run *`. With a wildcard before, the last one is no prefix.
fn prefix(text: &str) -> Option<&str> {
    let prefix = text.strip_suffix(":*").or_else(|| text.strip_suffix(" *").filter(|rest| !rest.contains('*')));
    prefix.map(str::trim_end)
}

/// The pattern, and whether it has wildcards that stand for less here than there.
fn pattern(text: &str) -> Result<(Pattern, bool), String> {
    if let Some(prefix) = prefix(text) {
        return Ok((Pattern { words: words(prefix, Star::Wild)?, open: true }, prefix.contains('*')));
    }
    let words = words(text, Star::Wild)?;
    // The last wildcard may go on over further words, which is what being open means.
    let open = text.ends_with('*');
    Ok((Pattern { words, open }, text.trim_end_matches('*').contains('*')))
}

fn deny<'r>(rule: &Rule<'r>, guards: &mut Guards<'r>) -> Wish {
    if !rule.is_shell() {
        return against_tool(rule, ToolEffect::Deny, guards);
    }
    match rule.command() {
        Command::Every => Wish::taken(Change::Deny("*".to_owned())),
        Command::Fits { pattern, one_word: true } => {
            guards.commands.push((rule.raw, rule.globs()));
            let why = "`*` is one word here; where it stands for more, a person is asked instead";
            Wish::narrowed(Change::Deny(pattern.spell()), why)
        }
        Command::Fits { pattern, one_word: false } if pattern.is_bare() => {
            Wish::narrowed(Change::Deny(pattern.spell()), "denied with any arguments, not only without")
        }
        Command::Fits { pattern, one_word: false } => Wish::taken(Change::Deny(pattern.spell())),
        Command::Unsayable(why) => {
            guards.commands.push((rule.raw, rule.globs()));
            Wish::Refuse(format!(
                "{why}; it is asked where nothing else allows it, and no entry that meets it is imported"
            ))
        }
    }
}

fn ask<'r>(rule: &Rule<'r>, guards: &mut Guards<'r>) -> Wish {
    if !rule.is_shell() {
        return against_tool(rule, ToolEffect::Ask, guards);
    }
    guards.commands.push((rule.raw, rule.globs()));
    let why = "no rule here asks about one command: it is asked unless an entry, a grant, its being safe or \
               `security: full` allows it; no entry that meets it is imported";
    Wish::Refuse(why.to_owned())
}

fn against_tool<'r>(rule: &Rule<'r>, effect: ToolEffect, guards: &mut Guards<'r>) -> Wish {
    guards.tools.push((rule.raw, rule.family()));
    if rule.is_many() {
        let why = "rules name tools one by one here; without a rule they are asked, and none that it means is allowed";
        return Wish::Refuse(why.to_owned());
    }
    let all = |effect| rule.family().into_iter().map(|name| Change::Tool(name.to_owned(), effect)).collect();
    match rule.specifier {
        None => Wish::Change { changes: all(effect), why: None },
        // A deny of the whole tool would be too much, and of none too little.
        Some(_) => {
            let why = "a rule here is on the whole tool, so all of its uses are asked";
            Wish::Change { changes: all(ToolEffect::Ask), why: Some(why.to_owned()) }
        }
    }
}

fn allow(rule: &Rule<'_>, guards: &Guards<'_>, wishes: &Wishes) -> Wish {
    if !rule.is_shell() {
        return allow_tool(rule, guards);
    }
    let globs = rule.globs();
    let meets =
        |(_, others): &&(&str, Vec<Glob>)| others.iter().any(|other| globs.iter().any(|glob| meet(glob, other)));
    let guard = guards.commands.iter().find(meets);
    match rule.command() {
        Command::Every => Wish::Refuse("it would allow every command; name the programs".to_owned()),
        Command::Unsayable(why) => Wish::Refuse(why),
        Command::Fits { pattern, one_word } => {
            if let Some((guard, _)) = guard {
                return Wish::Refuse(format!("it would override the rule `{guard}`"));
            }
            if pattern.is_bare() {
                return bare(&pattern);
            }
            let why = one_word.then(|| "`*` is one word here".to_owned());
            match pattern.at_home(wishes.home.as_deref()) {
                Ok(pattern) => reach::allow(&pattern, why, Change::Allow),
                Err(why) => Wish::Refuse(why),
            }
        }
    }
}

fn bare(pattern: &Pattern) -> Wish {
    let alone = "it is for the program without arguments, and an entry of one word would allow any";
    let safe = assess(&pattern.spell(), &Options::default()).risk == Risk::Safe;
    Wish::Refuse(if safe {
        format!("{alone}; being safe it runs anyway, while `allowSafe` is on")
    } else {
        alone.to_owned()
    })
}

fn allow_tool(rule: &Rule<'_>, guards: &Guards<'_>) -> Wish {
    if rule.is_many() {
        return Wish::Refuse("tools are allowed one by one here; name each".to_owned());
    }
    if rule.specifier.is_some() {
        return Wish::Refuse("a rule here is on the whole tool, and that would allow more".to_owned());
    }
    let means = |other: &str| meet(&glob(other), &glob(rule.tool)) || of_server(other, rule.tool);
    match guards.tools.iter().find(|(_, tools)| tools.iter().any(|tool| means(tool))) {
        Some((guard, _)) => Wish::Refuse(format!("it would override the rule `{guard}`")),
        None => {
            let change = Change::Tool(rule.tool.to_owned(), ToolEffect::Allow);
            let more = FAMILIES.iter().any(|(name, _)| *name == rule.tool);
            if more { Wish::narrowed(change, "only the tool of this very name") } else { Wish::taken(change) }
        }
    }
}

/// `mcp__files` is all tools of that server.
fn of_server(server: &str, tool: &str) -> bool {
    server.starts_with("mcp__") && tool.strip_prefix(server).is_some_and(|rest| rest.starts_with("__"))
}

fn mode(name: &str, guards: &Guards<'_>) -> Line {
    let from = format!("defaultMode: {name}");
    match name {
        "default" => Line::keep(from, "what no rule covers is asked"),
        "dontAsk" => Line::change(from, Change::Term(Term::Ask(Ask::Off))),
        "bypassPermissions" => match guards.commands.first() {
            None => Line::change(from, Change::Term(Term::Security(Security::Full))),
            Some((guard, _)) => {
                Line::refuse(from, format!("everything would be allowed, and the rule `{guard}` overridden"))
            }
        },
        _ => Line::refuse(from, "it is a mode of that program; no policy here has it"),
    }
}

#[cfg(test)]
#[path = "claude_tests.rs"]
mod tests;
