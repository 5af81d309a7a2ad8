//! The examples in `rules/wrappers.toml`.

use super::*;
use crate::walk::{self, Walk};

fn walk(line: &str) -> Walk {
    walk::walk(line, None, None)
}

fn inner_commands(line: &str) -> Vec<String> {
    let walk = walk(line);
    let carried = walk.simples.iter().zip(&walk.roles).filter(|(_, role)| role.carried_by.is_some());
    carried.map(|(simple, _)| simple.argv.iter().map(Word::picture).collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn every_example_of_a_wrapper_holds() {
    let mut wrong = Vec::new();
    for wrapper in table::all().0 {
        assert!(!wrapper.examples.is_empty(), "a wrapper without examples: {wrapper:?}");
        for example in wrapper.examples {
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
    for interpreter in table::all().1 {
        for line in interpreter.examples {
            assert!(walk(line).constructs.inline_code, "{line}");
        }
        for line in interpreter.plain {
            assert!(!walk(line).constructs.inline_code, "{line}");
        }
    }
}
