//! The user's own rules for commands: files in the format of the built-in ones, taken together or not at all.

use std::path::PathBuf;

use anyhow::Context;
use countersign_shell::Rules;

/// More is no list of rules.
const MAX_FILE: u64 = 1024 * 1024;

/// Reads the files; none are no rules. An error names file and line, and nothing of them counts.
pub fn read(files: &[PathBuf]) -> anyhow::Result<Option<Rules>> {
    if files.is_empty() {
        return Ok(None);
    }
    let mut read: Vec<(String, String)> = Vec::new();
    for file in files {
        let name = file.display().to_string();
        let size = std::fs::metadata(file).with_context(|| format!("the rules in `{name}` cannot be read"))?.len();
        anyhow::ensure!(size <= MAX_FILE, "`{name}` is over 1 MiB, too long for a file of rules; split it");
        let text = std::fs::read_to_string(file).with_context(|| format!("the rules in `{name}` cannot be read"))?;
        read.push((name, text));
    }
    let read: Vec<(&str, &str)> = read.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    Ok(Some(Rules::parse_all(&read)?))
}
