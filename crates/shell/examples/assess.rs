//! `assess --jsonl` on its own: lines `{id?,command,allowlist?}` in, one answer a line out. Also times itself with
//! `--time`: nanoseconds of the median call over the lines given.

use std::io::{BufRead, Write};

use countersign_shell::{Assessment, Entry, Options, Verdict, assess, verdict};
use serde_json::{Value, json};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let timed = std::env::args().any(|argument| argument == "--time");
    let mut times: Vec<u128> = Vec::new();
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for line in std::io::stdin().lock().lines() {
        let row: Value = serde_json::from_str(&line?)?;
        let command = row.get("command").and_then(Value::as_str).unwrap_or_default();
        if timed {
            let start = std::time::Instant::now();
            let _assessment = assess(command, &Options::default());
            times.push(start.elapsed().as_nanos());
            continue;
        }
        writeln!(out, "{}", answer(&row, command))?;
    }
    if timed {
        times.sort_unstable();
        let at = |share: usize| times.get(times.len() * share / 1000).copied().unwrap_or_default();
        writeln!(out, "median {} ns, p90 {} ns, p99 {} ns, max {} ns", at(500), at(900), at(990), at(999))?;
    }
    Ok(())
}

fn answer(row: &Value, command: &str) -> Value {
    let resolve = |word: &str| resolve(word);
    let options = Options { resolve: Some(&resolve), ..Options::default() };
    let assessment: Assessment = assess(command, &options);
    let patterns = row.get("allowlist").and_then(Value::as_array).cloned().unwrap_or_default();
    let entries: Vec<Entry> = patterns.iter().filter_map(Value::as_str).filter_map(Entry::parse).collect();
    let verdict: Verdict = verdict(&assessment, &entries, &options);
    let reasons: Vec<Value> = assessment
        .reasons
        .iter()
        .map(|reason| {
            json!({"code": reason.code, "message": reason.message, "start": reason.span.start, "end": reason.span.end,
                "layer": reason.layer, "risk": reason.risk})
        })
        .collect();
    let commands: Vec<Value> = assessment
        .commands
        .iter()
        .map(|simple| {
            let argv: Vec<String> = simple.argv.iter().map(countersign_shell::Word::picture).collect();
            let via: Vec<&str> = simple.via.iter().map(|via| via.program.as_str()).collect();
            json!({"argv": argv, "via": via})
        })
        .collect();
    let mut answer = json!({"risk": assessment.risk, "verdict": verdict, "reasons": reasons, "commands": commands});
    if let (Some(id), Some(object)) = (row.get("id"), answer.as_object_mut()) {
        object.insert("id".to_owned(), id.clone());
    }
    answer
}

/// The file that a program word starts on this machine.
fn resolve(word: &str) -> Option<String> {
    let file = if word.contains('/') {
        std::path::PathBuf::from(word)
    } else {
        let path = std::env::var_os("PATH")?;
        std::env::split_paths(&path).map(|folder| folder.join(word)).find(|file| file.is_file())?
    };
    Some(file.canonicalize().ok()?.to_str()?.to_owned())
}
