//! Starts the sandbox and runs lines in it: real bash, nothing else real. Knows nothing of the engine.

use std::collections::BTreeSet;
use std::io::{BufReader, BufWriter, Read, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A program that bash really started.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Started {
    /// The file, where there was one; the name that was looked for otherwise.
    pub program: String,
    pub argv: Vec<String>,
}

#[derive(Clone, Debug)]
pub struct Run {
    pub started: Vec<Started>,
    pub late: bool,
}

#[derive(Debug)]
pub struct Sandbox {
    driver: Child,
    input: BufWriter<ChildStdin>,
    output: BufReader<ChildStdout>,
    root: PathBuf,
}

impl Sandbox {
    /// A root with bash, its libraries and a program of each of these names.
    pub fn start(names: &BTreeSet<String>) -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let root = std::env::temp_dir().join(format!("countersign-oracle-{}-{number}", std::process::id()));
        for folder in ["bin", "dev", "proc", "w", "usr", "lib64"] {
            std::fs::create_dir_all(root.join(folder)).expect("the sandbox's folders can be made");
        }
        for (link, target) in [("tmp", "w/tmp"), ("etc", "w/etc"), ("home", "w/home"), ("usr/bin", "../bin")] {
            symlink(target, root.join(link)).expect("a link can be made");
        }
        symlink("/proc/self/fd", root.join("dev/fd")).expect("a link can be made");
        symlink("/proc/self/fd/0", root.join("dev/stdin")).expect("a link can be made");
        copy_with_libraries(Path::new("/bin/bash"), &root);
        compile(&root);
        for name in names {
            install(&root, name);
        }
        let mut driver = Command::new(root.join("driver"))
            .arg(&root)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the driver starts");
        let input = BufWriter::new(driver.stdin.take().expect("a pipe"));
        let output = BufReader::new(driver.stdout.take().expect("a pipe"));
        let mut sandbox = Self { driver, input, output, root };
        let proof = sandbox.run("ls a; (nowhere 'b c')", 0);
        assert_eq!(proof.started.len(), 2, "the sandbox does not see what bash starts: {proof:?}");
        sandbox
    }

    /// Runs one line, with programs that end with this status.
    pub fn run(&mut self, line: &str, status: u8) -> Run {
        let size = u32::try_from(line.len()).expect("a line is short");
        let asked = self
            .input
            .write_all(&size.to_ne_bytes())
            .and_then(|()| self.input.write_all(&[status]))
            .and_then(|()| self.input.write_all(line.as_bytes()))
            .and_then(|()| self.input.flush());
        let mut head = [0; 5];
        let answered = asked.and_then(|()| self.output.read_exact(&mut head));
        if let Err(error) = answered {
            let ended = self.driver.wait();
            panic!("the sandbox cannot be made here (it needs root and namespaces): {error}, {ended:?}");
        }
        let size = u32::from_ne_bytes([head[0], head[1], head[2], head[3]]);
        let mut log = vec![0; size as usize];
        self.output.read_exact(&mut log).expect("a whole answer");
        Run { started: records(&log), late: head[4] != 0 }
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        let _ = self.driver.kill();
        let _ = self.driver.wait();
        let _ = std::fs::remove_dir_all(&self.root);
    }
}

/// `P<n>` and a file, or `H<n>`, then n arguments, each ended by NUL. A record cut short by a limit is dropped.
fn records(log: &[u8]) -> Vec<Started> {
    let mut fields = log.split(|byte| *byte == 0).map(|field| String::from_utf8_lossy(field).into_owned());
    let mut all = Vec::new();
    while let Some(head) = fields.next() {
        let Some(count) = head.get(1..).and_then(|count| count.parse::<usize>().ok()) else { break };
        let file = if head.starts_with('P') { fields.next() } else { None };
        let argv: Vec<String> = fields.by_ref().take(count).collect();
        if argv.len() < count {
            break;
        }
        let program = file.or_else(|| argv.first().cloned()).unwrap_or_default();
        all.push(Started { program, argv });
    }
    all
}

/// A program of this name: in `/bin` without a folder, where it says with one.
fn install(root: &Path, name: &str) {
    let elsewhere = ["/w", "/tmp", "/etc", "/home", "/dev", "/proc", "/usr/bin"];
    let file = match name.strip_prefix('/') {
        _ if name.split('/').any(|step| step == "..") => return,
        Some(_) if elsewhere.iter().any(|folder| name.starts_with(folder)) => return,
        Some(inside) => root.join(inside),
        None if name.contains('/') || name.starts_with('.') => return,
        None => root.join("bin").join(name),
    };
    if let Some(folder) = file.parent() {
        let _ = std::fs::create_dir_all(folder);
    }
    // A folder that another path needs stays a folder.
    let _ = symlink("/bin/.program", &file);
}

fn copy_with_libraries(program: &Path, root: &Path) {
    std::fs::copy(program, root.join("bin/.bash")).expect("bash can be copied");
    let listed = Command::new("ldd").arg(program).output().expect("ldd runs");
    for word in String::from_utf8_lossy(&listed.stdout).split_whitespace().filter(|word| word.starts_with('/')) {
        let to = root.join(word.trim_start_matches('/'));
        std::fs::create_dir_all(to.parent().expect("a library is in a folder")).expect("a folder can be made");
        std::fs::copy(word, &to).expect("a library can be copied");
    }
}

fn compile(root: &Path) {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/oracle/sandbox.c");
    let program = root.join("bin/.program");
    let built = Command::new("cc").args(["-O1", "-static", "-Wall", "-o"]).arg(&program).arg(source).status();
    assert!(built.is_ok_and(|status| status.success()), "the sandbox needs a C compiler and a static libc");
    std::fs::copy(&program, root.join("driver")).expect("the driver can be copied");
}
