//! What is looked at of a text with more commands than anybody would read: not enough to say what it does, enough to
//! name what is dangerous in it. Owns what that may cost.

use std::collections::HashSet;

use crate::expand::text::base_name;
use crate::parse::{Command, Item, Kind, List, Node, Part, SimpleNode};

use super::words::literal;
use super::{Base, Heres, Walker};

/// Different commands that are looked at closer, and what they may unfold into.
const MAX_CLOSER: usize = 64;
const MAX_MORE: usize = 256;

#[derive(Debug, Default)]
pub(super) struct Beyond<'t> {
    /// Commands that were looked at, as they are written.
    seen: HashSet<&'t str>,
    closer: bool,
    /// The last program that no rule speaks of: it is hardly ever another one.
    dull: String,
    /// A loop is walked to learn what it assigns; what is found then is forgotten.
    learning: bool,
}

impl Beyond<'_> {
    /// How many commands may be listed now.
    pub(super) fn most(&self, usual: usize) -> usize {
        if self.closer { usual + MAX_MORE } else { usual }
    }

    /// Says whether this is for learning, and what it was before.
    pub(super) fn learn(&mut self, learning: bool) -> bool {
        std::mem::replace(&mut self.learning, learning)
    }

    /// Whether rules may have something to say of this command.
    fn tells(&mut self, node: &SimpleNode<'_>, command: &Command<'_>) -> bool {
        if !command.redirects.is_empty() || !node.assigns.is_empty() {
            return true;
        }
        let Some(name) = node.words.first().and_then(literal) else { return false };
        if *name == *self.dull {
            return false;
        }
        let telling = is_telling(base_name(&name));
        if !telling {
            self.dull.clear();
            self.dull.push_str(&name);
        }
        telling
    }
}

impl<'t> Walker<'t> {
    /// A command as it is written; what is decoded from other text has no place of its own to be known by.
    fn written(&self, command: &Command<'_>) -> Option<&'t str> {
        let Base::Offset(_) = self.frame.base else { return None };
        let span = self.at(command.span);
        self.text.get(span.start..span.end)
    }

    /// Whether nothing in here would be looked at any more.
    pub(super) fn is_dull(&mut self, item: &Item<'_>) -> bool {
        item.chain.iter().flat_map(|pipeline| &pipeline.stages).all(|stage| self.is_dull_stage(stage))
    }

    pub(super) fn is_dull_stage(&mut self, command: &Command<'_>) -> bool {
        if self.out.simples.len() < self.beyond.most(super::MAX_COMMANDS) {
            return false;
        }
        self.beyond.seen.len() >= MAX_CLOSER
            || self.written(command).is_some_and(|text| self.beyond.seen.contains(text))
            || match &command.kind {
                Kind::Simple(node) => !(self.beyond.tells(node, command) || node.words.iter().any(holds_commands)),
                _ => false,
            }
    }

    /// A command beyond those that are listed: listed after all if its program is one that rules speak of.
    pub(super) fn glance(&mut self, command: &Command<'_>, heres: Heres<'_, '_>) {
        if self.beyond.learning || self.beyond.seen.len() >= MAX_CLOSER {
            return;
        }
        match &command.kind {
            Kind::Simple(node) => self.glance_at(node, command, heres),
            Kind::Subshell(list) | Kind::Group(list) => self.glance_all(list, heres),
            Kind::If { branches, otherwise } => {
                for (condition, body) in branches {
                    self.glance_all(condition, heres);
                    self.glance_all(body, heres);
                }
                if let Some(list) = otherwise {
                    self.glance_all(list, heres);
                }
            }
            Kind::Loop { condition, body } => {
                self.glance_all(condition, heres);
                self.glance_all(body, heres);
            }
            Kind::For { body, .. } | Kind::CountedFor { body, .. } => self.glance_all(body, heres),
            Kind::Case { arms, .. } => {
                for (_, body) in arms {
                    self.glance_all(body, heres);
                }
            }
            Kind::Function { body, .. } | Kind::Coprocess(body) => self.glance(body, heres),
            Kind::Arithmetic(_) | Kind::Condition(_) => {}
        }
    }

    fn glance_all(&mut self, list: &List<'_>, heres: Heres<'_, '_>) {
        let commands = list.items.iter().flat_map(|item| &item.chain).flat_map(|pipeline| &pipeline.stages);
        for command in commands {
            self.glance(command, heres);
        }
    }

    fn glance_at(&mut self, node: &SimpleNode<'_>, command: &Command<'_>, heres: Heres<'_, '_>) {
        for part in node.words.iter().flat_map(|word| &word.parts) {
            if let Part::Command(substitution) | Part::Process(substitution) = part {
                self.glance_all(&substitution.list, heres);
            }
        }
        let Some(text) = self.written(command) else { return };
        if self.beyond.tells(node, command) && self.beyond.seen.insert(text) {
            let closer = std::mem::replace(&mut self.beyond.closer, true);
            self.simple(node, command, heres);
            self.beyond.closer = closer;
        }
    }
}

fn holds_commands(word: &Node<'_>) -> bool {
    word.parts.iter().any(|part| !matches!(part, Part::Text { .. }))
}

/// Whether rules speak of this program, or it runs what they speak of.
fn is_telling(name: &str) -> bool {
    crate::danger::speaks_of(name) || crate::unwrap::is_wrapper(name) || crate::unwrap::is_shell(name)
}
