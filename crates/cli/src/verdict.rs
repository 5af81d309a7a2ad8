//! Tells a person what the shell engine says of a command: the command with what is risky underlined and why, what it
//! would start, and what an answer for longer than this once would stand for.

use countersign_model::{Action, AgentWords, Assessment as Kept, Exec, escape_line, showing};
use countersign_shell::{
    Assessment, Coverage, Effect, Entry, Layer, Location, Offer, Options, Reason, Reversibility, Risk, Simple, Verdict,
    cover,
};

use serde_json::Value;

use crate::output::Tone;
use crate::record::Showing;
use crate::showing::{Line, action_lines};

/// One command with everything that was found about it.
pub struct Told<'t> {
    pub command: &'t str,
    pub allowlist: &'t [String],
    pub assessment: &'t Assessment,
    pub verdict: Verdict,
    pub location: Location<'t>,
}

impl Told<'_> {
    pub fn lines(&self) -> Vec<Line> {
        let told = self.assessment.told(&self.location);
        let mut lines = vec![Line::prose(escape_line(&told.sentence), 0, Tone::Strong), self.headline()];
        lines.extend(self.shown());
        let started: Vec<Line> = self.assessment.commands.iter().filter_map(started).collect();
        if !started.is_empty() {
            lines.push(Line::new("it would start:", Tone::Faint));
            lines.extend(started);
        }
        lines.extend(effect_lines(&told.effects));
        lines.extend(self.effects());
        lines.push(self.offer());
        lines
    }

    /// Layer by layer, in the order in which they speak.
    pub fn explained(&self) -> Vec<Line> {
        let mut lines = self.shown();
        lines.push(Line::new("1. the allowlist", Tone::Strong));
        lines.push(Line::indented(&self.covered(), 3, Tone::Plain));
        let layers = [
            (
                "2. the text and its shell syntax",
                &[Layer::Input, Layer::Syntax][..],
                "nothing in it hides or adds a command",
            ),
            ("3. programs that only read", &[Layer::Program], "every program in it only reads, as it is called here"),
            ("4. dangers", &[Layer::Danger], "no rule names a danger"),
        ];
        for (title, layers, otherwise) in layers {
            lines.push(Line::new(title, Tone::Strong));
            let said: Vec<&Reason> =
                self.assessment.reasons.iter().filter(|reason| layers.contains(&reason.layer)).collect();
            if said.is_empty() {
                let otherwise =
                    if self.assessment.commands.is_empty() { "there is nothing to look at" } else { otherwise };
                lines.push(Line::indented(otherwise, 3, Tone::Plain));
            }
            lines.extend(said.into_iter().map(|reason| self.reason(reason)));
        }
        lines.push(self.headline());
        lines
    }

    fn headline(&self) -> Line {
        let (word, tone) = match self.assessment.risk {
            Risk::Safe => ("safe", Tone::Good),
            Risk::NeedsReview => ("needs review", Tone::Strong),
            Risk::Dangerous => ("dangerous", Tone::Warning),
        };
        let then = match self.verdict {
            Verdict::Allow => "it runs without asking",
            Verdict::Ask => "a person is asked",
            Verdict::Deny => "it is refused",
        };
        Line::new(format!("{word}: {then}"), tone)
    }

    /// The command as every channel shows it.
    fn shown(&self) -> Vec<Line> {
        let exec =
            Exec { command: self.command.to_owned(), argv: None, cwd: None, env: Default::default(), binding: None };
        let kept = Kept::new(self.assessment, &self.location);
        let action = Action::Exec(exec);
        if action.digest().is_err() {
            // Too long or not text: there is nothing to look at but why.
            return self.assessment.reasons.iter().map(|reason| self.reason(reason)).collect();
        }
        let shown = serde_json::to_value(showing(&action, Some(&kept), &AgentWords::default()));
        let shown: Option<Showing> = shown.ok().and_then(|value| serde_json::from_value(value).ok());
        // Without the headline, which repeats the command in one line: there is nothing else on this screen.
        shown.map(|shown| action_lines(&shown)).unwrap_or_default()
    }

    fn covered(&self) -> String {
        if self.allowlist.is_empty() {
            return "no entries were given (`--allow`)".to_owned();
        }
        let entries: Vec<Entry> = self.allowlist.iter().filter_map(|pattern| Entry::parse(pattern)).collect();
        match cover(self.assessment, &entries, true, &Options::default()) {
            Coverage::Covered => "the entries speak for all of it".to_owned(),
            Coverage::Uncovered(None) => "it holds something that no entry can speak for".to_owned(),
            Coverage::Uncovered(Some(at)) => {
                let command = self.assessment.commands.get(at).map(words).unwrap_or_default();
                format!("no entry speaks for `{command}`")
            }
        }
    }

    fn reason(&self, reason: &Reason) -> Line {
        let piece = self.command.get(reason.span.start..reason.span.end).unwrap_or_default();
        let piece: String = escape_line(piece).chars().take(60).collect();
        let (code, message) = (escape_line(&reason.code), escape_line(&reason.message));
        let tone = if reason.risk == Risk::Dangerous { Tone::Warning } else { Tone::Plain };
        let text =
            if piece.is_empty() { format!("{message} ({code})") } else { format!("`{piece}`: {message} ({code})") };
        Line::indented(&text, 3, tone)
    }

    fn effects(&self) -> Option<Line> {
        let flags = self.assessment.flags;
        let named = [
            (flags.writes, "writes"),
            (flags.network, "uses the network"),
            (flags.privilege, "takes other rights"),
            (flags.inline_code, "runs code given inline"),
            (flags.dynamic, "has words that are only known when it runs"),
        ];
        let undone = match self.assessment.reversibility {
            Reversibility::Reversible => None,
            Reversibility::Recoverable => Some("can be undone"),
            Reversibility::Unknown => Some("may not be undone"),
            Reversibility::Irreversible => Some("cannot be undone"),
        };
        let named = named.into_iter().filter_map(|(is, name)| is.then_some(name));
        let named: Vec<&str> = named.chain(undone).collect();
        (!named.is_empty()).then(|| Line::prose(format!("it {}", named.join(", ")), 0, Tone::Plain))
    }

    fn offer(&self) -> Line {
        let text = match &self.assessment.offer {
            Offer::Entries { patterns, wider_refused } => {
                let patterns: Vec<String> =
                    patterns.iter().map(|pattern| format!("`{}`", escape_line(pattern))).collect();
                format!(
                    "\u{201c}always\u{201d}, which is for 30 days, would allow {}; {}",
                    patterns.join(" and "),
                    escape_line(wider_refused)
                )
            }
            Offer::Refused(why) => format!("\u{201c}always\u{201d} is not offered: {}", escape_line(why)),
        };
        Line::prose(text, 0, Tone::Faint)
    }
}

/// What it does, one effect a line, each with what it is done to.
fn effect_lines(effects: &[Effect]) -> Vec<Line> {
    let line = |effect: &Effect| {
        let fields = serde_json::to_value(effect).ok()?;
        let mut text = fields.get("effect")?.as_str()?.to_owned();
        for (_, value) in fields.as_object()?.iter().filter(|(name, _)| *name != "effect") {
            match value {
                Value::String(word) => text.push_str(&format!(" {}", escape_line(word))),
                Value::Array(objects) => objects.iter().filter_map(Value::as_str).for_each(|object| {
                    text.push_str(&format!(" `{}`", escape_line(object)));
                }),
                _ => {}
            }
        }
        Some(Line::indented(&text, 2, Tone::Plain))
    };
    let lines: Vec<Line> = effects.iter().filter_map(line).collect();
    if lines.is_empty() {
        lines
    } else {
        std::iter::once(Line::new("what it does:", Tone::Faint)).chain(lines).collect()
    }
}

fn started(simple: &Simple) -> Option<Line> {
    let via: String = simple.via.iter().map(|via| format!("{} > ", escape_line(&via.program))).collect();
    (!simple.argv.is_empty()).then(|| Line::indented(&format!("{via}{}", words(simple)), 2, Tone::Plain))
}

fn words(simple: &Simple) -> String {
    simple.argv.iter().map(|word| escape_line(&word.picture())).collect::<Vec<_>>().join(" ")
}
