//! What each command does, written once over the store's primitives: every ledger runs this very code inside
//! its transaction.

use std::sync::Arc;

use countersign_model::{
    Answer, Approval, ApprovalId, ApprovalTerms, Change, Code, Decision, EventBody, Fallback, Grant, GrantId,
    Judgement, KeyId, Outcome, Policy, Prior, Reason, Refusal, Request, Ruling, Status, StoredPolicy, Timestamp,
    fallback_covers, judge, sha256,
};

use crate::command::{Command, Done, Idempotency, NewApproval, NewDecision, Refused};
use crate::ports::{StoreError, Tx};
use crate::row::{ApprovalRow, IdempotentRow, RowError};

const IDEMPOTENCY_MS: u64 = 24 * 3600 * 1000;
/// How long a no is remembered for the same effect.
const DENIAL_MEMORY_MS: u64 = 3600 * 1000;
const HOUR_MS: i64 = 3600 * 1000;
/// How far back the same open question is looked for.
const COALESCE_DEPTH: usize = 1000;

type Applied = Result<Result<Done, Refused>, StoreError>;

/// Runs one command. An outer error means the store failed and the whole transaction must be given up; an
/// inner one means the command was refused, and what was written (perhaps an expiry) stands.
pub async fn apply<T: Tx>(tx: &mut T, command: Command) -> Applied {
    match command {
        Command::Create(new) => create(tx, *new).await,
        Command::Decide(new) => decide(tx, *new).await,
        Command::Cancel { id, client } => cancel(tx, id, client).await,
        Command::Consume { id, client } => consume(tx, id, client).await,
        Command::ExpireDue { limit } => expire_due(tx, limit).await,
        Command::RevokeGrant { id, by } => revoke_grant(tx, id, by).await,
        Command::PutPolicy { profile, policy, base_hash, by } => {
            let stored = tx.policy(&profile).await?;
            if stored.hash != base_hash {
                return Ok(Err(Refused::StalePolicy(stored.hash)));
            }
            put_policy(tx, profile, &policy, stored, by).await
        }
        Command::CreateKey { key, by } => {
            tx.insert_key(&key).await?;
            let (name, profile) = (key.name.clone(), key.profile.clone());
            tx.append(EventBody::KeyMade { key_id: key.id, name, role: key.role, profile, by }, None);
            Ok(Ok(Done::Nothing))
        }
        Command::RevokeKey { id, by } => {
            let now = tx.now();
            if !tx.revoke_key(id, now).await? {
                return Ok(Err(Refused::NoSuchKey));
            }
            tx.append(EventBody::KeyRevoked { key_id: id, by }, None);
            Ok(Ok(Done::Nothing))
        }
        Command::PutCursor { name, seq } => {
            tx.put_cursor(&name, seq).await?;
            Ok(Ok(Done::Nothing))
        }
        Command::Sweep { before, limit } => {
            let count = tx.sweep(before, limit).await?;
            if count > 0 {
                tx.append(EventBody::Swept { before, count }, None);
            }
            Ok(Ok(Done::Swept(count)))
        }
    }
}

async fn create<T: Tx>(tx: &mut T, new: NewApproval) -> Applied {
    let now = tx.now();
    let client = new.request.requester.key_id;
    if let Some(idempotency) = &new.idempotency
        && let Some(answer) = same_request(tx, client, idempotency, now).await?
    {
        return Ok(answer);
    }
    let judged = judge_now(tx, &new.request, now).await?;
    let mut outcome = match judged.judgement.ruling {
        Ruling::Allow(by) => Some(Outcome::allowed(by, judged.code_of_yes(), judged.judgement.grant, now)),
        Ruling::Deny(why) => Some(Outcome::denied(why.into(), now)),
        Ruling::Ask => None,
    };
    if outcome.is_none() {
        // An empty list is nobody, never everybody.
        if judged.judgement.approvers.as_ref().is_some_and(Vec::is_empty) {
            outcome = Some(Outcome::denied(Reason::NoChannel, now));
        } else {
            match flood_check(tx, &new, &judged.judgement, now).await? {
                Flood::Fine => {}
                Flood::Same(approval) => {
                    return Ok(Ok(Done::Created { approval: Arc::new(*approval), fresh: false }));
                }
                Flood::TooMany => outcome = Some(Outcome::denied(Reason::Flooding, now)),
                Flood::Full(count) => return Ok(Err(Refused::TooManyPending(count))),
            }
        }
    }
    let prior = tx.prior(client, new.request.effect).await?;
    let prior = prior.filter(|prior| now < prior.at.plus_millis(DENIAL_MEMORY_MS));
    let approval = Approval {
        id: new.id,
        terms: ApprovalTerms {
            created_at: now,
            expires_at: now.plus_millis(open_for(&new, judged.judgement.timeout_ms)),
            policy_hash: judged.judgement.policy_hash,
            fallback: judged.judgement.fallback,
            approvers: judged.judgement.approvers,
            prior,
        },
        request: new.request,
        outcome,
        consumed_at: None,
    };
    insert(tx, approval, new.idempotency).await
}

/// The requester's wish, never longer than policy's limit.
fn open_for(new: &NewApproval, policy_ms: Option<u64>) -> u64 {
    match (new.expires_in_ms, policy_ms) {
        (Some(wished), Some(limit)) => wished.min(limit),
        (Some(only), None) | (None, Some(only)) => only,
        (None, None) => new.default_ms,
    }
}

async fn insert<T: Tx>(tx: &mut T, approval: Approval, idempotency: Option<Idempotency>) -> Applied {
    let row = ApprovalRow::from_approval(&approval).map_err(unstorable)?;
    tx.insert_approval(&row).await?;
    let client = row.client;
    if let Some(Idempotency { key, body }) = idempotency {
        let row = IdempotentRow { body, approval: approval.id, at: approval.terms.created_at };
        tx.put_idempotent(client, &key, &row).await?;
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

/// A ruling with the grants it was made under.
struct Judged {
    judgement: Judgement,
    grants: Vec<Grant>,
}

impl Judged {
    /// The menu code an automatic yes has: that of the answer which made its grant, else a plain yes.
    fn code_of_yes(&self) -> Code {
        let grant = self.judgement.grant.and_then(|id| self.grants.iter().find(|grant| grant.id == id));
        match (self.judgement.ruling, grant) {
            (Ruling::Allow(countersign_model::AllowBy::Grant), Some(grant)) if grant.scope.session.is_some() => {
                Code::AllowForSession
            }
            (Ruling::Allow(countersign_model::AllowBy::Grant), Some(_)) => Code::AllowActionType,
            (Ruling::Allow(_) | Ruling::Ask | Ruling::Deny(_), _) => Code::AllowOnce,
        }
    }
}

async fn judge_now<T: Tx>(tx: &mut T, request: &Request, now: Timestamp) -> Result<Judged, StoreError> {
    let stored = tx.policy(&request.requester.profile).await?;
    let grants = tx.grants(request.requester.key_id, &Grant::subjects_of(request)).await?;
    let judgement = judge(&stored, request, &grants, now);
    Ok(Judged { judgement, grants })
}

enum Flood {
    Fine,
    /// The very question is open already.
    Same(Box<Approval>),
    /// Policy's limit: the request is denied, on the record.
    TooMany,
    /// The server's own limit: not even recorded.
    Full(u64),
}

async fn flood_check<T: Tx>(
    tx: &mut T,
    new: &NewApproval,
    judged: &Judgement,
    now: Timestamp,
) -> Result<Flood, StoreError> {
    let client = new.request.requester.key_id;
    let pending = tx.pending_count(client).await?;
    if pending >= new.max_pending {
        return Ok(Flood::Full(pending));
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
        if let Some(same) = same {
            return Ok(Flood::Same(Box::new(same)));
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

async fn decide<T: Tx>(tx: &mut T, new: NewDecision) -> Applied {
    let now = tx.now();
    let Some(approval) = tx.approval(new.id).await? else { return Ok(Err(Refused::NotFound)) };
    if approval.outcome.is_some() {
        return Ok(Err(Refused::Finished(Arc::new(approval))));
    }
    if approval.is_overdue(now) {
        let ended = expire(tx, approval, now).await?;
        return Ok(Err(Refused::Finished(ended)));
    }
    let answer = match new.answer.fit(&approval.request.action) {
        Ok(answer) => answer,
        Err(error) => return Ok(Err(error.into())),
    };
    let override_digest = match check_override(tx, &approval, &answer, now).await? {
        Ok(digest) => digest,
        Err(refused) => return Ok(Err(refused)),
    };
    let grant = Grant::from_answer(&answer, &approval.request, new.grant_id, approval.id, now, &new.by);
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
        by: new.by,
        at: now,
        via: new.via,
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

/// An override of a command is a new action: it must be showable, and policy must not forbid it.
async fn check_override<T: Tx>(
    tx: &mut T,
    approval: &Approval,
    answer: &Answer,
    now: Timestamp,
) -> Result<Result<Option<countersign_model::Digest>, Refused>, StoreError> {
    let Some(action) = answer.replaced_action(&approval.request.action) else { return Ok(Ok(None)) };
    let digest = match action.digest() {
        Ok(digest) => digest,
        Err(error) => return Ok(Err(Refused::OverrideUnfit(error.to_string()))),
    };
    let assessment = action.assess();
    let replaced = Request { action, digest, effect: digest, assessment, ..(*approval.request).clone() };
    let judged = judge_now(tx, &replaced, now).await?;
    match judged.judgement.ruling {
        Ruling::Deny(why) => Ok(Err(Refused::OverrideDenied(why.into()))),
        Ruling::Allow(_) | Ruling::Ask => Ok(Ok(Some(digest))),
    }
}

fn refused(refusal: Refusal, approval: Approval) -> Refused {
    match refusal {
        Refusal::NotAnApprover(name) => Refused::NotAnApprover(name),
        Refusal::Finished(_) | Refusal::Overdue | Refusal::NotDue(_) => Refused::Finished(Arc::new(approval)),
    }
}

async fn cancel<T: Tx>(tx: &mut T, id: ApprovalId, client: KeyId) -> Applied {
    let now = tx.now();
    let Some(approval) = own(tx, id, client).await? else { return Ok(Err(Refused::NotFound)) };
    if approval.is_overdue(now) {
        let ended = expire(tx, approval, now).await?;
        return Ok(Err(Refused::Finished(ended)));
    }
    match approval.apply(Change::Cancel { at: now }) {
        Ok(ended) => Ok(finish(tx, ended).await?.map(Done::Changed)),
        Err(refusal) => Ok(Err(refused(refusal, approval))),
    }
}

async fn consume<T: Tx>(tx: &mut T, id: ApprovalId, client: KeyId) -> Applied {
    let now = tx.now();
    let Some(approval) = own(tx, id, client).await? else { return Ok(Err(Refused::NotFound)) };
    let used = match approval.consume(now) {
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
    if !tx.consume(id, now).await? {
        return Ok(Err(Refused::Consumption(countersign_model::Consumption::AlreadyUsed(now))));
    }
    let used = Arc::new(used);
    tx.append(EventBody::Consumed { approval_id: id }, Some(used.clone()));
    Ok(Ok(Done::Changed(used)))
}

/// Another client's approval is the same as none.
async fn own<T: Tx>(tx: &mut T, id: ApprovalId, client: KeyId) -> Result<Option<Approval>, StoreError> {
    let approval = tx.approval(id).await?;
    Ok(approval.filter(|approval| approval.request.requester.key_id == client))
}

async fn expire_due<T: Tx>(tx: &mut T, limit: usize) -> Applied {
    let now = tx.now();
    let due = tx.due(now, limit).await?;
    let count = due.len();
    for approval in due {
        expire(tx, approval, now).await?;
    }
    Ok(Ok(Done::Expired { count }))
}

async fn expire<T: Tx>(tx: &mut T, approval: Approval, now: Timestamp) -> Result<Arc<Approval>, StoreError> {
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
async fn finish<T: Tx>(tx: &mut T, ended: Approval) -> Result<Result<Arc<Approval>, Refused>, StoreError> {
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

async fn revoke_grant<T: Tx>(tx: &mut T, id: GrantId, by: String) -> Applied {
    let now = tx.now();
    if !tx.revoke_grant(id, now).await? {
        return Ok(Err(Refused::NoSuchGrant));
    }
    tx.append(EventBody::GrantRevoked { grant_id: id, by }, None);
    Ok(Ok(Done::Nothing))
}

async fn put_policy<T: Tx>(
    tx: &mut T,
    profile: String,
    policy: &Policy,
    before: Arc<StoredPolicy>,
    by: String,
) -> Applied {
    let text = policy.to_text();
    let stored = StoredPolicy::from_text(&text);
    if let Err(error) = &stored.policy {
        // What was checked before must read back the same; if it does not, nothing is stored.
        return Err(StoreError::Corrupt(error.to_string()));
    }
    tx.put_policy(&profile, &text).await?;
    tx.append(EventBody::PolicyPut { profile, hash: stored.hash, base_hash: before.hash, by }, None);
    Ok(Ok(Done::Policy(Arc::new(stored))))
}

fn unstorable(error: RowError) -> StoreError {
    StoreError::Corrupt(error.to_string())
}
