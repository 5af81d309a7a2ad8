//! What bash makes of a word before it runs anything: braces, ANSI-C quoting, splitting into fields. Owns text
//! only; variables and substitutions are the walker's.

pub(crate) mod ansi;
pub(crate) mod brace;
pub(crate) mod fields;
pub(crate) mod text;
