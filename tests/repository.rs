//! What the repository promises about itself: arrows point one way, the map is true, licences are allowed.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "test code: a broken expectation is a failed test"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What each crate may depend on, of ours. A crate without the dependency cannot leak.
const ARROWS: [(&str, &[&str]); 11] = [
    ("countersign-shell", &[]),
    ("countersign-model", &["countersign-shell"]),
    ("countersign-gate", &["countersign-model"]),
    ("countersign-ledger", &["countersign-gate", "countersign-model"]),
    ("countersign-doors", &["countersign-gate", "countersign-model"]),
    ("countersign-channels", &["countersign-gate", "countersign-model"]),
    ("countersign-engine", &["countersign-model", "countersign-shell"]),
    ("countersign-runner", &["countersign-model", "countersign-shell"]),
    (
        "countersign",
        &[
            "countersign-channels",
            "countersign-doors",
            "countersign-engine",
            "countersign-gate",
            "countersign-ledger",
            "countersign-model",
            "countersign-runner",
            "countersign-shell",
        ],
    ),
    ("countersign-testkit", &["countersign-gate", "countersign-model"]),
    (
        "countersign-benches",
        &["countersign-doors", "countersign-gate", "countersign-ledger", "countersign-model", "countersign-shell"],
    ),
];

/// Crates that the domain must not know: no async, no SQL, no HTTP.
const FOREIGN_TO_THE_MODEL: [&str; 6] = ["tokio", "axum", "hyper", "rusqlite", "getrandom", "tracing"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn metadata(extra: &[&str]) -> serde_json::Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--offline", "--locked"])
        .args(extra)
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Each of our packages with the names it depends on, tests aside.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let metadata = metadata(&["--no-deps"]);
    let normal = |package: &serde_json::Value| {
        let all = package["dependencies"].as_array().unwrap();
        all.iter().filter(|dep| dep["kind"] != "dev").map(|dep| dep["name"].as_str().unwrap().to_owned()).collect()
    };
    let packages = metadata["packages"].as_array().unwrap();
    packages.iter().map(|package| (package["name"].as_str().unwrap().to_owned(), normal(package))).collect()
}

#[test]
fn no_crate_depends_upwards() {
    let found = dependencies();
    let known: BTreeSet<_> = ARROWS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(found.keys().cloned().collect::<BTreeSet<_>>(), known, "a new crate needs its place among the arrows");
    for (name, allowed) in ARROWS {
        let ours = found[name].iter().filter(|dep| dep.starts_with("countersign"));
        for dep in ours {
            assert!(allowed.contains(&dep.as_str()), "{name} must not depend on {dep}");
        }
    }
    for foreign in FOREIGN_TO_THE_MODEL {
        assert!(!found["countersign-model"].contains(foreign), "the domain must not know {foreign}");
    }
    assert!(!found["countersign"].contains("countersign-testkit"), "the testkit is not shipped");
}

#[test]
fn the_map_names_places_that_exist() {
    let root = root();
    for page in ["ARCHITECTURE.md", "README.md"] {
        let text = std::fs::read_to_string(root.join(page)).unwrap();
        let quoted = text.split('`').skip(1).step_by(2);
        let folders = ["crates/", "docs/", "tests/", "benches/", ".ci/"];
        let mut checked = 0;
        for place in quoted.filter(|word| folders.iter().any(|folder| word.starts_with(folder))) {
            let place = place.split(['*', ' ', '{']).next().unwrap();
            assert!(root.join(place).exists(), "{page} names `{place}`, which is not there");
            checked += 1;
        }
        assert!(checked > 0, "{page} names no place at all");
    }
}

#[test]
fn links_between_pages_lead_somewhere() {
    let root = root();
    let mut pages: Vec<PathBuf> =
        ["README.md", "ARCHITECTURE.md", "CHANGELOG.md"].iter().map(|page| root.join(page)).collect();
    pages.extend(std::fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path()));
    for page in pages.iter().filter(|page| page.extension().is_some_and(|kind| kind == "md")) {
        let text = std::fs::read_to_string(page).unwrap();
        for link in text.split("](").skip(1).map(|rest| rest.split(')').next().unwrap()) {
            let target = link.split('#').next().unwrap();
            if target.is_empty() || target.contains("://") {
                continue;
            }
            assert!(page.parent().unwrap().join(target).exists(), "{} links to `{target}`", page.display());
        }
    }
}

#[test]
fn every_source_file_says_what_it_owns() {
    let mut open = vec![root().join("crates"), root().join("tests"), root().join("benches")];
    let mut seen = 0;
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|kind| kind == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                assert!(text.starts_with("//!"), "{} does not open with what it owns", path.display());
                seen += 1;
            }
        }
    }
    assert!(seen > 50, "{seen} files");
}

/// The allowed licences are those of `deny.toml`, so that there is one list.
#[test]
fn every_dependency_has_an_allowed_licence() {
    let deny: toml::Table = std::fs::read_to_string(root().join("deny.toml")).unwrap().parse().unwrap();
    let allowed: BTreeSet<&str> =
        deny["licenses"]["allow"].as_array().unwrap().iter().map(|licence| licence.as_str().unwrap()).collect();
    let metadata = metadata(&["--filter-platform", "x86_64-unknown-linux-gnu"]);
    let mut checked = 0;
    for package in metadata["packages"].as_array().unwrap() {
        let name = package["name"].as_str().unwrap();
        let licence = package["license"].as_str().unwrap_or_else(|| panic!("{name} names no licence"));
        assert!(is_allowed(licence, &allowed), "{name} is under `{licence}`");
        checked += 1;
    }
    assert!(checked > 100, "{checked} packages");
}

/// `A OR B` needs one, `A AND B` all; parentheses as written by the crates that have them.
fn is_allowed(expression: &str, allowed: &BTreeSet<&str>) -> bool {
    let expression = expression.replace('/', " OR ");
    let bare = |text: &str| text.replace(['(', ')'], "").trim().to_owned();
    expression.split(" AND ").all(|part| part.split(" OR ").any(|one| allowed.contains(bare(one).as_str())))
}
