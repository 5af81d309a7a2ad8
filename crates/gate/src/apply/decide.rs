//! A person answers.

use std::sync::Arc;

use countersign_model::{
    Action, Answer, Approval, Change, Decision, Digest, EventBody, Grant, Request, Ruling, Timestamp, sha256,
};

use super::end::{expire, finish, refused};
use super::{Applied, judge_now};
use crate::command::{Done, NewDecision, Refused};
use crate::ports::{StoreError, Tx};

pub(super) async fn decide<T: Tx>(tx: &mut T, new: &NewDecision) -> Applied {
    let now = tx.now();
    let Some(approval) = tx.approval(new.id).await? else { return Ok(Err(Refused::NotFound)) };
    if approval.outcome.is_some() {
        return Ok(Err(Refused::Finished(Arc::new(approval))));
    }
    if approval.is_overdue(now) {
        let ended = expire(tx, approval, now).await?;
        return Ok(Err(Refused::Finished(ended)));
    }
    let answer = match new.answer.clone().fit(&approval.request.action) {
        Ok(answer) => answer,
        Err(error) => return Ok(Err(error.into())),
    };
    let override_digest = match check_override(tx, &approval, &answer, new.replaced.as_deref(), now).await? {
        Ok(digest) => digest,
        Err(refused) => return Ok(Err(refused)),
    };
    let grant = Grant::from_answer(
        &answer,
        &approval.request,
        new.grant_id,
        approval.id,
        now,
        &new.by,
        approval.terms.allow_safe,
    );
    let grant = match grant {
        Ok(grant) => grant,
        Err(error) => return Ok(Err(error.into())),
    };
    let code = answer.code();
    let decision = Decision {
        code,
        note: answer.note,
        replacement: answer.replacement,
        answer: answer.answer,
        by: new.by.clone(),
        at: now,
        via: new.via.clone(),
        grant_id: grant.as_ref().map(|grant| grant.id),
        override_digest,
    };
    let ended = match approval.apply(Change::Decide(decision)) {
        Ok(ended) => ended,
        Err(refusal) => return Ok(Err(refused(refusal, approval))),
    };
    let ended = match finish(tx, ended).await? {
        Ok(ended) => ended,
        Err(refused) => return Ok(Err(refused)),
    };
    if let Some(grant) = grant {
        let body = serde_json::to_string(&grant).map_err(|error| StoreError::Corrupt(error.to_string()))?;
        tx.insert_grant(&grant, &body).await?;
        let by = grant.created_by.clone();
        let made =
            EventBody::GrantMade { grant_id: grant.id, approval_id: ended.id, grant: sha256(body.as_bytes()), by };
        tx.append(made, Some(ended.clone()));
    }
    Ok(Ok(Done::Changed(ended)))
}

/// An override of a command is a new action: policy must not forbid it, and a person who makes it riskier than what was
/// asked must have seen that.
async fn check_override<T: Tx>(
    tx: &mut T,
    approval: &Approval,
    answer: &Answer,
    replaced: Option<&Request>,
    now: Timestamp,
) -> Result<Result<Option<Digest>, Refused>, StoreError> {
    if answer.replacement.is_none() || !matches!(approval.request.action, Action::Exec(_)) {
        return Ok(Ok(None));
    }
    let Some(replaced) = replaced else {
        return Ok(Err(Refused::OverrideUnfit("it was not assessed".to_owned())));
    };
    let judged = judge_now(tx, replaced, now).await?;
    if let Ruling::Deny(why) = judged.judgement.ruling {
        return Ok(Err(Refused::OverrideDenied(why.into())));
    }
    if replaced.risk() > approval.request.risk() && answer.confirm != Some(replaced.digest) {
        return Ok(Err(Refused::ConfirmRequired(Box::new(replaced.clone()))));
    }
    Ok(Ok(Some(replaced.digest)))
}
