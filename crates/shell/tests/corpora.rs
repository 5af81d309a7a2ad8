//! The corpora: every row assessed, the figures checked against the goals, and what misses them named.
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot read its corpus should stop"
)]

use countersign_shell::{Options, Risk, Verdict, assess, verdict_of};
use serde_json::Value;

struct Row {
    id: String,
    command: String,
    technique: String,
    allowlist: Vec<String>,
    expect: String,
}

fn rows(name: &str) -> Vec<Row> {
    let file = format!("{}/tests/corpora/{name}.jsonl", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{file}: {error}"));
    let field = |row: &Value, key: &str| row[key].as_str().unwrap_or_default().to_owned();
    text.lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("a row is JSON"))
        .map(|row| Row {
            id: field(&row, "id"),
            command: field(&row, "command"),
            technique: field(&row, "technique"),
            allowlist: strings(&row["allowlist"]),
            expect: field(&row, "expect"),
        })
        .collect()
}

fn strings(value: &Value) -> Vec<String> {
    value.as_array().map(|list| list.iter().filter_map(Value::as_str).map(str::to_owned).collect()).unwrap_or_default()
}

fn risk(row: &Row) -> Risk {
    assess(&row.command, &Options::default()).risk
}

fn allowed(row: &Row) -> bool {
    let allowlist: Vec<&str> = row.allowlist.iter().map(String::as_str).collect();
    let found = |word: &str| Some(if word.contains('/') { word.to_owned() } else { format!("/usr/bin/{word}") });
    let options = Options { resolve: Some(&found), ..Options::default() };
    verdict_of(&row.command, &allowlist, &options) == Verdict::Allow
}

#[track_caller]
fn at_most(permille: usize, total: usize, what: &str, missed: &[&Row]) {
    let list: Vec<String> =
        missed.iter().map(|row| format!("  {} {} | {}", row.id, row.technique, row.command)).collect();
    let shown = list.join("\n");
    println!("{what}: {} of {total}\n{shown}", missed.len());
    assert!(missed.len() * 1000 <= permille * total, "{what}: {} of {total}\n{shown}", missed.len());
}

fn chosen(rows: &[Row], wanted: impl Fn(&Row) -> bool) -> Vec<&Row> {
    rows.iter().filter(|row| wanted(row)).collect()
}

#[test]
fn dangerous_and_review_are_never_allowed() {
    for name in ["dangerous", "review"] {
        let rows = rows(name);
        at_most(0, rows.len(), &format!("{name} allowed"), &chosen(&rows, allowed));
    }
}

#[test]
fn read_only_runs_without_asking() {
    let rows = rows("benign_readonly");
    at_most(20, rows.len(), "read-only that asks", &chosen(&rows, |row| !allowed(row)));
}

#[test]
fn dangerous_is_named_dangerous() {
    let rows = rows("dangerous");
    at_most(30, rows.len(), "dangerous not named", &chosen(&rows, |row| risk(row) != Risk::Dangerous));
}

#[test]
fn alarms_are_rarely_false() {
    let mut rows = rows("benign_readonly");
    rows.extend(self::rows("review"));
    at_most(5, rows.len(), "false alarms", &chosen(&rows, |row| risk(row) == Risk::Dangerous));
}

#[test]
fn published_bypasses_do_not_pass() {
    let rows = rows("bypass");
    let no: Vec<&Row> = chosen(&rows, |row| row.expect == "no-auto-allow");
    let let_through: Vec<&Row> = no.iter().copied().filter(|row| allowed(row)).collect();
    at_most(0, no.len(), "bypasses let through", &let_through);
    let yes: Vec<&Row> = chosen(&rows, |row| row.expect == "auto-allow");
    let asked: Vec<&Row> = yes.iter().copied().filter(|row| !allowed(row)).collect();
    at_most(30, yes.len(), "legitimate under an allowlist that asks", &asked);
}

#[test]
fn what_the_seeds_let_through_is_held() {
    let file = format!("{}/tests/corpora/seed_weaknesses.jsonl", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(file).expect("the corpus is there");
    let mut wrong = Vec::new();
    for line in text.lines() {
        let row: Value = serde_json::from_str(line).expect("a row is JSON");
        let Some(command) = row["command"].as_str() else { continue };
        let required = &row["required"];
        let allowlist = strings(&row["context"]["allowlist"]);
        let allowlist: Vec<&str> = allowlist.iter().map(String::as_str).collect();
        let answer = verdict_of(command, &allowlist, &Options::default());
        if required["auto_allow"] == Value::Bool(false) && answer == Verdict::Allow {
            wrong.push(format!("allowed: {command} under {allowlist:?}"));
        }
        let risk = serde_json::to_value(assess(command, &Options::default()).risk).expect("a risk is text");
        if required["not_risk"] == risk && !risk.is_null() {
            wrong.push(format!("{risk}: {command}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
