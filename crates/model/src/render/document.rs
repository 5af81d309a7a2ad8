//! A text on its way to a person: pieces that know both what was written and what is shown.
//!
//! Masking, escaping, padding and folding each only replace pieces; the one place that computes offsets into
//! the shown text is `finish`. Knows nothing of actions.

use std::ops::Range;

use super::escape::{self, Class, Marks, Style};
use super::padding::padding;
use super::scripts::{self, Why};
use super::tally::{MAX_NAMED, Tally};
use super::{Fold, Mark, MarkKind, Shown};
use crate::canonical::Digest;
use crate::mask::Redaction;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Shown as it is written, and may be cut anywhere.
    Plain,
    /// Written differently to stay inside quotes.
    Quoted,
    Escaped,
    Padding,
    Masked,
    Folded,
}

/// Lengths in bytes; where a piece starts is the sum of those before it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub source: usize,
    pub shown: usize,
    pub kind: Kind,
}

/// A remark on a range of the source that does not change what is shown.
#[derive(Debug)]
pub(super) struct Overlay {
    pub source: Range<usize>,
    pub kind: MarkKind,
}

/// INVARIANT: the pieces' lengths add up to those of `source` and `shown`, and `folds` has one entry for each
/// folded piece, in order.
#[derive(Debug, Default)]
pub(super) struct Document {
    pub source: String,
    pub shown: String,
    pub pieces: Vec<Piece>,
    pub overlays: Vec<Overlay>,
    pub folds: Vec<(usize, usize, Digest)>,
    pub tally: Tally,
}

impl Document {
    /// Text of our own: labels, quotes, brackets.
    pub fn push_own(&mut self, text: &str) {
        self.push(text, text, Kind::Plain);
    }

    /// Text of anyone else's, with the secrets found in it.
    pub fn push_text(&mut self, text: &str, style: Style, redactions: &[Redaction]) {
        self.note_suspects(text, redactions);
        let mut at = 0;
        for redaction in redactions {
            self.push_visible(text.get(at..redaction.start).unwrap_or_default(), style);
            let value = text.get(redaction.start..redaction.end).unwrap_or_default();
            self.push(value, &redaction.label(), Kind::Masked);
            at = redaction.end;
        }
        self.push_visible(text.get(at..).unwrap_or_default(), style);
    }

    pub fn append(&mut self, other: Self) {
        let shift = self.source.len();
        self.source.push_str(&other.source);
        self.shown.push_str(&other.shown);
        self.pieces.extend(other.pieces);
        self.overlays.extend(other.overlays.into_iter().map(|overlay| Overlay {
            source: overlay.source.start + shift..overlay.source.end + shift,
            kind: overlay.kind,
        }));
        self.folds.extend(other.folds);
        self.tally.add(other.tally);
    }

    pub(super) fn push(&mut self, source: &str, shown: &str, kind: Kind) {
        if source.is_empty() && shown.is_empty() {
            return;
        }
        self.source.push_str(source);
        self.shown.push_str(shown);
        match self.pieces.last_mut() {
            Some(last) if last.kind == Kind::Plain && kind == Kind::Plain => {
                last.source += source.len();
                last.shown += shown.len();
            }
            _ => self.pieces.push(Piece { source: source.len(), shown: shown.len(), kind }),
        }
    }

    fn push_visible(&mut self, text: &str, style: Style) {
        let mut rest = text;
        let mut marks = Marks::default();
        while let Some(c) = rest.chars().next() {
            let class = escape::class(c);
            let (length, shown, kind) = if let Some((length, label)) = padding(rest, class, style) {
                (length, label, Kind::Padding)
            } else if c == '\n' {
                let kind = match style {
                    Style::Block => Kind::Plain,
                    Style::Line => Kind::Escaped,
                    Style::Json { .. } | Style::Single | Style::Dollar => Kind::Quoted,
                };
                (1, style.newline(), kind)
            } else if let Some(quoted) = style.quoted(c) {
                (c.len_utf8(), quoted.to_owned(), Kind::Quoted)
            } else {
                let class = class
                    .or_else(|| escape::imitates(rest, style).then_some(Class::Imitation))
                    .or_else(|| marks.overlays(c).then_some(Class::Overlay));
                let Some(class) = class else {
                    rest = self.push_char(rest, c);
                    continue;
                };
                self.tally.count(class, 1);
                (c.len_utf8(), spelled(c, class), Kind::Escaped)
            };
            if kind == Kind::Padding
                && let Some(class) = class
            {
                self.tally.count(class, rest.get(..length).map_or(0, |run| run.chars().count()));
            }
            marks.reset();
            let (source, after) = rest.split_at_checked(length).unwrap_or((rest, ""));
            self.push(source, &shown, kind);
            rest = after;
        }
    }

    fn push_char<'a>(&mut self, rest: &'a str, c: char) -> &'a str {
        let (source, after) = rest.split_at_checked(c.len_utf8()).unwrap_or((rest, ""));
        self.push(source, source, Kind::Plain);
        after
    }

    fn note_suspects(&mut self, text: &str, redactions: &[Redaction]) {
        let shift = self.source.len();
        let mut masked = redactions.iter().peekable();
        for suspect in scripts::suspects(text, MAX_NAMED) {
            let Range { start, end } = suspect.range;
            // A notice that names a masked word would undo the mask.
            while masked.next_if(|redaction| redaction.end <= start).is_some() {}
            if masked.peek().is_some_and(|redaction| redaction.start < end) {
                continue;
            }
            if suspect.why != Why::ForeignHost {
                let source = shift + start..shift + end;
                self.overlays.push(Overlay { source, kind: MarkKind::MixedScript });
            }
            let word = text.get(start..end).unwrap_or_default();
            self.tally.suspect(word.to_owned(), suspect);
        }
    }

    /// Where a range of the source is in the shown text; a piece that is replaced is taken whole.
    pub fn shown_ranges(&self, ranges: &[Range<usize>]) -> Vec<Range<usize>> {
        let mut starts = Vec::with_capacity(self.pieces.len());
        let (mut source, mut shown) = (0, 0);
        for piece in &self.pieces {
            starts.push((source, shown, *piece));
            source += piece.source;
            shown += piece.shown;
        }
        let locate = |at: usize, after: bool| {
            // The end of a range belongs to the piece it ends in, not to the one that starts there.
            let found = starts.partition_point(|(start, ..)| if after { *start < at } else { *start <= at });
            let piece = found.checked_sub(1).and_then(|index| starts.get(index));
            let Some((source, shown, piece)) = piece.copied() else {
                return 0;
            };
            match (piece.kind, after) {
                (Kind::Plain, _) => shown + (at - source).min(piece.shown),
                (_, true) => shown + piece.shown,
                (_, false) if at >= source + piece.source => shown + piece.shown,
                (_, false) => shown,
            }
        };
        let range = |range: &Range<usize>| {
            let start = locate(range.start, false);
            start..if range.is_empty() { start } else { locate(range.end, true) }
        };
        ranges.iter().map(range).collect()
    }

    /// The shown text with every mark and fold at its place.
    pub fn finish(self) -> Shown {
        let mut marks: Vec<Mark> = Vec::new();
        let mut folds = Vec::new();
        let mut hidden = self.folds.iter();
        let mut at = 0;
        for piece in &self.pieces {
            let end = at + piece.shown;
            if let Some(kind) = mark_of(piece.kind) {
                match marks.last_mut() {
                    // One underline for a run of escapes reads better than many.
                    Some(last) if last.end == at && kind == MarkKind::Escaped && last.kind == kind => last.end = end,
                    _ => marks.push(Mark { start: at, end, kind }),
                }
            }
            if piece.kind == Kind::Folded
                && let Some((chars, lines, digest)) = hidden.next()
            {
                folds.push(Fold { at, chars: *chars, lines: *lines, digest: *digest });
            }
            at = end;
        }
        let sources: Vec<_> = self.overlays.iter().map(|overlay| overlay.source.clone()).collect();
        let shown = self.shown_ranges(&sources);
        let folded: Vec<_> =
            marks.iter().filter(|mark| mark.kind == MarkKind::Folded).map(|mark| mark.start..mark.end).collect();
        for (overlay, range) in self.overlays.into_iter().zip(shown) {
            let behind = folded.iter().any(|fold| fold.start <= range.start && range.end <= fold.end);
            if !behind || matches!(overlay.kind, MarkKind::Risk { .. }) {
                marks.push(Mark { start: range.start, end: range.end, kind: overlay.kind });
            }
        }
        marks.sort_by_key(|mark| (mark.start, std::cmp::Reverse(mark.end)));
        Shown { text: self.shown, marks, folds }
    }
}

/// An imitation starts with an ASCII character, which has no name of its own as an escape.
fn spelled(c: char, class: Class) -> String {
    match class {
        Class::Imitation => format!("\\u{{{:x}}}", u32::from(c)),
        Class::Layout | Class::Control | Class::Hidden | Class::Space | Class::Unassigned | Class::Overlay => {
            escape::spelled(c)
        }
    }
}

fn mark_of(kind: Kind) -> Option<MarkKind> {
    match kind {
        Kind::Plain | Kind::Quoted => None,
        Kind::Escaped => Some(MarkKind::Escaped),
        Kind::Padding => Some(MarkKind::Padding),
        Kind::Masked => Some(MarkKind::Masked),
        Kind::Folded => Some(MarkKind::Folded),
    }
}
