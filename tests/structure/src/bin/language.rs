//! Prints the language findings of crates, or writes the budget that equals the number of findings.
//!
//! In: folders of crates as arguments (all crates without an argument), and `--write` for the budget. Out: one finding
//! per line.
#![allow(clippy::print_stdout, reason = "a command-line tool prints its result")]

use std::fs;
use std::process::ExitCode;

use terrane_structure_tests::report::{self, BUDGET};
use terrane_structure_tests::sources::root;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let reports = report::all();
    if arguments == ["--write"] {
        if let Err(error) = fs::write(root().join(BUDGET), report::budget_text(&reports)) {
            eprintln!("error: writing {BUDGET}: {error}");
            return ExitCode::FAILURE;
        }
        return ExitCode::SUCCESS;
    }
    let is_chosen = |folder: &str| arguments.is_empty() || arguments.iter().any(|chosen| chosen == folder);
    for line in reports.iter().filter(|report| is_chosen(&report.folder)).flat_map(|report| &report.lines) {
        println!("{line}");
    }
    ExitCode::SUCCESS
}
