//! Puts the layers together: one text in, one assessment out.

use crate::command::Simple;
use crate::danger::{self, Does, Scope};
use crate::effect::{Mark, Reversibility};
use crate::entry::Token;
use crate::expand::text::base_name;
use crate::input;
use crate::location::Location;
use crate::obeyed::Obeyed;
use crate::offer::{self, Offer};
use crate::reason::{Layer, Reason, Risk};
use crate::rules::Rules;
use crate::safe;
use crate::surroundings;
use crate::walk::{self, Constructs, Role, Walk};
use crate::word::{Span, Word};

/// From a program word to the file it starts, absolute and without links.
pub type Resolve<'r> = dyn Fn(&str) -> Option<String> + 'r;

/// What the caller knows and the text does not say.
#[derive(Clone, Copy, Default)]
pub struct Options<'o> {
    /// Where the text would run.
    pub location: Location<'o>,
    /// The user's own rules, beside the built-in ones.
    pub rules: Option<&'o Rules>,
    /// Which file a program word starts on this machine.
    pub resolve: Option<&'o Resolve<'o>>,
    /// What the command is given to run with, beside what it sets itself.
    pub environment: &'o [(&'o str, &'o str)],
}

impl std::fmt::Debug for Options<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options").field("location", &self.location).field("resolve", &self.resolve.is_some()).finish()
    }
}

/// What the text would do.
#[derive(Debug)]
#[must_use]
pub struct Assessment {
    pub risk: Risk,
    /// Whether what it does can be undone.
    pub reversibility: Reversibility,
    /// In the order of the text.
    pub reasons: Vec<Reason>,
    pub commands: Vec<Simple>,
    /// Which of them obey files of a project, so that what they do is only known where those were looked at.
    pub obeyed: Vec<Obeyed>,
    /// Whether allowlist entries may speak for it at all.
    pub coverable: bool,
    /// Whether the whole text was understood.
    pub parsed: bool,
    pub flags: Flags,
    /// The narrowest entries that would cover it next time, or why there are none.
    pub offer: Offer,
    pub(crate) parts: Vec<Part>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Flags {
    pub writes: bool,
    pub network: bool,
    pub privilege: bool,
    pub inline_code: bool,
    pub dynamic: bool,
}

/// What covering needs to know of each command, as long as `commands`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Part {
    #[serde(flatten)]
    pub role: Role,
    /// The highest risk that is said of this command itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub risk: Option<Risk>,
    /// Only an exact entry speaks for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exact_only: bool,
    /// Whether it can be undone, by what the program layer says of it.
    #[serde(skip)]
    pub asked: Reversibility,
}

impl Assessment {
    /// Adds what somebody found around the command: it is asked about, and no entry speaks for it.
    pub fn add(&mut self, message: String) {
        let span = Span { start: 0, end: 0 };
        let does = danger::said("repository_helper");
        let (code, layer, risk) = ("repository_helper".into(), Layer::Program, Risk::NeedsReview);
        self.risk = self.risk.max(risk);
        self.coverable = false;
        self.reasons.push(Reason { code, message: message.into(), span, layer, risk, does });
    }

    /// Whether a command of this number does nothing but read, by all that is said of it.
    pub fn only_reads(&self, command: usize) -> bool {
        self.parts.get(command).is_some_and(|part| part.risk.is_none())
    }
}

pub fn assess(text: &str, options: &Options<'_>) -> Assessment {
    if let Some(reason) = input::unshowable(text) {
        return refused(reason);
    }
    let strange = input::strange_characters(text);
    let scope = Scope { workspace: options.location.workspace };
    let own = options.rules.and_then(Rules::programs);
    let mut walk = walk::walk(text, options.location, own);
    let mut parts = parts(&walk);
    let mut coverable = coverable(&walk.constructs) && strange.is_none() && !walk.empty;
    let mut reasons: Vec<Reason> = Vec::with_capacity(walk.findings.len());
    for finding in walk.findings.drain(..) {
        let simple = finding.simple.and_then(|at| walk.simples.get(at));
        match finding.simple.and_then(|at| parts.get_mut(at)).zip(simple) {
            Some((part, simple)) => {
                part.risk = part.risk.max(Some(finding.reason.risk));
                part.exact_only |= exact_only(&finding.reason, simple);
                if finding.reason.layer == Layer::Program {
                    part.asked = part.asked.max(finding.reason.does.reversibility);
                }
            }
            None => coverable = false,
        }
        reasons.push(finding.reason);
    }
    reasons.extend(strange);
    if walk.empty {
        let span = Span { start: 0, end: text.len() };
        reasons.push(input::input_reason("empty", "there is no command here", span, Risk::NeedsReview));
    }
    let outside = surroundings::judge(options);
    if !outside.reasons.is_empty() {
        coverable &= !outside.never_covered;
        // It holds for everything that runs: nothing is safe by itself then.
        for part in &mut parts {
            part.risk = part.risk.max(Some(Risk::NeedsReview));
        }
        reasons.extend(outside.reasons);
    }
    let added = |simple: &Simple| own.is_some_and(|own| safe::is_own(simple, own));
    let asked = |at: usize| {
        parts.get(at).is_some_and(|part: &Part| part.risk.is_some()) || walk.simples.get(at).is_some_and(added)
    };
    let judged = danger::judge(&walk.simples, &scope, options.rules.and_then(Rules::dangers), asked);
    for (at, reason) in judged.each {
        if let Some(part) = parts.get_mut(at) {
            part.risk = Some(Risk::Dangerous);
        }
        reasons.push(reason);
    }
    // What the engine knows to do more than read is not made a reader by a user's table.
    for ((simple, part), known) in walk.simples.iter().zip(&mut parts).zip(&judged.known).filter(|_| own.is_some()) {
        if part.risk.is_none()
            && let Some(does) = known.filter(|does| *does != Does::default())
            && let Some(word) = simple.argv.first()
        {
            part.risk = Some(Risk::NeedsReview);
            reasons.push(more_than_reads(word.span, does));
        }
    }
    coverable &= judged.together.is_empty();
    reasons.extend(judged.together);
    for reason in &mut reasons {
        reason.span = within(text, reason.span);
    }
    finish(walk, parts, reasons, coverable, &judged.known)
}

fn more_than_reads(span: Span, does: Does) -> Reason {
    Reason {
        code: "more_than_reads".into(),
        message: "known to do more than read, whatever a table of one's own says".into(),
        span,
        layer: Layer::Program,
        risk: Risk::NeedsReview,
        does,
    }
}

/// A span on whole characters of the text: a parser that stops at a broken end may point one byte past it.
fn within(text: &str, span: Span) -> Span {
    let start = text.floor_char_boundary(span.start);
    Span { start, end: text.ceil_char_boundary(span.end.min(text.len())).max(start) }
}

/// Text tools whose script can run programs.
const SCRIPTED: &[&str] = &["sed", "gsed", "awk", "gawk", "mawk", "nawk", "jq"];

/// Whether only an entry for exactly this argv speaks for a command of which this is said: an entry names a program,
/// not what that program is told to run nor the secrets it is told to read.
fn exact_only(reason: &Reason, simple: &Simple) -> bool {
    if matches!(reason.layer, Layer::Syntax | Layer::Input) || reason.does.effects.has(Mark::Secrets) {
        return true;
    }
    reason.does.effects.has(Mark::Runs) && {
        let program = simple.argv.first().and_then(Word::known).unwrap_or_default();
        let option = simple.argv.iter().any(|word| word.span == reason.span && word.picture().starts_with('-'));
        option || SCRIPTED.contains(&base_name(program))
    }
}

fn finish(
    walk: Walk,
    parts: Vec<Part>,
    mut reasons: Vec<Reason>,
    coverable: bool,
    known: &[Option<Does>],
) -> Assessment {
    let flags = flags(&walk, &reasons, known);
    let reversibility = reversibility(&parts, &reasons, known);
    reasons.sort_by(|a, b| (a.span.start, b.risk, &a.code).cmp(&(b.span.start, a.risk, &b.code)));
    reasons.dedup_by(|a, b| a.code == b.code && a.span == b.span);
    let risk = reasons.iter().map(|reason| reason.risk).max().unwrap_or(Risk::Safe);
    let commands = walk.simples.iter().zip(&parts).map(|(simple, part)| (simple.argv.iter().map(Token::from), *part));
    let offer = offer::narrowest(commands, risk, coverable, true);
    let parsed = !walk.constructs.unparsable && !walk.constructs.crowded;
    Assessment {
        risk,
        reversibility,
        reasons,
        commands: walk.simples,
        obeyed: walk.obeyed,
        coverable,
        parsed,
        flags,
        offer,
        parts,
    }
}

/// The worst of all commands. What is known of a command by its name says more than what its words gave cause to ask.
fn reversibility(parts: &[Part], reasons: &[Reason], known: &[Option<Does>]) -> Reversibility {
    let asked = |(part, known): (&Part, &Option<Does>)| known.map_or(part.asked, |does| does.reversibility);
    let each = parts.iter().zip(known).map(asked);
    let said = reasons.iter().filter(|reason| reason.layer != Layer::Program).map(|reason| reason.does.reversibility);
    each.chain(said).max().unwrap_or_default()
}

fn refused(reason: Reason) -> Assessment {
    Assessment {
        risk: reason.risk,
        reversibility: Reversibility::Unknown,
        offer: Offer::Refused("text that cannot be shown is never allowed".to_owned()),
        reasons: vec![reason],
        commands: Vec::new(),
        obeyed: Vec::new(),
        coverable: false,
        parsed: false,
        flags: Flags::default(),
        parts: Vec::new(),
    }
}

fn parts(walk: &Walk) -> Vec<Part> {
    walk.roles.iter().map(|role| Part { role: *role, ..Part::default() }).collect()
}

fn coverable(constructs: &Constructs) -> bool {
    let Constructs {
        substitution,
        process,
        background,
        file_redirect,
        dangerous_assignment,
        shadowing,
        unparsable,
        crowded,
        inline_code: _,
    } = *constructs;
    let runs_more = substitution || process || background || shadowing || crowded;
    !(runs_more || file_redirect || dangerous_assignment || unparsable)
}

fn flags(walk: &Walk, reasons: &[Reason], known: &[Option<Does>]) -> Flags {
    let all = || reasons.iter().map(|reason| reason.does).chain(known.iter().copied().flatten());
    Flags {
        writes: walk.constructs.file_redirect || all().any(|does| does.effects.has(Mark::Writes)),
        network: all().any(|does| does.effects.has(Mark::Network)),
        privilege: walk.simples.iter().any(|simple| simple.via.iter().any(|via| via.privileged)),
        inline_code: walk.constructs.inline_code,
        dynamic: walk.simples.iter().any(|simple| simple.argv.iter().any(Word::is_dynamic)),
    }
}
