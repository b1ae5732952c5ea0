//! What a person is told about a project: one problem, its place, and what to do.
//!
//! In: facts from the project and model stages. Out: [`Diagnostic`]s, collected, never thrown: all
//! problems of a project come in one run. Not here: drawing them (cli) and query errors (`query`).

use std::fmt;
use std::sync::Arc;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    Warning,
    Error,
}

/// A place in a project file. Lines and columns count from 1, columns in characters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// Path inside the project, with forward slashes.
    pub file: Arc<str>,
    pub line: u32,
    pub column: u32,
    /// How many characters the caret covers; at least 1.
    pub length: u32,
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// One problem of a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Stable, kebab-case: `unknown-key`, `unknown-member`, `missing-ref`, `yaml-syntax` …
    pub code: &'static str,
    pub severity: Severity,
    /// Short and primary: what was found.
    pub message: String,
    /// An action: what to do about it.
    pub hint: Option<String>,
    pub span: Option<Span>,
    /// Of a circle: what goes round, each with the place where it refers to the next.
    pub path: Box<[Step]>,
}

/// One part of a circle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    pub name: Arc<str>,
    /// Where it refers to the next step; that of the last to the first.
    pub span: Option<Span>,
}

/// `a → b → a`.
pub fn circle(path: &[Step]) -> String {
    let names: Vec<&str> = path.iter().chain(path.first()).map(|step| &*step.name).collect();
    names.join(" → ")
}

/// By place: file, line, column; what has no place comes first.
pub fn sort(diagnostics: &mut [Diagnostic]) {
    diagnostics.sort_by(|a, b| a.span.cmp(&b.span));
}

impl Diagnostic {
    pub fn error(code: &'static str, message: impl Into<String>) -> Self {
        Diagnostic {
            code,
            severity: Severity::Error,
            message: message.into(),
            hint: None,
            span: None,
            path: Box::default(),
        }
    }

    pub fn warning(code: &'static str, message: impl Into<String>) -> Self {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(code, message) }
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
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
        write!(f, "{severity}[{}]: {}", self.code, self.message)?;
        let following = self.path.iter().skip(1).chain(self.path.first());
        for (step, next) in self.path.iter().zip(following) {
            if let Some(span) = &step.span {
                write!(f, "\n  {} → {}: {span}", step.name, next.name)?;
            }
        }
        match &self.hint {
            Some(hint) => write!(f, "\n  hint: {hint}"),
            None => Ok(()),
        }
    }
}
