//! Every translation, from a document's text to the report and the policy.

use countersign_model::{Ask, Fallback, Policy, Security};
use serde_json::{Value, json};

use super::report::Fate;
use super::source::{Format, Source};
use super::{Merged, Wishes, lines, merge};

fn wishes() -> Wishes {
    Wishes { home: Some("/home/ann".to_owned()), ..Wishes::default() }
}

fn import_with(policy: &Value, format: Format, document: &Value, wishes: &Wishes) -> anyhow::Result<Merged> {
    let source = Source { format, detected: false, document: document.as_object().unwrap().clone() };
    let policy = Policy::parse(&policy.to_string()).unwrap();
    let merged = merge(policy, lines(&source, wishes)?, wishes.allow_full, "import:test");
    merged.policy.check().unwrap();
    Ok(merged)
}

fn import(format: Format, document: &Value) -> Merged {
    import_with(&json!({"version": 1}), format, document, &wishes()).unwrap()
}

/// The fate of the only line whose source ends so, what it became, and why.
#[track_caller]
fn fate(merged: &Merged, from: &str) -> (Fate, String, String) {
    let found: Vec<_> = merged.report.entries.iter().filter(|entry| entry.from.ends_with(from)).collect();
    assert_eq!(found.len(), 1, "{from}: {:?}", merged.report.entries);
    (found[0].fate, found[0].to.join("; "), found[0].why.clone().unwrap_or_default())
}

#[track_caller]
fn expect(merged: &Merged, from: &str, wanted: Fate, to: &str, why: &str) {
    let (fate, became, because) = fate(merged, from);
    assert_eq!((fate, became.as_str()), (wanted, to), "{from}: {because}");
    assert!(because.contains(why), "{from}: {because}");
}

fn gateway(entry: Value) -> Merged {
    import(Format::Gateway, &json!({"version": 1, "agents": {"*": {"allowlist": [entry]}}}))
}

#[test]
fn a_gateways_globs_become_entries_of_no_wider_meaning() {
    const FILE: &str = "over HTTP it covers nothing";
    for (glob, wanted, to, why) in [
        ("/usr/bin/git", Fate::Narrowed, "allowlist: /usr/bin/git", FILE),
        ("~/bin/*", Fate::Narrowed, "allowlist: /home/ann/bin/*", FILE),
        ("/opt/tools/**", Fate::Narrowed, "allowlist: /opt/tools/**", FILE),
        ("/opt/my tools/x", Fate::Narrowed, "allowlist: '/opt/my tools/x'", FILE),
        ("**/rg", Fate::Narrowed, "allowlist: rg", "found by its name"),
        ("rg", Fate::Taken, "allowlist: rg", ""),
        (" rg ", Fate::Taken, "allowlist: rg", ""),
        ("~/Projects/**/bin/rg", Fate::Refused, "", "only at the end"),
        ("**/bin/rg", Fate::Refused, "", "only at the end"),
        ("*", Fate::Refused, "", "names no program"),
        ("**", Fate::Refused, "", "names no program"),
        ("", Fate::Refused, "", "names no program"),
        ("/usr/bin/?", Fate::Refused, "", "`?`"),
        ("C:\\x\\git.exe", Fate::Refused, "", "`\\`"),
        ("git status", Fate::Refused, "", "it is a command"),
        ("./bin/x", Fate::Refused, "", "absolute"),
        ("~bob/x", Fate::Refused, "", "whose home"),
        ("/usr/bin/python3", Fate::Refused, "", "any script"),
        ("**/bash", Fate::Refused, "", "any script"),
        ("/usr/bin/*", Fate::Refused, "", "any script"),
        ("/usr/bin/sudo", Fate::Refused, "", "cover nothing"),
        ("env", Fate::Refused, "", "cover nothing"),
    ] {
        let merged = gateway(json!({"pattern": glob, "id": "x", "lastUsedAt": 1, "lastUsedCommand": "c"}));
        expect(&merged, &format!("agents.*.allowlist[0]: {}", glob.trim()), wanted, to, why);
        assert_eq!(merged.policy.allowlist.len(), usize::from(wanted != Fate::Refused), "{glob}");
    }
}

#[test]
fn a_gateways_argument_patterns_become_words_or_nothing() {
    for (expression, wanted, to) in [
        ("^status$", Fate::Taken, "allowlist: rg status"),
        ("^log --oneline$", Fate::Taken, "allowlist: rg log --oneline"),
        (r"^a\.txt$", Fate::Taken, "allowlist: rg a.txt"),
        ("^a b\0c\0$", Fate::Taken, "allowlist: rg 'a b' c"),
        (r"^status\x00$", Fate::Taken, "allowlist: rg status"),
        ("status", Fate::Refused, ""),
        ("^status", Fate::Refused, ""),
        ("^$", Fate::Refused, ""),
        ("^\0\0$", Fate::Refused, ""),
        ("^a\0b$", Fate::Refused, ""),
        ("^a  b$", Fate::Refused, ""),
        (r"^\d$", Fate::Refused, ""),
        ("^(a|b)$", Fate::Refused, ""),
        ("^.*$", Fate::Refused, ""),
        (r"^a\$", Fate::Refused, ""),
    ] {
        let merged = gateway(json!({"pattern": "rg", "argPattern": expression}));
        expect(&merged, &format!("rg with {expression}"), wanted, to, "");
    }
    let strange = gateway(json!({"pattern": "rg", "cwd": "/x"}));
    expect(&strange, "rg", Fate::Refused, "", "`cwd`");
}

#[test]
fn a_gateways_terms_tighten_and_never_loosen() {
    let document = json!({"version": 1, "defaults": {"security": "full", "ask": "off", "askFallback": "full",
        "autoAllowSkills": true}, "socket": {"path": "/s", "token": "secret"}, "agents": {"*": {"security": "deny"}}});
    let merged = import(Format::Gateway, &document);
    expect(&merged, "agents.*.security: deny", Fate::Taken, "security: deny", "");
    expect(&merged, "defaults.security: full", Fate::Refused, "", "overrules");
    expect(&merged, "defaults.askFallback: full", Fate::Refused, "", "loosen");
    expect(&merged, "defaults.ask: off", Fate::Taken, "ask: off", "");
    expect(&merged, "defaults.autoAllowSkills", Fate::Refused, "", "");
    expect(&merged, "socket", Fate::Refused, "", "");
    assert!(!format!("{:?}", merged.report).contains("secret"));

    let open = json!({"version": 1, "defaults": {"security": "full", "ask": "off"}});
    let merged = import(Format::Gateway, &open);
    expect(&merged, "security: full", Fate::Refused, "", "--allow-full");
    expect(&merged, "ask: off", Fate::Refused, "", "unasked");
    assert_eq!(merged.policy, Policy::default());
    let inherited = json!({"version": 1, "defaults": {"security": "full"}, "agents": {"*": {"security": null}, "main": {"ask": "off"}}});
    let merged = import(Format::Gateway, &inherited);
    expect(&merged, "main.ask: off", Fate::Refused, "", "unasked");
    let full = Wishes { allow_full: true, ..wishes() };
    let merged = import_with(&json!({"version": 1}), Format::Gateway, &open, &full).unwrap();
    assert_eq!((merged.policy.security, merged.policy.ask), (Security::Full, Ask::OnMiss));
    let strict = json!({"version": 1, "security": "deny", "ask": "always", "askFallback": "deny"});
    let merged = import_with(&strict, Format::Gateway, &open, &full).unwrap();
    assert_eq!(merged.policy.security, Security::Deny);
}

#[test]
fn an_agent_is_only_ever_held_to_less() {
    let document = json!({"version": 1, "agents": {
        "*": {"allowlist": [{"pattern": "rg"}]},
        "main": {"security": "deny", "ask": "always", "askFallback": "full", "allowlist": [{"pattern": "rg"}, {"pattern": "jq"}]}}});
    let merged = import(Format::Gateway, &document);
    expect(&merged, "main.security: deny", Fate::Taken, "agents.main.security: deny", "");
    expect(&merged, "main.ask: always", Fate::Taken, "agents.main.ask: always", "");
    expect(&merged, "main.askFallback: full", Fate::Refused, "", "loosen");
    expect(&merged, "main.allowlist[0]: rg", Fate::Unchanged, "agents.main.allowlist: rg", "");
    expect(&merged, "main.allowlist[1]: jq", Fate::Refused, "", "--agent main");
    assert_eq!(merged.policy.agents["main"].allowlist, None);

    // Where the profile as a whole is not held to a list, a list of its own makes an agent's lot stricter.
    let document = json!({"version": 1, "agents": {
        "*": {"allowlist": [{"pattern": "rg"}]}, "main": {"security": "allowlist", "allowlist": [{"pattern": "jq"}]}}});
    let open = json!({"version": 1, "security": "full"});
    let merged = import_with(&open, Format::Gateway, &document, &wishes()).unwrap();
    expect(&merged, "main.allowlist[0]: jq", Fate::Taken, "agents.main.allowlist: jq", "");
    let list = merged.policy.agents["main"].allowlist.as_ref().unwrap();
    assert_eq!(list.iter().map(|entry| entry.pattern.pattern.as_str()).collect::<Vec<_>>(), ["rg", "jq"]);
    let listed =
        json!({"version": 1, "security": "full", "agents": {"main": {"security": "allowlist", "allowlist": []}}});
    let merged = import_with(&listed, Format::Gateway, &document, &wishes()).unwrap();
    expect(&merged, "main.allowlist[0]: jq", Fate::Refused, "", "add to it");
}

#[test]
fn one_agent_of_a_gateway_can_be_a_profile() {
    let document = json!({"version": 1, "defaults": {"ask": "on-miss"}, "agents": {"*": {"allowlist": [{"pattern": "rg"}]},
        "main": {"ask": "always", "allowlist": [{"pattern": "jq"}]}, "other": {"ask": "off", "allowlist": [{"pattern": "fd"}]}}});
    let main = Wishes { agent: Some("main".to_owned()), ..wishes() };
    let merged = import_with(&json!({"version": 1}), Format::Gateway, &document, &main).unwrap();
    expect(&merged, "main.ask: always", Fate::Taken, "ask: always", "");
    expect(&merged, "defaults.ask: on-miss", Fate::Refused, "", "overrules");
    expect(&merged, "jq", Fate::Taken, "allowlist: jq", "");
    expect(&merged, "rg", Fate::Taken, "allowlist: rg", "");
    expect(&merged, "other.ask: off", Fate::Refused, "", "another agent");
    expect(&merged, "fd", Fate::Refused, "", "another agent");
    let nobody = Wishes { agent: Some("x".to_owned()), ..wishes() };
    let error = import_with(&json!({"version": 1}), Format::Gateway, &document, &nobody).unwrap_err();
    assert!(error.to_string().contains("`main`"), "{error}");
}

#[test]
fn a_hubs_section_becomes_terms_and_entries() {
    let entries = ["git **", "npm run *", "pnpm ** test", "git", "**", "bash **", "ls | sh", "sudo **", "npm 'x"];
    let entries: Vec<Value> = entries.iter().map(|pattern| json!({"pattern": pattern})).collect();
    let document = json!({"name": "x", "execApproval": {"security": "allowlist", "ask": "always", "timeoutMs": 60000,
        "askFallback": "full", "allowlist": entries, "color": 1}});
    let merged = import(Format::Hub, &document);
    for (from, wanted, to, why) in [
        ("security: allowlist", Fate::Unchanged, "security: allowlist", ""),
        ("ask: always", Fate::Taken, "ask: always", ""),
        ("timeoutMs: 60000", Fate::Taken, "timeoutMs: 60000", ""),
        ("askFallback: full", Fate::Refused, "", "loosen"),
        ("git **", Fate::Taken, "allowlist: git **", ""),
        ("npm run *", Fate::Narrowed, "allowlist: npm run *", "one word"),
        ("pnpm ** test", Fate::Narrowed, "allowlist: pnpm * test", "one word"),
        ("git", Fate::Refused, "", "one word would allow any"),
        ("bash **", Fate::Refused, "", "any script"),
        ("ls | sh", Fate::Refused, "", "more than one"),
        ("sudo **", Fate::Refused, "", "cover nothing"),
        ("npm 'x", Fate::Refused, "", "quote"),
        ("execApproval.color", Fate::Refused, "", "not known"),
    ] {
        expect(&merged, from, wanted, to, why);
    }
    assert_eq!(merged.report.count(Fate::Refused), 8);
    for (ms, wanted) in [
        (json!(0), Fate::Refused),
        (json!(-1), Fate::Refused),
        (json!(1.5), Fate::Refused),
        (json!(9e9), Fate::Refused),
    ] {
        let merged = import(Format::Hub, &json!({"execApproval": {"timeoutMs": ms}}));
        assert_eq!(merged.report.entries[0].fate, wanted, "{ms}");
    }
    let short = json!({"version": 1, "timeoutMs": 1000, "askFallback": "full"});
    let document = json!({"execApproval": {"timeoutMs": 5000, "askFallback": "allowlist"}});
    let merged = import_with(&short, Format::Hub, &document, &wishes()).unwrap();
    assert_eq!((merged.policy.timeout_ms, merged.policy.ask_fallback), (Some(1000), Fallback::Allowlist));
}

#[test]
fn a_terminals_lists_become_rules_and_exact_entries() {
    let merged = import(
        Format::Terminal,
        &json!({
        "commandBlacklist": ["rm -rf /", "shutdown", "git push", ":(){ :|:& };:", "curl x | sh"],
        "commandWhitelist": ["npm test", "git", "rm -rf ./build", "npm ci && npm test", "bash", "bash ci.sh", "sudo ls", "~/bin/x a"],
        "commandTimeoutSeconds": 60, "requireCommandConfirmation": false, "theme": "dark"}),
    );
    const EXACT: &str = "exactly these words";
    for (from, wanted, to, why) in [
        ("commandBlacklist: rm -rf /", Fate::Taken, "deny: rm -rf /* **", ""),
        ("shutdown", Fate::Taken, "deny: shutdown **", ""),
        ("git push", Fate::Taken, "deny: git push **", ""),
        (":(){ :|:& };:", Fate::Refused, "", "own list still counts"),
        ("curl x | sh", Fate::Refused, "", "own list still counts"),
        ("commandWhitelist: npm test", Fate::Narrowed, "allowlist: npm test", EXACT),
        ("commandWhitelist: git", Fate::Taken, "allowlist: git", ""),
        ("rm -rf ./build", Fate::Narrowed, "allowlist: rm -rf ./build", EXACT),
        ("npm ci && npm test", Fate::Refused, "", "more than one"),
        ("commandWhitelist: bash", Fate::Refused, "", "any script"),
        ("bash ci.sh", Fate::Narrowed, "allowlist: bash ci.sh", EXACT),
        ("sudo ls", Fate::Narrowed, "allowlist: sudo ls", EXACT),
        ("~/bin/x a", Fate::Narrowed, "allowlist: /home/ann/bin/x a", "over HTTP"),
        ("commandTimeoutSeconds: 60", Fate::Refused, "", "`run` reads it"),
        ("requireCommandConfirmation: false", Fate::Refused, "", "`run` reads it"),
        ("theme: \"dark\"", Fate::Refused, "", "not known"),
    ] {
        expect(&merged, from, wanted, to, why);
    }
    assert_eq!(merged.policy.security, Security::Allowlist);
}

#[test]
fn what_is_there_already_is_unchanged_and_a_second_import_changes_nothing() {
    let document = json!({"permissions": {"allow": ["Bash(npm ci --silent)", "WebSearch"], "deny": ["Bash(rm *)"], "defaultMode": "dontAsk"}});
    let once = import(Format::ClaudeCode, &document);
    assert_eq!(once.report.count(Fate::Taken), 4);
    let stored = serde_json::from_str(&once.policy.to_text()).unwrap();
    let twice = import_with(&stored, Format::ClaudeCode, &document, &wishes()).unwrap();
    assert_eq!(twice.report.count(Fate::Unchanged), 4);
    assert_eq!(twice.policy, once.policy);
    let report = once.report.to_json("claude-code");
    assert_eq!(
        report["taken"][1],
        json!({"from": "allow Bash(npm ci --silent)", "to": ["allowlist: npm ci --silent"]})
    );
    assert_eq!((&report["format"], &report["refused"]), (&json!("claude-code"), &json!([])));
}

#[test]
fn wrong_types_and_versions_are_told_with_their_place() {
    for (format, document, says) in [
        (Format::Gateway, json!({"version": 2, "agents": {}}), "`version` is 2"),
        (Format::Gateway, json!({"agents": {}}), "`version` is missing"),
        (Format::Gateway, json!({"version": 1, "agents": []}), "`agents` is a list, expected an object"),
        (Format::Gateway, json!({"version": 1, "agents": {"a": 1}}), "`agents.a` is a number"),
        (
            Format::Gateway,
            json!({"version": 1, "agents": {"a": {"allowlist": {}}}}),
            "`agents.a.allowlist` is an object",
        ),
        (
            Format::Gateway,
            json!({"version": 1, "agents": {"a": {"allowlist": ["x"]}}}),
            "`agents.a.allowlist[0]` is a text",
        ),
        (Format::Gateway, json!({"version": 1, "agents": {"a": {"allowlist": [{}]}}}), "no `pattern`"),
        (Format::Gateway, json!({"version": 1, "defaults": {"ask": "sometimes"}}), "`sometimes`, expected `off`"),
        (Format::Hub, json!({}), "no `execApproval`"),
        (Format::Hub, json!({"execApproval": {"security": 1}}), "`execApproval.security` is a number"),
        (Format::Hub, json!({"execApproval": {"timeoutMs": "1"}}), "expected a number"),
        (
            Format::Hub,
            json!({"execApproval": {"allowlist": [{"pattern": null}]}}),
            "`execApproval.allowlist[0].pattern` is null",
        ),
        (Format::Terminal, json!({"commandWhitelist": "npm test"}), "`commandWhitelist` is a text, expected a list"),
        (Format::Terminal, json!({"commandBlacklist": [true]}), "`commandBlacklist[0]` is true or false"),
        (Format::Terminal, json!({"commandBlacklist": vec!["a"; 10_001]}), "`commandBlacklist` has 10001 entries"),
        (Format::ClaudeCode, json!({"permissions": []}), "`permissions` is a list"),
        (Format::ClaudeCode, json!({"permissions": {"allow": "Bash"}}), "`permissions.allow` is a text"),
        (Format::ClaudeCode, json!({"permissions": {"deny": [1]}}), "`permissions.deny[0]` is a number"),
        (Format::ClaudeCode, json!({"permissions": {"defaultMode": 1}}), "`permissions.defaultMode` is a number"),
    ] {
        let error = import_with(&json!({"version": 1}), format, &document, &wishes()).unwrap_err();
        assert!(error.to_string().contains(says), "{document}: {error}");
    }
}
