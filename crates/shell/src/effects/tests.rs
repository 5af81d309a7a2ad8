//! The examples of `rules/effects/*.toml`: each is said as it is written there, and each form is used by one.

use super::{Compiler, Table, Told};
use crate::assess::{Options, assess};
use crate::location::Location;

fn told(text: &str) -> Told {
    assess(text, &Options::default()).told(&Location::default())
}

#[test]
fn every_example_is_said_as_it_is_written() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/rules/effects");
    let mut wrong = Vec::new();
    for file in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if file.extension().is_none_or(|end| end != "toml") {
            continue;
        }
        let text = std::fs::read_to_string(&file).unwrap();
        let read = Compiler::default().add(&text).unwrap();
        for (command, expected) in read.programs.iter().flat_map(|program| &program.get_ref().examples) {
            let said = told(command).sentence;
            if said != *expected {
                wrong.push(format!("{}: {command}\n  expected {expected}\n  said     {said}", file.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_table_of_ones_own_is_told_from() {
    let mut compiler = Compiler::default();
    compiler.add("[[program]]\nnames = [\"frob\"]\nforms = { \"x\" = { does = \"delete {1}\" } }").unwrap();
    let table: Table = compiler.finish();
    let assessed = assess("frob x y", &Options::default());
    assert_eq!(super::tell(&assessed, &Location::default(), &table).sentence, "Deletes `y`, for good.");
}
