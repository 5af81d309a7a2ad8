//! Simple commands: assignments, words and redirections in any order; and `name() …`, which begins like one.

use super::*;

const DECLARATIONS: &[&str] = &["declare", "typeset", "local", "export", "readonly", "eval", "let", "alias"];

impl<'a> Parser<'a> {
    pub(super) fn simple(&mut self, redirects: &mut Vec<Redirection<'a>>) -> Step<(Kind<'a>, Step<()>)> {
        let mut node = SimpleNode::default();
        let start = self.pos;
        let outcome = self.simple_words(&mut node, redirects);
        if let Ok(true) = outcome
            && let Some(name) = node.words.pop()
        {
            return Ok(self.function_body(name));
        }
        let nothing = node.assigns.is_empty() && node.words.is_empty() && redirects.is_empty();
        let outcome = match outcome {
            Ok(_) if nothing => self.fail(FaultKind::Unexpected, start),
            Ok(_) => Ok(()),
            Err(stop) => Err(stop),
        };
        Ok((Kind::Simple(node), outcome))
    }

    /// Reads up to the end of the command; answers whether it turned out to be the head of a function.
    fn simple_words(&mut self, node: &mut SimpleNode<'a>, redirects: &mut Vec<Redirection<'a>>) -> Step<bool> {
        let mut declaring = false;
        loop {
            self.skip_blanks();
            if let Some(redirect) = self.redirection()? {
                redirects.push(redirect);
                continue;
            }
            match self.peek() {
                None => return Ok(false),
                Some(b'#') => return Ok(false),
                Some(b'(') => {
                    let head = node.words.len() == 1 && node.assigns.is_empty() && self.empty_parentheses();
                    return if head { Ok(true) } else { self.fail(FaultKind::Unexpected, self.pos) };
                }
                Some(b'<' | b'>') if self.peek_at(1) == Some(b'(') => {}
                Some(byte) if is_meta(byte) => return Ok(false),
                _ => {}
            }
            if node.words.is_empty() {
                if let Some(assign) = self.assignment(false)? {
                    node.assigns.push(assign);
                    continue;
                }
                declaring = DECLARATIONS.contains(&self.raw_word());
            } else if declaring && let Some(assign) = self.assignment(true)? {
                node.arrays.push(assign);
                continue;
            }
            if declaring {
                self.odd_subscript()?;
            }
            let word = self.word()?;
            node.words.push(word);
        }
    }

    /// Operands of `declare` and its kin may be assignments, so that bash reads their subscripts to the `]`.
    fn odd_subscript(&mut self) -> Step<()> {
        let start = self.pos;
        if !self.peek().is_some_and(is_name_start) {
            return Ok(());
        }
        while self.peek().is_some_and(is_name_byte) {
            self.pos += 1;
        }
        let at = self.pos;
        if self.peek() == Some(b'[') {
            if self.try_subscript().is_none() {
                return self.fail(FaultKind::Unterminated, at);
            }
            if self.slice(at, self.pos).bytes().any(is_meta) {
                self.note(FaultKind::Unexpected, at);
            }
        }
        self.pos = start;
        Ok(())
    }

    fn empty_parentheses(&mut self) -> bool {
        let start = self.pos;
        self.pos += 1;
        self.skip_blanks();
        if self.peek() == Some(b')') {
            self.pos += 1;
            return true;
        }
        self.pos = start;
        false
    }

    /// `NAME=…`, `NAME+=…`, `NAME[…]=…` here, or nothing. With `arrays_only`, plain values are left to be words.
    fn assignment(&mut self, arrays_only: bool) -> Step<Option<Assign<'a>>> {
        let start = self.pos;
        if !self.peek().is_some_and(is_name_start) {
            return Ok(None);
        }
        let mut at = start;
        while at < self.end && self.bytes.get(at).copied().is_some_and(is_name_byte) {
            at += 1;
        }
        let name = self.slice(start, at);
        self.pos = at;
        let subscript = if self.peek() == Some(b'[') && !arrays_only {
            // Where an assignment may stand, bash reads to the `]` whatever comes: blanks, operators, line breaks.
            let Some(parts) = self.try_subscript() else { return self.fail(FaultKind::Unterminated, at) };
            Some(parts)
        } else {
            None
        };
        let append = self.peek() == Some(b'+');
        if append {
            self.pos += 1;
        }
        let array = self.peek_at(1) == Some(b'(');
        if self.peek() != Some(b'=') || (arrays_only && !array) {
            if subscript.is_some() && self.slice(at, self.pos).bytes().any(is_meta) {
                self.note(FaultKind::Unexpected, at);
            }
            self.pos = start;
            return Ok(None);
        }
        self.pos += 1;
        let value = if array && subscript.is_none() { self.array()? } else { AssignValue::Word(self.assigned()?) };
        Ok(Some(Assign { span: self.span_from(start), name, subscript, append, value }))
    }

    /// The value after `=`: perhaps nothing.
    fn assigned(&mut self) -> Step<Node<'a>> {
        match self.peek() {
            Some(b'<' | b'>') if self.peek_at(1) == Some(b'(') => self.word(),
            Some(byte) if !is_meta(byte) => self.word(),
            _ => Ok(Node { span: self.span_from(self.pos), parts: Vec::new() }),
        }
    }

    fn array(&mut self) -> Step<AssignValue<'a>> {
        self.pos += 1;
        let mut words = Vec::new();
        loop {
            self.skip_lines()?;
            match self.peek() {
                Some(b')') => {
                    self.pos += 1;
                    // `z=(a)b` is no array to bash, but text.
                    if self.peek().is_some_and(|byte| !is_meta(byte) && !byte.is_ascii_whitespace()) {
                        return self.fail(FaultKind::Unexpected, self.pos);
                    }
                    return Ok(AssignValue::Array(words));
                }
                None => return self.fail(FaultKind::Unterminated, self.pos),
                Some(b'<' | b'>') if self.peek_at(1) == Some(b'(') => {}
                Some(byte) if is_meta(byte) => return self.fail(FaultKind::Unexpected, self.pos),
                _ => {}
            }
            words.push(self.element()?);
        }
    }

    /// Here a word that begins with `[` goes on to its `]`, blanks and all.
    fn element(&mut self) -> Step<Element<'a>> {
        let start = self.pos;
        if self.peek() != Some(b'[') {
            return Ok(Element { subscript: None, value: self.word()? });
        }
        let Some(subscript) = self.try_subscript() else { return self.fail(FaultKind::Unterminated, start) };
        let append = usize::from(self.peek() == Some(b'+'));
        if self.peek_at(append) == Some(b'=') {
            self.pos += append + 1;
            return Ok(Element { subscript: Some(subscript), value: self.assigned()? });
        }
        let mut parts = vec![Part::Text { text: "[".into(), quoted: true }];
        parts.extend(subscript.into_iter().map(|part| match part {
            Part::Text { text, .. } => Part::Text { text, quoted: true },
            other => other,
        }));
        parts.push(Part::Text { text: "]".into(), quoted: true });
        if self.peek().is_some_and(|byte| !is_meta(byte)) {
            parts.extend(self.word()?.parts);
        }
        Ok(Element { subscript: None, value: Node { span: self.span_from(start), parts } })
    }
}
