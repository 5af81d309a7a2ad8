//! Words: quotes, escapes and plain text. What begins with `$` is in `dollar`.

use std::borrow::Cow;

use super::*;

impl<'a> Parser<'a> {
    /// Reads one word where one must stand: a `#` here begins a comment instead.
    pub(super) fn standing_word(&mut self) -> Step<Node<'a>> {
        if self.peek() == Some(b'#') { self.fail(FaultKind::Unexpected, self.pos) } else { self.word() }
    }

    /// Reads one word; there must be one.
    pub(super) fn word(&mut self) -> Step<Node<'a>> {
        let start = self.pos;
        let mut parts = Vec::new();
        loop {
            let before = self.pos;
            if !self.word_part(&mut parts)? || self.pos == before {
                break;
            }
        }
        if self.pos == start {
            return self.fail(FaultKind::Unexpected, start);
        }
        Ok(Node { span: self.span_from(start), parts })
    }

    /// Reads the next part of an unquoted word; answers whether there was one.
    fn word_part(&mut self, parts: &mut Vec<Part<'a>>) -> Step<bool> {
        let Some(byte) = self.peek() else { return Ok(false) };
        match byte {
            b'<' | b'>' if self.peek_at(1) == Some(b'(') => self.process(parts)?,
            b'?' | b'*' | b'+' | b'@' | b'!' if self.peek_at(1) == Some(b'(') => self.pattern_group(parts)?,
            _ if is_meta(byte) => return Ok(false),
            b'\\' | b'\'' | b'"' | b'$' | b'`' => self.special(byte, parts)?,
            _ => {
                let start = self.pos;
                while let Some(byte) = self.peek() {
                    let group = matches!(byte, b'?' | b'*' | b'+' | b'@' | b'!') && self.peek_at(1) == Some(b'(');
                    if group || is_meta(byte) || matches!(byte, b'\\' | b'\'' | b'"' | b'$' | b'`') {
                        break;
                    }
                    self.pos += 1;
                }
                push_text(parts, self.slice(start, self.pos), false);
            }
        }
        Ok(true)
    }

    /// A part that starts with a quote, an escape, a dollar or a backtick, outside double quotes.
    fn special(&mut self, byte: u8, parts: &mut Vec<Part<'a>>) -> Step<()> {
        match byte {
            b'\\' => self.escape(parts),
            b'\'' => self.single_quoted(parts)?,
            b'"' => self.double_quoted(parts)?,
            b'`' => self.backtick(parts, false)?,
            _ => self.dollar(parts, false)?,
        }
        Ok(())
    }

    fn escape(&mut self, parts: &mut Vec<Part<'a>>) {
        if self.peek_at(1) == Some(b'\n') {
            return self.continuation();
        }
        let start = self.pos + 1;
        let Some(next) = self.slice(start, self.end).chars().next() else {
            self.pos += 1;
            return push_text(parts, "\\", true);
        };
        self.pos = start + next.len_utf8();
        push_text(parts, self.slice(start, self.pos), true);
    }

    fn single_quoted(&mut self, parts: &mut Vec<Part<'a>>) -> Step<()> {
        let start = self.pos + 1;
        let Some(length) = self.bytes.get(start..self.end).and_then(|rest| rest.iter().position(|b| *b == b'\''))
        else {
            return self.fail(FaultKind::Unterminated, self.pos);
        };
        self.pos = start + length + 1;
        push_text(parts, self.slice(start, start + length), true);
        Ok(())
    }

    pub(super) fn double_quoted(&mut self, parts: &mut Vec<Part<'a>>) -> Step<()> {
        let start = self.pos;
        self.pos += 1;
        let inner = self.nested(|parser| parser.quoted_run(Some(b'"')))?;
        if self.peek() != Some(b'"') {
            return self.fail(FaultKind::Unterminated, start);
        }
        self.pos += 1;
        if inner.is_empty() {
            push_text(parts, "", true);
        }
        parts.extend(inner);
        Ok(())
    }

    /// Reads as inside double quotes up to the byte given (left unread) or the end. Heredoc bodies have no end byte
    /// and keep their double quotes.
    pub(super) fn quoted_run(&mut self, until: Option<u8>) -> Step<Vec<Part<'a>>> {
        let mut parts = Vec::new();
        let mut start = self.pos;
        while let Some(byte) = self.peek() {
            if Some(byte) == until {
                break;
            }
            if !matches!(byte, b'\\' | b'$' | b'`') {
                self.pos += 1;
                continue;
            }
            push_run(&mut parts, self.slice(start, self.pos));
            match byte {
                b'\\' => self.quoted_escape(&mut parts, until.is_some()),
                b'`' => self.backtick(&mut parts, true)?,
                _ => self.dollar(&mut parts, true)?,
            }
            start = self.pos;
        }
        push_run(&mut parts, self.slice(start, self.pos));
        Ok(parts)
    }

    fn quoted_escape(&mut self, parts: &mut Vec<Part<'a>>, quotes: bool) {
        match self.peek_at(1) {
            Some(b'\n') => {
                let before = self.pos.checked_sub(1).and_then(|at| self.bytes.get(at).copied());
                if before == Some(b'$') {
                    self.note(FaultKind::SplitToken, self.pos);
                }
                self.pos += 2;
            }
            Some(b'$' | b'`' | b'\\') => {
                push_text(parts, self.slice(self.pos + 1, self.pos + 2), true);
                self.pos += 2;
            }
            Some(b'"') if quotes => {
                push_text(parts, "\"", true);
                self.pos += 2;
            }
            _ => {
                push_text(parts, "\\", true);
                self.pos += 1;
            }
        }
    }

    /// `…` : its text is kept and parsed when walked, since escapes are removed from it first.
    pub(super) fn backtick(&mut self, parts: &mut Vec<Part<'a>>, quoted: bool) -> Step<()> {
        let start = self.pos;
        self.pos += 1;
        let from = self.pos;
        let mut cooked: Option<String> = None;
        let mut kept = from;
        loop {
            match self.peek() {
                None => return self.fail(FaultKind::Unterminated, start),
                Some(b'`') => break,
                Some(b'\\') if matches!(self.peek_at(1), Some(b'`' | b'\\' | b'$')) || self.escaped_quote(quoted) => {
                    let text = cooked.get_or_insert_default();
                    text.push_str(self.slice(kept, self.pos));
                    kept = self.pos + 1;
                    self.pos += 2;
                }
                Some(_) => self.pos += 1,
            }
        }
        let (text, offset) = match cooked {
            Some(mut text) => {
                text.push_str(self.slice(kept, self.pos));
                (Cow::Owned(text), None)
            }
            None => (Cow::Borrowed(self.slice(from, self.pos)), Some(from)),
        };
        self.pos += 1;
        parts.push(Part::Backtick { text, offset, quoted, span: self.span_from(start) });
        Ok(())
    }

    fn escaped_quote(&self, quoted: bool) -> bool {
        quoted && self.peek_at(1) == Some(b'"')
    }

    fn process(&mut self, parts: &mut Vec<Part<'a>>) -> Step<()> {
        let start = self.pos;
        let fed = self.peek() == Some(b'>');
        self.pos += 2;
        let list = self.substituted()?;
        let span = self.span_from(start);
        parts.push(Part::Process(std::rc::Rc::new(Substitution { list, quoted: false, fed, span })));
        Ok(())
    }

    /// `@(a|b)` and its kin: one pattern, whose words may hold expansions. Outside `[[ … ]]` bash takes it only after
    /// `shopt -s extglob`, so there it is no syntax that can be relied on.
    fn pattern_group(&mut self, parts: &mut Vec<Part<'a>>) -> Step<()> {
        if !self.patterns {
            self.note(FaultKind::Unexpected, self.pos);
        }
        push_text(parts, self.slice(self.pos, self.pos + 2), false);
        self.pos += 2;
        self.nested(|parser| {
            loop {
                match parser.peek() {
                    None => return parser.fail(FaultKind::Unterminated, parser.pos),
                    Some(b')') => {
                        parser.pos += 1;
                        push_text(parts, ")", false);
                        return Ok(());
                    }
                    Some(b'|' | b' ' | b'\t' | b'&' | b';') => {
                        push_text(parts, parser.slice(parser.pos, parser.pos + 1), false);
                        parser.pos += 1;
                    }
                    Some(_) => {
                        let before = parser.pos;
                        if !parser.word_part(parts)? || parser.pos == before {
                            return parser.fail(FaultKind::Unexpected, before);
                        }
                    }
                }
            }
        })
    }

    /// The right side of `=~`: parentheses and bars belong to it, blanks only inside parentheses.
    pub(super) fn regex_word(&mut self) -> Step<Node<'a>> {
        let start = self.pos;
        let mut parts = Vec::new();
        let mut open = 0usize;
        while let Some(byte) = self.peek() {
            match byte {
                b'\n' => break,
                b' ' | b'\t' if open == 0 => break,
                b'(' => open += 1,
                b')' => open = open.saturating_sub(1),
                b'\\' | b'\'' | b'"' | b'$' | b'`' => {
                    self.special(byte, &mut parts)?;
                    continue;
                }
                _ => {}
            }
            let length = self.slice(self.pos, self.end).chars().next().map_or(1, char::len_utf8);
            push_text(&mut parts, self.slice(self.pos, self.pos + length), true);
            self.pos += length;
        }
        Ok(Node { span: self.span_from(start), parts })
    }
}

fn push_run<'a>(parts: &mut Vec<Part<'a>>, text: &'a str) {
    if !text.is_empty() {
        push_text(parts, text, true);
    }
}

/// Appends text, growing the last part when it is text of the same kind.
pub(super) fn push_text<'a>(parts: &mut Vec<Part<'a>>, text: &'a str, quoted: bool) {
    if let Some(Part::Text { text: last, quoted: same }) = parts.last_mut()
        && *same == quoted
    {
        last.to_mut().push_str(text);
        return;
    }
    parts.push(Part::Text { text: Cow::Borrowed(text), quoted });
}
