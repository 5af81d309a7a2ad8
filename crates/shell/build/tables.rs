//! Reading values out of a TOML table, with errors that name the key.

use super::Outcome;
use toml::{Table, Value};

pub fn known_keys(table: &Table, allowed: &[&[&str]]) -> Outcome<()> {
    match table.keys().find(|key| !allowed.iter().any(|keys| keys.contains(&key.as_str()))) {
        Some(key) => Err(format!("unknown key `{key}`").into()),
        None => Ok(()),
    }
}

pub fn string(table: &Table, key: &str) -> Outcome<String> {
    match table.get(key) {
        None => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(_) => Err(format!("`{key}` is text").into()),
    }
}

pub fn flag(table: &Table, key: &str) -> Outcome<bool> {
    match table.get(key) {
        None => Ok(false),
        Some(Value::Boolean(flag)) => Ok(*flag),
        Some(_) => Err(format!("`{key}` is true or false").into()),
    }
}

pub fn list(table: &Table, key: &str) -> Outcome<Vec<String>> {
    let wrong = || format!("`{key}` is a list of texts");
    match table.get(key) {
        None => Ok(Vec::new()),
        Some(Value::Array(items)) => items.iter().map(|item| Ok(item.as_str().ok_or_else(wrong)?.to_owned())).collect(),
        Some(_) => Err(wrong().into()),
    }
}

pub fn denials(table: &Table, key: &str) -> Outcome<Vec<(String, String)>> {
    let wrong = || format!("`{key}` is a table of `options = \"code: reason\"`");
    match table.get(key) {
        None => Ok(Vec::new()),
        Some(Value::Table(entries)) => {
            entries.iter().map(|(keys, text)| Ok((keys.clone(), text.as_str().ok_or_else(wrong)?.to_owned()))).collect()
        }
        Some(_) => Err(wrong().into()),
    }
}
