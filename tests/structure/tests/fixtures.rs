//! Checks the names and comments of YAML fixtures against the terms of `terms.txt`.
//!
//! In: the YAML files of tests and examples. Out: a failure for each name, description or comment that opens with a noun
//! clause or contains a term to avoid. Not here: data and SQL of fixtures.

use std::fs;
use std::path::{Path, PathBuf};

use terrane_structure_tests::language::{findings, terms};
use terrane_structure_tests::sources::{assert_none, read, root, shown};

const TERMS: &str = "tests/structure/language/terms.txt";

/// The folders with fixtures of tests. Other examples are left out, because they show how users name their members.
const FOLDERS: [&str; 4] = ["tests", "runtime", "examples/flights/tests", "plugins"];

#[test]
fn fixtures_have_plain_names_and_comments() {
    let terms = terms(&read(&root().join(TERMS))).expect("the list of terms is valid");
    let mut faults = Vec::new();
    let mut texts = 0;
    for file in FOLDERS.iter().flat_map(|folder| fixtures(&root().join(folder))) {
        for (index, line) in read(&file).lines().enumerate() {
            let Some(text) = text(line) else { continue };
            texts += 1;
            let found = findings(&as_comment(text), &terms);
            faults.extend(found.iter().map(|found| format!("{}:{}: {found:?}", shown(&file), index + 1)));
        }
    }
    assert!(texts > 1_000, "only {texts} names and comments were found");
    assert_none(&faults);
}

#[test]
fn names_and_comments_are_texts() {
    assert_eq!(text("  - name: an unknown cube"), Some("an unknown cube"));
    assert_eq!(text("about: \"Rows, once.\""), Some("Rows, once."));
    assert_eq!(text("# A comment."), Some("A comment."));
    assert_eq!(text("  - {name: orders, type: count}"), None);
    assert_eq!(text("name: orders"), None, "a name of one word is data");
}

/// Returns a string as a documentation comment, which the scan of Rust sources reads. Names begin in lower case.
fn as_comment(text: &str) -> String {
    let (first, rest) = text.split_at(text.chars().next().map_or(0, char::len_utf8));
    format!("/// {}{rest}\n", first.to_uppercase())
}

/// Returns the text of a line with a name, a description or a comment. A string has several words.
fn text(line: &str) -> Option<&str> {
    let line = line.trim();
    let line = line.strip_prefix("- ").unwrap_or(line);
    let keys = ["name: ", "about: ", "# "];
    let text = keys.iter().find_map(|key| line.strip_prefix(key))?.trim_matches(['"', '\'']);
    (text.contains(' ') && !text.starts_with(['{', '['])).then_some(text)
}

/// Returns the YAML files below a folder, in order.
fn fixtures(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("reading {}: {error}", folder.display()));
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if path.is_dir() && !name.starts_with('.') && !["target", "node_modules"].contains(&&*name) {
            found.extend(fixtures(&path));
        } else if name.ends_with(".yml") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Shows that the check can fail.
#[test]
fn terms_in_a_fixture_are_found() {
    let terms = terms(&read(&root().join(TERMS))).expect("the list of terms is valid");
    let count = |text: &str| findings(&as_comment(text), &terms).len();
    assert_eq!((count(&["what no", "body reads"].concat()), count("a cube without columns")), (2, 0));
}
