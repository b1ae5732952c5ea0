//! Classifies a warehouse's errors by a table of patterns.
//!
//! In: patterns of an engine's codes and messages. Out: a [`Classified`] error. The caller's message depends on the
//! class alone, so that it never contains the warehouse's text.

use super::{Classified, ErrorClass, WarehouseError};

/// A pattern of errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    /// The beginning of the code: a SQLSTATE, its first two characters, or the vendor's number.
    Code(&'static str),
    /// A part of the message, in upper or lower case.
    Message(&'static str),
}

/// Classifies an error by the first sign that matches it. If no sign matches, the class is [`ErrorClass::Other`].
///
/// ```
/// use terrane_sdk::dialect::{ErrorClass, Sign, WarehouseError, classify};
///
/// let signs = [(Sign::Code("42P01"), ErrorClass::MissingObject), (Sign::Message("deadlock"), ErrorClass::Conflict)];
/// let error = WarehouseError { code: "40P01".to_owned(), message: "Deadlock detected".to_owned() };
/// let classified = classify(&error, &signs);
/// assert!(classified.class == ErrorClass::Conflict && classified.retryable);
/// ```
pub fn classify(error: &WarehouseError, signs: &[(Sign, ErrorClass)]) -> Classified {
    let message = error.message.to_lowercase();
    let shows = |sign: &Sign| match sign {
        Sign::Code(start) => error.code.starts_with(start),
        Sign::Message(part) => message.contains(&part.to_lowercase()),
    };
    let class = signs.iter().find(|(sign, _)| shows(sign)).map_or(ErrorClass::Other, |(_, class)| *class);
    let retryable = matches!(class, ErrorClass::Conflict | ErrorClass::Connection);
    Classified { class, retryable, public_message: public_message(class).to_owned() }
}

fn public_message(class: ErrorClass) -> &'static str {
    match class {
        ErrorClass::Syntax => "the warehouse could not parse the statement",
        ErrorClass::MissingObject => "a table, column or function does not exist in the warehouse",
        ErrorClass::Permission => "the warehouse refused access",
        ErrorClass::Timeout => "the statement took longer than the warehouse allows",
        ErrorClass::Cancelled => "the statement was cancelled",
        ErrorClass::Quota => "the statement exceeds a resource limit of the warehouse",
        ErrorClass::Connection => "the warehouse is unreachable or cannot read its data",
        ErrorClass::Conflict => "the statement conflicts with another transaction",
        ErrorClass::Data => "a value in the data is invalid for this operation",
        ErrorClass::Other => "the warehouse refused the statement",
    }
}

/// Returns a type's name in upper case without its arguments: `decimal(18, 3)` becomes `DECIMAL`.
pub fn base_type(native: &str) -> String {
    native.split('(').next().unwrap_or(native).trim().to_ascii_uppercase()
}
