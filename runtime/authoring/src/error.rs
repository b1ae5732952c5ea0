//! The error of this crate.

use std::fmt;

/// A reason why no project can be written, and an action that solves the problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthoringError {
    pub message: String,
    pub hint: Option<String>,
}

impl AuthoringError {
    pub fn new(message: impl Into<String>) -> Self {
        AuthoringError { message: message.into(), hint: None }
    }

    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        AuthoringError { hint: Some(hint.into()), ..self }
    }
}

impl fmt::Display for AuthoringError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.message)?;
        self.hint.as_ref().map_or(Ok(()), |hint| write!(f, "\n  hint: {hint}"))
    }
}

impl std::error::Error for AuthoringError {}
