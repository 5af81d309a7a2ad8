//! A rule file that cannot be used, and where. Knows no format, so that the build script tells of the built-in files
//! with the same words.

/// A rule file that cannot be used, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleError {
    /// As the caller named it; empty when it did not.
    pub file: String,
    /// From 1.
    pub line: usize,
    pub message: String,
}

impl std::fmt::Display for RuleError {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { file, line, message } = self;
        if file.is_empty() { write!(to, "line {line}: {message}") } else { write!(to, "{file}:{line}: {message}") }
    }
}

impl std::error::Error for RuleError {}

impl RuleError {
    pub fn at(text: &str, place: std::ops::Range<usize>, message: String) -> Self {
        let line = 1 + text.bytes().take(place.start).filter(|byte| *byte == b'\n').count();
        Self { file: String::new(), line, message }
    }

    /// What the reader of TOML found wrong.
    pub fn toml(text: &str, error: &toml::de::Error) -> Self {
        Self::at(text, error.span().unwrap_or_default(), error.message().to_owned())
    }

    pub fn of(mut self, file: &str) -> Self {
        file.clone_into(&mut self.file);
        self
    }
}
