//! The wire, pinned: a change to a route or a type shows up as a change to `docs/openapi.json`.

use std::path::Path;

#[test]
fn the_document_is_the_one_in_docs() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
    let generated = countersign_doors::http::openapi_document().to_pretty_json().unwrap() + "\n";
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &generated).unwrap();
    }
    let stored = std::fs::read_to_string(&path).unwrap();
    assert!(
        stored == generated,
        "the wire changed: look at it, then run with UPDATE_GOLDEN=1 to write docs/openapi.json"
    );
}
