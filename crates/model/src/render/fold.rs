//! Folding: the middle of a long text is replaced by how long it is and its digest.
//!
//! Decides only what stays visible; the head, the tail and every risky span do.

use std::ops::Range;

use super::document::{Document, Kind, Piece};
use super::escape::is_mark;
use super::{MarkKind, count, plural};
use crate::canonical::sha256;

const DIGEST_DIGITS: usize = 12;
/// Visible on each side of a risky span.
const CONTEXT_CHARS: usize = 60;
/// A gap smaller than this takes no more room than the sentence that would replace it.
const MIN_HIDDEN: usize = 120;

/// When a text is long, and how much of it stays.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limit {
    pub chars: usize,
    pub lines: usize,
}

impl Limit {
    /// What a section may take.
    pub const SECTION: Self = Self { chars: 4_000, lines: 120 };
    /// What one of several strings may take when together they are too long.
    pub const STRING: Self = Self { chars: 600, lines: 20 };

    pub fn is_met_by(self, text: &str) -> bool {
        (text.len() <= self.chars || text.chars().count() <= self.chars)
            && text.bytes().filter(|b| *b == b'\n').count() < self.lines
    }
}

/// Writes several texts together: whole when they fit, else each one shortened, since what stands between
/// them (names, numbers) says what they are for.
pub(super) fn fitted(write: impl Fn(Limit) -> Document) -> Document {
    let whole = write(Limit::SECTION);
    if Limit::SECTION.is_met_by(&whole.shown) {
        return whole;
    }
    write(Limit::STRING).folded(Limit::SECTION)
}

impl Document {
    pub fn folded(self, limit: Limit) -> Self {
        if limit.is_met_by(&self.shown) {
            return self;
        }
        let visible = self.visible(limit);
        if visible.len() == 1 { self } else { self.rebuilt(&visible) }
    }

    /// The ranges of the shown text that stay, in order and apart.
    fn visible(&self, limit: Limit) -> Vec<Range<usize>> {
        let text = self.shown.as_str();
        let mut keep = vec![0..head(text, limit), tail(text, limit)..text.len()];
        let risky: Vec<_> = self
            .overlays
            .iter()
            .filter(|overlay| matches!(overlay.kind, MarkKind::Risk { .. }))
            .map(|overlay| overlay.source.clone())
            .collect();
        keep.extend(self.shown_ranges(&risky).into_iter().map(|range| with_context(text, range)));
        // What replaces something is kept whole or not at all.
        let mut at = 0;
        let mut whole = Vec::new();
        for piece in &self.pieces {
            if piece.kind != Kind::Plain {
                whole.push(at..at + piece.shown);
            }
            at += piece.shown;
        }
        for range in &mut keep {
            range.start = enclosing(&whole, range.start).map_or(range.start, |piece| piece.start);
            range.end = enclosing(&whole, range.end).map_or(range.end, |piece| piece.end);
            range.start = before_marks(text, range.start);
        }
        joined(text, keep)
    }

    fn rebuilt(self, visible: &[Range<usize>]) -> Self {
        let mut out = Self { overlays: self.overlays, tally: self.tally, ..Self::default() };
        let mut folds = self.folds.into_iter();
        let mut hidden = String::new();
        let mut visible = visible.iter().peekable();
        let (mut source_at, mut at) = (0, 0);
        for Piece { source, shown, kind } in self.pieces {
            let piece_source = self.source.get(source_at..source_at + source).unwrap_or_default();
            let (end, start) = (at + shown, at);
            let fold = if kind == Kind::Folded { folds.next() } else { None };
            source_at += source;
            while at < end {
                while visible.next_if(|range| range.end <= at).is_some() {}
                let (inside, until) = match visible.peek() {
                    Some(range) if range.start <= at => (true, range.end.min(end)),
                    Some(range) => (false, range.start.min(end)),
                    None => (false, end),
                };
                // INVARIANT: only plain pieces, whose source is what is shown, are cut.
                let cut = if kind == Kind::Plain {
                    piece_source.get(at - start..until - start).unwrap_or_default()
                } else {
                    piece_source
                };
                if inside {
                    out.push_fold(&mut hidden);
                    out.push(cut, self.shown.get(at..until).unwrap_or_default(), kind);
                    out.folds.extend(fold);
                } else {
                    hidden.push_str(cut);
                }
                at = until;
            }
        }
        out.push_fold(&mut hidden);
        out
    }

    pub(super) fn push_fold(&mut self, hidden: &mut String) {
        if hidden.is_empty() {
            return;
        }
        let chars = hidden.chars().count();
        let lines = hidden.bytes().filter(|b| *b == b'\n').count();
        let digest = sha256(hidden.as_bytes());
        let mut short = digest.to_hex();
        short.truncate(DIGEST_DIGITS);
        let lines_too = match lines {
            0 => String::new(),
            _ => format!(", {} {}", count(lines), plural("line", lines)),
        };
        let label = format!("[… {} {}{lines_too} hidden, sha256 {short} …]", count(chars), plural("character", chars));
        self.push(hidden, &label, Kind::Folded);
        self.folds.push((chars, lines, digest));
        hidden.clear();
    }
}

/// Half of the room goes to the head.
fn head(text: &str, limit: Limit) -> usize {
    let by_chars = text.char_indices().nth(limit.chars / 2).map_or(text.len(), |(at, _)| at);
    let by_lines = text.match_indices('\n').nth(limit.lines / 2).map_or(text.len(), |(at, _)| at);
    by_chars.min(by_lines)
}

/// A quarter goes to the tail: the head says what it is, the tail how it ends.
fn tail(text: &str, limit: Limit) -> usize {
    let by_chars = text.char_indices().rev().nth(limit.chars / 4).map_or(0, |(at, _)| at);
    let by_lines = text.rmatch_indices('\n').nth(limit.lines / 4).map_or(0, |(at, _)| at);
    by_chars.max(by_lines)
}

fn with_context(text: &str, range: Range<usize>) -> Range<usize> {
    let before = text.get(..range.start).unwrap_or_default();
    let after = text.get(range.end..).unwrap_or_default();
    let start = before.char_indices().rev().take(CONTEXT_CHARS).last().map_or(range.start, |(at, _)| at);
    let end = after.char_indices().nth(CONTEXT_CHARS).map_or(text.len(), |(at, _)| range.end + at);
    start..end
}

/// The piece that `at` would cut in two.
fn enclosing(whole: &[Range<usize>], at: usize) -> Option<&Range<usize>> {
    let found = whole.partition_point(|piece| piece.start < at);
    whole.get(found.checked_sub(1)?).filter(|piece| piece.end > at)
}

/// A combining mark must not come to sit on the sign that says what is hidden.
fn before_marks(text: &str, at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    if !rest.starts_with(|c: char| !c.is_ascii() && is_mark(c)) {
        return at;
    }
    let before = text.get(..at).unwrap_or_default();
    before.char_indices().rev().find(|(_, c)| !is_mark(*c)).map_or(0, |(at, _)| at)
}

fn joined(text: &str, mut ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    ranges.sort_by_key(|range| (range.start, range.end));
    let mut joined: Vec<Range<usize>> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.start <= last.end || is_small(text, last.end..range.start) => {
                last.end = last.end.max(range.end);
            }
            _ => joined.push(range),
        }
    }
    joined
}

fn is_small(text: &str, gap: Range<usize>) -> bool {
    let gap = text.get(gap).unwrap_or_default();
    gap.len() < MIN_HIDDEN && gap.bytes().filter(|b| *b == b'\n').count() < 4
}
