//! Which gate a command talks to, and by which key: flags, then environment, then the user's data folder.
//!
//! A key is read here and handed on; it is never printed.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use clap::Args;
use countersign_model::sha256;
use serde::de::DeserializeOwned;

use crate::client::{self, Events, Gate, Key, Place, Request};
use crate::engine::OwnGate;
use crate::exit::Usage;
use crate::output;
use crate::wire_up::Embedded;

#[derive(Clone, Debug, Default, Args)]
pub struct Flags {
    /// Data folder of the gate [env: COUNTERSIGN_DATA] [default: the user's data folder]
    #[arg(long, global = true, value_name = "DIR", conflicts_with = "url")]
    pub data: Option<PathBuf>,
    /// A gate elsewhere, with the key in COUNTERSIGN_KEY [env: COUNTERSIGN_URL]
    #[arg(long, global = true, value_name = "URL")]
    pub url: Option<String>,
    /// More certificates to trust, in PEM, for an `https` gate [env: COUNTERSIGN_CA]
    #[arg(long, global = true, value_name = "FILE")]
    pub ca: Option<PathBuf>,
}

/// What to do when no gate runs on the data folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offline {
    /// Nobody to talk to: give up.
    Fail,
    /// The store can answer, if there is one.
    Store,
    /// The store can answer, and is made if there is none.
    NewStore,
}

#[derive(Debug)]
pub struct Locator {
    place: Place,
    /// The folder, when the gate is this machine's own.
    data: Option<PathBuf>,
    ca: Option<PathBuf>,
    key: Option<OsString>,
}

impl Locator {
    pub fn from_env(flags: &Flags) -> anyhow::Result<Self> {
        Self::find(flags, &|name| std::env::var_os(name))
    }

    fn find(flags: &Flags, env: &dyn Fn(&str) -> Option<OsString>) -> anyhow::Result<Self> {
        let set = |name: &str| env(name).filter(|value| !value.is_empty());
        let url = match (&flags.url, &flags.data) {
            (Some(url), _) => Some(url.clone()),
            // A folder named on the command line beats a URL from the environment.
            (None, Some(_)) => None,
            (None, None) => set("COUNTERSIGN_URL").map(|url| url.to_string_lossy().into_owned()),
        };
        let ca = flags.ca.clone().or_else(|| set("COUNTERSIGN_CA").map(PathBuf::from));
        let key = set("COUNTERSIGN_KEY");
        if let Some(url) = url {
            let place = Place::parse_url(&url).map_err(|why| {
                Usage(format!("the gate's URL cannot be used: {why}; write it as `https://HOST:PORT`"))
            })?;
            return Ok(Self { place, data: None, ca, key });
        }
        let data = data_folder(flags, env)?;
        Ok(Self { place: Place::Socket(data.join("gate.sock")), data: Some(data), ca, key })
    }

    /// More certificates to trust, if some are named.
    pub fn ca(&self) -> Option<&Path> {
        self.ca.as_deref()
    }

    /// Which gate and whose key this is, as text that says neither.
    pub fn fingerprint(&self) -> String {
        let key = self.key.as_ref().map(|key| key.to_string_lossy().into_owned()).unwrap_or_default();
        sha256(format!("{}\n{key}", self.place).as_bytes()).to_hex().chars().take(16).collect()
    }

    /// As the agent: the key from the environment, or none on this machine's own gate.
    pub fn agent(&self) -> anyhow::Result<Caller> {
        let key = match (self.env_key()?, &self.data) {
            (None, None) => return Err(no_key_for_url().into()),
            (key, _) => key,
        };
        self.caller(key)
    }

    /// As an engine: at the gate that runs, else in this process on the data folder's own store. Whether it is the
    /// latter stands beside it.
    pub fn engine(&self) -> anyhow::Result<(Caller, bool)> {
        let Some(data) = &self.data else { return Ok((self.agent()?, false)) };
        if self.probe().is_ok() {
            return Ok((self.agent()?, false));
        }
        match OwnGate::open(data) {
            Ok(gate) => Ok((Caller { way: Way::Own(Arc::new(gate)), key: None }, true)),
            // A gate may have started just now and taken the folder.
            Err(_) if self.probe().is_ok() => Ok((self.agent()?, false)),
            Err(error) => Err(error),
        }
    }

    /// The data folder, when the gate is this machine's own.
    pub fn data(&self) -> Option<&Path> {
        self.data.as_deref()
    }

    /// As a person who reads or decides, at a running gate.
    pub fn person(&self) -> anyhow::Result<Caller> {
        self.person_or(Offline::Fail)
    }

    pub fn person_or(&self, offline: Offline) -> anyhow::Result<Caller> {
        let Some(data) = &self.data else {
            let key = self.env_key()?.ok_or_else(no_key_for_url)?;
            return self.caller(Some(key));
        };
        let Err(absent) = self.probe() else { return self.caller(Some(self.person_key(data)?)) };
        let stored = offline == Offline::Store && data.join("countersign.db").exists();
        if !stored && offline != Offline::NewStore {
            return Err(absent.into());
        }
        match Embedded::open(data) {
            Ok(embedded) => Ok(Caller { way: Way::Store(Box::new(embedded)), key: None }),
            // A gate may have started just now and taken the folder.
            Err(_) if self.probe().is_ok() => self.caller(Some(self.person_key(data)?)),
            Err(error) => Err(error),
        }
    }

    fn probe(&self) -> Result<(), client::Error> {
        let Place::Socket(path) = &self.place else { return Ok(()) };
        match UnixStream::connect(path) {
            Ok(_) => Ok(()),
            Err(cause) => Err(client::Error::Unreachable { place: self.place.to_string(), cause }),
        }
    }

    fn caller(&self, key: Option<Key>) -> anyhow::Result<Caller> {
        if key.is_some() && self.place.is_exposed() {
            output::note(&format!("warning: the key goes to {} unencrypted; use `https`", self.place));
        }
        let gate = Gate::new(self.place.clone(), self.ca.as_deref())?;
        Ok(Caller { way: Way::Gate(gate), key })
    }

    fn env_key(&self) -> anyhow::Result<Option<Key>> {
        let key = self.key.as_ref().map(|key| Key::new(&key.to_string_lossy()));
        key.transpose().context("COUNTERSIGN_KEY cannot be used; set it to a key from `countersign keys create`")
    }

    fn person_key(&self, data: &Path) -> anyhow::Result<Key> {
        match self.env_key()? {
            Some(key) => Ok(key),
            None => admin_key(data),
        }
    }
}

/// The folder that `serve` and the offline checks work on.
pub fn local_data(flags: &Flags) -> anyhow::Result<PathBuf> {
    data_folder(flags, &|name| std::env::var_os(name))
}

/// Whether a flag or the environment names a gate by URL.
pub fn names_url(flags: &Flags) -> bool {
    let set = std::env::var_os("COUNTERSIGN_URL").is_some_and(|value| !value.is_empty());
    flags.url.is_some() || (set && flags.data.is_none())
}

fn data_folder(flags: &Flags, env: &dyn Fn(&str) -> Option<OsString>) -> anyhow::Result<PathBuf> {
    let set = |name: &str| env(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(data) = flags.data.clone().or_else(|| set("COUNTERSIGN_DATA")) {
        return Ok(data);
    }
    // A relative XDG path means nothing, by its own rules.
    let base = set("XDG_DATA_HOME").filter(|path| path.is_absolute());
    let base = base.or_else(|| set("HOME").map(|home| home.join(".local/share")));
    let base =
        base.ok_or_else(|| Usage("HOME is not set, so there is no data folder; name one with `--data DIR`".into()))?;
    Ok(base.join("countersign"))
}

fn no_key_for_url() -> Usage {
    Usage("a gate named by URL needs a key; set COUNTERSIGN_KEY to one from `countersign keys create`".to_owned())
}

fn admin_key(data: &Path) -> anyhow::Result<Key> {
    let path = data.join("admin.key");
    let advice = "run this as the user who runs `countersign serve`, or set COUNTERSIGN_KEY";
    let text = fs::read_to_string(&path)
        .with_context(|| format!("the key in `{}` cannot be read; {advice}", path.display()))?;
    let mode = fs::metadata(&path).map(|about| about.permissions().mode() & 0o777).unwrap_or(0);
    if mode & 0o077 != 0 {
        let path = path.display();
        output::note(&format!(
            "warning: others can read the key in `{path}` (mode {mode:03o}); run `chmod 600 {path}`"
        ));
    }
    Key::new(&text).with_context(|| format!("`{}` does not hold a key; {advice}", path.display()))
}

/// A gate, by whatever way, and the key to show it.
#[derive(Debug)]
pub struct Caller {
    way: Way,
    key: Option<Key>,
}

#[derive(Debug)]
enum Way {
    Gate(Gate),
    Store(Box<Embedded>),
    /// A gate in this process that an engine asks.
    Own(Arc<OwnGate>),
}

impl Caller {
    /// The answer's body as the type it must be; anything but a success is an error.
    pub fn call<T: DeserializeOwned>(&self, request: Request) -> anyhow::Result<T> {
        let request = request.key(self.key.as_ref());
        let response = match &self.way {
            Way::Gate(gate) => gate.send(&request)?,
            Way::Store(embedded) => embedded.call(&request)?,
            Way::Own(gate) => gate.send(&request)?,
        };
        Ok(response.json()?)
    }

    /// As `call`, where only a running gate will do and what went wrong matters to the caller.
    pub fn send<T: DeserializeOwned>(&self, request: Request) -> Result<T, client::Error> {
        if let Way::Own(gate) = &self.way {
            return gate.send(&request)?.json();
        }
        self.gate()?.send(&request.key(self.key.as_ref()))?.json()
    }

    /// The gate in this process, where there is one.
    pub fn own(&self) -> Option<&Arc<OwnGate>> {
        match &self.way {
            Way::Own(gate) => Some(gate),
            Way::Gate(_) | Way::Store(_) => None,
        }
    }

    pub fn follow(&self, request: Request) -> Result<Events, client::Error> {
        self.gate()?.follow(&request.key(self.key.as_ref()))
    }

    fn gate(&self) -> Result<&Gate, client::Error> {
        match &self.way {
            Way::Gate(gate) => Ok(gate),
            Way::Store(_) | Way::Own(_) => {
                Err(client::Error::Malformed("a store without a gate cannot be waited on".to_owned()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(flags: &Flags, env: &[(&str, &str)]) -> anyhow::Result<Locator> {
        let env: Vec<(String, OsString)> = env.iter().map(|(name, value)| (name.to_string(), value.into())).collect();
        Locator::find(flags, &|name| env.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone()))
    }

    fn socket(path: &str) -> Place {
        Place::Socket(path.into())
    }

    #[test]
    fn flags_beat_environment_and_a_url_beats_a_folder() {
        let none = Flags::default();
        let data = Flags { data: Some("/d".into()), ..none.clone() };
        let url = Flags { url: Some("http://127.0.0.1:1".into()), ..none.clone() };
        let env = [("COUNTERSIGN_URL", "http://127.0.0.1:2"), ("COUNTERSIGN_DATA", "/e"), ("HOME", "/h")];
        assert_eq!(find(&data, &env).unwrap().place, socket("/d/gate.sock"));
        assert_eq!(find(&url, &env).unwrap().place, Place::parse_url("http://127.0.0.1:1").unwrap());
        assert_eq!(find(&none, &env).unwrap().place, Place::parse_url("http://127.0.0.1:2").unwrap());
        assert_eq!(find(&none, &env[1..]).unwrap().place, socket("/e/gate.sock"));
        assert_eq!(find(&none, &env[2..]).unwrap().place, socket("/h/.local/share/countersign/gate.sock"));
        assert_eq!(
            find(&none, &[("COUNTERSIGN_URL", ""), ("HOME", "/h")]).unwrap().data,
            Some("/h/.local/share/countersign".into())
        );
        let xdg = [("XDG_DATA_HOME", "/x"), ("HOME", "/h")];
        assert_eq!(find(&none, &xdg).unwrap().place, socket("/x/countersign/gate.sock"));
        let relative = [("XDG_DATA_HOME", "x"), ("HOME", "/h")];
        assert_eq!(find(&none, &relative).unwrap().place, socket("/h/.local/share/countersign/gate.sock"));
        assert!(find(&none, &[]).unwrap_err().is::<Usage>());
    }

    #[test]
    fn a_url_needs_a_key_and_never_gets_the_folders() {
        let flags = Flags { url: Some("http://127.0.0.1:1".into()), ..Flags::default() };
        let without = find(&flags, &[("HOME", "/h")]).unwrap();
        assert!(without.agent().unwrap_err().is::<Usage>());
        assert!(without.person().unwrap_err().is::<Usage>());
        assert!(find(&flags, &[("COUNTERSIGN_KEY", "k")]).unwrap().person().is_ok());
    }

    #[test]
    fn the_local_agent_needs_no_key_and_an_absent_gate_is_unreachable() {
        let flags = Flags { data: Some("/nonexistent/countersign".into()), ..Flags::default() };
        let located = find(&flags, &[]).unwrap();
        assert!(located.agent().unwrap().key.is_none());
        for offline in [Offline::Fail, Offline::Store] {
            let error = located.person_or(offline).unwrap_err();
            assert_eq!(crate::exit::of_error(&error), crate::exit::UNREACHABLE, "{error:?}");
        }
    }
}
