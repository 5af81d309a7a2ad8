//! Getting values out of a foreign document: the place of what is wrong is always named.

use anyhow::{Context, bail};
use serde_json::{Map, Value};

/// As many as a list of a policy holds.
const MAX_ENTRIES: usize = 10_000;

pub type Object = Map<String, Value>;

pub fn object<'v>(value: &'v Value, at: &str) -> anyhow::Result<&'v Object> {
    value.as_object().with_context(|| wrong(at, "an object", value))
}

pub fn list<'v>(value: &'v Value, at: &str) -> anyhow::Result<&'v [Value]> {
    let list = value.as_array().with_context(|| wrong(at, "a list", value))?;
    if list.len() > MAX_ENTRIES {
        bail!("`{at}` has {} entries, and a policy has room for {MAX_ENTRIES}", list.len());
    }
    Ok(list)
}

pub fn text<'v>(value: &'v Value, at: &str) -> anyhow::Result<&'v str> {
    value.as_str().with_context(|| wrong(at, "a text", value))
}

/// A list of texts; none if the key is not there.
pub fn texts<'v>(object: &'v Object, key: &str, at: &str) -> anyhow::Result<Vec<&'v str>> {
    let Some(value) = object.get(key) else { return Ok(Vec::new()) };
    let at = join(at, key);
    list(value, &at)?.iter().enumerate().map(|(index, value)| text(value, &format!("{at}[{index}]"))).collect()
}

pub fn join(at: &str, key: &str) -> String {
    if at.is_empty() { key.to_owned() } else { format!("{at}.{key}") }
}

pub fn version_is_1(document: &Object) -> anyhow::Result<()> {
    match document.get("version") {
        Some(version) if version.as_u64() == Some(1) => Ok(()),
        Some(version) => bail!("`version` is {version}, expected 1; this format is not known here"),
        None => bail!("`version` is missing, expected 1"),
    }
}

fn wrong(at: &str, wanted: &str, got: &Value) -> String {
    let got = match got {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    };
    let at = if at.is_empty() { "the document" } else { at };
    format!("`{at}` is {got}, expected {wanted}")
}

/// What a source says in words that the document's types do not have.
pub fn unknown_word(at: &str, word: &str, known: &str) -> anyhow::Error {
    anyhow::anyhow!("`{at}` is `{word}`, expected {known}")
}
