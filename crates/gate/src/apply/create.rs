//! A request comes in: it is the same as before, ruled at once, or put to people.

use std::sync::Arc;

use countersign_model::{
    Action, AllowBy, Approval, ApprovalTerms, EventBody, Grant, Judgement, KeyId, Outcome, Reason, Request, Ruling,
    Status, Timestamp, entries_used, mask,
};

use super::flood::{self, Flood};
use super::{Applied, judge_now, unstorable};
use crate::command::{Done, Idempotency, NewApproval, Refused, Take};
use crate::ports::{StoreError, Tx};
use crate::row::{ApprovalRow, EntryUse, IdempotentRow};

const IDEMPOTENCY_MS: u64 = 24 * 3600 * 1000;
/// Of the command that an entry was last used for.
const MAX_USE_CHARS: usize = 200;
/// How long a no is remembered for the same effect.
pub const DENIAL_MEMORY_MS: u64 = 3600 * 1000;

pub(super) async fn create<T: Tx>(tx: &mut T, new: &NewApproval) -> Applied {
    let now = tx.now();
    let client = new.request.requester.key_id;
    if let Some(idempotency) = &new.idempotency
        && let Some(answer) = same_request(tx, client, idempotency, now).await?
    {
        return Ok(answer);
    }
    // INVARIANT: a client's name for a request is that request's for ever. Before the ruling, so that nobody's automatic
    // answer is taken for that of another request by the same name.
    if let Some(alias) = &new.request.alias
        && let Some(named) = tx.named(client, alias).await?
    {
        let is_open = tx.approval(named).await?.is_some_and(|approval| approval.outcome.is_none());
        return Ok(Err(if is_open { Refused::AliasPending } else { Refused::AliasUsed }));
    }
    let judged = judge_now(tx, &new.request, now).await?;
    let mut outcome = match judged.judgement.ruling {
        Ruling::Allow(by) => Some(Outcome::allowed(by, judged.code_of_yes(), judged.judgement.grant, now)),
        Ruling::Deny(why) => Some(Outcome::denied(why.into(), now)),
        Ruling::Ask => None,
    };
    if outcome.is_none() {
        if !new.reach.includes_any(judged.judgement.approvers.as_ref()) {
            outcome = Some(Outcome::denied(Reason::NoChannel, now));
        } else {
            match flood::check(tx, new, &judged.judgement, now).await? {
                Flood::Fine => {}
                Flood::Same(approval) => {
                    if let Some(alias) = &new.request.alias {
                        tx.put_name(client, alias, approval.id).await?;
                    }
                    return Ok(Ok(Done::Created { approval: Arc::new(*approval), fresh: false }));
                }
                Flood::TooMany => outcome = Some(Outcome::denied(Reason::Flooding, now)),
                Flood::Full(refused) => return Ok(Err(refused)),
            }
        }
    }
    if matches!(judged.judgement.ruling, Ruling::Allow(AllowBy::Allowlist | AllowBy::Grant)) {
        note_use(tx, &new.request, &judged.grants, now).await?;
    }
    let prior = tx.prior(client, new.request.effect).await?;
    let prior = prior.filter(|prior| now < prior.at.plus_millis(DENIAL_MEMORY_MS));
    let taken = new.take != Take::No && outcome.as_ref().is_some_and(|outcome| outcome.status == Status::Approved);
    let approval = Approval {
        id: new.id,
        terms: ApprovalTerms {
            created_at: now,
            expires_at: now.plus_millis(open_for(new, &judged.judgement)),
            policy_hash: judged.judgement.policy_hash,
            fallback: judged.judgement.fallback,
            allow_safe: judged.judgement.allow_safe,
            trusted: judged.trusted,
            approvers: judged.judgement.approvers,
            prior,
        },
        request: new.request.clone(),
        outcome,
        consumed_at: taken.then_some(now),
        told: taken && new.take == Take::Tell,
        run: None,
    };
    insert(tx, approval, new).await
}

/// Which entries said yes, and to what: for whoever tidies the list later.
async fn note_use<T: Tx>(tx: &mut T, request: &Request, grants: &[Grant], now: Timestamp) -> Result<(), StoreError> {
    let Action::Exec(exec) = &request.action else { return Ok(()) };
    let profile = &request.requester.profile;
    let stored = tx.policy(profile).await?;
    let used = entries_used(&stored, request, grants, now);
    if used.is_empty() {
        return Ok(());
    }
    let command: String = mask(&exec.command).text.chars().take(MAX_USE_CHARS).collect();
    for pattern in used {
        tx.put_entry_use(&EntryUse { profile: profile.clone(), pattern, at: now, command: command.clone() }).await?;
    }
    Ok(())
}

/// The requester's wish, never longer than policy's limit.
fn open_for(new: &NewApproval, judged: &Judgement) -> u64 {
    match (new.expires_in_ms, judged.timeout_ms) {
        (Some(wished), Some(limit)) => wished.min(limit),
        (Some(only), None) | (None, Some(only)) => only,
        (None, None) => judged.default_ms.unwrap_or(new.default_ms),
    }
}

async fn insert<T: Tx>(tx: &mut T, approval: Approval, new: &NewApproval) -> Applied {
    let row = ApprovalRow::new(&approval, new.weight.text.clone()).map_err(unstorable)?;
    let summary = new.weight.summary.as_deref().map(serde_json::to_string).transpose();
    let summary = summary.map_err(|error| StoreError::Corrupt(error.to_string()))?;
    tx.insert_approval(&row, new.weight.bytes, summary.as_deref()).await?;
    let client = row.client;
    if let Some(alias) = &approval.request.alias {
        tx.put_name(client, alias, approval.id).await?;
    }
    if let Some(Idempotency { key, body }) = &new.idempotency {
        let row = IdempotentRow { body: *body, approval: approval.id, at: approval.terms.created_at };
        tx.put_idempotent(client, key, &row).await?;
    }
    let (approval_id, digest) = (approval.id, approval.request.digest);
    let client_id = approval.request.requester.client_id.clone();
    let request = row.request_digest();
    let event = match &approval.outcome {
        None => EventBody::Requested { approval_id, client_id, digest, request, expires_at: approval.terms.expires_at },
        Some(outcome) => EventBody::Ruled {
            approval_id,
            client_id,
            digest,
            request,
            outcome: row.outcome_digest(),
            status: outcome.status,
            reason: outcome.reason,
        },
    };
    let approval = Arc::new(approval);
    tx.append(event, Some(approval.clone()));
    if approval.consumed_at.is_some() {
        tx.append(EventBody::Consumed { approval_id, told: approval.told }, Some(approval.clone()));
    }
    Ok(Ok(Done::Created { approval, fresh: true }))
}

async fn same_request<T: Tx>(
    tx: &mut T,
    client: KeyId,
    idempotency: &Idempotency,
    now: Timestamp,
) -> Result<Option<Result<Done, Refused>>, StoreError> {
    let Some(row) = tx.idempotent(client, &idempotency.key).await? else { return Ok(None) };
    if now >= row.at.plus_millis(IDEMPOTENCY_MS) {
        return Ok(None);
    }
    if row.body != idempotency.body {
        return Ok(Some(Err(Refused::IdempotencyConflict)));
    }
    let answer = match tx.approval(row.approval).await? {
        Some(approval) => Ok(Done::Created { approval: Arc::new(approval), fresh: false }),
        None => Err(Refused::NotFound),
    };
    Ok(Some(answer))
}
