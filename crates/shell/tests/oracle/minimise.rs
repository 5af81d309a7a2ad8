//! The smallest line that still starts something unsaid, found by leaving pieces out.

use crate::compare::Said;
use crate::sandbox::Sandbox;

/// Lines tried before it is small enough.
const MAX_TRIES: usize = 300;

/// `first`: what was seen the first time, for what cannot be seen again.
pub fn smallest(line: &str, status: u8, first: &str, sandbox: &mut Sandbox) -> (String, String) {
    let mut fails = |line: &str| Said::of(line).lacks(&sandbox.run(line, status).started);
    let mut best = line.to_owned();
    let mut why = fails(line).unwrap_or_else(|| format!("it happens only sometimes: {first}"));
    let mut tries = 0;
    let mut size = best.len() / 2;
    while size > 0 {
        let mut at = 0;
        while at < best.len() && tries < MAX_TRIES {
            let end = best.ceil_char_boundary((at + size).min(best.len()));
            let start = best.floor_char_boundary(at);
            let kept = [best.get(..start), best.get(end..)];
            let candidate: String = kept.into_iter().flatten().collect();
            tries += 1;
            match fails(&candidate) {
                Some(reason) => (best, why) = (candidate, reason),
                None => at += size,
            }
        }
        size /= 2;
    }
    (best, why)
}
