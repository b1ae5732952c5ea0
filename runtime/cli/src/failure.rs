//! Why a command ended: words for a person, and what the shell is told.
//!
//! In: what went wrong. Out: a [`Failure`] that `main` prints once. Exit codes: 1 for a project, its
//! configuration or its data, 2 for how the command was called (clap's own).

use std::fmt;

use terrane_compiler::diagnostic::Diagnostic;
use terrane_compiler::project::SourceTree;

/// A problem that ends a command with exit code 1.
#[derive(Debug)]
pub enum Failure {
    /// One thing, and what to do about it.
    Plain { message: String, hint: Option<String> },
    /// What is wrong with a project, with the texts to show.
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
