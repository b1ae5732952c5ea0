//! Checks that tests assert codes and data, and not the words of messages, apart from the numbers in
//! `asserted_messages.txt`.
//!
//! In: the sources of all crates. Out: a failure for each file that asserts more words, or fewer, than the list states.
//! The numbers can only shrink. Not here: snapshots and the lists of texts, which are the places for words.

use std::collections::BTreeMap;

use terrane_structure_tests::asserted_messages::asserted_words;
use terrane_structure_tests::sources::{FOLDERS, assert_none, crates, list, read, root, shown};

const ALLOWED: &str = "tests/structure/asserted_messages.txt";

#[test]
fn words_of_messages_are_asserted_in_snapshots_only() {
    let text = read(&root().join(ALLOWED));
    let mut allowed: BTreeMap<String, usize> = list(&text).into_iter().map(entry).collect();
    let mut faults = Vec::new();
    for file in crates(&FOLDERS).into_iter().flat_map(|source| source.files) {
        let name = shown(&file);
        // The tests of this scan contain examples of such assertions.
        if name.starts_with("tests/structure/") {
            continue;
        }
        let is_test = name.starts_with("tests/") || name.contains("/tests/") || name.ends_with("/tests.rs");
        let found = asserted_words(&read(&file), is_test);
        let limit = allowed.remove(&name).unwrap_or_default();
        if found.len() > limit {
            let places = found.iter().map(|place| format!("line {}: {}", place.line, place.pattern));
            let places: Vec<String> = places.collect();
            let advice = "assert a code, a kind or data";
            faults.push(format!("{name}: {} instead of {limit}: {advice}: {}", found.len(), places.join(", ")));
        } else if found.len() < limit {
            faults.push(format!("{name}: {} instead of {limit}: write the smaller number into {ALLOWED}", found.len()));
        }
    }
    faults.extend(allowed.into_keys().map(|name| format!("{name} does not exist: remove it from {ALLOWED}")));
    assert_none(&faults);
}

/// Parses an entry of the form `file | number`.
fn entry(line: &str) -> (String, usize) {
    let Some((file, number)) = line.split_once('|') else { panic!("{ALLOWED}: expected `file | number`: {line}") };
    let number = number.trim().parse().unwrap_or_else(|error| panic!("{ALLOWED}: {line}: {error}"));
    (file.trim().to_owned(), number)
}
