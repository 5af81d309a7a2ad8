//! Turns `rules/programs/*.toml` and `rules/paths.toml` into constant tables for `src/safe`.
//!
//! One pool of text and flat arrays that point into it by number: nothing to relocate when the program starts,
//! nothing to parse when it runs. The format is described in `rules/programs/README.md`.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use tables::{denials, flag, known_keys, list, string};
use toml::{Table, Value};

#[path = "grammars.rs"]
mod grammars;
#[path = "tables.rs"]
mod tables;

type Outcome<T> = Result<T, Box<dyn Error>>;

const GRAMMAR_KEYS: &[&str] = &[
    "short",
    "long",
    "paths",
    "numbers",
    "deny",
    "use",
    "operands",
    "max",
    "min",
    "excess",
    "needs",
    "operands_need",
    "check",
    "style",
    "digits",
    "plus",
    "harmless",
    "recursive",
    "pattern_options",
    "exact",
];
const PROGRAM_KEYS: &[&str] = &["names", "summary", "sub", "deny_sub", "globals_anywhere", "match", "no_match"];
const SUB_KEYS: &[&str] = &["names"];

pub fn generate() -> Outcome<()> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("rules");
    let out = PathBuf::from(env::var("OUT_DIR")?).join("programs.rs");
    let mut tables = Tables::default();
    // Number 0 means "nothing denied".
    tables.denials.push(("".into(), "".into()));
    let mut files: Vec<PathBuf> = fs::read_dir(root.join("programs"))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|ext| ext == "toml"))
        .collect();
    files.sort();
    for file in files {
        tables.file(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    }
    let paths = root.join("paths.toml");
    tables.paths(&paths).map_err(|error| format!("{}: {error}", paths.display()))?;
    fs::write(out, tables.source()?)?;
    Ok(())
}

#[derive(Default)]
struct Tables {
    pool: String,
    seen: BTreeMap<String, usize>,
    options: Vec<String>,
    words: Vec<String>,
    denials: Vec<(String, String)>,
    grammars: Vec<String>,
    subs: Vec<String>,
    programs: BTreeMap<String, String>,
    examples: Vec<(String, bool)>,
    environment: BTreeMap<&'static str, Vec<String>>,
    sensitive: Vec<String>,
    exact_names: BTreeMap<String, usize>,
    extensions: BTreeMap<String, usize>,
    excused: Vec<String>,
}

/// What an option takes, by the number that the generated source uses.
#[derive(Clone)]
enum Takes {
    Nothing,
    Value,
    Path,
    Number,
    Pair,
    Maybe,
    Denied(usize),
}

#[derive(Clone, Default)]
struct Options {
    short: BTreeMap<char, Takes>,
    long: BTreeMap<String, Takes>,
}

impl Tables {
    fn file(&mut self, path: &Path) -> Outcome<()> {
        let text = fs::read_to_string(path)?;
        let table: Table = text.parse()?;
        let empty = Table::new();
        let sets = match table.get("set") {
            Some(Value::Table(sets)) => sets,
            _ => &empty,
        };
        for (key, value) in &table {
            match (key.as_str(), value) {
                ("set", _) => {}
                ("program", Value::Array(programs)) => {
                    for program in programs {
                        let program = program.as_table().ok_or("a program is a table")?;
                        let names = list(program, "names")?;
                        self.program(program, &names, sets).map_err(|error| format!("{}: {error}", names.join(" ")))?;
                    }
                }
                ("environment", Value::Table(environment)) => {
                    for field in
                        ["safe", "cat_only", "influential", "influential_prefixes", "printable", "secret_parts"]
                    {
                        self.environment.insert(field, list(environment, field)?);
                    }
                }
                _ => return Err(format!("unknown key `{key}`").into()),
            }
        }
        Ok(())
    }

    fn program(&mut self, table: &Table, names: &[String], sets: &Table) -> Outcome<()> {
        known_keys(table, &[PROGRAM_KEYS, GRAMMAR_KEYS])?;
        if string(table, "summary")?.is_empty() {
            return Err("needs a summary".into());
        }
        let own = self.options(table, sets)?;
        let grammar = self.grammar(table, &own)?;
        let anywhere = flag(table, "globals_anywhere")?;
        // Literal names before patterns, then the longest that fits.
        let mut subs: Vec<((bool, std::cmp::Reverse<usize>), String)> = Vec::new();
        let rank = |words: &[String]| (words.iter().any(|word| word.contains('*')), std::cmp::Reverse(words.len()));
        if let Some(Value::Array(entries)) = table.get("sub") {
            for entry in entries {
                let entry = entry.as_table().ok_or("a subcommand is a table")?;
                let sub_names = list(entry, "names")?;
                let told = |error: Box<dyn Error>| format!("{}: {error}", sub_names.join(" | "));
                known_keys(entry, &[SUB_KEYS, GRAMMAR_KEYS]).map_err(told)?;
                let mut options = self.options(entry, sets).map_err(told)?;
                if anywhere {
                    for (letter, takes) in &own.short {
                        options.short.entry(*letter).or_insert_with(|| takes.clone());
                    }
                    for (name, takes) in &own.long {
                        options.long.entry(name.clone()).or_insert_with(|| takes.clone());
                    }
                }
                let number = self.grammar(entry, &options).map_err(told)?;
                for name in &sub_names {
                    let words: Vec<String> = name.split_whitespace().map(str::to_owned).collect();
                    let slice = self.words(&words);
                    subs.push((rank(&words), format!("Sub {{ words: {slice}, grammar: {number}, denial: 0 }}")));
                }
            }
        }
        for (keys, text) in denials(table, "deny_sub")? {
            let denial = self.denial(&text)?;
            for key in keys.split_whitespace() {
                let words: Vec<String> = key.split('+').map(str::to_owned).collect();
                let slice = self.words(&words);
                subs.push((rank(&words), format!("Sub {{ words: {slice}, grammar: 0, denial: {denial} }}")));
            }
        }
        subs.sort_by_key(|(rank, _)| *rank);
        let from = self.subs.len();
        self.subs.extend(subs.into_iter().map(|(_, sub)| sub));
        let subs = slice(from, self.subs.len());
        for name in names {
            let text = self.text(name);
            let row = format!("Program {{ name: {text}, grammar: {grammar}, subs: {subs} }}");
            if self.programs.insert(name.clone(), row).is_some() {
                return Err(format!("`{name}` is defined twice").into());
            }
        }
        for (key, safe) in [("match", true), ("no_match", false)] {
            self.examples.extend(list(table, key)?.into_iter().map(|example| (example, safe)));
        }
        Ok(())
    }

    fn paths(&mut self, path: &Path) -> Outcome<()> {
        let table: Table = fs::read_to_string(path)?.parse()?;
        for entry in table.get("path").and_then(Value::as_array).ok_or("no paths")? {
            let entry = entry.as_table().ok_or("a path is a table")?;
            known_keys(entry, &[&["patterns", "reason", "samples", "match", "no_match"]])?;
            let reason = self.denial(&format!("sensitive_path: {}", string(entry, "reason")?))?;
            let samples = list(entry, "samples")?;
            let samples = self.words(&samples);
            for pattern in list(entry, "patterns")? {
                if !pattern.contains(['/', '*', '?', '~']) {
                    self.exact_names.insert(pattern, reason);
                    continue;
                }
                let extension = pattern.strip_prefix("*.").filter(|rest| !rest.contains(['.', '/', '*', '?']));
                if let Some(extension) = extension {
                    self.extensions.insert(extension.to_owned(), reason);
                    continue;
                }
                let root = pattern.starts_with('/');
                let components: Vec<String> = pattern.split('/').filter(|c| !c.is_empty()).map(str::to_owned).collect();
                // The byte that the first component after an anchor begins with; 0 when that is open.
                let head = components.iter().find(|component| *component != "~").and_then(|c| c.bytes().next());
                let head = head.filter(|byte| !b"*?[".contains(byte)).unwrap_or(0);
                let components = self.words(&components);
                self.sensitive.push(format!(
                    "Sensitive {{ components: {components}, rooted: {root}, head: {head}, samples: {samples}, denial: {reason} }}"
                ));
            }
        }
        self.excused = list(&table, "excused")?;
        Ok(())
    }

    fn denial(&mut self, text: &str) -> Outcome<usize> {
        let (code, reason) = text.split_once(": ").ok_or(format!("`{text}` is not `code: reason`"))?;
        let pair = (code.to_owned(), reason.to_owned());
        if let Some(number) = self.denials.iter().position(|known| *known == pair) {
            return Ok(number);
        }
        self.denials.push(pair);
        Ok(self.denials.len() - 1)
    }

    fn split(&mut self, text: &str) -> String {
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        self.words(&words)
    }

    fn words(&mut self, words: &[String]) -> String {
        let from = self.words.len();
        for word in words {
            let text = self.text(word);
            self.words.push(text);
        }
        slice(from, self.words.len())
    }

    fn text(&mut self, text: &str) -> String {
        let at = *self.seen.entry(text.to_owned()).or_insert_with(|| {
            let at = self.pool.len();
            self.pool.push_str(text);
            at
        });
        format!("Text {{ at: {at}, len: {} }}", text.len())
    }

    fn sensitive_names(&mut self, names: BTreeMap<String, usize>) -> Vec<String> {
        let row = |(name, denial): (String, usize)| {
            let text = self.text(&name);
            format!("SensitiveName {{ name: {text}, denial: {denial} }}")
        };
        names.into_iter().map(row).collect()
    }

    fn source(mut self) -> Outcome<String> {
        let denials: Vec<(String, String)> = self.denials.drain(..).collect();
        let denials: Vec<String> = denials
            .iter()
            .map(|(code, reason)| {
                let (code, reason) = (self.text(code), self.text(reason));
                format!("Denial {{ code: {code}, reason: {reason} }}")
            })
            .collect();
        let mut lists = Vec::new();
        for (key, mut words) in std::mem::take(&mut self.environment) {
            words.sort();
            let words = self.words(&words);
            lists.push(format!("pub(super) static {}: Slice = {words};\n", key.to_uppercase()));
        }
        let excused = std::mem::take(&mut self.excused);
        let excused = self.words(&excused);
        lists.push(format!("pub(super) static EXCUSED: Slice = {excused};\n"));
        let names = std::mem::take(&mut self.exact_names);
        let names = self.sensitive_names(names);
        let extensions = std::mem::take(&mut self.extensions);
        let extensions = self.sensitive_names(extensions);
        let mut source = format!("static POOL: &str = {:?};\n", self.pool);
        array(&mut source, "WORDS", "Text", &self.words)?;
        array(&mut source, "OPTIONS", "Known", &self.options)?;
        array(&mut source, "DENIALS", "Denial", &denials)?;
        array(&mut source, "GRAMMARS", "Grammar", &self.grammars)?;
        array(&mut source, "SUBS", "Sub", &self.subs)?;
        array(&mut source, "PROGRAMS", "Program", &self.programs.values().cloned().collect::<Vec<_>>())?;
        array(&mut source, "SENSITIVE", "Sensitive", &self.sensitive)?;
        array(&mut source, "SENSITIVE_NAMES", "SensitiveName", &names)?;
        array(&mut source, "SENSITIVE_EXTENSIONS", "SensitiveName", &extensions)?;
        source.extend(lists);
        writeln!(source, "#[cfg(test)]\npub(super) static EXAMPLES: &[(&str, bool)] = &{:?};", self.examples)?;
        Ok(source)
    }
}

fn array(source: &mut String, name: &str, kind: &str, rows: &[String]) -> Outcome<()> {
    writeln!(source, "pub(super) static {name}: [{kind}; {}] = [", rows.len())?;
    for row in rows {
        writeln!(source, "    {row},")?;
    }
    writeln!(source, "];")?;
    Ok(())
}

fn slice(from: usize, to: usize) -> String {
    format!("Slice {{ from: {from}, to: {to} }}")
}
