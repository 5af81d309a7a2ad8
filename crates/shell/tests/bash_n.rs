//! Differential parsing: `bash -n` and the engine agree on what is shell syntax, on the corpora, the tricks and
//! generated lines. Every way in which they differ is listed with its reason; a new one fails.
#![expect(clippy::expect_used, clippy::indexing_slicing, reason = "a test stops where it fails")]

#[path = "oracle/generator.rs"]
#[expect(dead_code, reason = "the oracle uses the rest")]
mod generator;
#[path = "oracle/tricks.rs"]
mod tricks;

use std::process::{Command, Stdio};

use countersign_shell::{Options, Risk, assess};

const GENERATED: usize = 800;

#[derive(Debug, PartialEq, Eq)]
enum Bash {
    Reads,
    /// The end of the text ends a heredoc: read, with a warning.
    Warns,
    Refuses,
}

fn bash(line: &str) -> Bash {
    let checked = Command::new("bash")
        .args(["-n", "-c", line])
        .env("LC_ALL", "C.UTF-8")
        .stdin(Stdio::null())
        .output()
        .expect("bash is installed");
    let said = String::from_utf8_lossy(&checked.stderr);
    match checked.status.success() {
        true if said.contains("here-document") => Bash::Warns,
        true => Bash::Reads,
        false => Bash::Refuses,
    }
}

/// Whether a reason fits a line and what the engine said of it.
type Explains = fn(&str, &[String]) -> bool;

/// Why bash may read what the engine refuses. Refusing is the safe side: it asks.
const EXPLAINED: &[(&str, Explains)] = &[
    (
        "braces inside an expansion are expanded first and counted otherwise, so they are refused on purpose",
        |line, _| line.contains(":-{") || line.contains("${{"),
    ),
    ("a line break inside a token joins what looks apart, so it is refused on purpose", |_, codes| {
        codes.iter().any(|code| code == "split_token")
    }),
    ("the old `$[…]` ends at the first bracket even inside an expansion, so only plain ones are read", |line, _| {
        line.contains("$[")
    }),
    ("`bash -n` does not look inside text that is parsed only when it runs", |line, _| {
        ["-c", "eval", "`", "ssh", "alias", "trap", "env -S", "@P", "a[", "<<<", "-W", "xargs", "watch", "[0]", "su "]
            .iter()
            .any(|carrier| line.contains(carrier))
    }),
];

#[test]
fn bash_and_the_engine_agree_on_what_is_syntax() {
    let mut lines = corpora();
    let real = lines.len();
    lines.extend(tricks::TRICKS.iter().map(|trick| (*trick).to_owned()));
    let mut generator = generator::Generator::new(7);
    lines.extend((0..GENERATED).map(|_| generator.line()));
    let mut counts = vec![0usize; EXPLAINED.len()];
    let (mut agreed, mut unexplained) = (0, Vec::new());
    let mut agreed_real = 0;
    for (at, line) in lines.iter().enumerate() {
        let assessment = assess(line, &Options::default());
        let codes: Vec<String> = assessment.reasons.into_iter().map(|reason| reason.code.into_owned()).collect();
        let read =
            !codes.iter().any(|code| matches!(code.as_str(), "unparsable" | "split_token" | "too_deep" | "unshowable"));
        match (bash(line), read) {
            (Bash::Reads, true) | (Bash::Refuses | Bash::Warns, false) => {
                agreed += 1;
                agreed_real += usize::from(at < real);
            }
            (Bash::Reads, false) => match EXPLAINED.iter().position(|(_, explains)| explains(line, &codes)) {
                Some(class) => counts[class] += 1,
                None => unexplained.push(format!("bash reads, the engine refuses: {line:?} {codes:?}")),
            },
            (Bash::Refuses | Bash::Warns, true) => {
                unexplained.push(format!("the engine reads ({:?}), bash refuses: {line:?}", assessment.risk));
            }
        }
    }
    println!("{agreed} of {} agree, {agreed_real} of the {real} in the corpora", lines.len());
    for ((reason, _), count) in EXPLAINED.iter().zip(&counts) {
        println!("{count}: {reason}");
    }
    assert!(unexplained.is_empty(), "{}", unexplained.join("\n"));
    // Generated lines are made of what is refused on purpose; real ones hardly hold any.
    assert!(agreed_real * 1000 >= real * 985, "{agreed_real} of {real}");
    assert!(agreed * 100 > lines.len() * 95, "{agreed} of {}", lines.len());
}

fn corpora() -> Vec<String> {
    let mut lines = Vec::new();
    for name in ["benign_readonly", "bypass", "dangerous", "review", "seed_weaknesses"] {
        let file = format!("{}/tests/corpora/{name}.jsonl", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(file).expect("the corpus is there");
        let rows = text.lines().map(|row| serde_json::from_str::<serde_json::Value>(row).expect("a row is JSON"));
        lines.extend(rows.filter_map(|row| row["command"].as_str().map(str::to_owned)));
    }
    // NUL cannot be given to a program at all.
    lines.retain(|line| !line.contains('\0'));
    lines
}

/// What bash does not read is never safe, whatever the engine makes of it.
#[test]
fn what_bash_refuses_is_never_safe() {
    let mut generator = generator::Generator::new(11);
    let lines: Vec<String> = (0..GENERATED).map(|_| generator.rough_line()).collect();
    let wrong: Vec<&String> = lines
        .iter()
        .filter(|line| assess(line, &Options::default()).risk == Risk::Safe && bash(line) == Bash::Refuses)
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    for line in [
        "ls )",
        "if ls",
        "ls; }",
        "for x in",
        "case x",
        "echo 'a",
        "ls &&",
        "ls | | wc",
        "(ls",
        "{ ls",
        "cat <<E",
        "[[ a",
        "ls ;; wc",
    ] {
        assert_ne!(bash(line), Bash::Reads, "{line}");
        assert_ne!(assess(line, &Options::default()).risk, Risk::Safe, "{line}");
    }
}
