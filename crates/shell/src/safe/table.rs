//! The compiled tables of programs: what `build/programs.rs` made of `rules/programs/*.toml` and
//! `rules/paths.toml`. Knows how to look things up, not what they mean.

/// A piece of the pool of text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Text {
    at: u32,
    len: u32,
}

impl Text {
    pub(super) fn get(self) -> &'static str {
        let at = self.at as usize;
        POOL.get(at..at + self.len as usize).unwrap_or("")
    }
}

/// Some consecutive rows of one of the arrays.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slice {
    from: u32,
    to: u32,
}

impl Slice {
    fn of<T>(self, rows: &'static [T]) -> &'static [T] {
        rows.get(self.from as usize..self.to as usize).unwrap_or(&[])
    }

    pub(super) fn words(self) -> impl Iterator<Item = &'static str> + Clone {
        self.of(&WORDS).iter().map(|text| text.get())
    }

    pub(super) fn is_empty(self) -> bool {
        self.from == self.to
    }

    /// For the lists that are sorted.
    pub(super) fn holds(self, name: &str) -> bool {
        self.of(&WORDS).binary_search_by(|text| text.get().cmp(name)).is_ok()
    }
}

/// What an option takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Takes {
    Nothing,
    Value,
    /// A file it reads.
    Path,
    /// A count or a size.
    Number,
    /// Two words, the second perhaps a file it reads.
    Pair,
    /// A value only when it is attached.
    Maybe,
    /// Makes the program more than a reader, and why.
    Denied(u16),
}

#[derive(Debug)]
pub(super) struct Known {
    name: Text,
    pub(super) takes: Takes,
}

impl Known {
    pub(super) fn name(&self) -> &'static str {
        self.name.get()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// Clusters of letters, long names in full.
    Plain,
    /// As plain, and long names may be abbreviated.
    Gnu,
    /// One dash or two before a name, no clusters.
    Single,
    /// No options: every word is an operand.
    Raw,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operands {
    None,
    Text,
    /// Text, of which what looks like a path is held against the sensitive ones: it may be used as one.
    Words,
    /// Files whose contents are shown.
    Paths,
    /// Files whose names or metadata are shown.
    Names,
    /// A pattern, then files.
    Pattern,
    /// A program text, then files.
    Script,
    /// Git revisions, `revision:path` and paths.
    Revisions,
    /// Names of shell variables.
    Variables,
    /// Only `+FORMAT`.
    Format,
}

/// What a table cannot say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Check {
    None,
    Sed,
    Awk,
    Jq,
    Find,
    Test,
    Ps,
    Printenv,
    GitConfig,
    Kubectl,
    Tar,
    Set,
    Cd,
    Printf,
    Less,
    /// A word that only introduces further subcommands, with options of its own.
    Group,
    Lsof,
    NpmConfig,
    Sysctl,
    Binutils,
}

#[derive(Debug)]
pub(super) struct Grammar {
    short: Slice,
    long: Slice,
    pub(super) style: Style,
    /// `-5` is a number.
    pub(super) digits: bool,
    /// `+5` or `+FORMAT` is no file.
    pub(super) plus: bool,
    /// No option of this program does more than read, so a word that may become an option is fine.
    pub(super) harmless: bool,
    pub(super) always_recursive: bool,
    pub(super) recursive: Slice,
    pub(super) operands: Operands,
    pub(super) max: u8,
    /// With fewer operands it starts a pager.
    pub(super) min: u8,
    pub(super) excess: u16,
    pub(super) needs: Slice,
    pub(super) needs_why: u16,
    pub(super) operands_need: Slice,
    pub(super) operands_why: u16,
    pub(super) pattern_options: Slice,
    pub(super) exact: Slice,
    pub(super) check: Check,
}

/// What a long name, perhaps shortened, stands for.
pub(super) enum Found {
    One(&'static Known),
    Ambiguous,
    Nothing,
}

impl Grammar {
    pub(super) fn letter(&self, letter: char) -> Option<&'static Known> {
        let mut buffer = [0; 4];
        let letter: &str = letter.encode_utf8(&mut buffer);
        exact(self.short.of(&OPTIONS), letter)
    }

    pub(super) fn long(&self, name: &str) -> Found {
        let rows = self.long.of(&OPTIONS);
        if let Some(known) = exact(rows, name) {
            return Found::One(known);
        }
        if self.style == Style::Single
            && let Some(known) = exact(self.short.of(&OPTIONS), name)
        {
            return Found::One(known);
        }
        let from = rows.partition_point(|known| known.name() < name);
        let mut candidates = rows.get(from..).unwrap_or(&[]).iter().take_while(|known| known.name().starts_with(name));
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

fn exact(rows: &'static [Known], name: &str) -> Option<&'static Known> {
    let at = rows.binary_search_by(|known| known.name().cmp(name)).ok()?;
    rows.get(at)
}

#[derive(Debug)]
pub(super) struct Sub {
    words: Slice,
    grammar: u16,
    /// Not 0: never a reader, and why.
    pub(super) denial: u16,
}

impl Sub {
    pub(super) fn words(&self) -> impl Iterator<Item = &'static str> + Clone {
        self.words.words()
    }

    pub(super) fn grammar(&self) -> Option<&'static Grammar> {
        GRAMMARS.get(usize::from(self.grammar))
    }
}

#[derive(Debug)]
pub(super) struct Program {
    name: Text,
    grammar: u16,
    subs: Slice,
}

impl Program {
    pub(super) fn find(name: &str) -> Option<&'static Program> {
        let at = PROGRAMS.binary_search_by(|program| program.name.get().cmp(name)).ok()?;
        PROGRAMS.get(at)
    }

    pub(super) fn name(&self) -> &'static str {
        self.name.get()
    }

    pub(super) fn grammar(&self) -> Option<&'static Grammar> {
        GRAMMARS.get(usize::from(self.grammar))
    }

    pub(super) fn subs(&self) -> &'static [Sub] {
        self.subs.of(&SUBS)
    }
}

#[derive(Debug)]
pub(super) struct Denial {
    code: Text,
    reason: Text,
}

impl Denial {
    /// Stable code and plain words of a denial by number.
    pub(super) fn words(number: u16) -> (&'static str, &'static str) {
        DENIALS
            .get(usize::from(number))
            .map_or(("unknown_option", ""), |denial| (denial.code.get(), denial.reason.get()))
    }
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
        self.components.words()
    }

    /// Names that this pattern is there for.
    pub(super) fn samples(&self) -> impl Iterator<Item = &'static str> {
        self.samples.words()
    }

    pub(super) fn reason(&self) -> &'static str {
        Denial::words(self.denial).1
    }
}

/// A name that is secret wherever it stands.
#[derive(Debug)]
pub(super) struct SensitiveName {
    name: Text,
    denial: u16,
}

impl SensitiveName {
    pub(super) fn all() -> &'static [SensitiveName] {
        &SENSITIVE_NAMES
    }

    pub(super) fn name(&self) -> &'static str {
        self.name.get()
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
        let at = rows.binary_search_by(|row| row.name.get().cmp(name)).ok()?;
        rows.get(at).map(SensitiveName::reason)
    }

    pub(super) fn reason(&self) -> &'static str {
        Denial::words(self.denial).1
    }
}

include!(concat!(env!("OUT_DIR"), "/programs.rs"));
