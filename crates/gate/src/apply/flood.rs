//! Whether people may be asked again now: the server's own limit, and policy's.

use countersign_model::{Approval, Judgement, Status, Timestamp};

use crate::command::{NewApproval, Refused};
use crate::ports::{PendingOf, StoreError, Tx};

const HOUR_MS: i64 = 3600 * 1000;
/// How far back the same open question is looked for.
const COALESCE_DEPTH: usize = 1000;

pub(super) enum Flood {
    Fine,
    /// The very question is open already.
    Same(Box<Approval>),
    /// Policy's limit: the request is denied, on the record.
    TooMany,
    /// The server's own limits: not even recorded.
    Full(Refused),
}

pub(super) async fn check<T: Tx>(
    tx: &mut T,
    new: &NewApproval,
    judged: &Judgement,
    now: Timestamp,
) -> Result<Flood, StoreError> {
    let client = new.request.requester.key_id;
    let PendingOf { count: pending, bytes, bytes_of_all } = tx.pending(client).await?;
    if pending >= new.max_pending {
        return Ok(Flood::Full(Refused::TooManyPending(pending)));
    }
    let weight = &new.weight;
    for (whose, bytes, most) in
        [("this client", bytes, weight.max_of_client), ("all clients", bytes_of_all, weight.max_of_all)]
    {
        if weight.bytes > 0 && bytes.saturating_add(weight.bytes) > most {
            return Ok(Flood::Full(Refused::TooManyBytes { whose, bytes, most }));
        }
    }
    let flood = &judged.flood;
    if flood.is_off() {
        return Ok(Flood::Fine);
    }
    if flood.coalesce {
        let recent = tx.recent_asks(client, COALESCE_DEPTH).await?;
        let same = recent.into_iter().find(|open| {
            open.outcome.is_none()
                && !open.is_overdue(now)
                && open.request.digest == new.request.digest
                && open.request.session_id == new.request.session_id
        });
        if let Some(same) = same
            && let Some(whole) = tx.approval(same.id).await?
        {
            return Ok(Flood::Same(Box::new(whole)));
        }
    }
    if flood.max_pending.is_some_and(|most| pending >= most) {
        return Ok(Flood::TooMany);
    }
    if let Some(most) = flood.asks_per_hour {
        let hour_ago = Timestamp::from_millis(now.as_millis() - HOUR_MS);
        if tx.asks_since(client, hour_ago).await? >= most {
            return Ok(Flood::TooMany);
        }
    }
    if let Some(ignored) = flood.ignored.filter(|ignored| *ignored > 0) {
        let depth = usize::try_from(ignored).unwrap_or(usize::MAX).min(COALESCE_DEPTH);
        let recent = tx.recent_asks(client, depth).await?;
        let cooldown = flood.cooldown_ms.unwrap_or(countersign_model::Flood::DEFAULT_COOLDOWN_MS);
        let all_ignored = recent.len() == depth && recent.iter().all(|ask| ask.status() == Status::Expired);
        let last_end = recent.first().and_then(|ask| ask.outcome.as_ref()).map(|outcome| outcome.at);
        if all_ignored && last_end.is_some_and(|end| now < end.plus_millis(cooldown)) {
            return Ok(Flood::TooMany);
        }
    }
    Ok(Flood::Fine)
}
