//! Turns `rules/dangers/*.toml` into one constant table, so that nothing is parsed or relocated when the program starts.
//! Format and rows are those of a user's own rules: `src/danger/format.rs`, `src/danger/compile.rs`. Here they are only
//! written as source.

#[path = "codes.rs"]
mod codes;
#[path = "../src/danger/compile.rs"]
mod compile;
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
use compile::Compiler;
use format::File;
use rule::{Condition, Does, Row, Rule, Speaks, Table, Test};
use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::{Debug, Write as _};
use std::path::Path;
use toml::de::DeTable;
use words::WrittenTest;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Writes `dangers.rs` into the build's own folder.
pub fn generate() -> Outcome<()> {
    for file in ["compile", "format", "rule", "words"] {
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
    let mut compiler = Compiler::default();
    for path in files {
        let text = std::fs::read_to_string(&path)?;
        add(&text, &mut compiler).map_err(|error| error.of(&path.display().to_string()))?;
    }
    join_families(&mut compiler);
    let codes = codes::read()?;
    let mut source = secrets(&mut compiler).map_err(|error| format!("rules/paths.toml: {error}"))?;
    source.push_str(&said(&codes));
    source.push_str(&table_text(&compiler.finish()?)?);
    let out = std::env::var("OUT_DIR")?;
    std::fs::write(Path::new(&out).join("dangers.rs"), source)?;
    Ok(())
}

fn add(text: &str, compiler: &mut Compiler) -> Result<(), RuleError> {
    let table = DeTable::parse(text).map_err(|error| RuleError::toml(text, &error))?;
    let file = File::read(text, table)?;
    if let Some(twice) = file.rules.iter().find(|rule| compiler.has_rule(rule.id.get_ref())) {
        let message = format!("rule `{}` is there twice", twice.id.get_ref());
        return Err(RuleError::at(text, twice.id.span(), message));
    }
    for (at, program) in file.programs.iter().enumerate() {
        let before = file.programs.iter().take(at).flat_map(|program| &program.get_ref().names);
        let before: Vec<&String> = before.collect();
        let described = |name: &&String| {
            before.contains(name) || compiler.names.get(*name).is_some_and(|named| named.program.is_some())
        };
        if let Some(name) = program.get_ref().names.iter().find(described) {
            return Err(RuleError::at(text, program.span(), format!("program `{name}` is described twice")));
        }
    }
    compiler.add(text, &file)
}

/// What is said of `python` is said of `python3`, and found under either name at once.
fn join_families(compiler: &mut Compiler) {
    let names: Vec<String> = compiler.names.keys().cloned().collect();
    for name in names {
        for relative in rule::family(&name).iter().flatten() {
            let relative = compiler.names.get(relative.as_ref()).map(|named| (named.program, named.rules.clone()));
            let Some((program, rules)) = relative else { continue };
            let named = compiler.names.entry(name.clone()).or_default();
            named.program = named.program.or(program);
            named.rules.extend(rules);
            named.rules.sort_unstable();
            named.rules.dedup();
        }
    }
}

/// The paths whose reading is a danger, as tests.
fn secrets(compiler: &mut Compiler) -> Outcome<String> {
    let table: toml::Table = std::fs::read_to_string("rules/paths.toml")?.parse()?;
    let mut source = String::new();
    for (key, kind, name) in [("names", "name", "SECRET_NAMES"), ("places", "under", "SECRET_PLACES")] {
        let listed = table.get("danger").and_then(|danger| danger.get(key)).and_then(toml::Value::as_array);
        let words: Vec<&str> =
            listed.ok_or(format!("no `{key}` in `danger`"))?.iter().filter_map(toml::Value::as_str).collect();
        let written = WrittenTest::try_from(format!("{kind}:{}", words.join("|")))?;
        let row = compiler.test(&written).ok_or("too many words")?;
        writeln!(source, "pub(super) static {name}: Test = {};", test(&row))?;
    }
    Ok(source)
}

/// What the codes of other layers' reasons say.
fn said(codes: &BTreeMap<String, codes::Said>) -> String {
    let arm = |(code, said): (&String, &codes::Said)| format!("{code:?} => {},", does_text(&said.does));
    let arms: Vec<String> = codes.iter().map(arm).collect();
    let quiet: Vec<String> =
        codes.iter().filter(|(_, said)| !said.tells).map(|(code, _)| format!("{code:?}")).collect();
    let unknown = does_text(&Does { reversibility: crate::effect::Reversibility::Unknown, ..Does::default() });
    format!(
        "pub fn said(code: &str) -> Does {{ match code {{ {} _ => {unknown} }} }}\n\
         pub fn tells(code: &str) -> bool {{ !matches!(code, {}) }}\n",
        arms.join("\n"),
        quiet.join(" | ")
    )
}

fn table_text(table: &Table) -> Outcome<String> {
    let mut source = format!("pub(super) static BUILT_IN: Table = Table {{\npool: Cow::Borrowed({:?}),\n", table.pool);
    list(&mut source, "words", &table.words, plain)?;
    list(&mut source, "tests", &table.tests, test)?;
    list(&mut source, "conditions", &table.conditions, condition)?;
    list(&mut source, "rules", &table.rules, rule_text)?;
    list(&mut source, "programs", &table.programs, program)?;
    list(&mut source, "rows", &table.rows, plain::<Row>)?;
    list(&mut source, "numbers", &table.numbers, plain)?;
    writeln!(source, "places: {:?},\n}};", table.places)?;
    Ok(source)
}

fn list<T>(source: &mut String, name: &str, rows: &[T], text: impl Fn(&T) -> String) -> std::fmt::Result {
    writeln!(source, "{name}: Cow::Borrowed(&[")?;
    for row in rows {
        writeln!(source, "    {},", text(row))?;
    }
    writeln!(source, "]),")
}

/// Rows of numbers alone read as source when they are printed.
fn plain<T: Debug>(row: &T) -> String {
    format!("{row:?}")
}

fn test(Test { kind, words, heads }: &Test) -> String {
    format!("Test {{ kind: Kind::{kind:?}, words: {words:?}, heads: {heads:?} }}")
}

fn condition(condition: &Condition) -> String {
    match condition {
        Condition::Check(check) => format!("Condition::Check(Check::{check:?})"),
        other => format!("Condition::{other:?}"),
    }
}

fn rule_text(Rule { id, reason, speaks, does }: &Rule) -> String {
    let speaks = match speaks {
        Speaks::OfOne(conditions) => format!("Speaks::OfOne({conditions:?})"),
        Speaks::OfAll(check) => format!("Speaks::OfAll(ScriptCheck::{check:?})"),
    };
    format!("Rule {{ id: {id:?}, reason: {reason:?}, speaks: {speaks}, does: {} }}", does_text(does))
}

fn does_text(Does { effects, reversibility }: &Does) -> String {
    format!("Does {{ effects: {effects:?}, reversibility: Reversibility::{reversibility:?} }}")
}

fn program(row: &rule::Program) -> String {
    let rule::Program { dialect, takes, exact, operands, writes, reads, code, traits } = row;
    format!(
        "Program {{ dialect: Dialect::{dialect:?}, takes: {takes:?}, exact: {exact:?}, operands: {operands:?}, \
         writes: {writes:?}, reads: {reads:?}, code: {code:?}, traits: {traits:?} }}"
    )
}
