//! Which id of a request is shown: the requester's own name for it only where nobody else ever used that name.

use std::collections::HashSet;

use countersign_model::Approval;

use crate::gate::Gate;

/// The names that may not be shown as ids.
#[derive(Clone, Debug)]
pub struct ShownIds(Option<HashSet<String>>);

impl ShownIds {
    /// The id to show. Where it is not known whether a name is anybody else's too, it is not shown.
    pub fn of(&self, approval: &Approval) -> String {
        let alone = |alias: &&String| self.0.as_ref().is_some_and(|shared| !shared.contains(*alias));
        approval.request.alias.as_ref().filter(alone).cloned().unwrap_or_else(|| approval.id.to_string())
    }
}

impl Gate {
    /// The ids to show of these requests.
    pub async fn shown_ids(&self, approvals: impl IntoIterator<Item = &Approval>) -> ShownIds {
        let aliases: Vec<String> =
            approvals.into_iter().filter_map(|approval| approval.request.alias.clone()).collect();
        if aliases.is_empty() {
            return ShownIds(Some(HashSet::new()));
        }
        match self.0.ledger.shared_names(aliases).await {
            Ok(shared) => ShownIds(Some(shared)),
            Err(error) => {
                tracing::warn!(%error, "which names are shared cannot be read; whole ids are shown");
                ShownIds(None)
            }
        }
    }
}
