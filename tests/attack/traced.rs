//! What the tables call safe is run under `strace` in a project: every file below the project that a program opens or
//! looks for, and every program there that it starts, must be one that the table says it obeys. A file nobody named is
//! one that an agent can write, and nobody looks at.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use toml::{Table, Value};

use crate::sandbox::{Sandbox, WORK};

/// Programs that read project files. Readers of any file (`cat`, `grep -r`) open what they are told to.
const PROGRAMS: &[&str] = &[
    "git",
    "cargo",
    "rustc",
    "rustdoc",
    "rustup",
    "rustfmt",
    "npm",
    "npx",
    "node",
    "python3",
    "python",
    "pip",
    "make",
    "go",
    "ruby",
    "gem",
    "perl",
    "gcc",
    "cc",
    "g++",
    "clang",
    "java",
    "javac",
    "mvn",
    "gradle",
    "cmake",
    "kubectl",
    "terraform",
    "docker",
    "php",
    "composer",
    "yarn",
    "pnpm",
    "tsc",
    "vim",
    "bash",
    "sqlite3",
    "psql",
    "lua",
];
/// What these files hold is data to all of them.
const DATA: &[&str] = &["a.txt", "x", "src/main.rs"];
/// One file of each kind that some program may obey, so that what is only looked for is opened too.
const PROJECT: &str = r#"
set -e; mkdir -p traced && cd traced && git init -q -b main . && git config user.name a && git config user.email a@example.com
printf 'one\n' >a.txt; printf 'x\n' >x; mkdir -p src .cargo .mvn sub .github .vscode node_modules .config
printf '[package]\nname = "x"\nversion = "0.1.0"\nedition = "2021"\n' >Cargo.toml; printf 'fn main() {}\n' >src/main.rs; touch .cargo/config.toml
printf '{"name":"x","version":"1.0.0"}\n' >package.json; touch .npmrc .nvmrc .node-version .python-version .ruby-version .tool-versions .gitignore .gitattributes .gitmodules .mailmap
printf 'all:\n\ttrue\n' >Makefile; cp Makefile GNUmakefile; printf 'module x\n' >go.mod; touch .mvn/jvm.config .mvn/maven.config sitecustomize.py pyvenv.cfg setup.cfg pyproject.toml .env .envrc .exrc .vimrc .perlrc Gemfile
find . -path ./.git -prune -o -type f -exec touch -d 2001-01-01 {} +; git add -A && git commit -qm one && git status >/dev/null
"#;

/// Which files each program obeys, by the tables: `[[project.files]]` in `projects.toml`, `obeys` in the programs' own.
struct Obeyed {
    files: BTreeMap<String, Vec<String>>,
    by_program: BTreeMap<String, BTreeSet<String>>,
    examples: Vec<String>,
}

fn rules() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../shell/rules")
}

fn strings(value: Option<&Value>) -> Vec<String> {
    match value {
        Some(Value::String(text)) => text.split_whitespace().map(str::to_owned).collect(),
        Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}

fn tables<'a>(table: &'a Table, key: &str) -> impl Iterator<Item = &'a Table> {
    table.get(key).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_table)
}

impl Obeyed {
    fn read() -> Self {
        let mut all = Self { files: BTreeMap::new(), by_program: BTreeMap::new(), examples: Vec::new() };
        let text = std::fs::read_to_string(rules().join("projects.toml")).expect("the tables say what programs obey");
        let projects: Table = toml::from_str(&text).unwrap();
        for project in tables(&projects, "project") {
            let name = project.get("name").and_then(Value::as_str).unwrap().to_owned();
            let paths = tables(project, "files").flat_map(|files| strings(files.get("paths")));
            all.files.entry(name).or_default().extend(paths);
        }
        let mut files: Vec<PathBuf> =
            std::fs::read_dir(rules().join("programs")).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.retain(|file| file.extension().is_some_and(|ending| ending == "toml"));
        files.sort();
        for file in files {
            let table: Table = toml::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
            for program in tables(&table, "program") {
                let names = strings(program.get("names"));
                let parts = || std::iter::once(program).chain(tables(program, "sub"));
                for name in &names {
                    let obeyed = all.by_program.entry(name.clone()).or_default();
                    obeyed.extend(parts().flat_map(|part| strings(part.get("obeys"))));
                }
                if names.iter().any(|name| PROGRAMS.contains(&name.as_str())) {
                    all.examples.extend(parts().flat_map(|part| strings_whole(part.get("match"))));
                    // Whole forms stand for themselves, for every name there is.
                    for form in parts().flat_map(|part| strings_whole(part.get("exact"))) {
                        let known = names.iter().filter(|name| PROGRAMS.contains(&name.as_str()));
                        all.examples.extend(known.map(|name| format!("{name} {form}")));
                    }
                }
            }
        }
        all.examples.sort();
        all.examples.dedup();
        all
    }

    /// Whether the table says that this program looks at this file, relative to the project.
    fn names(&self, program: &str, file: &str) -> bool {
        let projects = self.by_program.get(program).into_iter().flatten();
        projects.filter_map(|project| self.files.get(project)).flatten().any(|named| fits(named, file))
    }
}

fn strings_whole(value: Option<&Value>) -> Vec<String> {
    value.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// A name stands for the file, wherever it lies, and for everything below a folder of that name; `*` for any part.
fn fits(named: &str, file: &str) -> bool {
    let named: Vec<&str> = named.trim_matches('/').trim_end_matches("/**").split('/').collect();
    let parts: Vec<&str> = file.split('/').collect();
    let part = |(pattern, part): (&&str, &&str)| match pattern.split_once('*') {
        Some((before, after)) => {
            part.len() >= before.len() + after.len() && part.starts_with(before) && part.ends_with(after)
        }
        None => pattern == part,
    };
    parts.windows(named.len()).any(|window| named.iter().zip(window).all(part))
}

/// What `strace -y` saw below the project, relative to it: paths of opens and starts.
fn seen(trace: &str, folder: &str) -> BTreeSet<(String, String)> {
    let mut all = BTreeSet::new();
    for line in trace.lines() {
        let Some((head, rest)) = line.split_once('(') else { continue };
        let call = head.rsplit(' ').next().unwrap_or_default();
        if !["open", "openat", "openat2", "execve", "execveat", "readlink", "readlinkat"].contains(&call) {
            continue;
        }
        // A folder that is listed is no file that is obeyed.
        if rest.contains("O_DIRECTORY") {
            continue;
        }
        let Some(path) = rest.split('"').nth(1) else { continue };
        let base =
            rest.split('"').next().and_then(|before| before.split('<').nth(1)).and_then(|base| base.split('>').next());
        let whole = if path.starts_with('/') { path.to_owned() } else { format!("{}/{path}", base.unwrap_or(folder)) };
        let mut steps: Vec<&str> = Vec::new();
        for step in whole.split('/') {
            match step {
                "" | "." => {}
                ".." => drop(steps.pop()),
                step => steps.push(step),
            }
        }
        let whole = format!("/{}", steps.join("/"));
        if let Some(inside) = whole.strip_prefix(&format!("{folder}/")) {
            let what = if call.starts_with("exec") { "starts" } else { "opens" };
            all.insert((what.to_owned(), inside.to_owned()));
        }
    }
    all
}

#[test]
fn safe_examples_open_only_what_the_tables_name() {
    let obeyed = Obeyed::read();
    let mut machine = Sandbox::driver();
    let made = machine.run(WORK, &[], &["bash", "-c", PROJECT]);
    assert_eq!(made.status, 0, "{}", made.output);
    let folder = format!("{WORK}/traced");
    let there = machine.run(
        WORK,
        &[],
        &[
            "bash",
            "-c",
            &format!("for p in {}; do command -v $p >/dev/null && echo $p; done; true", PROGRAMS.join(" ")),
        ],
    );
    let there: BTreeSet<&str> = there.output.lines().collect();
    for needed in ["git", "cargo", "npm", "make", "python3", "strace"] {
        assert!(
            there.contains(needed) || needed == "strace" && crate::tables::installed("strace"),
            "{needed} is not installed"
        );
    }
    let missing: Vec<&&str> = PROGRAMS.iter().filter(|program| !there.contains(**program)).collect();
    println!("not run: {missing:?} are not installed");
    const TRACED: &str = "timeout 6 strace -f --seccomp-bpf -y -qq -s 4096 -e trace=open,openat,openat2,execve,execveat,chdir -o /tmp/trace bash -c \"$0\" >/dev/null 2>&1; cat /tmp/trace";
    let (mut ran, mut wrong) = (0, BTreeMap::<String, BTreeSet<String>>::new());
    for example in &obeyed.examples {
        let program = example.split(' ').next().unwrap_or_default();
        if !there.contains(program) {
            continue;
        }
        let left = machine.run(&folder, &[], &["bash", "-c", TRACED, example]);
        assert!(left.output.contains("execve("), "{example}: {}", left.output);
        ran += 1;
        let words: Vec<&str> = example.split([' ', '=', '\'']).map(|word| word.trim_start_matches("./")).collect();
        for (what, file) in seen(&left.output, &folder) {
            let told =
                words.iter().any(|word| *word == file || file.starts_with(&format!("{word}/")) && !word.is_empty());
            if told || DATA.contains(&file.as_str()) || obeyed.names(program, &file) {
                continue;
            }
            wrong.entry(format!("{program} {what} {file}")).or_default().insert(example.clone());
        }
    }
    println!("{ran} examples traced");
    assert!(ran > 60, "{ran} examples are too few to prove anything");
    let told = |(what, examples): (&String, &BTreeSet<String>)| {
        let shown: Vec<&str> = examples.iter().map(String::as_str).take(3).collect();
        format!("{what} (`{}`, {} in all)", shown.join("`, `"), examples.len())
    };
    let told: Vec<String> = wrong.iter().map(told).collect();
    assert!(told.is_empty(), "no table names what {} do:\n{}", told.len(), told.join("\n"));
}

#[test]
fn names_of_files_stand_for_what_is_below_them() {
    assert!(
        fits(".git", ".git/config")
            && fits(".cargo/config.toml", "sub/.cargo/config.toml")
            && fits("*.mk", "a.mk")
            && fits(".git/**", ".git/x/y")
    );
    assert!(!fits(".git", ".gitignore") && !fits(".cargo/config.toml", ".cargo/config") && !fits("Makefile", "a.txt"));
    let trace = "7 openat(AT_FDCWD</p>, \"sub/../x\", O_RDONLY) = 3</p/x>\n7 execve(\"/p/e\", [\"e\"], 0x0) = 0\n7 openat(AT_FDCWD</q>, \"y\", O_RDONLY) = -1 ENOENT";
    let found = seen(trace, "/p");
    assert_eq!(found, BTreeSet::from([("opens".to_owned(), "x".to_owned()), ("starts".to_owned(), "e".to_owned())]));
}
