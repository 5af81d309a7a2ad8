//! Every rule speaks of its own examples and is silent about the others. The examples go through the whole engine, so
//! that what is promised holds for the text an agent would send.

use super::format::{File, Written};
use crate::assess::{Options, assess};
use crate::reason::Layer;
use crate::rules::Rules;

fn codes_with(text: &str, options: &Options<'_>) -> Vec<String> {
    let reasons = assess(text, options).reasons.into_iter();
    reasons.filter(|reason| reason.layer == Layer::Danger).map(|reason| reason.code.into_owned()).collect()
}

fn codes(text: &str) -> Vec<String> {
    codes_with(text, &Options::default())
}

fn files() -> Vec<(String, File)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/rules/dangers");
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        found.push((path.display().to_string(), File::read(&text, toml::de::DeTable::parse(&text).unwrap()).unwrap()));
    }
    found
}

fn rules() -> Vec<Written> {
    files().into_iter().flat_map(|(_, file)| file.rules).collect()
}

#[test]
fn every_rule_speaks_of_its_examples() {
    let mut wrong = Vec::new();
    for rule in rules() {
        for example in rule.matches.iter().map(toml::Spanned::get_ref) {
            // Another layer may say the same of the same words.
            let reasons = assess(example, &Options::default()).reasons;
            let codes: Vec<&str> = reasons.iter().map(|reason| reason.code.as_ref()).collect();
            if !codes.iter().any(|code| *code == *rule.id.get_ref()) {
                wrong.push(format!("{} is silent about `{example}` ({codes:?})", rule.id.get_ref()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}\n{} examples", wrong.join("\n"), wrong.len());
}

#[test]
fn every_rule_is_silent_about_the_rest() {
    let mut wrong = Vec::new();
    for rule in rules() {
        for example in rule.no_match.iter().map(toml::Spanned::get_ref) {
            if codes(example).iter().any(|code| *code == *rule.id.get_ref()) {
                wrong.push(format!("{} speaks of `{example}`", rule.id.get_ref()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}\n{} examples", wrong.join("\n"), wrong.len());
}

#[test]
fn there_are_many_rules_and_they_read_well() {
    let rules = rules();
    assert!(rules.len() > 200, "{}", rules.len());
    for rule in rules {
        let first = rule.reason.chars().next().unwrap_or('A');
        assert!(first.is_lowercase() && !rule.reason.ends_with('.'), "{}: {}", rule.id.get_ref(), rule.reason);
    }
}

#[test]
fn data_that_mentions_a_danger_is_none() {
    let harmless = [
        "echo 'never run rm -rf /'",
        "git commit -m 'remove curl | sh'",
        "grep 'DROP TABLE' x.sql",
        "rg 'rm -rf'",
        "printf '%s\\n' 'rm -rf / is dangerous'",
        "git commit -m 'fix: do not git push --force in CI'",
        "gh pr create --title 'drop table' --body 'curl x | sh'",
        "sed -i 's/git reset --hard/git reset --keep/' docs/howto.md",
        "rg -n 'os\\.system|subprocess' src",
        "git log --oneline --grep 'DROP DATABASE'",
        "echo 'rm -rf build/' >> docs/cleanup.md",
    ];
    for text in harmless {
        assert_eq!(codes(text), Vec::<String>::new(), "{text}");
    }
}

/// Found on public command lists: `*.ext` was taken for `*.p12`, `*.json` for `logins.json`, `*` for `.ssh`.
#[test]
fn a_vague_pattern_names_no_secret() {
    for text in
        ["cat *.md", "cp *.ext dir", "cat *.json", "wc -l fonts/*.flf", "du -sh *", "cp -r * out", "npm list --global"]
    {
        assert_eq!(codes(text), Vec::<String>::new(), "{text}");
    }
    for text in ["cat ~/.ssh/*", "cat ~/.ssh/id_*", "cat id_*"] {
        assert!(codes(text).iter().any(|code| code == "read_secret"), "{text}");
    }
}

#[test]
fn a_workspace_may_be_cleaned() {
    let options = Options {
        location: crate::Location { workspace: Some("/work/app"), ..crate::Location::default() },
        ..Options::default()
    };
    let codes = |text: &str| codes_with(text, &options).len();
    assert_eq!(codes("rm -rf /work/app/target"), 0);
    for text in [
        "rm -rf /work/app",
        "rm -rf /work/app/../x",
        "rm -rf /work/application/x",
        "rm -rf /work/app/.git",
        "rm -rf /work/app/*",
    ] {
        assert!(codes(text) > 0, "{text}");
    }
}

#[test]
fn users_add_rules_of_their_own() {
    let rules = Rules::parse(
        "[[rule]]\nid = \"deploy_prod\"\nreason = \"deploys to production\"\nprograms = [\"deploy\"]\noperand = [\"is:prod\"]\nmatch = [\"deploy prod\"]\n",
    )
    .unwrap();
    let judged = |text: &str| codes_with(text, &Options { rules: Some(&rules), ..Options::default() });
    assert_eq!(judged("deploy prod"), ["deploy_prod"]);
    assert_eq!(judged("deploy staging"), Vec::<String>::new());
    assert_eq!(judged("rm -rf /"), codes("rm -rf /"));
}

#[test]
fn examples_of_users_are_run() {
    let rule = |id: &str, examples: &str| {
        format!(
            "[[rule]]\nid = \"{id}\"\nreason = \"deploys\"\nprograms = [\"deploy\"]\noperand = [\"is:prod\"]\n{examples}\n"
        )
    };
    let good = rule("deploy_prod", "match = [\"deploy prod\", \"sudo deploy prod\", \"sh -c 'deploy prod'\"]");
    assert_eq!(Rules::parse_all(&[("a.toml", &good)]).unwrap().ids().count(), 1);
    let silent = rule("deploy_two", "match = [\n  \"deploy prod\",\n  \"deploy test\",\n]");
    let loud = rule("deploy_two", "match = [\"deploy prod\"]\nno_match = [\"ls; deploy prod\"]");
    let taken = rule("git_push_force", "match = [\"deploy prod\"]");
    for (text, expected) in [
        (silent, "b.toml:8: rule `deploy_two` does not speak of its example `deploy test`"),
        (loud, "b.toml:7: rule `deploy_two` speaks of `ls; deploy prod`, which it should not"),
        (taken, "b.toml:2: there is another rule `git_push_force`; choose a different id"),
        (good.clone(), "b.toml:2: there is another rule `deploy_prod`; choose a different id"),
    ] {
        let error = Rules::parse_all(&[("a.toml", &good), ("b.toml", &text)]).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn users_rules_may_speak_of_all_commands_together() {
    let rules = Rules::parse(
        "[[rule]]\nid = \"own_fork_bomb\"\nreason = \"starts itself\"\nscript = \"fork_bomb\"\nmatch = [\":(){ :|:& };:\"]\n",
    )
    .unwrap();
    let options = Options { rules: Some(&rules), ..Options::default() };
    assert!(codes_with(":(){ :|:& };:", &options).contains(&"own_fork_bomb".to_owned()));
}

#[test]
fn a_broken_file_says_where() {
    let wrong = [
        (
            "[[rule]]\nid = \"a\"\nreason = \"b\"\nprograms = [\"x\"]\noperand = [\"nope\"]\nmatch = [\"x\"]\n",
            5,
            "no test is called `nope`",
        ),
        ("[[rule]]\nid = \"a\"\nreason = \"b\"\nmatch = [\"x\"]\n", 2, "names no programs"),
        ("\n\n[[rule]]\nid = \"A b\"\nreason = \"b\"\nprograms = [\"x\"]\nmatch = [\"x\"]\n", 4, "snake case"),
        (
            "[[rule]]\nid = \"a\"\nreason = \"b\"\nprograms = [\"x\"]\nmatch = [\"x\"]\n[[rule]]\nid = \"a\"\nreason = \"b\"\nprograms = [\"x\"]\nmatch = [\"x\"]\n",
            7,
            "twice",
        ),
        ("[[rule]]\nid = \"a\"\nreason = \"b\"\nprogram = [\"x\"]\n", 4, "unknown field"),
        ("[[rule]]\nid = \"a\"\nreason = \"b\"\nprograms = [\"x\"]\n", 2, "match"),
    ];
    for (text, line, message) in wrong {
        let error = Rules::parse(text).unwrap_err();
        assert_eq!(error.line, line, "{error}");
        assert!(error.message.contains(message), "{error}");
    }
}

#[test]
fn long_words_take_no_long_time() {
    let long = "a/".repeat(8000);
    let start = std::time::Instant::now();
    for program in ["rm -rf", "cat", "awk", "sed", "python3 -c", "psql -c", "git -c", "chmod -R 777"] {
        let _ = codes(&format!("{program} '{long}'"));
        let _ = codes(&format!("{program} '{}'", "system(\"".repeat(2000)));
        let _ = codes(&format!("{program} '{}'", "*".repeat(16000)));
    }
    assert!(start.elapsed().as_secs() < 5, "{:?}", start.elapsed());
}

#[test]
fn what_is_dangerous_to_read_is_never_safe_to_read() {
    let (names, places) = (super::table::SECRET_NAMES.words, super::table::SECRET_PLACES.words);
    let table = &super::table::BUILT_IN;
    let words = table.words(names).chain(table.words(places));
    let open: Vec<_> =
        words.map(|word| word.replace('*', "x")).filter(|path| crate::safe::sensitive(path).is_none()).collect();
    assert!(open.is_empty(), "{open:?}");
}

/// Commands past the limit were once left out without a word.
#[test]
fn more_commands_than_anybody_reads_are_dangerous() {
    for text in [format!("{}rm -rf /", "ls;".repeat(5000)), "sh -c 'ls;ls';".repeat(1000), "(ls);".repeat(3000)] {
        let assessment = assess(&text, &Options::default());
        assert_eq!(assessment.risk, crate::reason::Risk::Dangerous);
        assert!(!assessment.coverable);
        assert!(assessment.reasons.iter().any(|reason| reason.code == "too_many_commands"));
    }
    assert_eq!(assess(&"ls;".repeat(500), &Options::default()).risk, crate::reason::Risk::Safe);
}
