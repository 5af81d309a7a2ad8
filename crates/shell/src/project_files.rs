//! The files that programs obey in a project, and which of them are harmless: `rules/projects.toml`, compiled. Looking
//! at files is not done here.

use crate::project::Project;

/// A file or folder that a program of this project obeys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProjectFile {
    /// From the folder that it is looked for in; the last part may hold `*`.
    pub path: &'static str,
    pub search: Search,
    pub harmless: Harmless,
}

/// Where a program looks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Search {
    /// In the folder it runs in.
    Here,
    /// In the folder it runs in and every one above it.
    Upwards,
}

/// When it makes the program run nothing of the project's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Harmless {
    /// Whatever it holds.
    Always,
    /// Only where it is not there.
    Absent,
    /// As text, where it holds none of these, in any case, and no backslash, by which they could be spelled otherwise.
    Without(&'static [&'static str]),
    /// Where every line is empty, a comment, or names and plain versions.
    PlainVersions,
    /// Git's own format and folders.
    GitRepository,
    /// Rustup's own format: a toolchain that is installed.
    InstalledToolchain,
}

impl Project {
    pub fn files(self) -> &'static [ProjectFile] {
        FILES.iter().find(|(project, _)| *project == self).map_or(&[], |(_, files)| files)
    }

    /// Names of variables, or their beginnings before a `*`, that such a program obeys as it obeys these files.
    pub fn variables(self) -> &'static [&'static str] {
        VARIABLES.iter().find(|(project, _)| *project == self).map_or(&[], |(_, names)| names)
    }
}

include!(concat!(env!("OUT_DIR"), "/projects.rs"));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_project_has_files() {
        for project in Project::ALL {
            assert!(!project.files().is_empty(), "{project:?}");
        }
    }
}
