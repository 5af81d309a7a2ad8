//! What a file of `rules/effects/` says, and the rows that are made of it. Read by the build script, and by whoever checks
//! such a file: `rules/effects/README.md` describes the format.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

use super::kinds;
use super::template;
use crate::effect::Reversibility;
use crate::pool::{Name, Pool, Slice, Text};
use crate::rule_error::RuleError;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct File {
    #[serde(rename = "program")]
    pub programs: Vec<Spanned<Entry>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Entry {
    pub names: Vec<String>,
    /// Which manual this was written from.
    pub manual: String,
    /// Options that take a value, with their dashes.
    pub values: String,
    /// `-option` is one long option, not letters.
    pub single_dash: bool,
    /// By the words that choose it.
    pub forms: BTreeMap<String, Spanned<WrittenForm>>,
    /// Commands, and the sentence that a person reads.
    pub examples: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WrittenForm {
    pub does: String,
    /// Without it, the effects say it.
    #[serde(default)]
    pub says: String,
    /// Of a command that runs another one: where that runs, such as `in the container {1}`.
    #[serde(default)]
    pub around: String,
    #[serde(default)]
    pub undo: Option<Reversibility>,
}

/// What is known under one program's name.
#[derive(Clone, Debug)]
pub struct Row {
    pub name: Name,
    pub values: Slice,
    pub single_dash: bool,
    pub forms: Slice,
}

/// One way to use a program.
#[derive(Clone, Debug)]
pub struct Form {
    /// Subcommands in order and options, each with its alternatives; the more there are, the more exactly it fits.
    pub words: Slice,
    pub does: Text,
    pub says: Text,
    pub around: Text,
    pub undo: Option<Reversibility>,
}

/// Programs in the order of their names.
#[derive(Clone, Debug)]
pub struct Table {
    pub pool: Cow<'static, str>,
    pub words: Cow<'static, [Text]>,
    pub forms: Cow<'static, [Form]>,
    pub rows: Cow<'static, [Row]>,
}

#[derive(Debug, Default)]
pub struct Compiler {
    pool: Pool,
    forms: Vec<Form>,
    rows: BTreeMap<String, Row>,
}

impl Compiler {
    pub fn add(&mut self, text: &str) -> Result<File, RuleError> {
        let file: File = toml::from_str(text).map_err(|error| RuleError::toml(text, &error))?;
        for program in &file.programs {
            self.program(text, program)?;
        }
        Ok(file)
    }

    fn program(&mut self, text: &str, program: &Spanned<Entry>) -> Result<(), RuleError> {
        let at = |message: String| RuleError::at(text, program.span(), message);
        let entry = program.get_ref();
        if entry.names.is_empty() || entry.forms.is_empty() {
            return Err(at("a program needs `names` and `forms`".to_owned()));
        }
        let full = || at("more than a table can hold".to_owned());
        let values = self.pool.words(entry.values.split_whitespace()).ok_or_else(full)?;
        let from = self.forms.len();
        for (words, form) in &entry.forms {
            let (place, form) = (form.span(), form.get_ref());
            let wrong = |message: String| RuleError::at(text, place.clone(), message);
            for effect in kinds::read(&form.does) {
                template::check(effect.map_err(wrong)?.object).map_err(wrong)?;
            }
            for template in [&form.says, &form.around] {
                template::check(template).map_err(wrong)?;
            }
            if !form.says.is_empty() && !form.says.ends_with('.') {
                return Err(wrong(format!("`{}` is a sentence and ends with a full stop", form.says)));
            }
            let row = Form {
                words: self.pool.words(words.split_whitespace()).ok_or_else(full)?,
                does: self.pool.text(&form.does).ok_or_else(full)?,
                says: self.pool.text(&form.says).ok_or_else(full)?,
                around: self.pool.text(&form.around).ok_or_else(full)?,
                undo: form.undo,
            };
            self.forms.push(row);
        }
        let forms = Slice::new(from, self.forms.len()).ok_or_else(full)?;
        for name in &entry.names {
            let row =
                Row { name: self.pool.name(name).ok_or_else(full)?, values, single_dash: entry.single_dash, forms };
            if self.rows.insert(name.clone(), row).is_some() {
                return Err(at(format!("program `{name}` is described twice")));
            }
        }
        Ok(())
    }

    pub fn finish(self) -> Table {
        Table {
            pool: self.pool.text.into(),
            words: self.pool.words.into(),
            forms: self.forms.into(),
            rows: self.rows.into_values().collect(),
        }
    }
}
