//! Walks a parsed text in the order bash would and lists every simple command it could start, with what is known
//! of its words. Owns the order of things and the state that goes with it (variables, standard input, nesting);
//! what a command means is for the layers it asks.

mod arithmetic;
mod bounded;
mod commands;
mod compounds;
mod env;
pub(crate) mod folder;
mod glance;
mod inner;
mod numbers;
mod parameters;
mod substitutions;
#[cfg(test)]
mod tests;
mod words;

use std::borrow::Cow;
use std::rc::Rc;

use crate::budget::Budget;
use crate::command::{Place, Simple, Stdin, Via};
use crate::danger;
use crate::location::Location;
use crate::obeyed::Obeyed;
use crate::parse::{self, Fault, FaultKind, Here, Parsed};
use crate::reason::{Layer, Reason, Risk};
use crate::safe::Rows;
use crate::word::{Span, Word};
pub(crate) use env::Env;

/// Wrappers inside wrappers.
pub(crate) const MAX_NESTING: usize = 8;
/// What one text may unfold into: over what anybody would read.
const MAX_COMMANDS: usize = 512;

/// What walking a text gives.
#[derive(Debug, Default)]
pub(crate) struct Walk {
    pub simples: Vec<Simple>,
    /// What each simple command is to the others; as long as `simples`.
    pub roles: Vec<Role>,
    pub findings: Vec<Finding>,
    pub constructs: Constructs,
    /// Which commands obey files of a project.
    pub obeyed: Vec<Obeyed>,
    pub empty: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Role {
    /// Runs other commands that are listed by themselves.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub carrier: bool,
    /// A carrier that adds nothing of its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub transparent: bool,
    /// Starts no program and asks nothing: a bare assignment or redirection.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub bare: bool,
    /// The carrier that runs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carried_by: Option<usize>,
}

/// A reason, and the command it is about.
#[derive(Debug)]
pub(crate) struct Finding {
    pub reason: Reason,
    pub simple: Option<usize>,
}

/// Constructs that no allowlist entry covers, harmless or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Constructs {
    pub substitution: bool,
    pub process: bool,
    pub background: bool,
    pub file_redirect: bool,
    pub dangerous_assignment: bool,
    pub shadowing: bool,
    pub unparsable: bool,
    /// More commands than are listed.
    pub crowded: bool,
    pub inline_code: bool,
}

/// Where the text being walked lies in the text that was given.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Base {
    Offset(usize),
    /// Inside something decoded: everything is said of this span.
    Fixed(Span),
}

/// Everything around the command being walked.
#[derive(Clone, Debug)]
struct Frame {
    base: Base,
    place: Place,
    via: Rc<Vec<Via>>,
    stdin: Stdin,
    /// The stage before lists paths, refs or counts only.
    bounded_stdin: bool,
    /// Numbers only, where it is bounded.
    numbers_stdin: bool,
    nesting: usize,
    /// Loops around here.
    loops: usize,
    /// The carrier this is run by.
    carrier: Option<usize>,
    /// `$0`, `$1`, … where they are known.
    positional: Option<Rc<Vec<Word>>>,
}

#[derive(Debug)]
pub(crate) struct Walker<'t> {
    text: &'t str,
    location: Location<'t>,
    /// The user's own programs that only read.
    own: Option<&'t Rows>,
    env: Env,
    frame: Frame,
    functions: Vec<String>,
    /// The words being read are files to a command that only compares or reads them.
    as_a_file: bool,
    /// What may still be built.
    budget: &'t Budget,
    /// What is still looked at when there is too much to read.
    beyond: glance::Beyond<'t>,
    out: Walk,
}

/// How much was found at some point.
#[derive(Debug)]
struct Mark {
    simples: usize,
    findings: usize,
    obeyed: usize,
    functions: usize,
    constructs: Constructs,
}

/// The heredocs of the text being walked.
type Heres<'h, 'a> = &'h [Here<'a>];

/// `own`: the user's own programs that only read.
pub(crate) fn walk<'t>(text: &'t str, location: Location<'t>, own: Option<&'t Rows>) -> Walk {
    let budget = Budget::of(text);
    let frame = Frame {
        base: Base::Offset(0),
        place: Place::default(),
        via: Rc::new(Vec::new()),
        stdin: Stdin::Inherited,
        bounded_stdin: false,
        numbers_stdin: false,
        nesting: 0,
        loops: 0,
        carrier: None,
        positional: None,
    };
    let mut walker = Walker {
        text,
        location,
        own,
        env: Env::starting_in(location.folder),
        frame,
        functions: Vec::new(),
        as_a_file: false,
        budget: &budget,
        beyond: glance::Beyond::default(),
        out: Walk::default(),
    };
    let parsed = parse::parse(text, 0);
    walker.out.empty = parsed.list.items.is_empty() && parsed.fault.is_none();
    walker.parsed(&parsed);
    walker.settle();
    walker.out
}

impl Walker<'_> {
    fn parsed(&mut self, parsed: &Parsed<'_>) {
        if let Some(fault) = parsed.fault {
            self.fault(fault);
        }
        self.list(&parsed.list, &parsed.heres);
    }

    fn fault(&mut self, fault: Fault) {
        self.out.constructs.unparsable = true;
        let span = self.at(fault.span);
        let (code, message, risk) = match fault.kind {
            FaultKind::Unterminated => {
                ("unparsable", "a quote, bracket or heredoc is opened here and never closed", Risk::NeedsReview)
            }
            FaultKind::Unexpected => ("unparsable", "this is no shell syntax", Risk::NeedsReview),
            FaultKind::SplitToken => {
                ("split_token", "a line break hides inside a word or operator here", Risk::NeedsReview)
            }
            FaultKind::TooDeep => {
                ("too_deep", "constructs are nested so deep that nobody could read them", Risk::Dangerous)
            }
        };
        self.find(code, message, span, risk);
    }

    /// A reason about the text rather than one command.
    fn find(&mut self, code: &'static str, message: impl Into<Cow<'static, str>>, span: Span, risk: Risk) {
        self.find_of(None, code, message, span, risk);
    }

    fn find_of(
        &mut self,
        simple: Option<usize>,
        code: &'static str,
        message: impl Into<Cow<'static, str>>,
        span: Span,
        risk: Risk,
    ) {
        let layer = if matches!(code, "unparsable" | "too_deep" | "too_many_commands" | "unfolds_too_far") {
            Layer::Input
        } else {
            Layer::Syntax
        };
        let reason =
            Reason { code: Cow::Borrowed(code), message: message.into(), span, layer, risk, does: danger::said(code) };
        self.out.findings.push(Finding { reason, simple });
    }

    /// A span of the text being walked, in the text that was given.
    fn at(&self, span: Span) -> Span {
        match self.frame.base {
            Base::Offset(offset) => Span { start: span.start + offset, end: span.end + offset },
            Base::Fixed(span) => span,
        }
    }

    /// Runs with a changed frame and puts the old one back.
    fn framed<T>(&mut self, change: impl FnOnce(&mut Frame), inner: impl FnOnce(&mut Self) -> T) -> T {
        let saved = self.frame.clone();
        change(&mut self.frame);
        let outcome = inner(self);
        self.frame = saved;
        outcome
    }

    /// Runs what cannot change the variables outside.
    fn isolated<T>(&mut self, inner: impl FnOnce(&mut Self) -> T) -> T {
        let saved = self.env.clone();
        let outcome = inner(self);
        self.env = saved;
        outcome
    }

    /// Runs what may or may not happen.
    fn maybe<T>(&mut self, inner: impl FnOnce(&mut Self) -> T) -> T {
        let saved = self.env.clone();
        let outcome = inner(self);
        self.env.join(&saved, self.budget);
        outcome
    }

    fn mark(&self) -> Mark {
        Mark {
            simples: self.out.simples.len(),
            findings: self.out.findings.len(),
            obeyed: self.out.obeyed.len(),
            functions: self.functions.len(),
            constructs: self.out.constructs,
        }
    }

    /// Drops what was found since the mark.
    fn forget(&mut self, mark: &Mark) {
        self.out.simples.truncate(mark.simples);
        self.out.roles.truncate(mark.simples);
        self.out.findings.truncate(mark.findings);
        self.out.obeyed.truncate(mark.obeyed);
        self.functions.truncate(mark.functions);
        self.out.constructs = mark.constructs;
    }

    /// How deep text inside text counts as being already: the deeper, the less may be nested in it.
    fn parse_depth(&self) -> usize {
        self.frame.nesting * (parse::MAX_DEPTH / (MAX_NESTING + 1))
    }

    /// Whether no more commands are listed; says so once.
    fn full(&mut self, span: Span) -> bool {
        if self.budget.is_spent() {
            return true;
        }
        let full = self.out.simples.len() >= self.beyond.most(MAX_COMMANDS);
        if full {
            self.crowd(span);
        }
        full
    }

    /// Says so when the text stands for more than was built of it.
    fn settle(&mut self) {
        if self.budget.is_spent() {
            self.out.constructs.crowded = true;
            let span = Span { start: 0, end: self.text.len() };
            let message = "this unfolds into far more than is written here, more than anybody could read";
            self.find("unfolds_too_far", message, span, Risk::Dangerous);
        }
    }

    /// There is more from here on than is looked at; says so once.
    fn crowd(&mut self, span: Span) {
        if !std::mem::replace(&mut self.out.constructs.crowded, true) {
            let message = "there are more commands from here on than anybody could read";
            self.find("too_many_commands", message, span, Risk::Dangerous);
        }
    }
}
