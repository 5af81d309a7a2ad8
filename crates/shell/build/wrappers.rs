//! Turns `rules/wrappers.toml` and `rules/env.toml` into constant tables for `src/unwrap` and `src/syntax`: rows of
//! numbers that point into a pool of text, so that nothing is relocated when the program starts.

use crate::pool::{Pool, Slice};
use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::{env, fs};

use toml::{Table, Value};

type Outcome<T> = Result<T, Box<dyn Error>>;
/// The words of a subcommand and the number of its grammar.
type Use = (Vec<String>, usize);

const TOO_MUCH: &str = "more than a table can hold";
const TEXTS: &[&str] = &["flags", "values", "optional", "after", "until"];
const LISTS: &[&str] = &["long", "long_values", "code", "split", "replace", "review", "globals"];
const SWITCHES: &[&str] = &[
    "assignments",
    "permute",
    "numeric",
    "single_dash",
    "lenient",
    "transparent",
    "privileged",
    "elsewhere",
    "more",
    "deferred",
    "stdin",
];
const SHAPES: &[(&str, &str)] = &[
    ("command", "Command"),
    ("code", "Code"),
    ("either", "Either"),
    ("each", "Each"),
    ("first", "First"),
    ("none", "None"),
];

pub fn generate() -> Outcome<()> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("rules");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("wrappers.rs"), wrappers(&root.join("wrappers.toml"))?)?;
    fs::write(out.join("env.rs"), environment(&root.join("env.toml"))?)?;
    Ok(())
}

fn wrappers(file: &PathBuf) -> Outcome<String> {
    let table: Table = fs::read_to_string(file)?.parse()?;
    let mut pool = Pool::default();
    let mut rows = Vec::new();
    let mut examples = Vec::new();
    let mut index: BTreeMap<String, Vec<Use>> = BTreeMap::new();
    for (number, entry) in tables(&table, "wrapper")?.into_iter().enumerate() {
        let context = format!("{} wrapper {}", file.display(), number + 1);
        rows.push(wrapper(entry, &mut pool).map_err(|error| format!("{context}: {error}"))?);
        examples.push(list(entry, "examples")?);
        for name in list(entry, "names")? {
            let mut words = name.split(' ').map(str::to_owned);
            let program = words.next().ok_or("empty name")?;
            index.entry(program).or_default().push((words.collect(), number));
        }
    }
    let (mut names, mut all_uses) = (Vec::new(), Vec::new());
    for (program, mut uses) in index {
        // The longest path first: `docker compose run` before `docker run`.
        uses.sort_by_key(|(path, _)| std::cmp::Reverse(path.len()));
        let from = all_uses.len();
        for (path, number) in uses {
            all_uses.push(format!("({}, {number})", words(&path, &mut pool)?));
        }
        let (name, uses) = (pool.name(&program).ok_or(TOO_MUCH)?, Slice::new(from, all_uses.len()).ok_or(TOO_MUCH)?);
        names.push(format!("({name:?}, {uses:?})"));
    }
    let mut source = interpreters(&table, &mut pool)?;
    array(&mut source, "static WRAPPERS", "Wrapper", &rows)?;
    array(&mut source, "static INDEX", "(Name, Slice)", &names)?;
    array(&mut source, "static USES", "(List, u16)", &all_uses)?;
    writeln!(source, "#[cfg(test)]\npub(super) static WRAPPER_EXAMPLES: &[&[&str]] = &{};", nested(&examples))?;
    finish(&mut source, &pool)?;
    Ok(source)
}

fn wrapper(entry: &Table, pool: &mut Pool) -> Outcome<String> {
    let known = |key: &str| {
        TEXTS.contains(&key)
            || LISTS.contains(&key)
            || SWITCHES.contains(&key)
            || ["names", "operands", "inner", "examples"].contains(&key)
    };
    if let Some(key) = entry.keys().find(|key| !known(key)) {
        return Err(format!("unknown key `{key}`").into());
    }
    let mut source = String::from("Wrapper {");
    for key in TEXTS {
        write!(source, "{key}: {},", said(&text(entry, key)?, pool)?)?;
    }
    for key in LISTS {
        write!(source, "{key}: {},", words(&list(entry, key)?, pool)?)?;
    }
    for key in SWITCHES {
        write!(source, "{key}: {},", entry.get(*key).and_then(Value::as_bool).unwrap_or(false))?;
    }
    let operands = entry.get("operands").and_then(Value::as_integer).unwrap_or(0);
    let inner = entry.get("inner").and_then(Value::as_str).unwrap_or("command");
    let (_, shape) = SHAPES.iter().find(|(name, _)| *name == inner).ok_or("unknown `inner`")?;
    write!(source, "operands: {operands}, inner: Shape::{shape} }}")?;
    Ok(source)
}

fn interpreters(table: &Table, pool: &mut Pool) -> Outcome<String> {
    let mut names = BTreeMap::new();
    let (mut rows, mut examples, mut plain) = (Vec::new(), Vec::new(), Vec::new());
    for (number, entry) in tables(table, "interpreter")?.into_iter().enumerate() {
        let (short, long) = (said(&text(entry, "short")?, pool)?, words(&list(entry, "long")?, pool)?);
        let loose = words(&list(entry, "loose")?, pool)?;
        let (values, holds) = (said(&text(entry, "values")?, pool)?, words(&list(entry, "holds")?, pool)?);
        let also_a_tool = entry.get("also_a_tool").and_then(Value::as_bool).unwrap_or(false);
        rows.push(format!(
            "Interpreter {{ short: {short}, long: {long}, loose: {loose}, values: {values}, holds: {holds}, also_a_tool: {also_a_tool} }}"
        ));
        examples.push(list(entry, "examples")?);
        plain.push(list(entry, "plain")?);
        for name in list(entry, "names")? {
            if names.insert(name.clone(), number).is_some() {
                return Err(format!("interpreter `{name}` is there twice").into());
            }
        }
    }
    let mut named = Vec::new();
    for (name, number) in names {
        named.push(format!("({:?}, {number})", pool.name(&name).ok_or(TOO_MUCH)?));
    }
    let mut source = String::new();
    array(&mut source, "static INTERPRETERS", "Interpreter", &rows)?;
    array(&mut source, "static INTERPRETER_NAMES", "(Name, u16)", &named)?;
    for (name, lines) in [("INTERPRETER_EXAMPLES", examples), ("INTERPRETER_PLAIN", plain)] {
        writeln!(source, "#[cfg(test)]\npub(super) static {name}: &[&[&str]] = &{};", nested(&lines))?;
    }
    Ok(source)
}

fn environment(file: &PathBuf) -> Outcome<String> {
    let table: Table = fs::read_to_string(file)?.parse()?;
    let (mut source, mut pool) = (String::new(), Pool::default());
    for key in [
        "dangerous",
        "dangerous_prefixes",
        "sensitive",
        "sensitive_prefixes",
        "harmless_pagers",
        "pagers",
        "ordinary",
        "ordinary_prefixes",
    ] {
        let mut names = list(&table, key)?;
        names.sort();
        names.dedup();
        let names = pool.words(&names).ok_or(TOO_MUCH)?;
        writeln!(source, "pub(super) static {}: Slice = {names:?};", key.to_uppercase())?;
    }
    finish(&mut source, &pool)?;
    Ok(source)
}

fn said(text: &str, pool: &mut Pool) -> Outcome<String> {
    Ok(format!("Said({:?})", pool.text(text).ok_or(TOO_MUCH)?))
}

fn words(list: &[String], pool: &mut Pool) -> Outcome<String> {
    Ok(format!("List({:?})", pool.words(list).ok_or(TOO_MUCH)?))
}

fn array(source: &mut String, name: &str, kind: &str, rows: &[String]) -> std::fmt::Result {
    writeln!(source, "{name}: [{kind}; {}] = [{}];", rows.len(), rows.join(",\n"))
}

fn finish(source: &mut String, pool: &Pool) -> std::fmt::Result {
    writeln!(source, "static POOL: &str = {:?};", pool.text)?;
    writeln!(source, "static WORDS: [Text; {}] = {:?};", pool.words.len(), pool.words)
}

/// Lists of lines as source.
fn nested(lists: &[Vec<String>]) -> String {
    let lists: Vec<String> = lists.iter().map(|lines| format!("&{lines:?}")).collect();
    format!("[{}]", lists.join(",\n"))
}

fn tables<'t>(table: &'t Table, key: &str) -> Outcome<Vec<&'t Table>> {
    let entries = table.get(key).and_then(Value::as_array).ok_or_else(|| format!("no `[[{key}]]`"))?;
    entries.iter().map(|entry| entry.as_table().ok_or_else(|| "not a table".into())).collect()
}

fn list(table: &Table, key: &str) -> Outcome<Vec<String>> {
    let Some(value) = table.get(key) else { return Ok(Vec::new()) };
    let values = value.as_array().ok_or_else(|| format!("`{key}` is no list"))?;
    values.iter().map(|value| Ok(value.as_str().ok_or_else(|| format!("`{key}` holds no text"))?.to_owned())).collect()
}

fn text(table: &Table, key: &str) -> Outcome<String> {
    match table.get(key) {
        Some(value) => Ok(value.as_str().ok_or_else(|| format!("`{key}` is no text"))?.to_owned()),
        None => Ok(String::new()),
    }
}
