//! Finding a request by what somebody else was shown of it: its whole id, or its requester's name for it. Never by a part
//! of an id: what a part means changes with every new request.

use std::sync::Arc;

use countersign_model::{Approval, ApprovalId, KeyId};

use super::inner_get;
use crate::command::Refused;
use crate::error::GateError;
use crate::gate::Inner;
use crate::ports::Named;

/// `client`: only this one's own, and by its own names. Without one, a name is that of the client that first used it: no
/// card of another client's request ever showed it.
pub(super) async fn find(inner: &Inner, text: &str, client: Option<KeyId>) -> Result<Arc<Approval>, GateError> {
    if let Ok(id) = text.parse::<ApprovalId>() {
        let found = inner_get(inner, id).await?;
        let own = client.is_none_or(|client| found.request.requester.key_id == client);
        return if own { Ok(found) } else { Err(Refused::NotFound.into()) };
    }
    if ApprovalId::is_like(text) {
        return Err(Refused::PartOfAnId.into());
    }
    match inner.ledger.named(text.to_owned(), client).await? {
        Named::One(id) => inner_get(inner, id).await,
        Named::Nothing => Err(Refused::NotFound.into()),
        Named::Several => Err(Refused::Ambiguous(text.to_owned()).into()),
    }
}
