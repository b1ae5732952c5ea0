//! Tests common mistakes of authors, each added to a project without mistakes.
//!
//! A case is a file under `tests/seeded/cases`: what it changes in the project of `tests/seeded/base`,
//! and every diagnostic that must be reported for it. `⟦…⟧` marks a place; the marks are removed before the project is
//! loaded. The n-th mark, in the order of files and lines, is the place of the n-th diagnostic. A new case is a new
//! file.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

#[path = "seeded/case.rs"]
mod case;
#[path = "seeded/schema.rs"]
mod schema;

use std::fmt::Write as _;

use case::{Case, ExpectedDiagnostic, cases};
use terrane_compiler::diagnostic::{Diagnostic, Severity, Span};

/// Returns the differences between the reported diagnostics and those of the case.
fn faults(case: &Case, diagnostics: &[Diagnostic], marks: &[Span]) -> Vec<String> {
    let mut faults = Vec::new();
    if diagnostics.len() != case.reported.len() {
        faults.push(format!("{} diagnostics, {} expected", diagnostics.len(), case.reported.len()));
    }
    assert_eq!(marks.len(), case.reported.len(), "{}: one mark for each diagnostic", case.name);
    for ((diagnostic, expected), mark) in diagnostics.iter().zip(&case.reported).zip(marks) {
        faults.extend(fault(diagnostic, expected, mark));
    }
    faults
}

fn fault(diagnostic: &Diagnostic, expected: &ExpectedDiagnostic, mark: &Span) -> Option<String> {
    let severity = if expected.is_warning() { Severity::Warning } else { Severity::Error };
    if diagnostic.code.as_str() != expected.code || diagnostic.severity != severity {
        return Some(format!(
            "{:?}[{}], expected {severity:?}[{}]",
            diagnostic.severity, diagnostic.code, expected.code
        ));
    }
    if diagnostic.span.as_ref() != Some(mark) {
        let place = |span: &Span| format!("{span} of length {}", span.length);
        let found = diagnostic.span.as_ref().map_or("nowhere".to_owned(), place);
        return Some(format!("at {found}, expected {}", place(mark)));
    }
    if let Some(word) = expected.cause.iter().find(|word| !diagnostic.message.contains(&***word)) {
        return Some(format!("the message lacks {word:?}"));
    }
    let hint = diagnostic.hint.as_deref().unwrap_or_default();
    if hint.is_empty() {
        return Some("the hint is missing".to_owned());
    }
    let lower = hint.to_lowercase();
    if let Some(word) = expected.cure.iter().find(|word| !lower.contains(&word.to_lowercase())) {
        return Some(format!("the hint lacks {word:?}"));
    }
    let path: Vec<String> =
        diagnostic.path.iter().map(|step| step.span.as_ref().map_or(String::new(), Span::to_string)).collect();
    let is_path = path.len() == expected.path.len()
        && path.iter().zip(&expected.path).all(|(found, wanted)| found.starts_with(&**wanted));
    if !is_path {
        return Some(format!("the path's places are {path:?}, expected {:?}", expected.path));
    }
    let text = format!("{} {hint}", diagnostic.message).to_lowercase();
    let blames = ["unable", "bad ", "illegal", "invalid", "\u{E000}", "\u{E001}", "\u{E002}", "\u{E003}"];
    blames.iter().find(|word| text.contains(**word)).map(|word| format!("a message says {word:?}"))
}

fn draw(text: &mut String, name: &str, diagnostics: &[Diagnostic]) {
    let _ = writeln!(text, "# {name}");
    for diagnostic in diagnostics {
        let _ = writeln!(text, "{diagnostic}");
    }
    text.push('\n');
}

#[test]
fn base_project_is_valid() {
    let diagnostics = case::load(&case::base(), &Default::default());
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
}

#[test]
fn seeded_mistakes_are_reported_once_with_position_cause_and_hint() {
    let mut report = String::new();
    let (mut count, mut wrong) = (0, 0);
    for area in case::areas() {
        let mut text = String::new();
        for case in cases(&area) {
            let (tree, marks) = case.tree();
            let diagnostics = case::load(&tree, &case.env);
            let faults = faults(&case, &diagnostics, &marks);
            count += 1;
            draw(&mut text, &case.name, &diagnostics);
            if !faults.is_empty() {
                wrong += 1;
                draw(&mut report, &format!("{area}/{}: {}", case.name, faults.join("; ")), &diagnostics);
            }
        }
        insta::with_settings!({
            snapshot_path => "seeded/reported",
            prepend_module_to_snapshot => false,
            omit_expression => true,
        }, { insta::assert_snapshot!(area, text) });
    }
    assert!(wrong == 0, "{wrong} of {count} are not reported as they should be\n\n{report}");
    assert!(count >= 100, "{count} mistakes are too few");
}
