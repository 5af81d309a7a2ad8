//! Profiles as files: `agent-profiles/{profile}/config.json` in the data folder. The store is the truth; a file is
//! written after each change of it, and an edit of the file is taken into it.

mod document;
mod file;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use countersign_gate::{Committed, Feed, Gate, GateError, Refused};
use countersign_model::{Digest, EventBody, Policy, sha256};
use tokio::time::{Instant, MissedTickBehavior};

use self::document::ExecApproval;
use self::file::{Content, Mark, ProfileFile, Stamp};
use crate::entries;

/// How often files are looked at, and how often the uses of entries are written at most.
const TICK: Duration = Duration::from_secs(1);
/// Grants also end by their time, and nothing says so.
const REFRESH: Duration = Duration::from_secs(60);
/// A change is written at once, unless one just was: then with the next tick.
const PAUSE: Duration = Duration::from_millis(200);

/// Keeps the files of this folder and the gate's policies the same, until the gate closes.
pub fn start(gate: Gate, root: PathBuf) {
    let feed = gate.feed_from_now();
    let profiles = Profiles { gate, root, known: BTreeMap::new(), dirty: BTreeSet::new() };
    tokio::spawn(profiles.run(feed));
}

struct Profiles {
    gate: Gate,
    root: PathBuf,
    known: BTreeMap<String, Known>,
    /// Profiles whose file may be behind the store.
    dirty: BTreeSet<String>,
}

/// What is known of a profile's file.
#[derive(Debug, Default)]
struct Known {
    stamp: Option<Stamp>,
    mark: Option<Mark>,
    /// An edit that cannot be taken over, and whether that was said. It is neither used nor written over.
    refused: Option<(Digest, bool)>,
}

/// Why an edit is not taken over now.
enum NotTaken {
    /// Not before it is edited again.
    Refused(String),
    /// The gate could not; it is tried again.
    Later(GateError),
}

impl Profiles {
    async fn run(mut self, mut feed: Feed) {
        if let Err(error) = self.find_profiles().await {
            tracing::warn!(%error, "the profiles cannot be listed; their files are written as they change");
        }
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut refreshed, mut synced) = (Instant::now(), Instant::now());
        while !self.gate.is_closing() {
            tokio::select! {
                events = feed.next() => match events {
                    Ok(events) => {
                        let now = events.iter().filter(|committed| self.on_event(committed)).count() > 0;
                        if !now || synced.elapsed() < PAUSE {
                            continue;
                        }
                    }
                    Err(countersign_gate::StoreError::Closed) => return,
                    Err(_) => {
                        tick.tick().await;
                        continue;
                    }
                },
                _ = tick.tick() => {
                    self.look_for_folders();
                    if refreshed.elapsed() >= REFRESH {
                        refreshed = Instant::now();
                        self.dirty.extend(self.known.keys().cloned());
                    }
                }
            }
            self.sync_all().await;
            synced = Instant::now();
        }
    }

    async fn find_profiles(&mut self) -> Result<(), GateError> {
        self.add("default");
        for key in self.gate.owner().keys().await? {
            self.add(&key.profile);
        }
        self.look_for_folders();
        Ok(())
    }

    fn look_for_folders(&mut self) {
        for profile in file::folders(&self.root) {
            self.add(&profile);
        }
    }

    fn add(&mut self, profile: &str) {
        // Folders of other names are somebody else's.
        if is_profile_name(profile) && !self.known.contains_key(profile) {
            let mark = ProfileFile::new(&self.root, profile).mark();
            self.known.insert(profile.to_owned(), Known { mark, ..Known::default() });
            self.dirty.insert(profile.to_owned());
        }
    }

    /// Notes what it changes in the files. Whether that is to be written at once; uses wait for the tick.
    fn on_event(&mut self, committed: &Committed) -> bool {
        match &committed.event.body {
            EventBody::PolicyPut { profile, .. } | EventBody::KeyMade { profile, .. } => {
                self.add(profile);
                self.dirty.insert(profile.clone());
                true
            }
            EventBody::GrantMade { .. } | EventBody::GrantRevoked { .. } => {
                self.dirty.extend(self.known.keys().cloned());
                true
            }
            EventBody::Ruled { .. } | EventBody::Resolved { .. } => {
                let profile = committed.approval.as_ref().map(|approval| &approval.request.requester.profile);
                self.dirty.extend(profile.filter(|profile| self.known.contains_key(*profile)).cloned());
                false
            }
            EventBody::Requested { .. }
            | EventBody::Consumed { .. }
            | EventBody::WrongNumber { .. }
            | EventBody::StopAsked { .. }
            | EventBody::Ran { .. }
            | EventBody::KeyRevoked { .. }
            | EventBody::NodeBound { .. }
            | EventBody::Trusted { .. }
            | EventBody::Untrusted { .. }
            | EventBody::Swept { .. } => false,
        }
    }

    async fn sync_all(&mut self) {
        let dirty = std::mem::take(&mut self.dirty);
        for (profile, known) in &mut self.known {
            let file = ProfileFile::new(&self.root, profile);
            let stamp = blocking(&file, ProfileFile::stamp).await;
            let is_touched = !matches!(&stamp, Ok(stamp) if *stamp == known.stamp);
            if !is_touched && !dirty.contains(profile) {
                continue;
            }
            if let Err(error) = sync(&self.gate, profile, &file, known).await {
                tracing::warn!(%error, profile, path = %file.path().display(), "a profile's file is not up to date");
                self.dirty.insert(profile.clone());
            }
        }
    }
}

/// Takes an edit over, then writes what the store has by now.
async fn sync(gate: &Gate, profile: &str, file: &ProfileFile, known: &mut Known) -> Result<(), GateError> {
    let content = match blocking(file, ProfileFile::read).await {
        Ok(content) => content,
        Err(error) => {
            refuse(known, sha256(error.to_string().as_bytes()), file, &error.to_string());
            return Ok(());
        }
    };
    if let Some(content) = &content
        && known.mark.as_ref().is_none_or(|mark| mark.hash != content.hash)
    {
        match take_over(gate, profile, content, known).await {
            Ok(()) => known.refused = None,
            Err(NotTaken::Refused(why)) => {
                if refuse(known, content.hash, file, &why) {
                    known.stamp = Some(content.stamp);
                }
                return Ok(());
            }
            Err(NotTaken::Later(error)) => return Err(error),
        }
    }
    export(gate, profile, file, content, known).await
}

/// Said once for each edit, and only when it is still there a moment later: an editor may be in the middle of it.
/// Whether it was.
fn refuse(known: &mut Known, hash: Digest, file: &ProfileFile, why: &str) -> bool {
    match &mut known.refused {
        Some((seen, said)) if *seen == hash => {
            if !*said {
                tracing::error!(path = %file.path().display(), "not used, the policy from before stays: {why}");
                *said = true;
            }
            true
        }
        refused => {
            *refused = Some((hash, false));
            false
        }
    }
}

async fn take_over(gate: &Gate, profile: &str, content: &Content, known: &Known) -> Result<(), NotTaken> {
    let view = document::read(&content.text).map_err(|error| NotTaken::Refused(error.to_string()))?;
    // Without the key it says nothing: it gets the store's.
    let Some(view) = view else { return Ok(()) };
    let admin = gate.owner();
    let stored = admin.policy(profile).await.map_err(not_taken)?.stored;
    let policy = stored.policy.clone().map_err(|error| NotTaken::Refused(error.to_string()))?;
    let grants = admin.as_approver().grants().await.map_err(NotTaken::Later)?;
    let grants = entries::entry_grants(grants, profile);
    let uses = admin.entry_uses(profile).await.map_err(NotTaken::Later)?;
    let was_shown = known.mark.as_ref().map(|mark| mark.grants.as_slice()).unwrap_or_default();
    let wanted =
        view.wanted(&policy, &grants, &uses, was_shown).map_err(|error| NotTaken::Refused(error.to_string()))?;
    if wanted.policy.is_none() && wanted.revoke.is_empty() {
        return Ok(());
    }
    let changed = wanted.policy.unwrap_or(policy);
    admin.put_policy(profile, changed, stored.hash, wanted.revoke).await.map_err(not_taken)?;
    tracing::info!(profile, "the policy was changed in its file");
    Ok(())
}

fn not_taken(error: GateError) -> NotTaken {
    match error {
        GateError::Store(_) | GateError::Random(_) | GateError::Refused(Refused::StalePolicy(_)) => {
            NotTaken::Later(error)
        }
        GateError::Unauthenticated
        | GateError::Request(_)
        | GateError::ChannelNotConfigured(_)
        | GateError::UnknownTarget(_)
        | GateError::Policy(_)
        | GateError::OutOfRange { .. }
        | GateError::Refused(_) => NotTaken::Refused(error.to_string()),
    }
}

async fn export(
    gate: &Gate,
    profile: &str,
    file: &ProfileFile,
    content: Option<Content>,
    known: &mut Known,
) -> Result<(), GateError> {
    let admin = gate.owner();
    let stored = admin.policy(profile).await?.stored;
    // One that cannot be read rules Deny; there is nothing to show of it.
    let Ok(policy): &Result<Policy, _> = &stored.policy else { return Ok(()) };
    let grants = entries::entry_grants(admin.as_approver().grants().await?, profile);
    let uses = admin.entry_uses(profile).await?;
    let view = ExecApproval::of(policy, &grants, &uses);
    let is_same = |content: &Content| document::read(&content.text).is_ok_and(|there| there.as_ref() == Some(&view));
    let mut found = content.as_ref().map(|content| (content.hash, content.stamp));
    if !content.as_ref().is_some_and(is_same) {
        let text = match document::write(content.as_ref().map(|content| content.text.as_str()), &view) {
            Ok(text) => text,
            Err(error) => {
                tracing::warn!(%error, profile, "the file cannot be written");
                return Ok(());
            }
        };
        let hash = sha256(text.as_bytes());
        match blocking(file, move |file| file.write(&text, content.as_ref())).await {
            Ok(Some(stamp)) => found = Some((hash, stamp)),
            // Edited in this moment: it is looked at again.
            Ok(None) => return Ok(()),
            Err(error) => {
                tracing::warn!(%error, path = %file.path().display(), "the file cannot be written");
                return Ok(());
            }
        }
    }
    let Some((hash, stamp)) = found else { return Ok(()) };
    known.stamp = Some(stamp);
    let mark = Mark { hash, grants: grants.iter().map(|grant| grant.id).collect() };
    if known.mark.as_ref() != Some(&mark) {
        let put = mark.clone();
        if let Err(error) = blocking(file, move |file| file.put_mark(&put)).await {
            tracing::warn!(%error, path = %file.path().display(), "what was written cannot be noted");
        }
        known.mark = Some(mark);
    }
    Ok(())
}

/// Files may be slow: nobody waits for them who serves a connection.
async fn blocking<T: Send + 'static>(
    file: &ProfileFile,
    work: impl FnOnce(&ProfileFile) -> std::io::Result<T> + Send + 'static,
) -> std::io::Result<T> {
    let file = file.clone();
    match tokio::task::spawn_blocking(move || work(&file)).await {
        Ok(done) => done,
        Err(error) => Err(std::io::Error::other(error)),
    }
}

/// What the gate takes for a profile's name; as a folder's it stays below its root.
fn is_profile_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '@' | ':');
    name.starts_with(|first: char| first.is_ascii_alphanumeric()) && name.len() <= 64 && name.chars().all(plain)
}

/// Where the profiles of a data folder are.
pub fn folder_in(data: &Path) -> PathBuf {
    data.join("agent-profiles")
}
