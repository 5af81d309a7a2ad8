//! Turns `rules/effects/*.toml` into one constant table for `src/effects`. Format and rows are in
//! `src/effects/format.rs`; here they are only written as source.

#[path = "../src/effects/format.rs"]
#[allow(dead_code, reason = "the build script writes rows and looks nothing up")]
mod format;
#[path = "../src/effects/kinds.rs"]
#[allow(dead_code, reason = "the build script checks effects and weighs none")]
mod kinds;
#[path = "../src/effects/template.rs"]
#[allow(dead_code, reason = "the build script checks sentences and fills none")]
mod template;

use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use format::{Compiler, Form, Row, Table};

pub fn generate() -> Result<(), Box<dyn Error>> {
    for file in ["format", "kinds", "template"] {
        println!("cargo::rerun-if-changed=src/effects/{file}.rs");
    }
    let mut files: Vec<PathBuf> = std::fs::read_dir("rules/effects")?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|end| end == "toml"))
        .collect();
    files.sort();
    let mut compiler = Compiler::default();
    for file in files {
        let text = std::fs::read_to_string(&file)?;
        compiler.add(&text).map_err(|error| error.of(&file.display().to_string()))?;
    }
    let out = std::env::var("OUT_DIR")?;
    std::fs::write(Path::new(&out).join("effects.rs"), source(&compiler.finish())?)?;
    Ok(())
}

fn source(table: &Table) -> Result<String, std::fmt::Error> {
    let Table { pool, words, forms, rows } = table;
    let mut text =
        format!("pub static BUILT_IN: Table = Table {{\npool: Cow::Borrowed({pool:?}),\nwords: Cow::Borrowed(&[\n");
    for word in words.iter() {
        writeln!(text, "{word:?},")?;
    }
    text.push_str("]),\nforms: Cow::Borrowed(&[\n");
    for Form { words, does, says, around, undo } in forms.iter() {
        let undo = undo.map_or("None".to_owned(), |undo| format!("Some(Reversibility::{undo:?})"));
        writeln!(
            text,
            "Form {{ words: {words:?}, does: {does:?}, says: {says:?}, around: {around:?}, undo: {undo} }},"
        )?;
    }
    text.push_str("]),\nrows: Cow::Borrowed(&[\n");
    for Row { name, values, single_dash, forms } in rows.iter() {
        writeln!(text, "Row {{ name: {name:?}, values: {values:?}, single_dash: {single_dash}, forms: {forms:?} }},")?;
    }
    text.push_str("]),\n};\n");
    Ok(text)
}
