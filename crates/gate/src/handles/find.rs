//! Finding a request by less than its whole id: people and older clients send what fits on a line.

use std::sync::Arc;

use countersign_model::{Approval, ApprovalId, KeyId};

use super::inner_get;
use crate::command::Refused;
use crate::error::GateError;
use crate::gate::Inner;
use crate::ports::Beginning;

/// Fewer characters than this say nothing.
const MIN_PREFIX: usize = 4;
/// Enough to tell one from several, also where an alias was used again and again.
const LOOK_AT: usize = 32;

/// What is pending comes first: an answer is meant for what is still open. `client`: only this one's own.
pub(super) async fn find(inner: &Inner, text: &str, client: Option<KeyId>) -> Result<Arc<Approval>, GateError> {
    let own = |approval: &Arc<Approval>| client.is_none_or(|client| approval.request.requester.key_id == client);
    if let Ok(id) = text.parse::<ApprovalId>() {
        return inner_get(inner, id).await.and_then(|found| if own(&found) { Ok(found) } else { Err(not_found()) });
    }
    let Some(beginning) = beginning(text) else { return Err(not_found()) };
    for pending in [true, false] {
        let mut found = inner.ledger.find(beginning.clone(), pending, LOOK_AT).await?;
        found.retain(own);
        let exact = |approval: &&Arc<Approval>| approval.request.alias.as_deref() == Some(text);
        let named: Vec<_> = found.iter().filter(exact).cloned().collect();
        let candidates = if named.is_empty() { found } else { newest_of_each_client(named) };
        match candidates.as_slice() {
            [] => {}
            [one] => return Ok(one.clone()),
            [_, _, ..] => return Err(Refused::Ambiguous(text.to_owned()).into()),
        }
    }
    Err(not_found())
}

/// A client may use its own name again once the request it was for has ended.
fn newest_of_each_client(found: Vec<Arc<Approval>>) -> Vec<Arc<Approval>> {
    let mut newest: Vec<Arc<Approval>> = Vec::new();
    for approval in found {
        let same = |other: &Arc<Approval>| other.request.requester.key_id == approval.request.requester.key_id;
        if !newest.iter().any(same) {
            newest.push(approval);
        }
    }
    newest
}

fn beginning(text: &str) -> Option<Beginning> {
    if text.chars().count() < MIN_PREFIX {
        return None;
    }
    let Some(digits) = text.strip_prefix(ApprovalId::PREFIX) else {
        return Some(Beginning::Alias(text.to_owned()));
    };
    let pad = |digit: &str| {
        let missing = 32usize.checked_sub(digits.len())?;
        format!("{}{digits}{}", ApprovalId::PREFIX, digit.repeat(missing)).parse::<ApprovalId>().ok()
    };
    if digits.is_empty() { None } else { Some(Beginning::Id { first: pad("0")?, last: pad("f")? }) }
}

fn not_found() -> GateError {
    Refused::NotFound.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_of_an_id_is_a_range_of_ids() {
        let Some(Beginning::Id { first, last }) = beginning("appr_ab1") else { panic!() };
        assert_eq!(first.to_string(), format!("appr_ab1{}", "0".repeat(29)));
        assert_eq!(last.to_string(), format!("appr_ab1{}", "f".repeat(29)));
        for nothing in ["", "abc", "appr_", "appr_xyz", "appr_AB", &format!("appr_{}", "0".repeat(33))] {
            assert!(beginning(nothing).is_none(), "{nothing}");
        }
        assert!(matches!(beginning("my-1"), Some(Beginning::Alias(text)) if text == "my-1"));
    }
}
