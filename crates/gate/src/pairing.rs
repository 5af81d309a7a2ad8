//! One-time codes with which a device becomes an approver. Only in memory: a restart voids them, and a new one is
//! one command away.

use std::collections::HashMap;
use std::fmt;

use countersign_model::{Digest, Timestamp, sha256};
use parking_lot::Mutex;

use crate::error::GateError;
use crate::gate::random;

/// How long a code can be used.
pub const PAIRING_MS: u64 = 10 * 60 * 1000;
const MAX_OPEN: usize = 64;
/// Wrong codes after which all open ones are void: 80 bits are not guessed, but whoever tries is not invited to go on.
const MAX_WRONG: u32 = 100;
/// Without letters and digits that are taken for each other.
const ALPHABET: &[u8; 32] = b"ABCDEFGHJKLMNPQRSTUVWXYZ23456789";
const CODE_CHARS: usize = 16;

/// Shown once to the person who pairs; only its hash is kept.
#[derive(Clone)]
pub struct PairingCode(String);

impl PairingCode {
    /// For showing it to the person who asked for it, and for nothing else.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for PairingCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PairingCode(…)")
    }
}

#[derive(Clone, Debug)]
pub struct Pairing {
    /// The name that the device's answers will have on the record.
    pub name: String,
    /// Who made the code.
    pub by: String,
    pub expires_at: Timestamp,
}

#[derive(Debug, Default)]
pub(crate) struct Pairings(Mutex<Open>);

#[derive(Debug, Default)]
struct Open {
    by_hash: HashMap<[u8; 32], Pairing>,
    wrong: u32,
}

impl Pairings {
    pub(crate) fn make(&self, name: &str, by: &str, now: Timestamp) -> Result<(PairingCode, Pairing), GateError> {
        let code = PairingCode(grouped(&random::<CODE_CHARS>()?));
        let pairing = Pairing { name: name.to_owned(), by: by.to_owned(), expires_at: now.plus_millis(PAIRING_MS) };
        let mut open = self.0.lock();
        open.by_hash.retain(|_, pairing| now < pairing.expires_at);
        if open.by_hash.len() >= MAX_OPEN {
            let expected = "at most 64 open codes; use one, or wait ten minutes";
            return Err(GateError::OutOfRange { field: "pairing", expected });
        }
        if open.by_hash.is_empty() {
            open.wrong = 0;
        }
        open.by_hash.insert(*hash(code.reveal()).as_bytes(), pairing.clone());
        Ok((code, pairing))
    }

    /// What the code was made for, once. Found by its hash: how long it takes tells nothing about the code.
    pub(crate) fn take(&self, code: &str, now: Timestamp) -> Option<Pairing> {
        let mut open = self.0.lock();
        match open.by_hash.remove(hash(code).as_bytes()) {
            Some(pairing) => (now < pairing.expires_at).then_some(pairing),
            None => {
                open.wrong += 1;
                if open.wrong >= MAX_WRONG {
                    tracing::warn!("too many wrong pairing codes; all open ones are void");
                    open.by_hash.clear();
                    open.wrong = 0;
                }
                None
            }
        }
    }
}

/// As typed: case, dashes and spaces do not matter.
fn hash(code: &str) -> Digest {
    let plain: String = code.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_uppercase()).collect();
    sha256(plain.as_bytes())
}

fn grouped(random: &[u8; CODE_CHARS]) -> String {
    let mut code = String::with_capacity(CODE_CHARS + CODE_CHARS / 4);
    for (place, byte) in random.iter().enumerate() {
        if place > 0 && place % 4 == 0 {
            code.push('-');
        }
        code.push(ALPHABET.get(usize::from(byte % 32)).map_or('A', |letter| char::from(*letter)));
    }
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_000);

    #[test]
    fn a_code_works_once_as_typed_and_not_after_its_time() {
        let pairings = Pairings::default();
        let (code, pairing) = pairings.make("ann-phone", "ann", NOW).unwrap();
        assert_eq!((code.reveal().len(), pairing.by.as_str()), (19, "ann"));
        let typed = code.reveal().to_lowercase().replace('-', " ");
        assert_eq!(pairings.take(&typed, NOW).unwrap().name, "ann-phone");
        assert!(pairings.take(&typed, NOW).is_none());
        let (late, pairing) = pairings.make("ann-phone", "ann", NOW).unwrap();
        assert!(pairings.take(late.reveal(), pairing.expires_at).is_none());
    }

    #[test]
    fn guessing_voids_what_is_open() {
        let pairings = Pairings::default();
        let (code, _) = pairings.make("a", "ann", NOW).unwrap();
        for guess in 0..MAX_WRONG {
            assert!(pairings.take(&guess.to_string(), NOW).is_none());
        }
        assert!(pairings.take(code.reveal(), NOW).is_none());
    }

    #[test]
    fn a_code_never_prints_itself() {
        let (code, _) = Pairings::default().make("a", "ann", NOW).unwrap();
        assert!(!format!("{code:?}").contains(code.reveal()));
    }
}
