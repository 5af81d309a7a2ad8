//! Starts a stored action, after looking again at everything it was bound to. Nothing that the caller says now counts:
//! words, directory, environment and shell are those that were approved.

use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio as StdStdio};

use countersign_model::{Binding, Exec};
use rustix::process::Pid;
use thiserror::Error;

use crate::bind::{BindError, Bound, Spec, What, bind_in};
use crate::change::{Change, changes};
use crate::environment::Inherited;
use crate::folder::Folder;
use crate::running::Running;
use crate::strays::Starting;

/// Where a command's streams go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stdio {
    /// It has this process's own, and its terminal while it runs.
    Inherit,
    /// It reads nothing; what it writes is kept and passed on.
    Capture,
}

#[derive(Debug, Error)]
pub enum StartError {
    #[error(
        "the action says nothing of what it was bound to; ask for it again through this machine's `countersign run`"
    )]
    Unbound,
    #[error("changed since approval: {}; ask again to approve it as it is now", listed(.0))]
    Changed(Vec<Change>),
    #[error(transparent)]
    Bind(BindError),
    #[error("`{program}` could not be started: {error}; check that this user may run it")]
    Spawn { program: String, error: std::io::Error },
}

fn listed(changes: &[Change]) -> String {
    changes.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// Runs the action as it is stored, or says what is no longer as it was.
pub fn start(exec: &Exec, inherited: &Inherited, stdio: Stdio) -> Result<Running, StartError> {
    let approved = exec.binding.as_deref().ok_or(StartError::Unbound)?;
    let bound = rebind(exec, approved, inherited).map_err(|error| as_change(error, approved))?;
    let changed = changes(approved, &bound.binding);
    if !changed.is_empty() {
        return Err(StartError::Changed(changed));
    }
    let mut command = command(exec, &bound);
    command
        .env_clear()
        .envs(bound.environment.with(&exec.env, &bound.folder.path))
        .current_dir(bound.folder.held())
        .process_group(0);
    if stdio == Stdio::Capture {
        command.stdin(StdStdio::null()).stdout(StdStdio::piped()).stderr(StdStdio::piped());
    }
    let starting = Starting::begin();
    // INVARIANT: `bound` lives until after this, so the descriptors in the command's paths are those looked at.
    let spawned = command.spawn();
    let program = || exec.argv.as_ref().and_then(|words| words.first()).unwrap_or(&exec.command).clone();
    let child = spawned.map_err(|error| StartError::Spawn { program: program(), error })?;
    let family = starting.done(Pid::from_child(&child));
    let recheck = Recheck { exec: exec.clone(), inherited: inherited.clone() };
    Running::new(child, family, stdio, recheck).map_err(|error| StartError::Spawn { program: program(), error })
}

/// The system opens the very file that was looked at. A script cannot be started that way: its interpreter would find
/// the descriptor closed.
fn command(exec: &Exec, bound: &Bound) -> Command {
    let held = PathBuf::from(format!("/proc/self/fd/{}", bound.main.file.as_raw_fd()));
    match (&exec.argv, &bound.main.by_name) {
        (Some(words), Some(name)) => {
            let mut command = Command::new(name);
            command.args(words.iter().skip(1));
            command
        }
        (Some(words), None) => {
            let mut command = Command::new(held);
            command.args(words.iter().skip(1));
            words.first().map(|word| command.arg0(word));
            command
        }
        (None, _) => {
            let mut command = Command::new(held);
            let shell = bound.binding.shell.as_ref().and_then(|shell| Path::new(&shell.path).file_name());
            shell.map(|name| command.arg0(name));
            command.arg("-c").arg(&exec.command);
            command
        }
    }
}

fn rebind(exec: &Exec, approved: &Binding, inherited: &Inherited) -> Result<Bound, BindError> {
    let folder = Path::new(&approved.folder.path);
    let workspace = approved.workspace.as_deref().map(Path::new);
    let shell = approved.shell.as_ref().map(|shell| shell.path.as_str());
    let what = exec.argv.as_deref().map_or(What::Text { text: &exec.command, shell }, What::Words);
    let spec = Spec { what, cwd: folder, workspace, env: &exec.env, inherited };
    // Its real name, and nothing that a link in its place leads to.
    bind_in(&spec, || Folder::open(folder, workspace))
}

/// What was there when it was bound and is not now is a change, not a mistake of the caller's.
fn as_change(error: BindError, approved: &Binding) -> StartError {
    let change = match error {
        BindError::NoFolder(_) | BindError::NotAFolder(_) | BindError::NoPermission(_) | BindError::Outside { .. } => {
            Change::Folder { path: approved.folder.path.clone() }
        }
        BindError::NoProgram(word) => Change::Program { word, now: None },
        BindError::NoShell(path) => Change::Gone { path },
        error @ (BindError::Empty
        | BindError::Nul
        | BindError::RelativeFolder(_)
        | BindError::NotUtf8(_)
        | BindError::Environment(_)
        | BindError::Io { .. }) => return StartError::Bind(error),
    };
    StartError::Changed(vec![change])
}

/// What is needed to look once more when the command has ended.
#[derive(Debug)]
pub(crate) struct Recheck {
    exec: Exec,
    inherited: Inherited,
}

impl Recheck {
    pub fn changes(&self) -> Vec<Change> {
        let Some(approved) = self.exec.binding.as_deref() else { return Vec::new() };
        if approved.scripts.is_empty() && approved.programs.iter().all(|program| program.file.pinned) {
            return Vec::new();
        }
        match rebind(&self.exec, approved, &self.inherited) {
            Ok(now) => crate::change::meanwhile(approved, &now.binding),
            Err(error) => match as_change(error, approved) {
                StartError::Changed(changes) => changes,
                StartError::Unbound | StartError::Bind(_) | StartError::Spawn { .. } => Vec::new(),
            },
        }
    }
}
