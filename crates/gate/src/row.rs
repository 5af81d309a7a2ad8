//! An approval as a store keeps it: a few columns to find it by, and its parts as JSON text whose hashes the
//! record holds. The one place where rows become approvals and back.

use std::sync::Arc;

use countersign_model::{Approval, ApprovalId, Digest, KeyId, Status, Timestamp, sha256};
use thiserror::Error;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalRow {
    pub id: ApprovalId,
    pub client: KeyId,
    pub status: Status,
    /// Whether a person was asked.
    pub asked: bool,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
    pub request: String,
    pub terms: String,
    pub outcome: Option<String>,
    pub ended_at: Option<Timestamp>,
    pub consumed_at: Option<Timestamp>,
    /// Whether the permit was used by telling the requester.
    pub told: bool,
    pub run: Option<String>,
    /// What the requester calls it.
    pub alias: Option<String>,
}

#[derive(Debug, Error)]
#[error("approval {id}: {source}")]
pub struct RowError {
    id: ApprovalId,
    source: serde_json::Error,
}

/// Which approval a client's idempotency key stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdempotentRow {
    pub body: Digest,
    pub approval: ApprovalId,
    pub at: Timestamp,
}

/// When an allowlist entry last let something through, and what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryUse {
    pub profile: String,
    pub pattern: String,
    pub at: Timestamp,
    /// Secrets masked, and cut.
    pub command: String,
}

impl ApprovalRow {
    /// `request` is the text of its request.
    pub fn new(approval: &Approval, request: String) -> Result<Self, RowError> {
        let failed = |source| RowError { id: approval.id, source };
        let outcome = approval.outcome.as_ref().map(serde_json::to_string).transpose().map_err(failed)?;
        Ok(Self {
            id: approval.id,
            client: approval.request.requester.key_id,
            status: approval.status(),
            asked: approval.outcome.as_ref().is_none_or(|outcome| !outcome.is_automatic()),
            created_at: approval.terms.created_at,
            expires_at: approval.terms.expires_at,
            request,
            terms: serde_json::to_string(&approval.terms).map_err(failed)?,
            ended_at: approval.outcome.as_ref().map(|outcome| outcome.at),
            outcome,
            consumed_at: approval.consumed_at,
            told: approval.told,
            run: approval.run.as_ref().map(serde_json::to_string).transpose().map_err(failed)?,
            alias: approval.request.alias.clone(),
        })
    }

    /// The row of an approval that ended, without writing again what cannot have changed.
    pub fn with_outcome(approval: &Approval) -> Result<Self, RowError> {
        let failed = |source| RowError { id: approval.id, source };
        Ok(Self {
            id: approval.id,
            client: approval.request.requester.key_id,
            status: approval.status(),
            asked: true,
            created_at: approval.terms.created_at,
            expires_at: approval.terms.expires_at,
            request: String::new(),
            terms: String::new(),
            outcome: approval.outcome.as_ref().map(serde_json::to_string).transpose().map_err(failed)?,
            ended_at: approval.outcome.as_ref().map(|outcome| outcome.at),
            consumed_at: approval.consumed_at,
            told: approval.told,
            run: approval.run.as_ref().map(serde_json::to_string).transpose().map_err(failed)?,
            alias: approval.request.alias.clone(),
        })
    }

    pub fn into_approval(self) -> Result<Approval, RowError> {
        let failed = |source| RowError { id: self.id, source };
        Ok(Approval {
            id: self.id,
            request: Arc::new(serde_json::from_str(&self.request).map_err(failed)?),
            terms: serde_json::from_str(&self.terms).map_err(failed)?,
            outcome: self.outcome.as_deref().map(serde_json::from_str).transpose().map_err(failed)?,
            consumed_at: self.consumed_at,
            told: self.told,
            run: self.run.as_deref().map(serde_json::from_str).transpose().map_err(failed)?,
        })
    }

    /// What the record binds of the request: its text and the terms it was put under.
    pub fn request_digest(&self) -> Digest {
        Digest::of_parts(&[self.request.as_bytes(), b"\n", self.terms.as_bytes()])
    }

    pub fn outcome_digest(&self) -> Digest {
        sha256(self.outcome.as_deref().unwrap_or_default().as_bytes())
    }
}
