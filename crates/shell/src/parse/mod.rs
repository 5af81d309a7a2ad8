//! Shell text to a tree. Owns the grammar of bash and nothing of its meaning; never runs, never panics, linear in
//! the length of the text, and bounded in depth.
//!
//! Written here rather than taken from a crate: the parsers measured keep what is nested deep as plain text
//! without a word, end long chains with an error, or do not split words, and each of those hides a command.

mod compound;
mod dollar;
mod lists;
mod redirects;
mod simple;
mod tree;
mod words;

pub(crate) use tree::*;

use crate::word::Span;

/// Constructs inside constructs. Real commands stay under ten.
pub(crate) const MAX_DEPTH: usize = 48;
/// `$((` that turned out to be a subshell is parsed twice; more often than this nobody honest writes it.
const MAX_RETRIES: usize = 4;

#[derive(Debug)]
pub(crate) struct Parsed<'a> {
    pub list: List<'a>,
    pub heres: Vec<Here<'a>>,
    pub fault: Option<Fault>,
}

/// Why the text is not (wholly) understood. What was read before it is still in the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub span: Span,
    pub kind: FaultKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FaultKind {
    Unterminated,
    Unexpected,
    /// A backslash-newline inside a token.
    SplitToken,
    TooDeep,
}

/// Marks that parsing cannot go on; the fault itself is in the parser.
#[derive(Debug)]
pub(crate) struct Stop;

pub(crate) type Step<T> = Result<T, Stop>;

#[derive(Debug)]
pub(crate) struct Parser<'a> {
    src: &'a str,
    bytes: &'a [u8],
    pos: usize,
    end: usize,
    depth: usize,
    retries: usize,
    /// Inside `[[ … ]]`.
    patterns: bool,
    heres: Vec<Here<'a>>,
    /// Heredocs whose bodies come after the next newline.
    pending: Vec<Pending>,
    fault: Option<Fault>,
}

#[derive(Clone, Debug)]
struct Pending {
    here: usize,
    delimiter: String,
    quoted: bool,
    strip_tabs: bool,
}

/// Parses a whole script.
pub(crate) fn parse(text: &str, depth: usize) -> Parsed<'_> {
    let mut parser = Parser::new(text, depth);
    let list = parser.script();
    Parsed { list, heres: parser.heres, fault: parser.fault }
}

/// Parses text as the inside of double quotes: what `${x@P}` and array subscripts in strings evaluate.
pub(crate) fn parse_quoted(text: &str, depth: usize) -> (Vec<Part<'_>>, Parsed<'_>) {
    let mut parser = Parser::new(text, depth);
    let parts = parser.quoted_run(None).unwrap_or_default();
    (parts, Parsed { list: List::default(), heres: parser.heres, fault: parser.fault })
}

impl<'a> Parser<'a> {
    fn new(src: &'a str, depth: usize) -> Self {
        Self {
            src,
            bytes: src.as_bytes(),
            pos: 0,
            end: src.len(),
            depth,
            retries: 0,
            patterns: false,
            heres: Vec::new(),
            pending: Vec::new(),
            fault: None,
        }
    }

    fn script(&mut self) -> List<'a> {
        let mut list = List::default();
        let outcome = self.list_into(&mut list, &[]);
        if outcome.is_ok() && self.pos < self.end {
            let _ = self.fail::<()>(FaultKind::Unexpected, self.pos);
        }
        if !self.pending.is_empty() && self.fault.is_none() {
            let _ = self.fail::<()>(FaultKind::Unterminated, self.end);
        }
        list
    }

    fn peek(&self) -> Option<u8> {
        self.peek_at(0)
    }

    fn peek_at(&self, ahead: usize) -> Option<u8> {
        let at = self.pos + ahead;
        if at < self.end { self.bytes.get(at).copied() } else { None }
    }

    fn looking_at(&self, text: &str) -> bool {
        self.bytes.get(self.pos..self.end).is_some_and(|rest| rest.starts_with(text.as_bytes()))
    }

    fn slice(&self, start: usize, end: usize) -> &'a str {
        self.src.get(start..end).unwrap_or_default()
    }

    fn span_from(&self, start: usize) -> Span {
        Span { start, end: self.pos.max(start) }
    }

    /// Records the first fault and stops.
    fn fail<T>(&mut self, kind: FaultKind, start: usize) -> Step<T> {
        self.note(kind, start);
        Err(Stop)
    }

    /// Records a fault that does not keep the rest from being read.
    fn note(&mut self, kind: FaultKind, start: usize) {
        if self.fault.is_none() || kind == FaultKind::TooDeep {
            let end = self.pos.max(start);
            self.fault = Some(Fault { span: Span { start, end }, kind });
        }
    }

    fn nested<T>(&mut self, inner: impl FnOnce(&mut Self) -> Step<T>) -> Step<T> {
        if self.depth >= MAX_DEPTH {
            return self.fail(FaultKind::TooDeep, self.pos);
        }
        self.depth += 1;
        let outcome = inner(self);
        self.depth -= 1;
        outcome
    }

    /// Skips blanks and line continuations.
    fn skip_blanks(&mut self) {
        while let Some(byte) = self.peek() {
            match byte {
                b' ' | b'\t' => self.pos += 1,
                b'\\' if self.peek_at(1) == Some(b'\n') => self.continuation(),
                _ => break,
            }
        }
    }

    /// Steps over a backslash-newline. Between two characters of a token it joins what looks apart.
    fn continuation(&mut self) {
        let blank = |byte: Option<u8>| byte.is_none_or(|b| matches!(b, b' ' | b'\t' | b'\n' | b'\\'));
        let before = self.pos.checked_sub(1).and_then(|at| self.bytes.get(at).copied());
        if !blank(before) && !blank(self.peek_at(2)) {
            self.note(FaultKind::SplitToken, self.pos);
        }
        self.pos += 2;
    }

    /// Skips blanks, comments and newlines, reading the bodies of pending heredocs.
    fn skip_lines(&mut self) -> Step<()> {
        loop {
            self.skip_blanks();
            match self.peek() {
                Some(b'\n') => self.newline()?,
                Some(b'#') => self.comment(),
                _ => return Ok(()),
            }
        }
    }

    fn comment(&mut self) {
        while self.peek().is_some_and(|byte| byte != b'\n') {
            self.pos += 1;
        }
    }

    fn newline(&mut self) -> Step<()> {
        self.pos += 1;
        if self.pending.is_empty() { Ok(()) } else { self.read_bodies() }
    }
}

pub(super) fn is_name_start(byte: u8) -> bool {
    byte == b'_' || byte.is_ascii_alphabetic()
}

pub(super) fn is_name_byte(byte: u8) -> bool {
    byte == b'_' || byte.is_ascii_alphanumeric()
}

/// Ends a word when it stands unquoted.
pub(super) fn is_meta(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'|' | b'&' | b';' | b'(' | b')' | b'<' | b'>')
}
