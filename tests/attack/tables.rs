//! The tables of lines and fixtures, as the TOML files beside this say them.

use std::collections::BTreeMap;

use serde::Deserialize;

#[derive(Deserialize)]
pub struct Places {
    pub inside: Vec<String>,
    pub any: Vec<String>,
    pub around: Vec<String>,
}

#[derive(Deserialize)]
pub struct Reading {
    pub secrets: Vec<(String, String)>,
    pub linked: Vec<(String, String)>,
    pub readers: Vec<String>,
    pub sweepers: Vec<String>,
}

#[derive(Deserialize)]
pub struct Code {
    pub naming: Vec<String>,
    pub uses: Vec<String>,
    pub options: Vec<String>,
    pub words: Vec<String>,
    pub setting: Vec<String>,
    pub variables: Vec<(String, String, String)>,
}

#[derive(Deserialize)]
pub struct Fixture {
    pub folder: String,
    pub program: String,
    pub trigger: String,
    marker: Option<String>,
    #[serde(default)]
    pub verbs: Vec<String>,
}

impl Fixture {
    pub fn marker(&self) -> &str {
        self.marker.as_deref().unwrap_or(&self.folder)
    }
}

#[derive(Deserialize)]
pub struct Fixtures {
    pub optional: Vec<String>,
    pub fixture: Vec<Fixture>,
    pub verbs: BTreeMap<String, Vec<String>>,
}

pub struct Tables {
    pub places: Places,
    pub reading: Reading,
    pub code: Code,
    pub fixtures: Fixtures,
}

impl Tables {
    pub fn read() -> Self {
        let mut tables = Self {
            places: toml::from_str(include_str!("places.toml")).unwrap(),
            reading: toml::from_str(include_str!("reading.toml")).unwrap(),
            code: toml::from_str(include_str!("code.toml")).unwrap(),
            fixtures: toml::from_str(include_str!("fixtures.toml")).unwrap(),
        };
        // What is large and not here is said, never skipped in silence; everything else has to be here.
        for program in &tables.fixtures.optional {
            if !installed(program) {
                println!("not run: {program} is not installed");
            }
        }
        let Fixtures { optional, fixture, .. } = &mut tables.fixtures;
        fixture.retain(|fixture| !optional.contains(&fixture.program) || installed(&fixture.program));
        tables
    }
}

pub fn installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}
