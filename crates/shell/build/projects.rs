//! Turns `rules/projects.toml` into constants for `src/project_files.rs`.

use std::error::Error;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::{env, fs};

use serde::Deserialize;

use crate::project::Project;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    project: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: Project,
    #[serde(rename = "summary")]
    _summary: String,
    #[serde(default)]
    variables: Vec<String>,
    files: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    paths: Vec<String>,
    search: Search,
    harmless: Harmless,
    #[serde(default)]
    without: Vec<String>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Search {
    Here,
    Upwards,
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Harmless {
    Always,
    Absent,
    Without,
    PlainVersions,
    GitRepository,
    InstalledToolchain,
}

pub fn generate() -> Result<(), Box<dyn Error>> {
    let path = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("rules/projects.toml");
    let file: File =
        toml::from_str(&fs::read_to_string(&path)?).map_err(|error| format!("{}: {error}", path.display()))?;
    let (mut files, mut variables) = (String::new(), String::new());
    for entry in file.project {
        let name = entry.name;
        write!(files, "    (Project::{name:?}, &[")?;
        for row in &entry.files {
            let harmless = match (row.harmless, row.without.as_slice()) {
                (Harmless::Without, []) => return Err(format!("{name:?}: `without` needs words").into()),
                (Harmless::Without, words) => format!("Without(&{words:?})"),
                (other, []) => format!("{other:?}"),
                (_, _) => return Err(format!("{name:?}: words are for `harmless = \"without\"`").into()),
            };
            for path in &row.paths {
                let search = row.search;
                write!(
                    files,
                    "ProjectFile {{ path: {path:?}, search: Search::{search:?}, harmless: Harmless::{harmless} }}, "
                )?;
            }
        }
        writeln!(files, "]),")?;
        writeln!(variables, "    (Project::{name:?}, &{:?}),", entry.variables)?;
    }
    let source = format!(
        "static FILES: &[(Project, &[ProjectFile])] = &[\n{files}];\nstatic VARIABLES: &[(Project, &[&str])] = &[\n{variables}];\n"
    );
    fs::write(PathBuf::from(env::var("OUT_DIR")?).join("projects.rs"), source)?;
    Ok(())
}
