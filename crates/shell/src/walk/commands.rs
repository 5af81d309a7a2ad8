//! Simple commands: their assignments, words and redirections, and what each of them says.

use std::sync::Arc;

use crate::command::{Assignment, HereDoc, Redirect, RedirectKind, Simple, Stdin, Target};
use crate::expand::text::{is_name, is_pattern, split_assignment};
use crate::obeyed::Obeyed;
use crate::parse::{Assign, AssignValue, Command, Node, Part, RedirectOp, Redirection, SimpleNode};
use crate::project::Projects;
use crate::reason::{Reason, Risk};
use crate::syntax;
use crate::unwrap::{Inner, Unwrapped};
use crate::word::{Source, Span, Value, Word};

use super::compounds::dynamic;
use super::env::Binding;
use super::{Base, Finding, Heres, Role, Walker, folder};

/// Variables set before one command, as far as anybody would read.
const MAX_ASSIGNMENTS: usize = 512;
/// Programs a word may stand for before each is judged by itself.
const MAX_PROGRAMS: usize = 16;

#[derive(Debug, Default)]
pub(super) struct Redirects {
    pub list: Vec<Redirect>,
    pub stdin: Option<Stdin>,
}

impl Walker<'_> {
    pub(super) fn simple(&mut self, node: &SimpleNode<'_>, command: &Command<'_>, heres: Heres<'_, '_>) {
        let lasting = node.words.is_empty();
        if node.assigns.len() > MAX_ASSIGNMENTS {
            self.crowd(self.at(command.span));
        }
        let read = node.assigns.iter().take(MAX_ASSIGNMENTS);
        let assignments = read.map(|assign| self.assign(assign, lasting, heres)).collect();
        let mut argv = Vec::with_capacity(node.words.len());
        let outer = std::mem::replace(&mut self.as_a_file, super::bounded::compares(node));
        for word in &node.words {
            argv.extend(self.words(word, heres));
        }
        self.as_a_file = outer;
        for redirection in &command.redirects {
            self.descriptor(&node.words, redirection);
        }
        let mut redirects = self.redirects(&command.redirects, heres);
        let stdin = redirects.stdin.take();
        let mut simple = Simple {
            span: self.at(command.span),
            assignments,
            argv,
            redirects: redirects.list,
            via: self.frame.via.as_ref().clone(),
            stdin: stdin.unwrap_or_else(|| self.frame.stdin.clone()),
            place: self.frame.place,
            runs_in: self.env.folders.runs_in(),
            more_arguments: false,
        };
        let disguised = node.words.first().is_some_and(|word| self.disguised(word.span));
        for assign in &node.arrays {
            let assignment = self.assign(assign, true, heres);
            simple.assignments.push(assignment);
        }
        if disguised {
            let message = "the program is spelled so that it does not read as what it is";
            let span = simple.argv.first().map_or(simple.span, |word| word.span);
            self.find("disguised_program", message, span, Risk::NeedsReview);
        }
        self.start(simple);
    }

    /// `ls {a[$x]}> y`: an element of an array in place of a descriptor, whose subscript is evaluated.
    fn descriptor(&mut self, words: &[Node<'_>], redirection: &Redirection<'_>) {
        let at = words.partition_point(|word| word.span.end < redirection.span.start);
        let Some(word) = words.get(at).filter(|word| word.span.end == redirection.span.start) else { return };
        let text = |part: Option<&Part<'_>>, fits: fn(&str) -> bool| matches!(part, Some(Part::Text { text, .. }) if fits(text));
        let opens = text(word.parts.first(), |text| text.starts_with('{') && text.contains('['));
        if opens && text(word.parts.last(), |text| text.ends_with("]}")) {
            let span = self.at(word.span);
            let message = "commands in this subscript run when a descriptor is put there";
            self.find("evaluated_unknown", message, span, Risk::NeedsReview);
        }
    }

    fn disguised(&self, span: Span) -> bool {
        match self.frame.base {
            Base::Offset(_) => {
                let span = self.at(span);
                syntax::disguised_program(self.text.get(span.start..span.end).unwrap_or_default())
            }
            Base::Fixed(_) => false,
        }
    }

    /// Judges a command and everything it runs. A program that is one of several is judged as each of them.
    pub(super) fn start(&mut self, simple: Simple) {
        if self.full(simple.span) {
            return;
        }
        let programs = match simple.argv.first().map(|word| &word.value) {
            Some(Value::Dynamic(dynamic)) if dynamic.prefix.is_empty() && dynamic.suffix.is_empty() => {
                super::substitutions::alternatives(&dynamic.sources)
            }
            _ => Vec::new(),
        };
        let programs: Vec<String> = programs.into_iter().take(MAX_PROGRAMS).map(str::to_owned).collect();
        for program in programs {
            if !self.affords(&simple) {
                return;
            }
            let mut one = simple.clone();
            let mut words: Vec<Word> = Vec::new();
            if let Some(first) = one.argv.first() {
                let span = first.span;
                words.extend(program.split_whitespace().map(|text| Word { span, value: Value::Known(text.into()) }));
            }
            one.argv.splice(..1, words);
            if !one.argv.is_empty() {
                self.start_one(one);
            }
        }
        // `$SUDO rm x`: an unquoted word that is empty at run time is none, and the next one is the program.
        let vanishing = simple.argv.iter().take_while(|word| may_vanish(word)).count();
        if vanishing > 0 && vanishing < simple.argv.len() && self.affords(&simple) {
            let mut rest = simple.clone();
            rest.argv.drain(..vanishing);
            self.start_one(rest);
        }
        self.start_one(simple);
    }

    /// Whether this command may be kept once more, or handed on to what looks at it.
    pub(super) fn affords(&self, simple: &Simple) -> bool {
        let words: usize = simple.argv.iter().map(|word| word.value.weight()).sum();
        self.budget.steps(1 + simple.argv.len() + simple.assignments.len() + simple.redirects.len())
            && self.budget.bytes(words)
    }

    fn start_one(&mut self, simple: Simple) {
        if !self.affords(&simple) {
            return;
        }
        let unwrapped = crate::unwrap::unwrap(&simple);
        let index = self.emit(simple, unwrapped.as_ref());
        self.effects(index);
        if let Some(unwrapped) = unwrapped {
            self.unwrap(index, unwrapped);
        }
    }

    /// Lists the command and asks the layers that look at one command alone; dangers are for when all are known.
    pub(super) fn emit(&mut self, mut simple: Simple, unwrapped: Option<&Unwrapped>) -> usize {
        let index = self.out.simples.len();
        let bare = simple.argv.is_empty();
        let transparent = unwrapped.is_some_and(|unwrapped| unwrapped.transparent);
        self.out.roles.push(Role { carrier: unwrapped.is_some(), transparent, bare, carried_by: self.frame.carrier });
        let mut reasons = Vec::new();
        syntax::judge(&simple, &mut reasons, &mut self.out.constructs);
        self.judge_program(&simple, &mut reasons);
        match unwrapped {
            None => {
                let judged = crate::safe::judge(&simple, self.around());
                reasons.extend(judged.reasons);
                if !judged.works_in.is_empty() {
                    let mut folders = self.env.folders.clone();
                    judged.works_in.iter().for_each(|word| folders.enter_any(std::slice::from_ref(word)));
                    simple.runs_in = folders.runs_in();
                }
                self.obeys(index, judged.obeys, &simple, &mut reasons);
            }
            Some(unwrapped) => {
                reasons.extend(unwrapped.reasons.iter().cloned());
                self.arguments_from_input(&simple, unwrapped, &mut reasons);
                // Its own words, redirections and environment; not the command inside, which comes by itself.
                let own = Simple { argv: unwrapped.own.clone().unwrap_or_default(), ..simple.clone() };
                reasons.extend(crate::safe::judge(&own, self.around()).reasons);
            }
        }
        let findings = reasons.into_iter().map(|reason| Finding { reason, simple: Some(index) });
        self.out.findings.extend(findings);
        self.out.simples.push(simple);
        index
    }

    fn around(&self) -> crate::safe::Around<'_> {
        let folders = &self.env.folders;
        crate::safe::Around {
            folders: folders.all(),
            unknown: folders.are_unknown(),
            location: self.location,
            variables: Some(&self.env),
            own: self.own,
        }
    }

    /// What a program obeys is looked at by whoever runs it, which needs to know where.
    fn obeys(&mut self, index: usize, projects: Projects, simple: &Simple, reasons: &mut Vec<Reason>) {
        if projects.is_empty() || simple.via.iter().any(|via| via.elsewhere) {
            return;
        }
        if simple.runs_in.unknown {
            let message = "it is not known in which folder this runs, and files there decide what it does";
            let span = simple.argv.first().map_or(simple.span, |word| word.span);
            reasons.push(syntax::reason("unknown_folder", message, span, Risk::NeedsReview));
        }
        self.out.obeyed.push(Obeyed { command: index, projects });
    }

    /// What the program word itself says.
    fn judge_program(&self, simple: &Simple, reasons: &mut Vec<Reason>) {
        let Some(program) = simple.argv.first() else { return };
        let Some(name) = program.known() else {
            let content = matches!(&program.value, Value::Dynamic(dynamic) if self.holds_content(&dynamic.sources));
            reasons.push(syntax::unknown_program(program, content));
            return;
        };
        if self.functions.iter().any(|function| function == name) {
            let message = format!("`{name}` is a function of this text here");
            reasons.push(syntax::reason("shadowed", message, program.span, Risk::NeedsReview));
        }
    }

    /// `xargs` and its kin: arguments from a list of paths are as good as paths, any other are unknown.
    fn arguments_from_input(&self, simple: &Simple, unwrapped: &Unwrapped, reasons: &mut Vec<Reason>) {
        let more = unwrapped.inner.iter().any(|inner| matches!(inner, Inner::Words { more: true, .. }));
        let listed = self.frame.bounded_stdin && matches!(simple.stdin, Stdin::Pipe(_));
        if more && unwrapped.own.is_none() && !listed {
            let message = "runs a command with whatever arguments come in";
            reasons.push(syntax::reason("input_as_arguments", message, simple.span, Risk::NeedsReview));
        }
    }

    fn assign(&mut self, assign: &Assign<'_>, lasting: bool, heres: Heres<'_, '_>) -> Assignment {
        if let Some(subscript) = &assign.subscript {
            self.subscript(subscript, heres);
        }
        let span = self.at(assign.span);
        let name = assign.name.to_owned();
        match &assign.value {
            AssignValue::Word(node) => {
                let value = self.single(&node.parts, heres);
                let word = Word { span: self.at(node.span), value };
                self.assigned_number(assign.name, &word.value, span);
                self.aliased_value(&word.value, span);
                if lasting {
                    self.bind_scalar(assign, &word.value);
                }
                Assignment { span, name, value: Some(word) }
            }
            AssignValue::Array(elements) => {
                let mut words = Vec::new();
                let mut placed = assign.append;
                for element in elements {
                    if let Some(subscript) = &element.subscript {
                        placed = true;
                        self.subscript(subscript, heres);
                    }
                    words.extend(self.words(&element.value, heres));
                }
                for word in &words {
                    self.assigned_number(assign.name, &word.value, span);
                }
                if lasting {
                    self.bind_array(assign.name, words, placed);
                }
                Assignment { span, name, value: None }
            }
        }
    }

    /// An array whose elements are in order, or of which only the elements are known.
    fn bind_array(&mut self, name: &str, words: Vec<Word>, placed: bool) {
        let value = if placed {
            let known = words.iter().filter_map(Word::known).map(str::to_owned).collect();
            super::words::unknown(vec![Source::Output, Source::OneOf(known)])
        } else {
            words.first().map_or_else(|| Value::Known(String::new()), |word| word.value.clone())
        };
        self.env.bind(name, Binding { value, array: (!placed).then_some(words), content: false });
    }

    fn bind_scalar(&mut self, assign: &Assign<'_>, value: &Value) {
        let content = matches!(value, Value::Dynamic(dynamic) if dynamic.sources.contains(&Source::Output));
        let value = match (assign.append, &assign.subscript, value) {
            _ if !self.budget.bytes(value.weight()) => dynamic(Source::Indirect),
            (false, None, value) => value.clone(),
            (true, None, Value::Known(more)) => match self.variable(assign.name) {
                Value::Known(text) if self.budget.bytes(text.len()) => Value::Known(text + more),
                other => super::words::unknown(super::parameters::sources_of(&other)),
            },
            _ => dynamic(Source::Output),
        };
        self.env.bind(assign.name, Binding { value, array: None, content });
    }

    /// What builtins do to variables and parameters.
    fn effects(&mut self, index: usize) {
        let Some(simple) = self.out.simples.get(index) else { return };
        let Some(name) = simple.argv.first().and_then(Word::known) else { return };
        if folder::STEERING.iter().any(|name| self.env.get(name).is_some()) {
            self.env.folders.lose();
        }
        if folder::MOVERS.contains(&name) {
            let (name, argv) = (name.to_owned(), simple.argv.clone());
            return self.env.folders.go(&name, argv.get(1..).unwrap_or_default());
        }
        if !syntax::ASSIGNERS.contains(&name) || !self.affords(simple) {
            return;
        }
        let (name, argv) = (name.to_owned(), simple.argv.clone());
        let arguments = argv.get(1..).unwrap_or_default();
        for word in arguments {
            match &word.value {
                Value::Known(text) => self.evaluated_name(text, word.span),
                _ if !matches!(name.as_str(), "declare" | "typeset" | "local" | "read" | "unset") => {}
                Value::Dynamic(dynamic) if dynamic.prefix.contains('=') => {}
                value => self.evaluated_reference(value, word.span),
            }
        }
        match name.as_str() {
            "declare" | "typeset" | "local" | "export" | "readonly" => self.declare(arguments),
            "read" | "mapfile" | "readarray" | "getopts" => self.read(&name, arguments),
            "printf" => self.printf(arguments),
            "set" | "shift" => self.set(&name, arguments),
            "wait" => {
                self.first_words("-p", arguments);
                for pair in arguments.windows(2) {
                    let [option, name] = pair else { continue };
                    let named = |text: &str| text.starts_with('-') && text.ends_with('p');
                    if option.known().is_some_and(named) {
                        self.evaluated_reference(&name.value, name.span);
                    }
                }
            }
            "unset" | "let" => {
                for word in arguments {
                    if name == "let" {
                        self.evaluated_operand(&word.value, word.span);
                    } else {
                        self.evaluated_reference(&word.value, word.span);
                    }
                }
                for text in arguments.iter().filter_map(Word::known) {
                    let name = text.split(['=', '[', '+', '-']).next().unwrap_or(text);
                    self.env.bind(name, Binding::scalar(dynamic(Source::Variable(name.to_owned()))));
                }
            }
            _ => {}
        }
    }

    fn declare(&mut self, arguments: &[Word]) {
        let given = |letter: char| {
            arguments.iter().filter_map(Word::known).any(|text| text.starts_with('-') && text.contains(letter))
        };
        let integer = given('i');
        if given('n') {
            self.env.alias();
            for word in arguments {
                let plain = word.known().is_some_and(|text| {
                    text.starts_with('-') || text.split_once('=').is_some_and(|(_, target)| is_name(target))
                });
                if !plain {
                    self.stands_for(word.span);
                }
            }
        }
        for word in arguments {
            if !self.budget.bytes(word.value.weight()) {
                return;
            }
            match &word.value {
                Value::Known(text) => {
                    let name = text.split(['=', '[', '+']).next().unwrap_or(text);
                    if integer && is_name(name) {
                        self.env.make_integer(name);
                    }
                    if let Some((name, value)) = split_assignment(text) {
                        self.assigned_number(name, &Value::Known(value.to_owned()), word.span);
                        self.env.bind(name, Binding::scalar(Value::Known(value.to_owned())));
                    }
                }
                Value::Dynamic(dynamic) => {
                    let name = dynamic.prefix.split('=').next().unwrap_or_default();
                    if is_name(name) {
                        if integer {
                            self.env.make_integer(name);
                        }
                        self.assigned_number(name, &word.value, word.span);
                        let content = dynamic.sources.contains(&Source::Output);
                        let value = super::words::unknown(dynamic.sources.clone());
                        self.env.bind(name, Binding { value, array: None, content });
                    }
                }
                Value::Glob(_) => {}
            }
        }
    }

    /// `read`: what comes in is content, unless the stage before lists paths only.
    fn read(&mut self, builtin: &str, arguments: &[Word]) {
        let bounded = self.frame.bounded_stdin;
        let span = arguments.first().map_or_else(|| self.whole(), |word| word.span);
        let mut names: Vec<&str> = arguments.iter().filter_map(Word::known).filter(|text| is_name(text)).collect();
        if names.is_empty() {
            names.push(if builtin == "read" { "REPLY" } else { "MAPFILE" });
        }
        for name in names {
            let source = match bounded {
                true if self.frame.numbers_stdin => Source::Number,
                true => Source::Names,
                false => Source::Variable(name.to_owned()),
            };
            let value = dynamic(source);
            self.assigned_number(name, &value, span);
            self.env.bind(name, Binding { value, array: None, content: !bounded });
        }
    }

    /// A value that becomes the name of another variable, if this one stands for one: it is looked up each time.
    pub(super) fn aliased_value(&mut self, value: &Value, span: Span) {
        let plain =
            |text: &str| text.is_empty() || text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let harmless = match value {
            Value::Known(text) => plain(text),
            Value::Glob(_) => false,
            Value::Dynamic(dynamic) => super::numbers::all(&dynamic.sources),
        };
        if self.env.is_aliased() && !harmless {
            self.stands_for(span);
        }
    }

    fn stands_for(&mut self, span: Span) {
        let message = "a name stands for whatever this says, and commands in its subscript run when it is used";
        self.find("evaluated_unknown", message, span, Risk::NeedsReview);
    }

    /// `printf "$x"`, `wait $x`: what comes first may be an option with the name of a variable, which is evaluated.
    fn first_words(&mut self, option: &str, arguments: &[Word]) {
        let Some(word) = arguments.iter().find(|word| !word.known().is_some_and(|text| text.starts_with('-'))) else {
            return;
        };
        let names = |text: &str| (text.starts_with('-') || text.contains(" -")) && text.contains('[');
        let hidden = match &word.value {
            Value::Known(_) => false,
            Value::Glob(text) => text.starts_with(['*', '?', '[']) || text.starts_with(option),
            Value::Dynamic(dynamic) => {
                let begins = dynamic.prefix.is_empty() || dynamic.prefix.starts_with('-');
                // A name ends with its subscript: whatever follows makes it none.
                let ends = dynamic.suffix.is_empty() || dynamic.suffix.ends_with(']');
                let open = dynamic.sources.iter().any(|source| match source {
                    Source::Number | Source::BoundedOutput | Source::Process => false,
                    Source::OneOf(texts) => {
                        let option = dynamic.prefix.starts_with('-');
                        texts.iter().any(|text| {
                            names(text) || is_pattern(text) && (option || text.starts_with(['*', '?', '[', '-']))
                        })
                    }
                    Source::Variable(name) => !matches!(name.as_str(), "HOME" | "USER" | "LOGNAME" | "SHELL"),
                    Source::Names | Source::Positional | Source::Output | Source::Indirect => true,
                });
                open && (dynamic.splits || (begins && ends))
            }
        };
        if hidden {
            let message = format!("this may begin with `{option}`, and then commands in a name are run");
            self.find("evaluated_unknown", message, word.span, Risk::NeedsReview);
        }
    }

    /// `printf -v NAME %s TEXT`
    fn printf(&mut self, arguments: &[Word]) {
        match arguments {
            [option, name, ..] if option.known() == Some("-v") => self.evaluated_reference(&name.value, name.span),
            [option, ..] if option.known().is_some_and(|text| text.starts_with("-v")) => {
                let text = option.known().and_then(|text| text.strip_prefix("-v")).unwrap_or_default().to_owned();
                self.evaluated_reference(&Value::Known(text), option.span);
            }
            _ => self.first_words("-v", arguments),
        }
        let known: Vec<Option<&str>> = arguments.iter().map(Word::known).collect();
        match known.as_slice() {
            [Some("-v"), Some(name), Some("%s"), Some(text)] => {
                let value = Value::Known((*text).to_owned());
                self.assigned_number(name, &value, self.whole());
                self.env.bind(name, Binding::scalar(value));
            }
            [Some("-v"), Some(name), ..] => {
                self.assigned_number(name, &dynamic(Source::Output), self.whole());
                self.env.bind(name, Binding { value: dynamic(Source::Output), array: None, content: true });
            }
            _ => {}
        }
    }

    fn set(&mut self, builtin: &str, arguments: &[Word]) {
        let mut words = vec![Word { span: Span { start: 0, end: 0 }, value: dynamic(Source::Positional) }];
        self.frame.positional = match arguments.split_first() {
            Some((first, rest)) if builtin == "set" && first.known() == Some("--") => {
                words.extend_from_slice(rest);
                Some(std::rc::Rc::new(words))
            }
            _ => None,
        };
    }

    pub(super) fn redirects(&mut self, redirections: &[Redirection<'_>], heres: Heres<'_, '_>) -> Redirects {
        let mut out = Redirects::default();
        for redirection in redirections {
            self.redirect(redirection, &mut out, heres);
        }
        out
    }

    fn redirect(&mut self, redirection: &Redirection<'_>, out: &mut Redirects, heres: Heres<'_, '_>) {
        let span = self.at(redirection.span);
        let input = redirection.fd.unwrap_or(0) == 0;
        if let Some(here) = redirection.here.and_then(|here| heres.get(here)) {
            let doc = HereDoc { text: self.here_text(&here.parts, here.span, heres).map(Arc::from) };
            out.stdin = Some(Stdin::Here(doc.clone()));
            out.list.push(Redirect { span, kind: RedirectKind::HereDoc, target: Target::Here(doc) });
            return;
        }
        let Some(node) = &redirection.target else {
            let kind = RedirectKind::Duplicate;
            return out.list.push(Redirect { span, kind, target: Target::Descriptor });
        };
        let before = self.out.simples.len();
        let outer = std::mem::replace(&mut self.as_a_file, redirection.op == RedirectOp::Read);
        let value = self.single(&node.parts, heres);
        self.as_a_file = outer;
        // What other commands print, by whichever way it comes in.
        let printed = matches!(&value, Value::Dynamic(dynamic)
            if dynamic.sources.iter().any(|source| matches!(source, Source::Process | Source::Output)));
        let piped = printed.then(|| {
            let mut feeders = Vec::new();
            self.add_feeders(&mut feeders, before);
            Stdin::Pipe(feeders)
        });
        if redirection.op == RedirectOp::HereString {
            let text = if let Value::Known(text) = &value { Some(format!("{text}\n").into()) } else { None };
            let doc = HereDoc { text };
            out.stdin = Some(piped.unwrap_or_else(|| Stdin::Here(doc.clone())));
            out.list.push(Redirect { span, kind: RedirectKind::HereString, target: Target::Here(doc) });
            return;
        }
        let word = Word { span: self.at(node.span), value };
        let descriptor = word.known().is_some_and(|text| text.bytes().all(|b| b.is_ascii_digit() || b == b'-'));
        let (kind, target) = match redirection.op {
            RedirectOp::DuplicateIn | RedirectOp::DuplicateOut if descriptor => {
                (RedirectKind::Duplicate, Target::Descriptor)
            }
            RedirectOp::Read | RedirectOp::DuplicateIn => (RedirectKind::Read, Target::File(word)),
            RedirectOp::Append | RedirectOp::Both { append: true } => (RedirectKind::Append, Target::File(word)),
            RedirectOp::ReadWrite => (RedirectKind::ReadWrite, Target::File(word)),
            _ => (RedirectKind::Write, Target::File(word)),
        };
        if input && matches!(kind, RedirectKind::Read | RedirectKind::ReadWrite) {
            out.stdin = Some(piped.unwrap_or(Stdin::File));
        }
        out.list.push(Redirect { span, kind, target });
    }

    /// The text of a heredoc; `None` when something in it expands.
    fn here_text(&mut self, parts: &[Part<'_>], span: Option<Span>, heres: Heres<'_, '_>) -> Option<String> {
        if parts.is_empty() {
            return Some(String::new());
        }
        let plain = parts.iter().all(|part| matches!(part, Part::Text { .. }));
        let value = self.single(parts, heres);
        if !plain && let Some(span) = span {
            let span = self.at(span);
            self.find("heredoc_expansion", "the text is filled in when it runs", span, Risk::NeedsReview);
        }
        if let Value::Known(text) = value { Some(text) } else { None }
    }
}

fn may_vanish(word: &Word) -> bool {
    match &word.value {
        Value::Dynamic(dynamic) => dynamic.splits && dynamic.prefix.is_empty() && dynamic.suffix.is_empty(),
        Value::Known(_) | Value::Glob(_) => false,
    }
}
