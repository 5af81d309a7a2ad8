//! Leaving signed checkpoints of the record where whoever edits the store cannot reach: a file elsewhere.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use countersign_gate::Gate;
use countersign_ledger::{PublicKey, Signer};
use countersign_model::{Digest, hex, unhex};
use tokio::sync::watch;

use crate::folder::Folder;

/// What happened since the last one is not witnessed yet.
const EVERY: Duration = Duration::from_secs(10);

/// A file that gets a signed line whenever the record has grown.
#[derive(Debug)]
pub struct Witness {
    path: PathBuf,
    signer: Signer,
    gate: Gate,
    /// The last event that was noted.
    noted: u64,
}

impl Witness {
    /// Fails where the file could not be written, so that nobody believes in a witness that is not there.
    pub fn new(path: PathBuf, folder: &Folder, data: &Path, gate: &Gate) -> anyhow::Result<Self> {
        let signer = ensure_signer(folder)?;
        open(&path)?;
        let (file, data) = (path.canonicalize()?, data.canonicalize()?);
        if file.starts_with(&data) {
            bail!(
                "the witness `{}` is in the data folder, where whoever rewrites the record can rewrite it too; \
                 put it on another disk or machine",
                path.display()
            );
        }
        Ok(Self { path, signer, gate: gate.clone(), noted: 0 })
    }

    /// Until the gate has ended; then once more.
    pub async fn run(mut self, mut ended: watch::Receiver<bool>) {
        let mut feed = self.gate.feed_from_now();
        loop {
            self.note().await;
            let grown = async {
                let more = feed.next_in_time().await;
                tokio::time::sleep(EVERY).await;
                more
            };
            let going_on = tokio::select! {
                more = grown => more.is_some(),
                _ = ended.changed() => false,
            };
            if !going_on {
                return self.note().await;
            }
        }
    }

    async fn note(&mut self) {
        if let Err(error) = self.try_note().await {
            tracing::error!("the witness `{}` was not told, and will be: {error:#}", self.path.display());
        }
    }

    async fn try_note(&mut self) -> anyhow::Result<()> {
        let Some((seq, hash)) = self.head().await? else { return Ok(()) };
        let line = self.signer.sign(seq, hash, self.gate.now());
        let path = self.path.clone();
        tokio::task::spawn_blocking(move || append(&path, &line)).await??;
        self.noted = seq;
        Ok(())
    }

    /// The newest event, if it was not noted yet.
    async fn head(&self) -> anyhow::Result<Option<(u64, Digest)>> {
        let Some(seq) = self.gate.head().filter(|seq| *seq > self.noted) else { return Ok(None) };
        let lines = self.gate.owner().audit(seq - 1, 1).await?;
        Ok(lines.first().map(|line| (line.seq, line.hash)))
    }
}

/// The key of this folder's checkpoints, made when there is none.
fn ensure_signer(folder: &Folder) -> anyhow::Result<Signer> {
    let path = folder.witness_key();
    if !path.exists() {
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).context("the system gives no random bytes")?;
        folder.write_secret(&path, &hex(&seed))?;
    }
    signer(&path)
}

/// What the checkpoints of a data folder are signed by; nothing where it never had a witness.
pub fn public_key(data: &Path) -> anyhow::Result<Option<PublicKey>> {
    let path = Folder::witness_key_in(data);
    if path.exists() { signer(&path).map(|signer| Some(signer.public())) } else { Ok(None) }
}

fn signer(path: &Path) -> anyhow::Result<Signer> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read `{}`", path.display()))?;
    let seed = unhex(text.trim()).with_context(|| {
        format!("`{}` is no key for checkpoints; put the right file back, or remove it and start anew", path.display())
    })?;
    Signer::from_seed(&seed).context("the key for checkpoints cannot be used")
}

fn open(path: &Path) -> anyhow::Result<File> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .read(true)
        .mode(0o600)
        .open(path)
        .with_context(|| format!("cannot write the witness `{}`", path.display()))
}

/// Opened anew each time, so that it may be moved away or be on a disk that comes and goes.
fn append(path: &Path, line: &str) -> anyhow::Result<()> {
    let mut file = open(path)?;
    let mut text = String::with_capacity(line.len() + 2);
    // A line that was cut short does not take the next one with it.
    if !ends_a_line(&mut file)? {
        text.push('\n');
    }
    text.push_str(line);
    text.push('\n');
    file.write_all(text.as_bytes())?;
    file.sync_data()?;
    Ok(())
}

fn ends_a_line(file: &mut File) -> std::io::Result<bool> {
    let Some(last) = file.metadata()?.len().checked_sub(1) else { return Ok(true) };
    let mut byte = [0];
    file.read_exact_at(&mut byte, last)?;
    Ok(byte == *b"\n")
}
