//! Turns `rules/wrappers.toml` and `rules/env.toml` into constant tables for `src/unwrap` and `src/syntax`.

use std::error::Error;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::{env, fs};

use toml::{Table, Value};

type Outcome<T> = Result<T, Box<dyn Error>>;
/// The words of a subcommand and the number of its grammar.
type Use = (Vec<String>, usize);

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
    let mut source = String::from("static WRAPPERS: &[Wrapper] = &[\n");
    let mut index: Vec<(String, Vec<Use>)> = Vec::new();
    for (number, entry) in tables(&table, "wrapper")?.into_iter().enumerate() {
        let context = format!("{} wrapper {}", file.display(), number + 1);
        wrapper(entry, &mut source).map_err(|error| format!("{context}: {error}"))?;
        for name in list(entry, "names")? {
            let mut words = name.split(' ').map(str::to_owned);
            let program = words.next().ok_or("empty name")?;
            let path: Vec<String> = words.collect();
            match index.iter_mut().find(|(known, _)| *known == program) {
                Some((_, uses)) => uses.push((path, number)),
                None => index.push((program, vec![(path, number)])),
            }
        }
    }
    source.push_str("];\n");
    index.sort();
    source.push_str("static INDEX: &[(&str, &[Use])] = &[\n");
    for (program, mut uses) in index {
        // The longest path first: `docker compose run` before `docker run`.
        uses.sort_by_key(|(path, _)| std::cmp::Reverse(path.len()));
        write!(source, "({program:?}, &[")?;
        for (path, number) in uses {
            write!(source, "(&{path:?}, {number}),")?;
        }
        source.push_str("]),\n");
    }
    source.push_str("];\n");
    interpreters(&table, &mut source)?;
    Ok(source)
}

fn wrapper(entry: &Table, source: &mut String) -> Outcome<()> {
    let known = |key: &str| {
        TEXTS.contains(&key)
            || LISTS.contains(&key)
            || SWITCHES.contains(&key)
            || ["names", "operands", "inner", "examples"].contains(&key)
    };
    if let Some(key) = entry.keys().find(|key| !known(key)) {
        return Err(format!("unknown key `{key}`").into());
    }
    source.push_str("Wrapper {");
    for key in TEXTS {
        write!(source, "{key}: {:?},", text(entry, key)?)?;
    }
    for key in LISTS {
        write!(source, "{key}: &{:?},", list(entry, key)?)?;
    }
    for key in SWITCHES {
        write!(source, "{key}: {},", entry.get(*key).and_then(Value::as_bool).unwrap_or(false))?;
    }
    let operands = entry.get("operands").and_then(Value::as_integer).unwrap_or(0);
    let inner = entry.get("inner").and_then(Value::as_str).unwrap_or("command");
    let (_, shape) = SHAPES.iter().find(|(name, _)| *name == inner).ok_or("unknown `inner`")?;
    write!(source, "operands: {operands}, inner: Shape::{shape}, examples: &{:?}", list(entry, "examples")?)?;
    source.push_str("},\n");
    Ok(())
}

fn interpreters(table: &Table, source: &mut String) -> Outcome<()> {
    let mut names = Vec::new();
    source.push_str("static INTERPRETERS: &[Interpreter] = &[\n");
    for (number, entry) in tables(table, "interpreter")?.into_iter().enumerate() {
        let (short, long) = (text(entry, "short")?, list(entry, "long")?);
        let (loose, examples, plain) = (list(entry, "loose")?, list(entry, "examples")?, list(entry, "plain")?);
        let also_a_tool = entry.get("also_a_tool").and_then(Value::as_bool).unwrap_or(false);
        writeln!(
            source,
            "Interpreter {{ short: {short:?}, long: &{long:?}, loose: &{loose:?}, also_a_tool: {also_a_tool}, examples: &{examples:?}, plain: &{plain:?} }},"
        )?;
        names.extend(list(entry, "names")?.into_iter().map(|name| (name, number)));
    }
    names.sort();
    writeln!(source, "];\nstatic INTERPRETER_NAMES: &[(&str, usize)] = &{names:?};")?;
    Ok(())
}

fn environment(file: &PathBuf) -> Outcome<String> {
    let table: Table = fs::read_to_string(file)?.parse()?;
    let mut source = String::new();
    for key in ["dangerous", "dangerous_prefixes", "sensitive", "sensitive_prefixes", "harmless_pagers", "pagers"] {
        let mut names = list(&table, key)?;
        names.sort();
        names.dedup();
        writeln!(source, "pub(super) static {}: &[&str] = &{names:?};", key.to_uppercase())?;
    }
    Ok(source)
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
