//! `countersign audit`: checks the record, and writes it out for whoever keeps a copy.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Subcommand;
use countersign_ledger::{Checkpoints, PublicKey, Witnessed, verify_export_line, verify_store};
use countersign_model::{Digest, Event};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::client::Request;
use crate::exit::Usage;
use crate::locate::{self, Flags, Locator, Offline};
use crate::{output, witness};

const PAGE: usize = 1000;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  countersign audit verify\n  countersign audit export > record.ndjson\n  countersign audit verify --file record.ndjson --checkpoint 120:9f2c…\n  countersign audit verify --witness /mnt/elsewhere/countersign.witness"
)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Check that nothing on the record was changed, here or in an export
    #[command(after_help = "Example:\n  countersign audit verify\n  countersign audit verify --file record.ndjson")]
    Verify {
        /// An export, instead of this machine's store; `-` for stdin
        #[arg(long, value_name = "EXPORT")]
        file: Option<PathBuf>,
        /// A number and hash noted earlier, which the record must still hold
        #[arg(long, value_name = "SEQ:HASH", value_parser = checkpoint)]
        checkpoint: Option<(u64, Digest)>,
        /// A file that `serve --witness` wrote, all of whose checkpoints the record must still hold
        #[arg(long, value_name = "FILE")]
        witness: Option<PathBuf>,
        /// Whose signatures the witness holds, as `audit key` printed it [default: the data folder's]
        #[arg(long, value_name = "KEY", requires = "witness")]
        witness_key: Option<PublicKey>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Write the whole record to stdout, one event a line
    #[command(after_help = "Example:\n  countersign audit export > record.ndjson")]
    Export,
    /// Print the public key that checkpoints for a witness are signed by
    #[command(after_help = "Example:\n  countersign audit key > witness.pub")]
    Key,
}

#[derive(Debug, Deserialize)]
struct Page {
    events: Vec<Entry>,
    next_after: Option<u64>,
}

#[derive(Debug, Deserialize)]
struct Entry {
    event: Value,
    hash: String,
}

pub fn run(args: &Args, flags: &Flags) -> anyhow::Result<()> {
    match &args.verb {
        Verb::Export => export(&Locator::from_env(flags)?),
        Verb::Key => {
            let data = locate::local_data(flags)?;
            let key = witness::public_key(&data)?
                .with_context(|| format!("`{}` has no such key yet; run `serve --witness FILE`", data.display()))?;
            output::line(&key.to_string())
        }
        Verb::Verify { file: Some(file), checkpoint, witness, witness_key, json } => {
            let checkpoints = noted(*checkpoint, witness.as_deref(), || {
                witness_key.ok_or_else(|| Usage("name the gate's key with `--witness-key`".to_owned()).into())
            })?;
            let (events, head) = verify_file(file, checkpoints)?;
            report(*json, &[("events", events)], head)
        }
        Verb::Verify { file: None, checkpoint, witness, witness_key, json } => {
            if locate::names_url(flags) {
                let advice = "a store is checked on its own machine; use `audit export`, then `audit verify --file`";
                return Err(Usage(advice.to_owned()).into());
            }
            let data = locate::local_data(flags)?;
            let path = data.join("countersign.db");
            if !path.exists() {
                bail!("there is no store at `{}`; name its folder with `--data DIR`", path.display());
            }
            let checkpoints = noted(*checkpoint, witness.as_deref(), || match witness_key {
                Some(key) => Ok(*key),
                None => witness::public_key(&data)?
                    .context("the data folder has no key for a witness; name the one that signed with `--witness-key`"),
            })?;
            let checked = verify_store(&path, checkpoints, |events| output::note(&format!("{events} events so far")))
                .with_context(|| format!("`{}` does not hold together", path.display()))?;
            let counts = [
                ("events", checked.events),
                ("approvals", checked.approvals),
                ("swept", checked.swept),
                ("grants", checked.grants),
                ("keys", checked.keys),
            ];
            report(*json, &counts, checked.head)
        }
    }
}

/// All that the record must still hold.
fn noted(
    checkpoint: Option<(u64, Digest)>,
    witness: Option<&Path>,
    key: impl FnOnce() -> anyhow::Result<PublicKey>,
) -> anyhow::Result<Checkpoints> {
    let Some(path) = witness else { return Ok(checkpoint.into()) };
    let about = || format!("the witness `{}` does not hold together", path.display());
    let file = File::open(path).with_context(|| format!("`{}` cannot be opened", path.display()))?;
    let Witnessed { mut checkpoints, count, unreadable } =
        Witnessed::read(BufReader::new(file), &key()?).with_context(about)?;
    output::note(&format!("the witness has {count} checkpoints"));
    if unreadable > 0 {
        output::note(&format!("{unreadable} of its lines are none; they were cut short or spoiled"));
    }
    if let Some((seq, hash)) = checkpoint {
        checkpoints.note(seq, hash)?;
    }
    Ok(checkpoints)
}

fn checkpoint(text: &str) -> Result<(u64, Digest), String> {
    let parsed = text.split_once(':').and_then(|(seq, hash)| Some((seq.parse().ok()?, Digest::from_hex(hash)?)));
    parsed.ok_or_else(|| "a checkpoint is a number, `:` and 64 hex digits, as `audit verify` prints it".to_owned())
}

fn report(as_json: bool, counts: &[(&str, u64)], head: Option<(u64, Digest)>) -> anyhow::Result<()> {
    let head = head.map(|(seq, hash)| format!("{seq}:{hash}"));
    if as_json {
        let mut value = json!({"ok": true, "head": head});
        if let Some(fields) = value.as_object_mut() {
            fields.extend(counts.iter().map(|(name, count)| ((*name).to_owned(), json!(count))));
        }
        return output::line(&output::json(&value));
    }
    let counts: Vec<String> = counts.iter().map(|(name, count)| format!("{count} {name}")).collect();
    output::line(&format!("ok: {}", counts.join(", ")))?;
    if let Some(head) = head {
        output::line(&format!("head: {head}"))?;
        output::note("keep the head elsewhere; `--checkpoint` with it shows later whether history was rewritten");
    }
    Ok(())
}

fn verify_file(path: &Path, checkpoints: Checkpoints) -> anyhow::Result<(u64, Option<(u64, Digest)>)> {
    if path == Path::new("-") {
        return verify_lines(io::stdin().lock(), checkpoints);
    }
    let file = File::open(path).with_context(|| format!("`{}` cannot be opened", path.display()))?;
    verify_lines(BufReader::new(file), checkpoints)
        .with_context(|| format!("`{}` does not hold together", path.display()))
}

fn verify_lines(input: impl BufRead, mut checkpoints: Checkpoints) -> anyhow::Result<(u64, Option<(u64, Digest)>)> {
    let mut last: Option<(Event, Digest)> = None;
    let mut events = 0;
    for line in input.lines() {
        let line = line.with_context(|| format!("line {} of the export cannot be read", events + 1))?;
        events += 1;
        let previous = last.as_ref().map(|(event, hash)| (event, hash));
        let (event, hash) = verify_export_line(previous, events, &line)?;
        checkpoints.meet(event.seq, &hash)?;
        last = Some((event, hash));
    }
    checkpoints.end()?;
    Ok((events, last.map(|(event, hash)| (event.seq, hash))))
}

fn export(locator: &Locator) -> anyhow::Result<()> {
    let caller = locator.person_or(Offline::Store)?;
    let mut after = 0;
    loop {
        let page: Page = caller.call(Request::get(format!("/v1/audit?after={after}&limit={PAGE}")))?;
        let mut text = String::new();
        for entry in page.events {
            text.push_str(&output::json(&json!({"event": entry.event, "hash": entry.hash})));
            text.push('\n');
        }
        output::write(&text)?;
        match page.next_after {
            Some(next) if next > after => after = next,
            Some(_) => bail!("the gate's pages do not go on after {after}; the export is not whole"),
            None => return Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use countersign_ledger::VerifyError;

    #[test]
    fn a_checkpoint_is_a_number_and_a_hash() {
        let hash = "ab".repeat(32);
        assert_eq!(checkpoint(&format!("7:{hash}")), Ok((7, Digest::from_hex(&hash).unwrap())));
        for bad in ["", "7", "7:ab", &format!(":{hash}"), &format!("x:{hash}")] {
            assert!(checkpoint(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_empty_export_holds_no_checkpoint_and_garbage_is_no_event() {
        assert_eq!(verify_lines(&b""[..], None.into()).unwrap(), (0, None));
        let kept = Some((1, Digest::from_bytes([1; 32])));
        assert!(verify_lines(&b""[..], kept.into()).unwrap_err().is::<VerifyError>());
        assert!(verify_lines(&b"{}\n"[..], None.into()).is_err());
        assert!(verify_lines(&b"\xff\n"[..], None.into()).is_err());
    }
}
