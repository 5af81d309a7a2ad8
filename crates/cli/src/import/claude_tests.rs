//! Claude Code's rules, one by one and against each other.

use serde_json::{Value, json};

use super::super::line::{Change, Wish};
use super::super::merge::{Merged, merge};
use super::*;
use countersign_model::{Entry, Policy};
use countersign_shell::Coverage;

fn import(permissions: Value, allow_full: bool) -> Merged {
    let document = json!({"permissions": permissions});
    let wishes = Wishes { home: Some("/home/ann".to_owned()), allow_full, agent: None };
    let lines = lines(document.as_object().unwrap(), &wishes).unwrap();
    merge(Policy::default(), lines, allow_full, "import:test")
}

/// What a single rule becomes: its pattern or rule and why, or only why.
fn alone(list: &str, rule: &str) -> (Vec<String>, String) {
    let document = json!({"permissions": {list: [rule]}});
    let wishes = Wishes { home: Some("/home/ann".to_owned()), ..Wishes::default() };
    let lines = lines(document.as_object().unwrap(), &wishes).unwrap();
    assert_eq!(lines.len(), 1);
    match &lines[0].wish {
        Wish::Change { changes, why } => {
            (changes.iter().map(Change::to_string).collect(), why.clone().unwrap_or_default())
        }
        Wish::Refuse(why) | Wish::Keep(why) => (Vec::new(), why.clone()),
    }
}

#[track_caller]
fn becomes(list: &str, rule: &str, to: &[&str], why: &str) {
    let (became, because) = alone(list, rule);
    assert_eq!(became, to, "{list} {rule}: {because}");
    assert!(because.contains(why) && (!why.is_empty() || because.is_empty()), "{list} {rule}: {because}");
}

#[test]
fn an_allow_becomes_an_entry_of_no_wider_meaning() {
    for (rule, to, why) in [
        ("Bash(npm run test:*)", "npm run test **", ""),
        ("Bash(git diff *)", "git diff **", ""),
        ("Bash(npm run build)", "npm run build", ""),
        ("Bash(npm run test:unit)", "npm run test:unit", ""),
        ("Bash(npm*)", "npm* **", ""),
        ("Bash(git log*)", "git log* **", ""),
        ("Bash(git log --format=*)", "git log --format=* **", ""),
        ("Bash(git * main)", "git * main", "one word"),
        ("Bash(git * main *)", "git * main * **", "one word"),
        ("Bash(git -C * log:*)", "git -C * log **", "one word"),
        (r#"Bash(git commit -m "*")"#, "git commit -m *", "one word"),
        ("Bash(npm run 'my task')", "npm run 'my task'", ""),
        ("Bash(* --version)", "* --version", "one word"),
        ("Bash(python3 tools/x.py:*)", "python3 tools/x.py **", ""),
        ("Bash(~/bin/x *)", "/home/ann/bin/x **", "over HTTP"),
    ] {
        becomes("allow", rule, &[&format!("allowlist: {to}")], why);
    }
    for (rule, why) in [
        ("Bash", "every command"),
        ("Bash(*)", "every command"),
        ("Bash()", "every command"),
        ("Bash(* *)", "any script"),
        ("Bash(python:*)", "any script"),
        ("Bash(python3 *)", "any script"),
        ("Bash(bash *)", "any script"),
        ("Bash(node*)", "any script"),
        ("Bash(sudo:*)", "cover nothing"),
        ("Bash(xargs *)", "cover nothing"),
        ("Bash(make)", "any"),
        ("Bash(ls)", "safe"),
        ("Bash(./x.sh:*)", "absolute"),
        ("Bash(npm ci && npm test)", "more than one"),
        ("Bash(FOO=1 make *)", "variable"),
        ("Bash(echo $HOME)", "`$`"),
        ("Bash(run_in_background:true)", "parameter"),
        ("Bash(npm run", "no rule"),
        ("", "no rule"),
        ("Web\u{200b}Search", "no rule"),
        ("Read(./src/**)", "whole tool"),
        ("WebFetch(domain:example.com)", "whole tool"),
        ("mcp__files", "one by one"),
        ("mcp__files__*", "one by one"),
    ] {
        becomes("allow", rule, &[], why);
    }
    becomes("allow", "WebSearch", &["tools: WebSearch allow"], "");
    becomes("allow", "mcp__files__read", &["tools: mcp__files__read allow"], "");
    becomes("allow", "WebFetch(*)", &["tools: WebFetch allow"], "");
    becomes("allow", "Edit", &["tools: Edit allow"], "this very name");
}

#[test]
fn a_deny_is_never_quietly_less() {
    for (rule, to, why) in [
        ("Bash", "*", ""),
        ("Bash(rm:*)", "rm **", ""),
        ("Bash(rm -rf /)", "rm -rf /", ""),
        ("Bash(git push*)", "git push* **", ""),
        ("Bash(make)", "make", "any arguments"),
        ("Bash(git push * --force)", "git push * --force", "asked instead"),
    ] {
        becomes("deny", rule, &[&format!("deny: {to}")], why);
    }
    becomes("deny", "Bash(curl * | sh)", &[], "more than one");
    becomes("deny", "WebFetch", &["tools: WebFetch deny"], "");
    becomes("deny", "WebFetch(domain:x.example)", &["tools: WebFetch ask"], "whole tool");
    let reads = ["tools: Read ask", "tools: Glob ask", "tools: Grep ask", "tools: LS ask", "tools: NotebookRead ask"];
    becomes("deny", "Read(./.env)", &reads, "whole tool");
    let edits = ["tools: Edit deny", "tools: MultiEdit deny", "tools: NotebookEdit deny", "tools: Write deny"];
    becomes("deny", "Edit", &edits, "");
    becomes("deny", "mcp__files", &[], "one by one");
}

#[test]
fn an_ask_is_kept_by_refusing_what_would_override_it() {
    becomes("ask", "Bash(git push *)", &[], "no entry that meets it");
    becomes("ask", "WebFetch", &["tools: WebFetch ask"], "");
    becomes("ask", "WebFetch(domain:x.example)", &["tools: WebFetch ask"], "whole tool");
    for (ask, allow, refused) in [
        ("Bash(git push *)", "Bash(git *)", true),
        ("Bash(git push *)", "Bash(git push origin main)", true),
        ("Bash(git push *)", "Bash(git log *)", false),
        ("Bash(git push:*)", "Bash(git pushy --x)", false),
        ("Bash", "Bash(npm ci --x)", true),
        ("Bash(* --force)", "Bash(npm *)", true),
        ("WebFetch(domain:a)", "WebFetch", true),
        ("Edit", "Write", true),
        ("mcp__files", "mcp__files__read", true),
        ("mcp__files__*", "mcp__files__read", true),
        ("mcp__files", "mcp__filesystem__read", false),
        ("WebFetch", "WebSearch", false),
    ] {
        let merged = import(json!({"ask": [ask], "allow": [allow]}), false);
        let last = merged.report.entries.last().unwrap();
        assert_eq!(last.to.is_empty(), refused, "{ask} against {allow}: {last:?}");
        assert!(!refused || last.why.as_ref().unwrap().contains(ask), "{last:?}");
    }
    // A deny that cannot be said whole guards in the same way; one that can is a rule and needs no guard.
    let merged = import(
        json!({"deny": ["Bash(git push * --force)", "Bash(rm *)"], "allow": ["Bash(git *)", "Bash(rm x)"]}),
        false,
    );
    let allowed: Vec<&str> = merged.policy.allowlist.iter().map(|entry| entry.pattern.pattern.as_str()).collect();
    assert_eq!((allowed, merged.policy.deny.len()), (vec!["rm x"], 2));
}

#[test]
fn modes_only_tighten_unless_full_is_asked_for() {
    let mode = |name: &str, allow_full| import(json!({"defaultMode": name}), allow_full).policy;
    for name in ["default", "acceptEdits", "plan", "auto", "bypassPermissions", "?"] {
        assert_eq!(mode(name, false), Policy::default(), "{name}");
    }
    assert_eq!(mode("dontAsk", false).ask, Ask::Off);
    assert_eq!(mode("bypassPermissions", true).security, Security::Full);
    assert_eq!(mode("acceptEdits", true), Policy::default());
    let guarded = import(json!({"defaultMode": "bypassPermissions", "ask": ["Bash(git push *)"]}), true);
    assert_eq!(guarded.policy.security, Security::Allowlist);
    let others =
        import(json!({"additionalDirectories": ["../a", "../b"], "disableBypassPermissionsMode": "disable"}), false);
    assert_eq!((others.report.entries.len(), others.policy), (3, Policy::default()));
}

/// All lines of up to so many words.
fn texts(words: &[&str], most: usize) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut last = all.clone();
    for _ in 0..most {
        let longer =
            |text: &String| words.iter().map(|word| format!("{text} {word}").trim().to_owned()).collect::<Vec<_>>();
        last = last.iter().flat_map(longer).collect();
        all.extend(last.clone());
    }
    all.split_off(1)
}

/// Every rule of three words, with and without wildcards, against every command of four: an entry covers nothing that
/// the rule did not allow, and a rule that was taken whole denies all that it did.
#[test]
fn no_import_allows_more_or_denies_less_than_its_source() {
    let commands = texts(&["npm", "a", "ab", "abc"], 4);
    let records: Vec<_> = commands.iter().map(|text| assess(text, &Options::default()).record()).collect();
    let (mut covering, mut denying) = (0, 0);
    let rules = texts(&["npm", "a", "a*", "*", "*b"], 3);
    for rule in rules.iter().flat_map(|rule| [rule.clone(), format!("{rule}:*")]) {
        let raw = format!("Bash({rule})");
        let parsed = super::rule(&raw).unwrap();
        let fits = |text: &str| {
            let text: Glob = text.chars().map(Some).collect();
            parsed.globs().iter().any(|glob| meet(glob, &text))
        };
        if let Some(entry) = entry_of(&alone("allow", &raw).0, "allowlist: ") {
            for (text, record) in commands.iter().zip(&records) {
                let covered = record.cover([&entry].into_iter(), false, None) == Coverage::Covered;
                covering += u32::from(covered);
                assert!(!covered || fits(text), "{raw} became {} and covers {text}", entry.pattern);
            }
        }
        let (became, why) = alone("deny", &raw);
        let entry = entry_of(&became, "deny: ").expect("plain words are always a rule");
        for (text, record) in commands.iter().zip(&records).filter(|(text, _)| fits(text)) {
            let denied = record.may_be_any([&entry].into_iter(), None);
            denying += u32::from(denied);
            assert!(denied || why.contains("asked instead"), "{raw} became {} and lets {text} by", entry.pattern);
        }
    }
    assert!(covering > 1000 && denying > 1000, "{covering}, {denying}");
}

fn entry_of(became: &[String], list: &str) -> Option<Entry> {
    became.first().and_then(|to| Entry::parse(to.strip_prefix(list)?))
}
