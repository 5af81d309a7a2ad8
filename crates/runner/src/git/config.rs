//! Reads git's configuration format: sections, subsections, quotes, comments, lines that go on. Says nothing about
//! what a setting means.

use std::iter::Peekable;
use std::str::Chars;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// In lower case, as names are compared.
    pub section: String,
    /// Exactly as written.
    pub subsection: Option<String>,
    /// In lower case.
    pub key: String,
    /// `true` for a name alone.
    pub value: String,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Config {
    pub entries: Vec<Entry>,
    /// The line after which nothing was understood.
    pub broken_at: Option<usize>,
}

impl Entry {
    pub fn name(&self) -> String {
        match &self.subsection {
            Some(sub) => format!("{}.{sub}.{}", self.section, self.key),
            None => format!("{}.{}", self.section, self.key),
        }
    }

    pub fn is_include(&self) -> bool {
        matches!(self.section.as_str(), "include" | "includeif") && self.key == "path"
    }
}

pub(super) fn parse(text: &str) -> Config {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader = Reader { rest: text.chars().peekable(), line: 1 };
    let mut config = Config::default();
    let mut section: Option<(String, Option<String>)> = None;
    loop {
        reader.skip_space();
        let read = match reader.rest.peek() {
            None => return config,
            Some('#' | ';') => {
                reader.skip_line();
                Some(())
            }
            Some('[') => reader.section().map(|found| section = Some(found)),
            Some(_) => reader.setting().zip(section.clone()).map(|((key, value), (section, subsection))| {
                config.entries.push(Entry { section, subsection, key, value });
            }),
        };
        if read.is_none() {
            config.broken_at = Some(reader.line);
            return config;
        }
    }
}

struct Reader<'t> {
    rest: Peekable<Chars<'t>>,
    line: usize,
}

impl Reader<'_> {
    /// The next character; a carriage return before a line's end is part of it.
    fn next(&mut self) -> Option<char> {
        let mut next = self.rest.next()?;
        if next == '\r' && self.rest.peek() == Some(&'\n') {
            self.rest.next();
            next = '\n';
        }
        if next == '\n' {
            self.line += 1;
        }
        Some(next)
    }

    fn skip_space(&mut self) {
        while self.rest.peek().is_some_and(|c| c.is_ascii_whitespace()) {
            self.next();
        }
    }

    fn skip_line(&mut self) {
        while self.next().is_some_and(|c| c != '\n') {}
    }

    /// `[section]`, `[section "Subsection"]`, or the old `[section.subsection]`.
    fn section(&mut self) -> Option<(String, Option<String>)> {
        self.next();
        let mut name = String::new();
        loop {
            match self.next()? {
                ']' => {
                    let (section, sub) = name.split_once('.').map_or((name.as_str(), None), |(s, sub)| (s, Some(sub)));
                    return Some((section.to_owned(), sub.map(str::to_owned)));
                }
                ' ' | '\t' => break,
                c if c.is_ascii_alphanumeric() || c == '-' || c == '.' => name.push(c.to_ascii_lowercase()),
                _ => return None,
            }
        }
        while self.rest.next_if(|c| matches!(c, ' ' | '\t')).is_some() {}
        if self.next()? != '"' {
            return None;
        }
        let mut sub = String::new();
        loop {
            match self.next()? {
                '"' => break,
                '\n' => return None,
                '\\' => sub.push(self.next().filter(|c| *c != '\n')?),
                c => sub.push(c),
            }
        }
        (self.next()? == ']').then_some((name, Some(sub)))
    }

    fn setting(&mut self) -> Option<(String, String)> {
        let mut key = String::new();
        while let Some(c) = self.rest.next_if(|c| c.is_ascii_alphanumeric() || *c == '-') {
            key.push(c.to_ascii_lowercase());
        }
        if !key.starts_with(|c: char| c.is_ascii_alphabetic()) {
            return None;
        }
        while self.rest.next_if(|c| matches!(c, ' ' | '\t')).is_some() {}
        match self.next() {
            None | Some('\n') => Some((key, "true".to_owned())),
            Some('=') => Some((key, self.value()?)),
            // A comment after a name alone.
            Some('#' | ';') => {
                self.skip_line();
                Some((key, "true".to_owned()))
            }
            Some(_) => None,
        }
    }

    fn value(&mut self) -> Option<String> {
        let (mut value, mut quoted, mut spaces) = (String::new(), false, String::new());
        loop {
            let c = match self.next() {
                None | Some('\n') if quoted => return None,
                None | Some('\n') => return Some(value),
                Some('#' | ';') if !quoted => {
                    self.skip_line();
                    return Some(value);
                }
                Some(c) if c.is_ascii_whitespace() && !quoted => {
                    // Kept only between words.
                    if !value.is_empty() {
                        spaces.push(c);
                    }
                    continue;
                }
                Some('"') => {
                    quoted = !quoted;
                    continue;
                }
                Some('\\') => match self.next()? {
                    '\n' => continue,
                    't' => '\t',
                    'b' => '\u{8}',
                    'n' => '\n',
                    c @ ('\\' | '"') => c,
                    _ => return None,
                },
                Some(c) => c,
            };
            value.push_str(&spaces);
            spaces.clear();
            value.push(c);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(String, String)> {
        let config = parse(text);
        assert_eq!(config.broken_at, None, "{text}");
        config.entries.into_iter().map(|entry| (entry.name(), entry.value)).collect()
    }

    #[test]
    fn every_spelling_is_read() {
        for (text, name, value) in [
            ("[core]\n\tpager = less -R\n", "core.pager", "less -R"),
            ("[CORE]PAGER=x", "core.pager", "x"),
            ("[core] pager = x ; why", "core.pager", "x"),
            ("[core] pager = \"x ; y\" # why", "core.pager", "x ; y"),
            ("[core]\r\npager = x\r\n", "core.pager", "x"),
            ("[core]\npager = a\\\n  b", "core.pager", "a  b"),
            ("[core]\npager = a \\\"b\\\" \\\\ \\t.", "core.pager", "a \"b\" \\ \t."),
            ("[core]\nfsmonitor", "core.fsmonitor", "true"),
            ("[core]\nfsmonitor # on", "core.fsmonitor", "true"),
            ("[core]\nfsmonitor =", "core.fsmonitor", ""),
            ("[diff \"Odd \\\"] name\"]\ntextconv=x", "diff.Odd \"] name.textconv", "x"),
            ("[diff.Old]\ntextconv=x", "diff.old.textconv", "x"),
            ("\u{feff}# c\n; d\n[a]\nb=c", "a.b", "c"),
            ("[a]\nb = \"  c  \"  ", "a.b", "  c  "),
        ] {
            assert_eq!(read(text), [(name.to_owned(), value.to_owned())], "{text}");
        }
    }

    #[test]
    fn what_is_broken_is_said_with_its_line() {
        for text in ["[core\nx=1", "x = 1", "[a]\n1x=2", "[a]\nx = \"open", "[a]\nx = \\q", "[a \"b]\nx=1", "[a]\n=x"] {
            assert!(parse(text).broken_at.is_some(), "{text}");
        }
        let config = parse("[a]\nb = 1\n!!\n");
        assert_eq!((config.entries.len(), config.broken_at), (1, Some(3)));
    }
}
