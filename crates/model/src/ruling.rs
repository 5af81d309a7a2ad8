//! The ruling: policy's answer to one action, as one pure function over plain facts.
//!
//! The table is in `docs/policy.md`; the first row that applies stands. Rulings are ordered, so that ruling
//! twice and keeping the stricter is `max`.

use serde::{Deserialize, Serialize};

use crate::action::ActionKind;
use crate::risk::Risk;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Security {
    /// Nothing is allowed.
    Deny,
    /// What is on a list or safe runs; the rest depends on `ask`.
    #[default]
    Allowlist,
    /// Everything runs that no deny rule names.
    Full,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ask {
    Off,
    #[default]
    OnMiss,
    Always,
}

/// What an unanswered question becomes. Ordered from strict to lenient.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fallback {
    #[default]
    Deny,
    Allowlist,
    Full,
}

/// The engine's modes. Ordered by how much runs without asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    Default,
    AutoEdit,
    Force,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AllowBy {
    Full,
    Grant,
    Allowlist,
    Safe,
    Mode,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DenyWhy {
    Rule,
    Security,
    NotAllowlisted,
    /// The policy document cannot be read: nothing can be ruled by it.
    PolicyUnreadable,
    /// The policy's limit on questions to people is reached.
    Flooding,
}

/// Ordered: `Deny > Ask > Allow`.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ruling {
    Allow(AllowBy),
    Ask,
    Deny(DenyWhy),
}

/// The settings one ruling is made under.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    pub security: Security,
    pub ask: Ask,
    pub allow_safe: bool,
}

/// What is known of one action when it is ruled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    pub kind: ActionKind,
    /// A deny rule or blacklist entry names it.
    pub denied: bool,
    /// A grant or an allowlist entry speaks for all of it.
    pub cover: Option<AllowBy>,
    /// Of an Exec.
    pub risk: Option<Risk>,
    pub mode: Option<Mode>,
    /// Mode `auto_edit` speaks for this tool.
    pub mode_covers: bool,
}

/// Rows 1 to 9, top to bottom.
pub fn rule(terms: Terms, facts: Facts) -> Ruling {
    if facts.denied {
        return Ruling::Deny(DenyWhy::Rule);
    }
    if terms.security == Security::Deny {
        return Ruling::Deny(DenyWhy::Security);
    }
    if facts.kind == ActionKind::Question {
        return Ruling::Ask;
    }
    if facts.mode == Some(Mode::Force) || (terms.security == Security::Full && terms.ask != Ask::Always) {
        return Ruling::Allow(AllowBy::Full);
    }
    if terms.ask == Ask::Always {
        return Ruling::Ask;
    }
    if let Some(by) = facts.cover {
        return Ruling::Allow(by);
    }
    match facts.kind {
        ActionKind::Exec if facts.risk == Some(Risk::Safe) && terms.allow_safe => {
            return Ruling::Allow(AllowBy::Safe);
        }
        ActionKind::Tool if facts.mode == Some(Mode::AutoEdit) && facts.mode_covers => {
            return Ruling::Allow(AllowBy::Mode);
        }
        ActionKind::Exec | ActionKind::Tool | ActionKind::Question | ActionKind::Custom => {}
    }
    match terms.ask {
        Ask::OnMiss | Ask::Always => Ruling::Ask,
        Ask::Off => Ruling::Deny(DenyWhy::NotAllowlisted),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECURITY: [Security; 3] = [Security::Deny, Security::Allowlist, Security::Full];
    const ASK: [Ask; 3] = [Ask::Off, Ask::OnMiss, Ask::Always];
    const KINDS: [ActionKind; 4] = [ActionKind::Exec, ActionKind::Tool, ActionKind::Question, ActionKind::Custom];
    const MODES: [Option<Mode>; 4] = [None, Some(Mode::Default), Some(Mode::AutoEdit), Some(Mode::Force)];
    const COVERS: [Option<AllowBy>; 3] = [None, Some(AllowBy::Grant), Some(AllowBy::Allowlist)];
    const RISKS: [Option<Risk>; 4] = [None, Some(Risk::Safe), Some(Risk::NeedsReview), Some(Risk::Dangerous)];
    const BOOLS: [bool; 2] = [false, true];

    fn every_combination(mut check: impl FnMut(Terms, Facts)) {
        for security in SECURITY {
            for ask in ASK {
                for allow_safe in BOOLS {
                    for kind in KINDS {
                        for denied in BOOLS {
                            for cover in COVERS {
                                for risk in RISKS {
                                    for mode in MODES {
                                        for mode_covers in BOOLS {
                                            check(
                                                Terms { security, ask, allow_safe },
                                                Facts { kind, denied, cover, risk, mode, mode_covers },
                                            );
                                        }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }

    /// The table as data, one predicate a row, written apart from `rule`.
    type Row = (fn(&Terms, &Facts) -> bool, fn(&Facts) -> Ruling);
    const TABLE: [Row; 10] = [
        (|_, f| f.denied, |_| Ruling::Deny(DenyWhy::Rule)),
        (|t, _| matches!(t.security, Security::Deny), |_| Ruling::Deny(DenyWhy::Security)),
        (|_, f| matches!(f.kind, ActionKind::Question), |_| Ruling::Ask),
        (
            |t, f| {
                matches!(f.mode, Some(Mode::Force))
                    || (matches!(t.security, Security::Full) && !matches!(t.ask, Ask::Always))
            },
            |_| Ruling::Allow(AllowBy::Full),
        ),
        (|t, _| matches!(t.ask, Ask::Always), |_| Ruling::Ask),
        (|_, f| f.cover.is_some(), |f| Ruling::Allow(f.cover.unwrap())),
        (
            |t, f| matches!(f.kind, ActionKind::Exec) && matches!(f.risk, Some(Risk::Safe)) && t.allow_safe,
            |_| Ruling::Allow(AllowBy::Safe),
        ),
        (
            |_, f| matches!(f.kind, ActionKind::Tool) && matches!(f.mode, Some(Mode::AutoEdit)) && f.mode_covers,
            |_| Ruling::Allow(AllowBy::Mode),
        ),
        (|t, _| matches!(t.ask, Ask::OnMiss), |_| Ruling::Ask),
        (|t, _| matches!(t.ask, Ask::Off), |_| Ruling::Deny(DenyWhy::NotAllowlisted)),
    ];

    #[test]
    fn every_combination_is_ruled_by_the_first_row_that_applies() {
        let mut seen = 0;
        every_combination(|terms, facts| {
            let (_, expected) = TABLE.iter().find(|(applies, _)| applies(&terms, &facts)).unwrap();
            assert_eq!(rule(terms, facts), expected(&facts), "{terms:?} {facts:?}");
            seen += 1;
        });
        assert_eq!(seen, 3 * 3 * 2 * 4 * 2 * 3 * 4 * 4 * 2);
    }

    #[test]
    fn a_deny_rule_is_never_outweighed() {
        every_combination(|terms, facts| {
            if facts.denied {
                assert_eq!(rule(terms, facts), Ruling::Deny(DenyWhy::Rule));
            }
        });
    }

    #[test]
    fn losing_a_cover_never_allows_more() {
        every_combination(|terms, facts| {
            let without = rule(terms, Facts { cover: None, ..facts });
            if matches!(without, Ruling::Allow(_)) {
                assert!(matches!(rule(terms, facts), Ruling::Allow(_)), "{terms:?} {facts:?}");
            }
        });
    }

    #[test]
    fn deny_outranks_ask_outranks_allow() {
        assert!(Ruling::Deny(DenyWhy::Rule) > Ruling::Ask);
        assert!(Ruling::Ask > Ruling::Allow(AllowBy::Mode));
        assert_eq!(Ruling::Allow(AllowBy::Full).max(Ruling::Deny(DenyWhy::Security)), Ruling::Deny(DenyWhy::Security));
    }
}
