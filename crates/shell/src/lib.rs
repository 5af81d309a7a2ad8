//! What would this command do? Shell text in, an assessment out: risk, reasons with byte spans, the simple
//! commands it would start.
//!
//! Pure: no I/O, no clock, no async, and no dependency on the rest of the product. Four layers: allowlist
//! (`cover`), shell syntax (`syntax`), safe programs (`safe`), dangers (`danger`). All of them look at parsed
//! commands, never at raw text.
#![forbid(unsafe_code)]

mod assess;
mod budget;
mod command;
mod cover;
mod danger;
mod effect;
mod effects;
mod entry;
mod expand;
mod input;
mod location;
mod obeyed;
mod offer;
mod parse;
mod pool;
mod project;
mod project_files;
mod reason;
mod record;
mod rule_error;
mod rules;
mod safe;
mod surroundings;
mod syntax;
mod unwrap;
mod walk;
mod word;

pub use assess::{Assessment, Flags, Options, Resolve, assess};
pub use command::{Assignment, HereDoc, Place, Redirect, RedirectKind, RunsIn, Simple, Stdin, Target, Via};
pub use cover::{Coverage, Verdict, cover, verdict, verdict_of};
pub use danger::{Does, tells};
pub use effect::{Mark, Marks, Reversibility};
pub use effects::{
    Change, Code, Compiler as EffectsCompiler, Effect, History, Reach, ServiceKind, Table as EffectsTable, Told, tell,
};
pub use entry::Entry;
pub use input::MAX_TEXT;
pub use location::Location;
pub use obeyed::Obeyed;
pub use offer::Offer;
pub use project::{Project, Projects};
pub use project_files::{Harmless, ProjectFile, Search};
pub use reason::{Layer, Reason, Risk};
pub use record::{Record, RecordedCommand, RecordedWord};
pub use rule_error::RuleError;
pub use rules::Rules;
pub use safe::{glob as glob_matches, secret_path};
pub use syntax::{
    is_dangerous_name as is_dangerous_variable, is_ordinary_name as is_ordinary_variable,
    is_steering_name as is_steering_variable,
};
pub use word::{Dynamic, Source, Span, Value, Word};
