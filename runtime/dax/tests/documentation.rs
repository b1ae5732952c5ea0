//! Tests that the table of functions in `runtime/docs/reference/dax.md` lists every supported function.

use std::fmt::Write as _;

use terrane_dax::functions::FUNCTIONS;

#[test]
fn documentation_lists_every_function() {
    let page = include_str!("../../docs/reference/dax.md");
    let (_, section) = page.split_once("| function | returns | description |\n|---|---|---|\n").expect("a table");
    let written: String =
        section.lines().take_while(|line| line.starts_with('|')).map(|line| format!("{line}\n")).collect();
    let mut expected = String::new();
    for function in FUNCTIONS {
        let signature = function.signature().replace('|', "\\|");
        let _ = writeln!(expected, "| `{signature}` | {} | {} |", function.returns.as_str(), function.description);
    }
    assert!(written == expected, "replace the table of functions in runtime/docs/reference/dax.md by:\n{expected}");
}
