//! The examples in `rules/`, and what each part of the layer must not let through.

use super::table::EXAMPLES;
use super::*;
use crate::command::{Assignment, HereDoc, Place, Stdin};
use crate::word::Dynamic;

const NOWHERE: Span = Span { start: 0, end: 0 };

/// A small splitter for plain examples: quotes, backslashes, globs, `$NAME`, redirections, leading assignments.
fn simple(line: &str) -> Simple {
    let mut simple = Simple {
        span: NOWHERE,
        assignments: Vec::new(),
        argv: Vec::new(),
        redirects: Vec::new(),
        via: Vec::new(),
        stdin: Stdin::Inherited,
        place: Place::default(),
        runs_in: crate::command::RunsIn::default(),
        more_arguments: false,
    };
    let mut kind = None;
    for word in words(line) {
        if let Value::Known(text) = &word.value
            && let Some(found) = [("<", RedirectKind::Read), (">", RedirectKind::Write), (">>", RedirectKind::Append)]
                .into_iter()
                .find_map(|(mark, kind)| (text == mark).then_some(kind))
        {
            kind = Some(found);
            continue;
        }
        if let Some(kind) = kind.take() {
            simple.redirects.push(Redirect { span: NOWHERE, kind, target: Target::File(word) });
            continue;
        }
        if let Some((name, value)) = word.known().and_then(|text| text.split_once('='))
            && simple.argv.is_empty()
            && environment::is_name(name)
        {
            let value = Some(Word { span: NOWHERE, value: Value::Known(value.to_owned()) });
            simple.assignments.push(Assignment { span: NOWHERE, name: name.to_owned(), value });
            continue;
        }
        simple.argv.push(word);
    }
    simple
}

fn words(line: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut chars = line.chars().peekable();
    loop {
        while chars.next_if(|c| c.is_whitespace()).is_some() {}
        if chars.peek().is_none() {
            return words;
        }
        let (mut text, mut glob, mut quoted) = (String::new(), false, None);
        let mut variable: Option<(String, String, bool)> = None;
        while let Some(&c) = chars.peek() {
            if quoted.is_none() && c.is_whitespace() {
                break;
            }
            chars.next();
            match (quoted, c) {
                (None, '\'' | '"') => quoted = Some(c),
                (Some(mark), _) if mark == c => quoted = None,
                (None | Some('"'), '\\') => text.extend(chars.next()),
                (None | Some('"'), '$') if chars.peek().is_some_and(|c| c.is_ascii_alphabetic()) => {
                    let mut name = String::new();
                    while let Some(c) = chars.next_if(|c| c.is_ascii_alphanumeric() || *c == '_') {
                        name.push(c);
                    }
                    variable = Some((std::mem::take(&mut text), name, quoted.is_none()));
                }
                (None, '*' | '?') => {
                    glob = true;
                    text.push(c);
                }
                _ => text.push(c),
            }
        }
        let value = match variable {
            Some((prefix, name, splits)) => {
                Value::Dynamic(Dynamic { prefix, suffix: text, sources: vec![Source::Variable(name)], splits })
            }
            None if glob => Value::Glob(text),
            None => Value::Known(text),
        };
        words.push(Word { span: NOWHERE, value });
    }
}

fn codes(line: &str) -> Vec<String> {
    judge(&simple(line), Around::default()).reasons.into_iter().map(|reason| reason.code.into_owned()).collect()
}

fn is_safe(line: &str) -> bool {
    codes(line).is_empty()
}

#[test]
fn every_example_of_a_rule_holds() {
    let wrong: Vec<String> = EXAMPLES
        .iter()
        .filter(|(line, safe)| is_safe(line) != *safe)
        .map(|(line, safe)| format!("{line}: expected safe={safe}, got {:?}", judge(&simple(line), Around::default())))
        .collect();
    assert!(wrong.is_empty(), "{} of {} wrong:\n{}", wrong.len(), EXAMPLES.len(), wrong.join("\n"));
    assert!(EXAMPLES.len() > 500, "{}", EXAMPLES.len());
}

#[test]
fn every_example_of_a_path_holds() {
    let table: toml::Table = include_str!("../../rules/paths.toml").parse().unwrap();
    let mut wrong = Vec::new();
    for entry in table["path"].as_array().unwrap() {
        for (key, expected) in [("match", true), ("no_match", false)] {
            for path in entry.get(key).and_then(|list| list.as_array()).into_iter().flatten() {
                let path = path.as_str().unwrap();
                if sensitive(path).is_some() != expected {
                    wrong.push(format!("{path}: expected {expected}, got {:?}", sensitive(path)));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_table_is_large() {
    assert!(super::table::PROGRAMS.len() > 400, "{}", super::table::PROGRAMS.len());
}

#[test]
fn codes_say_what_is_wrong() {
    for (line, code) in [
        ("nosuchprogram", "unknown_program"),
        ("./ls", "unknown_program"),
        ("ls --nope", "unknown_option"),
        ("sort --out=x", "writes_files"),
        ("sort --compress-prog=x", "runs_programs"),
        ("cat .env", "sensitive_path"),
        ("ls > x", "redirect"),
        ("cat < ~/.ssh/id_rsa", "sensitive_path"),
        ("env", "unknown_program"),
        ("printenv", "dumps_environment"),
        ("find . -exec rm {} ;", "carries_command"),
        ("git push", "network"),
        ("git frobnicate", "unknown_subcommand"),
        ("sort $x", "dynamic_option"),
        ("FOO=1 ls", "sets_environment"),
    ] {
        assert!(codes(line).iter().any(|given| given == code), "{line}: {:?}", codes(line));
    }
}

#[test]
fn assignments_only_from_the_list() {
    for line in [
        "LC_ALL=C sort x",
        "NO_COLOR=1 git status",
        "TZ=UTC date",
        "PAGER=cat git log",
        "LESS=-R less x",
        "x=1",
        "N=5",
        "IFS= read -r a",
    ] {
        assert!(is_safe(line), "{line}");
    }
    for line in [
        "LD_PRELOAD=/tmp/x ls",
        "PATH=/tmp ls",
        "PATH=/tmp",
        "PAGER=sh man ls",
        "LESS=+!sh less x",
        "GIT_EXTERNAL_DIFF=x git diff",
        "FOO=1 ls",
        "IFS=: ls",
        "LD_PRELOAD=x",
    ] {
        assert!(!is_safe(line), "{line}");
    }
}

/// These stand beside the table because the check that finds them goes by the name `git`.
#[test]
fn git_reads_secrets_behind_colons_too() {
    for line in [
        "git log -L 1,50:.env",
        "git log -L:x:.env",
        "git log -L1,50:.env",
        "git show :0:id_rsa",
        "git show :2:secrets.yml",
        "git diff -- ':(icase).ENV'",
        "git diff -- ':/.env'",
    ] {
        assert!(!is_safe(line), "{line}");
    }
    for line in ["git log -L 1,50:src/main.rs", "git show :0:README.md", "git diff -- ':/src'"] {
        assert!(is_safe(line), "{line}: {:?}", codes(line));
    }
}

#[test]
fn words_of_run_time() {
    for line in [
        "cat $HOME/x",
        "cat \"$PWD/x\"",
        "echo \"$x\"",
        "wc -l \"$f\"",
        "head -5 \"$f\"",
        "grep foo \"$f\"",
        "sort \"src/$x\"",
        "head -n \"$N\" x",
        "git log -n \"$N\"",
        "ls $d",
        "sort -- \"$x\"",
        "echo $x",
    ] {
        assert!(is_safe(line), "{line}: {:?}", codes(line));
    }
    for line in [
        "sort \"$x\"",
        "git show $x",
        "git diff \"$x\"",
        "find \"$x\"",
        "cat $HOME/.ssh/id_rsa",
        "cat \"$x/.ssh/id_rsa\"",
        "sort -$x y",
        "sed \"$x\" y",
        "awk \"$x\"",
        "$x y",
        "echo $GITHUB_TOKEN",
        "sort src/$x",
        "git log --$x",
        "uniq \"$a\"",
    ] {
        assert!(!is_safe(line), "{line}");
    }
}

fn with_more(line: &str, from: &[&str]) -> bool {
    let mut simple = simple(line);
    simple.more_arguments = true;
    simple.stdin = Stdin::Pipe(from.iter().map(|name| (*name).to_owned()).collect());
    judge(&simple, Around::default()).reasons.is_empty()
}

#[test]
fn arguments_that_come_later() {
    assert!(with_more("grep -l TODO", &["find"]));
    assert!(with_more("wc -l", &["find"]));
    assert!(with_more("cat", &["git"]));
    assert!(with_more("sort --", &["find"]));
    assert!(!with_more("sort", &["find"]));
    assert!(!with_more("cat", &["echo"]));
    assert!(!with_more("grep", &["find"]));
    assert!(!with_more("git show", &["git"]));
    assert!(!with_more("git", &["git"]));
    assert!(!with_more("uniq", &["find"]));
    assert!(!with_more("find", &["find"]));
    assert!(!with_more("python3 --version", &["find"]));
    assert!(!with_more("date", &["find"]));
    let mut here = simple("cat");
    here.more_arguments = true;
    here.stdin = Stdin::Here(HereDoc { text: None });
    assert!(!judge(&here, Around::default()).reasons.is_empty());
}

#[test]
fn values_of_loops_are_held_against_the_paths() {
    let mut safe = simple("cat");
    let value = |values: &[&str]| {
        Value::Dynamic(Dynamic {
            prefix: String::new(),
            suffix: String::new(),
            sources: vec![Source::OneOf(values.iter().map(|value| (*value).to_owned()).collect())],
            splits: false,
        })
    };
    safe.argv.push(Word { span: NOWHERE, value: value(&["a.txt", "b.txt"]) });
    assert_eq!(judge(&safe, Around::default()).reasons, []);
    safe.argv.push(Word { span: NOWHERE, value: value(&["a.txt", ".env"]) });
    assert!(!judge(&safe, Around::default()).reasons.is_empty());
    let mut sorted = simple("sort");
    sorted.argv.push(Word { span: NOWHERE, value: value(&["a.txt", "-oout"]) });
    assert!(!judge(&sorted, Around::default()).reasons.is_empty());
}
