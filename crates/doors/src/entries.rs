//! Allowlist entries as the hub's and the gateway's documents show them: those of policy, and beside them those that
//! answers made, which end when they are taken out of the document.

use countersign_gate::EntryUse;
use countersign_model::{AllowEntry, Entry, Grant, GrantId, GrantKind, Policy, sha256};
use thiserror::Error;

/// Says that an entry is a grant's.
pub(crate) const GRANT_SOURCE: &str = "grant";

#[derive(Debug, Error, PartialEq, Eq)]
pub(crate) enum EntryError {
    #[error("entry `{0}` says that a grant made it, but its `id` is none; leave `source` out to make an entry of it")]
    NoGrant(String),
    #[error("entry `{0}` is a grant's and cannot be changed; remove it, and add the one you want without `source`")]
    Changed(String),
}

/// What a document's entries come to.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Changes {
    pub(crate) allowlist: Vec<AllowEntry>,
    /// Grants that are no longer in it.
    pub(crate) revoke: Vec<GrantId>,
}

/// The grants of a profile that are entries for commands.
pub(crate) fn entry_grants(grants: Vec<Grant>, profile: &str) -> Vec<Grant> {
    let ours = |grant: &Grant| grant.scope.profile == profile && matches!(grant.kind, GrantKind::Command { .. });
    grants.into_iter().filter(ours).collect()
}

/// Policy's entries, then those of grants, each with its last use. `grants`: see [`entry_grants`].
pub(crate) fn shown(policy: &Policy, grants: &[Grant], uses: &[EntryUse]) -> Vec<AllowEntry> {
    let granted = grants.iter().flat_map(|grant| {
        numbered(grant).map(|(id, entry)| AllowEntry {
            id: Some(id),
            source: Some(GRANT_SOURCE.to_owned()),
            ..plain(entry.clone())
        })
    });
    policy.allowlist.iter().cloned().chain(granted).map(|entry| with_use(entry, uses)).collect()
}

/// The other way: what a document that was shown and perhaps edited asks for.
pub(crate) fn read_back(sent: Vec<AllowEntry>, grants: &[Grant], uses: &[EntryUse]) -> Result<Changes, EntryError> {
    let mut changes = Changes::default();
    let mut kept: Vec<String> = Vec::new();
    for entry in sent {
        if entry.source.as_deref() != Some(GRANT_SOURCE) {
            changes.allowlist.push(without_use(entry, uses));
            continue;
        }
        let pattern = entry.pattern.pattern.clone();
        let id = entry.id.filter(|id| grant_of(id).is_some()).ok_or_else(|| EntryError::NoGrant(pattern.clone()))?;
        // One that has ended meanwhile is simply no longer there.
        let mut all = grants.iter().flat_map(numbered);
        if let Some((_, known)) = all.find(|(known, _)| *known == id) {
            if *known != entry.pattern {
                return Err(EntryError::Changed(pattern));
            }
            kept.push(id);
        }
    }
    let is_gone = |grant: &&Grant| numbered(grant).any(|(id, _)| !kept.contains(&id));
    changes.revoke = grants.iter().filter(is_gone).map(|grant| grant.id).collect();
    Ok(changes)
}

/// Every entry gets a name, the same one each time it is written without.
pub(crate) fn with_id(entry: AllowEntry) -> AllowEntry {
    let named = entry.id.clone().filter(|id| !id.is_empty());
    let made = || format!("entry_{}", sha256(entry.pattern.pattern.as_bytes()).to_hex().get(..16).unwrap_or_default());
    AllowEntry { id: Some(named.unwrap_or_else(made)), ..entry }
}

/// A grant may have several entries; the first has the grant's own id.
fn numbered(grant: &Grant) -> impl Iterator<Item = (String, &Entry)> {
    let entries = match &grant.kind {
        GrantKind::Command { entries } => entries.as_slice(),
        GrantKind::ActionType { .. } | GrantKind::Tool { .. } | GrantKind::Exact { .. } => &[],
    };
    entries.iter().enumerate().map(|(place, entry)| match place {
        0 => (grant.id.to_string(), entry),
        place => (format!("{}#{}", grant.id, place + 1), entry),
    })
}

fn grant_of(id: &str) -> Option<GrantId> {
    id.split('#').next()?.parse().ok()
}

fn plain(pattern: Entry) -> AllowEntry {
    AllowEntry {
        id: None,
        pattern,
        arg_pattern: None,
        source: None,
        last_used_at: None,
        last_used_command: None,
        last_resolved_path: None,
    }
}

fn use_of<'u>(entry: &AllowEntry, uses: &'u [EntryUse]) -> Option<&'u EntryUse> {
    uses.iter().find(|entry_use| entry_use.pattern == entry.pattern.pattern)
}

fn with_use(entry: AllowEntry, uses: &[EntryUse]) -> AllowEntry {
    match use_of(&entry, uses) {
        Some(EntryUse { at, command, .. }) => {
            AllowEntry { last_used_at: Some(at.as_millis()), last_used_command: Some(command.clone()), ..entry }
        }
        None => entry,
    }
}

/// What the gate itself counts is not part of the document.
fn without_use(entry: AllowEntry, uses: &[EntryUse]) -> AllowEntry {
    match use_of(&entry, uses) {
        Some(_) => AllowEntry { last_used_at: None, last_used_command: None, ..entry },
        None => entry,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use countersign_model::{ApprovalId, ClientId, KeyId, Scope, Timestamp};

    fn grant(number: u8, patterns: &[&str]) -> Grant {
        Grant {
            id: GrantId::from_random([number; 16]),
            kind: GrantKind::Command { entries: patterns.iter().map(|text| Entry::parse(text).unwrap()).collect() },
            scope: Scope {
                client: KeyId::from_random([1; 16]),
                client_id: ClientId::new("c"),
                profile: "default".into(),
                session: None,
            },
            place: None,
            created_at: Timestamp::from_millis(1),
            created_by: "ann".into(),
            approval_id: ApprovalId::from_random([2; 16]),
            expires_at: None,
            revoked_at: None,
        }
    }

    fn policy() -> Policy {
        Policy::parse(r#"{"version":1,"allowlist":[{"pattern":"git **"}]}"#).unwrap()
    }

    fn uses() -> Vec<EntryUse> {
        let (profile, pattern, command) = ("default".into(), "git **".into(), "git log".into());
        vec![EntryUse { profile, pattern, at: Timestamp::from_millis(7), command }]
    }

    #[test]
    fn what_was_shown_and_sent_back_changes_nothing() {
        let grants = [grant(1, &["npm ci", "npm test"]), grant(2, &["make"])];
        let shown = shown(&policy(), &grants, &uses());
        assert_eq!(shown.len(), 4);
        assert_eq!((shown[0].last_used_at, shown[0].last_used_command.as_deref()), (Some(7), Some("git log")));
        assert!(shown[1..].iter().all(|entry| entry.source.as_deref() == Some("grant")));
        let changes = read_back(shown, &grants, &uses()).unwrap();
        assert_eq!(changes, Changes { allowlist: policy().allowlist, revoke: vec![] });
    }

    #[test]
    fn a_grant_that_is_taken_out_ends_also_by_one_of_its_entries() {
        let grants = [grant(1, &["npm ci", "npm test"]), grant(2, &["make"])];
        let mut sent = shown(&policy(), &grants, &[]);
        sent.remove(2);
        assert_eq!(read_back(sent, &grants, &[]).unwrap().revoke, [grants[0].id]);
        assert_eq!(read_back(Vec::new(), &grants, &[]).unwrap().revoke, [grants[0].id, grants[1].id]);
    }

    #[test]
    fn a_grants_entry_can_neither_be_made_up_nor_widened() {
        let grants = [grant(1, &["npm ci"])];
        let mut sent = shown(&policy(), &grants, &[]);
        sent[1].pattern = Entry::parse("npm **").unwrap();
        assert_eq!(read_back(sent.clone(), &grants, &[]), Err(EntryError::Changed("npm **".into())));
        sent[1].id = Some("mine".into());
        assert_eq!(read_back(sent.clone(), &grants, &[]), Err(EntryError::NoGrant("npm **".into())));
        sent[1].id = Some(GrantId::from_random([9; 16]).to_string());
        let changes = read_back(sent, &grants, &[]).unwrap();
        assert_eq!(changes.allowlist, policy().allowlist);
    }
}
