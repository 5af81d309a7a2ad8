//! Makes a table of what files of dangers say: once of the built-in ones, when the crate is built, and of a user's when
//! they are read.

use super::format::{Described, File, Written};
use super::rule::{Condition, Does, Numbers, Program, Row, Rule, Speaks, Table, Test, Tests, Words};
use super::words::{Heads, WrittenTest};
use crate::effect::Reversibility;
use crate::pool::{Pool, Slice};
use crate::rule_error::RuleError;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

/// A table as it is made.
#[derive(Debug, Default)]
pub struct Compiler {
    pool: Pool,
    tests: Vec<Test>,
    conditions: Vec<Condition>,
    rules: Vec<Rule>,
    programs: Vec<Program>,
    ids: HashSet<String>,
    pub names: BTreeMap<String, Named>,
    /// By `Place`.
    places: [Vec<u16>; 5],
}

/// What is known under one name.
#[derive(Debug, Default)]
pub struct Named {
    pub program: Option<u16>,
    /// By their numbers.
    pub rules: Vec<u16>,
}

impl Compiler {
    pub fn has_rule(&self, id: &str) -> bool {
        self.ids.contains(id)
    }

    /// Adds what one file says. After an error the table is of no use.
    pub fn add(&mut self, text: &str, file: &File) -> Result<(), RuleError> {
        for rule in &file.rules {
            self.rule(rule, file).ok_or_else(|| too_much(text, rule.id.span()))?;
        }
        for program in &file.programs {
            self.program(program.get_ref()).ok_or_else(|| too_much(text, program.span()))?;
        }
        Ok(())
    }

    pub fn finish(mut self) -> Result<Table, RuleError> {
        self.table().ok_or_else(|| too_much("", 0..0))
    }

    fn table(&mut self) -> Option<Table> {
        let (mut rows, mut numbers) = (Vec::new(), Vec::new());
        let mut numbered = |list: &[u16]| {
            let from = numbers.len();
            numbers.extend_from_slice(list);
            Slice::new(from, numbers.len()).map(Numbers)
        };
        for (name, named) in std::mem::take(&mut self.names) {
            let (name, rules) = (self.pool.name(&name)?, numbered(&named.rules)?);
            rows.push(Row { name, program: named.program, rules });
        }
        let mut places = [Numbers::default(); 5];
        for (place, list) in places.iter_mut().zip(&self.places) {
            *place = numbered(list)?;
        }
        Some(Table {
            pool: Cow::Owned(std::mem::take(&mut self.pool.text)),
            words: Cow::Owned(std::mem::take(&mut self.pool.words)),
            tests: Cow::Owned(std::mem::take(&mut self.tests)),
            conditions: Cow::Owned(std::mem::take(&mut self.conditions)),
            rules: Cow::Owned(std::mem::take(&mut self.rules)),
            programs: Cow::Owned(std::mem::take(&mut self.programs)),
            rows: Cow::Owned(rows),
            numbers: Cow::Owned(numbers),
            places,
        })
    }

    fn rule(&mut self, written: &Written, file: &File) -> Option<()> {
        let number = u16::try_from(self.rules.len()).ok()?;
        let speaks = match written.script {
            Some(check) => Speaks::OfAll(check),
            None => Speaks::OfOne(self.conditions(written)?),
        };
        let does = Does {
            effects: written.effects.unwrap_or(file.effects),
            reversibility: written.reversibility.or(file.reversibility).unwrap_or(Reversibility::Irreversible),
        };
        let (id, reason) = (self.pool.text(written.id.get_ref())?, self.pool.text(&written.reason)?);
        self.rules.push(Rule { id, reason, speaks, does });
        self.ids.insert(written.id.get_ref().clone());
        for name in &written.programs {
            self.names.entry(name.clone()).or_default().rules.push(number);
        }
        if written.programs.is_empty()
            && let Some(place) = self.places.get_mut(written.place() as usize)
        {
            place.push(number);
        }
        Some(())
    }

    /// Cheap conditions first, those that say most about where the rule speaks last.
    fn conditions(&mut self, rule: &Written) -> Option<Slice> {
        type Listed = fn(Words) -> Condition;
        type Tested = fn(Tests) -> Condition;
        let mut all = Vec::new();
        if !rule.subcommand.is_empty() {
            let heads = Heads::of_paths(&rule.subcommand);
            all.push(Condition::Subcommand(self.words(&rule.subcommand)?, heads));
        }
        let lists: [(&[String], Listed); 3] =
            [(&rule.none, Condition::Without), (&rule.all, Condition::All), (&rule.any, Condition::Any)];
        for (list, condition) in lists.into_iter().filter(|(list, _)| !list.is_empty()) {
            all.push(condition(self.words(list)?));
        }
        if !rule.value_of.is_empty() {
            all.push(Condition::Value(self.words(&rule.value_of)?, self.tests(&rule.value)?));
        }
        if rule.bare {
            all.push(Condition::Bare);
        }
        let tests: [(&[WrittenTest], Tested); 9] = [
            (&rule.operand, Condition::Operand),
            (&rule.also, Condition::Operand),
            (&rule.first, Condition::First),
            (&rule.last, Condition::Last),
            (&rule.source, Condition::Source),
            (&rule.argument, Condition::Argument),
            (&rule.not_operand, Condition::NoOperand),
            (&rule.writes, Condition::Writes),
            (&rule.reads, Condition::Reads),
        ];
        for (tests, condition) in tests.into_iter().filter(|(tests, _)| !tests.is_empty()) {
            all.push(condition(self.tests(tests)?));
        }
        if !rule.assign.is_empty() {
            all.push(Condition::Assigns(self.words(&rule.assign)?, self.tests(&rule.assigned)?));
        }
        for tests in [&rule.code, &rule.code_also].into_iter().filter(|tests| !tests.is_empty()) {
            all.push(Condition::Code(self.tests(tests)?));
        }
        all.extend(rule.check.map(Condition::Check));
        let from = self.conditions.len();
        self.conditions.append(&mut all);
        Slice::new(from, self.conditions.len())
    }

    fn program(&mut self, described: &Described) -> Option<()> {
        let number = u16::try_from(self.programs.len()).ok()?;
        let program = Program {
            dialect: described.dialect,
            takes: self.words(&described.takes)?,
            exact: self.words(&described.exact)?,
            operands: described.operands,
            writes: self.words(&described.writes)?,
            reads: match &described.reads {
                Some(list) => Some(self.words(list)?),
                None => None,
            },
            code: self.words(&described.code)?,
            traits: described.traits,
        };
        self.programs.push(program);
        for name in &described.names {
            self.names.entry(name.clone()).or_default().program = Some(number);
        }
        Some(())
    }

    pub fn words<W: AsRef<str>>(&mut self, words: impl IntoIterator<Item = W>) -> Option<Words> {
        self.pool.words(words).map(Words)
    }

    pub fn test(&mut self, written: &WrittenTest) -> Option<Test> {
        Some(Test { kind: written.kind, words: self.words(&written.words)?, heads: written.heads })
    }

    fn tests(&mut self, written: &[WrittenTest]) -> Option<Tests> {
        let from = self.tests.len();
        for test in written {
            let test = self.test(test)?;
            self.tests.push(test);
        }
        Slice::new(from, self.tests.len()).map(Tests)
    }
}

fn too_much(text: &str, place: Range<usize>) -> RuleError {
    RuleError::at(text, place, "this is more than a table can hold; list fewer".to_owned())
}
