//! What a whole text does: the clauses of its commands put together, the worst first.

use super::clause::{Clause, Said};
use super::objects::{host, quote};
use super::table::BUILT_IN;
use super::{Effect, Table, Told};
use crate::assess::Assessment;
use crate::command::Simple;
use crate::danger::facts::base_name;
use crate::location::Location;
use crate::reason::{Layer, Reason, Risk};
use crate::word::Word;

/// A person reads the worst of it and these many more.
const MAX_MORE: usize = 2;
const MAX_EFFECTS: usize = 64;

impl Assessment {
    /// What the text does, for a person and for programs.
    pub fn told(&self, location: &Location<'_>) -> Told {
        tell(self, location, &BUILT_IN)
    }
}

/// The same, by another table: for checking one that is being written.
pub fn tell(of: &Assessment, location: &Location<'_>, table: &Table) -> Told {
    let downloaded = together(of);
    let downloads = downloaded.is_some();
    let mut clauses: Vec<Clause> = Vec::from_iter(downloaded);
    let mut reads: Option<String> = None;
    let mut effects: Vec<Effect> = Vec::new();
    for (at, (simple, part)) in of.commands.iter().zip(&of.parts).enumerate() {
        let carries = of.parts.iter().any(|other| other.role.carried_by == Some(at));
        if carries || part.role.bare && simple.redirects.is_empty() {
            continue;
        }
        let about = |reason: &&Reason| simple.span.start <= reason.span.start && reason.span.end <= simple.span.end;
        let reasons: Vec<&Reason> = of.reasons.iter().filter(about).collect();
        let said = Said { table, simple, risk: part.risk, reasons: &reasons, start: location.folder };
        let mut clause = said.clause();
        clause.sentence = clause.sentence.map(|sentence| in_place(&sentence, of, at, table, location));
        for effect in clause.effects.drain(..) {
            add(effect, &mut effects);
        }
        let told_together = downloads && (is_fetch(simple) || reasons.iter().any(|reason| runs_output(reason)));
        if told_together {
            continue;
        }
        if part.risk.is_some() || !simple.redirects.is_empty() && clause.weight > 5 {
            clauses.push(clause);
        } else if reads.is_none() {
            reads = clause.sentence;
        }
    }
    clauses.retain(|clause| clause.sentence.is_some());
    clauses.sort_by_key(|clause| std::cmp::Reverse(clause.weight));
    let mut sentences: Vec<String> = Vec::new();
    for sentence in clauses.into_iter().filter_map(|clause| clause.sentence) {
        if !sentences.contains(&sentence) {
            sentences.push(sentence);
        }
    }
    let sentence = if sentences.is_empty() { otherwise(of, reads) } else { joined(&sentences) };
    Told { sentence, effects }
}

/// Each once. Beyond what anybody would read, what is left out is not known.
fn add(effect: Effect, effects: &mut Vec<Effect>) {
    let unknown = Effect::Unknown { what: Vec::new() };
    let effect = if effects.len() < MAX_EFFECTS { effect } else { unknown };
    if !effects.contains(&effect) {
        effects.push(effect);
    }
}

/// Where nothing asks for a word.
fn otherwise(of: &Assessment, reads: Option<String>) -> String {
    if of.risk == Risk::Safe {
        return reads.unwrap_or_else(|| "Only reads.".to_owned());
    }
    match of.reasons.iter().max_by_key(|reason| reason.risk) {
        Some(reason) => format!("What it does is not known: {}.", reason.message),
        None => "What it does is not known.".to_owned(),
    }
}

fn joined(sentences: &[String]) -> String {
    let Some((first, rest)) = sentences.split_first() else { return String::new() };
    let more: Vec<String> = rest.iter().take(MAX_MORE).map(|sentence| lower(sentence)).collect();
    let left = rest.len() - more.len();
    match more.as_slice() {
        [] => first.clone(),
        [one] => format!("{first} It also {one}."),
        many if left == 0 => format!("{first} It also {}.", many.join(" and ")),
        many => format!("{first} It also {}, and does more.", many.join(", ")),
    }
}

/// Without its capital and its full stop.
fn lower(sentence: &str) -> String {
    let mut chars = sentence.trim_end_matches('.').chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}

/// The same, with where it runs and as whom.
fn in_place(sentence: &str, of: &Assessment, at: usize, table: &Table, location: &Location<'_>) -> String {
    let mut places = String::new();
    let mut carrier = of.parts.get(at).and_then(|part| part.role.carried_by);
    while let Some(at) = carrier {
        let Some((simple, part)) = of.commands.get(at).zip(of.parts.get(at)) else { break };
        let said = Said { table, simple, risk: part.risk, reasons: &[], start: location.folder };
        if let Some(around) = said.around() {
            places.push(' ');
            places.push_str(&around);
        }
        carrier = part.role.carried_by;
    }
    let privileged = of.commands.get(at).is_some_and(|simple| simple.via.iter().any(|via| via.privileged));
    if privileged {
        places.push_str(" as root");
    }
    match sentence.strip_suffix('.') {
        Some(bare) => format!("{bare}{places}."),
        None => sentence.to_owned(),
    }
}

/// Whether it says that what another command prints is run.
fn runs_output(reason: &Reason) -> bool {
    const CODES: [&str; 7] = [
        "pipe_into_shell",
        "pipe_into_interpreter",
        "code_from_output",
        "script_from_output",
        "eval_of_unknown",
        "download_then_run",
        "curl_insecure_shell",
    ];
    reason.layer == Layer::Danger && CODES.contains(&reason.code.as_ref())
}

/// What takes several commands to say.
fn together(of: &Assessment) -> Option<Clause> {
    let fetched: Vec<&Simple> = of.commands.iter().filter(|simple| is_fetch(simple)).collect();
    if fetched.is_empty() || !of.reasons.iter().any(runs_output) {
        return None;
    }
    let urls = fetched.iter().flat_map(|simple| simple.argv.iter().skip(1)).filter_map(Word::known);
    let mut hosts: Vec<&str> = urls.filter(|word| word.contains("://")).map(host).collect();
    hosts.dedup();
    let from = match hosts.first() {
        Some(host) => quote(host),
        None => "a place that is only known when it runs".to_owned(),
    };
    let rooted = of.commands.iter().any(|simple| simple.via.iter().any(|via| via.privileged));
    let root = if rooted { " as root" } else { "" };
    let sentence = Some(format!("Downloads a script from {from} and runs it{root}."));
    Some(Clause { weight: 400, sentence, effects: Vec::new() })
}

fn is_fetch(simple: &Simple) -> bool {
    let name = simple.argv.first().and_then(Word::known).map_or("", base_name);
    matches!(name, "curl" | "wget" | "http" | "https" | "xh" | "fetch" | "aria2c")
}
