//! What a person is told of an import: what is not as it was, where it stood, and what to do.

use terrane_compiler::diagnostic::{Diagnostic, Span};

/// The code of what the project does not have.
pub(super) const LEFT_OUT: &str = "not-carried-over";

/// Something that the project does not have.
pub(super) fn left_out(span: Span, what: impl Into<String>, cure: impl Into<String>) -> Diagnostic {
    Diagnostic::warning(LEFT_OUT, what).hint(cure).at(span)
}

/// Something that the project has in another way.
pub(super) fn changed(span: Span, what: impl Into<String>, cure: impl Into<String>) -> Diagnostic {
    Diagnostic::warning("changed", what).hint(cure).at(span)
}

/// Something that nobody sees until its policies are written.
pub(super) fn closed(span: Span, what: impl Into<String>, cure: impl Into<String>) -> Diagnostic {
    Diagnostic::warning("closed", what).hint(cure).at(span)
}

/// A file that was not read.
pub(super) fn unread(file: &str, line: u32, what: impl Into<String>, cure: impl Into<String>) -> Diagnostic {
    let span = Span { file: file.into(), line, column: 1, length: 1 };
    Diagnostic::warning("not-read", what).hint(cure).at(span)
}
