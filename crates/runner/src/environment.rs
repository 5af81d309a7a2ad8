//! The environment a command gets: what is inherited, without what would change how programs load and shells start,
//! and what the request adds. Which names are dangerous is the shell engine's knowledge.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use countersign_model::{Digest, sha256};
use thiserror::Error;

/// Read by a loader or by a shell before it does what it is told. Everything else that is inherited is the person's
/// own and stays.
const DROPPED: &[&str] = &[
    "BASHOPTS",
    "BASH_ENV",
    "BASH_LOADABLES_PATH",
    "BASH_XTRACEFD",
    "CDPATH",
    "ENV",
    "EXECIGNORE",
    "FPATH",
    "GCONV_PATH",
    "GLIBC_TUNABLES",
    "GLOBIGNORE",
    "IFS",
    "KSH_ENV",
    "PROMPT_COMMAND",
    "PS0",
    "PS4",
    "SHELLOPTS",
    "ZDOTDIR",
];
/// The last one holds our own addresses and keys.
const DROPPED_PREFIXES: &[&[u8]] = &[b"LD_", b"DYLD_", b"BASH_FUNC_", b"COUNTERSIGN_"];
/// Steer programs, and nothing works without them: where they lead is looked at.
const ORDINARY: &[&str] = &["HOME", "PATH", "SHELL", "TERMINFO", "TERMINFO_DIRS"];
/// Each child is told its own.
const WORKING_DIRECTORY: &str = "PWD";

/// What a child inherits.
#[derive(Clone, PartialEq, Eq)]
pub struct Inherited {
    variables: BTreeMap<OsString, OsString>,
    dropped: Vec<String>,
}

#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum EnvError {
    #[error(
        "`{0}` decides what other programs run, load or trust, so a request may not set it; leave it out, or set it in the command's own text where it is judged"
    )]
    Dangerous(String),
    #[error("`{0}` is no name for a variable; use letters, digits and `_`")]
    Name(String),
    #[error("the value of `{0}` holds a NUL character; remove it")]
    Nul(String),
}

/// Refuses names that a request may never supply, however they are spelled: some programs read lower-case ones too.
pub fn check_request_env(env: &BTreeMap<String, String>) -> Result<(), EnvError> {
    for (name, value) in env {
        if countersign_shell::is_dangerous_variable(name)
            || countersign_shell::is_dangerous_variable(&name.to_ascii_uppercase())
        {
            return Err(EnvError::Dangerous(name.clone()));
        }
        if name.is_empty() || name.contains(['=', '\0']) {
            return Err(EnvError::Name(name.replace('\0', "\\0")));
        }
        if value.contains('\0') {
            return Err(EnvError::Nul(name.clone()));
        }
    }
    Ok(())
}

impl Inherited {
    /// This process's own environment.
    pub fn capture() -> Self {
        Self::of(std::env::vars_os())
    }

    pub fn of(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let (dropped, kept): (BTreeMap<_, _>, BTreeMap<_, _>) =
            variables.into_iter().partition(|(name, _)| is_dropped(name));
        let mut kept = kept;
        kept.remove(OsStr::new(WORKING_DIRECTORY));
        Self { variables: kept, dropped: dropped.into_keys().map(|name| name.to_string_lossy().into_owned()).collect() }
    }

    /// Of names and values that are not known to change nothing for the programs that get them.
    pub(crate) fn steering(&self) -> Digest {
        let ordinary = |name: &OsString| name.to_str().is_some_and(countersign_shell::is_ordinary_variable);
        let others = self.variables.iter().filter(|(name, _)| !ordinary(name));
        Self { variables: others.map(|(n, v)| (n.clone(), v.clone())).collect(), dropped: Vec::new() }.digest()
    }

    /// For a command that only reads in this folder: without what could make the programs in it run or load something,
    /// without what leads into the folder, where whoever asks can write, and without what a shell would evaluate. A
    /// person who is asked sees nothing of the environment, and of this nobody is asked.
    pub(crate) fn for_reading(&self, folder: &Path) -> Self {
        let own = self.get("HOME").is_some_and(|home| Path::new(home).starts_with(folder));
        let leads_here = |value: &OsString| {
            !own && std::env::split_paths(value).any(|path| path.is_absolute() && path.starts_with(folder))
        };
        let evaluated =
            |value: &OsString| value.as_bytes().windows(2).any(|two| two == b"$(") || value.as_bytes().contains(&b'`');
        let steers = |(name, value): &(&OsString, &OsString)| {
            let Some(name) = name.to_str() else { return true };
            let ordinary = ORDINARY.contains(&name);
            (countersign_shell::is_steering_variable(name) || leads_here(value)) && !ordinary || evaluated(value)
        };
        let kept = self.variables.iter().filter(|variable| !steers(variable));
        Self {
            variables: kept.map(|(name, value)| (name.clone(), value.clone())).collect(),
            dropped: self.dropped.clone(),
        }
    }

    /// The names that a child does not get, in order.
    pub fn dropped(&self) -> &[String] {
        &self.dropped
    }

    /// Of names and values, in order.
    pub fn digest(&self) -> Digest {
        let mut bytes = Vec::new();
        for (name, value) in &self.variables {
            bytes.extend_from_slice(name.as_bytes());
            bytes.push(b'=');
            bytes.extend_from_slice(value.as_bytes());
            bytes.push(0);
        }
        sha256(&bytes)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&OsStr> {
        self.variables.get(OsStr::new(name)).map(OsString::as_os_str)
    }

    /// Everything that the child gets: its working directory by its real name, so that no stale link is followed.
    pub(crate) fn with(&self, request: &BTreeMap<String, String>, folder: &Path) -> BTreeMap<OsString, OsString> {
        let mut all = self.variables.clone();
        all.insert(WORKING_DIRECTORY.into(), folder.into());
        all.extend(request.iter().map(|(name, value)| (name.into(), value.into())));
        all
    }
}

/// Names only: values may be secrets.
impl std::fmt::Debug for Inherited {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inherited")
            .field("names", &self.variables.keys().collect::<Vec<_>>())
            .field("dropped", &self.dropped)
            .finish()
    }
}

fn is_dropped(name: &OsStr) -> bool {
    let bytes = name.as_bytes();
    DROPPED.iter().any(|listed| listed.as_bytes() == bytes)
        || DROPPED_PREFIXES.iter().any(|prefix| bytes.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    fn inherited(pairs: &[(&str, &str)]) -> Inherited {
        Inherited::of(pairs.iter().map(|(name, value)| (OsString::from(name), OsString::from(value))))
    }

    #[test]
    fn loader_and_startup_names_are_dropped_and_named() {
        let all = inherited(&[
            ("LD_PRELOAD", "x"),
            ("BASH_FUNC_ls%%", "() { :; }"),
            ("COUNTERSIGN_KEY", "s"),
            ("ENV", "f"),
            ("ENVIRONMENT", "stays"),
            ("GIT_PAGER", "stays: it is the person's own"),
            ("HOME", "/h"),
        ]);
        assert_eq!(all.dropped(), ["BASH_FUNC_ls%%", "COUNTERSIGN_KEY", "ENV", "LD_PRELOAD"]);
        assert_eq!(all.get("ENVIRONMENT").unwrap(), "stays");
        assert_eq!(all.variables.len(), 3);
    }

    #[test]
    fn the_digest_is_of_what_remains_in_any_order() {
        let one = inherited(&[("A", "1"), ("B", "2"), ("LD_X", "3"), ("PWD", "/a")]);
        assert_eq!(one.digest(), inherited(&[("B", "2"), ("A", "1"), ("PWD", "/b")]).digest());
        assert_ne!(one.digest(), inherited(&[("A", "12"), ("B", "")]).digest());
        assert_ne!(one.digest(), inherited(&[("A", "1")]).digest());
    }

    #[test]
    fn bytes_that_are_no_text_are_kept() {
        let value = OsString::from_vec(vec![0xff, 0xfe]);
        let all = Inherited::of([(OsString::from_vec(vec![b'N', 0xff]), value.clone())]);
        assert_eq!(all.variables.into_values().collect::<Vec<_>>(), [value]);
    }

    #[test]
    fn the_child_is_told_its_folder_unless_the_request_says_another() {
        let one = inherited(&[("PWD", "/link")]);
        assert_eq!(one.with(&BTreeMap::new(), Path::new("/real"))[OsStr::new("PWD")], "/real");
        let asked = BTreeMap::from([("PWD".to_owned(), "/asked".to_owned())]);
        assert_eq!(one.with(&asked, Path::new("/real"))[OsStr::new("PWD")], "/asked");
    }

    #[test]
    fn threat_17_every_listed_name_is_refused_from_a_request() {
        let refused = |name: &str| {
            check_request_env(&BTreeMap::from([(name.to_owned(), "x".to_owned())]))
                == Err(EnvError::Dangerous(name.into()))
        };
        for name in ["LD_PRELOAD", "BASH_ENV", "GIT_EXTERNAL_DIFF", "PATH", "http_proxy", "COUNTERSIGN_KEY", "PAGER"] {
            assert!(refused(name), "{name}");
        }
        // The whole list lies beside the repository, not in it.
        let list = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpora/env_names.json");
        let Ok(text) = std::fs::read_to_string(list) else { return };
        let lists: BTreeMap<String, Vec<String>> = serde_json::from_str(&text).unwrap();
        let names = lists["blockedEverywhereKeys"].iter().chain(&lists["blockedOverrideOnlyKeys"]).cloned();
        let prefixes = lists["blockedOverridePrefixes"].iter().chain(&lists["blockedPrefixes"]);
        for name in names.chain(prefixes.map(|prefix| format!("{prefix}X"))) {
            assert!(refused(&name), "{name}");
        }
    }

    #[test]
    fn names_that_are_none_are_refused() {
        let check = |name: &str, value: &str| check_request_env(&BTreeMap::from([(name.to_owned(), value.to_owned())]));
        assert_eq!(check("", "x"), Err(EnvError::Name(String::new())));
        assert_eq!(check("A=B", "x"), Err(EnvError::Name("A=B".into())));
        assert_eq!(check("A", "x\0y"), Err(EnvError::Nul("A".into())));
        assert_eq!(check("CI", "1"), Ok(()));
    }
}
