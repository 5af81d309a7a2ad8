//! What was found in a text, in plain words.

use super::document::Document;
use super::scripts::{Suspect, Why};
use super::tally::Tally;
use super::{MarkKind, Notice, count, line, plural};
use crate::mask::Redaction;

const MAX_WORD_CHARS: usize = 60;

/// The notices on one section. Made before the section is finished, from what was counted on the way.
pub(super) fn notices(section: &str, document: &Document, out: &mut Vec<Notice>) {
    let Tally { control, hidden, space, unassigned, overlay, imitation, suspects, more_suspects } = &document.tally;
    let mut found = |code: &str, number: usize, text: String| {
        if number > 0 {
            out.push(Notice { code: code.to_owned(), section: section.to_owned(), text });
        }
    };
    let counted = |number: usize, one: &str, many: &str| {
        let (what, verb) = if number == 1 { (one, "is") } else { (many, "are") };
        format!("{} {what} {verb} shown as \\u{{…}}", count(number))
    };
    let characters =
        |number: usize, which: &str| counted(number, &format!("{which} character"), &format!("{which} characters"));
    found("hidden_characters", *hidden, characters(*hidden, "invisible or direction-changing"));
    found("control_characters", *control, characters(*control, "control"));
    found("odd_spaces", *space, counted(*space, "unusual space", "unusual spaces"));
    found("unassigned_characters", *unassigned, characters(*unassigned, "private or unassigned"));
    found("stray_marks", *overlay, counted(*overlay, "stray combining mark", "stray combining marks"));
    let imitated = format!(
        "the text imitates {} {} that only this screen writes; each imitation starts with \\u{{…}}",
        count(*imitation),
        plural("sign", *imitation)
    );
    found("imitated_signs", *imitation, imitated);
    for (word, suspect) in suspects {
        found("look_alike", 1, suspicion(word, suspect));
    }
    let more = format!("{} more such {}", count(*more_suspects), plural("word", *more_suspects));
    found("look_alike", *more_suspects, more);
    let folds = document.folds.len();
    let away: usize = document.folds.iter().map(|(chars, ..)| chars).sum();
    let folded = format!(
        "{} hidden in {} folded {}",
        if away == 1 { "1 character is".to_owned() } else { format!("{} characters are", count(away)) },
        count(folds),
        plural("part", folds)
    );
    found("folded", folds, folded);
}

/// Where a mask hides part of what makes a command risky, a person is told.
pub(super) fn masked_risks(section: &str, document: &Document, secrets: &[Redaction], out: &mut Vec<Notice>) {
    for secret in secrets {
        let message = document.overlays.iter().find_map(|overlay| match &overlay.kind {
            MarkKind::Risk { message, .. } => {
                let touches = overlay.source.start < secret.end && secret.start < overlay.source.end;
                touches.then_some(message)
            }
            MarkKind::Escaped | MarkKind::Padding | MarkKind::MixedScript | MarkKind::Masked | MarkKind::Folded => None,
        });
        if let Some(message) = message {
            let text = format!("a masked value is part of what is risky: {} ({message})", secret.label());
            out.push(Notice { code: "masked_risk".to_owned(), section: section.to_owned(), text });
        }
    }
}

fn suspicion(word: &str, suspect: &Suspect) -> String {
    let short = line(&word.chars().take(MAX_WORD_CHARS).collect::<String>());
    let cut = if word.chars().nth(MAX_WORD_CHARS).is_some() { " […]" } else { "" };
    let mut text = match &suspect.why {
        Why::Mixed(scripts) => format!("`{short}`{cut} mixes letters of {}", scripts.join(" and ")),
        Why::LooksLike(ascii) => {
            let ascii = line(&ascii.chars().take(MAX_WORD_CHARS).collect::<String>());
            format!("`{short}`{cut} only looks like `{ascii}`: its letters are others")
        }
        Why::ForeignHost => format!("the host `{short}`{cut} is not written in ASCII"),
    };
    if let Some(punycode) = &suspect.punycode {
        text.push_str(&format!("; the host is `{punycode}`"));
    }
    text
}
