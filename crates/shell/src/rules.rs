//! Rules that a user adds to the built-in ones, in the same formats: dangers, and programs that only read. Files are
//! taken together or not at all, and refused when their own examples do not hold.

#[cfg(test)]
mod renamed_tests;
#[cfg(test)]
mod tests;

use crate::assess::{Options, assess};
use crate::danger::{self, Table, Written};
use crate::expand::text::base_name;
use crate::reason::{Layer, Risk};
use crate::rule_error::RuleError;
use crate::safe::{self, Entry, Rows};
use crate::word::Word;
use std::borrow::Cow;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

/// More examples than this, of all files together, are no longer examples.
const MAX_EXAMPLES: usize = 10_000;

/// Rules that a user adds to the built-in ones.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    dangers: Option<Table>,
    /// Programs that only read.
    programs: Option<Rows>,
    /// Folders of which nothing may be read, and those where work is kept.
    secrets: Vec<String>,
    roots: Vec<String>,
}

/// One file as it was read.
struct Read<'t> {
    name: &'t str,
    text: &'t str,
    dangers: danger::File,
    programs: safe::File,
}

impl Rules {
    /// `secrets`: folders of this machine of which nothing may be read. `roots`: where work is kept, beside the usual
    /// places.
    #[must_use]
    pub fn with_folders(self, secrets: Vec<String>, roots: Vec<String>) -> Self {
        Self { secrets, roots, ..self }
    }

    pub fn secrets(&self) -> &[String] {
        &self.secrets
    }

    pub fn roots(&self) -> &[String] {
        &self.roots
    }

    /// Reads one file of rules; the error says in which line it is wrong.
    pub fn parse(text: &str) -> Result<Self, RuleError> {
        Self::parse_all(&[("", text)])
    }

    /// Reads files of rules, each with the name that errors call it by. One that is broken, or an example that does not
    /// hold with all of them in force, refuses them all.
    pub fn parse_all(files: &[(&str, &str)]) -> Result<Self, RuleError> {
        let mut rules = Self::default();
        let (mut dangers, mut programs) = (danger::Compiler::default(), safe::Compiler::default());
        let mut all: Vec<Read<'_>> = Vec::new();
        for (name, text) in files {
            let told = |error: RuleError| error.of(name);
            let read = Read::parse(name, text).map_err(told)?;
            danger::check_own(text, &read.dangers, &dangers).map_err(told)?;
            dangers.add(text, &read.dangers).map_err(told)?;
            let added = safe::check_own(&read.programs).and_then(|()| programs.add(&read.programs));
            added.map_err(|problem| told(problem.within(text)))?;
            all.push(read);
        }
        if all.iter().any(|read| !read.dangers.rules.is_empty() || !read.dangers.programs.is_empty()) {
            rules.dangers = Some(dangers.finish()?);
        }
        if all.iter().any(|read| !read.programs.programs.is_empty()) {
            rules.programs = Some(programs.finish());
        }
        let mut examples = 0;
        for read in &all {
            rules.hold_for_examples(read, &mut examples).map_err(|error| error.of(read.name))?;
        }
        Ok(rules)
    }

    /// Every example goes through the whole engine, as a command would.
    fn hold_for_examples(&self, read: &Read<'_>, count: &mut usize) -> Result<(), RuleError> {
        let Read { text, dangers, programs, .. } = read;
        for rule in &dangers.rules {
            self.speaks(rule, count).map_err(|wrong| wrong.within(text))?;
        }
        for entry in &programs.programs {
            self.reads(entry.get_ref(), count).map_err(|wrong| wrong.within(text))?;
        }
        Ok(())
    }

    fn speaks(&self, rule: &Written, count: &mut usize) -> Result<(), safe::Problem> {
        let id = rule.id.get_ref();
        let options = Options { rules: Some(self), ..Options::default() };
        let spoken = |example: &str| {
            let reasons = assess(example, &options).reasons;
            reasons.iter().any(|reason| reason.layer == Layer::Danger && reason.code == *id)
        };
        let matches = rule.matches.iter().map(|example| (example, true));
        for (example, expected) in matches.chain(rule.no_match.iter().map(|example| (example, false))) {
            counted(example, count)?;
            let text = example.get_ref();
            if spoken(text) != expected {
                let message = if expected {
                    format!("rule `{id}` does not speak of its example `{text}`")
                } else {
                    format!("rule `{id}` speaks of `{text}`, which it should not")
                };
                return Err(safe::Problem::new(example.span(), message));
            }
        }
        Ok(())
    }

    fn reads(&self, entry: &Entry, count: &mut usize) -> Result<(), safe::Problem> {
        let name = entry.names.first().map_or("", |name| name.get_ref());
        let options = Options { rules: Some(self), ..Options::default() };
        for example in &entry.matches {
            counted(example, count)?;
            let text = example.get_ref();
            let assessment = assess(text, &options);
            let wrong = |message: String| Err(safe::Problem::new(example.span(), message));
            if let Some(worst) = assessment.reasons.iter().max_by_key(|reason| reason.risk) {
                let why = format!("{} ({})", worst.message, worst.code);
                return wrong(format!("program `{name}`: its example `{text}` is not safe: {why}"));
            }
            let programs = || assessment.commands.iter().filter_map(|simple| simple.argv.first().and_then(Word::known));
            let named = |program: &str| entry.names.iter().any(|name| name.get_ref() == base_name(program));
            if !programs().any(named) {
                return wrong(format!("program `{name}`: its example `{text}` does not start it"));
            }
        }
        for example in &entry.no_match {
            counted(example, count)?;
            if assess(example.get_ref(), &options).risk == Risk::Safe {
                let message = format!("program `{name}`: `{}` is safe, which it should not be", example.get_ref());
                return Err(safe::Problem::new(example.span(), message));
            }
        }
        Ok(())
    }

    /// The ids of the dangers among them.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.dangers.iter().flat_map(Table::ids)
    }

    pub(crate) fn dangers(&self) -> Option<&Table> {
        self.dangers.as_ref()
    }

    pub(crate) fn programs(&self) -> Option<&Rows> {
        self.programs.as_ref()
    }
}

fn counted(example: &Spanned<String>, count: &mut usize) -> Result<(), safe::Problem> {
    *count += 1;
    if *count > MAX_EXAMPLES {
        let message = format!("more than {MAX_EXAMPLES} examples in all files; leave some out");
        return Err(safe::Problem::new(example.span(), message));
    }
    Ok(())
}

impl<'t> Read<'t> {
    fn parse(name: &'t str, text: &'t str) -> Result<Self, RuleError> {
        let mut table = DeTable::parse(text).map_err(|error| RuleError::toml(text, &error))?;
        let span = table.span();
        let programs = take_programs(table.get_mut());
        let dangers = danger::File::read(text, table)?;
        let programs = safe::File::read(text, Spanned::new(span, programs))?;
        Ok(Self { name, text, dangers, programs })
    }
}

/// The keys of a `[[program]]` that tells the danger rules how to read a program's words.
const DESCRIBES: &[&str] = &["names", "dialect", "takes", "exact", "operands", "writes", "reads", "code", "traits"];

/// Takes out of a file what is said of programs that only read. Both kinds are a `[[program]]`: a reader has keys that a
/// description for the danger rules has not, its summary and examples among them.
fn take_programs<'t>(table: &mut DeTable<'t>) -> DeTable<'t> {
    let mut taken = DeTable::new();
    if let Some(sets) = table.remove("set") {
        taken.insert(Spanned::new(sets.span(), Cow::Borrowed("set")), sets);
    }
    let describes = |entry: &Spanned<DeValue<'t>>| match entry.get_ref() {
        DeValue::Table(keys) => keys.keys().all(|key| DESCRIBES.contains(&key.get_ref().as_ref())),
        _ => true,
    };
    if let Some(programs) = table.get_mut("program")
        && let DeValue::Array(entries) = programs.get_mut()
    {
        let (kept, readers): (Vec<_>, Vec<_>) =
            std::mem::replace(entries, DeArray::new()).into_iter().partition(describes);
        *entries = DeArray::from_iter(kept);
        if !readers.is_empty() {
            let readers = DeValue::Array(DeArray::from_iter(readers));
            taken.insert(
                Spanned::new(programs.span(), Cow::Borrowed("program")),
                Spanned::new(programs.span(), readers),
            );
        }
    }
    taken
}
