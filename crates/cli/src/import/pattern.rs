//! An entry while it is being made: words with wildcards, read from what other tools write and written as this gate's
//! own patterns. It knows no tool and no policy.

use countersign_model::escape_line;

/// One word; `None` stands for anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word(Vec<Option<char>>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    pub words: Vec<Word>,
    /// Any words may follow.
    pub open: bool,
}

/// What `*` is in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Star {
    /// Anything.
    Wild,
    /// The shell's: it stands for names of files, which no entry knows.
    Shell,
}

impl Word {
    pub fn literal(text: &str) -> Self {
        Self(text.chars().map(Some).collect())
    }

    /// Every `*` is a wildcard, two are two.
    pub fn glob(text: &str) -> Self {
        Self(glob(text))
    }

    /// Its text, if it has no wildcard.
    pub fn known(&self) -> Option<String> {
        self.0.iter().copied().collect()
    }

    /// Some text that it stands for.
    pub fn example(&self) -> String {
        self.0.iter().map(|c| c.map_or_else(|| "probe".to_owned(), String::from)).collect()
    }

    /// Its text before the first wildcard.
    pub fn start(&self) -> String {
        self.0.iter().map_while(|c| *c).collect()
    }

    /// Whether it fits a text when its wildcards stand for anything at all.
    pub fn may_be(&self, text: &str) -> bool {
        let text: Glob = text.chars().map(Some).collect();
        meet(&self.0, &text)
    }

    pub fn is_wild(&self) -> bool {
        self.0.contains(&None)
    }

    pub fn starts_with(&self, start: char) -> bool {
        self.0.first() == Some(&Some(start))
    }

    /// With anything after its last character.
    pub fn prefix(mut self) -> Self {
        self.0.push(None);
        self
    }

    /// As a pattern spells it: what means something there is quoted.
    fn spell(&self) -> String {
        if self.0.is_empty() {
            return "''".to_owned();
        }
        let plain = |c: char| c.is_alphanumeric() || "-_./:=,+@%^~".contains(c);
        match self.known() {
            Some(text) if text.chars().all(plain) => return text,
            Some(text) if !text.contains('\'') => return format!("'{text}'"),
            Some(text) if !text.contains('"') => return format!("\"{text}\""),
            Some(_) | None => {}
        }
        let mut out = String::new();
        for c in &self.0 {
            match c {
                None => out.push('*'),
                Some(c) if plain(*c) => out.push(*c),
                Some(c) => out.extend(['\\', *c]),
            }
        }
        out
    }
}

impl Pattern {
    pub fn program(&self) -> Option<&Word> {
        self.words.first()
    }

    /// A single word would speak for any arguments, so there is no pattern for a program without any.
    pub fn is_bare(&self) -> bool {
        self.words.len() == 1 && !self.open
    }

    pub fn spell(&self) -> String {
        let mut words: Vec<String> = self.words.iter().map(Word::spell).collect();
        if self.open {
            words.push("**".to_owned());
        }
        words.join(" ")
    }

    /// Replaces a leading `~` of the program, which no shell expands in a pattern.
    pub fn at_home(mut self, home: Option<&str>) -> Result<Self, String> {
        let Some(program) = self.words.first_mut().filter(|program| program.starts_with('~')) else { return Ok(self) };
        let home = home.filter(|home| home.starts_with('/')).map(|home| home.trim_end_matches('/'));
        match (home, program.0.get(1)) {
            (Some(home), Some(Some('/'))) => {
                program.0.splice(0..1, home.chars().map(Some));
                Ok(self)
            }
            (_, Some(Some('/'))) => Err("HOME is not set, so `~` has no meaning".to_owned()),
            _ => Err("whose home it is cannot be told; write the path out".to_owned()),
        }
    }
}

/// Splits one command into its words as a shell does. What needs a shell to be understood is refused: no entry
/// speaks for it.
pub fn words(text: &str, star: Star) -> Result<Vec<Word>, String> {
    let mut out: Vec<Word> = Vec::new();
    let mut current: Option<Word> = None;
    let mut quote: Option<char> = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if quote.is_none() && matches!(c, ' ' | '\t') {
            out.extend(current.take());
            continue;
        }
        if hidden(c) {
            return Err("it holds a control character, or one that cannot be seen".to_owned());
        }
        let first = current.is_none();
        let Word(word) = current.get_or_insert_with(|| Word(Vec::new()));
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            ('\'' | '"', None) => quote = Some(c),
            ('*', _) if star == Star::Wild => {
                if word.last() != Some(&None) {
                    word.push(None);
                }
            }
            (c, Some('\'')) => word.push(Some(c)),
            ('$' | '`', _) => return Err(format!("`{c}` is only known when it runs")),
            ('\\', _) => match chars.next() {
                Some(next) if quote.is_none() || matches!(next, '"' | '\\' | '$' | '`') => word.push(Some(next)),
                Some(next) => word.extend([Some('\\'), Some(next)]),
                None => return Err("it ends in a backslash".to_owned()),
            },
            (c, Some(_)) => word.push(Some(c)),
            (';' | '|' | '&', None) => {
                return Err(
                    "it is more than one command, and an entry speaks for one; allow each by its own".to_owned()
                );
            }
            ('<' | '>' | '(' | ')', None) => return Err(format!("no entry speaks for the shell's `{c}`")),
            ('*' | '?' | '[' | '{', None) => {
                return Err(format!("`{c}` is the shell's here: what it stands for is only known when it runs"));
            }
            ('#', None) if first => return Err("what follows `#` is a comment".to_owned()),
            (c, None) => word.push(Some(c)),
        }
    }
    if quote.is_some() {
        return Err("a quote is not closed".to_owned());
    }
    out.extend(current);
    match out.first() {
        None => Err("there is no command in it".to_owned()),
        Some(Word(program)) if program.contains(&Some('=')) => {
            Err("it sets a variable, and an entry speaks for a command's words alone".to_owned())
        }
        Some(_) => Ok(out),
    }
}

/// Whether a reader of the policy could not tell that it is there.
pub fn hidden(c: char) -> bool {
    let text = c.to_string();
    c.is_control() || escape_line(&text) != text
}

/// A text with wildcards, where spaces are characters like any other.
pub type Glob = Vec<Option<char>>;

pub fn glob(text: &str) -> Glob {
    text.chars().map(|c| (c != '*').then_some(c)).collect()
}

/// Whether some text fits both.
pub fn meet(one: &[Option<char>], other: &[Option<char>]) -> bool {
    // Most pairs part before their first wildcard.
    for (a, b) in one.iter().zip(other) {
        match (a, b) {
            (Some(a), Some(b)) if a != b => return false,
            (Some(_), Some(_)) => {}
            (None, _) | (_, None) => break,
        }
    }
    // `reach[j]`: the part of `one` seen so far and the first `j` of `other` have a text in common.
    let mut reach: Vec<bool> = Vec::with_capacity(other.len() + 1);
    reach.push(true);
    for b in other {
        reach.push(b.is_none() && reach.last() == Some(&true));
    }
    for a in one {
        let mut next: Vec<bool> = Vec::with_capacity(reach.len());
        next.push(a.is_none() && reach.first() == Some(&true));
        for ((b, pair), at) in other.iter().zip(reach.windows(2)).zip(0..) {
            let (before, above) = (pair.first() == Some(&true), pair.last() == Some(&true));
            let left = next.get(at) == Some(&true);
            next.push(match (a, b) {
                (Some(a), Some(b)) => a == b && before,
                (None, Some(_)) => above || left || before,
                (Some(_), None) => left || above || before,
                (None, None) => above || left || before,
            });
        }
        reach = next;
    }
    reach.last() == Some(&true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use countersign_model::Entry;

    fn spelt(text: &str, star: Star) -> Result<String, String> {
        words(text, star).map(|words| Pattern { words, open: false }.spell())
    }

    #[test]
    fn words_are_spelt_so_that_an_entry_reads_them_back() {
        for (text, star, expected) in [
            ("git log --oneline", Star::Shell, "git log --oneline"),
            ("npm  run 'my task'", Star::Shell, "npm run 'my task'"),
            (r#"echo "it's""#, Star::Shell, r#"echo "it's""#),
            (r"echo a\ b", Star::Shell, "echo 'a b'"),
            ("touch 'a*'", Star::Shell, "touch 'a*'"),
            ("echo ''", Star::Shell, "echo ''"),
            ("git * main", Star::Wild, "git * main"),
            ("git log --format=**", Star::Wild, "git log --format=*"),
            (r#"git commit -m "*""#, Star::Wild, "git commit -m *"),
            (r#"echo "it's"'"'"#, Star::Shell, r#"echo it\'s\""#),
            ("npm run test:unit", Star::Wild, "npm run test:unit"),
        ] {
            let pattern = spelt(text, star).unwrap();
            assert_eq!(pattern, expected, "{text}");
            assert!(Entry::parse(&pattern).is_some(), "{pattern}");
        }
    }

    #[test]
    fn what_needs_a_shell_is_refused_with_a_reason() {
        for (text, says) in [
            ("a && b", "more than one"),
            ("a | b", "more than one"),
            ("a; b", "more than one"),
            ("a &", "more than one"),
            ("a > f", "`>`"),
            ("echo $X", "`$`"),
            ("echo \"$X\"", "`$`"),
            ("echo `x`", "`"),
            ("a $(b)", "`$`"),
            ("(a)", "`(`"),
            ("ls *.rs", "`*`"),
            ("ls a?", "`?`"),
            ("ls {a,b}", "`{`"),
            ("A=1 make", "variable"),
            ("# x", "comment"),
            ("a 'b", "quote"),
            ("a \\", "backslash"),
            ("", "no command"),
            ("a\u{7}", "control"),
            ("a \u{202e}b", "seen"),
            ("a '\u{200b}'", "seen"),
        ] {
            let why = spelt(text, Star::Shell).unwrap_err();
            assert!(why.contains(says), "{text}: {why}");
        }
    }

    #[test]
    fn a_home_is_put_in_for_its_sign() {
        let of = |text: &str, home| {
            let words = words(text, Star::Wild).unwrap();
            Pattern { words, open: true }.at_home(home).map(|pattern| pattern.spell())
        };
        assert_eq!(of("~/bin/x a", Some("/home/ann/")), Ok("/home/ann/bin/x a **".to_owned()));
        assert_eq!(of("x ~/a", None), Ok("x ~/a **".to_owned()));
        assert!(of("~/bin/x", None).is_err() && of("~/bin/x", Some("rel")).is_err());
        assert!(of("~bob/x", Some("/home/ann")).is_err() && of("~", Some("/home/ann")).is_err());
    }

    #[test]
    fn globs_meet_where_a_text_fits_both() {
        for (one, other, expected) in [
            ("git push", "git push", true),
            ("git *", "git push *", true),
            ("git *", "npm *", false),
            ("git log*", "git push*", false),
            ("* --force", "git push *", true),
            ("* --force", "git push", false),
            ("*", "", true),
            ("a*b", "*c", false),
            ("a*b", "*b*", true),
            ("npm run test", "npm run *", true),
            ("npm run", "npm run *", false),
            ("", "a", false),
        ] {
            assert_eq!(meet(&glob(one), &glob(other)), expected, "{one} and {other}");
            assert_eq!(meet(&glob(other), &glob(one)), expected, "{other} and {one}");
        }
    }
}
