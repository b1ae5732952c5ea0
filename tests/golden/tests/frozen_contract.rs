//! Checks that the released contract does not change. `wit/FROZEN.sha256` contains the digest of each released file, in
//! the format of sha256sum, and `wit/FROZEN-additions.sha256` the digests of files that were added later. The test
//! fails if a file differs, is missing or is not listed.
//!
//! `wit/README.md` describes under "How the contract grows" how to extend the contract: a new version has its own
//! folder and its own list, and the files and lists of this version do not change.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

fn wit() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../wit")
}

/// Returns the digest of every WIT file, by the file's path in the folder.
fn files() -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    for folder in ["", "deps"] {
        for entry in fs::read_dir(wit().join(folder)).expect("the contract is there") {
            let path = entry.expect("an entry").path();
            if path.extension().is_some_and(|extension| extension == "wit") {
                let bytes = fs::read(&path).expect("a file of the contract");
                let digest = hex::encode(Sha256::digest(&bytes));
                let name = path.strip_prefix(wit()).expect("inside").display().to_string();
                files.insert(name, digest);
            }
        }
    }
    files
}

fn frozen() -> BTreeMap<String, String> {
    let read = |name: &str| fs::read_to_string(wit().join(name)).expect("the list of frozen files");
    let text = ["FROZEN.sha256", "FROZEN-additions.sha256"].map(read).concat();
    let entry = |line: &str| line.split_once("  ").map(|(digest, name)| (name.to_owned(), digest.to_owned()));
    text.lines().map(|line| entry(line).expect("a digest, two spaces, a path")).collect()
}

#[test]
fn frozen_contract_files_are_unchanged() {
    let hint = "a released contract is never changed; wit/README.md says how it grows";
    assert_eq!(files(), frozen(), "{hint}");
}

#[test]
fn every_package_has_its_frozen_version() {
    for name in frozen().into_keys() {
        let text = fs::read_to_string(wit().join(&name)).expect("a file of the contract");
        let package = text.lines().find(|line| line.starts_with("package ")).expect("a package");
        assert!(package.starts_with("package terrane:") && package.ends_with("@0.1.0;"), "{name}: {package}");
    }
}
