//! How a program's options and operands are written as rows of the tables.

use toml::{Table, Value};

use super::tables::{denials, flag, list, string};
use super::{Options, Outcome, Tables, Takes, slice};

impl Tables {
    /// The options of one table and of the sets it uses; what is denied wins over what is known.
    pub(super) fn options(&mut self, table: &Table, sets: &Table) -> Outcome<Options> {
        let mut options = Options::default();
        for name in list(table, "use")? {
            let set = sets.get(&name).and_then(Value::as_table).ok_or(format!("no set `{name}`"))?;
            let set = self.options(set, sets)?;
            options.short.extend(set.short);
            options.long.extend(set.long);
        }
        let mut letters =
            string(table, "short")?.chars().filter(|c| *c != ' ').collect::<Vec<_>>().into_iter().peekable();
        while let Some(letter) = letters.next() {
            let mut takes = Takes::Nothing;
            if letters.next_if_eq(&':').is_some() {
                takes = if letters.next_if_eq(&':').is_some() { Takes::Maybe } else { Takes::Value };
            }
            options.short.insert(letter, takes);
        }
        for word in string(table, "long")?.split_whitespace() {
            let (name, takes) = match (word.strip_suffix('='), word.strip_suffix('?')) {
                (Some(name), _) if name.ends_with('=') => (name.trim_end_matches('='), Takes::Pair),
                (Some(name), _) => (name, Takes::Value),
                (_, Some(name)) => (name, Takes::Maybe),
                _ => (word, Takes::Nothing),
            };
            options.long.insert(name.to_owned(), takes);
        }
        for (key, takes) in [("paths", Takes::Path), ("numbers", Takes::Number)] {
            for word in string(table, key)?.split_whitespace() {
                options.insert(word, takes.clone())?;
            }
        }
        for (keys, text) in denials(table, "deny")? {
            let denial = self.denial(&text)?;
            for word in keys.split_whitespace() {
                options.insert(word, Takes::Denied(denial))?;
            }
        }
        Ok(options)
    }

    pub(super) fn grammar(&mut self, table: &Table, options: &Options) -> Outcome<usize> {
        let from = self.options.len();
        for (letter, takes) in &options.short {
            let name = self.text(&letter.to_string());
            self.options.push(format!("Known {{ name: {name}, takes: {} }}", takes_source(takes)));
        }
        let short = slice(from, self.options.len());
        let from = self.options.len();
        for (name, takes) in &options.long {
            let name = self.text(name);
            self.options.push(format!("Known {{ name: {name}, takes: {} }}", takes_source(takes)));
        }
        let long = slice(from, self.options.len());
        let style = match string(table, "style")?.as_str() {
            "" | "plain" => "Plain",
            "gnu" => "Gnu",
            "single" => "Single",
            "raw" => "Raw",
            other => return Err(format!("unknown style `{other}`").into()),
        };
        let operands = match string(table, "operands")?.as_str() {
            "" | "none" => "None",
            "text" => "Text",
            "words" => "Words",
            "paths" => "Paths",
            "names" => "Names",
            "pattern" => "Pattern",
            "script" => "Script",
            "revisions" => "Revisions",
            "variables" => "Variables",
            "format" => "Format",
            other => return Err(format!("unknown operands `{other}`").into()),
        };
        let check = match string(table, "check")?.as_str() {
            "" => "None",
            "sed" => "Sed",
            "awk" => "Awk",
            "jq" => "Jq",
            "find" => "Find",
            "test" => "Test",
            "ps" => "Ps",
            "printenv" => "Printenv",
            "git_config" => "GitConfig",
            "kubectl" => "Kubectl",
            "tar" => "Tar",
            "set" => "Set",
            "cd" => "Cd",
            "printf" => "Printf",
            "less" => "Less",
            "group" => "Group",
            "lsof" => "Lsof",
            "npm_config" => "NpmConfig",
            "sysctl" => "Sysctl",
            "binutils" => "Binutils",
            other => return Err(format!("unknown check `{other}`").into()),
        };
        let recursive = string(table, "recursive")?;
        let always = recursive == "always";
        let recursive = if always { self.words(&[]) } else { self.split(&recursive) };
        let max = table.get("max").map_or(Some(255), |max| max.as_integer()).ok_or("`max` is a number")?;
        let min = table.get("min").map_or(Some(0), |min| min.as_integer()).ok_or("`min` is a number")?;
        let excess = match string(table, "excess")?.as_str() {
            "" => 0,
            text => self.denial(text)?,
        };
        let (needs, needs_why) = self.requirement(table, "needs")?;
        let (operands_need, operands_why) = self.requirement(table, "operands_need")?;
        let pattern_options = string(table, "pattern_options")?;
        let pattern_options = self.split(&pattern_options);
        let exact = list(table, "exact")?;
        let exact = self.words(&exact);
        let (digits, plus, harmless) = (flag(table, "digits")?, flag(table, "plus")?, flag(table, "harmless")?);
        self.grammars.push(format!(
            "Grammar {{ short: {short}, long: {long}, style: Style::{style}, digits: {digits}, plus: {plus}, \
             harmless: {harmless}, always_recursive: {always}, recursive: {recursive}, operands: Operands::{operands}, \
             max: {max}, min: {min}, excess: {excess}, needs: {needs}, needs_why: {needs_why}, operands_need: {operands_need}, \
             operands_why: {operands_why}, pattern_options: {pattern_options}, exact: {exact}, check: Check::{check} }}"
        ));
        Ok(self.grammars.len() - 1)
    }

    /// `needs = ["-l --list", "code: reason"]`: one of these options must be there.
    fn requirement(&mut self, table: &Table, key: &str) -> Outcome<(String, usize)> {
        match list(table, key)?.as_slice() {
            [] => Ok((self.words(&[]), 0)),
            [options, why] => {
                let why = self.denial(why)?;
                Ok((self.split(options), why))
            }
            _ => Err(format!("`{key}` is a list of options and a reason").into()),
        }
    }
}

impl Options {
    /// `-o` is a letter, `--output` a name, `-name` a name too (programs of style `single`).
    fn insert(&mut self, word: &str, takes: Takes) -> Outcome<()> {
        let (one, two) = (word.strip_prefix('-'), word.strip_prefix("--"));
        let mut letters = one.unwrap_or("").chars();
        match (two, one, letters.next(), letters.next()) {
            (Some(name), ..) => drop(self.long.insert(name.to_owned(), takes)),
            (None, _, Some(letter), None) => drop(self.short.insert(letter, takes)),
            (None, Some(name), Some(_), Some(_)) => drop(self.long.insert(name.to_owned(), takes)),
            _ => return Err(format!("`{word}` is no option").into()),
        }
        Ok(())
    }
}

fn takes_source(takes: &Takes) -> String {
    match takes {
        Takes::Nothing => "Takes::Nothing".into(),
        Takes::Value => "Takes::Value".into(),
        Takes::Path => "Takes::Path".into(),
        Takes::Number => "Takes::Number".into(),
        Takes::Pair => "Takes::Pair".into(),
        Takes::Maybe => "Takes::Maybe".into(),
        Takes::Denied(number) => format!("Takes::Denied({number})"),
    }
}
