//! One action with everything that is known about who asks: fixed the moment it is made.

use std::collections::BTreeMap;
use std::fmt;

use countersign_shell::Rules;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::action::{Action, ActionError, ActionType};
use crate::binding::Binding;
use crate::canonical::Digest;
use crate::command_type::CommandTypes;
use crate::engine::EngineTerms;
use crate::grant_place::lies_in;
use crate::id::{ApprovalId, ClientId, KeyId};
use crate::render::AgentWords;
use crate::risk::{Assessment, Risk};
use crate::ruling::{Ask, Security};
use crate::terminal::{TerminalInput, TerminalTerms};

const MAX_LABEL_CHARS: usize = 256;
const MAX_TITLE_BYTES: usize = 4096;
const MAX_LABELS: usize = 16;

/// How a request came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Door {
    Http,
    /// The same door on the data folder's Unix socket.
    Local,
    /// Devices that messages are routed between.
    Hub,
    /// Requests, answers and events over a WebSocket.
    Gateway,
    /// An engine or a relay, by either of these.
    Engine,
}

impl Door {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Local => "local",
            Self::Hub => "hub",
            Self::Gateway => "gateway",
            Self::Engine => "engine",
        }
    }
}

/// Who asks: the key's own facts, none of them the caller's claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Requester {
    pub key_id: KeyId,
    pub client_id: ClientId,
    pub name: String,
    pub profile: String,
    pub door: Door,
}

/// Which way to people the request names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChannelChoice {
    /// Every configured way.
    #[default]
    Any,
    Web,
    Hub,
    Telegram,
    Email,
}

impl ChannelChoice {
    /// Console and command line always see everything, so these two always reach somebody.
    pub const fn always_reachable(self) -> bool {
        matches!(self, Self::Any | Self::Web)
    }
}

impl fmt::Display for ChannelChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Any => "any",
            Self::Web => "web",
            Self::Hub => "hub",
            Self::Telegram => "telegram",
            Self::Email => "email",
        })
    }
}

/// Chooses among configured people; it never introduces one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tg_chat_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email_to: Option<String>,
}

/// A request may ask to be ruled more strictly, never less.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TermsAsked {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub security: Option<Security>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask: Option<Ask>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Request {
    pub requester: Requester,
    pub session_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_id: Option<String>,
    /// What the requester itself calls it: another way to find it, and no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alias: Option<String>,
    pub action: Action,
    pub action_type: ActionType,
    pub digest: Digest,
    /// The digest without the agent's words, by which a retry under another name is known.
    pub effect: Digest,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assessment: Option<Assessment>,
    /// What the agent says, shown as its words and never ruled by.
    pub words: AgentWords,
    pub channel: ChannelChoice,
    #[serde(default)]
    pub target: Target,
    #[serde(default)]
    pub terms: TermsAsked,
    /// What the workspace's own file says of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminal: Option<TerminalTerms>,
    /// What an engine's session adds to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<EngineTerms>,
    /// The way to people that it named and that is not set up: it went to everybody instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_configured: Option<ChannelChoice>,
}

#[derive(Debug, Error, PartialEq, Eq)]
pub enum RequestError {
    #[error(transparent)]
    Action(#[from] ActionError),
    #[error("`{0}` is 1 to {MAX_LABEL_CHARS} characters without control characters")]
    Label(&'static str),
    #[error("`{0}` is longer than {MAX_TITLE_BYTES} bytes; say it in the preview")]
    WordsTooLong(&'static str),
    #[error("at most {MAX_LABELS} facts about itself can be sent with a request")]
    TooManyLabels,
    #[error(
        "an `id` of your own cannot read like one of the gate's: not `{}…`, and not 8 to 32 hex digits; a UUID with its dashes is fine",
        ApprovalId::PREFIX
    )]
    AliasLikeId,
    #[error(
        "this action type and this action do not go together: a type such as `exec_cmd` or `bash` is for commands, and a command has no other; send the command in `command`"
    )]
    TypeMismatch,
}

impl Request {
    /// Checks the parts against each other and computes what is derived from them.
    #[expect(clippy::too_many_arguments, reason = "the one constructor: every part is given, none has a default")]
    pub fn new(
        requester: Requester,
        session_id: String,
        context_id: Option<String>,
        alias: Option<String>,
        action: Action,
        action_type: ActionType,
        words: AgentWords,
        channel: ChannelChoice,
        target: Target,
        terms: TermsAsked,
        rules: Option<&Rules>,
        commands: &CommandTypes,
    ) -> Result<Self, RequestError> {
        let mut words = words;
        let said = match &action {
            Action::Custom { title, .. } => Some(title.clone()),
            Action::Exec(_) | Action::Tool { .. } | Action::Question { .. } => None,
        };
        let action = commands.read(action, &action_type)?;
        if let (Action::Exec(_), Some(said)) = (&action, said) {
            // What was the title of a custom action is what the agent says of the command.
            words.title.get_or_insert(said);
        }
        check_label("session_id", &session_id)?;
        check_label("context_id", context_id.as_deref().unwrap_or("-"))?;
        check_label("agent_id", words.agent_id.as_deref().unwrap_or("-"))?;
        check_words("title", words.title.as_deref())?;
        check_words("ask", words.ask.as_deref())?;
        check_alias(alias.as_deref())?;
        check_labels(&words.labels)?;
        let ((digest, effect), assessment) = (action.digests()?, action.assess(rules));
        Ok(Self {
            requester,
            session_id,
            context_id,
            alias,
            action,
            action_type,
            digest,
            effect,
            assessment,
            words,
            channel,
            target,
            terms,
            terminal: None,
            engine: None,
            not_configured: None,
        })
    }
}

impl Request {
    /// The same, asked from a workspace.
    pub fn in_workspace(self, input: &TerminalInput) -> Self {
        let terminal = self.assessment.as_ref().map(|assessment| TerminalTerms::of(input, assessment, self.binding()));
        Self { terminal, ..self }
    }

    /// The same, which named a way to people that is not there.
    pub fn instead_of(self, named: Option<ChannelChoice>) -> Self {
        Self { not_configured: named, ..self }
    }

    /// The same, asked by an engine.
    pub fn from_engine(self, terms: EngineTerms) -> Self {
        let requester = Requester { door: Door::Engine, ..self.requester };
        Self { requester, engine: Some(terms), ..self }
    }

    /// The folder that the work belongs to, as the requester says.
    pub fn workspace(&self) -> Option<&str> {
        let bound = self.binding().and_then(|binding| binding.workspace.as_deref());
        bound.or_else(|| self.terminal.as_ref().map(|terms| terms.workspace.as_str()))
    }

    /// Whether everything in a command runs inside this folder, as far as its text and its folder say.
    pub fn stays_in(&self, workspace: &str) -> bool {
        let Some(assessment) = &self.assessment else { return false };
        let record = &assessment.record;
        !record.anywhere && !record.folders.is_empty() && record.folders.iter().all(|folder| lies_in(folder, workspace))
    }

    /// What a command would find where it runs.
    pub fn binding(&self) -> Option<&Binding> {
        match &self.action {
            Action::Exec(exec) => exec.binding.as_deref(),
            Action::Tool { .. } | Action::Question { .. } | Action::Custom { .. } => None,
        }
    }

    /// What was not assessed is for a person to look at.
    pub fn risk(&self) -> Risk {
        self.assessment.as_ref().map_or(Risk::NeedsReview, |assessment| assessment.risk)
    }
}

fn check_label(field: &'static str, text: &str) -> Result<(), RequestError> {
    let bad = text.is_empty() || text.chars().count() > MAX_LABEL_CHARS || text.chars().any(char::is_control);
    if bad { Err(RequestError::Label(field)) } else { Ok(()) }
}

fn check_words(field: &'static str, text: Option<&str>) -> Result<(), RequestError> {
    match text {
        Some(text) if text.len() > MAX_TITLE_BYTES => Err(RequestError::WordsTooLong(field)),
        Some(text) if text.contains('\0') => Err(RequestError::Action(ActionError::Nul(field))),
        Some(_) | None => Ok(()),
    }
}

/// One name must not stand for two things.
fn check_alias(alias: Option<&str>) -> Result<(), RequestError> {
    let Some(alias) = alias else { return Ok(()) };
    check_label("id", alias)?;
    if ApprovalId::is_like(alias) { Err(RequestError::AliasLikeId) } else { Ok(()) }
}

fn check_labels(labels: &BTreeMap<String, String>) -> Result<(), RequestError> {
    if labels.len() > MAX_LABELS {
        return Err(RequestError::TooManyLabels);
    }
    for (name, text) in labels {
        check_label("name of a fact", name)?;
        check_words("fact", Some(text))?;
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::action::Exec;
    use serde_json::json;

    pub(crate) fn exec(command: &str) -> Action {
        Action::Exec(Exec {
            command: command.to_owned(),
            argv: None,
            cwd: None,
            env: Default::default(),
            binding: None,
        })
    }

    pub(crate) fn tool(name: &str, category: &str) -> Action {
        Action::Tool { name: name.to_owned(), category: Some(category.to_owned()), args: json!({}) }
    }

    pub(crate) fn custom(action_type: &str, preview: &str) -> Action {
        Action::Custom {
            action_type: ActionType::new(action_type).unwrap(),
            title: "title".to_owned(),
            preview: preview.to_owned(),
            options: Vec::new(),
        }
    }

    pub(crate) fn question() -> Action {
        Action::Question { text: "which?".to_owned(), options: vec![] }
    }

    pub(crate) fn type_of(action: &Action) -> ActionType {
        match action {
            Action::Exec(_) => ActionType::exec(),
            Action::Tool { name, .. } => ActionType::new(format!("custom:{name}")).unwrap(),
            Action::Question { .. } => ActionType::new("question").unwrap(),
            Action::Custom { action_type, .. } => action_type.clone(),
        }
    }

    fn requester() -> Requester {
        Requester {
            key_id: KeyId::from_random([7; 16]),
            client_id: ClientId::new("0123456789ab"),
            name: "bot".to_owned(),
            profile: "default".to_owned(),
            door: Door::Http,
        }
    }

    fn build(action: Action, action_type: ActionType, session: &str) -> Result<Request, RequestError> {
        Request::new(
            requester(),
            session.to_owned(),
            None,
            None,
            action,
            action_type,
            AgentWords::default(),
            ChannelChoice::Any,
            Target::default(),
            TermsAsked::default(),
            None,
            &CommandTypes::default(),
        )
    }

    pub(crate) fn request(action: Action) -> Request {
        let action_type = type_of(&action);
        build(action, action_type, "sess_1").unwrap()
    }

    #[test]
    fn a_command_cannot_pose_as_another_type_nor_another_as_a_command() {
        let harmless = ActionType::new("http_request").unwrap();
        assert_eq!(build(exec("rm -rf /"), harmless, "s"), Err(RequestError::TypeMismatch));
        let bash = || ActionType::new("Bash").unwrap();
        assert_eq!(build(tool("x", "edit"), bash(), "s"), Err(RequestError::TypeMismatch));
        assert_eq!(build(question(), bash(), "s"), Err(RequestError::TypeMismatch));
        assert_eq!(build(custom("http_request", "p"), bash(), "s"), Err(RequestError::TypeMismatch));
        assert_eq!(build(custom("Bash", "p"), ActionType::new("x").unwrap(), "s"), Err(RequestError::TypeMismatch));
        assert_eq!(build(custom("x", "p"), ActionType::new("y").unwrap(), "s"), Err(RequestError::TypeMismatch));
    }

    #[test]
    fn threat_92_a_custom_action_of_a_commands_type_is_that_command() {
        for name in ["exec_cmd", "Bash", "bash_command", "custom:bash", "run-shell-command"] {
            let asked = build(custom(name, "rm -rf /"), ActionType::new(name).unwrap(), "s").unwrap();
            assert_eq!((asked.action, asked.words.title.as_deref()), (exec("rm -rf /"), Some("title")), "{name}");
            assert_eq!((asked.assessment.unwrap().risk, asked.action_type.as_str()), (Risk::Dangerous, name));
        }
    }

    #[test]
    fn threat_77_a_request_without_a_session_is_refused() {
        for session in ["", "a\nb", &"x".repeat(257)] {
            assert_eq!(build(exec("ls"), ActionType::exec(), session), Err(RequestError::Label("session_id")));
        }
    }
}
