//! Checks the names of all tests of the workspace.
//!
//! In: the sources. Out: a failure for each name that violates a rule of `test_names`. Not here: the names of other
//! functions, and tests in other languages.

use terrane_structure_tests::sources::{FOLDERS, assert_none, crates, read, shown};
use terrane_structure_tests::test_names::{fault, test_names};

#[test]
fn test_names_have_subject_and_result() {
    let mut violations = Vec::new();
    let mut count = 0;
    for file in crates(&FOLDERS).into_iter().flat_map(|source| source.files) {
        let path = shown(&file);
        for test in test_names(&read(&file)) {
            count += 1;
            violations.extend(fault(&test.name).map(|fault| format!("{path}:{}: `{}`: {fault}", test.line, test.name)));
        }
    }
    assert!(count > 1_000, "tests are found");
    assert_none(&violations);
}
