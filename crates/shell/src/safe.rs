//! Layer 3, safe programs: does this one command, as it stands, only read?
//!
//! Knowledge is in `rules/programs/*.toml`; this layer applies it and fails closed: what no table knows is a
//! reason to ask. It knows nothing of other commands in the line, of allowlists or of what is dangerous.

mod args;
mod awk;
mod check;
mod compile;
mod environment;
mod format;
mod jq;
mod own;
mod paths;
mod rows;
mod sed;
mod table;
#[cfg(test)]
mod tests;

use std::rc::Rc;

use args::{Args, Piece};
use paths::Touch;
use rows::{Check, Code, Grammar, Operands, Program, Sub};
use table::Of;

use std::borrow::Cow;

use crate::command::{Redirect, RedirectKind, Simple, Stdin, Target};
use crate::danger;
use crate::location::Location;
use crate::project::Projects;
use crate::reason::{Layer, Reason, Risk};
use crate::walk::{Env, folder};
use crate::word::{Dynamic, Source, Span, Value, Word};

pub(crate) use compile::Compiler;
pub(crate) use format::{Entry, File, Problem};
pub(crate) use own::{check as check_own, is_built_in, is_own};
pub use paths::glob;
pub(crate) use paths::sensitive;
pub(crate) use rows::Rows;

/// Why this command is more than a reader; nothing when it only reads, starts nothing, talks to nobody and
/// touches no secret.
pub fn judge(simple: &Simple, around: Around<'_>) -> Judged {
    let mut told = Told { reasons: Vec::new(), obeys: Projects::default(), works_in: Vec::new(), around };
    environment::judge(simple, &mut told);
    for redirect in &simple.redirects {
        told.redirect(redirect);
    }
    if let Some((program, words)) = simple.argv.split_first() {
        told.program(simple, program, words);
    }
    Judged { reasons: told.reasons, obeys: told.obeys, works_in: told.works_in }
}

/// What was found of one command.
#[derive(Debug)]
pub struct Judged {
    pub reasons: Vec<Reason>,
    /// Whose project files decide what it does, whether or not it only reads.
    pub obeys: Projects,
    /// The folders it goes to by itself, each from the one before.
    pub works_in: Vec<Word>,
}

/// What of the world around a command its paths are held against.
#[derive(Clone, Copy, Debug, Default)]
pub struct Around<'f> {
    /// Folders it may run in.
    pub folders: &'f [Rc<str>],
    /// It may run in others, too.
    pub unknown: bool,
    pub location: Location<'f>,
    /// What is known of variables.
    pub variables: Option<&'f Env>,
    /// The user's own programs, beside the built-in ones.
    pub own: Option<&'f Rows>,
}

/// Why the contents of this file, by its absolute name, should not be read without asking, if so.
///
/// One that ends with `/` is a folder, read with all below it.
pub fn secret_path(path: &str, location: &Location<'_>) -> Option<&'static str> {
    let touch = if path.ends_with('/') { Touch::Tree } else { Touch::Contents };
    let around = Around { location: *location, ..Around::default() };
    Told { reasons: Vec::new(), obeys: Projects::default(), works_in: Vec::new(), around }.touched(path, touch)
}

/// Reasons as they are found.
#[derive(Debug)]
struct Told<'f> {
    reasons: Vec<Reason>,
    obeys: Projects,
    works_in: Vec<Word>,
    around: Around<'f>,
}

impl Told<'_> {
    fn say(&mut self, code: &'static str, message: impl Into<Cow<'static, str>>, span: Span) {
        self.reasons.push(Reason {
            code: Cow::Borrowed(code),
            message: message.into(),
            span,
            layer: Layer::Program,
            risk: Risk::NeedsReview,
            does: danger::said(code),
        });
    }

    fn deny<R>(&mut self, row: Of<'_, R>, number: u16, span: Span) {
        let (code, reason) = row.denial(number);
        self.say(code.name(), reason, span);
    }

    fn redirect(&mut self, redirect: &Redirect) {
        let Target::File(word) = &redirect.target else { return };
        match redirect.kind {
            RedirectKind::Read => self.path(Piece { word, text: word.known() }, Touch::Contents),
            RedirectKind::Duplicate | RedirectKind::HereDoc | RedirectKind::HereString => {}
            RedirectKind::Write | RedirectKind::Append | RedirectKind::ReadWrite => {
                if word.known() != Some("/dev/null") {
                    self.say("redirect", "writes to a file", redirect.span);
                }
            }
        }
    }

    /// Holds a path against the sensitive ones, wherever it is used.
    fn path(&mut self, piece: Piece<'_>, touch: Touch) {
        let reason = match (&piece.word.value, piece.text) {
            (_, Some(text)) => self.touched(text, touch),
            (Value::Dynamic(dynamic), None) => self.may_touch(dynamic, &piece.word.picture(), touch),
            (Value::Known(_) | Value::Glob(_), None) => self.touched(&piece.word.picture(), touch),
        };
        if let Some(reason) = reason {
            self.say("sensitive_path", reason, piece.word.span);
        }
    }

    /// Whether a variable holds what was read from a file or a pipe.
    fn is_content(&self, name: &str) -> bool {
        self.around.variables.and_then(|variables| variables.get(name)).is_some_and(|binding| binding.content)
    }

    /// Each text that a word may become, as far as they are known.
    fn may_touch(&self, dynamic: &Dynamic, picture: &str, touch: Touch) -> Option<&'static str> {
        let Dynamic { prefix, suffix, sources, .. } = dynamic;
        sources
            .iter()
            .find_map(|source| match source {
                Source::OneOf(values) => {
                    values.iter().find_map(|value| self.touched(&format!("{prefix}{value}{suffix}"), touch))
                }
                Source::Variable(name) if name == "PWD" && prefix.is_empty() => {
                    self.touched(suffix.trim_start_matches('/'), touch)
                }
                Source::Variable(name) if touch != Touch::Names && (self.is_content(name) || name == "OLDPWD") => {
                    Some("which file this is stands in another file or in the environment")
                }
                // Names of files that lie here.
                Source::BoundedOutput | Source::Names if prefix.is_empty() && touch != Touch::Names => {
                    if self.around.folders.is_empty() { None } else { self.touched(".", Touch::Tree) }
                }
                _ => None,
            })
            .or_else(
                || if matches!(sources.as_slice(), [Source::OneOf(_)]) { None } else { self.touched(picture, touch) },
            )
    }

    fn touched(&self, path: &str, touch: Touch) -> Option<&'static str> {
        // `~+` is the folder at hand.
        let path =
            path.strip_prefix("~+").filter(|rest| rest.is_empty() || rest.starts_with('/')).map_or(path, |rest| {
                let rest = rest.trim_start_matches('/');
                if rest.is_empty() { "." } else { rest }
            });
        let held = |path: &str| {
            let own = || self.around.location.holds_secrets(path, touch == Touch::Tree);
            let gate = || (touch != Touch::Names && own()).then_some("the gate's own keys and records");
            paths::touched(path, touch).or_else(gate).or_else(|| self.elsewhere(path, touch))
        };
        held(path).or_else(|| {
            if folder::is_rooted(path) {
                return None;
            }
            if self.around.unknown && touch != Touch::Names {
                return Some("it is not known in which folder this runs, so which file this is");
            }
            let somewhere = |path: &str| touch != Touch::Names && paths::secret_somewhere(path);
            let relative = || self.around.folders.iter().all(|folder| !folder::is_rooted(folder));
            if relative()
                && (somewhere(path)
                    || self.around.folders.iter().any(|folder| somewhere(&folder::joined(folder, path))))
            {
                return Some("in some folders this is the name of a secret, and the folder is not known");
            }
            self.around.folders.iter().find_map(|folder| held(&folder::joined(folder, path)))
        })
    }

    /// Contents of files in places of which nothing is known, unless they are the agent's own.
    fn elsewhere(&self, path: &str, touch: Touch) -> Option<&'static str> {
        let own = |workspace: &str| {
            let inside = path.strip_prefix(workspace.trim_end_matches('/'));
            inside.is_some_and(|rest| rest.is_empty() || (rest.starts_with('/') && !rest.contains("..")))
        };
        let unknown = touch != Touch::Names && paths::unknown_place(path) && !self.around.location.roots().any(own);
        unknown.then_some("a file outside the work, the home and the system's own folders")
    }

    /// Without a path, a program that reads trees reads the one it runs in.
    fn here(&mut self, span: Span, touch: Touch) {
        if (self.around.unknown || !self.around.folders.is_empty())
            && let Some(reason) = self.touched(".", touch)
        {
            self.say("sensitive_path", reason, span);
        }
    }

    fn program(&mut self, simple: &Simple, word: &Word, words: &[Word]) {
        let Some(name) = word.known() else {
            self.say("unknown_program", "which program this is depends on run time", word.span);
            return;
        };
        let Some(bare) = bare_name(name) else {
            self.say("unknown_program", "not a program of this system's folders", word.span);
            return;
        };
        let Some(program) = Of::<Program>::find(bare, self.around.own) else {
            self.say("unknown_program", format!("`{bare}` is not a known read-only program"), word.span);
            return;
        };
        for word in words {
            environment::secret_variable(word, self);
        }
        let Some(mut grammar) = program.grammar() else { return };
        self.obeys = self.obeys.with(grammar.obeys);
        if is_exactly(grammar, words) && !simple.more_arguments {
            return;
        }
        // Where the built-in table knows a few whole forms only, a user's may know more.
        let mut program = program;
        if program.is_sketch()
            && let Some(own) = Of::<Program>::find_own(bare, self.around.own)
            && let Some(more) = own.grammar()
        {
            (program, grammar) = (own, more);
            if is_exactly(grammar, words) && !simple.more_arguments {
                return;
            }
        }
        let before = self.reasons.len();
        let has_subs = program.subs().len() > 0;
        let args = Args::read(grammar, words, has_subs, self);
        for option in grammar.words(grammar.works_in) {
            let given = args.options.iter().filter(|given| given.key.is(option)).filter_map(|given| given.value);
            self.works_in.extend(given.map(Piece::to_word));
        }
        let rest = words.get(args.read..).unwrap_or(&[]);
        if has_subs {
            if grammar.check != Check::None {
                check::run(simple, grammar, &args, word, self);
            }
            self.subcommand(simple, program, word, rest);
        } else {
            if grammar.operands == Operands::None && grammar.needs.is_empty() && !grammar.exact.is_empty() {
                // Only known in a few exact forms, and this is none of them.
                if self.reasons.len() == before {
                    self.say(
                        "runs_programs",
                        format!("`{bare}` does more than read, except to tell its version"),
                        word.span,
                    );
                }
                return;
            }
            self.command(simple, grammar, &args, word);
        }
    }

    fn subcommand(&mut self, simple: &Simple, program: Of<'_, Program>, word: &Word, rest: &[Word]) {
        let Some(first) = rest.first() else {
            self.say("unknown_subcommand", format!("`{}` without a read-only subcommand", program.name()), word.span);
            return;
        };
        // `docker compose -f x.yml ps`: the options of a group stand between its name and the rest.
        let group = program.subs().find(|sub| {
            let mut words = sub.path();
            words.next() == first.known()
                && words.next().is_none()
                && sub.grammar().is_some_and(|grammar| grammar.check == Check::Group)
        });
        let skipped = match group.and_then(Of::<Sub>::grammar) {
            Some(grammar) => Args::read(grammar, rest.get(1..).unwrap_or(&[]), true, self).read,
            None => 0,
        };
        let word_at = |at: usize| rest.get(if at == 0 { 0 } else { at + skipped });
        let fits = |wanted: &str, given: Option<&Word>| {
            let Some(given) = given.and_then(Word::known) else { return false };
            // Most are out by their first letter.
            let (head, given_head) = (wanted.bytes().next(), given.bytes().next());
            if head != given_head && !matches!(head, Some(b'*' | b'?' | b'[')) {
                return false;
            }
            // `az signalr key list`: a pattern does not speak for keys and secrets.
            wanted == given || (wanted.contains('*') && paths::glob(wanted, given) && !environment::is_secret(given))
        };
        let found = program.subs().find(|sub| sub.path().enumerate().all(|(at, wanted)| fits(wanted, word_at(at))));
        let Some(sub) = found else {
            if first.is_dynamic() {
                self.say("dynamic_option", "a subcommand that depends on run time", first.span);
            } else {
                self.say(
                    "unknown_subcommand",
                    format!("not a known read-only subcommand of `{}`", program.name()),
                    first.span,
                );
            }
            return;
        };
        if sub.denial != 0 {
            self.deny(sub, sub.denial, first.span);
            return;
        }
        if program.name() == "git" {
            check::git_formats(rest, self);
        }
        let Some(grammar) = sub.grammar() else { return };
        self.obeys = self.obeys.with(grammar.obeys);
        let words = rest.get(sub.path().count() + skipped..).unwrap_or(&[]);
        if is_exactly(grammar, words) && !simple.more_arguments {
            return;
        }
        let args = Args::read(grammar, words, false, self);
        self.command(simple, grammar, &args, first);
    }

    /// What the options and operands together mean.
    fn command(&mut self, simple: &Simple, grammar: Of<'_, Grammar>, args: &Args<'_>, word: &Word) {
        if simple.more_arguments && !check::takes_more(simple, grammar, args) {
            self.say("dynamic_option", "arguments that are only known at run time may change what it does", word.span);
        }
        let shows =
            matches!(grammar.operands, Operands::Paths | Operands::Pattern | Operands::Script | Operands::Revisions);
        // `find -exec cat {} \;`, `xargs -I{} cat {}`
        let carried = simple.via.last().is_some_and(|via| !via.code);
        let in_place = carried && args.operands.iter().any(|piece| piece.text.is_some_and(|text| text.contains("{}")));
        let is_script = grammar.operands == Operands::Script && !args.has_any(grammar.words(grammar.pattern_options));
        if let Some(piece) = args.operands.first().filter(|piece| piece.text.is_some_and(|text| text.contains("{}")))
            && is_script
            && carried
        {
            self.say("dynamic_script", "the name of a file becomes a script", piece.word.span);
        }
        if (simple.more_arguments || in_place) && shows {
            // What comes in are names of files that lie here.
            self.here(word.span, Touch::Tree);
        }
        // Nobody sits in front of a pipe.
        let pages = !simple.place.captured;
        let pager = |number| grammar.denial(number).0 == Code::Interactive;
        if !grammar.needs.is_empty()
            && !args.has_any(grammar.words(grammar.needs))
            && (pages || !pager(grammar.needs_why))
        {
            self.deny(grammar, grammar.needs_why, word.span);
        }
        let operands = args.operands.as_slice();
        if let Some(piece) = operands.first()
            && !grammar.operands_need.is_empty()
            && !args.has_any(grammar.words(grammar.operands_need))
        {
            self.deny(grammar, grammar.operands_why, piece.word.span);
        }
        if pages && operands.len() < usize::from(grammar.min) {
            self.say("interactive", "without operands it may start a pager, in which programs can be run", word.span);
        }
        // A pattern may stand for several names.
        let several = operands.iter().find(|piece| matches!(piece.word.value, Value::Glob(_)));
        let excess = operands.get(usize::from(grammar.max)).or(several.filter(|_| grammar.max < u8::MAX));
        if let Some(piece) = excess {
            match grammar.excess {
                0 => self.say("unknown_operand", "more operands than reading takes", piece.word.span),
                number => self.deny(grammar, number, piece.word.span),
            }
        }
        self.operands(grammar, args, word.span);
        check::run(simple, grammar, args, word, self);
    }

    fn operands(&mut self, grammar: Of<'_, Grammar>, args: &Args<'_>, span: Span) {
        let tree = grammar.always_recursive || args.has_any(grammar.words(grammar.recursive));
        let contents = if tree { Touch::Tree } else { Touch::Contents };
        let mut operands = args.operands.as_slice();
        match grammar.operands {
            Operands::Text => {}
            Operands::Words => {
                for piece in distinct(operands) {
                    let path = |text: &str| text.starts_with(['.', '~', '/']) && !text.contains(char::is_whitespace);
                    if piece.text.is_none_or(path) {
                        self.path(*piece, Touch::Names);
                    }
                }
            }
            Operands::None => {
                if let Some(piece) = operands.first() {
                    self.say("unknown_operand", "takes no operands when it only reads", piece.word.span);
                }
            }
            Operands::Paths => {
                self.each(operands, contents);
                if tree && operands.is_empty() {
                    self.here(span, contents);
                }
            }
            Operands::Names => self.each(operands, Touch::Names),
            Operands::Pattern | Operands::Script => {
                if !args.has_any(grammar.words(grammar.pattern_options)) {
                    operands = operands.get(1..).unwrap_or(&[]);
                }
                self.each(operands, contents);
                if tree && operands.is_empty() {
                    self.here(span, contents);
                }
            }
            Operands::Revisions => {
                for piece in operands {
                    match piece.text.and_then(|text| text.split_once(':')) {
                        Some((_, path)) => self.path(Piece { word: piece.word, text: Some(path) }, contents),
                        None => self.path(*piece, contents),
                    }
                }
            }
            Operands::Variables => {
                for piece in operands {
                    environment::variable(*piece, self);
                }
            }
            Operands::Format => {
                for piece in operands {
                    let known = piece.text.map_or_else(|| piece.word.picture(), str::to_owned);
                    if !known.starts_with('+') {
                        self.say("changes_system", "sets instead of showing", piece.word.span);
                    }
                }
            }
        }
    }

    fn each(&mut self, operands: &[Piece<'_>], touch: Touch) {
        for piece in distinct(operands) {
            self.path(*piece, touch);
        }
    }
}

/// Without the same word right after itself: what is said of the one holds for the other.
fn distinct<'p, 'w>(operands: &'p [Piece<'w>]) -> impl Iterator<Item = &'p Piece<'w>> {
    let mut before: Option<&Piece<'w>> = None;
    operands.iter().filter(move |piece| {
        !before.replace(piece).is_some_and(|before| before.text == piece.text && before.word.value == piece.word.value)
    })
}

/// The name without its folder, if that folder is one of the system's.
fn bare_name(name: &str) -> Option<&str> {
    let Some((folder, bare)) = name.rsplit_once('/') else { return Some(name) };
    const FOLDERS: [&str; 8] = [
        "/bin",
        "/usr/bin",
        "/usr/local/bin",
        "/sbin",
        "/usr/sbin",
        "/usr/local/sbin",
        "/opt/homebrew/bin",
        "/opt/homebrew/sbin",
    ];
    FOLDERS.contains(&folder).then_some(bare)
}

/// Whether the words are exactly one of the forms that a grammar lists whole.
fn is_exactly(grammar: Of<'_, Grammar>, words: &[Word]) -> bool {
    !grammar.exact.is_empty()
        && grammar.words(grammar.exact).any(|form| {
            let mut wanted = form.split(' ').filter(|word| !word.is_empty());
            words.iter().all(|word| word.known().is_some_and(|given| wanted.next() == Some(given)))
                && wanted.next().is_none()
        })
}

/// Names of files that come from here are names of files below where the line works.
fn fed_by_listers(stdin: &Stdin) -> bool {
    let lister = |name: &String| {
        matches!(
            name.rsplit('/').next().unwrap_or(name),
            "find"
                | "fd"
                | "fdfind"
                | "git"
                | "rg"
                | "grep"
                | "egrep"
                | "fgrep"
                | "ag"
                | "ls"
                | "locate"
                | "sort"
                | "uniq"
                | "head"
                | "tail"
                | "xargs"
                | "tr"
                | "shuf"
                | "cut"
        )
    };
    match stdin {
        Stdin::Pipe(programs) => programs.iter().all(lister),
        Stdin::Inherited => true,
        Stdin::File | Stdin::Here(_) => false,
    }
}
