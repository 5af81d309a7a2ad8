//! What a session needs no answer for: its mode, tools by exact name, and commands by entries. The table is the
//! model's, covering is the shell engine's; here are only the facts they are asked with.

use std::collections::BTreeSet;

use countersign_model::{ActionKind, AllowBy, Ask, Facts, Mode, Offer, Ruling, Security, Terms, rule};
use countersign_shell::{Coverage, Entry, Options, assess, cover};

use crate::protocol::{ApprovalScope, Category, Tool};

/// In an engine's session nothing is allowed for being safe: the host sees every call that nobody granted.
const TERMS: Terms = Terms { security: Security::Allowlist, ask: Ask::OnMiss, allow_safe: false };

#[derive(Debug)]
pub(super) struct Session {
    pub mode: Mode,
    tools: BTreeSet<String>,
    entries: Vec<Entry>,
}

impl Default for Session {
    fn default() -> Self {
        Self { mode: Mode::Default, tools: BTreeSet::new(), entries: Vec::new() }
    }
}

impl Session {
    pub fn needs_approval(&self, tool: &Tool) -> bool {
        let facts = Facts {
            kind: kind_of(tool),
            denied: false,
            cover: self.covers(tool).then_some(AllowBy::Grant),
            risk: None,
            mode: Some(self.mode),
            mode_covers: matches!(tool.category, Category::Info | Category::Edit),
        };
        !matches!(rule(TERMS, facts), Ruling::Allow(_))
    }

    fn covers(&self, tool: &Tool) -> bool {
        if let Some(command) = tool.command() {
            let options = Options::default();
            return cover(&assess(command, &options), &self.entries, TERMS.allow_safe, &options) == Coverage::Covered;
        }
        // A tool that runs commands is never granted by its name, whatever it is called.
        tool.category != Category::Exec && self.tools.contains(&tool.name)
    }

    /// Notes what the scope grants, or says why it cannot.
    pub fn grant(&mut self, tool: &Tool, scope: ApprovalScope) -> Result<(), String> {
        match scope {
            ApprovalScope::Once => Ok(()),
            ApprovalScope::Always if tool.is_question() => Err("a question is asked every time".to_owned()),
            ApprovalScope::Always if tool.category == Category::Exec => {
                let command = tool.command().ok_or("its command is not known")?;
                let record = assess(command, &Options::default());
                let risk = record.risk;
                match record.record().offer(risk, TERMS.allow_safe) {
                    Offer::Entries { patterns, .. } => {
                        self.entries.extend(patterns.iter().filter_map(|pattern| Entry::parse(pattern)));
                        Ok(())
                    }
                    Offer::Refused(why) => Err(why),
                }
            }
            ApprovalScope::Always => {
                self.tools.insert(tool.name.clone());
                Ok(())
            }
            ApprovalScope::AlwaysPrefix { .. } if tool.category != Category::Exec => {
                Err("a prefix is for tools that run commands".to_owned())
            }
            ApprovalScope::AlwaysPrefix { prefix } => {
                self.entries.push(Entry::offered_prefix(&prefix)?);
                Ok(())
            }
        }
    }
}

fn kind_of(tool: &Tool) -> ActionKind {
    match tool.category {
        _ if tool.is_question() => ActionKind::Question,
        Category::Exec => ActionKind::Exec,
        Category::Info | Category::Edit | Category::Mcp => ActionKind::Tool,
    }
}
