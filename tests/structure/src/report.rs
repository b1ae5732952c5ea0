//! The language findings of all crates, and the files that limit them.
//!
//! In: the sources of the workspace and the list of terms. Out: findings per crate, and the text of a budget. Not here:
//! the comparison with the budget, which the test makes.

use crate::language::{self, Budget, Count, Finding, Term};
use crate::sources::{crates, read, root, shown};

/// The folders whose sources are counted.
const FOLDERS: [&str; 5] = ["runtime", "sdk", "plugins", "xtask", "tests"];

/// The files that this check reads, from the root of the workspace.
pub const TERMS: &str = "tests/structure/language/terms.txt";
pub const BUDGET: &str = "tests/structure/language/budget.txt";
pub const CLEAN: &str = "tests/structure/language/clean.txt";

const BUDGET_HEADER: &str = "\
# The highest number of language findings in each crate: folder, openings of doc comments, terms. It can only shrink.
# `cargo run -p terrane-structure-tests --bin language -- FOLDER` prints the findings; `--write` writes this file.
";

/// The findings of one crate.
pub struct Report {
    /// The crate's folder from the root of the workspace.
    pub folder: String,
    pub count: Count,
    /// One line for each finding, with the file, the line and the replacement.
    pub lines: Vec<String>,
}

/// Returns the findings of all crates.
///
/// # Panics
/// If a file cannot be read or the list of terms has a different form.
pub fn all() -> Vec<Report> {
    let terms = language::terms(&read(&root().join(TERMS))).unwrap_or_else(|error| panic!("{TERMS}: {error}"));
    crates(&FOLDERS)
        .into_iter()
        .map(|source| {
            let mut report = Report { folder: source.folder, count: Count::default(), lines: Vec::new() };
            for file in &source.files {
                add_file(&mut report, &shown(file), &read(file), &terms);
            }
            report
        })
        .collect()
}

fn add_file(report: &mut Report, file: &str, text: &str, terms: &[Term]) {
    let findings: Vec<Finding> = language::findings(text, terms);
    report.count = report.count.plus(Count::of(&findings));
    report.lines.extend(findings.iter().map(|finding| format!("{file}:{finding}")));
}

/// Returns the counts by crate.
pub fn counts(reports: &[Report]) -> Budget {
    reports.iter().map(|report| (report.folder.clone(), report.count)).collect()
}

/// Returns the budget that agrees with the counts.
pub fn budget_text(reports: &[Report]) -> String {
    let line = |report: &Report| format!("{} {} {}\n", report.folder, report.count.openings, report.count.terms);
    reports.iter().map(line).fold(BUDGET_HEADER.to_owned(), |text, line| text + &line)
}
