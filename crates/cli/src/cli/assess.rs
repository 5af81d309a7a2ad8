//! `countersign assess`: what a command would do, without a gate, a store or a data folder.

use std::collections::BTreeMap;
use std::io::{self, BufRead as _, Read as _};
use std::path::{Path, PathBuf};

use countersign_model::{Binding, escape_line};
use countersign_runner::{BindError, Inherited, Spec, What, bind};
use countersign_shell::{
    Assessment, Entry, Location, Offer, Options, Risk, Rules, Verdict, Word, assess, secret_path, verdict,
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::exit::Usage;
use crate::output::{self, Style};
use crate::rules;
use crate::showing::Line;
use crate::verdict::Told;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  countersign assess 'curl https://x.example/install.sh | sh'\n  countersign assess --explain 'git push && make deploy' --allow 'git **'\n  countersign assess --json 'git status'\n  countersign assess --look --cwd ~/project 'git status'\n  echo '{\"id\":1,\"command\":\"ls -la\"}' | countersign assess --jsonl"
)]
pub struct Args {
    /// The command, as one word of shell text
    #[arg(required_unless_present = "jsonl", conflicts_with = "jsonl")]
    command: Vec<String>,
    /// An allowlist entry to judge it under, such as `git **` (may be repeated)
    #[arg(long, value_name = "ENTRY", conflicts_with = "jsonl")]
    allow: Vec<String>,
    /// The folder of the agent's work; what is outside counts as outside
    #[arg(long, value_name = "DIR")]
    workspace: Option<String>,
    /// A file of rules to judge it by too (may be repeated)
    #[arg(long, value_name = "FILE")]
    rules: Vec<PathBuf>,
    /// The folder it would run in (default with `--look`: this one)
    #[arg(long, value_name = "DIR")]
    cwd: Option<String>,
    /// Look at the folder, the files of the project there and the programs on `PATH`, as `run` does
    #[arg(long)]
    look: bool,
    /// Go through the layers one by one
    #[arg(long, conflicts_with_all = ["json", "jsonl"])]
    explain: bool,
    /// Print JSON
    #[arg(long, conflicts_with = "jsonl")]
    json: bool,
    /// Read lines `{"id"?,"command","cwd"?,"workspace"?,"env"?,"allowlist"?}` and answer each with one line
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
    #[serde(default)]
    cwd: Option<String>,
    #[serde(default)]
    workspace: Option<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
}

/// What a command is judged under.
#[derive(Default)]
struct Terms<'t> {
    allowlist: &'t [String],
    cwd: Option<&'t str>,
    workspace: Option<&'t str>,
    env: Option<&'t BTreeMap<String, String>>,
    rules: Option<&'t Rules>,
    look: bool,
}

impl<'t> Terms<'t> {
    /// Where it would run, as far as it was said.
    fn location(&self) -> Location<'t> {
        Location { folder: self.cwd, workspace: self.workspace, ..Location::default() }
    }
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let rules = rules::read(&args.rules)?;
    let terms = Terms {
        allowlist: &args.allow,
        cwd: args.cwd.as_deref(),
        workspace: args.workspace.as_deref(),
        rules: rules.as_ref(),
        look: args.look,
        env: None,
    };
    let command = match args.command.as_slice() {
        [] => return lines(&terms),
        [command] => command,
        // Joined, it would be another text than the shell was given: quotes are gone by now.
        several => return Err(unquoted(several).into()),
    };
    if let Some(bad) = args.allow.iter().find(|pattern| Entry::parse(pattern).is_none()) {
        return Err(Usage(format!("`{}` is no allowlist entry", escape_line(bad))).into());
    }
    if let Some(error) = unlooked(&terms) {
        return Err(Usage(error).into());
    }
    let (assessment, verdict) = judge(command, &terms);
    if args.json {
        return output::line(&output::json(&answer(None, &assessment, verdict, &terms.location())));
    }
    let location = terms.location();
    let told = Told { command, allowlist: &args.allow, assessment: &assessment, verdict, location };
    let lines = if args.explain { told.explained() } else { told.lines() };
    let (style, columns) = (Style::of_stdout(), output::columns());
    let wrap = |line: Line| columns.map_or_else(|| vec![line.clone()], |columns| line.wrap(columns));
    let text: String = lines.into_iter().flat_map(wrap).map(|line| format!("{}\n", line.paint(style))).collect();
    output::write(&text)
}

fn unquoted(words: &[String]) -> Usage {
    let line = escape_line(&words.join(" "));
    Usage(format!("quote the command, so that it comes as it would run: `countersign assess '{line}'`"))
}

/// Why the folder that is to be looked at cannot be.
fn unlooked(terms: &Terms<'_>) -> Option<String> {
    let named = terms.cwd.unwrap_or(".");
    let problem = match std::fs::metadata(named) {
        _ if !terms.look => return None,
        Ok(about) if about.is_dir() => return None,
        Ok(_) => "it is not a directory".to_owned(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => "there is no such directory".to_owned(),
        Err(error) => error.to_string(),
    };
    Some(format!("`{}` cannot be looked at: {problem}; name another with `--cwd`", escape_line(named)))
}

/// Each line gets its answer, in order: one that cannot be read is refused, and the next is read.
fn lines(all: &Terms<'_>) -> anyhow::Result<()> {
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
                let terms = Terms {
                    allowlist: &allowlist,
                    cwd: row.cwd.as_deref().or(all.cwd),
                    workspace: row.workspace.as_deref().or(all.workspace),
                    env: Some(&row.env),
                    ..*all
                };
                match unlooked(&terms) {
                    Some(why) => refused(row.id, "no_such_folder", &why),
                    None => {
                        let (assessment, verdict) = judge(&row.command, &terms);
                        answer(row.id, &assessment, verdict, &terms.location())
                    }
                }
            }
            Err(error) => refused(None, "unreadable_line", &format!("the line is not a request to assess: {error}")),
        };
        output::line(&output::json(&told))?;
    }
}

/// What is not judged is dangerous.
fn refused(id: Option<Value>, code: &str, message: &str) -> Value {
    let mut told = json!({
        "sentence": "What it does is not known.", "effects": [{"effect": "unknown", "what": []}],
        "risk": Risk::Dangerous, "verdict": Verdict::Deny, "commands": [],
        "reasons": [{"code": code, "message": message, "start": 0, "end": 0, "layer": "input", "risk": Risk::Dangerous}],
    });
    if let (Some(id), Some(fields)) = (id, told.as_object_mut()) {
        fields.insert("id".to_owned(), id);
    }
    told
}

/// An entry that cannot be read covers nothing.
fn judge(command: &str, terms: &Terms<'_>) -> (Assessment, Verdict) {
    let resolve = |word: &str| resolve(word);
    let environment: Vec<(&str, &str)> =
        terms.env.into_iter().flatten().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let looked = terms.look.then(|| look(command, terms));
    let found = looked.as_ref().and_then(|looked| looked.as_ref().ok());
    let location = Location {
        folder: found.map(|binding| binding.folder.path.as_str()).or(terms.cwd),
        workspace: terms.workspace,
        ..Location::default()
    };
    let options = Options { location, rules: terms.rules, resolve: Some(&resolve), environment: &environment };
    let mut assessment = assess(command, &options);
    let entries: Vec<Entry> = terms.allowlist.iter().filter_map(|pattern| Entry::parse(pattern)).collect();
    let mut verdict = verdict(&assessment, &entries, &options);
    for message in found_around(looked.as_ref(), &location) {
        let stricter = if matches!(looked, Some(Err(_))) { Verdict::Deny } else { Verdict::Ask };
        verdict = if verdict == Verdict::Allow || stricter == Verdict::Deny { stricter } else { verdict };
        assessment.add(message);
    }
    (assessment, verdict)
}

/// What this machine has to say: files that could make it do more, and names that lead to secrets.
fn found_around(looked: Option<&Result<Binding, BindError>>, location: &Location<'_>) -> Vec<String> {
    match looked {
        None => Vec::new(),
        Some(Err(error)) => vec![error.to_string()],
        Some(Ok(binding)) => {
            let secret =
                |path: &String| Some(format!("a name here leads to `{path}`: {}", secret_path(path, location)?));
            binding.helpers.iter().cloned().chain(binding.links.iter().filter_map(secret)).collect()
        }
    }
}

fn look(command: &str, terms: &Terms<'_>) -> Result<Binding, BindError> {
    let here = std::path::absolute(terms.cwd.unwrap_or(".")).unwrap_or_else(|_| PathBuf::from("."));
    let none = BTreeMap::new();
    let spec = Spec {
        what: What::Text { text: command, shell: None },
        cwd: &here,
        workspace: terms.workspace.map(Path::new),
        env: terms.env.unwrap_or(&none),
        inherited: &Inherited::capture(),
    };
    bind(&spec).map(countersign_runner::Bound::into_binding)
}

fn answer(id: Option<Value>, assessment: &Assessment, verdict: Verdict, location: &Location<'_>) -> Value {
    let told = assessment.told(location);
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
        "sentence": told.sentence, "effects": told.effects,
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
