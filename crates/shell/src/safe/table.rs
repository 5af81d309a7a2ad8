//! The tables of programs: the built-in one, which `build/programs.rs` made of `rules/programs/*.toml` and
//! `rules/paths.toml`, and a user's. Knows how to look things up, not what they mean.

use std::borrow::Cow;
use std::ops::Deref;

use super::rows::{Check, Code, Denial, Grammar, Known, Operands, Program, Rows, Style, Sub, Takes};
use crate::pool::{Name, Slice, Text, bytes, cut, find, part};
use crate::project::Projects;

/// One table of programs.
#[derive(Clone, Copy, Debug)]
pub(super) enum Table<'t> {
    BuiltIn,
    Own(&'t Rows),
}

impl<'t> Table<'t> {
    /// Asked for once where many texts are looked at.
    #[inline]
    fn pool(self) -> &'t str {
        match self {
            Self::BuiltIn => POOL,
            Self::Own(rows) => &rows.pool,
        }
    }

    fn words(self, slice: Slice) -> impl Iterator<Item = &'t str> + Clone {
        let rows = match self {
            Self::BuiltIn => WORDS.as_slice(),
            Self::Own(rows) => &rows.words,
        };
        let pool = self.pool();
        part(rows, slice).iter().map(move |text| cut(pool, *text))
    }

    fn options(self, slice: Slice) -> &'t [Known] {
        let rows = match self {
            Self::BuiltIn => OPTIONS.as_slice(),
            Self::Own(rows) => &rows.options,
        };
        part(rows, slice)
    }

    fn grammar(self, number: u16) -> Option<Of<'t, Grammar>> {
        let rows = match self {
            Self::BuiltIn => GRAMMARS.as_slice(),
            Self::Own(rows) => &rows.grammars,
        };
        rows.get(usize::from(number)).map(|row| Of { table: self, row })
    }

    fn subs(self, slice: Slice) -> &'t [Sub] {
        let rows = match self {
            Self::BuiltIn => SUBS.as_slice(),
            Self::Own(rows) => &rows.subs,
        };
        part(rows, slice)
    }

    /// Stable code and plain words of a denial by number.
    fn denial(self, number: u16) -> (Code, Cow<'static, str>) {
        match self {
            Self::BuiltIn => built_in_denial(number).map_or(UNSAID, |(code, reason)| (code, Cow::Borrowed(reason))),
            Self::Own(rows) => {
                let denial = rows.denials.get(usize::from(number));
                denial.map_or(UNSAID, |denial| (denial.code, Cow::Owned(cut(&rows.pool, denial.reason).to_owned())))
            }
        }
    }

    #[inline]
    pub(super) fn find(self, name: &str) -> Option<Of<'t, Program>> {
        let rows = match self {
            Self::BuiltIn => PROGRAMS.as_slice(),
            Self::Own(rows) => &rows.programs,
        };
        find(rows, self.pool(), name, |row| row.name).map(|row| Of { table: self, row })
    }
}

/// What is said when a number leads nowhere, which no table holds.
const UNSAID: (Code, Cow<'static, str>) = (Code::UnknownOption, Cow::Borrowed(""));

fn built_in_denial(number: u16) -> Option<(Code, &'static str)> {
    let denial = DENIALS.get(usize::from(number))?;
    Some((denial.code, cut(POOL, denial.reason)))
}

/// A row, with the table that its numbers point into.
#[derive(Debug)]
pub(super) struct Of<'t, R> {
    table: Table<'t>,
    row: &'t R,
}

impl<R> Clone for Of<'_, R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R> Copy for Of<'_, R> {}

impl<R> Deref for Of<'_, R> {
    type Target = R;

    fn deref(&self) -> &R {
        self.row
    }
}

impl<'t, R> Of<'t, R> {
    pub(super) fn words(self, slice: Slice) -> impl Iterator<Item = &'t str> + Clone {
        self.table.words(slice)
    }

    /// Stable code and plain words of a denial of the same table.
    pub(super) fn denial(self, number: u16) -> (Code, Cow<'static, str>) {
        self.table.denial(number)
    }
}

impl<'t> Of<'t, Known> {
    pub(super) fn name(self) -> &'t str {
        cut(self.table.pool(), self.row.name)
    }
}

/// What a long name, perhaps shortened, stands for.
pub(super) enum Found<'t> {
    One(Of<'t, Known>),
    Ambiguous,
    Nothing,
}

impl<'t> Of<'t, Grammar> {
    pub(super) fn letter(self, letter: char) -> Option<Of<'t, Known>> {
        let mut buffer = [0; 4];
        let letter: &str = letter.encode_utf8(&mut buffer);
        self.exactly(self.table.options(self.short), letter)
    }

    fn exactly(self, rows: &'t [Known], name: &str) -> Option<Of<'t, Known>> {
        let pool = self.table.pool();
        let at = rows.binary_search_by(|known| bytes(pool, known.name).cmp(name.as_bytes())).ok()?;
        rows.get(at).map(|row| self.known(row))
    }

    fn known(self, row: &'t Known) -> Of<'t, Known> {
        Of { table: self.table, row }
    }

    pub(super) fn long(self, name: &str) -> Found<'t> {
        let rows = self.table.options(self.row.long);
        if let Some(known) = self.exactly(rows, name) {
            return Found::One(known);
        }
        if self.style == Style::Single
            && let Some(known) = self.exactly(self.table.options(self.short), name)
        {
            return Found::One(known);
        }
        let pool = self.table.pool();
        let from = rows.partition_point(|known| bytes(pool, known.name) < name.as_bytes());
        let rest = rows.get(from..).unwrap_or(&[]).iter().map(|row| self.known(row));
        let mut candidates = rest.take_while(|known| known.name().starts_with(name));
        let Some(first) = candidates.next() else { return Found::Nothing };
        let mut all_alike = true;
        for other in candidates {
            // What may stand for something denied counts as that.
            if matches!(other.takes, Takes::Denied(_)) {
                return Found::One(other);
            }
            all_alike &= other.takes == first.takes;
        }
        if matches!(first.takes, Takes::Denied(_)) {
            return Found::One(first);
        }
        match self.style {
            Style::Gnu if all_alike => Found::One(first),
            Style::Gnu => Found::Ambiguous,
            Style::Plain | Style::Single | Style::Raw => Found::Nothing,
        }
    }
}

impl<'t> Of<'t, Sub> {
    /// The words that lead to it.
    pub(super) fn path(self) -> impl Iterator<Item = &'t str> + Clone {
        self.table.words(self.row.words)
    }

    pub(super) fn grammar(self) -> Option<Of<'t, Grammar>> {
        self.table.grammar(self.row.grammar)
    }
}

impl<'t> Of<'t, Program> {
    /// The built-in program of this name, or the user's: a user's table adds, it replaces nothing.
    pub(super) fn find(name: &str, own: Option<&'t Rows>) -> Option<Self> {
        Table::BuiltIn.find(name).or_else(|| Table::Own(own?).find(name))
    }

    /// The user's program of this name.
    pub(super) fn find_own(name: &str, own: Option<&'t Rows>) -> Option<Self> {
        Table::Own(own?).find(name)
    }

    /// Knows nothing but a few whole forms, such as how to ask for the version.
    pub(super) fn is_sketch(self) -> bool {
        let plain = |grammar: Of<'t, Grammar>| {
            grammar.operands == Operands::None
                && grammar.needs.is_empty()
                && grammar.short.is_empty()
                && grammar.long.is_empty()
        };
        self.subs().len() == 0 && self.grammar().is_some_and(plain)
    }

    pub(super) fn name(self) -> &'t str {
        cut(self.table.pool(), self.row.name.text)
    }

    pub(super) fn grammar(self) -> Option<Of<'t, Grammar>> {
        self.table.grammar(self.row.grammar)
    }

    pub(super) fn subs(self) -> impl ExactSizeIterator<Item = Of<'t, Sub>> + Clone {
        self.table.subs(self.row.subs).iter().map(move |row| Of { table: self.table, row })
    }
}

/// The words of a built-in list.
pub(super) fn words(slice: Slice) -> impl Iterator<Item = &'static str> + Clone {
    part(&WORDS, slice).iter().map(|text| cut(POOL, *text))
}

/// Whether a built-in list that is sorted holds a name.
pub(super) fn holds(slice: Slice, name: &str) -> bool {
    part(&WORDS, slice).binary_search_by(|text| bytes(POOL, *text).cmp(name.as_bytes())).is_ok()
}

/// A pattern of path components that names something secret.
#[derive(Debug)]
pub(super) struct Sensitive {
    components: Slice,
    /// Starts at `/`; otherwise it floats.
    pub(super) rooted: bool,
    /// What its first component begins with; 0 when that is open.
    pub(super) head: u8,
    samples: Slice,
    denial: u16,
}

impl Sensitive {
    pub(super) fn all() -> &'static [Sensitive] {
        &SENSITIVE
    }

    pub(super) fn components(&self) -> impl Iterator<Item = &'static str> + Clone {
        words(self.components)
    }

    /// Whether it starts at the root or at a home.
    pub(super) fn is_anchored(&self) -> bool {
        self.rooted || self.components().next() == Some("~")
    }

    /// Names that this pattern is there for.
    pub(super) fn samples(&self) -> impl Iterator<Item = &'static str> {
        words(self.samples)
    }

    pub(super) fn reason(&self) -> &'static str {
        built_in_denial(self.denial).map_or("", |(_, reason)| reason)
    }
}

/// A name that is secret wherever it stands.
#[derive(Debug)]
pub(super) struct SensitiveName {
    name: Name,
    denial: u16,
}

impl SensitiveName {
    pub(super) fn all() -> &'static [SensitiveName] {
        &SENSITIVE_NAMES
    }

    pub(super) fn name(&self) -> &'static str {
        cut(POOL, self.name.text)
    }

    pub(super) fn find(name: &str) -> Option<&'static str> {
        Self::among(&SENSITIVE_NAMES, name)
    }

    pub(super) fn extensions() -> &'static [SensitiveName] {
        &SENSITIVE_EXTENSIONS
    }

    /// By what follows the last dot of a file's name.
    pub(super) fn extension(name: &str) -> Option<&'static str> {
        Self::among(&SENSITIVE_EXTENSIONS, name)
    }

    fn among(rows: &'static [SensitiveName], name: &str) -> Option<&'static str> {
        find(rows, POOL, name, |row| row.name).map(SensitiveName::reason)
    }

    pub(super) fn reason(&self) -> &'static str {
        built_in_denial(self.denial).map_or("", |(_, reason)| reason)
    }
}

include!(concat!(env!("OUT_DIR"), "/programs.rs"));
