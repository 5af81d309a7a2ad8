//! Walking what a wrapper runs: words as a command, text as a script.

use std::rc::Rc;

use crate::command::{Simple, Stdin, Via};
use crate::expand::text::base_name;
use crate::parse;
use crate::reason::Risk;
use crate::unwrap::{Inner, Unwrapped};
use crate::word::{Dynamic, Source, Value, Word};

use super::{Base, Walker};

/// Carriers whose inner commands change the variables of this very shell.
const SAME_SHELL: &[&str] = &["eval", "source", ".", "trap", "command", "builtin", "mapfile", "readarray"];

impl Walker<'_> {
    /// Walks everything that a listed command runs.
    pub(super) fn unwrap(&mut self, index: usize, unwrapped: Unwrapped) {
        let Some(outer) = self.out.simples.get(index) else { return };
        let (span, stdin, background) = (outer.span, outer.stdin.clone(), outer.place);
        if self.too_deep(span) {
            return;
        }
        let bounded = self.frame.bounded_stdin && matches!(stdin, Stdin::Pipe(_));
        let same_shell = SAME_SHELL.contains(&unwrapped.via.program.as_str());
        let mut via: Vec<Via> = self.frame.via.as_ref().clone();
        via.push(unwrapped.via);
        let via = Rc::new(via);
        for inner in unwrapped.inner {
            let (via, stdin) = (via.clone(), stdin.clone());
            self.framed(
                |frame| {
                    frame.via = via;
                    frame.stdin = stdin;
                    frame.bounded_stdin = bounded;
                    frame.nesting += 1;
                    frame.carrier = Some(index);
                    frame.place = background;
                    frame.place.deferred |= unwrapped.deferred;
                },
                |walker| {
                    if same_shell {
                        walker.inner(index, inner);
                    } else {
                        // Another process has only what was exported: `x=echo; bash -c '$x rm y'` runs `rm`.
                        walker.isolated(|walker| {
                            walker.env.doubt(walker.budget);
                            walker.found_in(index);
                            walker.inner(index, inner);
                        });
                    }
                },
            );
        }
    }

    /// What `find` hands over lies below the folders it is given.
    fn found_in(&mut self, outer: usize) {
        let Some(words) = self.out.simples.get(outer).map(|simple| simple.argv.as_slice()) else { return };
        let Some((program, words)) = words.split_first() else { return };
        if !program.known().is_some_and(|name| matches!(base_name(name), "find" | "gfind")) {
            return;
        }
        let roots = words.iter().take_while(|word| !word.picture().starts_with(['-', '(', '!']));
        let roots: Vec<Word> = roots.cloned().collect();
        let in_place = words.iter().any(|word| matches!(word.known(), Some("-execdir" | "-okdir")));
        self.env.folders.may_hold(&roots);
        if in_place {
            self.env.folders.lose();
        }
    }

    fn inner(&mut self, outer: usize, inner: Inner) {
        match inner {
            Inner::Words { words, assignments, more, placeholder } => {
                self.placeholder_program(outer, &words, placeholder.as_deref());
                let (Some(first), Some(last)) = (words.first(), words.last()) else { return };
                let span = crate::word::Span { start: first.span.start, end: last.span.end.max(first.span.end) };
                let simple = Simple {
                    span,
                    assignments,
                    argv: words,
                    redirects: Vec::new(),
                    via: self.frame.via.as_ref().clone(),
                    stdin: self.frame.stdin.clone(),
                    place: self.frame.place,
                    runs_in: self.env.folders.runs_in(),
                    more_arguments: more,
                };
                self.start(simple);
            }
            Inner::Code { word, positional, placeholder } => {
                self.frame.positional = positional.map(Rc::new);
                self.code(outer, &word, placeholder.as_deref());
            }
            Inner::Stdin => self.stdin_code(outer),
        }
    }

    /// What is read in place of `{}` must not become a program or shell text.
    fn placeholder_program(&mut self, outer: usize, words: &[Word], placeholder: Option<&str>) {
        let Some(placeholder) = placeholder else { return };
        let shell = words.first().and_then(Word::known).is_some_and(crate::unwrap::is_shell);
        let candidates = if shell { words } else { words.get(..1).unwrap_or_default() };
        for word in candidates {
            if word.known().is_some_and(|text| text.contains(placeholder)) {
                self.injected(outer, word);
            }
        }
    }

    fn injected(&mut self, outer: usize, word: &Word) {
        let listed = self.frame.bounded_stdin
            || self.frame.via.last().is_some_and(|via| matches!(via.program.as_str(), "find" | "fd" | "fdfind"));
        let risk = if listed { Risk::NeedsReview } else { Risk::Dangerous };
        let message = "whatever is read becomes part of a program here";
        self.find_of(Some(outer), "input_as_code", message, word.span, risk);
    }

    /// Walks shell text given as a word.
    fn code(&mut self, outer: usize, word: &Word, placeholder: Option<&str>) {
        self.out.constructs.inline_code = true;
        match &word.value {
            Value::Known(text) | Value::Glob(text) => {
                if placeholder.is_some_and(|placeholder| text.contains(placeholder)) {
                    self.injected(outer, word);
                }
                self.script(text, self.base_of(word, text));
            }
            Value::Dynamic(dynamic) => self.dynamic_code(outer, word, dynamic),
        }
    }

    /// Where the decoded text of a word lies, when it was written as it is.
    fn base_of(&self, word: &Word, text: &str) -> Base {
        for quote in [0, 1] {
            let start = word.span.start + quote;
            if self.text.get(start..word.span.end.saturating_sub(quote)) == Some(text) {
                return Base::Offset(start);
            }
        }
        Base::Fixed(word.span)
    }

    fn script(&mut self, text: &str, base: Base) {
        // More text than can be given at once only comes of code that carries itself on and on.
        if !self.budget.parse(text.len()) {
            return;
        }
        let parsed = parse::parse(text, self.parse_depth());
        self.frame.base = base;
        self.parsed(&parsed);
    }

    /// Code that is only known at run time: what is known of it is still looked at.
    fn dynamic_code(&mut self, outer: usize, word: &Word, dynamic: &Dynamic) {
        let content = self.holds_content(&dynamic.sources);
        let hidden = content
            || dynamic
                .sources
                .iter()
                .any(|s| matches!(s, Source::Output | Source::Process | Source::Indirect | Source::BoundedOutput));
        let risk = if hidden && !self.takes_settings(outer) { Risk::Dangerous } else { Risk::NeedsReview };
        let message = "this text is run as a program, and what it says is only known when it runs";
        self.find_of(Some(outer), "dynamic_code", message, word.span, risk);
        let alternatives = super::substitutions::alternatives(&dynamic.sources);
        let whole = dynamic.prefix.is_empty() && dynamic.suffix.is_empty();
        for text in alternatives {
            let text = if whole { text.to_owned() } else { format!("{}{text}{}", dynamic.prefix, dynamic.suffix) };
            self.script(&text, Base::Fixed(word.span));
        }
        if !whole {
            let name = match dynamic.sources.as_slice() {
                [Source::Variable(name)] => name.as_str(),
                _ => "_",
            };
            let text = format!("{}${{{name}}}{}", dynamic.prefix, dynamic.suffix);
            self.script(&text, Base::Fixed(word.span));
        }
    }

    /// `eval "$(ssh-agent -s)"`: nothing but what a tool prints for exactly that.
    fn takes_settings(&self, outer: usize) -> bool {
        let name = |simple: &Simple| simple.argv.first().and_then(Word::known).map(|name| base_name(name).to_owned());
        let Some(eval) = self.out.simples.get(outer).filter(|simple| name(simple).as_deref() == Some("eval")) else {
            return false;
        };
        let before = self.out.simples.get(..outer).unwrap_or_default();
        let mut printers = before.iter().filter(|simple| {
            simple.span.start >= eval.span.start && simple.span.end <= eval.span.end && simple.place.substitution
        });
        printers.next().is_some_and(|first| {
            let settings = |simple: &Simple| name(simple).is_some_and(|name| crate::danger::prints_settings(&name));
            settings(first) && printers.all(settings)
        })
    }

    /// Whether a value was read from a file, a pipe or the network by this text.
    pub(super) fn holds_content(&self, sources: &[Source]) -> bool {
        sources.iter().any(|source| match source {
            Source::Variable(name) => self.env.get(name).is_some_and(|binding| binding.content),
            _ => false,
        })
    }

    /// Walks the script on standard input, where it is at hand.
    fn stdin_code(&mut self, outer: usize) {
        self.out.constructs.inline_code = true;
        let Stdin::Here(here) = self.frame.stdin.clone() else { return };
        self.frame.stdin = Stdin::Inherited;
        self.frame.positional = None;
        match here.text {
            Some(text) => {
                let span = self.out.simples.get(outer).map_or(crate::word::Span { start: 0, end: 0 }, |s| s.span);
                self.script(&text, Base::Fixed(span));
            }
            None => {
                let span = self.out.simples.get(outer).map_or(crate::word::Span { start: 0, end: 0 }, |s| s.span);
                let message = "a program is read from text that is only known when it runs";
                self.find_of(Some(outer), "dynamic_code", message, span, Risk::NeedsReview);
            }
        }
    }
}
