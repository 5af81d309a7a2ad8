//! Commands inside words: `$(…)`, backticks, `<(…)`, prompt strings and subscripts.

use crate::command::Stdin;
use crate::parse::{self, List, Parsed, Substitution};
use crate::reason::Risk;
use crate::word::{Source, Span, Value};

use super::compounds::dynamic;
use super::{Base, Frame, Heres, MAX_NESTING, Walker, bounded};

impl Walker<'_> {
    /// What `$(…)` is to the word around it.
    pub(super) fn substitution(&mut self, substitution: &Substitution<'_>, heres: Heres<'_, '_>) -> Value {
        let span = self.at(substitution.span);
        self.substituted(&substitution.list, span, |walker| walker.list(&substitution.list, heres))
    }

    pub(super) fn backtick(&mut self, text: &str, offset: Option<usize>, span: Span) -> Value {
        let span = self.at(span);
        let base = match (self.frame.base, offset) {
            (Base::Offset(base), Some(offset)) => Base::Offset(base + offset),
            _ => Base::Fixed(span),
        };
        if self.too_deep(span) || !self.budget.parse(text.len()) {
            return dynamic(Source::Output);
        }
        let parsed = parse::parse(text, self.parse_depth());
        self.substituted(&parsed.list, span, |walker| {
            walker.framed(
                |frame| {
                    frame.base = base;
                    frame.nesting += 1;
                },
                |walker| walker.parsed(&parsed),
            );
        })
    }

    /// Walks the inner commands, then decides what their output is to the word around it.
    fn substituted(&mut self, list: &List<'_>, span: Span, walk: impl FnOnce(&mut Self)) -> Value {
        self.out.constructs.substitution = true;
        if !self.budget.steps(1) {
            return dynamic(Source::Output);
        }
        let found = self.out.findings.len();
        self.framed(enter_substitution, |walker| walker.isolated(walk));
        let harmless = self.out.findings.len() == found;
        if harmless && let Some(text) = bounded::printed(list) {
            return Value::Known(text.trim_end_matches('\n').to_owned());
        }
        if harmless && self.prints_numbers(list) {
            return dynamic(Source::Number);
        }
        if harmless && bounded::list(list) {
            return dynamic(if bounded::names_files(list) { Source::Names } else { Source::BoundedOutput });
        }
        self.find("substitution", "whatever this prints becomes part of the command", span, Risk::NeedsReview);
        dynamic(Source::Output)
    }

    /// `<(…)` is as good as a file where text is only compared or read line by line, and what prints it shows files.
    pub(super) fn process(&mut self, substitution: &Substitution<'_>, heres: Heres<'_, '_>) {
        let span = self.at(substitution.span);
        let list = &substitution.list;
        self.out.constructs.process = true;
        let found = self.out.findings.len();
        self.framed(
            |frame| enter_process(frame, substitution.fed),
            |walker| walker.isolated(|walker| walker.list(list, heres)),
        );
        if !(self.as_a_file && !substitution.fed && self.out.findings.len() == found && bounded::shows_files(list)) {
            self.find("process_substitution", "runs a command and hands it over as a file", span, Risk::NeedsReview);
        }
    }

    /// `${x@P}` expands the value as a prompt, commands included.
    pub(super) fn prompt_expansion(&mut self, value: &Value, span: Span) {
        self.find("evaluated_content", "`@P` runs whatever commands the value holds", span, Risk::NeedsReview);
        let texts: Vec<&str> = match value {
            Value::Known(text) | Value::Glob(text) => vec![text],
            Value::Dynamic(dynamic) => alternatives(&dynamic.sources),
        };
        for text in texts {
            self.evaluated_text(text, span);
        }
    }

    /// A name that a builtin evaluates: commands in its subscript run.
    pub(super) fn evaluated_name(&mut self, text: &str, span: Span) {
        if !text.contains('[') || !text.contains(['$', '`']) {
            return;
        }
        self.find("evaluated_content", "commands in this subscript run when it is looked up", span, Risk::NeedsReview);
        self.evaluated_text(text, span);
    }

    /// Walks the commands in text that is evaluated as if in double quotes.
    fn evaluated_text(&mut self, text: &str, span: Span) {
        if self.too_deep(span) || !self.budget.parse(text.len()) {
            return;
        }
        let (parts, parsed) = parse::parse_quoted(text, self.parse_depth());
        self.framed(
            |frame| {
                frame.base = Base::Fixed(span);
                frame.nesting += 1;
            },
            |walker| {
                walker.parsed(&Parsed { list: List::default(), heres: Vec::new(), fault: parsed.fault });
                walker.inspect(&parts, &parsed.heres);
            },
        );
    }

    /// Says so when nothing further inside is looked at.
    pub(super) fn too_deep(&mut self, span: Span) -> bool {
        let deep = self.frame.nesting >= MAX_NESTING;
        if deep {
            self.deep(span);
        }
        deep
    }

    /// What lies further in is not looked at.
    pub(super) fn deep(&mut self, span: Span) {
        self.out.constructs.unparsable = true;
        self.find("too_deep", "commands are wrapped so deep that nobody could read them", span, Risk::Dangerous);
    }
}

fn enter_substitution(frame: &mut Frame) {
    frame.place.substitution = true;
    frame.place.subshell = true;
    frame.place.captured = true;
    if let Stdin::Here(_) = frame.stdin {
        frame.stdin = Stdin::Inherited;
    }
}

/// `>(…)` reads from a pipe, and prints where the command around it does.
fn enter_process(frame: &mut Frame, fed: bool) {
    let captured = frame.place.captured;
    enter_substitution(frame);
    if fed {
        frame.place.captured = captured;
        frame.bounded_stdin = false;
        if !matches!(frame.stdin, Stdin::Pipe(_)) {
            frame.stdin = Stdin::Pipe(Vec::new());
        }
    }
}

pub(super) fn alternatives(sources: &[Source]) -> Vec<&str> {
    let listed = sources.iter().filter_map(|source| if let Source::OneOf(texts) = source { Some(texts) } else { None });
    listed.flatten().map(String::as_str).collect()
}
