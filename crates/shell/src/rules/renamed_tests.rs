//! The built-in tables as a user would write them: one format, one meaning.

use super::*;
use crate::assess::Assessment;

/// Every built-in file, its programs under other names, is a user's file: it loads, and its examples hold.
#[test]
fn the_built_in_tables_mean_the_same_as_a_users() {
    let mut programs = 0;
    for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/rules/programs")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|end| end != "toml") {
            continue;
        }
        let mut table: toml::Table = std::fs::read_to_string(&path).unwrap().parse().unwrap();
        table.remove("environment");
        let Some(toml::Value::Array(entries)) = table.get_mut("program") else { continue };
        for entry in entries.iter_mut() {
            let entry = entry.as_table_mut().unwrap();
            let list = |value: Option<&toml::Value>| -> Vec<String> {
                let items = value.and_then(toml::Value::as_array).into_iter().flatten();
                items.map(|item| item.as_str().unwrap().to_owned()).collect()
            };
            let mut names = list(entry.get("names"));
            names.retain(|name| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.+-".contains(&byte)));
            for key in ["match", "no_match"] {
                let own = |line: String| {
                    let (name, rest) = line.split_once(' ').unwrap_or((&line, ""));
                    names.iter().any(|known| known == name).then(|| format!("zz{name} {rest}").trim_end().to_owned())
                };
                let examples: Vec<String> = list(entry.get(key)).into_iter().filter_map(own).collect();
                entry.insert(key.to_owned(), examples.into());
            }
            programs += names.len();
            entry.insert("names".to_owned(), names.iter().map(|name| format!("zz{name}")).collect::<Vec<_>>().into());
        }
        let has = |entry: &toml::Value, key: &str| !entry[key].as_array().unwrap().is_empty();
        entries.retain(|entry| has(entry, "match") && has(entry, "names"));
        let examples: Vec<String> = entries
            .iter()
            .flat_map(|entry| ["match", "no_match"].map(|key| entry[key].as_array().unwrap()))
            .flatten()
            .map(|line| line.as_str().unwrap().to_owned())
            .collect();
        let text = toml::to_string(&table).unwrap();
        let rules = Rules::parse_all(&[("renamed", &text)]).unwrap_or_else(|error| {
            panic!("{}: {error}\n{}", path.display(), text.lines().nth(error.line - 1).unwrap_or_default())
        });
        for line in examples {
            let built_in = line.strip_prefix("zz").unwrap();
            let said = |assessment: Assessment| -> Vec<String> {
                let of_program = assessment.reasons.into_iter().filter(|reason| reason.layer == Layer::Program);
                of_program.map(|reason| format!("{} {}", reason.code, reason.message.replace("`zz", "`"))).collect()
            };
            let expected = assess(built_in, &Options::default());
            // `find -exec`, `test -v`: what else they run is known by their names.
            if matches!(expected.parts.as_slice(), [part] if !part.role.carrier) {
                assert_eq!(
                    said(assess(&line, &Options { rules: Some(&rules), ..Options::default() })),
                    said(expected),
                    "{line}"
                );
            }
        }
    }
    assert!(programs > 300, "{programs}");
}
