//! What each command does, written once over the store's primitives: every ledger runs this very code inside
//! its transaction.

mod create;
mod decide;
mod end;
mod flood;

use std::sync::Arc;

use countersign_model::{
    AllowBy, Code, EventBody, Grant, GrantId, Judgement, KeyId, Policy, Request, Ruling, StoredPolicy, Timestamp,
    Trust, judge,
};

use crate::command::{Command, Done, Refused};
use crate::ports::{NodeOf, StoreError, Tx};
use crate::row::RowError;
pub use create::DENIAL_MEMORY_MS;
use create::create;
use decide::decide;
use end::{consume, expire_due, ran, stop, tell, withdraw};

type Applied = Result<Result<Done, Refused>, StoreError>;

/// Runs one command. An outer error means the store failed and the whole transaction must be given up; an
/// inner one means the command was refused, and what was written (perhaps an expiry) stands.
pub async fn apply<T: Tx>(tx: &mut T, command: &Command) -> Applied {
    match command {
        Command::Create(new) => create(tx, new).await,
        Command::Decide(new) => decide(tx, new).await,
        Command::Withdraw { id, client, why } => withdraw(tx, *id, *client, *why).await,
        Command::Consume { id, client } => consume(tx, *id, *client).await,
        Command::Tell { id, client } => tell(tx, *id, *client).await,
        Command::Stop { id, by } => stop(tx, *id, by).await,
        Command::Ran { id, client, run } => ran(tx, *id, *client, run).await,
        Command::ExpireDue { limit } => expire_due(tx, *limit).await,
        Command::EndSession { client, session, by } => {
            let grants = tx.session_grants(*client, session).await?;
            for id in &grants {
                let _ = revoke_grant(tx, *id, by).await?;
            }
            Ok(Ok(Done::SessionEnded(grants.len() as u64)))
        }
        Command::RevokeGrant { id, by } => revoke_grant(tx, *id, by).await,
        Command::PutPolicy { profile, policy, base_hash, revoke, by } => {
            let stored = tx.policy(profile).await?;
            if stored.hash != *base_hash {
                return Ok(Err(Refused::StalePolicy(stored.hash)));
            }
            for id in revoke {
                // One that ended meanwhile needs no ending.
                let _ = revoke_grant(tx, *id, by).await?;
            }
            put_policy(tx, profile, policy, stored, by).await
        }
        Command::CreateKey { key, by } => {
            tx.insert_key(key).await?;
            let (name, profile, by) = (key.name.clone(), key.profile.clone(), by.clone());
            tx.append(EventBody::KeyMade { key_id: key.id, name, role: key.role, profile, by }, None);
            Ok(Ok(Done::Nothing))
        }
        Command::RevokeKey { id, by } => {
            let now = tx.now();
            if !tx.revoke_key(*id, now).await? {
                return Ok(Err(Refused::NoSuchKey));
            }
            tx.append(EventBody::KeyRevoked { key_id: *id, by: by.clone() }, None);
            Ok(Ok(Done::Nothing))
        }
        Command::BindNode { key, node_id } => bind_node(tx, *key, node_id).await,
        Command::Trust { workspace, text, by } => {
            trust(tx, workspace, text.clone(), by).await?;
            Ok(Ok(Done::Nothing))
        }
        Command::Untrust { workspace, by } => {
            if !tx.remove_trust(workspace).await? {
                return Ok(Err(Refused::NoSuchTrust));
            }
            tx.append(EventBody::Untrusted { workspace: workspace.clone(), by: by.clone() }, None);
            Ok(Ok(Done::Nothing))
        }
        Command::PutCursor { name, seq } => {
            tx.put_cursor(name, *seq).await?;
            Ok(Ok(Done::Nothing))
        }
        Command::Sweep { before, limit } => {
            let count = tx.sweep(*before, *limit).await?;
            if count > 0 {
                tx.append(EventBody::Swept { before: *before, count }, None);
            }
            Ok(Ok(Done::Swept(count)))
        }
    }
}

/// A ruling with the grants it was made under.
struct Judged {
    judgement: Judgement,
    grants: Vec<Grant>,
    trusted: bool,
}

impl Judged {
    /// The menu code an automatic yes has: 2 or 6 where the answer with that code made the grant, else a plain
    /// yes.
    fn code_of_yes(&self) -> Code {
        let grant = self.judgement.grant.and_then(|id| self.grants.iter().find(|grant| grant.id == id));
        match (self.judgement.ruling, grant.filter(|grant| grant.is_action_type())) {
            (Ruling::Allow(AllowBy::Grant), Some(grant)) if grant.scope.session.is_some() => Code::AllowForSession,
            (Ruling::Allow(AllowBy::Grant), Some(_)) => Code::AllowActionType,
            (Ruling::Allow(_) | Ruling::Ask | Ruling::Deny(_), _) => Code::AllowOnce,
        }
    }
}

async fn judge_now<T: Tx>(tx: &mut T, request: &Request, now: Timestamp) -> Result<Judged, StoreError> {
    let stored = tx.policy(&request.requester.profile).await?;
    let grants = tx.grants(request.requester.key_id, &Grant::subjects_of(request)).await?;
    let trusted = is_trusted(tx, request).await?;
    let judgement = judge(&stored, request, &grants, trusted, now);
    Ok(Judged { judgement, grants, trusted })
}

/// Whether the file that the request was asked under is, byte for byte, the one that a person trusts.
async fn is_trusted<T: Tx>(tx: &mut T, request: &Request) -> Result<bool, StoreError> {
    let Some(terms) = &request.terminal else { return Ok(false) };
    let Some(hash) = terms.hash else { return Ok(false) };
    Ok(tx.trust(&terms.workspace).await?.is_some_and(|trust| trust.hash() == hash))
}

async fn trust<T: Tx>(tx: &mut T, workspace: &str, text: String, by: &str) -> Result<(), StoreError> {
    let trust = Trust { workspace: workspace.to_owned(), text, by: by.to_owned(), at: tx.now() };
    tx.put_trust(&trust).await?;
    let (hash, workspace, by) = (trust.hash(), trust.workspace, trust.by);
    tx.append(EventBody::Trusted { workspace, hash, by }, None);
    Ok(())
}

/// A machine's id belongs to the first key that names it, and that key to it.
async fn bind_node<T: Tx>(tx: &mut T, key: KeyId, node_id: &str) -> Applied {
    match tx.node_of(key, node_id).await? {
        NodeOf::Both => Ok(Ok(Done::Nothing)),
        NodeOf::Other => Ok(Err(Refused::OtherNode)),
        NodeOf::Neither => {
            tx.bind_node(key, node_id).await?;
            tx.append(EventBody::NodeBound { key_id: key, node_id: node_id.to_owned() }, None);
            Ok(Ok(Done::Nothing))
        }
    }
}

async fn revoke_grant<T: Tx>(tx: &mut T, id: GrantId, by: &str) -> Applied {
    let now = tx.now();
    if !tx.revoke_grant(id, now).await? {
        return Ok(Err(Refused::NoSuchGrant));
    }
    tx.append(EventBody::GrantRevoked { grant_id: id, by: by.to_owned() }, None);
    Ok(Ok(Done::Nothing))
}

async fn put_policy<T: Tx>(tx: &mut T, profile: &str, policy: &Policy, before: Arc<StoredPolicy>, by: &str) -> Applied {
    let text = policy.to_text();
    let stored = StoredPolicy::from_text(&text);
    if let Err(error) = &stored.policy {
        // What was checked before must read back the same; if it does not, nothing is stored.
        return Err(StoreError::Corrupt(error.to_string()));
    }
    tx.put_policy(profile, &text).await?;
    let (profile, by) = (profile.to_owned(), by.to_owned());
    tx.append(EventBody::PolicyPut { profile, hash: stored.hash, base_hash: before.hash, by }, None);
    Ok(Ok(Done::Policy(Arc::new(stored))))
}

fn unstorable(error: RowError) -> StoreError {
    StoreError::Corrupt(error.to_string())
}
