//! A command that obeys files of a project: harmless in an honest one, and in another whatever its author wrote.

use crate::project::Projects;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Obeyed {
    /// Its number among the commands of the text.
    pub command: usize,
    pub projects: Projects,
}
