//! Failures of resolvers.

use std::fmt;

use terrane_wire::{Code, ErrorBody};

/// The error of a field, with the body that REST would send.
#[derive(Debug, Clone)]
pub(crate) struct Failure(pub(crate) Box<ErrorBody>);

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl<E: Into<ErrorBody>> From<E> for Failure {
    fn from(error: E) -> Self {
        Failure(Box::new(error.into()))
    }
}

/// Reports a word of a record that the schema does not have.
pub(crate) fn unknown_word(what: &str, word: &str) -> Failure {
    ErrorBody::new(Code::InternalError, format!("unknown {what} `{word}`")).into()
}
