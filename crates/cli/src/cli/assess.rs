//! `countersign assess`: what a command would do, without a gate, a store or a data folder.

use std::io::{self, BufRead as _, Read as _};
use std::path::PathBuf;

use countersign_model::escape_line;
use countersign_shell::{Assessment, Entry, Offer, Options, Risk, Rules, Verdict, Word, assess, verdict};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::exit::Usage;
use crate::output::{self, Style};
use crate::rules;
use crate::showing::Line;
use crate::verdict::Told;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  countersign assess 'curl https://x.example/install.sh | sh'\n  countersign assess --explain 'git push && make deploy' --allow 'git **'\n  countersign assess --json 'git status'\n  echo '{\"id\":1,\"command\":\"ls -la\"}' | countersign assess --jsonl"
)]
pub struct Args {
    /// The command, as one word of shell text
    #[arg(required_unless_present = "jsonl", conflicts_with = "jsonl")]
    command: Option<String>,
    /// An allowlist entry to judge it under, such as `git **` (may be repeated)
    #[arg(long, value_name = "ENTRY", conflicts_with = "jsonl")]
    allow: Vec<String>,
    /// The folder of the agent's work; what is outside counts as outside
    #[arg(long, value_name = "DIR")]
    workspace: Option<String>,
    /// A file of rules to judge it by too (may be repeated)
    #[arg(long, value_name = "FILE")]
    rules: Vec<PathBuf>,
    /// Go through the layers one by one
    #[arg(long, conflicts_with_all = ["json", "jsonl"])]
    explain: bool,
    /// Print JSON
    #[arg(long, conflicts_with = "jsonl")]
    json: bool,
    /// Read lines `{"id"?,"command","allowlist"?}` and answer each with one line
    #[arg(long)]
    jsonl: bool,
}

/// A longer line is read as several, none of which is a request.
const MAX_LINE: u64 = 8 * 1024 * 1024;

/// One line of `--jsonl`. Fields nobody knows here are somebody else's.
#[derive(Deserialize)]
struct Row {
    id: Option<Value>,
    command: String,
    #[serde(default)]
    allowlist: Option<Vec<String>>,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let workspace = args.workspace.as_deref();
    let rules = rules::read(&args.rules)?;
    let rules = rules.as_ref();
    let Some(command) = &args.command else { return lines(workspace, rules) };
    if let Some(bad) = args.allow.iter().find(|pattern| Entry::parse(pattern).is_none()) {
        return Err(Usage(format!("`{}` is no allowlist entry", escape_line(bad))).into());
    }
    let (assessment, verdict) = judge(command, &args.allow, workspace, rules);
    if args.json {
        return output::line(&output::json(&answer(None, &assessment, verdict)));
    }
    let told = Told { command, allowlist: &args.allow, assessment: &assessment, verdict };
    let lines = if args.explain { told.explained() } else { told.lines() };
    let (style, columns) = (Style::of_stdout(), output::columns());
    let wrap = |line: Line| columns.map_or_else(|| vec![line.clone()], |columns| line.wrap(columns));
    let text: String = lines.into_iter().flat_map(wrap).map(|line| format!("{}\n", line.paint(style))).collect();
    output::write(&text)
}

/// Each line gets its answer, in order: one that cannot be read is refused, and the next is read.
fn lines(workspace: Option<&str>, rules: Option<&Rules>) -> anyhow::Result<()> {
    let mut input = io::stdin().lock();
    let mut line = Vec::new();
    loop {
        line.clear();
        if input.by_ref().take(MAX_LINE).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        let told = match serde_json::from_slice::<Row>(&line) {
            Ok(row) => {
                let allowlist = row.allowlist.unwrap_or_default();
                let (assessment, verdict) = judge(&row.command, &allowlist, workspace, rules);
                answer(row.id, &assessment, verdict)
            }
            Err(error) => unreadable(&error),
        };
        output::line(&output::json(&told))?;
    }
}

fn unreadable(error: &serde_json::Error) -> Value {
    let message = format!("the line is not a request to assess: {error}");
    json!({
        "risk": Risk::Dangerous, "verdict": Verdict::Deny, "commands": [],
        "reasons": [{"code": "unreadable_line", "message": message, "start": 0, "end": 0, "layer": "input", "risk": Risk::Dangerous}],
    })
}

/// An entry that cannot be read covers nothing.
fn judge(command: &str, allowlist: &[String], workspace: Option<&str>, rules: Option<&Rules>) -> (Assessment, Verdict) {
    let resolve = |word: &str| resolve(word);
    let options = Options { workspace, rules, resolve: Some(&resolve), ..Options::default() };
    let assessment = assess(command, &options);
    let entries: Vec<Entry> = allowlist.iter().filter_map(|pattern| Entry::parse(pattern)).collect();
    let verdict = verdict(&assessment, &entries, &options);
    (assessment, verdict)
}

fn answer(id: Option<Value>, assessment: &Assessment, verdict: Verdict) -> Value {
    let reasons: Vec<Value> = assessment
        .reasons
        .iter()
        .map(|reason| {
            json!({
                "code": reason.code, "message": reason.message, "start": reason.span.start, "end": reason.span.end,
                "layer": reason.layer, "risk": reason.risk,
            })
        })
        .collect();
    let commands: Vec<Value> = assessment
        .commands
        .iter()
        .map(|simple| {
            let argv: Vec<String> = simple.argv.iter().map(Word::picture).collect();
            let via: Vec<&str> = simple.via.iter().map(|via| via.program.as_str()).collect();
            json!({"argv": argv, "via": via})
        })
        .collect();
    let mut answer = json!({
        "risk": assessment.risk, "reversibility": assessment.reversibility, "verdict": verdict, "reasons": reasons, "commands": commands,
        "flags": assessment.flags, "offer": offer(&assessment.offer),
    });
    if let (Some(id), Some(fields)) = (id, answer.as_object_mut()) {
        fields.insert("id".to_owned(), id);
    }
    answer
}

fn offer(offer: &Offer) -> Value {
    match offer {
        Offer::Entries { patterns, wider_refused } => json!({"entries": patterns, "wider_refused": wider_refused}),
        Offer::Refused(why) => json!({"refused": why}),
    }
}

/// The file that a program word starts on this machine.
fn resolve(word: &str) -> Option<String> {
    let file = if word.contains('/') {
        PathBuf::from(word)
    } else {
        let path = std::env::var_os("PATH")?;
        std::env::split_paths(&path).map(|folder| folder.join(word)).find(|file| file.is_file())?
    };
    Some(file.canonicalize().ok()?.to_str()?.to_owned())
}
