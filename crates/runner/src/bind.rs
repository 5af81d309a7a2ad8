//! Binds a command to what it would find: the working directory, the file of each program word, the scripts among its
//! words, the environment. The same code looks at ask time and again before the start, so that both see alike.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use countersign_model::{Binding, BoundFile, BoundProgram, Exec};
use thiserror::Error;

use crate::environment::{EnvError, Inherited, check_request_env};
use crate::files::{Form, Hash, Looked, look};
use crate::folder::{Folder, real};
use crate::links;
use crate::lookup::{Hit, Lookup};
use crate::project;
use crate::reading::{Call, CallKind, Reading, Start, read};
use crate::scripts::scripts;

/// An interpreter may be a script with an interpreter of its own; the system follows a few.
const MAX_INTERPRETERS: usize = 4;
/// What takes text after `-c`. A file with many programs in it would need another name to be this one.
const SHELLS: &[&str] = &["ash", "bash", "dash", "ksh", "ksh93", "mksh", "sh", "yash", "zsh"];
/// Tried in order where none is configured; the first place is not one that a changed `PATH` moves.
const DEFAULT_SHELLS: &[&str] = &["/bin/bash", "bash"];

/// What somebody wants to run.
#[derive(Clone, Copy, Debug)]
pub struct Spec<'s> {
    pub what: What<'s>,
    pub cwd: &'s Path,
    /// Where one is set, `cwd` must lie in it.
    pub workspace: Option<&'s Path>,
    /// What the request adds to the environment.
    pub env: &'s BTreeMap<String, String>,
    pub inherited: &'s Inherited,
}

#[derive(Clone, Copy, Debug)]
pub enum What<'s> {
    /// For a shell, `bash` unless one is named.
    Text { text: &'s str, shell: Option<&'s str> },
    /// Without a shell.
    Words(&'s [String]),
}

#[derive(Debug, Error)]
pub enum BindError {
    #[error("there is no command here; name a program, or give shell text after `-c`")]
    Empty,
    #[error("the command holds a NUL character, which no program can be given; remove it")]
    Nul,
    #[error("the working directory `{0}` is not absolute; give it from `/`")]
    RelativeFolder(PathBuf),
    #[error("there is no directory `{0}`; create it or name another")]
    NoFolder(PathBuf),
    #[error("`{0}` is not a directory, or a link took its place; name a directory")]
    NotAFolder(PathBuf),
    #[error("`{0}` may not be entered by this user; change its mode or name another directory")]
    NoPermission(PathBuf),
    #[error("the working directory `{folder}` is outside the workspace `{workspace}`; run it inside")]
    Outside { folder: PathBuf, workspace: PathBuf },
    #[error("the name `{}` is not UTF-8, so it cannot be shown or approved; rename it", .0.display())]
    NotUtf8(PathBuf),
    #[error("there is no program `{0}`; check its name and `PATH`")]
    NoProgram(String),
    #[error("`{0}` is no shell that takes text after `-c`; name one such as `/bin/bash`")]
    NoShell(String),
    #[error(transparent)]
    Environment(#[from] EnvError),
    #[error("`{path}` could not be looked at: {error}; check it and ask again")]
    Io { path: PathBuf, error: io::Error },
}

/// What was found, and what of it is held open.
#[derive(Debug)]
pub struct Bound {
    pub(crate) binding: Binding,
    pub(crate) folder: Folder,
    pub(crate) main: Main,
    /// What of the environment the command gets.
    pub(crate) environment: Inherited,
}

/// What the system is told to start.
#[derive(Debug)]
pub(crate) struct Main {
    pub file: File,
    /// By its name and not by its descriptor: a script's interpreter opens it again.
    pub by_name: Option<PathBuf>,
}

impl Bound {
    pub fn binding(&self) -> &Binding {
        &self.binding
    }

    pub fn into_binding(self) -> Binding {
        self.binding
    }
}

/// Looks at everything this command would find.
pub fn bind(spec: &Spec<'_>) -> Result<Bound, BindError> {
    bind_in(spec, || Folder::find(spec.cwd, spec.workspace))
}

pub(crate) fn bind_in(spec: &Spec<'_>, folder: impl FnOnce() -> Result<Folder, BindError>) -> Result<Bound, BindError> {
    let (text, direct) = text_of(&spec.what)?;
    check_request_env(spec.env)?;
    let folder = folder()?;
    let home = spec.inherited.get("HOME").map(Path::new);
    let reading = read(&text, Start { folder: &folder.path, home, direct });
    let reduced = reading.only_reads.then(|| spec.inherited.for_reading(&folder.path));
    let inherited = reduced.as_ref().unwrap_or(spec.inherited);
    let mut finds = Finds {
        folder: &folder,
        inherited,
        reading: &reading,
        programs: Vec::new(),
        scripts: Vec::new(),
        sentences: Vec::new(),
    };
    let (main, shell) = match spec.what {
        What::Text { shell, .. } => {
            let (main, shell) = finds.shell(shell)?;
            (main, Some(shell))
        }
        What::Words(words) => (finds.outermost(words.first().ok_or(BindError::Empty)?)?, None),
    };
    for call in &reading.calls {
        finds.call(call)?;
    }
    let (programs, scripts, mut helpers) = (finds.programs, finds.scripts, finds.sentences);
    let workspace = spec.workspace.map(real).transpose()?;
    let workspace = workspace.map(|path| text_path(&path)).transpose()?;
    let found = links::look(&reading, inherited);
    helpers.extend(project::look(&reading, inherited));
    helpers.extend(found.option.map(|name| {
        let name: String = name.chars().take(100).collect();
        format!("a file here is called `{name}`, which a program takes for an option")
    }));
    helpers.extend(found.too_many.then(|| "there are more files here than could be looked at for links".to_owned()));
    let (environment, steering, links) = (inherited.digest(), Some(inherited.steering()), found.paths);
    let folder_bound = folder.bound.clone();
    let binding =
        Binding { folder: folder_bound, workspace, shell, programs, scripts, helpers, links, environment, steering };
    Ok(Bound { binding, folder, main, environment: inherited.clone() })
}

/// The command as text that can be read, and whether it goes to the system without a shell.
fn text_of(what: &What<'_>) -> Result<(String, bool), BindError> {
    let (text, direct) = match what {
        What::Text { text, .. } => ((*text).to_owned(), false),
        What::Words(words) if words.first().is_none_or(String::is_empty) => return Err(BindError::Empty),
        What::Words(words) => (Exec::of_words(words.to_vec(), None, BTreeMap::new()).command, true),
    };
    if text.trim().is_empty() {
        return Err(BindError::Empty);
    }
    if text.contains('\0') { Err(BindError::Nul) } else { Ok((text, direct)) }
}

fn text_path(path: &Path) -> Result<String, BindError> {
    path.to_str().map(str::to_owned).ok_or_else(|| BindError::NotUtf8(path.to_path_buf()))
}

struct Finds<'f> {
    folder: &'f Folder,
    inherited: &'f Inherited,
    reading: &'f Reading,
    programs: Vec<BoundProgram>,
    scripts: Vec<BoundFile>,
    /// What a person should know of where programs are found.
    sentences: Vec<String>,
}

impl Finds<'_> {
    /// `place`: absolute, or nothing for the working directory.
    fn lookup(&self, place: &Path) -> Lookup<'_> {
        let start = place.as_os_str().is_empty() || place == self.folder.path;
        let here = if start { self.folder.held() } else { place.to_path_buf() };
        Lookup { here, search: self.inherited.get("PATH"), home: self.inherited.get("HOME") }
    }

    fn shell(&self, configured: Option<&str>) -> Result<(Main, BoundFile), BindError> {
        let words = configured.map_or(DEFAULT_SHELLS.to_vec(), |shell| vec![shell]);
        let missing = || BindError::NoShell(words.first().copied().unwrap_or_default().to_owned());
        let lookup = self.lookup(Path::new(""));
        let hit = words.iter().find_map(|word| lookup.program(word)).ok_or_else(missing)?;
        let mut looked = see(&hit, Hash::Program)?.ok_or_else(missing)?;
        let name = Path::new(&looked.bound.path).file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if !SHELLS.contains(&name) || looked.form != Form::Elf {
            return Err(missing());
        }
        looked.bound.pinned = true;
        Ok((Main { file: looked.file, by_name: None }, looked.bound))
    }

    /// The program that the system itself is told to start.
    fn outermost(&mut self, word: &str) -> Result<Main, BindError> {
        let missing = || BindError::NoProgram(word.to_owned());
        let hit = self.lookup(Path::new("")).program(word).ok_or_else(missing)?;
        let looked = see(&hit, Hash::Program)?.ok_or_else(missing)?;
        let pinned = looked.form == Form::Elf;
        let by_name = (!pinned).then(|| self.folder.path.join(word_path(&hit, self.folder)));
        let main = Main { file: looked.file, by_name };
        let file = BoundFile { pinned, ..looked.bound };
        self.programs.push(BoundProgram { word: word.to_owned(), file });
        self.beside(word, &looked.form)?;
        Ok(main)
    }

    fn call(&mut self, call: &Call) -> Result<(), BindError> {
        if call.kind == CallKind::Program {
            self.program(call)?;
        }
        for place in &call.folders {
            let hits = scripts(call, &self.lookup(place));
            for hit in &hits {
                self.script(hit)?;
            }
        }
        Ok(())
    }

    fn program(&mut self, call: &Call) -> Result<(), BindError> {
        let word = call.word.as_str();
        let unknown_path = self.reading.sets_path && !word.contains('/');
        if unknown_path || self.programs.iter().any(|program| program.word == word) {
            return Ok(());
        }
        let hits: Vec<Hit> = call.folders.iter().filter_map(|place| self.lookup(place).program(word)).collect();
        let Some(hit) = hits.first() else { return Ok(()) };
        if call.only_reads {
            self.sentences.extend(project::planted(word, hit, self.folder, self.inherited));
        }
        if hit.relative && self.reading.moves {
            // The same word can mean several files, so it speaks for none; those that are meant here are checked.
            return hits.iter().try_for_each(|hit| self.script(hit));
        }
        let Some(looked) = see(hit, Hash::Program)? else { return Ok(()) };
        self.programs.push(BoundProgram { word: word.to_owned(), file: looked.bound });
        self.beside(word, &looked.form)
    }

    /// What else a program brings: its interpreter, and the file that its bare name would start, which entries in an
    /// allowlist are compared with.
    fn beside(&mut self, word: &str, form: &Form) -> Result<(), BindError> {
        self.interpreters(form.clone())?;
        match word.rsplit_once('/') {
            Some((_, name)) if !name.is_empty() && !self.reading.sets_path => self.named(name).map(drop),
            _ => Ok(()),
        }
    }

    fn interpreters(&mut self, mut form: Form) -> Result<(), BindError> {
        for _ in 0..MAX_INTERPRETERS {
            let Form::Script { interpreter, argument } = form else { break };
            let chosen = argument.as_deref().filter(|_| interpreter.ends_with("/env"));
            let chosen = chosen.and_then(|words| words.split_whitespace().find(|word| !word.starts_with('-')));
            let first = self.named(&interpreter)?;
            let Some(next) = chosen.map(|word| self.named(word)).transpose()?.unwrap_or(first) else { break };
            form = next;
        }
        Ok(())
    }

    /// Binds a word wherever the command runs; answers its form, nothing if it starts no file.
    fn named(&mut self, word: &str) -> Result<Option<Form>, BindError> {
        let Some(hit) = self.lookup(Path::new("")).program(word) else { return Ok(None) };
        let Some(looked) = see(&hit, Hash::Program)? else { return Ok(None) };
        if !self.programs.iter().any(|program| program.word == word) {
            self.programs.push(BoundProgram { word: word.to_owned(), file: looked.bound });
        }
        Ok(Some(looked.form))
    }

    fn script(&mut self, hit: &Hit) -> Result<(), BindError> {
        let Some(looked) = see(hit, Hash::Always)? else { return Ok(()) };
        if !self.scripts.iter().any(|script| script.path == looked.bound.path) {
            self.scripts.push(looked.bound);
        }
        self.interpreters(looked.form)
    }
}

/// A script is started by the name it was found by, since it may look at that, but never through our descriptor.
fn word_path(hit: &Hit, folder: &Folder) -> PathBuf {
    hit.path.strip_prefix(folder.held()).map_or_else(|_| hit.path.clone(), Path::to_path_buf)
}

/// Looks at the file behind a name. Nothing, if it cannot be read or goes away meanwhile: then it is not bound, and a
/// binding that had it before differs.
fn see(hit: &Hit, hash: Hash) -> Result<Option<Looked>, BindError> {
    let Ok(path) = std::fs::canonicalize(&hit.path) else { return Ok(None) };
    text_path(&path)?;
    Ok(look(&path, hash).ok())
}
