//! Turns `rules/dangers/*.toml` into constant tables, so that nothing is parsed when the program starts.

#[path = "../src/danger/rule.rs"]
#[allow(dead_code, reason = "the build script reads rules and judges nothing")]
mod rule;

use rule::{File, Program, Rule, Test, Text};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// Writes `dangers.rs` into the build's own folder.
pub fn generate() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=src/danger/rule.rs");
    let mut files = Vec::new();
    for entry in std::fs::read_dir("rules/dangers")? {
        let path = entry?.path();
        if path.extension().is_some_and(|end| end == "toml") {
            files.push(path);
        }
    }
    files.sort();
    let mut all = File::default();
    for path in files {
        let file =
            File::parse(&std::fs::read_to_string(&path)?).map_err(|error| format!("{}: {error}", path.display()))?;
        if let Some(twice) = file.rules.iter().find(|new| all.rules.iter().any(|old| old.id == new.id)) {
            return Err(format!("{}: rule `{}` is there twice", path.display(), twice.id).into());
        }
        all.rules.extend(file.rules);
        all.programs.extend(file.programs);
    }
    let out = std::env::var("OUT_DIR")?;
    std::fs::write(Path::new(&out).join("dangers.rs"), tables(&all)?)?;
    Ok(())
}

fn tables(all: &File) -> Result<String, String> {
    let mut to = String::new();
    let _ = writeln!(to, "pub static RULES: &[Rule] = &[{}];", joined(&all.rules, rule_text));
    let _ = writeln!(to, "pub static PROGRAMS: &[Program] = &[{}];", joined(&all.programs, program_text));
    let mut rules: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (number, rule) in all.rules.iter().enumerate() {
        for name in rule.programs.iter() {
            rules.entry(name).or_default().push(number);
        }
        if rule.programs.is_empty() {
            rules.entry(rule.place()).or_default().push(number);
        }
    }
    let mut programs: BTreeMap<&str, usize> = BTreeMap::new();
    for (number, program) in all.programs.iter().enumerate() {
        for name in program.names.iter() {
            if programs.insert(name, number).is_some() {
                return Err(format!("program `{name}` is described twice"));
            }
        }
    }
    let rows: Vec<String> = rules.iter().map(|(name, numbers)| format!("({name:?}, &{numbers:?})")).collect();
    let _ = writeln!(to, "pub static RULES_OF: &[(&str, &[u16])] = &[{}];", rows.join(",\n"));
    let rows: Vec<String> = programs.iter().map(|(name, number)| format!("({name:?}, {number})")).collect();
    let _ = writeln!(to, "pub static PROGRAM_OF: &[(&str, u16)] = &[{}];", rows.join(",\n"));
    Ok(to)
}

fn joined<T>(items: &[T], text: impl Fn(&T) -> String) -> String {
    items.iter().map(text).collect::<Vec<_>>().join(",\n")
}

fn list(items: &[Text]) -> String {
    format!("Cow::Borrowed(&[{}])", joined(items, |text| format!("Cow::Borrowed({text:?})")))
}

fn tests(items: &[Test]) -> String {
    let one = |test: &Test| format!("Test {{ kind: Kind::{:?}, words: {} }}", test.kind, list(&test.words));
    format!("Cow::Borrowed(&[{}])", joined(items, one))
}

fn rule_text(rule: &Rule) -> String {
    let mut to = format!("Rule {{ id: Cow::Borrowed({:?}), reason: Cow::Borrowed({:?}), ", rule.id, rule.reason);
    let lists = [
        ("programs", &rule.programs),
        ("subcommand", &rule.subcommand),
        ("all", &rule.all),
        ("any", &rule.any),
        ("none", &rule.none),
        ("value_of", &rule.value_of),
        ("assign", &rule.assign),
    ];
    for (name, items) in lists {
        let _ = write!(to, "{name}: {}, ", list(items));
    }
    let groups = [
        ("value", &rule.value),
        ("operand", &rule.operand),
        ("also", &rule.also),
        ("first", &rule.first),
        ("last", &rule.last),
        ("source", &rule.source),
        ("not_operand", &rule.not_operand),
        ("argument", &rule.argument),
        ("writes", &rule.writes),
        ("reads", &rule.reads),
        ("assigned", &rule.assigned),
        ("code", &rule.code),
        ("code_also", &rule.code_also),
    ];
    for (name, items) in groups {
        let _ = write!(to, "{name}: {}, ", tests(items));
    }
    let check = rule.check.map_or("None".to_owned(), |check| format!("Some(Check::{check:?})"));
    let script = rule.script.map_or("None".to_owned(), |check| format!("Some(ScriptCheck::{check:?})"));
    let _ = write!(
        to,
        "bare: {}, check: {check}, script: {script}, matches: Cow::Borrowed(&[]), no_match: Cow::Borrowed(&[]) }}",
        rule.bare
    );
    to
}

fn program_text(program: &Program) -> String {
    let reads = program.reads.as_ref().map_or("None".to_owned(), |items| format!("Some({})", list(items)));
    let traits = joined(&program.traits, |one| format!("Trait::{one:?}"));
    format!(
        "Program {{ names: Cow::Borrowed(&[]), dialect: Dialect::{:?}, takes: {}, exact: {}, operands: {:?}, writes: {}, \
         reads: {reads}, code: {}, traits: Cow::Borrowed(&[{traits}]) }}",
        program.dialect,
        list(&program.takes),
        list(&program.exact),
        program.operands,
        list(&program.writes),
        list(&program.code),
    )
}
