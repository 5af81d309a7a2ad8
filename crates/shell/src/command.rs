//! One simple command that the text would start, with everything around it that matters to a judge.

use std::rc::Rc;
use std::sync::Arc;

use crate::word::{Span, Word};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Simple {
    pub span: Span,
    pub assignments: Vec<Assignment>,
    /// Empty for bare assignments and redirections. The program is the first word.
    pub argv: Vec<Word>,
    pub redirects: Vec<Redirect>,
    /// Through which wrappers and carriers this command is reached, outermost first: `sudo`, `env`, `xargs`,
    /// `sh -c`, `find -exec`. A wrapper itself is a `Simple` of its own, with its own argv.
    pub via: Vec<Via>,
    pub stdin: Stdin,
    pub place: Place,
    pub runs_in: RunsIn,
    /// More arguments come at run time (`xargs`, `find … {} +`, `parallel`).
    pub more_arguments: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    pub span: Span,
    pub name: String,
    /// `None` for arrays and other values that are no single word.
    pub value: Option<Word>,
}

/// How an inner command is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Via {
    /// The wrapper's own name, such as `sudo`.
    pub program: String,
    /// Runs it with other rights.
    pub privileged: bool,
    /// Runs it on another machine or in a container.
    pub elsewhere: bool,
    /// The inner text was given as code (`sh -c`, `eval`), not as words.
    pub code: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirect {
    pub span: Span,
    pub kind: RedirectKind,
    pub target: Target,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedirectKind {
    Read,
    Write,
    Append,
    /// `<>`
    ReadWrite,
    /// `>&1`, `2>&-`, `<&3`
    Duplicate,
    HereDoc,
    HereString,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    File(Word),
    /// Another descriptor, or closing.
    Descriptor,
    Here(HereDoc),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HereDoc {
    /// `None` when it depends on run time. Every command inside what it is given to reads it, so it is kept once.
    pub text: Option<Arc<str>>,
}

/// What a command reads from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stdin {
    Inherited,
    /// A pipe from these programs (the last command of the stage before, and what it was fed by).
    Pipe(Vec<String>),
    File,
    Here(HereDoc),
}

/// The folders a command may run in. Where the text does not start in a known folder, it may run there, too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunsIn {
    /// Absolute where the start is known, or from a home (`~/x`, `$HOME/x`); else from the start.
    pub folders: Vec<Rc<str>>,
    /// It may run anywhere else as well.
    pub unknown: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    pub background: bool,
    /// Inside `$(…)`, backticks, `<(…)`, or an expansion that runs commands.
    pub substitution: bool,
    pub subshell: bool,
    /// Inside a function body, a trap or an alias: runs when called.
    pub deferred: bool,
    pub repeated: bool,
    /// What it prints goes to another command, so no program opens a pager.
    pub captured: bool,
}
