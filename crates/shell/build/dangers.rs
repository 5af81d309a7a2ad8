//! Turns `rules/dangers/*.toml` into constant tables, so that nothing is parsed when the program starts.

#[path = "../src/effect.rs"]
#[allow(dead_code, reason = "the build script reads rules and judges nothing")]
mod effect;
#[path = "effects.rs"]
mod effects;
#[path = "../src/danger/format.rs"]
#[allow(dead_code, reason = "the build script reads rules and judges nothing")]
mod format;
#[path = "../src/danger/rule.rs"]
#[allow(dead_code, reason = "the build script reads rules and judges nothing")]
mod rule;
#[path = "../src/danger/words.rs"]
#[allow(dead_code, reason = "the build script reads rules and judges nothing")]
mod words;

use crate::rule_error::RuleError;
use format::{File, Place};
use rule::{Condition, Does, Program, Rule, Speaks, Text};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use toml::de::DeTable;
use words::Test;

/// Writes `dangers.rs` into the build's own folder.
pub fn generate() -> Result<(), Box<dyn std::error::Error>> {
    for file in ["format", "rule", "words"] {
        println!("cargo::rerun-if-changed=src/danger/{file}.rs");
    }
    let mut files = Vec::new();
    for entry in std::fs::read_dir("rules/dangers")? {
        let path = entry?.path();
        if path.extension().is_some_and(|end| end == "toml") {
            files.push(path);
        }
    }
    files.sort();
    let mut all = File::default();
    let mut compiled: Vec<Rule> = Vec::new();
    for path in files {
        let text = std::fs::read_to_string(&path)?;
        let table = DeTable::parse(&text).map_err(|error| RuleError::toml(&text, &error));
        let file = table.and_then(|table| File::read(&text, table));
        let file = file.map_err(|error| error.of(&path.display().to_string()))?;
        if let Some(twice) =
            file.rules.iter().find(|new| all.rules.iter().any(|old| old.id.get_ref() == new.id.get_ref()))
        {
            return Err(format!("{}: rule `{}` is there twice", path.display(), twice.id.get_ref()).into());
        }
        compiled.extend(file.compile());
        all.rules.extend(file.rules);
        all.programs.extend(file.programs);
    }
    let mut source = tables(&all, &compiled)?;
    source.push_str(&codes()?);
    source.push_str(&secrets().map_err(|error| format!("rules/paths.toml: {error}"))?);
    let out = std::env::var("OUT_DIR")?;
    std::fs::write(Path::new(&out).join("dangers.rs"), source)?;
    Ok(())
}

/// The paths whose reading is a danger, as tests.
fn secrets() -> Result<String, Box<dyn std::error::Error>> {
    let table: toml::Table = std::fs::read_to_string("rules/paths.toml")?.parse()?;
    let mut source = String::new();
    for (key, kind, name) in [("names", "name", "SECRET_NAMES"), ("places", "under", "SECRET_PLACES")] {
        let listed = table.get("danger").and_then(|danger| danger.get(key)).and_then(toml::Value::as_array);
        let words: Vec<&str> =
            listed.ok_or(format!("no `{key}` in `danger`"))?.iter().filter_map(toml::Value::as_str).collect();
        let one = Test::try_from(format!("{kind}:{}", words.join("|")))?;
        let _ = writeln!(source, "pub(super) static {name}: Test = {};", test(&one));
    }
    Ok(source)
}

/// What the codes of other layers' reasons say.
fn codes() -> Result<String, Box<dyn std::error::Error>> {
    let arms: Vec<String> =
        effects::read()?.codes.iter().map(|(code, does)| format!("{code:?} => {},", does_text(does))).collect();
    let unknown = does_text(&Does { reversibility: effect::Reversibility::Unknown, ..Does::default() });
    Ok(format!("pub fn said(code: &str) -> Does {{ match code {{ {} _ => {unknown} }} }}\n", arms.join("\n")))
}

/// What is known under one name.
#[derive(Default)]
struct Row {
    program: Option<usize>,
    rules: Vec<usize>,
    known: Vec<String>,
}

fn tables(all: &File, compiled: &[Rule]) -> Result<String, Box<dyn std::error::Error>> {
    let mut to = String::new();
    let _ = writeln!(to, "static RULES: &[Rule] = &[{}];", joined(compiled, rule_text));
    let _ = writeln!(
        to,
        "static PROGRAMS: &[Program] = &[{}];",
        joined(&all.programs, |program| program_text(program.get_ref()))
    );
    let mut rows: BTreeMap<&str, Row> = BTreeMap::new();
    for (number, rule) in all.rules.iter().enumerate() {
        for name in rule.programs.iter() {
            rows.entry(name).or_default().rules.push(number);
        }
    }
    for (number, program) in all.programs.iter().enumerate() {
        for name in program.get_ref().names.iter() {
            if rows.entry(name).or_default().program.replace(number).is_some() {
                return Err(format!("program `{name}` is described twice").into());
            }
        }
    }
    // What is said of `python` is said of `python3`, and found under either name at once.
    let names: Vec<&str> = rows.keys().copied().collect();
    for name in names {
        for relative in rule::family(name).iter().flatten() {
            let Some((program, rules)) = rows.get(relative.as_ref()).map(|row| (row.program, row.rules.clone())) else {
                continue;
            };
            let row = rows.entry(name).or_default();
            row.program = row.program.or(program);
            row.rules.extend(rules);
            row.rules.sort_unstable();
            row.rules.dedup();
        }
    }
    let effects = effects::read()?;
    for (command, does) in &effects.commands {
        let (name, words) = command.split_once(' ').unwrap_or((command, ""));
        let words: Vec<&str> = words.split_whitespace().collect();
        rows.entry(name).or_default().known.push(format!("Known {{ words: &{words:?}, does: {} }}", does_text(does)));
    }
    let rows: Vec<String> = rows
        .iter()
        .map(|(name, row)| {
            let (program, rules, known) = (row.program, &row.rules, row.known.join(", "));
            format!("Row {{ name: {name:?}, program: {program:?}, rules: &{rules:?}, known: &[{known}] }}")
        })
        .collect();
    let _ = writeln!(to, "static ROWS: &[Row] = &[{}];", rows.join(",\n"));
    for (name, place) in [
        ("ANY", Place::Any),
        ("ASSIGN", Place::Assign),
        ("WRITES", Place::Writes),
        ("READS", Place::Reads),
        ("SCRIPT", Place::Script),
    ] {
        let here = all.rules.iter().enumerate().filter(|(_, rule)| rule.programs.is_empty() && rule.place() == place);
        let here: Vec<usize> = here.map(|(number, _)| number).collect();
        let _ = writeln!(to, "static {name}: &[u16] = &{here:?};");
    }
    Ok(to)
}

fn joined<T>(items: &[T], text: impl Fn(&T) -> String) -> String {
    items.iter().map(text).collect::<Vec<_>>().join(",\n")
}

fn list(items: &[Text]) -> String {
    format!("Cow::Borrowed(&[{}])", joined(items, |text| format!("Cow::Borrowed({text:?})")))
}

fn tests(items: &[Test]) -> String {
    format!("Cow::Borrowed(&[{}])", joined(items, test))
}

fn test(test: &Test) -> String {
    let (kind, heads) = (test.kind, test.heads.0);
    format!("Test {{ kind: Kind::{kind:?}, words: {}, heads: Heads({heads}) }}", list(&test.words))
}

fn rule_text(rule: &Rule) -> String {
    let speaks = match &rule.speaks {
        Speaks::OfOne(conditions) => {
            format!("Speaks::OfOne(Cow::Borrowed(&[{}]))", joined(conditions, condition_text))
        }
        Speaks::OfAll(check) => format!("Speaks::OfAll(ScriptCheck::{check:?})"),
    };
    let (id, reason, does) = (&rule.id, &rule.reason, does_text(&rule.does));
    format!("Rule {{ id: Cow::Borrowed({id:?}), reason: Cow::Borrowed({reason:?}), speaks: {speaks}, does: {does} }}")
}

fn does_text(does: &Does) -> String {
    let (effects, reversibility) = (does.effects.0, does.reversibility);
    format!("Does {{ effects: Effects({effects}), reversibility: Reversibility::{reversibility:?} }}")
}

fn condition_text(condition: &Condition) -> String {
    let (name, inside) = match condition {
        Condition::Subcommand(items, heads) => ("Subcommand", format!("{}, Heads({})", list(items), heads.0)),
        Condition::Without(items) => ("Without", list(items)),
        Condition::All(items) => ("All", list(items)),
        Condition::Any(items) => ("Any", list(items)),
        Condition::Value(items, passes) => ("Value", format!("{}, {}", list(items), tests(passes))),
        Condition::Bare => return "Condition::Bare".to_owned(),
        Condition::Operand(items) => ("Operand", tests(items)),
        Condition::First(items) => ("First", tests(items)),
        Condition::Last(items) => ("Last", tests(items)),
        Condition::Source(items) => ("Source", tests(items)),
        Condition::Argument(items) => ("Argument", tests(items)),
        Condition::NoOperand(items) => ("NoOperand", tests(items)),
        Condition::Writes(items) => ("Writes", tests(items)),
        Condition::Reads(items) => ("Reads", tests(items)),
        Condition::Assigns(items, passes) => ("Assigns", format!("{}, {}", list(items), tests(passes))),
        Condition::Code(items) => ("Code", tests(items)),
        Condition::Check(check) => ("Check", format!("Check::{check:?}")),
    };
    format!("Condition::{name}({inside})")
}

fn program_text(program: &Program) -> String {
    let reads = program.reads.as_ref().map_or("None".to_owned(), |items| format!("Some({})", list(items)));
    format!(
        "Program {{ names: Cow::Borrowed(&[]), dialect: Dialect::{:?}, takes: {}, exact: {}, operands: {:?}, writes: {}, \
         reads: {reads}, code: {}, traits: Traits({}) }}",
        program.dialect,
        list(&program.takes),
        list(&program.exact),
        program.operands,
        list(&program.writes),
        list(&program.code),
        program.traits.0,
    )
}
