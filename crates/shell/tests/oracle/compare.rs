//! Whether what bash started is what the engine said. Owns the claim, not the running.

use countersign_shell::{Assessment, Dynamic, Options, Risk, Simple, Source, Value, Word, assess};

use crate::sandbox::Started;

/// Reasons by which the engine says that it does not know all that will run.
const UNKNOWN: &[&str] = &[
    "unparsable",
    "split_token",
    "too_deep",
    "unshowable",
    "dynamic_code",
    "input_as_code",
    "startup_files",
    "control_character",
    "uninspectable",
    "pipe_into_shell",
    "prompt_runs_command",
    "script_from_output",
    // Text that is not known is evaluated: a file's name, what is read.
    "evaluated_unknown",
    "runs_programs",
];
/// Reasons by which it says that a name does not mean what it says: only the program is held against it.
const RENAMED: &[&str] = &["shadowing", "shadowed", "shell_state", "mapfile_callback"];

/// What the engine says of a line.
#[derive(Debug)]
pub struct Said {
    assessment: Assessment,
    /// That it does not know all of it.
    unknown: bool,
    renamed: bool,
}

impl Said {
    pub fn of(line: &str) -> Self {
        let assessment = assess(line, &Options::default());
        let says = |codes: &[&str]| assessment.reasons.iter().any(|reason| codes.contains(&&*reason.code));
        let safe = assessment.risk == Risk::Safe;
        let unknown = !safe && (says(UNKNOWN) || assessment.commands.iter().any(runs_file));
        let renamed = !safe && says(RENAMED);
        Self { assessment, unknown, renamed }
    }

    pub fn is_safe(&self) -> bool {
        self.assessment.risk == Risk::Safe
    }

    /// What was started and not said, if anything.
    pub fn lacks(&self, started: &[Started]) -> Option<String> {
        if self.unknown {
            return None;
        }
        let said = |one: &Started| self.assessment.commands.iter().any(|simple| fits(simple, one, self.renamed));
        // Bash 5.2 prints `coproc x` inside a substitution as `coproc COPROC x` and then runs that.
        let missed = started.iter().find(|one| one.program != "COPROC" && !said(one))?;
        Some(format!("{:?} started {missed:?}, the engine said {}", self.assessment.risk, listed(&self.assessment)))
    }
}

/// `sh x`, `. x`: what is in the file is not in the text.
fn runs_file(simple: &Simple) -> bool {
    let Some((program, words)) = simple.argv.split_first() else { return false };
    let name = program.known().and_then(|name| name.rsplit('/').next()).unwrap_or_default();
    matches!(name, "sh" | "bash" | "." | "source") && words.first().is_some_and(|word| !word.picture().starts_with('-'))
}

fn listed(assessment: &Assessment) -> String {
    let commands: Vec<String> = assessment
        .commands
        .iter()
        .map(|simple| simple.argv.iter().map(Word::picture).collect::<Vec<String>>().join(" "))
        .collect();
    let codes: Vec<&str> = assessment.reasons.iter().map(|reason| &*reason.code).collect();
    format!("{commands:?} {codes:?}")
}

fn fits(simple: &Simple, started: &Started, renamed: bool) -> bool {
    let Some((program, words)) = simple.argv.split_first() else { return false };
    let Some(name) = program.known() else { return true };
    let same = name == started.program
        || started.argv.first().is_some_and(|typed| typed == name)
        || (name.starts_with("./") && started.program.ends_with(name.trim_start_matches('.')))
        || (!name.contains('/') && started.program.rsplit('/').next() == Some(name));
    let arguments: Vec<&str> = started.argv.iter().skip(1).map(String::as_str).collect();
    same && (renamed || simple.more_arguments || matches(words, &arguments))
}

/// Whether these words can have become these arguments.
fn matches(words: &[Word], arguments: &[&str]) -> bool {
    let Some((word, rest)) = words.split_first() else { return arguments.is_empty() };
    match &word.value {
        Value::Known(text) => arguments.split_first().is_some_and(|(first, others)| {
            (text == first || (text.contains('~') && is_home(text, first))) && matches(rest, others)
        }),
        Value::Glob(_) => (1..=arguments.len()).any(|taken| matches(rest, &arguments[taken..])),
        Value::Dynamic(dynamic) => (0..=arguments.len())
            .any(|taken| could_be(dynamic, &arguments[..taken]) && matches(rest, &arguments[taken..])),
    }
}

fn is_home(text: &str, argument: &str) -> bool {
    argument.ends_with(text.split_once('/').map_or("", |(_, rest)| rest))
}

fn could_be(dynamic: &Dynamic, arguments: &[&str]) -> bool {
    let pattern = |text: &str| text.contains(['*', '?', '[']);
    if pattern(&dynamic.prefix) || pattern(&dynamic.suffix) {
        return true;
    }
    // `"$@"` and `"${a[@]}"` are any number of words, quoted or not; `<()` is none when no process can be had.
    let several = dynamic.splits
        || dynamic
            .sources
            .iter()
            .any(|s| matches!(s, Source::Positional | Source::Variable(_) | Source::Indirect | Source::Process));
    match arguments {
        [] => several && dynamic.prefix.is_empty() && dynamic.suffix.is_empty(),
        [one] => one.starts_with(dynamic.prefix.as_str()) && one.ends_with(dynamic.suffix.as_str()),
        [first, .., last] => {
            several && first.starts_with(dynamic.prefix.as_str()) && last.ends_with(dynamic.suffix.as_str())
        }
    }
}
