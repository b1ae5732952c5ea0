//! The findings of an import. Each states how the project differs from the source model, where, and what to do about
//! it.

use terrane_compiler::diagnostic::{Code, Diagnostic, Span};

/// Returns the finding for something in the model that the project does not contain.
pub(crate) fn left_out(span: Span, what: impl Into<String>, cure: impl Into<String>) -> Diagnostic {
    Diagnostic::warning(Code::NotCarriedOver, what).hint(cure).at(span)
}

/// Returns the finding for something that the project expresses differently.
pub(crate) fn changed(span: Span, what: impl Into<String>, cure: impl Into<String>) -> Diagnostic {
    Diagnostic::warning(Code::Changed, what).hint(cure).at(span)
}

/// Returns the finding for something that is closed to all callers until the author opens it.
pub(crate) fn closed(span: Span, what: impl Into<String>, cure: impl Into<String>) -> Diagnostic {
    Diagnostic::warning(Code::Closed, what).hint(cure).at(span)
}

/// Returns the finding for a cube whose rows a generated policy hides from all callers until the author writes the
/// policy.
pub(crate) fn closed_by_policy(span: Span, what: impl Into<String>) -> Diagnostic {
    closed(span, what, "Write the policy in its file of policies/, instead of `row_filter: \"1 = 0\"`.")
}

/// Returns the finding for a file that was not read, and that has no mistake at a place of its own.
pub(crate) fn unread(file: &str, what: impl Into<String>, cure: impl Into<String>) -> Diagnostic {
    unread_at(Span { file: file.into(), line: 1, column: 1, length: 1 }, what, cure)
}

/// Returns the finding for a file that was not read because of a mistake at a place.
pub(crate) fn unread_at(span: Span, what: impl Into<String>, cure: impl Into<String>) -> Diagnostic {
    Diagnostic::warning(Code::NotRead, what).hint(cure).at(span)
}

/// Returns the finding for a file that is not YAML.
pub(crate) fn unread_yaml(file: &str, problem: Diagnostic) -> Diagnostic {
    let span = problem.span.unwrap_or_else(|| Span { file: file.into(), line: 1, column: 1, length: 1 });
    let what = format!("{file} was not read: {}", problem.message);
    unread_at(span, what, problem.hint.unwrap_or_else(|| "Correct the file.".to_owned()))
}
