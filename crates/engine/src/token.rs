//! Resume tokens: what a host names a suspended call by. Random, and never the call's own id.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

pub(crate) const PREFIX: &str = "apr-";
/// Hex digits in each part of a UUID.
const PARTS: [usize; 5] = [8, 4, 4, 4, 12];

/// `apr-` and 128 bits in a UUID's form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ResumeToken([u8; 16]);

/// The system gave no random bytes; without them nothing is unguessable.
#[derive(Debug, Error)]
#[error("the system's random source failed: {0}")]
pub struct RandomError(String);

impl ResumeToken {
    pub fn random() -> Result<Self, RandomError> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|error| RandomError(error.to_string()))?;
        Ok(Self(bytes))
    }

    /// From bytes that are random already, such as an approval's id: so that the token can be told again after a
    /// restart.
    pub const fn from_random(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Display for ResumeToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(PREFIX)?;
        for (index, byte) in self.0.iter().enumerate() {
            if matches!(index, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl FromStr for ResumeToken {
    type Err = ();

    /// Only the very form that [`fmt::Display`] writes: one token has one spelling.
    fn from_str(text: &str) -> Result<Self, ()> {
        let parts: Vec<&str> = text.strip_prefix(PREFIX).ok_or(())?.split('-').collect();
        let sound = |part: &str| part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if parts.iter().map(|part| part.len()).ne(PARTS) || !parts.iter().all(|part| sound(part)) {
            return Err(());
        }
        let value = u128::from_str_radix(&parts.concat(), 16).map_err(|_| ())?;
        Ok(Self(value.to_be_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_reads_back_and_has_one_spelling() {
        let token = ResumeToken::from_random(*b"0123456789abcdef");
        let text = token.to_string();
        assert_eq!(text, "apr-30313233-3435-3637-3839-616263646566");
        assert_eq!(text.parse(), Ok(token));
        for other in [
            &text.to_uppercase(),
            "apr-",
            "",
            text.strip_suffix("6").unwrap(),
            &format!("{text}0"),
            &text.replace("apr-", ""),
        ] {
            assert_eq!(other.parse::<ResumeToken>(), Err(()), "{other}");
        }
        assert_ne!(ResumeToken::random().unwrap(), ResumeToken::random().unwrap());
    }
}
