//! Every rule speaks of its own examples and is silent about the others. The examples go through a small splitter of
//! the tests' own, so that rules are tested without the parser.

use super::rule::{File, Rule};
use super::{Rules, Scope, judge, judge_script, judge_with};
use crate::command::{Assignment, HereDoc, Place, Redirect, RedirectKind, Simple, Stdin, Target, Via};
use crate::word::{Dynamic, Source, Span, Value, Word};

const AT: Span = Span { start: 0, end: 0 };

#[derive(Clone, Debug)]
enum Token {
    Word(Word),
    Mark(String),
}

/// Words and marks of a plain line: quotes, `$NAME`, `$(…)`, `<(…)`, `|`, `;`, `&&`, `&`, redirections.
fn tokens(text: &str, inner: &mut Vec<String>) -> Vec<Token> {
    let c: Vec<char> = text.chars().collect();
    let mut found = Vec::new();
    let mut at = 0;
    while at < c.len() {
        match c[at] {
            ' ' | '\n' => at += 1,
            ';' if c.get(at.wrapping_sub(1)) == Some(&' ')
                && at + 1 == c.len()
                && text.contains("-ok") | text.contains("-exec") =>
            {
                found.push(Token::Word(Word { span: AT, value: Value::Known(";".into()) }));
                at += 1;
            }
            '<' if c.get(at + 1) != Some(&'(') => {
                let mark: String = c[at..].iter().take_while(|x| **x == '<').collect();
                at += mark.len();
                found.push(Token::Mark(mark));
            }
            '|' | ';' | '&' | '>' => {
                let mut mark = String::new();
                while at < c.len() && matches!(c[at], '|' | ';' | '&' | '>') {
                    mark.push(c[at]);
                    at += 1;
                }
                found.push(Token::Mark(mark));
            }
            _ => {
                let (mut prefix, mut suffix, mut sources, mut glob) = (String::new(), String::new(), Vec::new(), false);
                let mut quote = None;
                while at < c.len() {
                    let x = c[at];
                    let text = if sources.is_empty() { &mut prefix } else { &mut suffix };
                    match (quote, x) {
                        (None, '\'' | '"') => quote = Some(x),
                        (Some(open), x) if open == x => quote = None,
                        (Some('\''), x) => text.push(x),
                        (Some('"'), '\\') if matches!(c.get(at + 1), Some('"' | '\\' | '$')) => {
                            at += 1;
                            text.push(c[at]);
                        }
                        (_, '$' | '<') if c.get(at + 1) == Some(&'(') => {
                            let mut depth = 0;
                            let start = at + 2;
                            while at < c.len() {
                                depth += i32::from(c[at] == '(') - i32::from(c[at] == ')');
                                if depth == 0 && c[at] == ')' {
                                    break;
                                }
                                at += 1;
                            }
                            inner.push(c[start..at.min(c.len())].iter().collect());
                            sources.push(if x == '<' { Source::Process } else { Source::Output });
                        }
                        (_, '$') if c.get(at + 1).is_some_and(|y| y.is_alphabetic()) => {
                            let name: String =
                                c[at + 1..].iter().take_while(|y| y.is_alphanumeric() || **y == '_').collect();
                            at += name.len();
                            sources.push(Source::Variable(name));
                        }
                        (None, ' ' | '\n' | ';' | '|' | '&' | '<' | '>') => break,
                        (None, '*' | '?') => {
                            glob = true;
                            text.push(x);
                        }
                        (_, x) => text.push(x),
                    }
                    at += 1;
                }
                let value = if !sources.is_empty() {
                    Value::Dynamic(Dynamic { prefix, suffix, sources, splits: false })
                } else if glob {
                    Value::Glob(prefix)
                } else {
                    Value::Known(prefix)
                };
                found.push(Token::Word(Word { span: AT, value }));
            }
        }
    }
    found
}

fn empty() -> Simple {
    Simple {
        span: AT,
        assignments: Vec::new(),
        argv: Vec::new(),
        redirects: Vec::new(),
        via: Vec::new(),
        stdin: Stdin::Inherited,
        place: Place::default(),
        more_arguments: false,
    }
}

fn name_of(simple: &Simple) -> String {
    simple.argv.first().map(|word| word.picture().rsplit('/').next().unwrap_or_default().to_owned()).unwrap_or_default()
}

/// The commands of a plain line; wrappers only as far as the examples need them.
fn split(text: &str) -> Vec<Simple> {
    let mut all = Vec::new();
    if text == ":(){ :|:& };:" {
        let word = Word { span: AT, value: Value::Known(":".into()) };
        let stdin = Stdin::Pipe(vec![":".into()]);
        let place = Place { deferred: true, background: true, ..Place::default() };
        return vec![Simple { argv: vec![word], stdin, place, ..empty() }];
    }
    let mut inner = Vec::new();
    let mut current = empty();
    let mut fed: Vec<String> = Vec::new();
    let mut redirect: Option<RedirectKind> = None;
    for token in tokens(text, &mut inner) {
        match token {
            Token::Mark(mark) if mark.contains('>') => {
                redirect = Some(if mark.contains(">>") { RedirectKind::Append } else { RedirectKind::Write });
                if current.argv.last().is_some_and(|word| matches!(word.known(), Some("1" | "2"))) {
                    current.argv.pop();
                }
            }
            Token::Mark(mark) if mark.starts_with('<') => {
                redirect = Some(if mark.len() == 3 { RedirectKind::HereString } else { RedirectKind::Read });
            }
            Token::Mark(mark) => {
                let done = std::mem::replace(&mut current, empty());
                if mark == "|" || mark == "|&" {
                    fed.push(name_of(&done));
                    current.stdin = Stdin::Pipe(fed.clone());
                } else {
                    fed.clear();
                }
                all.push(done);
            }
            Token::Word(word) => match redirect.take() {
                Some(RedirectKind::HereString) => {
                    current.stdin = Stdin::Here(HereDoc { text: word.known().map(str::to_owned) })
                }
                Some(kind) => current.redirects.push(Redirect { span: AT, kind, target: Target::File(word) }),
                None => {
                    let picture = word.picture();
                    let assigns = picture.split_once('=').filter(|(name, _)| {
                        !name.is_empty()
                            && name.chars().all(|c| c.is_alphanumeric() || c == '_')
                            && current.argv.is_empty()
                    });
                    match (assigns, &word.value) {
                        (Some((name, value)), Value::Known(_)) => current.assignments.push(Assignment {
                            span: AT,
                            name: name.to_owned(),
                            value: Some(Word { span: AT, value: Value::Known(value.to_owned()) }),
                        }),
                        (Some((name, _)), Value::Dynamic(dynamic)) => {
                            let prefix =
                                dynamic.prefix.split_once('=').map(|(_, rest)| rest.to_owned()).unwrap_or_default();
                            let value = Value::Dynamic(Dynamic { prefix, ..dynamic.clone() });
                            current.assignments.push(Assignment {
                                span: AT,
                                name: name.to_owned(),
                                value: Some(Word { span: AT, value }),
                            });
                        }
                        _ => current.argv.push(word),
                    }
                }
            },
        }
    }
    all.push(current);
    for text in inner {
        for mut simple in split(&text) {
            simple.place.substitution = true;
            all.push(simple);
        }
    }
    let carried: Vec<Simple> = all.iter().filter_map(carried).collect();
    all.extend(carried);
    all
}

/// What `sudo`, `env`, `xargs`, `bash -c` and `find -exec` start.
fn carried(outer: &Simple) -> Option<Simple> {
    let name = name_of(outer);
    let words: Vec<&str> = outer.argv.iter().filter_map(Word::known).collect();
    let start = match name.as_str() {
        "sudo" | "xargs" | "timeout" => {
            outer.argv.iter().skip(1).position(|word| {
                word.known().is_some_and(|text| !text.starts_with('-') && !text.chars().all(|c| c.is_ascii_digit()))
            })? + 1
        }
        "find" => words.iter().position(|word| matches!(*word, "-exec" | "-execdir" | "-ok"))? + 1,
        _ => return None,
    };
    let argv: Vec<Word> =
        outer.argv.get(start..)?.iter().filter(|word| !matches!(word.known(), Some(";" | "+"))).cloned().collect();
    let via = Via { program: name.clone(), privileged: name == "sudo", elsewhere: false, code: false };
    let placeholder = words.iter().any(|word| word.contains("{}"));
    Some(Simple { argv, via: vec![via], more_arguments: name == "xargs" && !placeholder, ..empty() })
}

fn codes(text: &str) -> Vec<String> {
    let all = split(text);
    let scope = Scope::default();
    let mut codes: Vec<String> =
        all.iter().flat_map(|simple| judge(simple, &scope)).map(|reason| reason.code).collect();
    codes.extend(judge_script(&all, &scope).into_iter().map(|reason| reason.code));
    codes
}

fn files() -> Vec<(String, File)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/rules/dangers");
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        found.push((path.display().to_string(), File::parse(&text).unwrap()));
    }
    found
}

fn rules() -> Vec<Rule> {
    files().into_iter().flat_map(|(_, file)| file.rules).collect()
}

#[test]
fn every_rule_speaks_of_its_examples() {
    let mut wrong = Vec::new();
    for rule in rules() {
        for example in rule.matches.iter() {
            let codes = codes(example);
            if !codes.iter().any(|code| *code == rule.id) {
                wrong.push(format!("{} is silent about `{example}` ({codes:?})", rule.id));
            }
        }
    }
    assert!(wrong.is_empty(), "{}\n{} examples", wrong.join("\n"), wrong.len());
}

#[test]
fn every_rule_is_silent_about_the_rest() {
    let mut wrong = Vec::new();
    for rule in rules() {
        for example in rule.no_match.iter() {
            if codes(example).iter().any(|code| *code == rule.id) {
                wrong.push(format!("{} speaks of `{example}`", rule.id));
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
        assert!(first.is_lowercase() && !rule.reason.ends_with('.'), "{}: {}", rule.id, rule.reason);
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
    let workspace = Scope { workspace: Some("/work/app") };
    let codes = |text: &str| split(text).iter().flat_map(|simple| judge(simple, &workspace)).count();
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
    let judged = |text: &str| {
        split(text)
            .iter()
            .flat_map(|simple| judge_with(simple, &Scope::default(), &rules))
            .map(|reason| reason.code)
            .collect::<Vec<_>>()
    };
    assert_eq!(judged("deploy prod"), ["deploy_prod"]);
    assert_eq!(judged("deploy staging"), Vec::<String>::new());
    assert_eq!(judged("rm -rf /"), codes("rm -rf /"));
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
