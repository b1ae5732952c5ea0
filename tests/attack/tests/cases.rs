//! Tests faults that were found in the past. Each file of `cases/` is served on both sides, and its requests must not
//! show the fault.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use std::path::Path;

use terrane_attack_tests::case::Case;
use terrane_attack_tests::server::Stage;

#[test]
fn fixed_faults_do_not_reappear() {
    let stage = Stage::new(Path::new(env!("CARGO_BIN_EXE_terrane-attack"))).unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases");
    let mut faults = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let case = Case::read(&path).unwrap();
        match case.replay(&stage) {
            Ok(None) => {}
            Ok(Some(finding)) => faults.push(format!("{}: {}", path.display(), finding.fault)),
            // A project that the server refuses to load discloses nothing either.
            Err(error) if error.to_string().contains("error[") => {}
            Err(error) => faults.push(format!("{}: {error}", path.display())),
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
}
