//! Checks that no code decides by the text of a message, except where `messages.txt` allows it.
//!
//! In: the sources of the product. Out: a failure for each place that `messages.txt` does not allow with a reason, and
//! for each entry that matches no place. Not here: tests, which may compare texts.

use std::collections::BTreeSet;

use terrane_structure_tests::messages::reads;
use terrane_structure_tests::sources::{assert_none, crates, list, read, root, shown};

const ALLOWED: &str = "tests/structure/messages.txt";

#[test]
fn only_listed_places_read_messages() {
    let text = read(&root().join(ALLOWED));
    let allowed: BTreeSet<(String, String)> = list(&text).into_iter().map(entry).collect();
    let mut found = BTreeSet::new();
    let mut violations = Vec::new();
    for file in crates(&["runtime", "sdk", "plugins", "xtask"]).into_iter().flat_map(|source| source.files) {
        let name = shown(&file);
        if ["/tests/", "/benches/", "/tests.rs"].iter().any(|part| name.contains(part)) {
            continue;
        }
        for place in reads(&read(&file)) {
            let entry = (name.clone(), place.pattern.clone());
            if !allowed.contains(&entry) {
                violations.push(format!(
                    "{name}:{}: `{}` decides by a message; use a code or a kind",
                    place.line, place.pattern
                ));
            }
            found.insert(entry);
        }
    }
    let unused =
        allowed.difference(&found).map(|(file, pattern)| format!("{file} | {pattern}: remove it from {ALLOWED}"));
    violations.extend(unused);
    assert_none(&violations);
}

/// Parses an entry of the form `file | pattern | reason`.
fn entry(line: &str) -> (String, String) {
    let parts: Vec<&str> = line.split('|').map(str::trim).collect();
    let [file, pattern, reason] = parts[..] else { panic!("{ALLOWED}: expected `file | pattern | reason`: {line}") };
    assert!(!reason.is_empty(), "{ALLOWED}: no reason: {line}");
    (file.to_owned(), pattern.to_owned())
}
