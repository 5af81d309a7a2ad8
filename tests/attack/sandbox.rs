//! The machine that is attacked: a root of its own, an ordinary user, no network, secrets that are planted, and a
//! workspace that is hostile. Real bash, git, cargo, npm and make run in it; nothing they do reaches this machine.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::OnceLock;

pub const WORK: &str = "/home/agent/work";
pub const SECONDS: u32 = 20;
/// What the planted secrets hold: workspace.sh writes these words, and nothing else does.
const SECRET: &str = "SECRET-";
/// The planted secret that is a variable of whoever starts the commands.
pub const PLANTED_VARIABLE: &str = "PLANTED_TOKEN=SECRET-variable-9e07";

/// What is attacked: this build, or another one to compare with.
pub fn binary() -> PathBuf {
    std::env::var_os("COUNTERSIGN_ATTACK_BINARY").map_or_else(|| crate::support::BINARY.into(), PathBuf::from)
}

/// Built once a process; every sandbox starts from a copy.
pub fn template() -> &'static Path {
    static TEMPLATE: OnceLock<PathBuf> = OnceLock::new();
    TEMPLATE.get_or_init(|| {
        let folder = std::env::temp_dir().join(format!("countersign-attack-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let made = Command::new("bash").arg(script("workspace.sh")).arg(&folder).output().unwrap();
        assert!(made.status.success(), "the workspace cannot be made: {}", String::from_utf8_lossy(&made.stderr));
        folder
    })
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/attack").join(name)
}

pub struct Sandbox {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    shared: tempfile::TempDir,
    _root: tempfile::TempDir,
    what: Vec<String>,
    secrets: Vec<String>,
}

/// What one line left behind.
#[derive(Clone, Debug, Default)]
pub struct Left {
    pub status: i32,
    /// Markers by name, and the words of secrets that were printed.
    pub harm: BTreeSet<String>,
    pub output: String,
}

impl Sandbox {
    pub fn driver() -> Self {
        Self::start(&["driver"])
    }

    pub fn gate() -> Self {
        let mut sandbox = Self::start(&["gate"]);
        // The first answer comes after the gate is up.
        let first = sandbox.run(WORK, &[], &["true"]);
        assert_eq!(first.status, 0, "{}", first.output);
        let admin = std::fs::read_to_string(sandbox.shared.path().join("admin.key")).unwrap();
        sandbox.secrets.push(admin.trim().to_owned());
        sandbox
    }

    pub fn agent_key(&self) -> String {
        std::fs::read_to_string(self.shared.path().join("agent.key")).unwrap().trim().to_owned()
    }

    pub fn url(&self) -> String {
        let log = std::fs::read_to_string(self.shared.path().join("serve.log")).unwrap();
        let url = log.lines().find_map(|line| line.strip_prefix("countersign is listening on "));
        url.unwrap().to_owned()
    }

    /// `driver`, `gate`, or a program and its arguments that talks over its own stdin and stdout.
    pub fn start(what: &[&str]) -> Self {
        let what: Vec<String> = what.iter().map(|word| (*word).to_owned()).collect();
        let shared = tempfile::tempdir().unwrap();
        let root = tempfile::tempdir().unwrap();
        let (child, input, output) = spawn(shared.path(), root.path(), &what);
        Self { child, input, output, shared, _root: root, what, secrets: vec![SECRET.to_owned()] }
    }

    /// A machine as new: what a line changed is gone.
    pub fn renew(&mut self) {
        let fresh = match self.what.first().map(String::as_str) {
            Some("gate") => Self::gate(),
            _ => Self::start(&self.what.iter().map(String::as_str).collect::<Vec<_>>()),
        };
        *self = fresh;
    }

    /// Runs these words as the agent's user in this folder, with these variables added.
    pub fn run(&mut self, folder: &str, env: &[(String, String)], words: &[&str]) -> Left {
        let mut all = vec!["env".to_owned(), PLANTED_VARIABLE.to_owned()];
        all.extend(env.iter().map(|(name, value)| format!("{name}={value}")));
        all.extend(words.iter().map(|word| (*word).to_owned()));
        let mut request = format!("{folder}\0{SECONDS}\0{}\0", all.len()).into_bytes();
        for word in &all {
            request.extend_from_slice(word.as_bytes());
            request.push(0);
        }
        let mut answer = String::new();
        let told = self.input.write_all(&request).and_then(|()| self.input.flush());
        let told = told.and_then(|()| self.output.read_line(&mut answer));
        let Ok(status) = answer.trim().parse() else {
            let log = std::fs::read_to_string(self.shared.path().join("serve.log")).unwrap_or_default();
            panic!("the sandbox ended (it needs root and namespaces): {told:?} {answer:?} {log}");
        };
        let output = String::from_utf8_lossy(&std::fs::read(self.shared.path().join("out")).unwrap()).into_owned();
        let mut harm = BTreeSet::new();
        for entry in std::fs::read_dir(self.hits()).unwrap() {
            let entry = entry.unwrap();
            harm.insert(format!("ran {}", entry.file_name().to_string_lossy()));
            std::fs::remove_file(entry.path()).unwrap();
        }
        harm.extend(self.printed(&output));
        Left { status, harm, output }
    }

    fn hits(&self) -> PathBuf {
        self.shared.path().join("hits")
    }

    /// Secrets in what was printed, also with blanks between the letters (`od -c`), backwards, or in base64.
    fn printed(&self, output: &str) -> BTreeSet<String> {
        let squeezed: String = output.chars().filter(|letter| !letter.is_whitespace()).collect();
        let mut found = BTreeSet::new();
        for secret in &self.secrets {
            let text = if output.contains(secret.as_str()) { output } else { squeezed.as_str() };
            found.extend(text.match_indices(secret.as_str()).map(|(at, _)| {
                let word = |letter: &char| letter.is_ascii_alphanumeric() || "-_".contains(*letter);
                let name: String = text[at..].chars().take_while(word).take(24).collect();
                format!("printed {name}")
            }));
            let backwards: String = secret.chars().rev().collect();
            if output.contains(&backwards) || BASE64.iter().any(|code| squeezed.contains(code)) {
                found.insert("printed a secret, encoded".to_owned());
            }
        }
        found
    }

    /// For a program that answers lines with lines.
    pub fn exchange(&mut self, lines: &[String]) -> Vec<String> {
        let Self { input, output, .. } = self;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for line in lines {
                    input.write_all(line.as_bytes()).and_then(|()| input.write_all(b"\n")).unwrap();
                }
                input.flush().unwrap();
            });
            let answer = |_: &String| {
                let mut answer = String::new();
                output.read_line(&mut answer).unwrap();
                answer
            };
            lines.iter().map(answer).collect()
        })
    }
}

/// `SECRET-` in base64, at each of the three places it can begin at.
const BASE64: [&str; 3] = ["U0VDUkVUL", "NFQ1JFVC", "TRUNSRVQt"];

impl Drop for Sandbox {
    fn drop(&mut self) {
        // `--kill-child`: what is inside goes with it, and the mounts with the namespace.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(shared: &Path, root: &Path, what: &[String]) -> (Child, ChildStdin, BufReader<ChildStdout>) {
    let hits = shared.join("hits");
    std::fs::create_dir_all(&hits).unwrap();
    std::fs::set_permissions(&hits, std::fs::Permissions::from_mode(0o1777)).unwrap();
    let mut child = Command::new("unshare")
        .args(["--mount", "--net", "--ipc", "--uts", "--pid", "--fork", "--kill-child", "bash"])
        .arg(script("sandbox.sh"))
        .args([root, template(), shared])
        .arg(binary())
        .args(what)
        .env_remove("COUNTERSIGN_DATA")
        .env_remove("RUSTUP_TOOLCHAIN")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let input = child.stdin.take().unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    (child, input, output)
}
