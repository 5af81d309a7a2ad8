//! The policy document as this protocol shows and takes it: one view of a profile's policy, not a second policy.
//!
//! `agents["*"]` is the profile itself. What the document has no field for (deny rules, tools, approvers, limits)
//! stays as it is.

use std::collections::BTreeMap;

use countersign_gate::{AdminHandle, EntryUse, GateError, Refused};
use countersign_model::{AllowEntry, Ask, Digest, Fallback, Grant, Overlay, Policy, Security, SocketEntry, sha256};
use serde::{Deserialize, Serialize};
use thiserror::Error;
use utoipa::ToSchema;

use super::frame::Failure;
use crate::entries::{self, EntryError};

const EVERYBODY: &str = "*";

/// A profile's document with what a change to it needs.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Document {
    #[schema(example = "store:policy/default")]
    path: String,
    /// Whether the profile has a document of its own; else the defaults rule.
    exists: bool,
    /// Of the stored text: send it back as `baseHash`.
    hash: String,
    #[schema(value_type = Object)]
    file: File,
    #[schema(value_type = Object)]
    resolved_defaults: Defaults,
}

/// A change to it.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SetDocument {
    #[schema(value_type = Object)]
    file: File,
    /// The `hash` of the document that was changed.
    base_hash: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    version: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    socket: Option<Socket>,
    #[serde(default)]
    defaults: Defaults,
    #[serde(default)]
    agents: BTreeMap<String, Agent>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Socket {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    /// Taken, and never shown.
    #[serde(default, skip_serializing)]
    token: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Defaults {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    security: Option<Security>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ask: Option<Ask>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ask_fallback: Option<Fallback>,
    #[serde(default)]
    auto_allow_skills: bool,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Agent {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    security: Option<Security>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ask: Option<Ask>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ask_fallback: Option<Fallback>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    auto_allow_skills: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    allowlist: Option<Vec<AllowEntry>>,
}

#[derive(Debug, Error)]
pub(crate) enum DocumentError {
    #[error("`version` is {0}, expected 1")]
    Version(u32),
    #[error("`baseHash` is missing; get the document, change it, and send its `hash`")]
    NoBaseHash,
    #[error("`autoAllowSkills` cannot be turned on here: nothing is allowed because a skill names it")]
    AutoAllowSkills,
    #[error("{0}")]
    Entry(#[from] EntryError),
    #[error("agent `{0}`: entries of grants stand under `*`")]
    AgentGrant(String),
    #[error("the profile's policy cannot be read: {0}; put a new one with `countersign policy set`")]
    Unreadable(String),
    #[error(transparent)]
    Gate(#[from] GateError),
}

impl From<DocumentError> for Failure {
    fn from(error: DocumentError) -> Self {
        match error {
            DocumentError::Gate(error) => error.into(),
            DocumentError::NoBaseHash => Failure::invalid(error.to_string()).because("BASE_HASH_REQUIRED"),
            other => Failure::invalid(other.to_string()),
        }
    }
}

/// The document of a profile as it stands.
pub(crate) async fn read_document(admin: &AdminHandle, profile: &str) -> Result<Document, DocumentError> {
    Known::load(admin, profile).await.map(|known| known.document(profile))
}

/// Replaces it, if it is still the one the change was made to.
pub(crate) async fn write_document(
    admin: &AdminHandle,
    profile: &str,
    set: SetDocument,
) -> Result<Document, DocumentError> {
    let known = Known::load(admin, profile).await?;
    let base = set.base_hash.ok_or(DocumentError::NoBaseHash)?;
    // Whatever is no hash is not the hash of what is stored.
    let base = Digest::from_hex(&base).ok_or_else(|| GateError::from(Refused::StalePolicy(known.hash)))?;
    let (policy, revoke) = known.changed(set.file)?;
    admin.put_policy(profile, policy, base, revoke).await?;
    read_document(admin, profile).await
}

/// Everything the document is made of.
struct Known {
    policy: Policy,
    hash: Digest,
    exists: bool,
    grants: Vec<Grant>,
    uses: Vec<EntryUse>,
}

impl Known {
    async fn load(admin: &AdminHandle, profile: &str) -> Result<Self, DocumentError> {
        let stored = admin.policy(profile).await?.stored;
        let policy = stored.policy.clone().map_err(|error| DocumentError::Unreadable(error.to_string()))?;
        let grants = entries::entry_grants(admin.as_approver().grants().await?, profile);
        let uses = admin.entry_uses(profile).await?;
        Ok(Self { policy, hash: stored.hash, exists: stored.exists, grants, uses })
    }

    fn document(&self, profile: &str) -> Document {
        let Policy { security, ask, ask_fallback, .. } = self.policy;
        let defaults = Defaults {
            security: Some(security),
            ask: Some(ask),
            ask_fallback: Some(ask_fallback),
            auto_allow_skills: false,
        };
        let shown = entries::shown(&self.policy, &self.grants, &self.uses);
        let everybody = Agent { allowlist: Some(shown), ..Agent::default() };
        let named = self.policy.agents.iter().map(|(id, overlay)| {
            let Overlay { security, ask, ask_fallback, allowlist, .. } = overlay.clone();
            (id.clone(), Agent { security, ask, ask_fallback, allowlist, auto_allow_skills: None })
        });
        let agents = std::iter::once((EVERYBODY.to_owned(), everybody)).chain(named).collect();
        let socket = self.policy.socket.as_ref().map(|socket| Socket { path: socket.path.clone(), token: None });
        Document {
            path: format!("store:policy/{profile}"),
            exists: self.exists,
            hash: self.hash.to_hex(),
            file: File { version: 1, socket, defaults, agents },
            resolved_defaults: defaults,
        }
    }

    /// The policy that the document asks for, and the grants that it leaves out.
    fn changed(&self, file: File) -> Result<(Policy, Vec<countersign_model::GrantId>), DocumentError> {
        if file.version != 1 {
            return Err(DocumentError::Version(file.version));
        }
        let mut agents = file.agents;
        let everybody = agents.remove(EVERYBODY).unwrap_or_default();
        let skills =
            std::iter::once(&everybody).chain(agents.values()).any(|agent| agent.auto_allow_skills == Some(true));
        if skills || file.defaults.auto_allow_skills {
            return Err(DocumentError::AutoAllowSkills);
        }
        let sent = everybody.allowlist.unwrap_or_default();
        let changes = entries::read_back(sent, &self.grants, &self.uses)?;
        let defaults = file.defaults;
        let policy = Policy {
            // What is said of `*` goes before what is said of nobody; what is said nowhere is the default.
            security: everybody.security.or(defaults.security).unwrap_or_default(),
            ask: everybody.ask.or(defaults.ask).unwrap_or_default(),
            ask_fallback: everybody.ask_fallback.or(defaults.ask_fallback).unwrap_or_default(),
            allowlist: changes.allowlist.into_iter().map(entries::with_id).collect(),
            agents: self.overlays(agents)?,
            socket: self.socket(file.socket),
            ..self.policy.clone()
        };
        Ok((policy, changes.revoke))
    }

    fn overlays(&self, mut sent: BTreeMap<String, Agent>) -> Result<BTreeMap<String, Overlay>, DocumentError> {
        let mut overlays = BTreeMap::new();
        // What an agent is forbidden beyond the document's fields stays forbidden, also where the agent is left out.
        for (id, overlay) in &self.policy.agents {
            let hidden = Overlay { security: None, ask: None, ask_fallback: None, allowlist: None, ..overlay.clone() };
            if hidden != Overlay::default() || sent.contains_key(id) {
                overlays.insert(id.clone(), hidden);
            }
        }
        while let Some((id, agent)) = sent.pop_first() {
            let is_grants = |entry: &AllowEntry| entry.source.as_deref() == Some(entries::GRANT_SOURCE);
            if agent.allowlist.iter().flatten().any(is_grants) {
                return Err(DocumentError::AgentGrant(id));
            }
            let overlay = overlays.entry(id).or_default();
            overlay.security = agent.security;
            overlay.ask = agent.ask;
            overlay.ask_fallback = agent.ask_fallback;
            overlay.allowlist = agent.allowlist.map(|list| list.into_iter().map(entries::with_id).collect());
        }
        Ok(overlays)
    }

    /// Kept where the new document leaves it out.
    fn socket(&self, sent: Option<Socket>) -> Option<SocketEntry> {
        let before = self.policy.socket.clone().unwrap_or_default();
        let given = |text: Option<String>| text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        let (path, token) = sent.map_or((None, None), |socket| (given(socket.path), given(socket.token)));
        let after = SocketEntry {
            path: path.or(before.path),
            token_hash: token.map(|token| sha256(token.as_bytes())).or(before.token_hash),
        };
        (after != SocketEntry::default()).then_some(after)
    }
}
