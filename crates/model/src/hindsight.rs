//! What an answer for longer than this once would have let through lately: to be looked at before it is given.

use countersign_shell::{Entry, Offer};

use crate::action::Action;
use crate::approval::Approval;
use crate::grant_place::GrantPlace;
use crate::mask::mask;

const MAX_EXAMPLES: usize = 3;
const MAX_EXAMPLE_CHARS: usize = 120;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hindsight {
    /// Commands under the same policy that were looked at.
    pub looked_at: usize,
    /// Those of them that the entries would have let through.
    pub covered: usize,
    /// Some of those, each once, secrets masked.
    pub examples: Vec<String>,
}

impl Hindsight {
    /// `recent`: newest first. Nothing where no entry can be made.
    pub fn of<'a>(approval: &Approval, recent: impl IntoIterator<Item = &'a Approval>) -> Self {
        let Some(Offer::Entries { patterns, .. }) = approval.offer() else { return Self::default() };
        let entries: Vec<Entry> = patterns.iter().filter_map(|pattern| Entry::parse(pattern)).collect();
        let place = GrantPlace::of(&approval.request);
        let mut seen = Self::default();
        for other in recent {
            let request = &other.request;
            let (Action::Exec(exec), Some(assessment)) = (&request.action, &request.assessment) else { continue };
            if other.id == approval.id || request.requester.profile != approval.request.requester.profile {
                continue;
            }
            seen.looked_at += 1;
            let there = place.as_ref().is_none_or(|place| place.holds_for(request));
            if !there || !assessment.covered_by(entries.iter(), approval.terms.allow_safe, request.binding()) {
                continue;
            }
            seen.covered += 1;
            let example: String = mask(&exec.command).text.chars().take(MAX_EXAMPLE_CHARS).collect();
            if seen.examples.len() < MAX_EXAMPLES && !seen.examples.contains(&example) {
                seen.examples.push(example);
            }
        }
        seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::approval::Terms;
    use crate::canonical::sha256;
    use crate::id::ApprovalId;
    use crate::request::tests::{exec, request, tool};
    use crate::ruling::Fallback;
    use crate::time::Timestamp;
    use std::sync::Arc;

    fn asked(number: u8, action: Action) -> Arc<Approval> {
        Arc::new(Approval {
            id: ApprovalId::from_random([number; 16]),
            request: Arc::new(request(action)),
            terms: Terms {
                created_at: Timestamp::from_millis(1),
                expires_at: Timestamp::from_millis(2),
                policy_hash: sha256(b""),
                fallback: Fallback::Deny,
                allow_safe: true,
                trusted: false,
                approvers: None,
                prior: None,
            },
            outcome: None,
            consumed_at: None,
            told: false,
            run: None,
        })
    }

    #[test]
    fn it_is_what_the_entry_would_have_covered_and_nothing_else() {
        let this = asked(1, exec("npm ci"));
        let recent = [
            this.clone(),
            asked(2, exec("npm ci && git status")),
            asked(3, exec("npm ci")),
            asked(4, exec("npm ci")),
            asked(5, exec("npm ci; npm publish")),
            asked(6, exec("git status")),
            asked(7, tool("npm", "exec")),
        ];
        let seen = Hindsight::of(&this, recent.iter().map(|approval| &**approval));
        assert_eq!((seen.looked_at, seen.covered), (5, 3));
        assert_eq!(seen.examples, ["npm ci && git status", "npm ci"]);
    }

    #[test]
    fn where_no_entry_can_be_made_there_is_nothing_to_look_at() {
        let this = asked(1, exec("rm -rf /"));
        assert_eq!(
            Hindsight::of(&this, [asked(2, exec("rm -rf /"))].iter().map(|approval: &Arc<Approval>| &**approval)),
            Hindsight::default()
        );
    }
}
