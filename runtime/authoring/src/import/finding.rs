//! The findings of an import: a difference from the model, its place, and an action.

use std::collections::HashSet;

use terrane_compiler::diagnostic::{Code, Diagnostic, Span};

/// The words behind the name of an item that the project does not contain.
const NOT_IMPORTED: &str = " is not imported";

/// Reports something that the project does not contain.
pub(super) fn left_out(span: Span, what: impl Into<String>, cure: impl Into<String>) -> Diagnostic {
    Diagnostic::warning(Code::NotCarriedOver, what).hint(cure).at(span)
}

/// Reports something that the project expresses differently.
pub(super) fn changed(span: Span, what: impl Into<String>, cure: impl Into<String>) -> Diagnostic {
    Diagnostic::warning(Code::Changed, what).hint(cure).at(span)
}

/// Reports something that is closed to all callers until its author opens it.
pub(super) fn closed(span: Span, what: impl Into<String>, cure: impl Into<String>) -> Diagnostic {
    Diagnostic::warning(Code::Closed, what).hint(cure).at(span)
}

/// Removes findings about closed items that the project does not contain, because opening them is not possible there.
pub(super) fn remove_closed_without_item(findings: &mut Vec<Diagnostic>) {
    let items = |code: Code, verb: &str| -> HashSet<String> {
        let found = findings.iter().filter(|finding| finding.code == code);
        found.filter_map(|finding| Some(finding.message.split_once(verb)?.0.to_owned())).collect()
    };
    let missing = items(Code::NotCarriedOver, NOT_IMPORTED);
    let is_missing = |finding: &Diagnostic| {
        let item = finding.message.split_once(" is closed").map(|(item, _)| item);
        finding.code == Code::Closed && item.is_some_and(|item| missing.contains(item))
    };
    findings.retain(|finding| !is_missing(finding));
}

/// Reports a file that was not read.
pub(super) fn unread(file: &str, line: u32, what: impl Into<String>, cure: impl Into<String>) -> Diagnostic {
    let span = Span { file: file.into(), line, column: 1, length: 1 };
    Diagnostic::warning(Code::NotRead, what).hint(cure).at(span)
}
