//! Expansions: `$name`, `${…}`, `$(…)`, `$((…))`, `$'…'`.

use std::borrow::Cow;
use std::rc::Rc;

use super::words::push_text;
use super::*;

impl<'a> Parser<'a> {
    /// Reads what starts with `$`. A lone `$` is text.
    pub(super) fn dollar(&mut self, parts: &mut Vec<Part<'a>>, quoted: bool) -> Step<()> {
        let start = self.pos;
        match self.peek_at(1) {
            Some(b'\'') if !quoted => return self.ansi_quoted(parts),
            Some(b'"') if !quoted => {
                self.pos += 1;
                return self.double_quoted(parts);
            }
            Some(b'(') => return self.dollar_parenthesis(parts, quoted),
            Some(b'{') => return self.nested(|parser| parser.braced(parts, quoted)),
            Some(b'[') => return self.legacy_arithmetic(parts),
            Some(b'\\') if self.peek_at(2) == Some(b'\n') => {
                self.note(FaultKind::SplitToken, start);
                self.pos += 1;
                push_text(parts, "$", true);
                return Ok(());
            }
            _ => {}
        }
        self.pos += 1;
        let name = self.parameter_name(false);
        if name.is_empty() {
            push_text(parts, "$", quoted);
            return Ok(());
        }
        let span = self.span_from(start);
        parts.push(Part::Parameter(Rc::new(Parameter {
            span,
            name,
            subscript: None,
            indirect: false,
            quoted,
            op: Op::None,
        })));
        Ok(())
    }

    /// A name, a digit (all of them in braces) or a special parameter.
    fn parameter_name(&mut self, braced: bool) -> &'a str {
        let start = self.pos;
        match self.peek() {
            Some(byte) if is_name_start(byte) => {
                while self.peek().is_some_and(is_name_byte) {
                    self.pos += 1;
                }
            }
            Some(b'0'..=b'9') => {
                self.pos += 1;
                while braced && self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
                    self.pos += 1;
                }
            }
            Some(b'@' | b'*' | b'#' | b'?' | b'-' | b'$' | b'!') => self.pos += 1,
            _ => {}
        }
        self.slice(start, self.pos)
    }

    fn dollar_parenthesis(&mut self, parts: &mut Vec<Part<'a>>, quoted: bool) -> Step<()> {
        let start = self.pos;
        if self.peek_at(2) == Some(b'(') {
            self.pos += 3;
            if let Some(inner) = self.try_arithmetic() {
                parts.push(Part::Arithmetic(Rc::new(inner)));
                return Ok(());
            }
            self.pos = start;
        }
        self.pos += 2;
        let list = self.substituted()?;
        let span = self.span_from(start);
        parts.push(Part::Command(Rc::new(Substitution { list, quoted, fed: false, span })));
        Ok(())
    }

    /// The list inside `$(`, `<(` or `>(`, with its closing parenthesis.
    pub(super) fn substituted(&mut self) -> Step<List<'a>> {
        let start = self.pos;
        // A heredoc opened outside has its body after this line: with a newline in here, bash and we could differ.
        let outer = std::mem::take(&mut self.pending);
        let list = self.nested(|parser| parser.list(&[]))?;
        if !self.pending.is_empty() || (!outer.is_empty() && self.slice(start, self.pos).contains('\n')) {
            return self.fail(FaultKind::Unterminated, start);
        }
        self.pending = outer;
        if self.peek() != Some(b')') {
            return self.fail(FaultKind::Unterminated, start);
        }
        self.pos += 1;
        Ok(list)
    }

    /// Reads arithmetic up to `))`, or nothing when it turns out to be something else.
    pub(super) fn try_arithmetic(&mut self) -> Option<Vec<Part<'a>>> {
        if self.retries >= MAX_RETRIES {
            self.note(FaultKind::TooDeep, self.pos);
            return None;
        }
        let (fault, heres, pending) = (self.fault, self.heres.len(), self.pending.clone());
        let parts = self.nested(|parser| parser.arithmetic(b')'));
        if let Ok(parts) = parts
            && self.looking_at("))")
        {
            self.pos += 2;
            return Some(parts);
        }
        self.retries += 1;
        if self.fault.is_none_or(|fault| fault.kind != FaultKind::TooDeep) {
            self.fault = fault;
        }
        self.heres.truncate(heres);
        self.pending = pending;
        None
    }

    fn legacy_arithmetic(&mut self, parts: &mut Vec<Part<'a>>) -> Step<()> {
        self.pos += 2;
        let start = self.pos;
        let inner = self.nested(|parser| parser.arithmetic(b']'))?;
        // Bash takes the first `]` it counts, even one inside an expansion: only what is plain reads the same.
        let odd = |byte: u8| matches!(byte, b'[' | b'{' | b'(' | b'`' | b'\'' | b'"' | b'\\' | b'\n' | b'#');
        if self.slice(start, self.pos).bytes().any(odd) {
            self.note(FaultKind::Unexpected, start);
        }
        self.expect_byte(b']')?;
        parts.push(Part::Arithmetic(Rc::new(inner)));
        Ok(())
    }

    /// Reads arithmetic text up to the closing byte at its own level (left unread).
    fn arithmetic(&mut self, close: u8) -> Step<Vec<Part<'a>>> {
        let open = if close == b')' { b'(' } else { b'[' };
        let mut parts = Vec::new();
        let mut level = 0usize;
        let mut start = self.pos;
        loop {
            let Some(byte) = self.peek() else { return self.fail(FaultKind::Unterminated, self.pos) };
            if byte == close {
                if level == 0 {
                    break;
                }
                level -= 1;
            } else if byte == open {
                level += 1;
            } else if matches!(byte, b'$' | b'`' | b'"' | b'\'' | b'\\') {
                push_text(&mut parts, self.slice(start, self.pos), true);
                match byte {
                    b'$' => self.dollar(&mut parts, true)?,
                    b'`' => self.backtick(&mut parts, true)?,
                    b'"' => self.double_quoted(&mut parts)?,
                    b'\'' => {
                        // Bash looks for the other quote here, then takes it for a mistake: nobody honest writes it.
                        self.note(FaultKind::Unexpected, self.pos);
                        self.operand_special(byte, false, &mut parts)?;
                    }
                    _ => {
                        // What the backslash protects now is evaluated later: `$((a[\$(id)]))` runs `id`.
                        self.pos += 1;
                        let length = self.slice(self.pos, self.end).chars().next().map_or(0, char::len_utf8);
                        push_text(&mut parts, self.slice(self.pos, self.pos + length), true);
                        self.pos += length;
                    }
                }
                start = self.pos;
                continue;
            } else if byte == b';' && close == b']' {
                return self.fail(FaultKind::Unexpected, self.pos);
            }
            self.pos += 1;
        }
        push_text(&mut parts, self.slice(start, self.pos), true);
        Ok(parts)
    }

    /// `[…]` after a name, when it closes.
    pub(super) fn try_subscript(&mut self) -> Option<Vec<Part<'a>>> {
        let (start, fault) = (self.pos, self.fault);
        self.pos += 1;
        let parts = self.nested(|parser| parser.operand(b']', false, false));
        if let Ok(parts) = parts
            && self.peek() == Some(b']')
        {
            self.pos += 1;
            return Some(parts);
        }
        self.pos = start;
        if self.fault.is_none_or(|fault| fault.kind != FaultKind::TooDeep) {
            self.fault = fault;
        }
        None
    }

    fn braced(&mut self, parts: &mut Vec<Part<'a>>, quoted: bool) -> Step<()> {
        let start = self.pos;
        self.pos += 2;
        if matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'|' | b'(')) {
            return self.function_substitution(parts, quoted, start);
        }
        let mut indirect = false;
        let mut length = false;
        match (self.peek(), self.peek_at(1)) {
            (Some(b'!'), Some(next)) if next != b'}' => {
                indirect = true;
                self.pos += 1;
            }
            (Some(b'#'), Some(next)) if next != b'}' && self.length_follows() => {
                length = true;
                self.pos += 1;
            }
            _ => {}
        }
        let name = self.parameter_name(true);
        if name.is_empty() {
            return self.fail(FaultKind::Unexpected, start);
        }
        let subscript = if self.peek() == Some(b'[') { self.try_subscript() } else { None };
        let op = if length { Op::Length } else { self.operation(quoted, indirect)? };
        if self.peek() != Some(b'}') {
            let kind = if self.pos >= self.end { FaultKind::Unterminated } else { FaultKind::Unexpected };
            return self.fail(kind, start);
        }
        self.pos += 1;
        let span = self.span_from(start);
        parts.push(Part::Parameter(Rc::new(Parameter { span, name, subscript, indirect, quoted, op })));
        Ok(())
    }

    /// `${#name}` and `${#name[@]}`, but not `${#-…}` or `${##…}`, whose parameter is `#`.
    fn length_follows(&self) -> bool {
        match self.peek_at(1) {
            Some(byte) if is_name_byte(byte) => true,
            Some(b'@' | b'*' | b'?' | b'-' | b'$' | b'!' | b'#') => self.peek_at(2) == Some(b'}'),
            _ => false,
        }
    }

    /// `${ list; }` and `${| list; }` run commands in this very shell.
    fn function_substitution(&mut self, parts: &mut Vec<Part<'a>>, quoted: bool, start: usize) -> Step<()> {
        if self.peek() == Some(b'|') {
            self.pos += 1;
        }
        let list = self.list(&["}"])?;
        self.expect_keyword("}").or_else(|stop| {
            // `}` may touch what follows it: `"${ id; }x"`.
            if self.peek() == Some(b'}') {
                self.pos += 1;
                self.fault = None;
                Ok(())
            } else {
                Err(stop)
            }
        })?;
        let span = self.span_from(start);
        parts.push(Part::Command(Rc::new(Substitution { list, quoted, fed: false, span })));
        Ok(())
    }

    fn operation(&mut self, quoted: bool, indirect: bool) -> Step<Op<'a>> {
        let Some(byte) = self.peek() else { return Ok(Op::None) };
        let colon = byte == b':' && matches!(self.peek_at(1), Some(b'-' | b'=' | b'?' | b'+'));
        let operator = if colon { self.peek_at(1).unwrap_or(byte) } else { byte };
        if byte == b'}' {
            return Ok(Op::None);
        }
        self.pos += if colon { 2 } else { 1 };
        Ok(match operator {
            b'-' => Op::Default { colon, word: self.operand(b'}', quoted, true)? },
            b'=' => Op::AssignDefault { colon, word: self.operand(b'}', quoted, true)? },
            b'?' => Op::Error { word: self.operand(b'}', quoted, true)? },
            b'+' => Op::Alternate { colon, word: self.operand(b'}', quoted, true)? },
            b':' => Op::Slice(self.operand(b'}', quoted, true)?),
            b'#' | b'%' => {
                if self.peek() == Some(operator) {
                    self.pos += 1;
                }
                Op::Strip { prefix: operator == b'#', pattern: self.operand(b'}', false, true)? }
            }
            b'/' => {
                let all = self.peek() == Some(b'/');
                if matches!(self.peek(), Some(b'/' | b'#' | b'%')) {
                    self.pos += 1;
                }
                let pattern = self.operand(b'/', false, true)?;
                let with = if self.peek() == Some(b'/') {
                    self.pos += 1;
                    self.operand(b'}', false, true)?
                } else {
                    Vec::new()
                };
                Op::Replace { all, pattern, with }
            }
            b'^' | b',' | b'~' => {
                if self.peek() == Some(operator) {
                    self.pos += 1;
                }
                Op::Case(self.operand(b'}', false, true)?)
            }
            b'@' if indirect && self.peek() == Some(b'}') => Op::Names,
            b'*' if indirect => Op::Names,
            b'@' => {
                let letter = self.peek().map_or('P', char::from);
                self.pos += 1;
                Op::Transform(letter)
            }
            _ => return self.fail(FaultKind::Unexpected, self.pos),
        })
    }

    /// The word of an expansion, up to the closing byte (left unread); a `}` always closes when `braced`.
    fn operand(&mut self, close: u8, quoted: bool, braced: bool) -> Step<Vec<Part<'a>>> {
        let mut parts = Vec::new();
        let mut start = self.pos;
        // Subscripts inside subscripts: `${x[y[0]]}`.
        let mut level = 0usize;
        let mut in_quotes = false;
        while let Some(byte) = self.peek() {
            if close == b']' && byte == b'[' {
                level += 1;
            } else if close == b']' && byte == b']' && level > 0 {
                level -= 1;
            } else if byte == close || (braced && byte == b'}') {
                break;
            }
            if quoted && byte == b'\'' {
                if !in_quotes {
                    self.paired_quote()?;
                }
                in_quotes = !in_quotes;
            }
            if braced && !quoted && byte == b'{' {
                // Bash expands braces first, and counts this one for them: `${x-{}}` is no longer what it looks.
                self.note(FaultKind::Unexpected, self.pos);
            }
            let process = !quoted && matches!(byte, b'<' | b'>') && self.peek_at(1) == Some(b'(');
            let special = matches!(byte, b'\\' | b'$' | b'`' | b'"') || (byte == b'\'' && !quoted);
            if !special && !process {
                self.pos += 1;
                continue;
            }
            if start < self.pos {
                push_text(&mut parts, self.slice(start, self.pos), quoted);
            }
            if process {
                self.pos += 2;
                let from = self.pos - 2;
                let list = self.substituted()?;
                let span = self.span_from(from);
                parts.push(Part::Process(Rc::new(Substitution { list, quoted, fed: byte == b'>', span })));
            } else {
                self.operand_special(byte, quoted, &mut parts)?;
            }
            start = self.pos;
        }
        if start < self.pos {
            push_text(&mut parts, self.slice(start, self.pos), quoted);
        }
        Ok(parts)
    }

    /// A single quote in the word of a double-quoted `${…}` is text, but bash looks for its pair before it looks for
    /// the closing brace. Where that makes a difference, the two ways to read it are too far apart.
    fn paired_quote(&mut self) -> Step<()> {
        let rest = self.bytes.get(self.pos + 1..self.end).unwrap_or_default();
        let Some(length) = rest.iter().position(|byte| *byte == b'\'') else {
            return self.fail(FaultKind::Unterminated, self.pos);
        };
        let between = rest.get(..length).unwrap_or_default();
        if between.iter().any(|byte| matches!(byte, b'}' | b'"' | b'`' | b'\\' | b'\n')) {
            self.note(FaultKind::Unexpected, self.pos);
        }
        Ok(())
    }

    fn operand_special(&mut self, byte: u8, quoted: bool, parts: &mut Vec<Part<'a>>) -> Step<()> {
        match byte {
            b'$' => self.dollar(parts, quoted),
            b'`' => self.backtick(parts, quoted),
            b'"' => self.double_quoted(parts),
            b'\'' => {
                let start = self.pos + 1;
                let rest = self.bytes.get(start..self.end).unwrap_or_default();
                let Some(length) = rest.iter().position(|b| *b == b'\'') else {
                    return self.fail(FaultKind::Unterminated, self.pos);
                };
                self.pos = start + length + 1;
                push_text(parts, self.slice(start, start + length), true);
                Ok(())
            }
            _ => {
                self.pos += 1;
                let length = self.slice(self.pos, self.end).chars().next().map_or(0, char::len_utf8);
                push_text(parts, self.slice(self.pos, self.pos + length), true);
                self.pos += length;
                Ok(())
            }
        }
    }

    fn ansi_quoted(&mut self, parts: &mut Vec<Part<'a>>) -> Step<()> {
        let start = self.pos;
        self.pos += 2;
        let from = self.pos;
        loop {
            match self.peek() {
                None => return self.fail(FaultKind::Unterminated, start),
                Some(b'\'') => break,
                Some(b'\\') => self.pos += 2,
                Some(_) => self.pos += 1,
            }
        }
        let raw = self.slice(from, self.pos);
        self.pos += 1;
        if raw.contains('\\') {
            let text = Cow::Owned(crate::expand::ansi::decode(raw));
            parts.push(Part::Text { text, quoted: true });
        } else {
            push_text(parts, raw, true);
        }
        Ok(())
    }
}
