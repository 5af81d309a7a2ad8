//! What an agent sends: one action in any of its forms, read into the gate's request.

use std::collections::BTreeMap;

use countersign_gate::{EngineAsk, Idempotency, NewRequest, Take};
use countersign_model::{
    Action, ActionType, AgentWords, Ask, Binding, ChannelChoice, CommandTypes, Exec, Security, Target, TerminalInput,
    TermsAsked, canonical_bytes, sha256,
};
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::http::body::{Object, whole_number};
use crate::http::engine::ModeWord;
use crate::http::problem::Problem;
use crate::words::{WordsError, exec_of_words};

/// How long a request is open when neither it nor policy says.
const DEFAULT_EXPIRES_MS: u64 = 600_000;
/// The same, asked by an engine.
const ENGINE_EXPIRES_MS: u64 = 300_000;

/// What an agent wants to do. Give `command` (or `argv`), `tool`, `question`, or `action_type` with `title` and
/// `preview`. Unknown fields are ignored.
#[derive(Debug, Deserialize, ToSchema)]
pub(in super::super) struct CreateApproval {
    /// The agent's run; session allows hold for it.
    #[schema(min_length = 1, max_length = 256, pattern = "^[!-~]+$", example = "sess_123")]
    session_id: String,
    #[schema(min_length = 1, max_length = 128, pattern = "^[!-~]+$", example = "http_request")]
    action_type: Option<String>,
    #[schema(max_length = 1024, example = "POST request")]
    title: Option<String>,
    #[schema(example = "POST https://api.example.com/pay")]
    preview: Option<String>,
    #[schema(value_type = Option<Channel>)]
    channel: Option<ChannelChoice>,
    #[schema(value_type = Option<TargetIn>)]
    target: Option<Object<TargetIn>>,
    #[serde(default, deserialize_with = "whole_number")]
    #[schema(minimum = 1, maximum = 86400, default = 600)]
    expires_in_sec: Option<u64>,
    /// Which person's or page's strip it belongs to.
    #[schema(min_length = 1, max_length = 256, pattern = "^[!-~]+$")]
    context_id: Option<String>,
    /// Rules this request more strictly than policy does; never less.
    #[schema(value_type = Option<SecurityWord>)]
    security: Option<Security>,
    /// `off`, `on-miss` or `always`; any other words are shown as the agent's own.
    #[schema(max_length = 1024)]
    ask: Option<String>,
    /// Shell text.
    #[schema(max_length = 16384)]
    command: Option<String>,
    cwd: Option<String>,
    env: Option<BTreeMap<String, String>>,
    /// A command without a shell.
    #[schema(min_items = 1)]
    argv: Option<Vec<String>>,
    /// What the command would find where it runs, as a runner of ours looked it up.
    #[schema(value_type = Option<Object>)]
    binding: Option<Box<Binding>>,
    /// The folder that the work belongs to, absolute.
    #[schema(max_length = 4096, pattern = "^/")]
    workspace: Option<String>,
    /// The text of the workspace's `.agents/terminal.json`.
    terminal_file: Option<String>,
    #[schema(min_length = 1)]
    tool: Option<String>,
    category: Option<String>,
    #[schema(value_type = Option<Object>)]
    args: Option<Value>,
    question: Option<String>,
    /// Of a question, or of an action with `title` and `preview`: what it can be answered with.
    options: Option<Vec<String>>,
    /// The agent's name for itself: a claim, which can only make policy stricter.
    #[schema(min_length = 1, max_length = 256, pattern = "^[!-~]+$")]
    agent_id: Option<String>,
    /// The same key and body within a day is the same request.
    #[schema(min_length = 1, max_length = 256, pattern = "^[!-~]+$")]
    idempotency_key: Option<String>,
    callback_url: Option<String>,
    /// Takes the permit at once where policy says yes without asking a person: the caller acts now.
    #[serde(default)]
    consume: bool,
    /// Asked by an engine, or by a relay before one.
    #[schema(value_type = Option<EngineIn>)]
    engine: Option<Object<EngineIn>>,
    /// Holds the answer up to this many seconds while it is pending; at most 60 count.
    #[serde(default, deserialize_with = "whole_number")]
    #[schema(minimum = 0, maximum = 86400)]
    pub(in super::super) wait: Option<u64>,
}

#[derive(Debug, Default, Deserialize, ToSchema)]
pub(in super::super) struct TargetIn {
    tg_chat_id: Option<String>,
    email_to: Option<String>,
}

/// What an engine's session adds to a request.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub(in super::super) struct EngineIn {
    /// The session's mode; it counts as far as the profile's `maxMode` lets it, and with one safe commands ask too.
    mode: Option<ModeWord>,
    /// Where the engine's tools are confined to, absolute.
    #[schema(max_length = 4096, pattern = "^/")]
    workspace: Option<String>,
    /// Of a command: the tool that would run it.
    #[schema(max_length = 128)]
    tool: Option<String>,
    /// How long a person has, in place of `expires_in_sec`.
    #[serde(default, deserialize_with = "whole_number")]
    #[schema(minimum = 1, maximum = 86400000, default = 300000)]
    ttl_ms: Option<u64>,
}

/// For the documentation: the model's own words.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
#[expect(dead_code, reason = "documents the values of a field that the model's enum parses")]
pub(in super::super) enum Channel {
    Any,
    Web,
    Hub,
    Telegram,
    Email,
}

/// For the documentation: the model's own words.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
#[expect(dead_code, reason = "documents the values of a field that the model's enum parses")]
pub(in super::super) enum SecurityWord {
    Deny,
    Allowlist,
    Full,
}

impl CreateApproval {
    /// `body` is what it was read from, for the idempotency key.
    pub(in super::super) fn into_request(
        mut self,
        body: &[u8],
        commands: &CommandTypes,
    ) -> Result<NewRequest, Problem> {
        if self.callback_url.is_some() {
            let message = "no webhook channel is set up on this gate; leave `callback_url` out and use `wait`";
            return Err(Problem::unprocessable("channel_not_configured", message));
        }
        let idempotency = self.idempotency_key.clone().map(|key| idempotency(key, body)).transpose()?;
        let ask_word = self.ask.as_deref().and_then(|word| serde_json::from_value::<Ask>(json!(word)).ok());
        let (action, action_type) = self.action(commands)?;
        let title = match &action {
            Action::Custom { .. } => None,
            Action::Exec(_) | Action::Tool { .. } | Action::Question { .. } => self.title,
        };
        let Object(target) = self.target.unwrap_or_default();
        let file = self.terminal_file.map(String::into_bytes);
        let engine = self.engine.map(|Object(engine)| engine);
        let ttl_ms = engine.as_ref().and_then(|engine| engine.ttl_ms);
        let default_ms = if engine.is_some() { ENGINE_EXPIRES_MS } else { DEFAULT_EXPIRES_MS };
        let terminal = self.workspace.map(|workspace| TerminalInput { workspace, file });
        Ok(NewRequest {
            session_id: self.session_id,
            context_id: self.context_id,
            action,
            action_type,
            alias: None,
            words: AgentWords {
                title,
                ask: self.ask.filter(|_| ask_word.is_none()),
                agent_id: self.agent_id,
                ..AgentWords::default()
            },
            channel: self.channel.unwrap_or_default(),
            target: Target { tg_chat_id: target.tg_chat_id, email_to: target.email_to },
            terms: TermsAsked { security: self.security, ask: ask_word },
            expires_in_ms: ttl_ms.or(self.expires_in_sec.map(|seconds| seconds.saturating_mul(1000))),
            default_ms,
            idempotency,
            terminal,
            take: if self.consume { Take::Consume } else { Take::No },
            engine: engine.map(|engine| EngineAsk {
                mode: engine.mode.map(Into::into),
                workspace: engine.workspace,
                tool: engine.tool,
            }),
        })
    }

    /// Exactly one action, and the type it goes by.
    fn action(&mut self, commands: &CommandTypes) -> Result<(Action, ActionType), Problem> {
        let is_command = self.command.is_some() || self.argv.is_some();
        let kinds = [is_command, self.tool.is_some(), self.question.is_some()];
        if kinds.into_iter().filter(|given| *given).count() > 1 {
            let message = "give one of `command`, `tool` and `question`, not several";
            return Err(Problem::unprocessable("ambiguous_action", message));
        }
        let given_type = self.action_type.clone().map(ActionType::new).transpose().map_err(invalid)?;
        if is_command {
            return Ok((self.exec()?, given_type.unwrap_or_else(ActionType::exec)));
        }
        if let Some(name) = self.tool.take() {
            if name.is_empty() {
                return Err(Problem::unprocessable("invalid_field", "`tool` is the tool's name and not empty"));
            }
            let action_type = match given_type {
                Some(given) => given,
                None => ActionType::new(format!("custom:{name}")).map_err(invalid)?,
            };
            let args = self.args.take().unwrap_or_else(|| json!({}));
            return Ok((Action::Tool { name, category: self.category.take(), args }, action_type));
        }
        if let Some(text) = self.question.take() {
            let action_type = match given_type {
                Some(given) => given,
                None => ActionType::new("question").map_err(invalid)?,
            };
            let options = self.options.take().unwrap_or_default();
            return Ok((Action::Question { text, options }, action_type));
        }
        let action_type = given_type.ok_or_else(|| missing("action_type"))?;
        let preview = self.preview.take().ok_or_else(|| missing("preview"))?;
        if commands.include_custom(action_type.as_str()) {
            return Ok((self.exec_of(preview), action_type));
        }
        let title = self.title.take().ok_or_else(|| missing("title"))?;
        let options = self.options.take().unwrap_or_default();
        Ok((Action::Custom { action_type: action_type.clone(), title, preview, options }, action_type))
    }

    fn exec(&mut self) -> Result<Action, Problem> {
        let Some(argv) = self.argv.take() else {
            let command = self.command.take().unwrap_or_default();
            return Ok(self.exec_of(command));
        };
        let (cwd, env) = (self.cwd.take(), self.env.take().unwrap_or_default());
        let exec = exec_of_words(argv, self.command.as_deref(), cwd, env).map_err(|error| {
            let code = match error {
                WordsError::NoProgram => "invalid_field",
                WordsError::Differ => "ambiguous_action",
            };
            Problem::unprocessable(code, error.to_string())
        })?;
        Ok(Action::Exec(Exec { binding: self.binding.take(), ..exec }))
    }

    fn exec_of(&mut self, command: String) -> Action {
        let env = self.env.take().unwrap_or_default();
        Action::Exec(Exec { command, argv: None, cwd: self.cwd.take(), env, binding: self.binding.take() })
    }
}

fn idempotency(key: String, body: &[u8]) -> Result<Idempotency, Problem> {
    let mut value: Value = serde_json::from_slice(body).map_err(|error| invalid(error.to_string()))?;
    if let Some(fields) = value.as_object_mut() {
        // How long the caller would wait does not make it another request.
        fields.remove("wait");
    }
    let bytes = canonical_bytes(&value).map_err(|error| invalid(error.to_string()))?;
    Ok(Idempotency { key, body: sha256(&bytes) })
}

fn missing(field: &str) -> Problem {
    Problem::unprocessable(
        "missing_field",
        format!(
            "`{field}` is missing; give `command`, `tool`, `question`, or `action_type` with `title` and `preview`"
        ),
    )
}

fn invalid(error: impl ToString) -> Problem {
    Problem::unprocessable("invalid_field", error.to_string())
}
