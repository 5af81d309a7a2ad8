//! Places of the record that somebody noted elsewhere, and the signed form in which a gate leaves them with a witness.
//!
//! Whoever can write the store can rewrite all of it, hashes too. They cannot make the new record hold what was noted
//! of the old one.

use std::collections::BTreeMap;
use std::fmt;
use std::io::BufRead;
use std::str::FromStr;

use countersign_model::{Digest, Timestamp, hex, unhex};
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::verify::VerifyError;

/// More is no line of ours.
const MAX_LINE: u64 = 4096;

/// What a record must still hold. Each is met on the way through it, and none may be left at its end.
#[derive(Clone, Debug, Default)]
pub struct Checkpoints(BTreeMap<u64, Digest>);

impl Checkpoints {
    /// Two hashes of one event are two histories: no record can hold both.
    pub fn note(&mut self, seq: u64, hash: Digest) -> Result<(), VerifyError> {
        match self.0.insert(seq, hash) {
            Some(other) if other != hash => Err(VerifyError::Checkpoint { seq, hash: other }),
            Some(_) | None => Ok(()),
        }
    }

    pub fn meet(&mut self, seq: u64, hash: &Digest) -> Result<(), VerifyError> {
        match self.0.remove(&seq) {
            Some(noted) if noted != *hash => Err(VerifyError::Checkpoint { seq, hash: noted }),
            Some(_) | None => Ok(()),
        }
    }

    pub fn end(mut self) -> Result<(), VerifyError> {
        self.0.pop_first().map_or(Ok(()), |(seq, hash)| Err(VerifyError::Checkpoint { seq, hash }))
    }
}

impl From<Option<(u64, Digest)>> for Checkpoints {
    fn from(noted: Option<(u64, Digest)>) -> Self {
        Self(noted.into_iter().collect())
    }
}

/// The gate's own key for checkpoints. It is in the data folder, so it proves who signed and not when.
pub struct Signer(Ed25519KeyPair);

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Signer({})", self.public())
    }
}

/// The half of it that a witness keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicKey([u8; 32]);

#[derive(Debug, Error)]
pub enum WitnessError {
    #[error("it cannot be read: {0}")]
    Unreadable(#[from] std::io::Error),
    #[error("line {0} is not signed by the gate's key; it was changed, or it is of another gate")]
    Signature(u64),
    #[error("it holds no checkpoint")]
    Empty,
    #[error(transparent)]
    Record(#[from] VerifyError),
}

#[derive(Debug, Serialize, Deserialize)]
struct Line {
    at: Timestamp,
    hash: Digest,
    seq: u64,
    signature: String,
}

/// What a witness's file holds.
#[derive(Debug, Default)]
pub struct Witnessed {
    pub checkpoints: Checkpoints,
    pub count: u64,
    /// Lines that are none, such as one that was being written when the power went.
    pub unreadable: u64,
}

impl Signer {
    pub fn from_seed(seed: &[u8; 32]) -> Option<Self> {
        Ed25519KeyPair::from_seed_unchecked(seed).ok().map(Self)
    }

    pub fn public(&self) -> PublicKey {
        let mut key = [0; 32];
        key.iter_mut().zip(self.0.public_key().as_ref()).for_each(|(to, from)| *to = *from);
        PublicKey(key)
    }

    /// One line for a witness, without its end.
    pub fn sign(&self, seq: u64, hash: Digest, at: Timestamp) -> String {
        let signature = hex(self.0.sign(&signed_text(seq, &hash, at)).as_ref());
        serde_json::to_string(&Line { at, hash, seq, signature }).unwrap_or_default()
    }
}

impl Witnessed {
    /// Reads a witness's file. A line that says something else than was signed is an error; one that says nothing is
    /// counted, since whoever can spoil a line can also remove it.
    pub fn read(mut input: impl BufRead, key: &PublicKey) -> Result<Self, WitnessError> {
        let mut found = Self::default();
        let mut text = Vec::new();
        for number in 1.. {
            text.clear();
            if std::io::Read::take(&mut input, MAX_LINE).read_until(b'\n', &mut text)? == 0 {
                break;
            }
            if text.trim_ascii().is_empty() {
                continue;
            }
            let Ok(line) = serde_json::from_slice::<Line>(&text) else {
                found.unreadable += 1;
                continue;
            };
            if !key.signed(&line) {
                return Err(WitnessError::Signature(number));
            }
            found.checkpoints.note(line.seq, line.hash)?;
            found.count += 1;
        }
        if found.count == 0 { Err(WitnessError::Empty) } else { Ok(found) }
    }
}

impl PublicKey {
    fn signed(&self, line: &Line) -> bool {
        let text = signed_text(line.seq, &line.hash, line.at);
        let Some(signature) = unhex::<64>(&line.signature) else { return false };
        UnparsedPublicKey::new(&ED25519, &self.0).verify(&text, &signature).is_ok()
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl FromStr for PublicKey {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        unhex(text).map(Self).ok_or("a gate's public key is 64 hex digits, as `countersign audit key` prints it")
    }
}

fn signed_text(seq: u64, hash: &Digest, at: Timestamp) -> Vec<u8> {
    format!("countersign checkpoint 1\n{seq}\n{hash}\n{}\n", at.as_millis()).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Timestamp = Timestamp::from_millis(1_700_000_000_000);

    fn signer(seed: u8) -> Signer {
        Signer::from_seed(&[seed; 32]).unwrap()
    }

    fn hash(byte: u8) -> Digest {
        Digest::from_bytes([byte; 32])
    }

    fn read(text: &str, signer: &Signer) -> Result<Witnessed, WitnessError> {
        Witnessed::read(text.as_bytes(), &signer.public())
    }

    #[test]
    fn what_was_signed_is_read_and_must_be_met() {
        let signer = signer(1);
        let text = format!("{}\n\n{}\n", signer.sign(3, hash(3), AT), signer.sign(5, hash(5), AT));
        let found = read(&text, &signer).unwrap();
        assert_eq!((found.count, found.unreadable), (2, 0));
        let mut whole = found.checkpoints.clone();
        for seq in 1..=6 {
            whole.meet(seq, &hash(seq as u8)).unwrap();
        }
        whole.end().unwrap();
        let mut rewritten = found.checkpoints.clone();
        assert!(matches!(rewritten.meet(3, &hash(9)), Err(VerifyError::Checkpoint { seq: 3, .. })));
        let mut cut_short = found.checkpoints;
        cut_short.meet(3, &hash(3)).unwrap();
        assert!(matches!(cut_short.end(), Err(VerifyError::Checkpoint { seq: 5, .. })));
    }

    #[test]
    fn threat_73_a_witness_that_was_changed_or_is_another_gates_is_refused() {
        let (ours, theirs) = (signer(1), signer(2));
        let line = ours.sign(3, hash(3), AT);
        for (from, to) in [("\"seq\":3", "\"seq\":4"), ("0303", "0404"), ("1700000000000", "1700000000001")] {
            let changed = line.replacen(from, to, 1);
            assert_ne!(changed, line, "{from}");
            assert!(matches!(read(&format!("\n{changed}\n"), &ours), Err(WitnessError::Signature(2))), "{changed}");
        }
        assert!(matches!(read(&line, &theirs), Err(WitnessError::Signature(1))));
    }

    #[test]
    fn two_histories_of_one_event_are_told() {
        let signer = signer(1);
        let text = format!("{}\n{}\n", signer.sign(3, hash(3), AT), signer.sign(3, hash(4), AT));
        assert!(matches!(read(&text, &signer), Err(WitnessError::Record(VerifyError::Checkpoint { seq: 3, .. }))));
    }

    #[test]
    fn a_line_cut_short_is_counted_and_a_file_without_any_is_an_error() {
        let signer = signer(1);
        let line = signer.sign(3, hash(3), AT);
        let (half, _) = line.split_at(line.len() / 2);
        let found = read(&format!("{half}\n{line}\n{half}"), &signer).unwrap();
        assert_eq!((found.count, found.unreadable), (1, 2));
        for nothing in ["", "\n", half, &"x".repeat(10_000)] {
            assert!(matches!(read(nothing, &signer), Err(WitnessError::Empty)), "{nothing}");
        }
    }

    #[test]
    fn a_public_key_is_64_digits_and_reads_as_it_is_printed() {
        let key = signer(1).public();
        assert_eq!(key.to_string().parse(), Ok(key));
        assert!("12".parse::<PublicKey>().is_err() && "zz".repeat(32).parse::<PublicKey>().is_err());
    }
}
