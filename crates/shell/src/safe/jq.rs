//! What a `jq` filter does besides filtering: reads the environment, or loads modules.

use super::check::Verdict;

/// Looks at names wherever they stand, in strings too (`"\(env)"`): a false alarm there costs little.
pub(super) fn filter(text: &str) -> Verdict {
    let mut before = ' ';
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if !(first.is_ascii_alphabetic() || first == '_') {
            before = first;
            rest = rest.get(first.len_utf8()..).unwrap_or("");
            continue;
        }
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
        let (name, after) = rest.split_at_checked(end).unwrap_or((rest, ""));
        match name {
            "ENV" if before == '$' => return Err(("dumps_environment", "reads the environment, where secrets are")),
            // The text `"env"` alone is a key or a value.
            "env" if before == '"' && after.starts_with('"') => {}
            "env" if before != '.' && before != '$' => {
                return Err(("dumps_environment", "reads the environment, where secrets are"));
            }
            "import" | "include" if before != '.' && before != '$' => {
                return Err(("runs_programs", "loads a module that is not shown"));
            }
            // What the YAML cousin adds: other files, and text as code.
            "strenv" | "envsubst" | "eval" | "eval_all" | "system" | "load" | "load_str" | "load_xml"
            | "load_props" | "load_base64"
                if before != '.' && before != '$' && before != '"' =>
            {
                return Err(("sensitive_path", "reads the environment or files that are not shown"));
            }
            _ => {}
        }
        before = 'a';
        rest = after;
    }
    Ok(())
}
