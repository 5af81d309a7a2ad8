//! One word of a command, as bash would have it after expansion, as far as that is known without running it.

/// Byte offsets into the command text as it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    pub start: usize,
    pub end: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    pub span: Span,
    pub value: Value,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Exactly this text: quotes, escapes, `$'…'`, braces and known variables are resolved. A leading `~` that
    /// bash would expand stays `~`.
    Known(String),
    /// An unquoted pattern and nothing else unknown: becomes names that exist, or stays as it is.
    Glob(String),
    /// Depends on run time.
    Dynamic(Dynamic),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dynamic {
    /// What is known before the first unknown part, and after the last.
    pub prefix: String,
    pub suffix: String,
    pub sources: Vec<Source>,
    /// Unquoted: may become several words, or none.
    pub splits: bool,
}

/// Where an unknown part comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// `$NAME` or `${NAME}` with a plain default at most; never assigned in this text.
    Variable(String),
    /// `$1`, `$@`, `$*`, `$#`.
    Positional,
    /// `$?`, `$$`, `$!`, `$-`, `$((…))` without commands inside: digits and little else.
    Number,
    /// A substitution whose commands are all safe and whose output is bounded: paths, refs, dates, counts.
    BoundedOutput,
    /// The same, and names of files are among what it prints: they can hold blanks, brackets and marks.
    Names,
    /// Any other substitution.
    Output,
    /// `<(…)` or `>(…)`.
    Process,
    /// A loop variable over words that are all known.
    OneOf(Vec<String>),
    /// `${!x}`, `${x@P}`, and whatever else turns data into code or names.
    Indirect,
}

impl Source {
    /// Bytes of text in it.
    pub(crate) fn weight(&self) -> usize {
        match self {
            Self::OneOf(texts) => texts.iter().map(|text| text.len() + 8).sum(),
            Self::Variable(name) => name.len(),
            _ => 0,
        }
    }
}

impl Dynamic {
    /// Whether nothing known stands before or after the unknown.
    pub(crate) fn is_whole(&self) -> bool {
        self.prefix.is_empty() && self.suffix.is_empty()
    }
}

impl Value {
    /// Bytes of text in it.
    pub(crate) fn weight(&self) -> usize {
        match self {
            Self::Known(text) | Self::Glob(text) => text.len(),
            Self::Dynamic(dynamic) => {
                let sources: usize = dynamic.sources.iter().map(Source::weight).sum();
                dynamic.prefix.len() + dynamic.suffix.len() + sources
            }
        }
    }
}

impl Word {
    pub fn known(&self) -> Option<&str> {
        match &self.value {
            Value::Known(text) => Some(text),
            Value::Glob(_) | Value::Dynamic(_) => None,
        }
    }

    /// Text to match rules on: a glob as it stands, a variable as `$NAME` between what is known, `$…` for
    /// any other unknown part. Never used to decide that something is safe.
    pub fn picture(&self) -> String {
        match &self.value {
            Value::Known(text) | Value::Glob(text) => text.clone(),
            Value::Dynamic(dynamic) => {
                let unknown = match dynamic.sources.as_slice() {
                    [Source::Variable(name)] => format!("${name}"),
                    _ => "$…".to_owned(),
                };
                format!("{}{unknown}{}", dynamic.prefix, dynamic.suffix)
            }
        }
    }

    pub fn is_dynamic(&self) -> bool {
        matches!(self.value, Value::Dynamic(_))
    }
}
