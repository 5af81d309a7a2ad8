//! Where a grant for commands holds: a yes was given to a command in a folder, with the project files it would run and
//! the environment it would have there. Elsewhere the same words are another command.

use std::path::{Component, Path};

use serde::{Deserialize, Serialize};

use crate::action::{Action, Exec};
use crate::binding::BoundFile;
use crate::canonical::{Digest, sha256};
use crate::request::Request;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantPlace {
    /// It holds in all of this folder, for just the files below.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// The folders that the command may run in; none where the requester did not say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub folders: Vec<String>,
    /// Somebody looked at the files that the command would run: just these, as they were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<Vec<BoundFile>>,
    /// Of the variables that are not known to change nothing.
    pub environment: Digest,
}

impl GrantPlace {
    /// Where a command was asked for. Nothing for what is no command.
    pub fn of(request: &Request) -> Option<Self> {
        let Action::Exec(exec) = &request.action else { return None };
        let binding = exec.binding.as_deref();
        Some(Self {
            workspace: request
                .workspace()
                .filter(|workspace| binding.is_some() && request.stays_in(workspace))
                .map(str::to_owned),
            folders: request
                .assessment
                .as_ref()
                .map(|assessment| assessment.record.folders.clone())
                .unwrap_or_default(),
            files: binding.map(|binding| binding.scripts.clone()),
            environment: environment(exec, request),
        })
    }

    /// Whether that request is for the same place.
    pub fn holds_for(&self, request: &Request) -> bool {
        let (Some(now), Some(assessment)) = (Self::of(request), &request.assessment) else { return false };
        if assessment.record.anywhere || !self.environment.ct_eq(&now.environment) {
            return false;
        }
        let same_folder = match &self.workspace {
            Some(workspace) => request.stays_in(workspace),
            None => {
                now.folders.iter().all(|folder| self.folders.contains(folder))
                    && self.folders.is_empty() == now.folders.is_empty()
            }
        };
        let same_files = match (&self.files, &now.files) {
            (None, None) => true,
            (Some(before), Some(now)) => now.iter().all(|file| before.iter().any(|old| is_same(old, file))),
            (Some(_), None) | (None, Some(_)) => false,
        };
        same_folder && same_files
    }

    /// For a person, after "from now on".
    pub fn words(&self) -> String {
        let place = match (&self.workspace, self.folders.as_slice()) {
            (Some(workspace), _) => format!("inside `{workspace}`"),
            (None, []) => "where no folder is named".to_owned(),
            (None, [only]) => format!("in `{only}`"),
            (None, several) => {
                format!("in {}", several.iter().map(|folder| format!("`{folder}`")).collect::<Vec<_>>().join(" and "))
            }
        };
        let files = match self.files.as_deref() {
            None => "whatever the files there hold by then: they were not looked at".to_owned(),
            Some([]) => "whatever project files it reads hold by then".to_owned(),
            Some(files) => {
                let names: Vec<String> = files.iter().map(|file| format!("`{}`", file.path)).collect();
                format!("while {} stays as it is (what that includes is not looked at)", names.join(" and "))
            }
        };
        format!("{place}, {files}, with the same variables")
    }
}

fn is_same(before: &BoundFile, now: &BoundFile) -> bool {
    before.path == now.path
        && match (&before.digest, &now.digest) {
            (Some(before), Some(now)) => before.ct_eq(now),
            (None, None) => before.id == now.id,
            (Some(_), None) | (None, Some(_)) => false,
        }
}

/// Everything that is set for the command: by the request, in its text, and by whoever runs it.
fn environment(exec: &Exec, request: &Request) -> Digest {
    let mut bytes = Vec::new();
    let mut add = |kind: u8, text: &str| {
        bytes.push(kind);
        bytes.extend_from_slice(text.as_bytes());
        bytes.push(0);
    };
    for (name, value) in exec.env.iter().filter(|(name, _)| !countersign_shell::is_ordinary_variable(name)) {
        add(b'r', &format!("{name}={value}"));
    }
    for text in request.assessment.iter().flat_map(|assessment| &assessment.record.assignments) {
        add(b't', text);
    }
    if let Some(digest) = exec.binding.as_ref().and_then(|binding| binding.steering) {
        add(b'i', &digest.to_hex());
    }
    sha256(&bytes)
}

/// Whether a folder lies in another by its text, which has no links in it where somebody looked.
pub(crate) fn lies_in(folder: &str, outer: &str) -> bool {
    let (folder, outer) = (Path::new(folder), Path::new(outer));
    let plain = |path: &Path| path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    folder.is_absolute() && outer.is_absolute() && plain(folder) && plain(outer) && folder.starts_with(outer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_lies_in_another_by_whole_steps() {
        for (folder, outer) in [("/w", "/w"), ("/w/a", "/w"), ("/w/a/", "/w/"), ("/w//a/./b", "/w/a")] {
            assert!(lies_in(folder, outer), "{folder} {outer}");
        }
        for (folder, outer) in [("/wa", "/w"), ("/w/../x", "/w"), ("w", "w"), ("~/w", "/"), ("/", "/w"), ("", "/")] {
            assert!(!lies_in(folder, outer), "{folder} {outer}");
        }
    }
}
