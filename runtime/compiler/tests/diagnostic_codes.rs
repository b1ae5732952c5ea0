//! Tests that the reference documents exactly the codes of the registry.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use terrane_compiler::diagnostic::Code;

const TABLE: &str = include_str!("../../docs/reference/diagnostics.md");

#[test]
fn table_of_codes_equals_the_registry() {
    let row = |code: &Code| format!("| `{code}` | {} |", code.description());
    let expected: Vec<String> = Code::ALL.iter().map(row).collect();
    let rows: Vec<&str> = TABLE.lines().filter(|line| line.starts_with("| `")).collect();
    assert_eq!(rows, expected);
}
