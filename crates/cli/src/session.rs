//! The session that `ask` and `run` ask in: a random id that belongs to one terminal for as long as its session leader
//! lives. Neither a reused process id nor a reused terminal name brings an old one back, and without a terminal each
//! call is a session of its own.
//!
//! What was allowed for a session ends with its terminal: the command that the terminal takes down with it tells the
//! gate, else the next one that finds the leader gone. Until then nobody names the old session but who kept its id.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use countersign_model::{MAX_SESSION_GRANT_MS, hex, sha256};
use serde_json::{Value, json};

use crate::client::{self, Request, encode};
use crate::locate::{Caller, Locator};

const PREFIX: &str = "term-";
const DIGITS: usize = 32;
/// What is read of a file under `/proc`.
const MAX_STAT: u64 = 4096;
/// How long the gate may take to hear of an end; the next command tells it again.
const PATIENCE: Duration = Duration::from_secs(2);
/// As many ends are told at once; the rest waits for the next command.
const MOST_ENDS: usize = 32;
/// What a signal that a terminal's end sends comes to, as an exit code.
const HANGUP: u8 = 129;

/// What a question is asked in.
#[derive(Clone, Debug)]
pub struct Session {
    pub id: String,
    /// It belongs to the terminal around this process.
    of_terminal: bool,
}

impl Session {
    /// As given, else this terminal's, else one for this call alone. Sessions whose terminals are gone end before.
    pub fn find(given: Option<String>, locator: &Locator, caller: &Caller) -> anyhow::Result<Self> {
        let folder = folder();
        let gate = locator.fingerprint();
        if let Some(folder) = &folder {
            end_gone(folder, &gate, caller);
        }
        if let Some(id) = given.filter(|id| !id.is_empty()) {
            return Ok(Self { id, of_terminal: false });
        }
        let kept = match (Terminal::of_this_process(), folder) {
            (Some(terminal), Some(folder)) => kept(&folder, &terminal, &gate),
            (Some(_), None) | (None, _) => None,
        };
        match kept {
            Some(id) => Ok(Self { id, of_terminal: true }),
            None => Ok(Self { id: random()?, of_terminal: false }),
        }
    }

    /// A signal ends this process; where it is the one that a closing terminal sends, the session ends too.
    pub fn on_signal(&self, code: u8, caller: &Caller) {
        if self.of_terminal && code == HANGUP {
            // If the gate does not hear it now, the next command tells it.
            let _ = end(caller, &self.id);
        }
    }
}

/// Tells the gate of terminals that are gone, so that what is listed is what holds.
pub fn end_those_gone(locator: &Locator) {
    if let (Some(folder), Ok(caller)) = (folder(), locator.agent()) {
        end_gone(&folder, &locator.fingerprint(), &caller);
    }
}

fn end(caller: &Caller, id: &str) -> Result<(), client::Error> {
    let request = Request::post(format!("/v1/sessions/{}/end", encode(id)), json!({}));
    caller.send::<Value>(request.timeout(PATIENCE)).map(|_| ())
}

fn end_gone(folder: &Path, gate: &str, caller: &Caller) {
    for gone in gone(folder, gate).into_iter().take(MOST_ENDS) {
        // It stays until the gate has heard, or until nothing of it can hold any more.
        if gone.id.is_some_and(|id| end(caller, &id).is_err()) {
            return;
        }
        let _ = fs::remove_file(gone.path);
    }
}

fn random() -> anyhow::Result<String> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).map_err(|error| anyhow::anyhow!("no random bytes to name the session by: {error}"))?;
    Ok(format!("{PREFIX}{}", hex(&bytes)))
}

/// A terminal in the hands of one session leader, since one start of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Terminal {
    boot: String,
    leader: u32,
    /// In ticks since the machine started: another process of the same id started later.
    started: u64,
    device: u64,
}

impl Terminal {
    fn of_this_process() -> Option<Self> {
        let own = Stat::read("self")?;
        let leader = Stat::read(&own.session.to_string())?;
        // A leader in another session is another process by now.
        let sound = own.device != 0 && leader.session == own.session && leader.device == own.device;
        sound.then(|| Some(Self { boot: boot()?, leader: own.session, started: leader.started, device: own.device }))?
    }

    /// Who the leader is and which gate knows the session, for whoever finds it when the leader is gone.
    fn file_name(&self, gate: &str) -> String {
        let Self { boot, leader, started, device } = self;
        let hash = sha256(format!("{boot} {leader} {started} {device} {gate}").as_bytes()).to_hex();
        format!("{leader}-{started}-{}-{gate}-{hash}", short(boot))
    }
}

/// Enough of a machine's start to tell it from another.
fn short(boot: &str) -> String {
    sha256(boot.as_bytes()).to_hex().chars().take(12).collect()
}

fn boot() -> Option<String> {
    read_small(Path::new("/proc/sys/kernel/random/boot_id")).map(|text| text.trim().to_owned())
}

/// The parts of `/proc/PID/stat` that say whose terminal it is.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    session: u32,
    device: u64,
    started: u64,
}

impl Stat {
    fn read(process: &str) -> Option<Self> {
        Self::parse(&read_small(&Path::new("/proc").join(process).join("stat"))?)
    }

    fn parse(text: &str) -> Option<Self> {
        // The name before may hold anything, also parentheses and spaces.
        let fields: Vec<&str> = text.rsplit_once(')')?.1.split_ascii_whitespace().collect();
        let number = |at: usize| fields.get(at).and_then(|field| field.parse::<i64>().ok());
        Some(Self {
            session: u32::try_from(number(3)?).ok()?,
            device: u64::try_from(number(4)?).ok()?,
            started: u64::try_from(number(19)?).ok()?,
        })
    }
}

fn read_small(path: &Path) -> Option<String> {
    let mut text = String::new();
    File::open(path).ok()?.take(MAX_STAT).read_to_string(&mut text).ok()?;
    Some(text)
}

/// Where this user's sessions are kept, if there is a place of their own.
fn folder() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let runtime = set("XDG_RUNTIME_DIR").filter(|path| is_own(path));
    let base =
        runtime.or_else(|| set("XDG_STATE_HOME")).or_else(|| set("HOME").map(|home| home.join(".local/state")))?;
    let folder = base.join("countersign").join("sessions");
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder).ok()?;
    is_own(&folder).then_some(folder)
}

/// Ours, and nobody else's to write in.
fn is_own(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|about| {
        about.is_dir() && about.uid() == rustix::process::geteuid().as_raw() && about.mode() & 0o022 == 0
    })
}

/// The id that is kept for this terminal; made, where there is none. `None`: it cannot be kept.
fn kept(folder: &Path, terminal: &Terminal, gate: &str) -> Option<String> {
    let path = folder.join(terminal.file_name(gate));
    if let Some(id) = read(&path) {
        return Some(id);
    }
    let id = random().ok()?;
    let new = folder.join(format!(".{}", id.strip_prefix(PREFIX)?));
    let mut file = File::options().write(true).create_new(true).mode(0o600).open(&new).ok()?;
    let written = file.write_all(id.as_bytes()).is_ok();
    // Whole or not at all, and the first of two at once is both's.
    let linked = written && fs::hard_link(&new, &path).is_ok();
    let _ = fs::remove_file(&new);
    if linked { Some(id) } else { read(&path) }
}

fn read(path: &Path) -> Option<String> {
    let no_follow = rustix::fs::OFlags::NOFOLLOW.bits();
    let file = File::options().read(true).custom_flags(i32::try_from(no_follow).ok()?).open(path).ok()?;
    let about = file.metadata().ok()?;
    if !about.is_file() || about.uid() != rustix::process::geteuid().as_raw() || about.mode() & 0o077 != 0 {
        return None;
    }
    let mut text = String::new();
    file.take(MAX_STAT).read_to_string(&mut text).ok()?;
    let digits = text.strip_prefix(PREFIX)?;
    let sound = digits.len() == DIGITS && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    sound.then_some(text)
}

/// A session whose leader is gone.
#[derive(Debug)]
struct Gone {
    path: PathBuf,
    /// None: there is nobody to tell, or nothing to tell any more.
    id: Option<String>,
}

/// The sessions of this gate whose leaders are gone, and what is too old for anything of it to hold.
fn gone(folder: &Path, gate: &str) -> Vec<Gone> {
    let boot = boot().map(|boot| short(&boot));
    let look = |entry: fs::DirEntry| {
        let (name, path) = (entry.file_name(), entry.path());
        let parts: Vec<&str> = name.to_str()?.split('-').collect();
        let (leader, started) = (parts.first()?, parts.get(1)?);
        if leader.is_empty() || !leader.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let same_start = parts.get(2).is_none_or(|of| boot.as_deref().is_none_or(|boot| boot == *of));
        if same_start && Stat::read(leader).is_some_and(|stat| stat.started.to_string() == *started) {
            return None;
        }
        let age = entry.metadata().ok()?.modified().ok().and_then(|at| SystemTime::now().duration_since(at).ok());
        let over = age.is_some_and(|age| age > Duration::from_millis(MAX_SESSION_GRANT_MS));
        match parts.get(3) {
            Some(of) if *of == gate && !over => Some(Gone { id: read(&path), path }),
            // Another gate's: whoever talks to that one tells it.
            Some(_) if !over => None,
            Some(_) | None => Some(Gone { path, id: None }),
        }
    };
    fs::read_dir(folder).into_iter().flatten().flatten().filter_map(look).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    const GATE: &str = "abc";

    fn terminal() -> Terminal {
        // A leader that lives: this process, as it is.
        let own = Stat::read("self").unwrap();
        Terminal { boot: boot().unwrap(), leader: std::process::id(), started: own.started, device: 34_816 }
    }

    #[test]
    fn a_stat_line_is_read_whatever_the_program_is_called() {
        let rest = "S 1 2 3 34816 9 4194304 0 0 0 0 0 0 0 0 20 0 1 0 777 0 0";
        for name in ["bash", "a) S 9 9 9 9", "(", "x y"] {
            let read = Stat::parse(&format!("5 ({name}) {rest}"));
            assert_eq!(read, Some(Stat { session: 3, device: 34_816, started: 777 }), "{name}");
        }
        assert_eq!(Stat::parse("5 (x) S 1"), None);
    }

    #[test]
    fn one_terminal_keeps_its_id_and_any_other_has_another() {
        let folder = tempfile::tempdir().unwrap();
        let here = terminal();
        let id = kept(folder.path(), &here, GATE).unwrap();
        assert!(id.len() == PREFIX.len() + DIGITS && kept(folder.path(), &here, GATE) == Some(id.clone()));
        for other in [
            Terminal { boot: "c".into(), ..here.clone() },
            Terminal { leader: 1, ..here.clone() },
            Terminal { started: here.started + 1, ..here.clone() },
            Terminal { device: here.device + 1, ..here.clone() },
        ] {
            assert_ne!(kept(folder.path(), &other, GATE).unwrap(), id, "{other:?}");
        }
        let mode = fs::metadata(folder.path().join(here.file_name(GATE))).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn what_somebody_else_could_have_written_is_no_session() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(terminal().file_name(GATE));
        let sound = format!("{PREFIX}{}", "a".repeat(DIGITS));
        for (text, mode) in [(sound.as_str(), 0o644), ("cli-1", 0o600), ("", 0o600)] {
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(read(&path), None, "{text} {mode:o}");
        }
        fs::remove_file(&path).unwrap();
        fs::write(folder.path().join("elsewhere"), &sound).unwrap();
        std::os::unix::fs::symlink("elsewhere", &path).unwrap();
        assert_eq!(kept(folder.path(), &terminal(), GATE), None);
    }

    #[test]
    fn threat_99_a_session_is_over_when_its_leader_is_gone_and_only_its_own_gate_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let here = terminal();
        for dead in [
            Terminal { started: here.started + 1, ..here.clone() },
            Terminal { boot: "an earlier start".into(), ..here.clone() },
        ] {
            let id = kept(folder.path(), &dead, GATE).unwrap();
            kept(folder.path(), &here, GATE).unwrap();
            assert!(gone(folder.path(), "def").is_empty(), "another gate's");
            let found = gone(folder.path(), GATE);
            assert_eq!(found.iter().map(|gone| gone.id.clone()).collect::<Vec<_>>(), [Some(id)]);
            fs::remove_file(&found[0].path).unwrap();
            // After a day nothing of it holds: it goes, and nobody needs to hear.
            kept(folder.path(), &dead, GATE).unwrap();
            let old = SystemTime::now() - Duration::from_secs(25 * 3600);
            File::open(folder.path().join(dead.file_name(GATE))).unwrap().set_modified(old).unwrap();
            for gate in [GATE, "def"] {
                assert!(matches!(gone(folder.path(), gate).as_slice(), [Gone { id: None, .. }]));
            }
            fs::remove_file(folder.path().join(dead.file_name(GATE))).unwrap();
        }
        assert!(folder.path().join(here.file_name(GATE)).exists());
    }
}
