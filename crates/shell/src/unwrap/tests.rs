//! The examples in `rules/wrappers.toml`.

use super::*;
use crate::walk::{self, Walk};

fn walk(line: &str) -> Walk {
    walk::walk(line, crate::Location::default(), None)
}

fn inner_commands(line: &str) -> Vec<String> {
    let walk = walk(line);
    let carried = walk.simples.iter().zip(&walk.roles).filter(|(_, role)| role.carried_by.is_some());
    carried.map(|(simple, _)| simple.argv.iter().map(Word::picture).collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn every_example_of_a_wrapper_holds() {
    let mut wrong = Vec::new();
    for (number, examples) in table::WRAPPER_EXAMPLES.iter().enumerate() {
        assert!(!examples.is_empty(), "wrapper {} of the file has no examples", number + 1);
        for example in *examples {
            let (line, expected) = example.split_once(" => ").expect("an example is `line => inner`");
            let found = inner_commands(line).join(" // ");
            if found != expected {
                wrong.push(format!("{line}\n   expected {expected}\n   found    {found}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_example_of_an_interpreter_holds() {
    for line in table::INTERPRETER_EXAMPLES.iter().copied().flatten() {
        assert!(walk(line).constructs.inline_code, "{line}");
    }
    for line in table::INTERPRETER_PLAIN.iter().copied().flatten() {
        assert!(!walk(line).constructs.inline_code, "{line}");
    }
}
