//! Tests every difference that the fuzzer found. The product and the oracle must agree on the cases in `cases/`, and
//! must still differ on those in `cases/open/`.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use terrane_compiler::rollup::Flaw;
use terrane_oracle_tests::case::{Case, flaw_named, settings};
use terrane_oracle_tests::product::Product;

#[test]
fn fixed_differences_do_not_reappear() {
    let product = Product::start(settings()).unwrap();
    for (path, case) in cases("cases") {
        if let Some(about) = case.difference(&product).unwrap() {
            panic!("{}: {about}\n{}", path.display(), case.sql(&product));
        }
    }
}

/// Checks that each case of a planted flaw differs with this flaw. A case that agrees does not test the flaw.
#[test]
fn cases_of_planted_flaws_differ_with_them() {
    let mut product = Product::start(settings()).unwrap();
    let mut seen = BTreeSet::new();
    for (path, case) in cases("cases") {
        let Some(name) = &case.flaw else { continue };
        product.flaw = Some(flaw_named(name).unwrap_or_else(|| panic!("{}: unknown flaw `{name}`", path.display())));
        let difference = case.difference(&product).unwrap();
        assert!(difference.is_some(), "{} agrees with the flaw `{name}`", path.display());
        seen.insert(name.clone());
    }
    let lacks = |flaw: &Flaw| !seen.contains(&format!("{flaw:?}"));
    let without: Vec<Flaw> = Flaw::ALL.into_iter().filter(lacks).collect();
    assert!(without.is_empty(), "no case finds {without:?}");
}

#[test]
fn known_differences_still_differ() {
    let product = Product::start(settings()).unwrap();
    for (path, case) in cases("cases/open") {
        let differs = case.difference(&product).unwrap().is_some();
        assert!(differs, "{} agrees now: move it to cases/", path.display());
    }
}

fn cases(folder: &str) -> Vec<(PathBuf, Case)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    // The folder exists only with a case.
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    paths
        .into_iter()
        .map(|path| (path.clone(), serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap()))
        .collect()
}
