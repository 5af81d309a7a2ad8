//! Makes rows of what files of programs say: once for the built-in ones, when the crate is built, and for a user's when
//! they are read. What it refuses it points at; sizes are bounded, so that no file takes long or fills the memory.

use super::format::{Entry, File, Problem, Written};
use super::rows::{Code, Denial, Grammar, Known, Program, Rows, Sub, Takes};
use crate::pool::{Name, Pool, Slice, Text};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use toml::Spanned;

/// More is no list of options: those of a set count wherever it is used.
pub const MAX_OPTIONS: usize = 100_000;
/// Programs by name, and subcommands.
pub const MAX_PROGRAMS: usize = 5_000;
pub const MAX_SUBS: usize = 20_000;

type Outcome<T> = Result<T, Problem>;
type Sets = BTreeMap<String, Spanned<Entry>>;

/// Rows as they are made.
#[derive(Debug)]
pub struct Compiler {
    rows: Rows,
    pool: Pool,
    denials: HashMap<String, u16>,
    programs: BTreeMap<String, Program>,
    /// Options collected so far.
    collected: usize,
}

#[derive(Clone, Debug, Default)]
struct Options {
    short: BTreeMap<char, Takes>,
    long: BTreeMap<String, Takes>,
}

impl Default for Compiler {
    fn default() -> Self {
        let mut rows = Rows::default();
        // Number 0 means "nothing denied".
        rows.denials.push(Denial { code: Code::UnknownOption, reason: Text { at: 0, len: 0 } });
        let (denials, programs) = (HashMap::new(), BTreeMap::new());
        Self { rows, pool: Pool::default(), denials, programs, collected: 0 }
    }
}

impl Compiler {
    /// Adds what one file says. After an error the rows are of no use.
    pub fn add(&mut self, file: &File) -> Outcome<()> {
        for program in &file.programs {
            self.program(program.get_ref(), &file.sets, &program.get_ref().place(program.span()))?;
        }
        Ok(())
    }

    pub fn finish(mut self) -> Rows {
        self.rows.programs = self.programs.into_values().collect();
        (self.rows.pool, self.rows.words) = (self.pool.text, self.pool.words);
        self.rows
    }

    fn program(&mut self, entry: &Entry, sets: &Sets, place: &Range<usize>) -> Outcome<()> {
        let own = self.options(entry, sets)?;
        let grammar = self.grammar(entry, &own, place)?;
        // Literal names before patterns, then the longest that fits.
        let mut subs: Vec<((bool, Reverse<usize>), Sub)> = Vec::new();
        let rank = |words: &[&str]| (words.iter().any(|word| word.contains('*')), Reverse(words.len()));
        for sub in &entry.subs {
            let (entry_of_sub, place) = (sub.get_ref(), sub.get_ref().place(sub.span()));
            let mut options = self.options(entry_of_sub, sets)?;
            if entry.globals_anywhere {
                self.count(own.short.len() + own.long.len(), &place)?;
                for (letter, takes) in &own.short {
                    options.short.entry(*letter).or_insert(*takes);
                }
                for (name, takes) in &own.long {
                    options.long.entry(name.clone()).or_insert(*takes);
                }
            }
            let grammar = self.grammar(entry_of_sub, &options, &place)?;
            for name in &entry_of_sub.names {
                let words: Vec<&str> = name.get_ref().split_whitespace().collect();
                if words.is_empty() {
                    return Err(Problem::new(name.span(), "a subcommand without a name"));
                }
                let slice = self.words(words.iter().copied(), &name.span())?;
                subs.push((rank(&words), Sub { words: slice, grammar, denial: 0 }));
            }
        }
        for (keys, why) in &entry.deny_sub {
            let denial = self.denial(why)?;
            for key in keys.split_whitespace() {
                let words: Vec<&str> = key.split('+').collect();
                let slice = self.words(words.iter().copied(), &why.span())?;
                subs.push((rank(&words), Sub { words: slice, grammar: 0, denial }));
            }
        }
        subs.sort_by_key(|(rank, _)| *rank);
        let from = self.rows.subs.len();
        self.rows.subs.extend(subs.into_iter().map(|(_, sub)| sub));
        if self.rows.subs.len() > MAX_SUBS {
            return Err(Problem::new(place.clone(), format!("more than {MAX_SUBS} subcommands in all; list fewer")));
        }
        let subs = slice(from, self.rows.subs.len(), place)?;
        for name in &entry.names {
            let row = Program { name: self.name(name.get_ref(), &name.span())?, grammar, subs };
            if self.programs.insert(name.get_ref().clone(), row).is_some() {
                let message = format!("program `{}` is there twice; describe it once", name.get_ref());
                return Err(Problem::new(name.span(), message));
            }
        }
        if self.programs.len() > MAX_PROGRAMS {
            return Err(Problem::new(place.clone(), format!("more than {MAX_PROGRAMS} programs in all; list fewer")));
        }
        Ok(())
    }

    /// The options of one entry and of the sets it uses; what is denied wins over what is known.
    fn options(&mut self, entry: &Entry, sets: &Sets) -> Outcome<Options> {
        let mut options = Options::default();
        for name in &entry.uses {
            let set = sets.get(name.get_ref());
            let set = set.ok_or_else(|| {
                let message = format!("no set is called `{0}`; write it as `[set.{0}]` in this file", name.get_ref());
                Problem::new(name.span(), message)
            })?;
            self.listed(set.get_ref(), &mut options, &name.span())?;
        }
        self.listed(entry, &mut options, &entry.place(0..0))?;
        Ok(options)
    }

    fn listed(&mut self, entry: &Entry, options: &mut Options, place: &Range<usize>) -> Outcome<()> {
        let mut letters = entry.short.chars().filter(|letter| *letter != ' ').peekable();
        let mut count = 0;
        while let Some(letter) = letters.next() {
            let mut takes = Takes::Nothing;
            if letters.next_if_eq(&':').is_some() {
                takes = if letters.next_if_eq(&':').is_some() { Takes::Maybe } else { Takes::Value };
            }
            options.short.insert(letter, takes);
            count += 1;
        }
        for (word, place) in
            entry.long.iter().flat_map(|long| long.get_ref().split_whitespace().map(|word| (word, long.span())))
        {
            if word.starts_with('-') {
                return Err(Problem::new(place, format!("`{word}`: names in `long` are written without dashes")));
            }
            let (name, takes) = match (word.strip_suffix('='), word.strip_suffix('?')) {
                (Some(name), _) if name.ends_with('=') => (name.trim_end_matches('='), Takes::Pair),
                (Some(name), _) => (name, Takes::Value),
                (_, Some(name)) => (name, Takes::Maybe),
                _ => (word, Takes::Nothing),
            };
            options.long.insert(name.to_owned(), takes);
            count += 1;
        }
        for (listed, takes) in [(&entry.paths, Takes::Path), (&entry.numbers, Takes::Number)] {
            if let Some(listed) = listed {
                for word in listed.get_ref().split_whitespace() {
                    options.insert(word, takes, &listed.span())?;
                    count += 1;
                }
            }
        }
        for (keys, why) in &entry.deny {
            let denial = self.denial(why)?;
            for word in keys.split_whitespace() {
                options.insert(word, Takes::Denied(denial), &why.span())?;
                count += 1;
            }
        }
        self.count(count, place)
    }

    fn count(&mut self, options: usize, place: &Range<usize>) -> Outcome<()> {
        self.collected += options;
        if self.collected > MAX_OPTIONS {
            let message = format!("more than {MAX_OPTIONS} options in all, with those of sets; list fewer");
            return Err(Problem::new(place.clone(), message));
        }
        Ok(())
    }

    fn grammar(&mut self, entry: &Entry, options: &Options, place: &Range<usize>) -> Outcome<u16> {
        let from = self.rows.options.len();
        for (letter, takes) in &options.short {
            let name = self.text(letter.encode_utf8(&mut [0; 4]), place)?;
            self.rows.options.push(Known { name, takes: *takes });
        }
        let middle = self.rows.options.len();
        for (name, takes) in &options.long {
            let name = self.text(name, place)?;
            self.rows.options.push(Known { name, takes: *takes });
        }
        let always_recursive = entry.recursive == "always";
        let recursive = if always_recursive { "" } else { entry.recursive.as_str() };
        let (needs, needs_why) = self.requirement(entry.needs.as_ref())?;
        let (operands_need, operands_why) = self.requirement(entry.operands_need.as_ref())?;
        let grammar = Grammar {
            short: slice(from, middle, place)?,
            long: slice(middle, self.rows.options.len(), place)?,
            style: entry.style,
            digits: entry.digits,
            plus: entry.plus,
            harmless: entry.harmless,
            always_recursive,
            recursive: self.words(recursive.split_whitespace(), place)?,
            operands: entry.operands,
            max: entry.max.unwrap_or(u8::MAX),
            min: entry.min.unwrap_or(0),
            excess: entry.excess.as_ref().map_or(Ok(0), |why| self.denial(why))?,
            needs,
            needs_why,
            operands_need,
            operands_why,
            pattern_options: self.words(entry.pattern_options.split_whitespace(), place)?,
            exact: self.words(entry.exact.iter().map(String::as_str), place)?,
            check: entry.check,
            obeys: entry.obeys.iter().copied().collect(),
            works_in: self.words(entry.works_in.split_whitespace(), place)?,
        };
        let number = u16::try_from(self.rows.grammars.len()).map_err(|_| too_much(place))?;
        self.rows.grammars.push(grammar);
        Ok(number)
    }

    /// `needs = ["-l --list", "code: reason"]`: one of these options must be there.
    fn requirement(&mut self, written: Option<&Spanned<Vec<Written>>>) -> Outcome<(Slice, u16)> {
        let Some(written) = written else { return Ok((Slice { from: 0, to: 0 }, 0)) };
        match written.get_ref().as_slice() {
            [options, why] if !options.get_ref().trim().is_empty() => {
                let denial = self.denial(why)?;
                Ok((self.words(options.get_ref().split_whitespace(), &options.span())?, denial))
            }
            _ => Err(Problem::new(written.span(), "this is a list of options and a reason: `[\"-l\", \"code: why\"]`")),
        }
    }

    /// The number of `code: reason`.
    pub fn denial(&mut self, why: &Written) -> Outcome<u16> {
        if let Some(number) = self.denials.get(why.get_ref()) {
            return Ok(*number);
        }
        let (code, reason) = why.get_ref().split_once(": ").unwrap_or_default();
        let Some(code) = Code::ALL.into_iter().find(|known| known.name() == code) else {
            let codes: Vec<&str> = Code::ALL.into_iter().map(Code::name).collect();
            let message = format!("`{}` is not `code: reason`, with a code of {}", why.get_ref(), codes.join(", "));
            return Err(Problem::new(why.span(), message));
        };
        let number = u16::try_from(self.rows.denials.len()).map_err(|_| too_much(&why.span()))?;
        let reason = self.text(reason, &why.span())?;
        self.rows.denials.push(Denial { code, reason });
        self.denials.insert(why.get_ref().clone(), number);
        Ok(number)
    }

    pub fn words<'w>(&mut self, words: impl Iterator<Item = &'w str>, place: &Range<usize>) -> Outcome<Slice> {
        self.pool.words(words).ok_or_else(|| too_much(place))
    }

    pub fn name(&mut self, name: &str, place: &Range<usize>) -> Outcome<Name> {
        self.pool.name(name).ok_or_else(|| too_much(place))
    }

    fn text(&mut self, text: &str, place: &Range<usize>) -> Outcome<Text> {
        self.pool.text(text).ok_or_else(|| too_much(place))
    }
}

impl Options {
    /// `-o` is a letter, `--output` a name, `-name` a name too (programs of style `single`).
    fn insert(&mut self, word: &str, takes: Takes, place: &Range<usize>) -> Outcome<()> {
        let (one, two) = (word.strip_prefix('-'), word.strip_prefix("--"));
        let mut letters = one.unwrap_or("").chars();
        match (two, one, letters.next(), letters.next()) {
            (Some(name), ..) => drop(self.long.insert(name.to_owned(), takes)),
            (None, _, Some(letter), None) => drop(self.short.insert(letter, takes)),
            (None, Some(name), Some(_), Some(_)) => drop(self.long.insert(name.to_owned(), takes)),
            _ => return Err(Problem::new(place.clone(), format!("`{word}` is no option; write it with its dashes"))),
        }
        Ok(())
    }
}

fn slice(from: usize, to: usize, place: &Range<usize>) -> Outcome<Slice> {
    Slice::new(from, to).ok_or_else(|| too_much(place))
}

fn too_much(place: &Range<usize>) -> Problem {
    Problem::new(place.clone(), "this is more than a table can hold; list fewer")
}
