//! Compound commands: groups, loops, conditionals, functions, arithmetic and `[[ … ]]`.

use super::*;

impl<'a> Parser<'a> {
    /// Reads one command with its redirections. What was read comes back even when reading stops inside it.
    pub(super) fn command(&mut self) -> Step<(Command<'a>, Step<()>)> {
        self.skip_blanks();
        let start = self.pos;
        let mut redirects = Vec::new();
        let (kind, outcome) = self.kind(&mut redirects)?;
        let compound = !matches!(kind, Kind::Simple(_));
        let outcome = match outcome {
            Ok(()) if compound => self.trailing_redirects(&mut redirects),
            other => other,
        };
        let command = Command { kind, redirects, span: self.span_from(start) };
        Ok((command, outcome))
    }

    fn trailing_redirects(&mut self, redirects: &mut Vec<Redirection<'a>>) -> Step<()> {
        loop {
            self.skip_blanks();
            match self.redirection()? {
                Some(redirect) => redirects.push(redirect),
                None => return Ok(()),
            }
        }
    }

    fn kind(&mut self, redirects: &mut Vec<Redirection<'a>>) -> Step<(Kind<'a>, Step<()>)> {
        if self.peek() == Some(b'(') {
            return self.nested(|parser| Ok(parser.parenthesis()));
        }
        let Some(word) = self.keyword() else {
            return self.simple(redirects);
        };
        match word {
            "then" | "else" | "elif" | "fi" | "do" | "done" | "esac" | "in" | "}" | "!" | "time" => {
                // Reserved words where a command must stand; `time` and `!` alone end up here too.
                if matches!(word, "in" | "time" | "!") {
                    return self.simple(redirects);
                }
                self.fail(FaultKind::Unexpected, self.pos)
            }
            _ => self.nested(|parser| Ok(parser.compound(word))),
        }
    }

    fn compound(&mut self, word: &'a str) -> (Kind<'a>, Step<()>) {
        let start = self.pos;
        self.pos += word.len();
        match word {
            "{" => self.partial_list(Kind::Group, |parser| parser.expect_keyword("}")),
            "if" => self.conditional(),
            "while" | "until" => self.looping(),
            "for" | "select" => self.for_loop(),
            "case" => self.case(),
            "[[" => self.condition(),
            "function" => self.function_keyword(),
            "coproc" => self.coprocess(),
            _ => {
                let outcome = self.fail(FaultKind::Unexpected, start);
                (Kind::Simple(SimpleNode::default()), outcome)
            }
        }
    }

    /// A list whose content is kept when its end is missing.
    fn partial_list(
        &mut self,
        wrap: impl FnOnce(List<'a>) -> Kind<'a>,
        finish: impl FnOnce(&mut Self) -> Step<()>,
    ) -> (Kind<'a>, Step<()>) {
        let mut list = List::default();
        let mut outcome = self.list_into(&mut list, &["}"]);
        if outcome.is_ok() && list.items.is_empty() {
            outcome = self.fail(FaultKind::Unexpected, self.pos);
        }
        let outcome = outcome.and_then(|()| finish(self));
        (wrap(list), outcome)
    }

    fn parenthesis(&mut self) -> (Kind<'a>, Step<()>) {
        if self.peek_at(1) == Some(b'(') {
            let start = self.pos;
            self.pos += 2;
            if let Some(parts) = self.try_arithmetic() {
                return (Kind::Arithmetic(parts), Ok(()));
            }
            self.pos = start;
        }
        self.pos += 1;
        let mut list = List::default();
        let mut outcome = self.list_into(&mut list, &[]);
        if outcome.is_ok() && list.items.is_empty() {
            outcome = self.fail(FaultKind::Unexpected, self.pos);
        }
        let outcome = outcome.and_then(|()| self.expect_byte(b')'));
        (Kind::Subshell(list), outcome)
    }

    fn conditional(&mut self) -> (Kind<'a>, Step<()>) {
        let mut branches = Vec::new();
        let mut otherwise = None;
        let outcome = self.branches(&mut branches, &mut otherwise);
        (Kind::If { branches, otherwise }, outcome)
    }

    fn branches(&mut self, branches: &mut Vec<(List<'a>, List<'a>)>, otherwise: &mut Option<List<'a>>) -> Step<()> {
        loop {
            let (mut condition, mut body) = (List::default(), List::default());
            let outcome = self
                .list_into(&mut condition, &["then"])
                .and_then(|()| self.expect_keyword("then"))
                .and_then(|()| self.list_into(&mut body, &["elif", "else", "fi"]));
            branches.push((condition, body));
            outcome?;
            match self.keyword() {
                Some("elif") => self.pos += 4,
                Some("else") => {
                    self.pos += 4;
                    let list = otherwise.insert(List::default());
                    self.list_into(list, &["fi"])?;
                    return self.expect_keyword("fi");
                }
                _ => return self.expect_keyword("fi"),
            }
        }
    }

    fn looping(&mut self) -> (Kind<'a>, Step<()>) {
        let (mut condition, mut body) = (List::default(), List::default());
        let outcome = self.list_into(&mut condition, &["do"]).and_then(|()| self.do_body(&mut body));
        (Kind::Loop { condition, body }, outcome)
    }

    fn do_body(&mut self, body: &mut List<'a>) -> Step<()> {
        self.skip_blanks();
        if self.peek() == Some(b';') {
            self.pos += 1;
        }
        self.skip_lines()?;
        if self.keyword() == Some("{") {
            self.pos += 1;
            self.list_into(body, &["}"])?;
            return self.expect_keyword("}");
        }
        self.expect_keyword("do")?;
        self.list_into(body, &["done"])?;
        self.expect_keyword("done")
    }

    fn for_loop(&mut self) -> (Kind<'a>, Step<()>) {
        self.skip_blanks();
        let mut body = List::default();
        if self.looking_at("((") {
            self.pos += 2;
            let header = self.try_arithmetic();
            let outcome = match &header {
                Some(parts) if semicolons(parts) != 2 => self.fail(FaultKind::Unexpected, self.pos),
                Some(_) => self.do_body(&mut body),
                None => self.fail(FaultKind::Unterminated, self.pos),
            };
            return (Kind::CountedFor { header: header.unwrap_or_default(), body }, outcome);
        }
        let name = self.raw_word();
        self.pos += name.len();
        let mut words = None;
        let mut outcome = if name.bytes().all(is_name_byte) && !name.is_empty() {
            self.for_words(&mut words)
        } else {
            self.fail(FaultKind::Unexpected, self.pos)
        };
        if outcome.is_ok() {
            outcome = self.do_body(&mut body);
        }
        (Kind::For { name, words, body }, outcome)
    }

    fn for_words(&mut self, words: &mut Option<Vec<Node<'a>>>) -> Step<()> {
        self.skip_lines()?;
        if self.keyword() != Some("in") {
            return Ok(());
        }
        self.pos += 2;
        let list = words.insert(Vec::new());
        loop {
            self.skip_blanks();
            match self.peek() {
                Some(b';' | b'\n') | None => return Ok(()),
                Some(b'#') => {
                    self.comment();
                    continue;
                }
                Some(b'<' | b'>') if self.peek_at(1) == Some(b'(') => {}
                Some(byte) if is_meta(byte) => return self.fail(FaultKind::Unexpected, self.pos),
                _ => {}
            }
            let word = self.word()?;
            list.push(word);
        }
    }

    fn case(&mut self) -> (Kind<'a>, Step<()>) {
        self.skip_blanks();
        let mut arms = Vec::new();
        let subject = match self.standing_word() {
            Ok(word) => word,
            Err(stop) => {
                let empty = Node { span: self.span_from(self.pos), parts: Vec::new() };
                return (Kind::Case { subject: empty, arms }, Err(stop));
            }
        };
        let outcome = self.expect_keyword("in").and_then(|()| self.arms(&mut arms));
        (Kind::Case { subject, arms }, outcome)
    }

    fn arms(&mut self, arms: &mut Vec<(Vec<Node<'a>>, List<'a>)>) -> Step<()> {
        loop {
            self.skip_lines()?;
            if self.keyword() == Some("esac") {
                self.pos += 4;
                return Ok(());
            }
            if self.peek() == Some(b'(') {
                self.pos += 1;
            }
            let mut patterns = Vec::new();
            loop {
                self.skip_blanks();
                patterns.push(self.standing_word()?);
                self.skip_blanks();
                if self.peek() != Some(b'|') {
                    break;
                }
                self.pos += 1;
            }
            self.expect_byte(b')')?;
            let mut body = List::default();
            let outcome = self.list_into(&mut body, &["esac"]);
            arms.push((patterns, body));
            outcome?;
            self.skip_blanks();
            for terminator in [";;&", ";;", ";&"] {
                if self.looking_at(terminator) {
                    self.pos += terminator.len();
                    break;
                }
            }
        }
    }

    /// `[[ … ]]`: operators are words here, and a regular expression may hold parentheses and bars.
    fn condition(&mut self) -> (Kind<'a>, Step<()>) {
        let mut words = Vec::new();
        let outer = std::mem::replace(&mut self.patterns, true);
        let outcome = self.condition_words(&mut words);
        self.patterns = outer;
        (Kind::Condition(words), outcome)
    }

    fn condition_words(&mut self, words: &mut Vec<Node<'a>>) -> Step<()> {
        let mut regex = false;
        loop {
            self.skip_lines()?;
            let start = self.pos;
            match self.peek() {
                None => return self.fail(FaultKind::Unterminated, start),
                Some(b']') if self.raw_word() == "]]" => {
                    self.pos += 2;
                    return Ok(());
                }
                Some(b'(' | b')') if !regex => self.pos += 1,
                Some(b'<' | b'>') if self.peek_at(1) != Some(b'(') => self.pos += 1,
                Some(b'&' | b'|') if !regex => self.pos += 2,
                Some(b';' | b'&') => return self.fail(FaultKind::Unexpected, start),
                _ => {
                    let word = if regex { self.regex_word()? } else { self.word()? };
                    regex = self.slice(start, self.pos) == "=~";
                    words.push(word);
                    continue;
                }
            }
            let text = self.slice(start, self.pos).into();
            let parts = vec![Part::Text { text, quoted: true }];
            words.push(Node { span: self.span_from(start), parts });
        }
    }

    fn function_keyword(&mut self) -> (Kind<'a>, Step<()>) {
        self.skip_blanks();
        let name = self.standing_word();
        self.skip_blanks();
        if self.looking_at("()") {
            self.pos += 2;
        }
        match name {
            Ok(name) => self.function_body(name),
            Err(stop) => (Kind::Simple(SimpleNode::default()), Err(stop)),
        }
    }

    /// Reads a function's body; its name and parentheses are read.
    pub(super) fn function_body(&mut self, name: Node<'a>) -> (Kind<'a>, Step<()>) {
        let read = self.skip_lines().and_then(|()| self.nested(Self::command));
        match read {
            Ok((command, outcome)) => (Kind::Function { name, body: Box::new(command) }, outcome),
            Err(stop) => {
                let node = SimpleNode { words: vec![name], ..SimpleNode::default() };
                (Kind::Simple(node), Err(stop))
            }
        }
    }

    /// `coproc [NAME] command`: the name only before a compound command.
    fn coprocess(&mut self) -> (Kind<'a>, Step<()>) {
        self.skip_blanks();
        let start = self.pos;
        if self.keyword().is_none() && self.peek() != Some(b'(') {
            let name = self.raw_word();
            self.pos += name.len();
            self.skip_blanks();
            let compound = self.peek() == Some(b'(') || self.keyword().is_some();
            if !compound || !name.bytes().all(is_name_byte) {
                self.pos = start;
            }
        }
        match self.nested(Self::command) {
            Ok((command, outcome)) => (Kind::Coprocess(Box::new(command)), outcome),
            Err(stop) => (Kind::Simple(SimpleNode::default()), Err(stop)),
        }
    }
}

/// Semicolons of a counted loop's header: bash wants three parts.
fn semicolons(parts: &[Part<'_>]) -> usize {
    let texts = parts.iter().map(|part| if let Part::Text { text, .. } = part { text.matches(';').count() } else { 0 });
    texts.sum()
}
