//! Problems of a project: code, place, message and hint.
//!
//! In: facts from the project and model stages. Out: [`Diagnostic`]s, collected and never thrown, so that one run
//! reports all problems of a project. Not here: drawing them (cli) and query errors (`query`). Programs decide by
//! code, subject and place, never by the text of a message.

mod code;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

pub use code::Code;

pub use crate::text::Span;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    Warning,
    Error,
}

/// One problem of a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    pub code: Code,
    pub severity: Severity,
    /// The problem in Terrane's own words.
    pub message: String,
    /// The warehouse's text about the problem. Only callers with the scope `admin` may see it.
    pub detail: Option<Box<Foreign>>,
    /// The name of the item that has the problem, such as a plugin's id.
    pub subject: Option<Arc<str>>,
    /// An action that solves the problem.
    pub hint: Option<String>,
    pub span: Option<Span>,
    /// The steps of a cycle, each with the place where it refers to the next.
    pub path: Box<[Step]>,
}

/// Text of another system, which may quote data and names that not every caller may see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Foreign {
    pub text: String,
    /// A hint that uses what the other system disclosed. It replaces the general hint.
    pub hint: Option<String>,
}

/// One step of a cycle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    pub name: Arc<str>,
    /// The place where the step refers to the next one; the last step refers to the first.
    pub span: Option<Span>,
}

/// Returns the names of a cycle as `a → b → a`.
pub fn cycle_path(path: &[Step]) -> String {
    let names: Vec<&str> = path.iter().chain(path.first()).map(|step| &*step.name).collect();
    names.join(" → ")
}

/// Sorts diagnostics by file, line and column. Those without a place come first.
pub fn sort(diagnostics: &mut [Diagnostic]) {
    diagnostics.sort_by(|a, b| a.span.cmp(&b.span));
}

impl Diagnostic {
    pub fn error(code: Code, message: impl Into<String>) -> Self {
        Diagnostic {
            code,
            severity: Severity::Error,
            message: message.into(),
            detail: None,
            subject: None,
            hint: None,
            span: None,
            path: Box::default(),
        }
    }

    pub fn warning(code: Code, message: impl Into<String>) -> Self {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(code, message) }
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds text of another system.
    #[must_use]
    pub fn detail(mut self, text: impl Into<String>) -> Self {
        self.detail = Some(Box::new(Foreign { text: text.into(), hint: None }));
        self
    }

    /// Adds a hint that uses what the other system disclosed.
    #[must_use]
    pub fn detailed_hint(mut self, hint: impl Into<String>) -> Self {
        if let Some(detail) = &mut self.detail {
            detail.hint = Some(hint.into());
        }
        self
    }

    #[must_use]
    pub fn about(mut self, subject: impl Into<Arc<str>>) -> Self {
        self.subject = Some(subject.into());
        self
    }

    /// Returns the message with the text of other systems, for operators.
    pub fn full_message(&self) -> Cow<'_, str> {
        match &self.detail {
            Some(detail) => Cow::Owned(format!("{}: {}", self.message, detail.text)),
            None => Cow::Borrowed(&self.message),
        }
    }

    /// Returns the most precise hint, for operators.
    pub fn full_hint(&self) -> Option<&str> {
        let of_detail = self.detail.as_ref().and_then(|detail| detail.hint.as_deref());
        of_detail.or(self.hint.as_deref())
    }

    #[must_use]
    pub fn at(mut self, span: Span) -> Self {
        self.span = Some(span);
        self
    }

    #[must_use]
    pub fn along(mut self, path: Vec<Step>) -> Self {
        self.path = path.into_boxed_slice();
        self
    }

    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(span) = &self.span {
            write!(f, "{span}: ")?;
        }
        let severity = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        write!(f, "{severity}[{}]: {}", self.code, self.full_message())?;
        let following = self.path.iter().skip(1).chain(self.path.first());
        for (step, next) in self.path.iter().zip(following) {
            if let Some(span) = &step.span {
                write!(f, "\n  {} → {}: {span}", step.name, next.name)?;
            }
        }
        match self.full_hint() {
            Some(hint) => write!(f, "\n  hint: {hint}"),
            None => Ok(()),
        }
    }
}
