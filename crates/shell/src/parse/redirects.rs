//! Redirections and the bodies of heredocs.

use std::borrow::Cow;

use super::*;

const OPERATORS: &[(&str, RedirectOp)] = &[
    ("&>>", RedirectOp::Both { append: true }),
    ("&>", RedirectOp::Both { append: false }),
    ("<<<", RedirectOp::HereString),
    ("<<-", RedirectOp::HereDoc),
    ("<<", RedirectOp::HereDoc),
    ("<&", RedirectOp::DuplicateIn),
    ("<>", RedirectOp::ReadWrite),
    ("<", RedirectOp::Read),
    (">>", RedirectOp::Append),
    (">&", RedirectOp::DuplicateOut),
    (">|", RedirectOp::Write),
    (">", RedirectOp::Write),
];

impl<'a> Parser<'a> {
    /// The redirection here, or nothing.
    pub(super) fn redirection(&mut self) -> Step<Option<Redirection<'a>>> {
        let start = self.pos;
        let prefix = self.descriptor_prefix();
        let candidate = self.bytes.get(self.pos + prefix).copied();
        let possible = match candidate {
            Some(b'<' | b'>') => self.bytes.get(self.pos + prefix + 1) != Some(&b'('),
            Some(b'&') => prefix == 0 && self.peek_at(1) == Some(b'>'),
            _ => false,
        };
        if !possible || self.pos + prefix >= self.end {
            return Ok(None);
        }
        let fd = self.slice(start, start + prefix).parse().ok();
        self.pos += prefix;
        let Some((token, op)) = OPERATORS.iter().copied().find(|(token, _)| self.looking_at(token)) else {
            return Ok(None);
        };
        self.pos += token.len();
        self.skip_blanks();
        if op == RedirectOp::HereDoc {
            let here = self.heredoc_start(token == "<<-")?;
            return Ok(Some(Redirection { span: self.span_from(start), op, fd, target: None, here: Some(here) }));
        }
        let target = self.standing_word()?;
        Ok(Some(Redirection { span: self.span_from(start), op, fd, target: Some(target), here: None }))
    }

    /// How long the `3` of `3>` or the `{fd}` of `{fd}>` is.
    fn descriptor_prefix(&self) -> usize {
        let rest = self.bytes.get(self.pos..self.end).unwrap_or_default();
        match rest.first() {
            Some(b'0'..=b'9') => rest.iter().take_while(|byte| byte.is_ascii_digit()).count(),
            Some(b'{') => {
                let name = rest.iter().skip(1).take_while(|byte| is_name_byte(**byte)).count();
                if name > 0 && rest.get(name + 1) == Some(&b'}') { name + 2 } else { 0 }
            }
            _ => 0,
        }
    }

    /// Reads the delimiter; the body follows the next newline.
    fn heredoc_start(&mut self, strip_tabs: bool) -> Step<usize> {
        let start = self.pos;
        let word = self.standing_word()?;
        let raw = self.slice(start, self.pos);
        let quoted = raw.bytes().any(|byte| matches!(byte, b'\'' | b'"' | b'\\'));
        let mut delimiter = String::new();
        for part in &word.parts {
            match part {
                Part::Text { text, .. } => delimiter.push_str(text),
                _ => return self.fail(FaultKind::Unexpected, start),
            }
        }
        self.heres.push(Here::default());
        let here = self.heres.len() - 1;
        self.pending.push(Pending { here, delimiter, quoted, strip_tabs });
        Ok(here)
    }

    /// Reads the bodies of all pending heredocs; called just after a newline.
    pub(super) fn read_bodies(&mut self) -> Step<()> {
        let pending = std::mem::take(&mut self.pending);
        for body in pending {
            self.read_body(&body)?;
        }
        Ok(())
    }

    fn read_body(&mut self, body: &Pending) -> Step<()> {
        let start = self.pos;
        loop {
            let line_start = self.pos;
            if line_start >= self.end {
                return self.fail(FaultKind::Unterminated, start);
            }
            let rest = self.bytes.get(line_start..self.end).unwrap_or_default();
            let length = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
            let line = self.slice(line_start, line_start + length);
            self.pos = (line_start + length + 1).min(self.end);
            let compared = if body.strip_tabs { line.trim_start_matches('\t') } else { line };
            if compared == body.delimiter {
                return self.keep_body(body, start, line_start);
            }
        }
    }

    fn keep_body(&mut self, body: &Pending, start: usize, end: usize) -> Step<()> {
        let parts = if body.quoted {
            let raw = self.slice(start, end);
            let text = if body.strip_tabs { Cow::Owned(without_tabs(raw)) } else { Cow::Borrowed(raw) };
            vec![Part::Text { text, quoted: true }]
        } else {
            let (pos, limit) = (self.pos, self.end);
            (self.pos, self.end) = (start, end);
            let parts = self.nested(|parser| parser.quoted_run(None));
            (self.pos, self.end) = (pos, limit);
            let mut parts = parts?;
            if body.strip_tabs {
                strip_text_tabs(&mut parts);
            }
            parts
        };
        if let Some(here) = self.heres.get_mut(body.here) {
            *here = Here { parts, span: Some(Span { start, end }) };
        }
        Ok(())
    }
}

fn without_tabs(raw: &str) -> String {
    raw.split_inclusive('\n').map(|line| line.trim_start_matches('\t')).collect()
}

fn strip_text_tabs(parts: &mut [Part<'_>]) {
    for part in parts {
        if let Part::Text { text, .. } = part {
            *text = Cow::Owned(without_tabs(text));
        }
    }
}
