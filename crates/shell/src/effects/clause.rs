//! What one command does: its effects, and what a person would say of it.

use super::kinds::{self, Change, Code, History, Reach, Verb};
use super::objects::{Objects, is_loopback, listed, lister, pieces, placed, quote};
use super::table::{BUILT_IN, Chosen, Known, Reading};
use super::template::{self, Take};
use super::{Effect, Table};
use crate::command::{RedirectKind, Simple, Target};
use crate::danger::arguments::{self, Arguments};
use crate::danger::facts::{Facts, base_name};
use crate::danger::{Does, find_program};
use crate::effect::Mark;
use crate::effect::{Marks, Reversibility};
use crate::reason::{Layer, Reason, Risk};
use crate::word::{Value, Word};

/// Of a command that is dangerous a person hears before all others.
const DANGEROUS: u16 = 200;

#[derive(Clone, Debug, Default)]
pub(super) struct Clause {
    pub weight: u16,
    /// With a full stop. None: nothing worth a word.
    pub sentence: Option<String>,
    pub effects: Vec<Effect>,
}

/// Everything that saying something of a command takes.
#[derive(Clone, Copy)]
pub(super) struct Said<'a> {
    pub table: &'a Table,
    pub simple: &'a Simple,
    pub risk: Option<Risk>,
    /// Those that are about this command.
    pub reasons: &'a [&'a Reason],
    pub start: Option<&'a str>,
}

/// What is known of a command for judging: which kinds of effects it has, and whether they can be undone.
pub(crate) fn does(facts: &Facts<'_>) -> Option<Does> {
    let known = BUILT_IN.program(facts.name)?;
    let reading = Reading { known: Some(known), program: facts.program };
    let chosen = known.choose(&arguments::read(facts.words, &reading, usize::MAX))?;
    let verbs = || kinds::read(chosen.does).filter_map(Result::ok).map(|written| written.verb);
    let undo = chosen.undo.unwrap_or_else(|| verbs().map(undone).max().unwrap_or_default());
    let marks = verbs().flat_map(marks).copied().collect::<Vec<Mark>>();
    Some(Does { effects: Marks::from(marks), reversibility: undo })
}

impl<'a> Said<'a> {
    pub fn clause(&self) -> Clause {
        let pictures: Vec<String> = self.simple.argv.iter().map(Word::picture).collect();
        let pieces = pieces(self.simple, &pictures);
        let name = pieces.first().map_or("", |piece| base_name(piece.text));
        let known = self.table.program(name);
        let reading = Reading { known, program: find_program(name) };
        let arguments = arguments::read(&pieces, &reading, usize::MAX);
        let mut clause = match known.and_then(|known| self.chosen(known, &arguments)) {
            Some((chosen, verbs)) => self.of_form(chosen, &verbs, &arguments),
            None => self.of_unknown(name),
        };
        clause.weight += if self.risk == Some(Risk::Dangerous) { DANGEROUS } else { 0 };
        self.add_redirects(&mut clause);
        clause
    }

    /// Where what it carries runs, as in `in the container `web``.
    pub fn around(&self) -> Option<String> {
        let pictures: Vec<String> = self.simple.argv.iter().map(Word::picture).collect();
        let pieces = pieces(self.simple, &pictures);
        let name = pieces.first().map_or("", |piece| base_name(piece.text));
        let known = self.table.program(name)?;
        let arguments =
            arguments::read(&pieces, &Reading { known: Some(known), program: find_program(name) }, usize::MAX);
        let chosen = known.choose(&arguments).filter(|chosen| !chosen.around.is_empty())?;
        let objects = self.objects(&arguments, chosen.operands);
        template::fill(chosen.around, |hole, take| objects.shown(hole, take))
    }

    /// The form that fits, unless something is said of the command that it does not account for.
    fn chosen<'t>(&self, known: Known<'t>, arguments: &Arguments<'_>) -> Option<(Chosen<'t>, Vec<kinds::Written<'t>>)> {
        let chosen = known.choose(arguments)?;
        let verbs: Vec<kinds::Written<'t>> = kinds::read(chosen.does).filter_map(Result::ok).collect();
        let only_reads = verbs
            .iter()
            .all(|written| matches!(written.verb, Verb::Nothing | Verb::Read | Verb::Service(_, Change::Reads)));
        // What is said by the way of writing or by what is read leaves a reader a reader.
        let more = |reason: &Reason| {
            let own = reason.layer == Layer::Program || reason.layer == Layer::Danger;
            let aside = matches!(reason.code.as_ref(), "unknown_folder" | "more_than_reads") || is_secret(reason);
            own && !aside
        };
        (!only_reads || !self.own_reasons().any(more)).then_some((chosen, verbs))
    }

    fn objects<'w>(&self, arguments: &'w Arguments<'w>, skip: usize) -> Objects<'w, 'w>
    where
        'a: 'w,
    {
        Objects { simple: self.simple, arguments, skip, start: self.start, lister: lister(self.simple) }
    }

    fn of_form(&self, chosen: Chosen<'_>, verbs: &[kinds::Written<'_>], arguments: &Arguments<'_>) -> Clause {
        let objects = self.objects(arguments, chosen.operands);
        let mut effects: Vec<Effect> = verbs.iter().filter_map(|written| effect(*written, &objects)).collect();
        let worst = verbs.iter().max_by_key(|written| written.verb.weight());
        let said = match chosen.says {
            "" => worst.and_then(|written| default_sentence(*written, &objects)),
            says => template::fill(says, |hole, take| objects.shown(hole, take))
                .or_else(|| worst.and_then(|written| default_sentence(*written, &objects))),
        };
        let mut weight = worst.map_or(0, |written| u16::from(written.verb.weight()));
        let mut sentence = said.map(|said| upper(&said));
        if let Some(secret) = self.secret() {
            let which: Vec<String> = effects.iter().find_map(read_paths).unwrap_or_default();
            let shown: Vec<String> = which.iter().map(|path| quote(path)).collect();
            sentence = Some(match listed(&shown) {
                Some(paths) => format!("Shows {paths}: {secret}."),
                None => sentence.unwrap_or_else(|| format!("{}.", upper(secret))),
            });
            effects.push(Effect::Secret { which });
            weight = weight.max(Verb::Secret.weight().into());
        }
        Clause { weight, sentence, effects }
    }

    /// What is said of the command itself, not of where what it prints goes.
    fn own_reasons(&self) -> impl Iterator<Item = &'a Reason> {
        let redirects = &self.simple.redirects;
        let own = |reason: &&Reason| !redirects.iter().any(|redirect| redirect.span == reason.span);
        self.reasons.iter().copied().filter(own)
    }

    /// Why what it reads is secret.
    fn secret(&self) -> Option<&'a str> {
        self.own_reasons().find(|reason| is_secret(reason)).map(|reason| reason.message.as_ref())
    }

    fn of_unknown(&self, name: &str) -> Clause {
        let Some(word) = self.simple.argv.first() else { return Clause::default() };
        let told = match &word.value {
            Value::Known(text) => text.clone(),
            Value::Glob(_) | Value::Dynamic(_) => {
                let sentence = "Runs a program that is only known when it runs.".to_owned();
                return self.unknown(sentence, Vec::new());
            }
        };
        if self.risk.is_none() || self.own_reasons().next().is_none() {
            return Clause { weight: 0, sentence: None, effects: vec![Effect::Read { paths: Vec::new() }] };
        }
        let of = |layer: Layer| self.own_reasons().find(move |reason| reason.layer == layer);
        if let Some(danger) = of(Layer::Danger) {
            return self.unknown(format!("Runs {}: {}.", quote(name), danger.message), vec![told]);
        }
        let says_nothing = |code: &str| {
            matches!(code, "unknown_program" | "unknown_option" | "unknown_subcommand" | "more_than_reads")
        };
        if let Some(reason) = of(Layer::Program).filter(|reason| !says_nothing(&reason.code)) {
            return self.unknown(format!("Runs {}, which here {}.", quote(name), reason.message), vec![told]);
        }
        if told.contains('/') {
            let placed_path = placed(self.simple, self.start, &told, false);
            // As it was written, where that says the same.
            let path = if told.ends_with(&placed_path) { told.clone() } else { placed_path };
            let weight = Verb::Run(Code::Program).weight().into();
            let effects =
                vec![Effect::Run { code: Code::Program, what: vec![placed(self.simple, self.start, &told, true)] }];
            return Clause { weight, sentence: Some(format!("Runs the program {}.", quote(&path))), effects };
        }
        let known = of(Layer::Program).is_some_and(|reason| reason.code != "unknown_program");
        let what = if known { "in a way that is not known here" } else { "a program that is not known here" };
        let separator = if known { " " } else { ", " };
        self.unknown(format!("Runs {}{separator}{what}.", quote(name)), vec![told])
    }

    fn unknown(&self, sentence: String, what: Vec<String>) -> Clause {
        let effects = vec![Effect::Unknown { what }];
        Clause { weight: Verb::Unknown.weight().into(), sentence: Some(sentence), effects }
    }

    /// Files that what it prints is written to.
    fn add_redirects(&self, clause: &mut Clause) {
        for redirect in &self.simple.redirects {
            let Target::File(word) = &redirect.target else { continue };
            let verb = match redirect.kind {
                RedirectKind::Write | RedirectKind::ReadWrite => "Writes the file",
                RedirectKind::Append => "Appends to the file",
                RedirectKind::Read | RedirectKind::Duplicate | RedirectKind::HereDoc | RedirectKind::HereString => {
                    continue;
                }
            };
            let text = word.picture();
            if text.starts_with("/dev/")
                && matches!(text.as_str(), "/dev/null" | "/dev/stderr" | "/dev/stdout" | "/dev/tty")
            {
                continue;
            }
            let (shown, told) =
                (placed(self.simple, self.start, &text, false), placed(self.simple, self.start, &text, true));
            let shown =
                if shown.contains("$…") { "that is only known when it runs".to_owned() } else { quote(&shown) };
            clause.effects.push(Effect::Write { paths: if word.is_dynamic() { Vec::new() } else { vec![told] } });
            let weight =
                u16::from(Verb::Write.weight()) + if self.risk == Some(Risk::Dangerous) { DANGEROUS } else { 0 };
            // What only prints is said by where that goes.
            if clause.sentence.is_none() || clause.weight <= weight {
                clause.sentence = Some(format!("{verb} {shown}."));
                clause.weight = weight;
            }
        }
    }
}

/// Whether it is said of what is read.
fn is_secret(reason: &Reason) -> bool {
    reason.does.effects.has(Mark::Secrets)
}

fn read_paths(effect: &Effect) -> Option<Vec<String>> {
    match effect {
        Effect::Read { paths } if !paths.is_empty() => Some(paths.clone()),
        _ => None,
    }
}

/// An effect with its objects.
fn effect(written: kinds::Written<'_>, objects: &Objects<'_, '_>) -> Option<Effect> {
    let as_paths = matches!(written.verb, Verb::Read | Verb::Write | Verb::Delete { .. });
    let mut told: Vec<String> = Vec::new();
    let mut rest = written.object;
    while let Some((_, after)) = rest.split_once('{') {
        let (name, behind) = after.split_once('}')?;
        let (hole, take) = template::hole(name).ok()?;
        told.extend(objects.told(hole, if as_paths && take == Take::Whole { Take::Path } else { take }));
        rest = behind;
    }
    if told.is_empty() && !written.object.is_empty() && !written.object.contains('{') {
        told.push(written.object.to_owned());
    }
    Some(match written.verb {
        Verb::Nothing => return None,
        Verb::Read => Effect::Read { paths: told },
        Verb::Write => Effect::Write { paths: told },
        Verb::Delete { tree } => Effect::Delete { paths: told, tree },
        Verb::Run(code) => Effect::Run { code, what: told },
        Verb::Install { manager, reach } => Effect::Install { manager: manager.to_owned(), what: told, reach },
        Verb::Connect { sends } => {
            let (loopback, hosts) = told.into_iter().partition(|host| is_loopback(host));
            Effect::Connect { hosts, loopback, sends }
        }
        Verb::Repository(history) => Effect::Repository { history, to: told },
        Verb::Service(kind, change) => Effect::Service { kind, change, which: told },
        Verb::Rights => Effect::Rights { of: told },
        Verb::Process => Effect::Process { which: told },
        Verb::Settings => Effect::Settings { which: told },
        Verb::Persist => Effect::Persist { which: told },
        Verb::Secret => Effect::Secret { which: told },
        Verb::Unknown => Effect::Unknown { what: told },
    })
}

/// What an effect says where no sentence is written.
fn default_sentence(written: kinds::Written<'_>, objects: &Objects<'_, '_>) -> Option<String> {
    let as_paths = matches!(written.verb, Verb::Read | Verb::Write | Verb::Delete { .. });
    let shown = template::fill(written.object, |hole, take| {
        objects.shown(hole, if as_paths && take == Take::Whole { Take::Path } else { take })
    });
    let what = |otherwise: &str| match &shown {
        Some(shown) if !shown.is_empty() => shown.clone(),
        _ => otherwise.to_owned(),
    };
    Some(match written.verb {
        Verb::Nothing => return None,
        Verb::Read => format!("Reads {}.", what("files")),
        Verb::Write => format!("Writes {}.", what("files that are not named here")),
        Verb::Delete { tree: true } => {
            format!("Deletes {} and everything in it, for good.", what("what is not named here"))
        }
        Verb::Delete { tree: false } => format!("Deletes {}, for good.", what("what is not named here")),
        Verb::Run(Code::Project) => "Runs code of this project.".to_owned(),
        Verb::Run(Code::Script) => format!("Runs the script {}.", what("that it is given")),
        Verb::Run(Code::Package) => {
            format!("Runs the script {} of this project's manifest.", what("that is named there"))
        }
        Verb::Run(Code::Inline) => "Runs code that is written in the command.".to_owned(),
        Verb::Run(Code::Downloaded) => format!("Downloads {} and runs it.", what("a program")),
        Verb::Run(Code::Program) => format!("Runs {}.", what("another program")),
        Verb::Install { reach, .. } => {
            let whose = match reach {
                Reach::Project => "into this project",
                Reach::User => "for this user",
                Reach::System => "on this machine",
            };
            format!("Installs {} {whose}.", what("packages"))
        }
        Verb::Connect { sends: true } => format!("Sends data to {}.", what("another machine")),
        Verb::Connect { sends: false } => format!("Connects to {}.", what("another machine")),
        Verb::Repository(History::Local) => "Changes this repository; that can be undone.".to_owned(),
        Verb::Repository(History::Discards) => "Throws away work in this repository.".to_owned(),
        Verb::Repository(History::Publishes) => format!("Publishes commits to {}.", what("the remote")),
        Verb::Repository(History::Forced) => format!("Replaces what is published on {}.", what("the remote")),
        Verb::Service(_, Change::Reads) => format!("Shows {}.", what("the state of a service")),
        Verb::Service(_, Change::Changes) => format!("Changes {}.", what("a service")),
        Verb::Service(_, Change::Destroys) => format!("Destroys {}.", what("parts of a service")),
        Verb::Rights => format!("Changes who may use {}.", what("something")),
        Verb::Process => format!("Acts on the process {}.", what("that is named")),
        Verb::Settings => format!("Changes the settings of {}.", what("a program")),
        Verb::Persist => format!("Sets up {} to start by itself.", what("something")),
        Verb::Secret => format!("Shows {}, which is secret.", what("what is kept secret")),
        Verb::Unknown => return None,
    })
}

/// Whether an effect can be undone, where its form does not say.
fn undone(verb: Verb<'_>) -> Reversibility {
    match verb {
        Verb::Nothing | Verb::Read | Verb::Secret | Verb::Service(_, Change::Reads) => Reversibility::Reversible,
        Verb::Repository(History::Local) | Verb::Install { .. } | Verb::Settings | Verb::Rights | Verb::Persist => {
            Reversibility::Recoverable
        }
        Verb::Write | Verb::Run(_) | Verb::Unknown | Verb::Service(_, Change::Changes) => Reversibility::Unknown,
        Verb::Delete { .. }
        | Verb::Connect { .. }
        | Verb::Repository(History::Discards | History::Publishes | History::Forced)
        | Verb::Service(_, Change::Destroys)
        | Verb::Process => Reversibility::Irreversible,
    }
}

fn marks(verb: Verb<'_>) -> &'static [Mark] {
    match verb {
        Verb::Nothing | Verb::Read | Verb::Unknown => &[],
        Verb::Write | Verb::Delete { .. } | Verb::Rights | Verb::Process | Verb::Settings | Verb::Persist => {
            &[Mark::Writes]
        }
        Verb::Repository(History::Local | History::Discards) => &[Mark::Writes],
        Verb::Repository(History::Publishes | History::Forced) | Verb::Connect { .. } | Verb::Service(..) => {
            &[Mark::Network]
        }
        Verb::Install { .. } => &[Mark::Writes, Mark::Network],
        Verb::Run(Code::Downloaded) => &[Mark::Runs, Mark::Network],
        Verb::Run(_) => &[Mark::Writes],
        Verb::Secret => &[Mark::Secrets],
    }
}

fn upper(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}
