//! What the tests share: a folder, an environment, and the way from a command to its outcome.
#![allow(dead_code, reason = "each test file takes what it needs")]

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use countersign_model::{Binding, Exec};
use countersign_runner::{BindError, Change, Inherited, Outcome, Running, Spec, StartError, Stdio, What, bind, start};

pub struct World {
    pub folder: tempfile::TempDir,
    pub inherited: Inherited,
    pub env: BTreeMap<String, String>,
}

impl World {
    pub fn new() -> Self {
        Self::with_path("/usr/bin:/bin")
    }

    /// `{}` in the path is the folder.
    pub fn with_path(path: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = path.replace("{}", folder.path().to_str().unwrap());
        let variables = [("PATH", path.as_str()), ("HOME", "/nonexistent"), ("KEPT", "1")];
        let inherited = Inherited::of(variables.map(|(name, value)| (OsString::from(name), OsString::from(value))));
        Self { folder, inherited, env: BTreeMap::new() }
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap()
    }

    pub fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    pub fn program(&self, name: &str, text: &str) -> PathBuf {
        let path = self.file(name, text);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    pub fn bind(&self, what: What<'_>, cwd: &Path, workspace: Option<&Path>) -> Result<Binding, BindError> {
        let spec = Spec { what, cwd, workspace, env: &self.env, inherited: &self.inherited };
        bind(&spec).map(|bound| bound.into_binding())
    }

    pub fn text(&self, text: &str) -> Exec {
        let binding = self.bind(What::Text { text, shell: None }, self.folder.path(), None).unwrap();
        Exec {
            command: text.to_owned(),
            argv: None,
            cwd: Some(binding.folder.path.clone()),
            env: self.env.clone(),
            binding: Some(Box::new(binding)),
        }
    }

    pub fn words(&self, words: &[&str]) -> Exec {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let binding = self.bind(What::Words(&words), self.folder.path(), None).unwrap();
        let cwd = Some(binding.folder.path.clone());
        Exec { binding: Some(Box::new(binding)), ..Exec::of_words(words, cwd, self.env.clone()) }
    }

    pub fn start(&self, exec: &Exec) -> Result<Running, StartError> {
        start(exec, &self.inherited, Stdio::Capture)
    }

    pub fn run(&self, exec: &Exec) -> Outcome {
        wait(self.start(exec).unwrap(), None)
    }

    /// Everything that keeps this from starting.
    pub fn changes(&self, exec: &Exec) -> Vec<Change> {
        match self.start(exec) {
            Err(StartError::Changed(changes)) => changes,
            other => panic!("expected a change, got {other:?}"),
        }
    }
}

pub fn wait(running: Running, timeout: Option<Duration>) -> Outcome {
    running.wait(timeout, &mut |_, _| {}).unwrap()
}

pub fn stdout(outcome: &Outcome) -> String {
    String::from_utf8(outcome.stdout.bytes.clone()).unwrap()
}

pub fn binding(exec: &Exec) -> &Binding {
    exec.binding.as_deref().unwrap()
}
