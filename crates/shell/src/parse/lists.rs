//! Lists, pipelines and what starts a command.

use super::*;

const CLOSERS: &[&str] = &["then", "else", "elif", "fi", "do", "done", "esac", "}"];

fn ends_compound(item: &Item<'_>) -> bool {
    let last = item.chain.last().and_then(|pipeline| pipeline.stages.last());
    last.is_some_and(|command| !matches!(command.kind, Kind::Simple(_)))
}

impl<'a> Parser<'a> {
    /// Reads a list up to the end, a `)`, or one of the reserved words given (left unread).
    pub(super) fn list(&mut self, until: &[&str]) -> Step<List<'a>> {
        let mut list = List::default();
        self.list_into(&mut list, until)?;
        Ok(list)
    }

    /// As [`Self::list`], keeping what was read when it stops.
    pub(super) fn list_into(&mut self, list: &mut List<'a>, until: &[&str]) -> Step<()> {
        loop {
            self.skip_lines()?;
            match self.peek() {
                None | Some(b')') => return Ok(()),
                // `;;`, `;&` and `;;&` end a case arm.
                Some(b';') if until.contains(&"esac") && matches!(self.peek_at(1), Some(b';' | b'&')) => {
                    return Ok(());
                }
                Some(b'&') if self.peek_at(1) == Some(b'>') => {}
                Some(b';' | b'&' | b'|') => return self.fail(FaultKind::Unexpected, self.pos),
                _ => {}
            }
            if !until.is_empty() && self.keyword().is_some_and(|word| until.contains(&word)) {
                return Ok(());
            }
            let mut item = Item { chain: Vec::new(), background: None };
            let outcome = self.item(&mut item);
            if !item.chain.is_empty() {
                list.items.push(item);
            }
            if !outcome? {
                return Ok(());
            }
        }
    }

    /// Reads one `&&`/`||` chain with its terminator; answers whether another item may follow.
    fn item(&mut self, item: &mut Item<'a>) -> Step<bool> {
        loop {
            let mut pipeline = Pipeline { stages: Vec::new() };
            let outcome = self.pipeline(&mut pipeline);
            if !pipeline.stages.is_empty() {
                item.chain.push(pipeline);
            }
            outcome?;
            self.skip_blanks();
            if self.looking_at("&&") || self.looking_at("||") {
                self.pos += 2;
                self.skip_lines()?;
                continue;
            }
            return match self.peek() {
                Some(b'&') => {
                    item.background = Some(Span { start: self.pos, end: self.pos + 1 });
                    self.pos += 1;
                    Ok(true)
                }
                Some(b';') if matches!(self.peek_at(1), Some(b';' | b'&')) => Ok(true),
                Some(b';') => {
                    self.pos += 1;
                    Ok(true)
                }
                Some(b'\n' | b'#') => Ok(true),
                None | Some(b')') => Ok(false),
                // After `done`, `}` or `)` a closing word needs no separator: `{ (ls) }`.
                Some(_) if ends_compound(item) && self.keyword().is_some_and(|word| CLOSERS.contains(&word)) => {
                    Ok(true)
                }
                Some(_) => self.fail(FaultKind::Unexpected, self.pos),
            };
        }
    }

    fn pipeline(&mut self, pipeline: &mut Pipeline<'a>) -> Step<()> {
        self.pipeline_prefix()?;
        loop {
            let (stage, outcome) = self.command()?;
            let mut stage = stage;
            self.skip_blanks();
            let both = self.looking_at("|&");
            let pipe = both || (self.peek() == Some(b'|') && self.peek_at(1) != Some(b'|'));
            if both {
                let span = Span { start: self.pos, end: self.pos + 2 };
                stage.redirects.push(Redirection {
                    span,
                    op: RedirectOp::DuplicateOut,
                    fd: Some(2),
                    target: None,
                    here: None,
                });
            }
            pipeline.stages.push(stage);
            outcome?;
            if !pipe {
                return Ok(());
            }
            self.pos += if both { 2 } else { 1 };
            self.skip_lines()?;
            // Bash takes `!` at the start of a pipeline only; what follows is still looked at.
            while self.keyword() == Some("!") {
                self.note(FaultKind::Unexpected, self.pos);
                self.pos += 1;
                self.skip_blanks();
            }
        }
    }

    /// `!` and `time` with its options. A `time` with nothing after it is a command of its own: nothing.
    fn pipeline_prefix(&mut self) -> Step<()> {
        loop {
            self.skip_blanks();
            match self.keyword() {
                Some("!") => self.pos += 1,
                Some("time") => {
                    self.pos += 4;
                    self.skip_blanks();
                    for option in ["-p", "--"] {
                        if self.raw_word() == option {
                            self.pos += option.len();
                            self.skip_blanks();
                        }
                    }
                }
                _ => return Ok(()),
            }
        }
    }

    /// The unquoted run of characters here, whatever it is.
    pub(super) fn raw_word(&self) -> &'a str {
        let mut end = self.pos;
        while end < self.end && self.bytes.get(end).is_some_and(|byte| !is_meta(*byte)) {
            end += 1;
        }
        self.slice(self.pos, end)
    }

    /// The reserved word here, if it is one.
    pub(super) fn keyword(&self) -> Option<&'a str> {
        let first = self.peek()?;
        if !matches!(first, b'a'..=b'z' | b'!' | b'{' | b'}' | b'[') {
            return None;
        }
        let word = self.raw_word();
        matches!(
            word,
            "if" | "then"
                | "else"
                | "elif"
                | "fi"
                | "do"
                | "done"
                | "case"
                | "esac"
                | "while"
                | "until"
                | "for"
                | "select"
                | "in"
                | "function"
                | "time"
                | "coproc"
                | "{"
                | "}"
                | "!"
                | "[["
        )
        .then_some(word)
    }

    pub(super) fn expect_keyword(&mut self, word: &str) -> Step<()> {
        self.skip_lines()?;
        if self.keyword() == Some(word) {
            self.pos += word.len();
            Ok(())
        } else {
            let kind = if self.pos >= self.end { FaultKind::Unterminated } else { FaultKind::Unexpected };
            self.fail(kind, self.pos)
        }
    }

    pub(super) fn expect_byte(&mut self, byte: u8) -> Step<()> {
        if self.peek() == Some(byte) {
            self.pos += 1;
            Ok(())
        } else {
            let kind = if self.pos >= self.end { FaultKind::Unterminated } else { FaultKind::Unexpected };
            self.fail(kind, self.pos)
        }
    }
}
