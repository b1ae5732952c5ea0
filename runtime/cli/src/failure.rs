//! The error that ends a command.
//!
//! In: errors of all kinds. Out: a [`Failure`] that `main` prints once. Exit codes: 1 for problems of a project, its
//! configuration or its data, 2 for an incorrect call (from clap).

use std::fmt;

use terrane_authoring::AuthoringError;
use terrane_compiler::diagnostic::Diagnostic;
use terrane_compiler::project::SourceTree;

/// A problem that ends a command with exit code 1.
#[derive(Debug)]
pub enum Failure {
    /// A message, and an action that solves the problem.
    Plain { message: String, hint: Option<String> },
    /// The problems of a project, and its files to show the places.
    Project { problems: Vec<Diagnostic>, tree: SourceTree },
}

impl Failure {
    pub fn new(message: impl Into<String>) -> Self {
        Failure::Plain { message: message.into(), hint: None }
    }

    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        match self {
            Failure::Plain { message, .. } => Failure::Plain { message, hint: Some(hint.into()) },
            Failure::Project { .. } => self,
        }
    }

    /// Adds to the hint.
    #[must_use]
    pub fn and_hint(self, more: &str) -> Self {
        match self {
            Failure::Plain { message, hint: Some(hint) } => {
                Failure::Plain { message, hint: Some(format!("{hint}; {more}")) }
            }
            failure => failure.hint(more),
        }
    }
}

impl From<AuthoringError> for Failure {
    fn from(error: AuthoringError) -> Self {
        Failure::Plain { message: error.message, hint: error.hint }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Plain { message, hint } => {
                write!(f, "{message}")?;
                hint.as_ref().map_or(Ok(()), |hint| write!(f, "\n  hint: {hint}"))
            }
            Failure::Project { problems, .. } => {
                for (index, problem) in problems.iter().enumerate() {
                    let line_break = if index == 0 { "" } else { "\n" };
                    write!(f, "{line_break}{problem}")?;
                }
                Ok(())
            }
        }
    }
}

impl std::error::Error for Failure {}
