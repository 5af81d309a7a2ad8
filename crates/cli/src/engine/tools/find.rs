//! Glob and Grep, on the crates that ripgrep is made of: what is ignored is passed over, and no pattern takes longer
//! than the text it looks at. Files are opened inside the workspace only, whatever the walk came upon.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use globset::{GlobBuilder, GlobMatcher};
use grep_matcher::Matcher as _;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkMatch};
use ignore::WalkBuilder;

use super::super::confine::{Confined, Links};
use super::{GlobArgs, GrepArgs, GrepMode};

const MAX_FOUND: usize = 1_000;
const MAX_TOLD: usize = 256 * 1024;
/// Of one line that matches.
const MAX_LINE: usize = 500;
const PATIENCE: Duration = Duration::from_secs(20);
/// A pattern that would need more is a mistake or a trap.
const MAX_PATTERN: usize = 4 * 1024 * 1024;
/// The longest line that is searched.
const MAX_HEAP: usize = 16 * 1024 * 1024;

pub fn glob(workspace: &Confined, args: &GlobArgs) -> Result<String, String> {
    let matcher = compile(&args.pattern)?;
    let (mut found, mut more) = (Vec::new(), false);
    let cut_short = walk(workspace, args.path.as_deref(), &mut |relative, below| {
        if !matcher.is_match(below) && !matcher.is_match(relative) {
            return true;
        }
        more = found.len() >= MAX_FOUND;
        if !more {
            found.push(relative.to_owned());
        }
        !more
    })?;
    found.sort();
    let mut told: String = found.iter().map(|path: &PathBuf| format!("{}\n", path.display())).collect();
    if found.is_empty() {
        told.push_str("no file matches\n");
    }
    if more || cut_short {
        told.push_str("[there may be more; make the pattern narrower]\n");
    }
    Ok(told)
}

fn compile(pattern: &str) -> Result<GlobMatcher, String> {
    let built = GlobBuilder::new(pattern).literal_separator(true).build();
    built.map(|glob| glob.compile_matcher()).map_err(|error| format!("`pattern` is no glob: {error}"))
}

/// Calls `visit` for each file, by its name from the workspace and from where the walk began, until it says no. Whether
/// the time ran out.
fn walk(workspace: &Confined, from: Option<&str>, visit: &mut dyn FnMut(&Path, &Path) -> bool) -> Result<bool, String> {
    let start = from.map(|path| workspace.relative(path)).transpose()?.unwrap_or_default();
    let root = workspace.path().join(&start);
    // The start itself may be no link out.
    let flags = rustix::fs::OFlags::PATH;
    workspace
        .open_at(&start, flags, rustix::fs::Mode::empty(), Links::None)
        .map_err(|error| format!("`{}` cannot be looked through: {error}", start.display()))?;
    let until = Instant::now() + PATIENCE;
    let mut walker = WalkBuilder::new(&root);
    // Ignore files count without a repository too, but none from outside the workspace.
    walker.hidden(false).require_git(false).parents(false).git_global(false).follow_links(false);
    walker.filter_entry(|entry| entry.file_name() != ".git");
    for entry in walker.build() {
        if Instant::now() > until {
            return Ok(true);
        }
        let Ok(entry) = entry else { continue };
        if !entry.file_type().is_some_and(|kind| kind.is_file()) {
            continue;
        }
        let Ok(relative) = entry.path().strip_prefix(workspace.path()) else { continue };
        let below = entry.path().strip_prefix(&root).unwrap_or(relative);
        if workspace.relative(&relative.to_string_lossy()).is_ok() && !visit(relative, below) {
            return Ok(false);
        }
    }
    Ok(false)
}

pub fn grep(workspace: &Confined, args: &GrepArgs) -> Result<String, String> {
    let matcher = RegexMatcherBuilder::new()
        .case_insensitive(args.ignore_case)
        .size_limit(MAX_PATTERN)
        .dfa_size_limit(MAX_PATTERN)
        .line_terminator(Some(b'\n'))
        .build(&args.pattern)
        .map_err(|error| format!("`pattern` is no regular expression that can be searched for: {error}"))?;
    let glob = args.glob.as_deref().map(compile).transpose()?;
    let mut searcher = SearcherBuilder::new()
        .line_number(true)
        .binary_detection(BinaryDetection::quit(0))
        .heap_limit(Some(MAX_HEAP))
        .build();
    let mut told = Told { args, text: String::new(), rows: 0, until: Instant::now() + PATIENCE };
    let mut search = |relative: &Path, below: &Path| {
        let named =
            |glob: &GlobMatcher| glob.is_match(below) || below.file_name().is_some_and(|name| glob.is_match(name));
        if glob.as_ref().is_none_or(named) {
            search_file(workspace, relative, &matcher, &mut searcher, &mut told);
        }
        !told.is_full()
    };
    let start = args.path.as_deref().map(|path| workspace.relative(path)).transpose()?;
    let single = start.as_deref().filter(|path| workspace.file(path, Links::Inside).is_ok());
    let cut_short = match single {
        Some(file) => {
            search(file, file);
            false
        }
        None => walk(workspace, args.path.as_deref(), &mut search)?,
    };
    if told.is_full() || cut_short {
        told.text.push_str("[there may be more; narrow the search]\n");
    } else if told.text.is_empty() {
        told.text.push_str("nothing matches\n");
    }
    Ok(told.text)
}

struct Told<'a> {
    args: &'a GrepArgs,
    text: String,
    rows: usize,
    until: Instant,
}

impl Told<'_> {
    fn is_full(&self) -> bool {
        let limit = self.args.head_limit.unwrap_or(MAX_FOUND);
        self.rows >= limit || self.text.len() >= MAX_TOLD || Instant::now() > self.until
    }

    fn row(&mut self, text: &str) {
        self.rows += 1;
        self.text.push_str(text);
        self.text.push('\n');
    }
}

fn search_file(
    workspace: &Confined,
    relative: &Path,
    matcher: &RegexMatcher,
    searcher: &mut Searcher,
    told: &mut Told<'_>,
) {
    let Ok(file) = workspace.file(relative, Links::Inside) else { return };
    let mut lines = Lines { told, matcher, name: relative.display().to_string(), count: 0 };
    // A line that is too long to search ends the search of this file, not of the others.
    let _ = searcher.search_file(matcher, &file, &mut lines);
    let count = lines.count;
    let name = lines.name;
    match told.args.output_mode {
        GrepMode::FilesWithMatches if count > 0 => told.row(&name),
        GrepMode::Count if count > 0 => told.row(&format!("{name}:{count}")),
        GrepMode::FilesWithMatches | GrepMode::Count | GrepMode::Content => {}
    }
}

struct Lines<'l, 'a> {
    told: &'l mut Told<'a>,
    matcher: &'l RegexMatcher,
    name: String,
    count: u64,
}

impl Sink for Lines<'_, '_> {
    type Error = std::io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, std::io::Error> {
        self.count += 1;
        match self.told.args.output_mode {
            GrepMode::FilesWithMatches => return Ok(false),
            GrepMode::Count => {}
            GrepMode::Content => {
                let line = String::from_utf8_lossy(shown(found.bytes(), self.matcher)).trim_end().to_owned();
                let number = found.line_number().filter(|_| self.told.args.line_numbers);
                let number = number.map(|number| format!("{number}:")).unwrap_or_default();
                self.told.row(&format!("{}:{number}{line}", self.name));
            }
        }
        Ok(!self.told.is_full())
    }
}

/// Of a long line the part with the match.
fn shown<'b>(line: &'b [u8], matcher: &RegexMatcher) -> &'b [u8] {
    if line.len() <= MAX_LINE {
        return line;
    }
    let at = matcher.find(line).ok().flatten().map_or(0, |found| found.start().saturating_sub(MAX_LINE / 4));
    let rest = line.get(at..).unwrap_or_default();
    rest.get(..MAX_LINE).unwrap_or(rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::fs;

    fn place() -> (tempfile::TempDir, Confined) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        fs::create_dir_all(path.join("src/deep")).unwrap();
        fs::create_dir_all(path.join(".git")).unwrap();
        fs::create_dir_all(path.join("target")).unwrap();
        for (file, text) in [
            ("src/a.rs", "fn one() {}\nfn two() {}\n"),
            ("src/deep/b.rs", "FN three\n"),
            ("target/c.rs", "fn built() {}\n"),
            (".git/config", "fn\n"),
            (".gitignore", "target\n"),
            ("n.txt", "fn text\n"),
        ] {
            fs::write(path.join(file), text).unwrap();
        }
        std::os::unix::fs::symlink("/etc", path.join("etc")).unwrap();
        let workspace = Confined::open(path, None).unwrap();
        (folder, workspace)
    }

    fn globbed(workspace: &Confined, args: serde_json::Value) -> Result<String, String> {
        glob(workspace, &serde_json::from_value(args).unwrap())
    }

    fn grepped(workspace: &Confined, args: serde_json::Value) -> Result<String, String> {
        grep(workspace, &serde_json::from_value(args).unwrap())
    }

    #[test]
    fn globs_pass_over_what_is_ignored_and_what_is_outside() {
        let (_folder, workspace) = place();
        assert_eq!(globbed(&workspace, json!({"pattern": "**/*.rs"})).unwrap(), "src/a.rs\nsrc/deep/b.rs\n");
        assert_eq!(globbed(&workspace, json!({"pattern": "*.rs"})).unwrap(), "no file matches\n");
        assert_eq!(globbed(&workspace, json!({"pattern": "*.rs", "path": "src"})).unwrap(), "src/a.rs\n");
        assert_eq!(globbed(&workspace, json!({"pattern": "etc/**"})).unwrap(), "no file matches\n");
        for bad in
            [json!({"pattern": "*", "path": "etc"}), json!({"pattern": "*", "path": ".."}), json!({"pattern": "a["})]
        {
            assert!(globbed(&workspace, bad.clone()).is_err(), "{bad}");
        }
    }

    #[test]
    fn grep_tells_files_lines_and_counts() {
        let (_folder, workspace) = place();
        let told = |args| grepped(&workspace, args).unwrap();
        let mut files: Vec<String> = told(json!({"pattern": "fn"})).lines().map(str::to_owned).collect();
        files.sort();
        assert_eq!(files, ["n.txt", "src/a.rs"]);
        let content = told(json!({"pattern": "fn", "glob": "*.rs", "-i": true, "-n": true, "output_mode": "content"}));
        assert!(
            content.contains("src/a.rs:2:fn two() {}\n") && content.contains("src/deep/b.rs:1:FN three\n"),
            "{content}"
        );
        assert_eq!(told(json!({"pattern": "fn", "path": "src/a.rs", "output_mode": "count"})), "src/a.rs:2\n");
        let cut = told(json!({"pattern": "fn", "path": "src", "output_mode": "content", "head_limit": 1}));
        assert_eq!(cut.lines().count(), 2, "{cut}");
        assert_eq!(told(json!({"pattern": "nowhere"})), "nothing matches\n");
        assert!(grepped(&workspace, json!({"pattern": "("})).is_err());
        assert!(grepped(&workspace, json!({"pattern": "root", "path": "etc"})).is_err());
    }

    #[test]
    fn threat_34_a_pattern_made_to_be_slow_is_refused_or_quick() {
        let (_folder, workspace) = place();
        fs::write(workspace.path().join("as"), "a".repeat(1_000_000) + "b\n").unwrap();
        let started = Instant::now();
        assert!(grepped(&workspace, json!({"pattern": "(a{1000}){1000}{1000}"})).is_err());
        for pattern in ["(a+)+$", "(a|a)*c", "(.*)*x", "(a|aa)+$"] {
            assert_eq!(grepped(&workspace, json!({"pattern": pattern, "path": "as"})).unwrap(), "nothing matches\n");
        }
        assert!(started.elapsed() < Duration::from_secs(15), "{:?}", started.elapsed());
    }
}
