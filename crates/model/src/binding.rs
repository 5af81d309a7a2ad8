//! What a command would find on the machine where it runs, as it was when it was asked. It is part of the action, so the
//! digest that a person says yes to covers it.

use serde::{Deserialize, Serialize};

use crate::canonical::Digest;

/// Longer lists are nothing that a person could be shown.
const MAX_FILES: usize = 256;
const MAX_TEXT: usize = 4096;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Binding {
    /// The working directory, without links.
    pub folder: BoundFile,
    /// The folder that the work belongs to; the working directory is inside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// What shell text is given to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shell: Option<BoundFile>,
    /// Each program word with the file that it starts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<BoundProgram>,
    /// Files that are given to a program to run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scripts: Vec<BoundFile>,
    /// What files of a project, or where programs are found, could make the command do, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub helpers: Vec<String>,
    /// Files that names in the command lead to through links, absolute.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<String>,
    /// Of the inherited environment, names and values.
    pub environment: Digest,
    /// Of those inherited variables that are not known to change nothing: what a lasting yes is compared by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steering: Option<Digest>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BoundFile {
    /// Absolute, without links.
    pub path: String,
    /// Which file it is: device, inode, and for anything but a folder when it last changed.
    pub id: String,
    /// Of its contents, where somebody who is not the system's owner could change them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    /// Whether the very file that was looked at is what runs, whatever its name points to by then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pinned: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoundProgram {
    /// As the command has it.
    pub word: String,
    #[serde(flatten)]
    pub file: BoundFile,
}

impl Binding {
    /// The file that a program word starts.
    pub fn file_of(&self, word: &str) -> Option<&str> {
        self.programs.iter().find(|program| program.word == word).map(|program| program.file.path.as_str())
    }

    /// Whether it can be shown whole.
    pub(crate) fn is_showable(&self) -> bool {
        let programs = self.programs.iter().flat_map(|program| [&program.word, &program.file.path, &program.file.id]);
        let files = self.scripts.iter().chain(&self.shell).chain([&self.folder]);
        let texts = files.flat_map(|file| [&file.path, &file.id]).chain(programs);
        let fits = |text: &String| text.len() <= MAX_TEXT && !text.contains('\0');
        [self.programs.len(), self.scripts.len(), self.helpers.len(), self.links.len()]
            .into_iter()
            .all(|count| count <= MAX_FILES)
            && texts.chain(&self.helpers).chain(&self.links).chain(&self.workspace).all(fits)
    }
}
