//! Turns `rules/programs/*.toml` and `rules/paths.toml` into constant tables for `src/safe`.
//!
//! One pool of text and flat arrays that point into it by number: nothing to relocate when the program starts,
//! nothing to parse when it runs. Format and rows are those of a user's own programs: `src/safe/format.rs`,
//! `src/safe/compile.rs`. Here they are only written as source.

#[path = "../src/safe/compile.rs"]
mod compile;
#[path = "../src/safe/format.rs"]
mod format;
#[path = "../src/safe/rows.rs"]
#[allow(dead_code, reason = "the build script writes rows and looks nothing up")]
mod rows;

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::{Debug, Write as _};
use std::path::{Path, PathBuf};
use std::{env, fs};

use crate::rule_error::RuleError;
use compile::Compiler;
use format::{File, Problem};
use rows::{Denial, Grammar, Known};
use serde::Deserialize;
use toml::Spanned;
use toml::de::DeTable;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Lists of variables, by what they are for.
type Environment = BTreeMap<String, Vec<String>>;

pub fn generate() -> Outcome<()> {
    for file in ["rule_error", "safe/compile", "safe/format", "safe/rows"] {
        println!("cargo::rerun-if-changed=src/{file}.rs");
    }
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("rules");
    let out = PathBuf::from(env::var("OUT_DIR")?).join("programs.rs");
    let mut tables = Tables::default();
    let mut files: Vec<PathBuf> = fs::read_dir(root.join("programs"))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|ext| ext == "toml"))
        .collect();
    files.sort();
    for file in files {
        let text = fs::read_to_string(&file)?;
        tables.file(&text).map_err(|error| error.of(&file.display().to_string()))?;
    }
    let paths = root.join("paths.toml");
    tables.paths(&paths).map_err(|error| error.of(&paths.display().to_string()))?;
    fs::write(out, tables.source()?)?;
    Ok(())
}

#[derive(Default)]
struct Tables {
    compiler: Compiler,
    examples: Vec<(String, bool)>,
    lists: String,
    sensitive: Vec<String>,
    exact_names: BTreeMap<String, u16>,
    extensions: BTreeMap<String, u16>,
}

/// `rules/paths.toml`; what of it is dangerous to read is for `dangers.rs`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Paths {
    #[serde(rename = "path")]
    paths: Vec<Sensitive>,
    excused: Vec<String>,
    bare: Vec<String>,
    #[serde(rename = "danger")]
    _danger: toml::Table,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sensitive {
    patterns: Vec<String>,
    reason: Spanned<String>,
    #[serde(default)]
    samples: Vec<String>,
    /// Run by the tests.
    #[serde(default, rename = "match")]
    _matches: Vec<String>,
    #[serde(default, rename = "no_match")]
    _no_match: Vec<String>,
}

impl Tables {
    fn file(&mut self, text: &str) -> Result<(), RuleError> {
        let mut table = DeTable::parse(text).map_err(|error| RuleError::toml(text, &error))?;
        // Only built in: which variables may be set is not for a user's file to say.
        if let Some(environment) = table.get_mut().remove("environment") {
            let environment = Environment::deserialize(toml::de::ValueDeserializer::from(environment));
            let environment = environment.map_err(|error| RuleError::toml(text, &error))?;
            for (name, mut words) in environment {
                words.sort();
                self.list(&name, &words).map_err(|problem| problem.within(text))?;
            }
        }
        let file = File::read(text, table)?;
        self.compiler.add(&file).map_err(|problem| problem.within(text))?;
        for entry in file.programs.into_iter().map(Spanned::into_inner) {
            for (examples, safe) in [(entry.matches, true), (entry.no_match, false)] {
                self.examples.extend(examples.into_iter().map(|example| (example.into_inner(), safe)));
            }
        }
        Ok(())
    }

    fn list(&mut self, name: &str, words: &[String]) -> Result<(), Problem> {
        let words = self.compiler.words(words.iter().map(String::as_str), &(0..0))?;
        let _ = writeln!(self.lists, "pub(super) static {}: Slice = {words:?};", name.to_uppercase());
        Ok(())
    }

    fn paths(&mut self, path: &Path) -> Result<(), RuleError> {
        let wrong = |error: std::io::Error| RuleError { file: String::new(), line: 1, message: error.to_string() };
        let text = fs::read_to_string(path).map_err(wrong)?;
        let file: Paths = toml::from_str(&text).map_err(|error| RuleError::toml(&text, &error))?;
        for entry in &file.paths {
            self.path(entry).map_err(|problem| problem.within(&text))?;
        }
        self.list("excused", &file.excused).map_err(|problem| problem.within(&text))?;
        self.list("bare", &file.bare).map_err(|problem| problem.within(&text))
    }

    fn path(&mut self, entry: &Sensitive) -> Result<(), Problem> {
        let place = entry.reason.span();
        let why = Spanned::new(place.clone(), format!("sensitive_path: {}", entry.reason.get_ref()));
        let denial = self.compiler.denial(&why)?;
        let samples = self.compiler.words(entry.samples.iter().map(String::as_str), &place)?;
        for pattern in &entry.patterns {
            if !pattern.contains(['/', '*', '?', '~']) {
                self.exact_names.insert(pattern.clone(), denial);
                continue;
            }
            let extension = pattern.strip_prefix("*.").filter(|rest| !rest.contains(['.', '/', '*', '?']));
            if let Some(extension) = extension {
                self.extensions.insert(extension.to_owned(), denial);
                continue;
            }
            let rooted = pattern.starts_with('/');
            let components = || pattern.split('/').filter(|component| !component.is_empty());
            // The byte that the first component after an anchor begins with; 0 when that is open.
            let head = components().find(|component| *component != "~").and_then(|c| c.bytes().next());
            let head = head.filter(|byte| !b"*?[".contains(byte)).unwrap_or(0);
            let components = self.compiler.words(components(), &place)?;
            self.sensitive.push(format!(
                "Sensitive {{ components: {components:?}, rooted: {rooted}, head: {head}, samples: {samples:?}, \
                 denial: {denial} }}"
            ));
        }
        Ok(())
    }

    fn sensitive_names(&mut self, names: BTreeMap<String, u16>) -> Result<Vec<String>, String> {
        let row = |(name, denial): (String, u16)| {
            let name = self.compiler.name(&name, &(0..0)).map_err(|problem| problem.message)?;
            Ok(format!("SensitiveName {{ name: {name:?}, denial: {denial} }}"))
        };
        names.into_iter().map(row).collect()
    }

    fn source(mut self) -> Outcome<String> {
        let names = std::mem::take(&mut self.exact_names);
        let names = self.sensitive_names(names)?;
        let extensions = std::mem::take(&mut self.extensions);
        let extensions = self.sensitive_names(extensions)?;
        let rows = self.compiler.finish();
        let mut source = format!("static POOL: &str = {:?};\n", rows.pool);
        array(&mut source, "WORDS", "Text", rows.words.iter().map(plain));
        array(&mut source, "OPTIONS", "Known", rows.options.iter().map(option));
        array(&mut source, "DENIALS", "Denial", rows.denials.iter().map(denial));
        array(&mut source, "GRAMMARS", "Grammar", rows.grammars.iter().map(grammar));
        array(&mut source, "SUBS", "Sub", rows.subs.iter().map(plain));
        array(&mut source, "PROGRAMS", "Program", rows.programs.iter().map(plain));
        array(&mut source, "SENSITIVE", "Sensitive", self.sensitive.into_iter());
        array(&mut source, "SENSITIVE_NAMES", "SensitiveName", names.into_iter());
        array(&mut source, "SENSITIVE_EXTENSIONS", "SensitiveName", extensions.into_iter());
        source.push_str(&self.lists);
        writeln!(source, "#[cfg(test)]\npub(super) static EXAMPLES: &[(&str, bool)] = &{:?};", self.examples)?;
        Ok(source)
    }
}

fn array(source: &mut String, name: &str, kind: &str, rows: impl ExactSizeIterator<Item = String>) {
    let _ = writeln!(source, "pub(super) static {name}: [{kind}; {}] = [", rows.len());
    for row in rows {
        let _ = writeln!(source, "    {row},");
    }
    source.push_str("];\n");
}

/// Rows of numbers alone read as source when they are printed.
fn plain(row: &impl Debug) -> String {
    format!("{row:?}")
}

fn option(Known { name, takes }: &Known) -> String {
    format!("Known {{ name: {name:?}, takes: Takes::{takes:?} }}")
}

fn denial(Denial { code, reason }: &Denial) -> String {
    format!("Denial {{ code: Code::{code:?}, reason: {reason:?} }}")
}

fn grammar(row: &Grammar) -> String {
    let Grammar { short, long, style, digits, plus, harmless, always_recursive, recursive, operands, .. } = row;
    let Grammar { max, min, excess, needs, needs_why, operands_need, operands_why, .. } = row;
    let Grammar { pattern_options, exact, check, obeys, works_in, .. } = row;
    format!(
        "Grammar {{ short: {short:?}, long: {long:?}, style: Style::{style:?}, digits: {digits}, plus: {plus}, \
         harmless: {harmless}, always_recursive: {always_recursive}, recursive: {recursive:?}, \
         operands: Operands::{operands:?}, max: {max}, min: {min}, excess: {excess}, needs: {needs:?}, \
         needs_why: {needs_why}, operands_need: {operands_need:?}, operands_why: {operands_why}, \
         pattern_options: {pattern_options:?}, exact: {exact:?}, check: Check::{check:?}, obeys: {obeys:?}, \
         works_in: {works_in:?} }}"
    )
}
