//! The places of settings: in the project file, or in a variable.

use terrane_compiler::diagnostic::{Diagnostic, Span};

/// The place of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    File(Span),
    Variable(String),
}

impl Place {
    /// Adds the place to a diagnostic. If the place is a variable, the message names the variable.
    pub(crate) fn mark(&self, mut diagnostic: Diagnostic) -> Diagnostic {
        match self {
            Place::File(span) => diagnostic.at(span.clone()),
            Place::Variable(name) => {
                diagnostic.message = format!("environment variable {name}: {}", diagnostic.message);
                diagnostic
            }
        }
    }
}
