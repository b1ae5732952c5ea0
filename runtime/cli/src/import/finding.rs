//! What a person is told of an import: what is not as it was, where it stood, and what to do.

use terrane_compiler::diagnostic::{Code, Diagnostic, Span};

/// The code of what the project does not have.
pub(super) const LEFT_OUT: Code = Code::NotCarriedOver;

/// Something that the project does not have.
pub(super) fn left_out(span: Span, what: impl Into<String>, cure: impl Into<String>) -> Diagnostic {
    Diagnostic::warning(LEFT_OUT, what).hint(cure).at(span)
}

/// Something that the project has in another way.
pub(super) fn changed(span: Span, what: impl Into<String>, cure: impl Into<String>) -> Diagnostic {
    Diagnostic::warning(Code::Changed, what).hint(cure).at(span)
}

/// Something that nobody sees until its policies are written.
pub(super) fn closed(span: Span, what: impl Into<String>, cure: impl Into<String>) -> Diagnostic {
    Diagnostic::warning(Code::Closed, what).hint(cure).at(span)
}

/// A file that was not read.
pub(super) fn unread(file: &str, line: u32, what: impl Into<String>, cure: impl Into<String>) -> Diagnostic {
    let span = Span { file: file.into(), line, column: 1, length: 1 };
    Diagnostic::warning(Code::NotRead, what).hint(cure).at(span)
}
