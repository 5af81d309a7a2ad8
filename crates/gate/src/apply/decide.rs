//! A person answers.

use std::sync::Arc;

use countersign_model::{
    Action, Answer, Approval, Change, Choice, Decision, Digest, EventBody, Grant, GrantError, KeyId, NUMBER_TRIES,
    Request, Risk, Ruling, Timestamp, entries_to_remember, sha256, with_whitelisted,
};

use super::end::{expire, finish, refused};
use super::{Applied, judge_now, trust};
use crate::command::{Done, NewDecision, Refused};
use crate::ports::{StoreError, Tx};

pub(super) async fn decide<T: Tx>(tx: &mut T, new: &NewDecision) -> Applied {
    let now = tx.now();
    let Some(approval) = tx.approval(new.id).await? else { return Ok(Err(Refused::NotFound)) };
    if let Some(client) = new.host
        && let Some(refused) = check_host(tx, &approval, client).await?
    {
        return Ok(Err(refused));
    }
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
    if let Some(refused) = check_number(tx, &approval, &answer, new).await? {
        return Ok(Err(refused));
    }
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
    let remembered = match to_remember(tx, &approval, &answer).await? {
        Ok(remembered) => remembered,
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
        remembered: remembered.as_ref().map(|remembered| remembered.entries.clone()).unwrap_or_default(),
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
    if let Some(remembered) = remembered {
        trust(tx, &remembered.workspace, remembered.text, &new.by).await?;
    }
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

/// A number that comes with a yes must be the one on the card. Wrong ones are on the record and counted by key, so that
/// neither another process nor another door of the same person begins anew.
async fn check_number<T: Tx>(
    tx: &mut T,
    approval: &Approval,
    answer: &Answer,
    new: &NewDecision,
) -> Result<Option<Refused>, StoreError> {
    let dangerous = |request: &Request| request.risk() >= Risk::Dangerous;
    let concerned =
        answer.number.is_some() || dangerous(&approval.request) || new.replaced.as_deref().is_some_and(dangerous);
    let Some(key_id) = new.key.filter(|_| answer.allows() && concerned) else { return Ok(None) };
    let before = tx.wrong_numbers(approval.id, key_id).await?;
    if before >= NUMBER_TRIES {
        return Ok(Some(Refused::NumberLocked));
    }
    if answer.number.as_ref().is_none_or(|typed| *typed == approval.number()) {
        return Ok(None);
    }
    let (now, count) = (tx.now(), before.saturating_add(1));
    tx.put_wrong_numbers(approval.id, key_id, count, now).await?;
    let (approval_id, by) = (approval.id, new.by.clone());
    tx.append(EventBody::WrongNumber { approval_id, key_id, by, count }, Some(Arc::new(approval.clone())));
    Ok(Some(if count >= NUMBER_TRIES { Refused::NumberLocked } else { Refused::WrongNumber }))
}

/// A host answers for its own engine alone, and only while policy says that it may.
async fn check_host<T: Tx>(tx: &mut T, approval: &Approval, client: KeyId) -> Result<Option<Refused>, StoreError> {
    if approval.request.requester.key_id != client {
        return Ok(Some(Refused::NotFound));
    }
    let stored = tx.policy(&approval.request.requester.profile).await?;
    let may = match (&approval.request.engine, &stored.policy) {
        (Some(engine), Ok(policy)) => engine.host_may_decide(policy),
        (Some(_), Err(_)) | (None, _) => false,
    };
    Ok((!may).then_some(Refused::HostMayNotDecide))
}

/// What a yes adds to a workspace's file, and the text that is trusted from then on.
struct Remembered {
    workspace: String,
    entries: Vec<String>,
    text: String,
}

/// Only what a person trusts is added to: an agent's own changes to the file must not ride along.
async fn to_remember<T: Tx>(
    tx: &mut T,
    approval: &Approval,
    answer: &Answer,
) -> Result<Result<Option<Remembered>, GrantError>, StoreError> {
    let by_itself = answer.choice == Choice::AllowOnce && answer.replacement.is_none();
    let terms = match &approval.request.terminal {
        Some(terms) if answer.remember || (by_itself && terms.remember_on_allow && approval.terms.trusted) => terms,
        None if answer.remember => return Ok(Err(GrantError::NoWorkspace)),
        Some(_) | None => return Ok(Ok(None)),
    };
    let entries = match entries_to_remember(&approval.request, approval.terms.allow_safe) {
        Ok(entries) => entries,
        // Nobody asked for it by name: the yes stands without it.
        Err(_) if !answer.remember => return Ok(Ok(None)),
        Err(error) => return Ok(Err(error)),
    };
    let trusted = tx.trust(&terms.workspace).await?;
    let text = match (&trusted, terms.hash) {
        (Some(trust), Some(_)) if approval.terms.trusted => trust.text.as_str(),
        // Made while this was open; an older one is of a file that somebody removed, and stays removed.
        (Some(trust), None) if trust.at >= approval.terms.created_at => trust.text.as_str(),
        (_, None) => "{}",
        (_, Some(_)) => return Ok(Err(GrantError::NotTrusted)),
    };
    let Some(text) = with_whitelisted(text, &entries) else { return Ok(Err(GrantError::NotTrusted)) };
    Ok(Ok(Some(Remembered { workspace: terms.workspace.clone(), entries, text })))
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
