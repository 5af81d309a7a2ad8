//! The table of what programs do, which the build script made, and how a command is found in it.

use std::borrow::Cow;

use super::format::{Form, Row, Table};
use crate::danger::arguments::{Arguments, Given, Grammar};
use crate::danger::facts::base_name;
use crate::danger::{Dialect, Of, Program, family};
use crate::effect::Reversibility;
use crate::pool::{Name, Slice, Text, cut, find, part};

include!(concat!(env!("OUT_DIR"), "/effects.rs"));

impl Table {
    /// What is known under a name, or under those of its family.
    pub fn program(&self, name: &str) -> Option<Known<'_>> {
        let row = |name: &str| find(&self.rows, &self.pool, name, |row| row.name);
        let row = row(name).or_else(|| family(name).iter().flatten().find_map(|name| row(name)))?;
        Some(Known { table: self, row })
    }

    /// Which forms the commands of a text use, by program and by place among its forms: for checking what is written.
    pub fn forms_used(&self, text: &str) -> Vec<(String, usize)> {
        let assessed = crate::assess::assess(text, &crate::assess::Options::default());
        let used = |simple: &crate::command::Simple| {
            let pictures: Vec<String> = simple.argv.iter().map(crate::word::Word::picture).collect();
            let pieces = super::objects::pieces(simple, &pictures);
            let name = base_name(pieces.first()?.text);
            let known = self.program(name)?;
            let reading = Reading { known: Some(known), program: crate::danger::find_program(name) };
            let arguments = crate::danger::arguments::read(&pieces, &reading, usize::MAX);
            known.fitting(&arguments).map(|(at, _, _)| (name.to_owned(), at))
        };
        assessed.commands.iter().filter_map(used).collect()
    }

    fn words(&self, slice: Slice) -> impl Iterator<Item = &str> + Clone {
        part(&self.words, slice).iter().map(|text| cut(&self.pool, *text))
    }
}

/// A program, with the table that it is in.
#[derive(Clone, Copy, Debug)]
pub struct Known<'t> {
    table: &'t Table,
    row: &'t Row,
}

/// One way to use a program, and how many operands it takes to say so.
#[derive(Clone, Copy, Debug)]
pub struct Chosen<'t> {
    pub does: &'t str,
    pub says: &'t str,
    pub around: &'t str,
    pub undo: Option<Reversibility>,
    pub operands: usize,
}

impl<'t> Known<'t> {
    /// The form that names most of a command.
    pub fn choose(self, arguments: &Arguments<'_>) -> Option<Chosen<'t>> {
        let (_, form, operands) = self.fitting(arguments)?;
        let text = |text| cut(&self.table.pool, text);
        let (does, says, around) = (text(form.does), text(form.says), text(form.around));
        Some(Chosen { does, says, around, undo: form.undo, operands })
    }
}

impl<'t> Known<'t> {
    /// The form's place among those of its program, and how many operands it took to choose it.
    fn fitting(self, arguments: &Arguments<'_>) -> Option<(usize, &'t Form, usize)> {
        let forms = part(&self.table.forms, self.row.forms).iter().enumerate();
        let fitting = forms.filter_map(|(at, form)| {
            let (weight, operands) = fit(self.table.words(form.words), arguments)?;
            Some((weight, (at, form, operands)))
        });
        fitting.max_by_key(|(weight, _)| *weight).map(|(_, chosen)| chosen)
    }
}

/// Whether all words of a form are there: how exactly, and how many operands that took.
fn fit<'t>(words: impl Iterator<Item = &'t str>, arguments: &Arguments<'_>) -> Option<(u32, usize)> {
    let (mut weight, mut operands) = (0, 0);
    for word in words {
        if word.starts_with('-') {
            arguments.options.iter().find(|given| word.split('|').any(|one| spells(given, one)))?;
            weight += 3;
        } else {
            let text = arguments.operands.get(operands)?.text;
            let exact = word.split('|').any(|one| one == text);
            if !exact && !word.split('|').any(|one| one.contains('*') && crate::safe::glob(one, text)) {
                return None;
            }
            operands += 1;
            weight += if exact { 4 } else { 2 };
        }
    }
    Some((weight, operands))
}

/// `-r`, `--recursive`, or `--output=json` with its value.
pub fn spells(given: &Given<'_>, spelling: &str) -> bool {
    let (spelling, value) = match spelling.split_once('=') {
        Some((spelling, value)) => (spelling, Some(value)),
        None => (spelling, None),
    };
    let bare = spelling.trim_start_matches('-');
    // `-name` of find and terraform is one name with one dash.
    let alike = given.name == bare && (!given.short || spelling.len() == 2);
    alike && value.is_none_or(|value| given.value.is_some_and(|piece| piece.text == value))
}

/// How a program's arguments are read: by what this table knows, and by what the rules do.
#[derive(Clone, Copy, Debug)]
pub struct Reading<'t> {
    pub known: Option<Known<'t>>,
    pub program: Option<Of<'t, Program>>,
}

impl Grammar for Reading<'_> {
    fn dialect(&self) -> Dialect {
        match (self.known, &self.program) {
            (Some(known), _) if known.row.single_dash => Dialect::Single,
            (_, program) => program.dialect(),
        }
    }

    fn takes(&self, name: &str, dashes: usize) -> bool {
        let spelled = |option: &str| {
            let bare = option.trim_start_matches('-');
            bare == name && (option.len() - bare.len() == dashes || self.dialect() == Dialect::Single)
        };
        self.known.is_some_and(|known| known.table.words(known.row.values).any(spelled))
            || self.program.takes(name, dashes)
    }

    fn takes_two(&self, name: &str) -> bool {
        self.program.takes_two(name)
    }
}
