//! What an agent wants to do, in the one form that is stored, hashed, shown and run.

use std::collections::BTreeMap;
use std::fmt;

use countersign_shell::Rules;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use thiserror::Error;

use crate::binding::Binding;
use crate::canonical::{Digest, canonical_bytes, sha256};
use crate::risk::Assessment;

/// Command text longer than this cannot be read by a person before a yes.
pub const MAX_COMMAND_BYTES: usize = 16 * 1024;
/// The whole action, in canonical bytes.
pub const MAX_ACTION_BYTES: usize = 1024 * 1024;
/// Arrays and objects inside each other.
const MAX_NESTING: usize = 32;
/// Values in arguments, as far as anybody would read. Each costs memory many times its bytes.
const MAX_VALUES: usize = 20_000;
const MAX_ACTION_TYPE_CHARS: usize = 128;
/// Beyond this an integer has no exact canonical form, so two different ones would hash alike.
const MAX_EXACT_INTEGER: f64 = 9_007_199_254_740_991.0;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Action {
    Exec(Exec),
    Tool {
        name: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        category: Option<String>,
        args: Value,
    },
    Question {
        text: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        options: Vec<String>,
    },
    Custom {
        action_type: ActionType,
        title: String,
        preview: String,
        /// What can be answered; with any, it is answered as a question is.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        options: Vec<String>,
    },
}

/// A command: shell text, or `argv` when no shell is involved (`command` is then its display form).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exec {
    pub command: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub argv: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// What it would find where it runs, if somebody looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding: Option<Box<Binding>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActionKind {
    Exec,
    Tool,
    Question,
    Custom,
}

#[derive(Debug, Error, PartialEq, Eq)]
pub enum ActionError {
    #[error(
        "the command is {0} bytes, over the {MAX_COMMAND_BYTES} a person can be shown; put it in a script and ask to run that"
    )]
    CommandTooLong(usize),
    #[error("the action is {0} bytes, over the {MAX_ACTION_BYTES} that can be shown; send less")]
    TooLarge(usize),
    #[error("`{0}` holds a NUL character, which cannot be shown or run; remove it")]
    Nul(&'static str),
    #[error("`binding` lists more than a person could be shown; run fewer programs at once")]
    Binding,
    #[error("`args` is nested deeper than {MAX_NESTING} levels, which nobody can be shown; send it flatter")]
    TooDeep,
    #[error("`args` holds more than {MAX_VALUES} values, which nobody can be shown; send less, or send it as one text")]
    TooManyValues,
    #[error("the number `{0}` in `args` has no exact JSON form; send it as a string")]
    InexactNumber(String),
    #[error("the action has no canonical form: {0}")]
    NotCanonical(String),
    #[error(
        "an action type is 1 to {MAX_ACTION_TYPE_CHARS} visible characters, such as `http_request` or `custom:deploy`"
    )]
    BadActionType,
}

impl ActionError {
    /// Whether the action was refused because nobody could be shown it whole.
    pub fn is_unshowable(&self) -> bool {
        match self {
            Self::CommandTooLong(_)
            | Self::TooLarge(_)
            | Self::Nul(_)
            | Self::Binding
            | Self::TooDeep
            | Self::TooManyValues => true,
            Self::InexactNumber(_) | Self::NotCanonical(_) | Self::BadActionType => false,
        }
    }
}

impl Action {
    /// Checks what no door may let through, and answers the canonical bytes.
    pub fn canonical(&self) -> Result<Vec<u8>, ActionError> {
        match self {
            Self::Exec(exec) => exec.check()?,
            Self::Tool { name, category, args } => {
                no_nul("tool", name)?;
                no_nul("category", category.as_deref().unwrap_or_default())?;
                check_args(args)?;
            }
            Self::Question { text, options } => {
                no_nul("question", text)?;
                options.iter().try_for_each(|option| no_nul("options", option))?;
            }
            Self::Custom { action_type: _, title, preview, options } => {
                no_nul("title", title)?;
                no_nul("preview", preview)?;
                options.iter().try_for_each(|option| no_nul("options", option))?;
            }
        }
        let bytes = canonical_bytes(self).map_err(|error| ActionError::NotCanonical(error.to_string()))?;
        if bytes.len() > MAX_ACTION_BYTES {
            return Err(ActionError::TooLarge(bytes.len()));
        }
        Ok(bytes)
    }

    pub fn digest(&self) -> Result<Digest, ActionError> {
        Ok(sha256(&self.canonical()?))
    }

    /// Its digest, and that of what would happen. Most often they are the same, and large actions are not written twice.
    pub fn digests(&self) -> Result<(Digest, Digest), ActionError> {
        let digest = self.digest()?;
        Ok((digest, self.effect_digest(digest)?))
    }

    /// The digest of what would happen, whatever the agent calls it: a refused action asked again under
    /// another title has the same one.
    fn effect_digest(&self, whole: Digest) -> Result<Digest, ActionError> {
        match self {
            Self::Custom { action_type, preview, options, .. } => {
                let (action_type, title) = (action_type.clone(), String::new());
                let (preview, options) = (preview.clone(), options.clone());
                Self::Custom { action_type, title, preview, options }.digest()
            }
            // The same command is the same effect, whatever became of the files around it.
            Self::Exec(exec) if exec.binding.is_some() => Self::Exec(Exec { binding: None, ..exec.clone() }).digest(),
            Self::Exec(_) | Self::Tool { .. } | Self::Question { .. } => Ok(whole),
        }
    }

    pub fn kind(&self) -> ActionKind {
        match self {
            Self::Exec(_) => ActionKind::Exec,
            Self::Tool { .. } => ActionKind::Tool,
            Self::Question { .. } => ActionKind::Question,
            // What has to be chosen from cannot be allowed without choosing.
            Self::Custom { options, .. } if !options.is_empty() => ActionKind::Question,
            Self::Custom { .. } => ActionKind::Custom,
        }
    }

    /// What can be answered; anything where it says nothing.
    pub fn options(&self) -> &[String] {
        match self {
            Self::Question { options, .. } | Self::Custom { options, .. } => options,
            Self::Exec(_) | Self::Tool { .. } => &[],
        }
    }

    /// What the shell engine has to say; only commands are assessed.
    pub fn assess(&self, rules: Option<&Rules>) -> Option<Assessment> {
        match self {
            Self::Exec(exec) => Some(Assessment::of(exec, rules)),
            Self::Tool { .. } | Self::Question { .. } | Self::Custom { .. } => None,
        }
    }
}

impl Exec {
    /// A command without a shell. What is shown is made from what would run.
    pub fn of_words(argv: Vec<String>, cwd: Option<String>, env: BTreeMap<String, String>) -> Self {
        Self { command: shell_text(&argv), argv: Some(argv), cwd, env, binding: None }
    }

    /// What a person made of it: other text, in the same place. What it would find there nobody has looked at.
    pub fn replaced_with(&self, command: String) -> Self {
        Self { command, argv: None, cwd: self.cwd.clone(), env: self.env.clone(), binding: None }
    }

    fn check(&self) -> Result<(), ActionError> {
        if self.command.len() > MAX_COMMAND_BYTES {
            return Err(ActionError::CommandTooLong(self.command.len()));
        }
        no_nul("command", &self.command)?;
        no_nul("cwd", self.cwd.as_deref().unwrap_or_default())?;
        for word in self.argv.iter().flatten() {
            no_nul("argv", word)?;
        }
        for (name, value) in &self.env {
            no_nul("env", name)?;
            no_nul("env", value)?;
        }
        if self.binding.as_ref().is_some_and(|binding| !binding.is_showable()) {
            return Err(ActionError::Binding);
        }
        Ok(())
    }
}

/// Words a shell would take for its own grammar where a program stands.
const RESERVED: [&str; 23] = [
    "if", "then", "else", "elif", "fi", "do", "done", "case", "esac", "while", "until", "for", "in", "function",
    "time", "coproc", "select", "[[", "]]", "{", "}", "!", "--",
];

/// Text that a shell reads as exactly these words.
pub(crate) fn shell_text(argv: &[String]) -> String {
    let mut text = String::new();
    for (index, word) in argv.iter().enumerate() {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,@%+".contains(c) || (c == '=' && index > 0);
        if index > 0 {
            text.push(' ');
        }
        let reserved = index == 0 && RESERVED.contains(&word.as_str());
        if !word.is_empty() && !reserved && word.chars().all(plain) {
            text.push_str(word);
        } else {
            text.push('\'');
            text.push_str(&word.replace('\'', r"'\''"));
            text.push('\'');
        }
    }
    text
}

fn no_nul(field: &'static str, text: &str) -> Result<(), ActionError> {
    if text.contains('\0') { Err(ActionError::Nul(field)) } else { Ok(()) }
}

/// Walks without recursion: the depth is the sender's to choose.
fn check_args(args: &Value) -> Result<(), ActionError> {
    let (mut open, mut seen) = (vec![(args, 1)], 0);
    while let Some((value, depth)) = open.pop() {
        seen += 1;
        if seen + open.len() > MAX_VALUES {
            return Err(ActionError::TooManyValues);
        }
        if depth > MAX_NESTING && matches!(value, Value::Array(_) | Value::Object(_)) {
            return Err(ActionError::TooDeep);
        }
        match value {
            Value::Null | Value::Bool(_) => {}
            Value::Number(number) => {
                let exact = number
                    .as_f64()
                    .is_some_and(|float| float.is_finite() && (number.is_f64() || float.abs() <= MAX_EXACT_INTEGER));
                if !exact {
                    return Err(ActionError::InexactNumber(number.to_string()));
                }
            }
            Value::String(text) => no_nul("args", text)?,
            Value::Array(items) => open.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(fields) => {
                for (name, field) in fields {
                    no_nul("args", name)?;
                    open.push((field, depth + 1));
                }
            }
        }
    }
    Ok(())
}

/// The coarse type a grant can be made for: `http_request`, `write_file`, `custom:deploy`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct ActionType(String);

impl ActionType {
    /// The type of every command. No other action may carry it: a grant for something harmless must never
    /// speak for a command, nor the other way round.
    pub const EXEC: &str = "exec_cmd";

    pub fn new(text: impl Into<String>) -> Result<Self, ActionError> {
        let text = text.into();
        let visible = |c: char| !c.is_control() && !c.is_whitespace();
        let count = text.chars().count();
        if count == 0 || count > MAX_ACTION_TYPE_CHARS || !text.chars().all(visible) {
            return Err(ActionError::BadActionType);
        }
        Ok(Self(text))
    }

    pub fn exec() -> Self {
        Self(Self::EXEC.to_owned())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn is_exec(&self) -> bool {
        self.0 == Self::EXEC
    }
}

impl fmt::Display for ActionType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for ActionType {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn exec(command: &str) -> Action {
        Action::Exec(Exec { command: command.to_owned(), argv: None, cwd: None, env: BTreeMap::new(), binding: None })
    }

    #[test]
    fn the_canonical_bytes_are_pinned() {
        let action = Action::Exec(Exec {
            command: "ls -l".to_owned(),
            argv: None,
            cwd: Some("/tmp".to_owned()),
            env: BTreeMap::from([("B".to_owned(), "2".to_owned()), ("A".to_owned(), "1".to_owned())]),
            binding: None,
        });
        assert_eq!(
            String::from_utf8(action.canonical().unwrap()).unwrap(),
            r#"{"command":"ls -l","cwd":"/tmp","env":{"A":"1","B":"2"},"kind":"exec"}"#
        );
    }

    #[test]
    fn what_cannot_be_shown_is_refused() {
        assert_eq!(
            exec(&"x".repeat(MAX_COMMAND_BYTES + 1)).digest(),
            Err(ActionError::CommandTooLong(MAX_COMMAND_BYTES + 1))
        );
        assert!(exec(&"x".repeat(MAX_COMMAND_BYTES)).digest().is_ok());
        assert_eq!(exec("a\0b").digest(), Err(ActionError::Nul("command")));
        let huge = Action::Tool { name: "Write".into(), category: None, args: json!("y".repeat(MAX_ACTION_BYTES)) };
        assert!(matches!(huge.digest(), Err(ActionError::TooLarge(_))));
        let many = Action::Tool { name: "T".into(), category: None, args: json!(vec![1; MAX_VALUES]) };
        assert_eq!(many.digest(), Err(ActionError::TooManyValues));
        let hidden = Action::Tool { name: "T".into(), category: None, args: json!({"deep": [{"x": "a\0b"}]}) };
        assert_eq!(hidden.digest(), Err(ActionError::Nul("args")));
    }

    #[test]
    fn integers_that_would_hash_alike_are_refused() {
        let args = |number: u64| Action::Tool { name: "pay".into(), category: None, args: json!({ "amount": number }) };
        assert!(args(9_007_199_254_740_991).digest().is_ok());
        assert_eq!(args(9_007_199_254_740_993).digest(), Err(ActionError::InexactNumber("9007199254740993".into())));
    }

    #[test]
    fn words_become_text_that_a_shell_reads_as_those_words() {
        for (words, text) in [
            (vec!["ls", "-la"], "ls -la"),
            (vec!["echo", "", "a b", "it's", "$x", "~", "k=v"], r"echo '' 'a b' 'it'\''s' '$x' '~' k=v"),
            (vec!["if", "then"], "'if' then"),
            (vec!["A=1", "ls"], "'A=1' ls"),
        ] {
            let words: Vec<String> = words.into_iter().map(str::to_owned).collect();
            assert_eq!(shell_text(&words), text);
        }
    }

    #[test]
    fn a_new_title_is_the_same_effect() {
        let custom = |title: &str| Action::Custom {
            action_type: ActionType::new("http_request").unwrap(),
            title: title.to_owned(),
            preview: "POST /pay".to_owned(),
            options: Vec::new(),
        };
        assert_ne!(custom("a").digest(), custom("b").digest());
        assert_eq!(custom("a").digests().unwrap().1, custom("b").digests().unwrap().1);
    }

    #[test]
    fn action_types_are_short_and_visible() {
        for good in ["exec_cmd", "custom:deploy", "http_request"] {
            assert!(ActionType::new(good).is_ok(), "{good}");
        }
        for bad in ["", " ", "a b", "a\nb", &"x".repeat(129)] {
            assert_eq!(ActionType::new(bad), Err(ActionError::BadActionType), "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn a_different_command_is_a_different_digest(a in "[^\0]{0,60}", b in "[^\0]{0,60}") {
            prop_assert_eq!(a == b, exec(&a).digest() == exec(&b).digest());
        }

        /// The engine finds in the text just the words that would run.
        #[test]
        fn words_without_a_shell_are_assessed_as_those_words(
            program in "[^\0\\p{C}]{1,8}",
            rest in proptest::collection::vec("[^\0\\p{C}]{0,8}", 0..4),
        ) {
            let argv: Vec<String> = std::iter::once(program).chain(rest).collect();
            let exec = Exec::of_words(argv.clone(), None, BTreeMap::new());
            let assessed = countersign_shell::assess(&exec.command, &countersign_shell::Options::default());
            let first: Vec<Option<&str>> = assessed.commands[0].argv.iter().map(|word| word.known()).collect();
            prop_assert_eq!(first, argv.iter().map(|word| Some(word.as_str())).collect::<Vec<_>>());
        }

        #[test]
        fn stored_and_read_back_is_the_same_action(command in "[^\0]{0,80}", cwd in proptest::option::of("[^\0]{0,20}")) {
            let action = Action::Exec(Exec { command, argv: None, cwd, env: BTreeMap::new(), binding: None });
            let stored = serde_json::to_string(&action).unwrap();
            prop_assert_eq!(serde_json::from_str::<Action>(&stored).unwrap(), action);
        }
    }
}
