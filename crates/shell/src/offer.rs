//! Which allowlist entries to offer for a command: the narrowest that cover it, or none and why.

use serde::{Deserialize, Serialize};

use crate::assess::{Options, Part, assess};
use crate::entry::{self, Entry, Token};
use crate::reason::Risk;
use crate::unwrap;
use crate::word::Word;

/// Nobody reads a longer list before saying "always".
const MAX_ENTRIES: usize = 8;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Offer {
    /// Patterns that together cover exactly this, with what a wider one would let in.
    Entries {
        patterns: Vec<String>,
        wider_refused: String,
    },
    Refused(String),
}

/// `commands`: the words of each with what covering knows of it. `allow_safe`: what is safe needs no entry.
pub(crate) fn narrowest<'w, W: IntoIterator<Item = Token<'w>>>(
    commands: impl Iterator<Item = (W, Part)>,
    risk: Risk,
    coverable: bool,
    allow_safe: bool,
) -> Offer {
    match risk {
        Risk::Safe if allow_safe => return refuse("it is safe and needs no entry"),
        Risk::Dangerous => return refuse("dangerous commands are decided each time"),
        Risk::Safe | Risk::NeedsReview => {}
    }
    if !coverable {
        return refuse("it holds a construct that no entry covers");
    }
    let (mut patterns, mut wider_refused) = (Vec::new(), String::new());
    for (words, part) in commands {
        let needs_none = part.risk.is_none() && (allow_safe || part.role.bare || part.role.transparent);
        if needs_none {
            continue;
        }
        let words = match argv(words, part) {
            Ok(words) => words,
            Err(why) => return refuse(why),
        };
        let pattern = entry::render(&words);
        if patterns.is_empty() {
            let program = words.first().copied().unwrap_or_default();
            wider_refused = format!("`{program} **` would allow everything else `{program}` can do too");
        }
        if !patterns.contains(&pattern) {
            patterns.push(pattern);
        }
        if patterns.len() > MAX_ENTRIES {
            return refuse("too many of its commands would need an entry of their own");
        }
    }
    if patterns.is_empty() {
        refuse("there is no command to make an entry for")
    } else {
        Offer::Entries { patterns, wider_refused }
    }
}

impl Entry {
    /// A prefix that a person may be given: one plain command, and no program whose arguments could be anything to run.
    pub fn offered_prefix(text: &str) -> Result<Self, String> {
        let assessment = assess(text, &Options::default());
        let words: Vec<&str> = text.split([' ', '\t']).filter(|word| !word.is_empty()).collect();
        let [command] = assessment.commands.as_slice() else { return Err("a prefix is one plain command".to_owned()) };
        let same = command.argv.iter().map(Word::known).eq(words.iter().map(|word| Some(*word)));
        if !same || !command.via.is_empty() {
            return Err("a prefix is plain words, without quotes, variables or anything around them".to_owned());
        }
        match assessment.record().offer(assessment.risk, false) {
            Offer::Entries { .. } => Self::prefix(text).ok_or_else(|| "the prefix is empty".to_owned()),
            Offer::Refused(why) => Err(why),
        }
    }
}

fn argv<'w>(words: impl IntoIterator<Item = Token<'w>>, part: Part) -> Result<Vec<&'w str>, &'static str> {
    if part.exact_only || part.role.carrier || part.role.carried_by.is_some() {
        return Err("it runs another command or inline code");
    }
    let mut argv = Vec::new();
    for word in words {
        match word {
            Token::Known(text) => argv.push(text),
            Token::Glob(_) | Token::Dynamic if argv.is_empty() => return Err("its program is only known when it runs"),
            Token::Glob(_) | Token::Dynamic => return Err("some of its words are only known when it runs"),
        }
    }
    let Some(program) = argv.first() else { return Err("it sets variables for what follows") };
    if unwrap::is_shell(program) || unwrap::is_wrapper(program) || unwrap::is_interpreter(program) {
        return Err("an entry for a shell, an interpreter or a wrapper would allow anything");
    }
    Ok(argv)
}

fn refuse(why: &str) -> Offer {
    Offer::Refused(why.to_owned())
}

#[cfg(test)]
mod tests {
    use super::Offer;
    use crate::{Options, assess};

    #[test]
    fn each_command_that_asks_gets_its_own_entry() {
        let offer = assess("npm ci && ls && npm test && npm ci", &Options::default()).offer;
        let Offer::Entries { patterns, .. } = offer else { panic!("{offer:?}") };
        assert_eq!(patterns, ["npm ci", "npm test"]);
    }

    #[test]
    fn a_tool_that_could_be_told_to_run_things_and_is_not_gets_one() {
        for text in ["make all", "docker build -t x .", "uv sync", "kubectl apply -f x.yml"] {
            let offer = assess(text, &Options::default()).offer;
            assert_eq!(offer, Offer::Entries { patterns: vec![text.to_owned()], wider_refused: wider(text) });
        }
    }

    fn wider(text: &str) -> String {
        let program = text.split(' ').next().unwrap();
        format!("`{program} **` would allow everything else `{program}` can do too")
    }

    #[test]
    fn where_safe_commands_ask_too_they_get_an_entry_too() {
        let record = assess("npm ci && git status", &Options::default()).record();
        let offer = record.offer(crate::Risk::NeedsReview, false);
        let Offer::Entries { patterns, .. } = offer else { panic!("{offer:?}") };
        assert_eq!(patterns, ["npm ci", "git status"]);
    }

    #[test]
    fn a_prefix_is_plain_words_of_a_program_that_runs_nothing_else() {
        for text in ["cargo ", "cargo test", "git commit", "  npm  run ", "ls"] {
            let entry = crate::Entry::offered_prefix(text).unwrap_or_else(|why| panic!("{text}: {why}"));
            assert_eq!(crate::Entry::parse(&entry.pattern).as_ref(), Some(&entry), "{text}");
        }
        for text in [
            "",
            "  ",
            ";",
            "bash",
            "bash -c ",
            "sudo ",
            "env ",
            "python3 ",
            "xargs",
            "cargo; rm",
            "cargo |",
            "rm -rf /",
            "cargo 'a b'",
            "$X",
            "cargo $(id)",
            "X=1 cargo",
            "cargo > x",
            "cargo &",
            "find . -exec",
        ] {
            assert!(crate::Entry::offered_prefix(text).is_err(), "{text}");
        }
    }

    #[test]
    fn there_is_none_for_what_could_run_anything() {
        for text in [
            "bash build.sh",
            "sudo npm ci",
            "make --eval=x all",
            "env npm ci",
            "npm ci > log",
            "npm ci $X",
            "npm ci *",
            "rm -rf /",
            "ls",
            "python3 -c 'print(1)'",
            "xargs npm ci",
            "npm ci &",
            "X=1 ; npm ci $X 'open",
            "$X ci",
            "a;b;c;d;e;f;g;h;i",
            "timeout 5 npm ci",
            "ssh host npm ci",
            "find . -exec npm ci ;",
        ] {
            let offer = assess(text, &Options::default()).offer;
            assert!(matches!(offer, Offer::Refused(_)), "{text}: {offer:?}");
        }
    }
}
