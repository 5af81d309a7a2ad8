//! Allowlists of other tools, read into a policy. Each format has a file that turns its document into [`Line`]s; one
//! merge, the same for all, puts them into a profile and reports on every line. Nothing here talks to a gate.
//!
//! INVARIANT: what is imported never allows more than the source did, nor than the profile's own terms do.

mod claude;
mod gateway;
mod hub;
mod line;
mod merge;
mod pattern;
mod reach;
mod report;
mod source;
mod terminal;
#[cfg(test)]
mod tests;
mod texts;

pub use merge::{Merged, merge};
pub use source::{Format, Source};

use line::Line;

/// What the person says beside the file.
#[derive(Clone, Debug, Default)]
pub struct Wishes {
    /// `security: full` may be taken over.
    pub allow_full: bool,
    /// Of a gateway's document: the agent that the profile is for.
    pub agent: Option<String>,
    /// What a leading `~` means.
    pub home: Option<String>,
}

/// Every line of the source with what is to become of it.
pub fn lines(source: &Source, wishes: &Wishes) -> anyhow::Result<Vec<Line>> {
    match source.format {
        Format::Gateway => gateway::lines(&source.document, wishes),
        Format::Hub => hub::lines(&source.document),
        Format::Terminal => terminal::lines(&source.document, wishes),
        Format::ClaudeCode => claude::lines(&source.document, wishes),
    }
}
