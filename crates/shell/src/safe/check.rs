//! What a table of options cannot say of a program: scripts, expressions, and forms that depend on the operands.

use super::args::{Args, Piece};
use super::rows::{Check, Grammar, Operands};
use super::table::Of;
use super::{Told, awk, environment, fed_by_listers, jq, paths, sed};
use crate::command::Simple;
use crate::word::{Source, Value, Word};

/// Fine, or the code and the reason.
pub(super) type Verdict = Result<(), (&'static str, &'static str)>;

pub(super) fn run(simple: &Simple, grammar: Of<'_, Grammar>, args: &Args<'_>, word: &Word, told: &mut Told<'_>) {
    match grammar.check {
        Check::None => {}
        Check::Group => told.say("unknown_subcommand", "without a read-only subcommand", word.span),
        Check::Tar => tar(args, told),
        Check::Less => less(args, told),
        Check::Lsof => forbid(args, '@', ("network", "asks the name servers for a host"), told),
        Check::NpmConfig => npm_config(args, told),
        Check::Binutils => forbid(args, '@', ("sensitive_path", "`@file` reads options from a file"), told),
        Check::Sysctl => {
            forbid(args, '=', ("changes_system", "`name=value` sets instead of showing"), told);
            forbid(args, '/', ("sensitive_path", "a path instead of a name"), told);
        }
        Check::Sed => scripts(grammar, args, word, &["-e", "--expression"], sed::script, told),
        Check::Awk => scripts(grammar, args, word, &["-e", "--source"], awk::program, told),
        Check::Jq => scripts(grammar, args, word, &[], jq::filter, told),
        Check::Yq => yq(grammar, args, word, told),
        Check::Find => find(simple, args, word, told),
        Check::Test => test(simple, args, told),
        Check::Ps => ps(args, told),
        Check::Printenv => printenv(args, word, told),
        Check::GitConfig => git_config(args, told),
        Check::Kubectl => kubectl(args, told),
        Check::Set => set(args, word, told),
        Check::Cd => cd(args, told),
        Check::Printf => printf(args, told),
        Check::Bat => bat(args, told),
        Check::Compress => compress(args, word, told),
        Check::Search => search(args, told),
        Check::Fd => fd(args, told),
        Check::Gh => gh(args, told),
        Check::GitSettings => git_settings(args, told),
        Check::GoModules => forbid(args, '@', ("network", "asks for a module on the network"), told),
        Check::Local => local(args, told),
        Check::Inspect => inspect(args, told),
    }
}

/// Whether arguments that come at run time can only be more of the same.
pub(super) fn takes_more(simple: &Simple, grammar: Of<'_, Grammar>, args: &Args<'_>) -> bool {
    let given = match grammar.operands {
        Operands::None | Operands::Variables | Operands::Format => false,
        Operands::Text | Operands::Words | Operands::Names => true,
        Operands::Paths | Operands::Revisions => fed_by_listers(&simple.stdin),
        Operands::Pattern | Operands::Script => {
            let has_pattern = args.has_any(grammar.words(grammar.pattern_options))
                || args.operands.first().is_some_and(|piece| piece.text != Some("{}"));
            has_pattern && fed_by_listers(&simple.stdin)
        }
    };
    given && grammar.max == u8::MAX && (grammar.harmless || args.ended)
}

/// Every script that is given, joined as the program joins them.
fn scripts(
    grammar: Of<'_, Grammar>,
    args: &Args<'_>,
    word: &Word,
    options: &[&str],
    judge: fn(&str) -> Verdict,
    told: &mut Told<'_>,
) {
    let mut pieces: Vec<Piece<'_>> = args
        .options
        .iter()
        .filter(|given| options.iter().any(|option| given.key.is(option)))
        .filter_map(|given| given.value)
        .collect();
    if pieces.is_empty() && !args.has_any(grammar.words(grammar.pattern_options)) {
        match args.operands.first() {
            Some(piece) => pieces.push(*piece),
            None => return,
        }
    }
    let mut whole = String::new();
    for piece in &pieces {
        match text_of(*piece) {
            Some(text) => {
                whole.push_str(&text);
                whole.push('\n');
            }
            None => {
                told.say("dynamic_script", "a script that depends on run time", piece.word.span);
                return;
            }
        }
    }
    if let Err((code, reason)) = judge(&whole) {
        let span = pieces.first().map_or(word.span, |piece| piece.word.span);
        told.say(code, reason, span);
    }
}

/// The text of a piece; a number that is only known at run time reads as some number.
fn text_of(piece: Piece<'_>) -> Option<String> {
    if let Some(text) = piece.text {
        return Some(text.to_owned());
    }
    let Value::Dynamic(dynamic) = &piece.word.value else { return None };
    let number = match dynamic.sources.as_slice() {
        [Source::Number] => true,
        [Source::OneOf(values)] => {
            values.iter().all(|value| !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()))
        }
        _ => false,
    };
    number.then(|| format!("{}1{}", dynamic.prefix, dynamic.suffix))
}

fn find(simple: &Simple, args: &Args<'_>, word: &Word, told: &mut Told<'_>) {
    // Everything below a home or the root, unfiltered, is for feeding to something else.
    const AIMED: [&str; 13] = [
        "-name",
        "-iname",
        "-path",
        "-ipath",
        "-wholename",
        "-regex",
        "-iregex",
        "-maxdepth",
        "-size",
        "-mtime",
        "-newer",
        "-perm",
        "-user",
    ];
    let aimed = args.has_any(AIMED.into_iter());
    for piece in args.operands.iter().filter(|piece| !matches!(piece.text, Some("(" | ")" | "!" | ","))) {
        let touch = if aimed { paths::Touch::Names } else { paths::Touch::Tree };
        told.path(*piece, touch);
    }
    if !aimed && args.operands.is_empty() {
        told.here(word.span, paths::Touch::Tree);
    }
    // What is found is handed to a program that may show it.
    let carries = simple.argv.iter().any(|word| matches!(word.known(), Some("-exec" | "-execdir" | "-ok" | "-okdir")));
    let aims = if carries { paths::Touch::Contents } else { paths::Touch::Names };
    for given in &args.options {
        let regex = ["-regex", "-iregex"].iter().any(|option| given.key.is(option));
        if let Some(value) = given.value
            && regex
        {
            let plain = value.text.map(|text| text.replace(['\\', '^', '$'], ""));
            let last = plain.as_deref().map(|text| text.rsplit('/').next().unwrap_or(text));
            told.path(Piece { word: value.word, text: last }, aims);
        }
        let named = ["-name", "-iname", "-path", "-ipath", "-wholename"].iter().any(|option| given.key.is(option));
        if let Some(value) = given.value
            && named
        {
            told.path(value, aims);
            // `find /etc -name shadow`: neither is secret without the other.
            for root in args.operands.iter().filter_map(|piece| piece.text) {
                let text = format!("{root}/{}", value.text.unwrap_or_default());
                told.path(Piece { word: value.word, text: Some(&text) }, paths::Touch::Names);
            }
        }
    }
}

/// `-v` and `-R` take a name and evaluate its subscript; arithmetic in `[[ ]]` does the same.
fn test(simple: &Simple, args: &Args<'_>, told: &mut Told<'_>) {
    let double = simple.argv.first().and_then(Word::known) == Some("[[");
    let words = &args.operands;
    if !double {
        adds_words(simple, told);
    }
    for (at, piece) in words.iter().enumerate() {
        let next = words.get(at + 1);
        let before = at.checked_sub(1).and_then(|at| words.get(at));
        let operator = piece.text.unwrap_or("");
        let evaluated: [Option<&Piece<'_>>; 2] = match operator {
            "-v" | "-R" => [next, None],
            "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge" if double => [before, next],
            _ => continue,
        };
        for piece in evaluated.into_iter().flatten() {
            let plain = match (&piece.word.value, piece.text) {
                (_, Some(text)) => {
                    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'+'))
                }
                (Value::Dynamic(dynamic), None) => dynamic.sources.iter().all(|source| match source {
                    Source::Number => true,
                    Source::OneOf(values) => values.iter().all(|value| !value.contains(['[', '*', '?'])),
                    Source::BoundedOutput
                    | Source::Names
                    | Source::Variable(_)
                    | Source::Positional
                    | Source::Output
                    | Source::Process
                    | Source::Indirect => false,
                }),
                _ => false,
            };
            if !plain {
                told.say("runs_programs", "a subscript that is evaluated can run commands", piece.word.span);
            }
        }
    }
}

/// `%G?` and `%(signature)` run the signature program that is configured. A path may stand behind a revision, a stage, a
/// range of lines or the magic of a pathspec.
pub(super) fn git_formats(words: &[Word], told: &mut Told<'_>) {
    for word in words {
        let text = word.picture();
        let path = text.rsplit([':', ')', '!', '^']).next().filter(|path| path.len() < text.len());
        if let Some(path) = path.or(text.starts_with(':').then_some(&*text)) {
            told.path(Piece { word, text: Some(path.trim_start_matches('/')) }, paths::Touch::Contents);
        }
        let chosen_later = text.starts_with("--format") || text.starts_with("--pretty");
        if text.contains("%G") || text.contains("%(signature") || (chosen_later && has_unknown_text(word)) {
            told.say(
                "runs_programs",
                "`%G` and `%(signature)` run the signature program that is configured",
                word.span,
            );
        }
    }
}

fn has_unknown_text(word: &Word) -> bool {
    match &word.value {
        Value::Dynamic(dynamic) => dynamic.sources.iter().any(|source| *source != Source::Number),
        Value::Known(_) | Value::Glob(_) => false,
    }
}

/// `[ -f $x ]`: what is not quoted may become several words, `-v` and a name among them. Two unknown words beside each
/// other may be that as well.
fn adds_words(simple: &Simple, told: &mut Told<'_>) {
    let mut before = false;
    for word in simple.argv.get(1..).unwrap_or_default() {
        let (unknown, several) = match &word.value {
            Value::Known(_) => (false, false),
            Value::Glob(pattern) => (true, paths::glob(pattern, "-v")),
            Value::Dynamic(dynamic) => {
                let unknown = dynamic.sources.iter().any(|source| match source {
                    Source::Number | Source::BoundedOutput | Source::Process => false,
                    Source::OneOf(values) => values.iter().any(|value| value.contains(['[', '*', '?'])),
                    Source::Variable(name) => !matches!(name.as_str(), "HOME" | "USER" | "LOGNAME" | "SHELL"),
                    Source::Names | Source::Positional | Source::Output | Source::Indirect => true,
                });
                (unknown, dynamic.splits)
            }
        };
        if unknown && (several || before) {
            told.say("runs_programs", "unquoted, it may become `-v` and a name, which is evaluated", word.span);
        }
        before = unknown;
    }
}

/// Options without a dash: `e` shows environments, as does a column of that name.
fn ps(args: &Args<'_>, told: &mut Told<'_>) {
    const COLUMNS: [&str; 3] = ["-o", "-O", "--format"];
    for given in args.options.iter().filter(|given| COLUMNS.iter().any(|option| given.key.is(option))) {
        if let Some(value) = given.value
            && value.text.is_none_or(|columns| columns.split([',', ' ', '=']).any(|name| name.starts_with("env")))
        {
            told.say("dumps_environment", "shows the environment of processes, where secrets are", value.word.span);
        }
    }
    for piece in &args.operands {
        let text = piece.text.unwrap_or("");
        if text.bytes().all(|byte| byte.is_ascii_digit() || byte == b',') && !text.is_empty() {
            continue;
        }
        if text.contains(['e', 'E']) {
            told.say("dumps_environment", "shows the environment of processes, where secrets are", piece.word.span);
        } else if text.is_empty() || !text.bytes().all(|byte| b"aTrxtgGpPuUCqjlsuvXZfwhHnkLmSc".contains(&byte)) {
            told.say("unknown_option", "not a known read-only option of `ps`", piece.word.span);
        }
    }
}

fn printenv(args: &Args<'_>, word: &Word, told: &mut Told<'_>) {
    if args.operands.is_empty() {
        told.say("dumps_environment", "shows the whole environment, where secrets are", word.span);
    }
    for piece in &args.operands {
        if !piece.text.is_some_and(environment::printable) {
            told.say("dumps_environment", "shows a variable that may be a secret", piece.word.span);
        }
    }
}

/// `docker inspect --format`, `systemctl show --property`: any single field but the environment.
fn inspect(args: &Args<'_>, told: &mut Told<'_>) {
    const CHOOSE: [&str; 4] = ["-f", "--format", "-p", "--property"];
    const ALL: [&str; 8] = ["env", "json .}", "json . ", "{{.}}", ".config}", ".config ", "range", "printf"];
    for given in args.options.iter().filter(|given| CHOOSE.iter().any(|option| given.key.is(option))) {
        let Some(value) = given.value else { continue };
        let chosen = value.text.map(str::to_ascii_lowercase);
        if chosen.is_none_or(|text| text == "json" || ALL.iter().any(|all| text.contains(all))) {
            told.say("dumps_environment", "shows an environment, where secrets are", value.word.span);
        }
    }
}

fn git_config(args: &Args<'_>, told: &mut Told<'_>) {
    const READS: [&str; 7] = ["--get", "--get-all", "--get-regexp", "--get-urlmatch", "--list", "-l", "--get-color"];
    let first = args.operands.first().and_then(|piece| piece.text).unwrap_or("");
    let reads = args.has_any(READS.into_iter());
    let verb = matches!(first, "set" | "unset" | "edit" | "rename-section" | "remove-section");
    let limit = if first == "get" { 2 } else { 1 };
    if let Some(piece) = args.operands.first()
        && !reads
        && (verb || args.operands.len() > limit)
    {
        told.say("changes_repository", "changes the configuration, which can make git run programs", piece.word.span);
    }
    if let Some(given) = args.options.iter().find(|given| ["-l", "--list"].iter().any(|list| given.key.is(list)))
        && !args.has("--name-only")
    {
        told.say("sensitive_path", "shows all settings, credentials for servers among them", given.word.span);
    }
    let by_pattern = args.has("--get-regexp") && !args.has("--name-only");
    for piece in &args.operands {
        let key = piece.text.unwrap_or("").to_ascii_lowercase();
        let harmless =
            ["alias", "user", "branch", "color", "core", "remote", "submodule", "diff", "merge", "pull", "push"];
        let section = key.trim_start_matches('^').split(['.', '\\']).next().unwrap_or("").to_owned();
        if by_pattern && !harmless.contains(&section.as_str()) {
            told.say("sensitive_path", "may show settings that hold a credential", piece.word.span);
        }
        if key.contains("extraheader") || key.starts_with("credential") || environment::is_secret(&key) {
            told.say("sensitive_path", "this setting holds a credential", piece.word.span);
        }
    }
}

fn kubectl(args: &Args<'_>, told: &mut Told<'_>) {
    for given in args.options.iter().filter(|given| given.key.is("-o") || given.key.is("--output")) {
        if let Some(value) = given.value
            && value.text.is_none_or(|text| {
                text.trim_start_matches('=').split('=').next().is_some_and(|form| form.contains("file"))
            })
        {
            told.say("sensitive_path", "reads how to print from a file", value.word.span);
        }
    }
    for piece in &args.operands {
        let Some(text) = piece.text else {
            told.say("dynamic_option", "which resource depends on run time", piece.word.span);
            continue;
        };
        let secret = text.split([',', '/']).any(|kind| {
            let kind = kind.split('.').next().unwrap_or(kind).to_ascii_lowercase();
            matches!(
                kind.as_str(),
                "secret" | "secrets" | "sealedsecret" | "sealedsecrets" | "externalsecret" | "externalsecrets"
            )
        });
        if secret {
            told.say("sensitive_path", "shows secrets of the cluster", piece.word.span);
        }
    }
}

fn set(args: &Args<'_>, word: &Word, told: &mut Told<'_>) {
    if args.options.is_empty() && args.operands.is_empty() && !args.ended {
        told.say("dumps_environment", "shows every variable, where secrets are", word.span);
    }
    for given in &args.options {
        let value = given.value.and_then(|piece| piece.text);
        let fine = matches!(
            value,
            Some(
                "pipefail"
                    | "errexit"
                    | "nounset"
                    | "noglob"
                    | "xtrace"
                    | "noclobber"
                    | "errtrace"
                    | "verbose"
                    | "posix"
            )
        );
        if given.key.is("-o") && !fine {
            told.say("sets_environment", "changes how this shell works", given.word.span);
        }
    }
}

fn cd(args: &Args<'_>, told: &mut Told<'_>) {
    for piece in &args.operands {
        if piece.text.is_some_and(|text| text.starts_with("/proc") || text.starts_with("/dev/fd")) {
            told.say("sensitive_path", "goes to where processes' memory and environments are", piece.word.span);
        }
    }
}

fn printf(args: &Args<'_>, told: &mut Told<'_>) {
    let Some(piece) = args.operands.first() else { return };
    if piece.word.picture().starts_with("-v") {
        told.say("sets_environment", "`printf -v` sets a variable", piece.word.span);
    }
}

/// `host:file` is an archive on another machine.
fn tar(args: &Args<'_>, told: &mut Told<'_>) {
    for given in args.options.iter().filter(|given| given.key.is("-f") || given.key.is("--file")) {
        if let Some(value) = given.value
            && value.text.is_none_or(|text| text.contains(':'))
        {
            told.say("network", "an archive that may be on another machine", value.word.span);
        }
    }
}

/// `+!sh`: a first command.
fn less(args: &Args<'_>, told: &mut Told<'_>) {
    for piece in &args.operands {
        if piece.text.is_some_and(|text| text.starts_with('+')) {
            told.say("runs_programs", "starts with a command, which can run programs", piece.word.span);
        }
    }
}

/// Anything but never starts the pager that is configured.
fn bat(args: &Args<'_>, told: &mut Told<'_>) {
    for given in args.options.iter().filter(|given| given.key.is("--paging")) {
        if given.value.and_then(|value| value.text) != Some("never") {
            told.say("interactive", "chooses when the pager runs", given.word.span);
        }
    }
}

/// Of several modes the last one counts: `xz -t -d` unpacks in place, unless everything goes to the output.
fn compress(args: &Args<'_>, word: &Word, told: &mut Told<'_>) {
    let unpacks = args.has_any(["-d", "--decompress"].into_iter());
    if unpacks && !args.has_any(["-c", "--stdout"].into_iter()) {
        told.say("writes_files", "replaces files", word.span);
    }
}

/// Which files to look into is as good as naming them.
fn search(args: &Args<'_>, told: &mut Told<'_>) {
    const CHOOSE: [&str; 4] = ["--include", "-g", "--glob", "--iglob"];
    for given in args.options.iter().filter(|given| CHOOSE.iter().any(|option| given.key.is(option))) {
        let Some(value) = given.value else { continue };
        if let Some(name) = value.text.filter(|text| !text.starts_with('!')) {
            told.path(Piece { word: value.word, text: Some(&name.to_ascii_lowercase()) }, paths::Touch::Contents);
        }
    }
}

/// A pattern that finds secrets by their name, and an ending that only they have.
fn fd(args: &Args<'_>, told: &mut Told<'_>) {
    if let Some(pattern) = args.operands.first() {
        let plain = pattern.text.map(|text| text.replace(['^', '$', '\\'], ""));
        named(*pattern, plain.as_deref(), told);
    }
    for given in args.options.iter().filter(|given| given.key.is("-e") || given.key.is("--extension")) {
        let Some(value) = given.value else { continue };
        let name = value.text.map(|ending| format!("x.{ending}"));
        named(value, name.as_deref(), told);
    }
}

fn named(piece: Piece<'_>, name: Option<&str>, told: &mut Told<'_>) {
    if let Some(name) = name {
        told.path(Piece { word: piece.word, text: Some(&name.to_ascii_lowercase()) }, paths::Touch::Names);
    }
}

/// `yq eval FILTER`, or the filter alone.
fn yq(grammar: Of<'_, Grammar>, args: &Args<'_>, word: &Word, told: &mut Told<'_>) {
    let verb = args.operands.first().and_then(|piece| piece.text);
    if !matches!(verb, Some("e" | "eval" | "ea" | "eval-all")) {
        return scripts(grammar, args, word, &[], jq::filter, told);
    }
    // The filter was taken for a file, which as a path it is not.
    match args.operands.get(1).and_then(|piece| piece.text) {
        Some(filter) => {
            if let Err((code, reason)) = jq::filter(filter) {
                told.say(code, reason, word.span);
            }
        }
        None => told.say("dynamic_script", "a filter that is not shown", word.span),
    }
}

/// A filter of the answer can read the environment; another host is another machine.
fn gh(args: &Args<'_>, told: &mut Told<'_>) {
    for given in &args.options {
        let Some(value) = given.value else { continue };
        if given.key.is("-q") || given.key.is("--jq") {
            let judged = value.text.map_or(Err(("dynamic_script", "a filter that depends on run time")), jq::filter);
            if let Err((code, reason)) = judged {
                told.say(code, reason, value.word.span);
            }
        }
        let repository = given.key.is("-R") || given.key.is("--repo");
        if repository && value.text.is_some_and(|text| text.matches('/').count() > 1) {
            told.say("network", "names a host of its own", value.word.span);
        }
    }
    for piece in &args.operands {
        if piece.text.is_some_and(|text| text.contains("://") && !text.starts_with("https://github.com/")) {
            told.say("network", "names a host of its own", piece.word.span);
        }
    }
}

/// `git -c name=value`: settings of how the output looks.
fn git_settings(args: &Args<'_>, told: &mut Told<'_>) {
    for given in args.options.iter().filter(|given| given.key.is("-c")) {
        let Some(value) = given.value else { continue };
        let looks = value.text.and_then(|text| text.split_once('=')).is_some_and(|(name, value)| {
            let name = name.to_ascii_lowercase();
            match name.split_once('.').unwrap_or((&name, "")) {
                ("color" | "advice" | "column", _) => true,
                ("core", "quotepath" | "abbrev" | "precomposeunicode") => true,
                ("core", "pager") => matches!(value, "cat" | ""),
                ("core", "fsmonitor") | ("log", "showsignature") | ("pager", _) => value == "false",
                ("log", "date" | "decorate" | "abbrevcommit" | "follow" | "mailmap") => true,
                ("diff", "renames" | "renamelimit" | "algorithm" | "mnemonicprefix" | "noprefix" | "colormoved") => {
                    true
                }
                ("status", "short" | "branch" | "showuntrackedfiles" | "relativepaths") => true,
                ("grep", "linenumber" | "column" | "patterntype") | ("i18n", "logoutputencoding") => true,
                _ => false,
            }
        });
        if !looks {
            told.say("runs_programs", "a setting can make git run any program", given.word.span);
        }
    }
}

/// A file or another machine in place of a plain value.
fn local(args: &Args<'_>, told: &mut Told<'_>) {
    let values = args.options.iter().filter_map(|given| given.value);
    for piece in args.operands.iter().copied().chain(values) {
        let place = |text: &str| text.contains("://") && !text.starts_with("s3://") && !text.starts_with("gs://");
        if piece.text.is_some_and(place) {
            told.say("network", "names another machine or a file", piece.word.span);
        }
    }
}

fn forbid(args: &Args<'_>, mark: char, (code, reason): (&'static str, &'static str), told: &mut Told<'_>) {
    let values = args.options.iter().filter_map(|given| given.value);
    let number = |piece: Piece<'_>| match &piece.word.value {
        Value::Dynamic(dynamic) => dynamic.sources.iter().all(|source| matches!(source, Source::Number)),
        Value::Known(_) | Value::Glob(_) => false,
    };
    for piece in args.operands.iter().copied().chain(values) {
        if piece.text.map_or(!number(piece), |text| text.contains(mark)) {
            told.say(code, reason, piece.word.span);
        }
    }
}

fn npm_config(args: &Args<'_>, told: &mut Told<'_>) {
    for piece in &args.operands {
        let harmless = piece.text.is_some_and(|key| {
            !key.starts_with("//")
                && !key.starts_with('_')
                && !environment::is_secret(key)
                && !key.to_ascii_lowercase().contains("auth")
        });
        if !harmless {
            told.say("sensitive_path", "this setting holds a credential", piece.word.span);
        }
    }
}
