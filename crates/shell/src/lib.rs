//! What would this command do? Shell text in, an assessment out: risk, reasons with byte spans, the simple
//! commands it would start.
//!
//! Pure: no I/O, no clock, no async, and no dependency on the rest of the product. Four layers: allowlist
//! (`cover`), shell syntax (`syntax`), safe programs (`safe`), dangers (`danger`). All of them look at parsed
//! commands, never at raw text.
#![forbid(unsafe_code)]

mod assess;
mod command;
mod cover;
mod danger;
mod effect;
mod entry;
mod expand;
mod input;
mod offer;
mod parse;
mod pool;
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
pub use command::{Assignment, HereDoc, Place, Redirect, RedirectKind, Simple, Stdin, Target, Via};
pub use cover::{Coverage, Verdict, cover, verdict, verdict_of};
pub use danger::Does;
pub use effect::{Effect, Effects, Reversibility};
pub use entry::Entry;
pub use input::MAX_TEXT;
pub use offer::Offer;
pub use reason::{Layer, Reason, Risk};
pub use record::{Record, RecordedCommand, RecordedWord};
pub use rule_error::RuleError;
pub use rules::Rules;
pub use syntax::is_dangerous_name as is_dangerous_variable;
pub use word::{Dynamic, Source, Span, Value, Word};
