//! Puts lines into a profile's policy. Terms are only ever tightened, lists only ever grow, and a line ends up in the
//! report exactly once.

use countersign_model::{AllowEntry, Ask, DenyEntry, Entry, Overlay, Policy, Security, ToolEffect, ToolRule};

use super::line::{Change, Line, Term, Wish, word};
use super::report::{self, Fate, Report};

#[derive(Debug)]
pub struct Merged {
    pub policy: Policy,
    pub report: Report,
}

/// What one change did.
enum Done {
    Changed,
    Same,
    No(String),
}

struct Merge {
    policy: Policy,
    allow_full: bool,
    origin: String,
    /// Agents whose list was made by this import: only these may grow.
    listed: Vec<String>,
}

/// `origin`: what the new entries say of where they are from.
pub fn merge(policy: Policy, lines: Vec<Line>, allow_full: bool, origin: &str) -> Merged {
    let mut merge = Merge { policy, allow_full, origin: origin.to_owned(), listed: Vec::new() };
    let entries = lines.into_iter().map(|line| merge.line(line)).collect();
    Merged { policy: merge.policy, report: Report { entries } }
}

impl Merge {
    fn line(&mut self, line: Line) -> report::Entry {
        let Line { from, wish } = line;
        let (changes, narrowed) = match wish {
            Wish::Refuse(why) => return report::Entry { fate: Fate::Refused, from, to: Vec::new(), why: Some(why) },
            Wish::Keep(why) => return report::Entry { fate: Fate::Unchanged, from, to: Vec::new(), why: Some(why) },
            Wish::Change { changes, why } => (changes, why),
        };
        let (mut to, mut changed, mut refused) = (Vec::new(), false, None);
        for change in &changes {
            match self.change(change) {
                Done::Changed => {
                    changed = true;
                    to.push(change.to_string());
                }
                Done::Same => to.push(change.to_string()),
                Done::No(why) => refused = refused.or(Some(why)),
            }
        }
        let why = match (refused, narrowed) {
            (Some(refused), Some(narrowed)) => Some(format!("{narrowed}; {refused}")),
            (refused, narrowed) => refused.or(narrowed),
        };
        let fate = match (changed, to.is_empty(), &why) {
            (_, true, _) => Fate::Refused,
            (false, false, _) => Fate::Unchanged,
            (true, false, None) => Fate::Taken,
            (true, false, Some(_)) => Fate::Narrowed,
        };
        report::Entry { fate, from, to, why }
    }

    fn change(&mut self, change: &Change) -> Done {
        match change {
            Change::Allow(pattern) => self.allow(pattern),
            Change::Deny(pattern) => self.deny(pattern),
            Change::Tool(name, effect) => self.tool(name, *effect),
            Change::Term(term) => self.term(*term),
            Change::AgentTerm(agent, term) => self.agent_term(agent, *term),
            Change::AgentAllow(agent, pattern) => self.agent_allow(agent, pattern),
        }
    }

    fn entry(&self, pattern: &str) -> Option<AllowEntry> {
        let source = Some(self.origin.clone());
        let entry = |pattern| AllowEntry {
            last_resolved_path: None,
            id: None,
            pattern,
            arg_pattern: None,
            source,
            last_used_at: None,
            last_used_command: None,
        };
        Entry::parse(pattern).map(entry)
    }

    fn allow(&mut self, pattern: &str) -> Done {
        if lists(&self.policy.allowlist, pattern) {
            return Done::Same;
        }
        let Some(entry) = self.entry(pattern) else { return no_entry() };
        self.policy.allowlist.push(entry);
        Done::Changed
    }

    fn deny(&mut self, pattern: &str) -> Done {
        if self.policy.deny.iter().any(|rule| rule.pattern.pattern == pattern) {
            return Done::Same;
        }
        let Some(parsed) = Entry::parse(pattern) else { return no_entry() };
        self.policy.deny.push(DenyEntry { id: None, pattern: parsed, reason: Some(self.origin.clone()) });
        Done::Changed
    }

    fn tool(&mut self, name: &str, effect: ToolEffect) -> Done {
        let named = |rule: &&ToolRule| rule.name.as_deref() == Some(name);
        let held = self.policy.tools.iter().filter(named).map(|rule| strictness(rule.effect)).max();
        match held {
            Some(held) if held == strictness(effect) => return Done::Same,
            Some(held) if held > strictness(effect) => return Done::No(format!("a stricter rule names `{name}`")),
            Some(_) | None => {}
        }
        self.policy.tools.push(ToolRule { name: Some(name.to_owned()), category: None, effect });
        Done::Changed
    }

    fn term(&mut self, term: Term) -> Done {
        let policy = &mut self.policy;
        match term {
            Term::Security(Security::Full) if self.allow_full && policy.security == Security::Allowlist => {
                policy.security = Security::Full;
                Done::Changed
            }
            Term::Security(wanted) => {
                let done = tighter(rank(policy.security), rank(wanted), &word(&policy.security));
                if matches!(done, Done::Changed) {
                    policy.security = wanted;
                }
                if wanted == Security::Full && !self.allow_full && matches!(done, Done::No(_)) {
                    return Done::No(
                        "everything would be allowed that no rule denies; if that is meant, add `--allow-full`"
                            .to_owned(),
                    );
                }
                done
            }
            Term::Ask(wanted) => {
                let done = ask(policy.ask, wanted);
                if matches!(done, Done::Changed) {
                    policy.ask = wanted;
                }
                done
            }
            Term::Fallback(wanted) => {
                let held = word(&policy.ask_fallback);
                let done = tighter(policy.ask_fallback as u64, wanted as u64, &held);
                if matches!(done, Done::Changed) {
                    policy.ask_fallback = wanted;
                }
                done
            }
            Term::TimeoutMs(wanted) => {
                let done = shorter(policy.timeout_ms, wanted);
                if matches!(done, Done::Changed) {
                    policy.timeout_ms = Some(wanted);
                }
                done
            }
        }
    }

    /// Against what rules the agent now. An overlay cannot loosen, so what is looser is said to be of no use.
    fn agent_term(&mut self, agent: &str, term: Term) -> Done {
        let profile = &self.policy;
        let mut overlay = profile.agents.get(agent).cloned().unwrap_or_default();
        let done = match term {
            Term::Security(wanted) => {
                let held = overlay.security.unwrap_or(profile.security);
                let held = if rank(held) < rank(profile.security) { held } else { profile.security };
                overlay.security = Some(wanted);
                tighter(rank(held), rank(wanted), &word(&held))
            }
            Term::Ask(wanted) => {
                let held = overlay.ask.unwrap_or(profile.ask);
                overlay.ask = Some(wanted);
                ask(held, wanted)
            }
            Term::Fallback(wanted) => {
                let held = overlay.ask_fallback.unwrap_or(profile.ask_fallback).min(profile.ask_fallback);
                overlay.ask_fallback = Some(wanted);
                tighter(held as u64, wanted as u64, &word(&held))
            }
            Term::TimeoutMs(wanted) => {
                let held = [overlay.timeout_ms, profile.timeout_ms].into_iter().flatten().min();
                overlay.timeout_ms = Some(wanted);
                shorter(held, wanted)
            }
        };
        if matches!(done, Done::Changed) {
            self.policy.agents.insert(agent.to_owned(), overlay);
        }
        done
    }

    /// A list of an agent's own holds it to less, and only where the profile as a whole is not held to its list.
    fn agent_allow(&mut self, agent: &str, pattern: &str) -> Done {
        if lists(&self.policy.allowlist, pattern) && self.policy.security != Security::Full {
            return Done::Same;
        }
        let held_to_list = |overlay: &Overlay| overlay.security == Some(Security::Allowlist);
        let overlay = self.policy.agents.get(agent);
        if self.policy.security != Security::Full || !overlay.is_some_and(held_to_list) {
            return Done::No(format!(
                "it is for `{agent}` alone, and a profile cannot give one agent more than the others; import it with \
                 `--agent {agent} --profile NAME` and give that agent a key of the profile"
            ));
        }
        if !self.listed.iter().any(|known| known == agent) {
            if overlay.is_some_and(|overlay| overlay.allowlist.is_some()) {
                return Done::No(format!("`{agent}` is held to a list already, and this would add to it"));
            }
            self.listed.push(agent.to_owned());
        }
        let Some(entry) = self.entry(pattern) else { return no_entry() };
        // Without a list of its own it was held to the profile's: that stays.
        let inherited = self.policy.allowlist.clone();
        let Some(overlay) = self.policy.agents.get_mut(agent) else { return Done::No("no such agent".to_owned()) };
        let list = overlay.allowlist.get_or_insert(inherited);
        if lists(list, pattern) {
            return Done::Same;
        }
        list.push(entry);
        Done::Changed
    }
}

fn lists(entries: &[AllowEntry], pattern: &str) -> bool {
    entries.iter().any(|entry| entry.arg_pattern.is_none() && entry.pattern.pattern == pattern)
}

fn no_entry() -> Done {
    Done::No("it is no entry".to_owned())
}

fn strictness(effect: ToolEffect) -> u8 {
    match effect {
        ToolEffect::Allow => 0,
        ToolEffect::Ask => 1,
        ToolEffect::Deny => 2,
    }
}

/// From strict to lenient, as fallbacks are ordered.
fn rank(security: Security) -> u64 {
    match security {
        Security::Deny => 0,
        Security::Allowlist => 1,
        Security::Full => 2,
    }
}

fn tighter(held: u64, wanted: u64, held_word: &str) -> Done {
    match wanted.cmp(&held) {
        std::cmp::Ordering::Less => Done::Changed,
        std::cmp::Ordering::Equal => Done::Same,
        std::cmp::Ordering::Greater => looser(held_word),
    }
}

/// `always` asks about what is covered, `off` denies what is not: neither is stricter than the other.
fn ask(held: Ask, wanted: Ask) -> Done {
    match (held, wanted) {
        _ if held == wanted => Done::Same,
        (Ask::OnMiss, Ask::Off | Ask::Always) => Done::Changed,
        (Ask::Off | Ask::Always, _) | (Ask::OnMiss, Ask::OnMiss) => looser(&word(&held)),
    }
}

fn shorter(held: Option<u64>, wanted: u64) -> Done {
    match held {
        Some(held) if held == wanted => Done::Same,
        Some(held) if held < wanted => looser(&held.to_string()),
        Some(_) | None => Done::Changed,
    }
}

fn looser(held: &str) -> Done {
    Done::No(format!("it would loosen what holds now (`{held}`), and an import never does"))
}
