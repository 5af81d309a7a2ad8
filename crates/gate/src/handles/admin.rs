//! What an admin may do beside deciding: policy, keys, the record.

use std::sync::Arc;

use countersign_model::{Digest, GrantId, KeyId, KeyRecord, KeySecret, Policy, Role, StoredPolicy};

use super::{ApproverHandle, unexpected};
use crate::command::{Command, Done, Refused};
use crate::error::GateError;
use crate::gate::Inner;
use crate::pairing::{Pairing, PairingCode};
use crate::ports::{AuditLine, PolicyText};
use crate::row::EntryUse;

const MAX_NAME_CHARS: usize = 64;

/// An approver who may also configure.
#[derive(Clone, Debug)]
pub struct AdminHandle(pub(super) ApproverHandle);

impl AdminHandle {
    pub(crate) fn new(approver: ApproverHandle) -> Self {
        Self(approver)
    }

    pub fn as_approver(&self) -> &ApproverHandle {
        &self.0
    }

    pub async fn policy(&self, profile: &str) -> Result<PolicyText, GateError> {
        check_name("profile", profile)?;
        Ok(self.inner().ledger.policy(profile.to_owned()).await?)
    }

    /// Replaces a profile's document, if it is still the one the change was made to, and ends these grants with it.
    pub async fn put_policy(
        &self,
        profile: &str,
        policy: Policy,
        base_hash: Digest,
        revoke: Vec<GrantId>,
    ) -> Result<Arc<StoredPolicy>, GateError> {
        check_name("profile", profile)?;
        policy.check()?;
        let command = Command::PutPolicy {
            profile: profile.to_owned(),
            policy: Box::new(policy),
            base_hash,
            revoke,
            by: self.0.name.clone(),
        };
        match self.inner().submit(command).await? {
            Done::Policy(stored) => Ok(stored),
            other => Err(unexpected(&other)),
        }
    }

    pub async fn keys(&self) -> Result<Vec<KeyRecord>, GateError> {
        Ok(self.inner().ledger.keys().await?)
    }

    pub async fn create_key(
        &self,
        name: &str,
        role: Role,
        profile: &str,
        expires_in_ms: Option<u64>,
    ) -> Result<(KeyRecord, KeySecret), GateError> {
        check_name("name", name)?;
        check_name("profile", profile)?;
        let expires_at = expires_in_ms.map(|ms| self.inner().clock.now().plus_millis(ms));
        self.inner().make_key(name, role, profile, expires_at, &self.0.name).await
    }

    pub async fn revoke_key(&self, id: KeyId) -> Result<(), GateError> {
        if id == self.0.key_id {
            return Err(Refused::OwnKey.into());
        }
        self.inner().revoke_key(id, &self.0.name).await
    }

    /// When each entry of a profile last let something through.
    pub async fn entry_uses(&self, profile: &str) -> Result<Vec<EntryUse>, GateError> {
        Ok(self.inner().ledger.entry_uses(profile.to_owned()).await?)
    }

    /// A one-time code with which a device becomes an approver of this name.
    pub fn pair(&self, name: &str) -> Result<(PairingCode, Pairing), GateError> {
        check_name("name", name)?;
        self.inner().pairings.make(name, &self.0.name, self.inner().clock.now())
    }

    pub async fn audit(&self, after: u64, limit: usize) -> Result<Vec<AuditLine>, GateError> {
        Ok(self.inner().ledger.audit(after, limit).await?)
    }

    fn inner(&self) -> &Inner {
        &self.0.gate.0
    }
}

fn check_name(field: &'static str, name: &str) -> Result<(), GateError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '@' | ':');
    let starts_plain = name.chars().next().is_some_and(|c| c.is_ascii_alphanumeric());
    if !starts_plain || name.len() > MAX_NAME_CHARS || !name.chars().all(plain) {
        let expected = "1 to 64 letters, digits or `-_.@:`, starting with a letter or digit";
        return Err(GateError::OutOfRange { field, expected });
    }
    Ok(())
}
