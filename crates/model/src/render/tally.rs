//! What was found in a text while it was written out. Counts; the words are made in `notice`.

use super::escape::Class;
use super::scripts::Suspect;

/// Suspect words kept to be named in a notice; the rest are counted.
pub(super) const MAX_NAMED: usize = 3;

/// What was found on the way, counted before anything is folded.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub control: usize,
    pub hidden: usize,
    pub space: usize,
    pub unassigned: usize,
    pub overlay: usize,
    pub imitation: usize,
    pub suspects: Vec<(String, Suspect)>,
    pub more_suspects: usize,
}

impl Tally {
    pub fn count(&mut self, class: Class, more: usize) {
        let counter = match class {
            Class::Layout => return,
            Class::Control => &mut self.control,
            Class::Hidden => &mut self.hidden,
            Class::Space => &mut self.space,
            Class::Unassigned => &mut self.unassigned,
            Class::Overlay => &mut self.overlay,
            Class::Imitation => &mut self.imitation,
        };
        *counter += more;
    }

    pub fn suspect(&mut self, word: String, suspect: Suspect) {
        if self.suspects.len() < MAX_NAMED {
            self.suspects.push((word, suspect));
        } else {
            self.more_suspects += 1;
        }
    }

    pub fn add(&mut self, other: Self) {
        self.control += other.control;
        self.hidden += other.hidden;
        self.space += other.space;
        self.unassigned += other.unassigned;
        self.overlay += other.overlay;
        self.imitation += other.imitation;
        self.more_suspects += other.more_suspects;
        for (word, suspect) in other.suspects {
            self.suspect(word, suspect);
        }
    }
}
