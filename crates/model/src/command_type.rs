//! Which action types mean a shell command. What comes under such a type is a command, whatever else it says: otherwise a
//! yes to the type, given to something harmless, would speak for every later command.

use std::collections::BTreeSet;

use crate::action::{Action, ActionType, Exec};
use crate::request::RequestError;

/// As agents' own tools and older clients call it, in the spelling of `plain`.
const BUILT_IN: [&str; 13] = [
    "bash",
    "bashcommand",
    "bashtool",
    "execcmd",
    "execcommand",
    "executecommand",
    "runcommand",
    "runshellcommand",
    "sh",
    "shell",
    "shellcommand",
    "terminal",
    "zsh",
];
const CUSTOM: &str = "custom:";

/// The built-in ones and the operator's own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandTypes(BTreeSet<String>);

impl CommandTypes {
    pub fn with(added: impl IntoIterator<Item = String>) -> Self {
        Self(added.into_iter().map(|name| plain(&name)).filter(|name| !name.is_empty()).collect())
    }

    /// However it is spelled: `Bash`, `run-command` and `runCommand` mean what `bash` and `run_command` do.
    pub fn include(&self, action_type: &str) -> bool {
        let name = plain(action_type);
        BUILT_IN.contains(&name.as_str()) || self.0.contains(&name)
    }

    /// The same for a custom action, whose type may say that it is one.
    pub fn include_custom(&self, action_type: &str) -> bool {
        self.include(action_type) || action_type.strip_prefix(CUSTOM).is_some_and(|rest| self.include(rest))
    }

    /// The action as it is ruled: one of a command's type is that command. Only a command has such a type, and it has no
    /// other.
    pub(crate) fn read(&self, action: Action, action_type: &ActionType) -> Result<Action, RequestError> {
        match action {
            Action::Exec(exec) if self.include_custom(action_type.as_str()) => Ok(Action::Exec(exec)),
            Action::Custom { action_type: own, preview, options, .. }
                if self.include_custom(own.as_str()) || self.include_custom(action_type.as_str()) =>
            {
                if own != *action_type || !options.is_empty() {
                    return Err(RequestError::TypeMismatch);
                }
                let (argv, cwd, env, binding) = (None, None, Default::default(), None);
                Ok(Action::Exec(Exec { command: preview, argv, cwd, env, binding }))
            }
            Action::Custom { action_type: ref own, .. } if own == action_type => Ok(action),
            Action::Tool { .. } | Action::Question { .. } if !self.include(action_type.as_str()) => Ok(action),
            Action::Exec(_) | Action::Tool { .. } | Action::Question { .. } | Action::Custom { .. } => {
                Err(RequestError::TypeMismatch)
            }
        }
    }
}

/// Letters and digits alone, in lower case.
fn plain(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric() || *c == ':').flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threat_92_types_that_mean_a_command_are_known_however_they_are_spelled() {
        let types = CommandTypes::with(["fish_line".to_owned(), String::new()]);
        for name in [
            "exec_cmd",
            "bash_command",
            "Bash",
            "bash",
            "BASH",
            "shell",
            "Shell",
            "sh",
            "run_command",
            "run-command",
            "runCommand",
            "run_shell_command",
            "execute_command",
            "ExecuteCommand",
            "terminal",
            "Fish-Line",
        ] {
            assert!(types.include(name) && types.include_custom(&format!("custom:{name}")), "{name}");
        }
        for name in ["http_request", "write_file", "deploy", "bashful", "custom:deploy", "", "shutdown"] {
            assert!(!types.include_custom(name), "{name}");
        }
        assert!(!CommandTypes::default().include("fish_line"));
    }
}
