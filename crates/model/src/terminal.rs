//! `.agents/terminal.json`: a workspace's own word on commands. An agent can write files there, so what the file
//! forbids always counts, and what it allows counts only while a person trusts just these bytes.

use countersign_shell::Entry;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::binding::Binding;
use crate::canonical::{Digest, sha256};
use crate::risk::Assessment;
use crate::time::Timestamp;

/// How long a person has, where neither file nor policy says.
pub const CONFIRMATION_SECS: u64 = 60;
/// How long a command may run where its output is captured, where the file does not say.
pub const COMMAND_SECS: u64 = 60;
const CONFIRMATION_RANGE: std::ops::RangeInclusive<u64> = 10..=120;
const COMMAND_RANGE: std::ops::RangeInclusive<u64> = 5..=600;
/// Longer lists are not looked through, and told as many problems nobody reads.
const MAX_ENTRIES: usize = 1000;
const MAX_PROBLEMS: usize = 20;
/// Longer files are not read.
pub const MAX_TERMINAL_FILE: usize = 1024 * 1024;

/// The file as it was read. Reading never fails: what is wrong is listed, and nothing is allowed because of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TerminalFile {
    pub blacklist: Vec<Entry>,
    /// Entries as they are written; see [`whitelisted`].
    pub whitelist: Vec<String>,
    pub command_secs: Option<u64>,
    pub confirmation_secs: Option<u64>,
    /// An explicit `false`, in a file that could be read.
    pub confirmation_off: bool,
    pub remember_on_allow: bool,
    /// It forbids more than is looked through: whether a command is among that is unknown, so it is.
    pub forbids_unread: bool,
    pub problems: Vec<Problem>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// From 1.
    pub line: usize,
    pub message: String,
}

/// The file's own order and names.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Raw {
    #[serde(skip_serializing_if = "Option::is_none")]
    command_blacklist: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    command_timeout_seconds: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    require_command_confirmation: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    confirmation_timeout_seconds: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    command_whitelist: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    remember_on_allow: Option<Value>,
    #[serde(flatten)]
    others: Map<String, Value>,
}

impl TerminalFile {
    pub fn parse(text: &str) -> Self {
        let raw: Raw = match serde_json::from_str(text) {
            Ok(raw) => raw,
            Err(error) => {
                let problem = Problem { line: error.line(), message: format!("not as documented: {error}") };
                return Self { problems: vec![problem], ..Self::default() };
            }
        };
        let mut reader = Reader { text, problems: Vec::new() };
        let listed = raw.command_blacklist.as_ref().and_then(Value::as_array).map_or(0, Vec::len);
        let blacklist = reader.texts("commandBlacklist", raw.command_blacklist);
        let mut file = Self {
            blacklist: blacklist.iter().filter_map(|text| reader.entry("commandBlacklist", text)).collect(),
            whitelist: reader.texts("commandWhitelist", raw.command_whitelist),
            command_secs: reader.seconds("commandTimeoutSeconds", raw.command_timeout_seconds, COMMAND_RANGE),
            confirmation_secs: reader.seconds(
                "confirmationTimeoutSeconds",
                raw.confirmation_timeout_seconds,
                CONFIRMATION_RANGE,
            ),
            confirmation_off: reader.switch("requireCommandConfirmation", raw.require_command_confirmation)
                == Some(false),
            remember_on_allow: reader.switch("rememberOnAllow", raw.remember_on_allow) == Some(true),
            forbids_unread: listed > MAX_ENTRIES,
            problems: Vec::new(),
        };
        for name in raw.others.keys() {
            reader.problem(name, format!("`{name}` is not a setting of this file"));
        }
        file.problems = reader.problems;
        file
    }
}

/// Collects what is wrong, each with its line.
struct Reader<'t> {
    text: &'t str,
    problems: Vec<Problem>,
}

impl Reader<'_> {
    fn problem(&mut self, field: &str, message: String) {
        if self.problems.len() >= MAX_PROBLEMS {
            return;
        }
        let quoted = format!("\"{field}\"");
        let before = self.text.find(&quoted).and_then(|at| self.text.get(..at)).unwrap_or_default();
        self.problems.push(Problem { line: before.matches('\n').count() + 1, message });
    }

    fn texts(&mut self, field: &str, value: Option<Value>) -> Vec<String> {
        let Some(value) = value else { return Vec::new() };
        if value.as_array().is_some_and(|list| list.len() > MAX_ENTRIES) {
            self.problem(field, format!("`{field}` has more than {MAX_ENTRIES} entries and is not looked through"));
            return Vec::new();
        }
        serde_json::from_value(value).unwrap_or_else(|_| {
            self.problem(field, format!("`{field}` is a list of texts; it counts as empty"));
            Vec::new()
        })
    }

    fn entry(&mut self, field: &str, text: &str) -> Option<Entry> {
        let entry = open_entry(text);
        if entry.is_none() {
            self.problem(field, format!("`{text}` in `{field}` names no command"));
        }
        entry
    }

    fn seconds(&mut self, field: &str, value: Option<Value>, range: std::ops::RangeInclusive<u64>) -> Option<u64> {
        let value = value?;
        let seconds = value.as_u64().filter(|seconds| range.contains(seconds));
        if seconds.is_none() {
            let (least, most) = (range.start(), range.end());
            self.problem(field, format!("`{field}` is {least} to {most} seconds; the default stands"));
        }
        seconds
    }

    fn switch(&mut self, field: &str, value: Option<Value>) -> Option<bool> {
        let value = value?;
        if !value.is_boolean() {
            self.problem(field, format!("`{field}` is `true` or `false`; the default stands"));
        }
        value.as_bool()
    }
}

/// An entry of the file: these words, and whatever comes after them.
fn open_entry(text: &str) -> Option<Entry> {
    let text = text.trim();
    let open = text.contains(char::is_whitespace) && !text.ends_with("**");
    Entry::parse(&if open { format!("{text} **") } else { text.to_owned() })
}

/// The entries that could speak for this command. Where it cannot be undone, more words after an entry's own are
/// another command.
fn whitelisted(file: &TerminalFile, assessment: &Assessment, files: Option<&Binding>) -> Vec<Entry> {
    let entry = |text: &String| if assessment.is_irreversible() { Entry::parse(text.trim()) } else { open_entry(text) };
    file.whitelist.iter().filter_map(entry).filter(|entry| assessment.may_be_any([entry].into_iter(), files)).collect()
}

/// What the file of a workspace says of one command, kept with the request: judged again with the trust of the moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalTerms {
    pub workspace: String,
    /// Of the file's bytes; none where there is no file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<Digest>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub blacklisted: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub whitelisted: Vec<Entry>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub confirmation_off: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command_secs: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmation_secs: Option<u64>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub remember_on_allow: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<Problem>,
}

/// A workspace whose file a person trusts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trust {
    pub workspace: String,
    /// The file's very text.
    pub text: String,
    pub by: String,
    pub at: Timestamp,
}

impl Trust {
    pub fn hash(&self) -> Digest {
        sha256(self.text.as_bytes())
    }
}

/// A workspace and the bytes of its file, as a runner sends them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TerminalInput {
    pub workspace: String,
    pub file: Option<Vec<u8>>,
}

impl TerminalTerms {
    pub fn of(input: &TerminalInput, assessment: &Assessment, files: Option<&Binding>) -> Self {
        let file = match &input.file {
            None => TerminalFile::default(),
            Some(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) if bytes.len() <= MAX_TERMINAL_FILE => TerminalFile::parse(text),
                Ok(_) => unreadable("the file is over 1 MiB and was not read"),
                Err(_) => unreadable("the file is not UTF-8 text"),
            },
        };
        Self {
            workspace: input.workspace.clone(),
            hash: input.file.as_ref().map(|bytes| sha256(bytes)),
            blacklisted: file.forbids_unread || assessment.may_be_any(file.blacklist.iter(), files),
            whitelisted: whitelisted(&file, assessment, files),
            confirmation_off: file.confirmation_off,
            command_secs: file.command_secs,
            confirmation_secs: file.confirmation_secs,
            remember_on_allow: file.remember_on_allow,
            problems: file.problems,
        }
    }

    /// How long a person has: shorter from any file, longer from a trusted one.
    pub fn confirmation_ms(&self, trusted: bool) -> u64 {
        counted(self.confirmation_secs, CONFIRMATION_SECS, trusted) * 1000
    }

    /// How long the command may run, by the same rule.
    pub fn command_secs(&self, trusted: bool) -> u64 {
        counted(self.command_secs, COMMAND_SECS, trusted)
    }
}

fn counted(given: Option<u64>, default: u64, trusted: bool) -> u64 {
    given.filter(|secs| trusted || *secs < default).unwrap_or(default)
}

fn unreadable(why: &str) -> TerminalFile {
    TerminalFile { problems: vec![Problem { line: 1, message: why.to_owned() }], ..TerminalFile::default() }
}

/// The file with these entries on its whitelist. `None` when the text is no such file: nothing is added to what cannot
/// be read.
pub fn with_whitelisted(text: &str, entries: &[String]) -> Option<String> {
    let mut raw: Raw = serde_json::from_str(text).ok()?;
    let mut list: Vec<String> = match raw.command_whitelist.take() {
        Some(value) => serde_json::from_value(value).unwrap_or_default(),
        None => Vec::new(),
    };
    for entry in entries {
        if !list.contains(entry) {
            list.push(entry.clone());
        }
    }
    raw.command_whitelist = Some(Value::from(list));
    serde_json::to_string_pretty(&raw).ok().map(|text| text + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::tests::{exec, request};

    fn terms(file: Option<&str>, command: &str) -> TerminalTerms {
        let asked = request(exec(command));
        let input = TerminalInput { workspace: "/w".into(), file: file.map(|text| text.as_bytes().to_vec()) };
        TerminalTerms::of(&input, asked.assessment.as_ref().unwrap(), None)
    }

    #[test]
    fn the_seeds_file_reads_as_it_says() {
        let file = TerminalFile::parse(
            r#"{"commandBlacklist":["rm -rf"],"commandTimeoutSeconds":30,"requireCommandConfirmation":false,
                "confirmationTimeoutSeconds":20,"commandWhitelist":["npm test"],"rememberOnAllow":true}"#,
        );
        assert_eq!(file.problems, []);
        assert_eq!((file.command_secs, file.confirmation_secs), (Some(30), Some(20)));
        assert!(file.confirmation_off && file.remember_on_allow);
        assert_eq!((file.blacklist.len(), file.whitelist), (1, vec!["npm test".to_owned()]));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line_and_allows_nothing() {
        let text = "{\n \"commandTimeoutSeconds\": 4,\n \"confirmationTimeoutSeconds\": \"long\",\n\
            \"requireCommandConfirmation\": 0,\n \"commandWhitelist\": [1],\n \"commandBlacklist\": [\"'\"],\n \"x\": 1\n}";
        let file = TerminalFile::parse(text);
        let lines: Vec<usize> = file.problems.iter().map(|problem| problem.line).collect();
        assert_eq!(lines, [6, 5, 2, 3, 4, 7]);
        assert!(!file.confirmation_off && file.whitelist.is_empty());
        for broken in ["", "{", "[]", "{\"commandWhitelist\":[\"ls\"],", "null"] {
            let file = TerminalFile::parse(broken);
            assert!(!file.confirmation_off && file.whitelist.is_empty() && file.problems.len() == 1, "{broken}");
        }
    }

    #[test]
    fn a_blacklist_means_every_part_after_unwrapping() {
        let file = r#"{"commandBlacklist":["rm -rf","kubectl"]}"#;
        for command in ["rm -rf x", "ls; sudo rm -rf x", "sh -c 'kubectl get'", "$X", "echo 'open"] {
            assert!(terms(Some(file), command).blacklisted, "{command}");
        }
        for command in ["rm x", "echo rm -rf", "ls"] {
            assert!(!terms(Some(file), command).blacklisted, "{command}");
        }
    }

    #[test]
    fn threat_30_a_whitelist_entry_is_whole_words_and_no_more_where_it_cannot_be_undone() {
        let covered = |entry: &str, command: &str| {
            let file = serde_json::json!({ "commandWhitelist": [entry] }).to_string();
            let terms = terms(Some(&file), command);
            let asked = request(exec(command));
            asked.assessment.as_ref().unwrap().covered_by(terms.whitelisted.iter(), true, None)
        };
        for (entry, command) in [
            ("git", "git push"),
            ("npm run", "npm run build"),
            ("rm -rf ./build", "rm -rf ./build"),
            ("make all", "make all -j4"),
        ] {
            assert!(covered(entry, command), "{entry}: {command}");
        }
        for (entry, command) in [
            ("git", "gitfoo"),
            ("git", "GIT push"),
            ("rm -rf ./build", "rm -rf ./build/../.."),
            ("rm -rf ./build", "rm -rf ./build src"),
            ("npm run", "npm running"),
            ("make all", "make all > log"),
            ("make all", "make all && make publish"),
        ] {
            assert!(!covered(entry, command), "{entry}: {command}");
        }
    }

    #[test]
    fn what_is_too_long_to_look_through_allows_nothing_and_may_forbid_anything() {
        let list = vec!["touch"; MAX_ENTRIES + 1];
        let file = serde_json::json!({"commandBlacklist": list}).to_string();
        assert!(terms(Some(&file), "ls").blacklisted);
        let file = serde_json::json!({"commandWhitelist": list}).to_string();
        let read = terms(Some(&file), "touch x");
        assert!(!read.blacklisted && read.whitelisted.is_empty() && read.problems.len() == 1);
        let unknown: serde_json::Map<String, Value> = (0..5000).map(|n| (format!("k{n}"), Value::Null)).collect();
        assert_eq!(terms(Some(&Value::Object(unknown).to_string()), "ls").problems.len(), MAX_PROBLEMS);
    }

    #[test]
    fn longer_times_need_trust() {
        let long = terms(Some(r#"{"commandTimeoutSeconds":600,"confirmationTimeoutSeconds":120}"#), "ls");
        assert_eq!((long.command_secs(false), long.confirmation_ms(false)), (60, 60_000));
        assert_eq!((long.command_secs(true), long.confirmation_ms(true)), (600, 120_000));
        let short = terms(Some(r#"{"commandTimeoutSeconds":5,"confirmationTimeoutSeconds":10}"#), "ls");
        assert_eq!((short.command_secs(false), short.confirmation_ms(false)), (5, 10_000));
        let none = terms(None, "ls");
        assert_eq!((none.command_secs(true), none.confirmation_ms(false), none.hash), (60, 60_000, None));
    }

    #[test]
    fn remembering_adds_once_and_keeps_the_rest() {
        let text = r#"{"commandBlacklist":["rm"],"mine":1}"#;
        let added = with_whitelisted(text, &["npm ci".into()]).unwrap();
        let again = with_whitelisted(&added, &["npm ci".into(), "make".into()]).unwrap();
        let value: Value = serde_json::from_str(&again).unwrap();
        assert_eq!(value, serde_json::json!({"commandBlacklist":["rm"],"mine":1,"commandWhitelist":["npm ci","make"]}));
        assert_eq!(with_whitelisted("{", &["x".into()]), None);
    }
}
