//! Lists, pipelines and compound commands.

use crate::command::{HereDoc, RedirectKind, Simple, Stdin};
use crate::expand::text::base_name;
use crate::parse::{Command, Item, Kind, List, Node, Part, Pipeline, Redirection};
use crate::reason::Risk;
use crate::word::{Source, Value};

use super::arithmetic::Round;
use super::env::Binding;
use super::numbers::is_numeric;
use super::{Heres, Walker, bounded};

/// Distinct programs remembered as feeding a pipe.
const MAX_FEEDERS: usize = 32;
/// Loops inside each other that are walked twice.
const MAX_WALKED_TWICE: usize = 2;
/// Loops in loops, as far as anybody would read.
const MAX_LOOPS: usize = 12;

/// Words of a loop that are looked at one by one; more count as unknown.
const MAX_LOOPED: usize = 32;

/// Operators of `[[ … ]]` that evaluate both sides.
const COMPARISONS: &[&str] = &["-eq", "-ne", "-lt", "-le", "-gt", "-ge"];

impl Walker<'_> {
    pub(super) fn list(&mut self, list: &List<'_>, heres: Heres<'_, '_>) {
        for item in &list.items {
            self.item(item, heres);
        }
    }

    fn item(&mut self, item: &Item<'_>, heres: Heres<'_, '_>) {
        if self.out.constructs.crowded && self.is_dull(item) {
            self.out.constructs.background |= item.background.is_some();
            return;
        }
        let Some(span) = item.background else { return self.chain(item, heres) };
        let span = self.at(span);
        self.out.constructs.background = true;
        self.find("background", "keeps running in the background after this returns", span, Risk::NeedsReview);
        self.framed(
            |frame| frame.place.background = true,
            |walker| walker.isolated(|walker| walker.chain(item, heres)),
        );
    }

    fn chain(&mut self, item: &Item<'_>, heres: Heres<'_, '_>) {
        for (index, pipeline) in item.chain.iter().enumerate() {
            if index == 0 {
                self.pipeline(pipeline, heres);
            } else {
                self.maybe(|walker| walker.pipeline(pipeline, heres));
            }
        }
    }

    fn pipeline(&mut self, pipeline: &Pipeline<'_>, heres: Heres<'_, '_>) {
        if let [only] = pipeline.stages.as_slice() {
            return self.command(only, heres);
        }
        let mut feeders: Vec<String> = Vec::new();
        for (index, stage) in pipeline.stages.iter().enumerate() {
            if self.out.constructs.crowded && self.is_dull_stage(stage) {
                continue;
            }
            let before = self.out.simples.len();
            let stdin = match index.checked_sub(1) {
                None => self.frame.stdin.clone(),
                Some(before) => match bounded::statements(pipeline.stages.get(before..=index).unwrap_or_default()) {
                    Some(text) => Stdin::Here(HereDoc { text: Some(text.into()) }),
                    None => Stdin::Pipe(feeders.clone()),
                },
            };
            let before_it = pipeline.stages.get(..index).unwrap_or_default();
            let bounded = index > 0 && bounded::stages(before_it);
            let numbers = bounded && self.stages_print_numbers(before_it);
            self.framed(
                |frame| {
                    frame.stdin = stdin;
                    frame.bounded_stdin = bounded;
                    frame.numbers_stdin = numbers;
                    frame.place.subshell = true;
                    frame.place.captured |= index + 1 < pipeline.stages.len();
                },
                |walker| walker.isolated(|walker| walker.command(stage, heres)),
            );
            self.add_feeders(&mut feeders, before);
        }
    }

    /// Puts the programs of the stage just walked in front of those that fed it.
    pub(super) fn add_feeders(&self, feeders: &mut Vec<String>, from: usize) {
        let stage = self.out.simples.get(from..).unwrap_or_default();
        let mut names: Vec<String> = Vec::new();
        for simple in stage.iter().rev().take(MAX_FEEDERS) {
            if let Some(name) = program_name(simple)
                && !names.contains(&name)
            {
                names.push(name);
            }
        }
        feeders.retain(|name| !names.contains(name));
        names.append(feeders);
        names.truncate(MAX_FEEDERS);
        *feeders = names;
    }

    pub(super) fn command(&mut self, command: &Command<'_>, heres: Heres<'_, '_>) {
        if !self.budget.steps(1) {
            return;
        }
        if self.full(self.at(command.span)) {
            return self.glance(command, heres);
        }
        if let Kind::Simple(node) = &command.kind {
            return self.simple(node, command, heres);
        }
        let redirects = self.redirects(&command.redirects, heres);
        let stdin = redirects.stdin.clone();
        if !redirects.list.is_empty() {
            self.bare_redirects(command, redirects);
        }
        match stdin {
            Some(stdin) => self.framed(
                |frame| {
                    frame.stdin = stdin;
                    frame.bounded_stdin = command.redirects.iter().any(lists_names);
                },
                |walker| walker.compound(&command.kind, heres),
            ),
            None => self.compound(&command.kind, heres),
        }
    }

    fn compound(&mut self, kind: &Kind<'_>, heres: Heres<'_, '_>) {
        match kind {
            Kind::Simple(_) => {}
            Kind::Subshell(list) => self.framed(
                |frame| frame.place.subshell = true,
                |walker| walker.isolated(|walker| walker.list(list, heres)),
            ),
            Kind::Group(list) => self.list(list, heres),
            Kind::If { branches, otherwise } => self.branches(branches, otherwise.as_ref(), heres),
            Kind::Loop { condition, body } => {
                self.endless(condition);
                self.looped(|walker| {
                    walker.list(condition, heres);
                    walker.list(body, heres);
                });
            }
            Kind::For { name, words, body } => self.for_loop(name, words.as_deref(), body, heres),
            Kind::CountedFor { header, body } => {
                self.arithmetic_in(header, Round::First, heres);
                self.looped(|walker| {
                    walker.arithmetic_in(header, Round::Again, heres);
                    walker.list(body, heres);
                });
            }
            Kind::Case { subject, arms } => {
                self.inspect(&subject.parts, heres);
                for (patterns, body) in arms {
                    for pattern in patterns {
                        self.inspect(&pattern.parts, heres);
                    }
                    self.maybe(|walker| walker.list(body, heres));
                }
            }
            Kind::Arithmetic(parts) => {
                self.arithmetic(parts, heres);
            }
            Kind::Condition(words) => self.condition(words, heres),
            Kind::Function { name, body } => self.function(name, body, heres),
            Kind::Coprocess(body) => {
                let span = self.at(body.span);
                self.out.constructs.background = true;
                self.find("background", "runs beside everything that follows", span, Risk::NeedsReview);
                self.framed(
                    |frame| frame.place.background = true,
                    |walker| walker.isolated(|walker| walker.command(body, heres)),
                );
            }
        }
    }

    fn branches(&mut self, branches: &[(List<'_>, List<'_>)], otherwise: Option<&List<'_>>, heres: Heres<'_, '_>) {
        for (index, (condition, body)) in branches.iter().enumerate() {
            if index == 0 {
                self.list(condition, heres);
            } else {
                self.maybe(|walker| walker.list(condition, heres));
            }
            self.maybe(|walker| walker.list(body, heres));
        }
        if let Some(list) = otherwise {
            self.maybe(|walker| walker.list(list, heres));
        }
    }

    /// `while true`, `until false`.
    fn endless(&mut self, condition: &List<'_>) {
        let [item] = condition.items.as_slice() else { return };
        let [pipeline] = item.chain.as_slice() else { return };
        let [Command { kind: Kind::Simple(node), span, .. }] = pipeline.stages.as_slice() else { return };
        let constant = node.words.first().and_then(super::words::literal);
        if matches!(constant.as_deref(), Some("true" | "false" | ":")) {
            let span = self.at(*span);
            self.find("endless_loop", "this loop may never end by itself", span, Risk::NeedsReview);
        }
    }

    /// A body that runs any number of times. What it assigns may already hold when it starts again, so it is walked
    /// once to learn what it assigns (and forgotten), then with that known. Deep inside other loops nothing is kept
    /// for certain instead, which keeps the work in proportion to the text.
    fn looped(&mut self, body: impl Fn(&mut Self)) {
        let outer = self.frame.loops;
        if outer >= MAX_LOOPS {
            let span = self.whole();
            return self.deep(span);
        }
        self.framed(
            |frame| {
                frame.place.repeated = true;
                frame.loops += 1;
            },
            |walker| {
                if outer < MAX_WALKED_TWICE {
                    let mark = walker.mark();
                    let learning = walker.beyond.learn(true);
                    walker.maybe(&body);
                    walker.beyond.learn(learning);
                    walker.forget(&mark);
                } else {
                    walker.env.doubt(walker.budget);
                }
                walker.maybe(&body);
            },
        );
    }

    fn for_loop(&mut self, name: &str, words: Option<&[Node<'_>]>, body: &List<'_>, heres: Heres<'_, '_>) {
        if crate::syntax::is_dangerous_name(name) {
            self.out.constructs.dangerous_assignment = true;
            let span = self.whole();
            let message = format!("`{name}` decides what other programs run, load or trust");
            self.find("dangerous_variable", message, span, Risk::NeedsReview);
        }
        let value = match words {
            Some(words) => self.loop_value(name, words, heres),
            None => dynamic(Source::Positional),
        };
        let span = self.whole();
        self.assigned_number(name, &value, span);
        self.aliased_value(&value, span);
        self.looped(|walker| {
            let value = if walker.budget.bytes(value.weight()) { value.clone() } else { dynamic(Source::Indirect) };
            walker.env.bind(name, Binding::scalar(value));
            walker.list(body, heres);
        });
    }

    fn loop_value(&mut self, name: &str, nodes: &[Node<'_>], heres: Heres<'_, '_>) -> Value {
        let mut words = Vec::new();
        for node in nodes {
            words.extend(self.words(node, heres));
        }
        if let [only] = words.as_slice()
            && let Value::Known(_) = only.value
        {
            return only.value.clone();
        }
        let mut known = Vec::new();
        let mut sources = Vec::new();
        for word in words {
            match word.value {
                Value::Known(text) => known.push(text),
                // Names that match, or the pattern itself.
                Value::Glob(text) => {
                    if text.starts_with('-') {
                        sources.push(Source::Variable(name.to_owned()));
                    }
                    known.push(text);
                }
                Value::Dynamic(dynamic) => sources.extend(dynamic.sources),
            }
        }
        if known.len() > MAX_LOOPED {
            let numbers = known.iter().all(|text| is_numeric(text));
            sources.push(if numbers { Source::Number } else { Source::Output });
        } else if !known.is_empty() {
            sources.push(Source::OneOf(known));
        }
        match sources.is_empty() {
            true => Value::Known(String::new()),
            false => super::words::unknown(sources),
        }
    }

    /// `[[ … ]]`: both sides of a comparison of numbers, and names after `-v`, are evaluated.
    fn condition(&mut self, words: &[Node<'_>], heres: Heres<'_, '_>) {
        let is = |at: Option<usize>, wanted: &[&str]| {
            let word = at.and_then(|at| words.get(at)).and_then(super::words::literal);
            word.is_some_and(|word| wanted.contains(&&*word))
        };
        for (at, node) in words.iter().enumerate() {
            let value = self.single(&node.parts, heres);
            let span = self.at(node.span);
            if is(at.checked_sub(1), &["-v", "-R"]) {
                self.evaluated_reference(&value, span);
            }
            if is(at.checked_sub(1), COMPARISONS) || is(Some(at + 1), COMPARISONS) {
                self.evaluated_operand(&value, span);
            }
        }
    }

    fn function(&mut self, name: &Node<'_>, body: &Command<'_>, heres: Heres<'_, '_>) {
        let span = self.at(name.span);
        let known = super::words::literal(name).unwrap_or_default();
        self.out.constructs.shadowing = true;
        self.find(
            "shadowing",
            format!("defines a function, so `{known}` no longer means what it says"),
            span,
            Risk::NeedsReview,
        );
        self.functions.push(known.into_owned());
        self.framed(
            |frame| {
                frame.place.deferred = true;
                frame.positional = None;
                frame.stdin = Stdin::Inherited;
            },
            |walker| walker.maybe(|walker| walker.command(body, heres)),
        );
    }

    /// Redirections of a compound command, as a command without words.
    fn bare_redirects(&mut self, command: &Command<'_>, redirects: super::commands::Redirects) {
        let plain = redirects.list.iter().all(|redirect| redirect.kind == RedirectKind::Duplicate);
        if plain {
            return;
        }
        let simple = Simple {
            span: self.at(command.span),
            assignments: Vec::new(),
            argv: Vec::new(),
            redirects: redirects.list,
            via: self.frame.via.as_ref().clone(),
            stdin: Stdin::Inherited,
            place: self.frame.place,
            runs_in: self.env.folders.runs_in(),
            more_arguments: false,
        };
        self.emit(simple, None);
    }
}

/// `< <(git ls-files)`: what comes in are names and numbers.
fn lists_names(redirection: &Redirection<'_>) -> bool {
    let parts = redirection.target.as_ref().map(|node| node.parts.as_slice());
    matches!(parts, Some([Part::Process(inner)]) if !inner.fed && bounded::list(&inner.list))
}

pub(super) fn dynamic(source: Source) -> Value {
    super::words::unknown(vec![source])
}

fn program_name(simple: &Simple) -> Option<String> {
    let word = simple.argv.first()?;
    Some(base_name(&word.picture()).to_owned())
}
