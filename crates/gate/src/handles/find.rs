//! Finding a request by less than its whole id: people and older clients send what fits on a line.

use std::collections::BTreeSet;
use std::sync::Arc;

use countersign_model::{Approval, ApprovalId, KeyId};

use super::inner_get;
use crate::command::Refused;
use crate::error::GateError;
use crate::gate::Inner;
use crate::ports::Sought;

/// Fewer digits than this say nothing.
const MIN_DIGITS: usize = 3;
/// Enough to tell one from several.
const LOOK_AT: usize = 32;

/// What is pending comes first: an answer is meant for what is still open. `client`: only this one's own.
pub(super) async fn find(inner: &Inner, text: &str, client: Option<KeyId>) -> Result<Arc<Approval>, GateError> {
    let own = |approval: &Arc<Approval>| client.is_none_or(|client| approval.request.requester.key_id == client);
    if let Ok(id) = text.parse::<ApprovalId>() {
        return inner_get(inner, id).await.and_then(|found| if own(&found) { Ok(found) } else { Err(not_found()) });
    }
    let Some(sought) = sought(text) else { return Err(not_found()) };
    let mut pending = inner.ledger.find(sought.clone(), true, LOOK_AT).await?;
    pending.retain(own);
    // A beginning that fits what is open need not be looked for among a million that are not. A name does: the answer
    // may be meant for one that has just ended, and must not go to somebody else's of that name.
    let mut ended = match &sought {
        Sought::Id { .. } if !pending.is_empty() => Vec::new(),
        Sought::Id { .. } | Sought::Alias(_) => inner.ledger.find(sought, false, LOOK_AT).await?,
    };
    ended.retain(own);
    let by_name = !text.starts_with(ApprovalId::PREFIX);
    let clients: BTreeSet<KeyId> =
        pending.iter().chain(&ended).map(|approval| approval.request.requester.key_id).collect();
    let ambiguous = || Err(Refused::Ambiguous(text.to_owned()).into());
    match (pending.as_slice(), ended.as_slice()) {
        _ if by_name && clients.len() > 1 => ambiguous(),
        ([one], _) | ([], [one]) => Ok(one.clone()),
        ([], []) => Err(not_found()),
        _ => ambiguous(),
    }
}

fn sought(text: &str) -> Option<Sought> {
    let Some(digits) = text.strip_prefix(ApprovalId::PREFIX) else {
        return (!text.is_empty()).then(|| Sought::Alias(text.to_owned()));
    };
    let pad = |digit: &str| {
        let missing = 32usize.checked_sub(digits.len())?;
        format!("{}{digits}{}", ApprovalId::PREFIX, digit.repeat(missing)).parse::<ApprovalId>().ok()
    };
    if digits.len() < MIN_DIGITS { None } else { Some(Sought::Id { first: pad("0")?, last: pad("f")? }) }
}

fn not_found() -> GateError {
    Refused::NotFound.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_of_an_id_is_a_range_of_ids() {
        let Some(Sought::Id { first, last }) = sought("appr_ab1") else { panic!() };
        assert_eq!(first.to_string(), format!("appr_ab1{}", "0".repeat(29)));
        assert_eq!(last.to_string(), format!("appr_ab1{}", "f".repeat(29)));
        for nothing in ["", "appr_", "appr_ab", "appr_xyz", "appr_AB", &format!("appr_{}", "0".repeat(33))] {
            assert!(sought(nothing).is_none(), "{nothing}");
        }
        assert!(matches!(sought("my-1"), Some(Sought::Alias(text)) if text == "my-1"));
    }
}
