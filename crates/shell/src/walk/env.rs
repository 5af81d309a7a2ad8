//! What is known of variables while walking a text: constants that were assigned in it, and no more.

use std::rc::Rc;

use crate::budget::Budget;
use crate::word::{Dynamic, Source, Value, Word};

use super::numbers::is_numeric;

/// More variables than this are not followed: their values count as unknown.
const MAX_FOLLOWED: usize = 48;
/// More possible values than this are not listed.
const MAX_ALTERNATIVES: usize = 16;

#[derive(Clone, Debug, Default)]
pub(crate) struct Env {
    bindings: Vec<(Rc<str>, Rc<Binding>)>,
    /// Variables beyond the limit exist: anything may have been assigned.
    overflow: bool,
    /// A name stands for another one: what either holds is not followed any further.
    aliased: bool,
    /// Names that turn what they are given into a number.
    integers: Vec<Rc<str>>,
    /// Where the text has gone.
    pub(super) folders: super::folder::Folders,
}

#[derive(Debug)]
pub(crate) struct Binding {
    pub value: Value,
    pub array: Option<Vec<Word>>,
    /// Holds text read from a file, a pipe or the network: never to be run.
    pub content: bool,
}

impl Binding {
    pub(crate) fn scalar(value: Value) -> Self {
        Self { value, array: None, content: false }
    }

    fn maybe(&self, name: &str, budget: &Budget) -> Self {
        let mut sources = self.sources(budget);
        sources.push(Source::Variable(name.to_owned()));
        Self { value: unknown(sources), array: None, content: self.content }
    }

    /// Where everything it holds comes from, the elements of an array too.
    fn sources(&self, budget: &Budget) -> Vec<Source> {
        let elements = self.array.as_deref().unwrap_or_default();
        let weight: usize = elements.iter().map(|word| word.value.weight()).sum();
        if !budget.bytes(weight + self.value.weight()) || !budget.steps(1 + elements.len()) {
            return vec![Source::Indirect];
        }
        let mut all = sources(&self.value);
        for word in elements.iter().skip(1) {
            all.extend(sources(&word.value));
        }
        all
    }
}

impl Env {
    /// `start`: the folder the text starts in, where it is known.
    pub(super) fn starting_in(start: Option<&str>) -> Self {
        Self { folders: super::folder::Folders::starting_in(start), ..Self::default() }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Binding> {
        self.bindings.iter().rev().find(|(bound, _)| &**bound == name).map(|(_, binding)| &**binding)
    }

    /// The same, where it probably has this place: two states of one shell keep their variables in one order.
    fn near(&self, at: usize, name: &Rc<str>) -> Option<&Binding> {
        match self.bindings.get(at) {
            Some((bound, binding)) if Rc::ptr_eq(bound, name) => Some(binding),
            _ => self.get(name),
        }
    }

    pub(crate) fn is_bound(&self, name: &str) -> bool {
        self.overflow || self.get(name).is_some()
    }

    pub(crate) fn is_aliased(&self) -> bool {
        self.aliased
    }

    pub(crate) fn alias(&mut self) {
        self.aliased = true;
    }

    pub(crate) fn is_integer(&self, name: &str) -> bool {
        self.integers.iter().any(|integer| &**integer == name)
    }

    pub(crate) fn make_integer(&mut self, name: &str) {
        if !self.is_integer(name) {
            self.integers.push(name.into());
        }
    }

    pub(crate) fn bind(&mut self, name: &str, binding: Binding) {
        if let Some((_, slot)) = self.bindings.iter_mut().find(|(bound, _)| &**bound == name) {
            *slot = Rc::new(binding);
        } else if self.bindings.len() < MAX_FOLLOWED {
            self.bindings.push((name.into(), Rc::new(binding)));
        } else {
            self.overflow = true;
        }
    }

    /// Whatever is bound may be something else by now.
    pub(crate) fn doubt(&mut self, budget: &Budget) {
        for (name, binding) in &mut self.bindings {
            *binding = Rc::new(binding.maybe(name, budget));
        }
    }

    /// After a branch that may or may not have run: `self` is the state after it, `before` the one without it.
    pub(crate) fn join(&mut self, before: &Self, budget: &Budget) {
        self.overflow |= before.overflow;
        self.aliased |= before.aliased;
        self.folders.join(&before.folders);
        for name in &before.integers {
            self.make_integer(name);
        }
        for (at, (name, binding)) in self.bindings.iter_mut().enumerate() {
            match before.near(at, name) {
                Some(old) if std::ptr::eq(old, Rc::as_ptr(binding)) => {}
                Some(old) => *binding = Rc::new(either(old, binding, budget)),
                None => *binding = Rc::new(binding.maybe(name, budget)),
            }
        }
        for (at, (name, old)) in before.bindings.iter().enumerate() {
            if self.near(at, name).is_none() {
                self.bindings.push((name.clone(), Rc::new(old.maybe(name, budget))));
            }
        }
    }
}

fn either(a: &Binding, b: &Binding, budget: &Budget) -> Binding {
    let content = a.content || b.content;
    if a.value == b.value && a.array.is_none() && b.array.is_none() && budget.bytes(a.value.weight()) {
        return Binding { value: a.value.clone(), array: None, content };
    }
    let mut all = a.sources(budget);
    for source in b.sources(budget) {
        if !budget.steps(all.len()) {
            all = vec![Source::Indirect];
            break;
        }
        if !all.contains(&source) {
            all.push(source);
        }
    }
    Binding { value: unknown(all), array: None, content }
}

fn sources(value: &Value) -> Vec<Source> {
    match value {
        Value::Known(text) | Value::Glob(text) => vec![Source::OneOf(vec![text.clone()])],
        Value::Dynamic(dynamic) => dynamic.sources.clone(),
    }
}

/// A value of which only its sources are known, all alternatives in one place.
fn unknown(sources: Vec<Source>) -> Value {
    let mut alternatives: Vec<String> = Vec::new();
    let mut others: Vec<Source> = Vec::new();
    for source in sources {
        match source {
            Source::OneOf(texts) => alternatives.extend(texts),
            other => others.push(other),
        }
    }
    alternatives.dedup();
    if alternatives.len() > MAX_ALTERNATIVES {
        let numbers = alternatives.iter().all(|text| is_numeric(text));
        let source = if numbers { Source::Number } else { Source::Output };
        if !others.contains(&source) {
            others.push(source);
        }
    } else if !alternatives.is_empty() {
        others.push(Source::OneOf(alternatives));
    }
    Value::Dynamic(Dynamic { prefix: String::new(), suffix: String::new(), sources: others, splits: false })
}
