//! How an approval ends otherwise, and how its permit is used.

use std::sync::Arc;

use countersign_model::{
    Approval, ApprovalId, Change, Consumption, EventBody, Fallback, KeyId, Outcome, Prior, Reason, Refusal, Ruling,
    RunEnd, Status, Timestamp, fallback_covers,
};

use super::{Applied, judge_now, unstorable};
use crate::command::{Done, Refused, Told, Withdrawal};
use crate::ports::{StoreError, Tx};
use crate::row::ApprovalRow;

pub(super) async fn withdraw<T: Tx>(tx: &mut T, id: ApprovalId, client: KeyId, why: Withdrawal) -> Applied {
    let now = tx.now();
    let Some(approval) = own(tx, id, client).await? else { return Ok(Err(Refused::NotFound)) };
    if approval.is_overdue(now) {
        let ended = expire(tx, approval, now).await?;
        return Ok(Err(Refused::Finished(ended)));
    }
    let change = match why {
        Withdrawal::Cancelled => Change::Cancel { at: now },
        Withdrawal::AgentClosed => Change::AgentClosed { at: now },
    };
    match approval.apply(change) {
        Ok(ended) => Ok(finish(tx, ended).await?.map(Done::Changed)),
        Err(refusal) => Ok(Err(refused(refusal, approval))),
    }
}

pub(super) async fn consume<T: Tx>(tx: &mut T, id: ApprovalId, client: KeyId) -> Applied {
    let Some(approval) = own(tx, id, client).await? else { return Ok(Err(Refused::NotFound)) };
    Ok(use_permit(tx, &approval, false).await?.map(Done::Changed))
}

/// What the requester hears by a door that has no verb for using a permit: a yes is used up in the transaction that
/// first tells it. Telling the same again uses nothing; a yes that was used otherwise is none here.
pub(super) async fn tell<T: Tx>(tx: &mut T, id: ApprovalId, client: KeyId) -> Applied {
    let Some(approval) = own(tx, id, client).await? else { return Ok(Err(Refused::NotFound)) };
    if approval.status() != Status::Approved || approval.told {
        return Ok(Ok(Done::Told(Told { approval: Arc::new(approval), unusable: None })));
    }
    let told = match use_permit(tx, &approval, true).await? {
        Ok(approval) => Told { approval, unusable: None },
        Err(refused) => Told { approval: Arc::new(approval), unusable: Some(why_unusable(&refused)) },
    };
    Ok(Ok(Done::Told(told)))
}

fn why_unusable(refused: &Refused) -> Reason {
    match refused {
        Refused::Consumption(Consumption::AlreadyUsed(_)) => Reason::AlreadyUsed,
        Refused::Consumption(Consumption::Stale) => Reason::PermitExpired,
        _ => Reason::ChangedSinceApproval,
    }
}

/// Uses the permit, once, and only while policy would still have it so.
async fn use_permit<T: Tx>(
    tx: &mut T,
    approval: &Approval,
    told: bool,
) -> Result<Result<Arc<Approval>, Refused>, StoreError> {
    let now = tx.now();
    let used = match approval.consume(now, told) {
        Ok(used) => used,
        Err(why) => return Ok(Err(why.into())),
    };
    let judged = judge_now(tx, &approval.request, now).await?;
    let automatic = approval.outcome.as_ref().is_some_and(Outcome::is_automatic);
    let still = match judged.judgement.ruling {
        Ruling::Allow(_) => true,
        // A person said yes to exactly this: that policy would ask again changes nothing.
        Ruling::Ask => !automatic,
        Ruling::Deny(_) => false,
    };
    if !still {
        return Ok(Err(Refused::ChangedSinceApproval));
    }
    if !tx.consume(approval.id, now, told).await? {
        return Ok(Err(Refused::Consumption(Consumption::AlreadyUsed(now))));
    }
    let used = Arc::new(used);
    tx.append(EventBody::Consumed { approval_id: approval.id, told }, Some(used.clone()));
    Ok(Ok(used))
}

pub(super) async fn stop<T: Tx>(tx: &mut T, id: ApprovalId, by: &str) -> Applied {
    let Some(approval) = tx.approval(id).await? else { return Ok(Err(Refused::NotFound)) };
    if approval.consumed_at.is_none() || approval.run.is_some() {
        return Ok(Err(Refused::NotRunning));
    }
    let approval = Arc::new(approval);
    tx.append(EventBody::StopAsked { approval_id: id, by: by.to_owned() }, Some(approval.clone()));
    Ok(Ok(Done::Changed(approval)))
}

pub(super) async fn ran<T: Tx>(tx: &mut T, id: ApprovalId, client: KeyId, run: &RunEnd) -> Applied {
    let Some(approval) = own(tx, id, client).await? else { return Ok(Err(Refused::NotFound)) };
    let Some(ended) = approval.ran(run.clone()) else { return Ok(Err(Refused::NotRunning)) };
    let text = serde_json::to_string(run).map_err(|error| StoreError::Corrupt(error.to_string()))?;
    if !tx.ran(id, &text).await? {
        return Ok(Err(Refused::NotRunning));
    }
    let ended = Arc::new(ended);
    tx.append(EventBody::Ran { approval_id: id, run: run.clone() }, Some(ended.clone()));
    Ok(Ok(Done::Changed(ended)))
}

/// Another client's approval is the same as none.
async fn own<T: Tx>(tx: &mut T, id: ApprovalId, client: KeyId) -> Result<Option<Approval>, StoreError> {
    let approval = tx.approval(id).await?;
    Ok(approval.filter(|approval| approval.request.requester.key_id == client))
}

pub(super) async fn expire_due<T: Tx>(tx: &mut T, limit: usize) -> Applied {
    let now = tx.now();
    let due = tx.due(now, limit).await?;
    let count = due.len();
    for id in due {
        if let Some(approval) = tx.approval(id).await? {
            expire(tx, approval, now).await?;
        }
    }
    Ok(Ok(Done::Expired { count }))
}

pub(super) async fn expire<T: Tx>(tx: &mut T, approval: Approval, now: Timestamp) -> Result<Arc<Approval>, StoreError> {
    let fallback = approval.terms.fallback;
    let fallback_allows = match fallback {
        Fallback::Deny => false,
        Fallback::Allowlist | Fallback::Full => {
            let judged = judge_now(tx, &approval.request, now).await?;
            fallback_covers(fallback, &judged.judgement)
        }
    };
    match approval.apply(Change::Expire { at: now, fallback_allows }) {
        Ok(ended) => match finish(tx, ended).await? {
            Ok(ended) => Ok(ended),
            Err(Refused::Finished(winner)) => Ok(winner),
            Err(other) => Err(StoreError::Corrupt(other.to_string())),
        },
        Err(_) => Ok(Arc::new(approval)),
    }
}

/// Writes the end of an approval, if nobody else ended it first.
pub(super) async fn finish<T: Tx>(tx: &mut T, ended: Approval) -> Result<Result<Arc<Approval>, Refused>, StoreError> {
    let Some(outcome) = &ended.outcome else { return Ok(Err(Refused::NotFound)) };
    let row = ApprovalRow::with_outcome(&ended).map_err(unstorable)?;
    if !tx.finish_approval(&row).await? {
        let winner = tx.approval(ended.id).await?;
        return Ok(Err(winner.map_or(Refused::NotFound, |winner| Refused::Finished(Arc::new(winner)))));
    }
    let person = outcome.decision.as_ref().filter(|_| outcome.reason == Reason::Person);
    let body = EventBody::Resolved {
        approval_id: ended.id,
        outcome: row.outcome_digest(),
        status: outcome.status,
        reason: outcome.reason,
        code: outcome.decision.as_ref().map(|decision| decision.code),
        by: person.map(|decision| decision.by.clone()),
    };
    if matches!(outcome.status, Status::Denied | Status::Expired) {
        let prior = Prior { approval_id: ended.id, status: outcome.status, at: outcome.at };
        tx.put_prior(row.client, ended.request.effect, prior).await?;
    }
    let ended = Arc::new(ended);
    tx.append(body, Some(ended.clone()));
    Ok(Ok(ended))
}

pub(super) fn refused(refusal: Refusal, approval: Approval) -> Refused {
    match refusal {
        Refusal::NotAnApprover(name) => Refused::NotAnApprover(name),
        Refusal::Finished(_) | Refusal::Overdue | Refusal::NotDue(_) => Refused::Finished(Arc::new(approval)),
    }
}
