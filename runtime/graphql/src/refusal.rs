//! Documents that are refused before anything is resolved.

use async_graphql::Pos;
use async_graphql::parser::Error as ParserError;
use terrane_wire::{Code, ErrorBody};

/// The reason why a document is not executed, with the place of the problem.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    body: Box<ErrorBody>,
    places: Vec<Pos>,
}

impl Refusal {
    /// Creates a refusal with an error that has no place in the document.
    pub fn new(body: ErrorBody) -> Self {
        Refusal { body: Box::new(body), places: Vec::new() }
    }

    /// Creates the refusal of a document that is not valid.
    pub(crate) fn invalid(message: impl Into<String>, hint: &'static str) -> Self {
        Refusal::new(ErrorBody::new(Code::GraphqlValidationFailed, message).detail("hint", hint))
    }

    pub(crate) fn at(mut self, place: Option<Pos>) -> Self {
        self.places.extend(place);
        self
    }

    pub(crate) fn places(&self) -> &[Pos] {
        &self.places
    }

    pub fn into_body(self) -> ErrorBody {
        *self.body
    }

    /// Returns the error body that REST would send.
    pub fn body(&self) -> &ErrorBody {
        &self.body
    }
}

impl From<ParserError> for Refusal {
    fn from(error: ParserError) -> Self {
        let places: Vec<Pos> = error.positions().collect();
        let message = match &error {
            ParserError::Syntax { message, .. } => syntax_message(message),
            ParserError::OperationDuplicated { operation, .. } => format!("duplicate operation `{operation}`"),
            ParserError::FragmentDuplicated { fragment, .. } => format!("duplicate fragment `{fragment}`"),
            ParserError::MultipleOperations { .. } => {
                "a document with several operations has an operation without a name".to_owned()
            }
            ParserError::MissingOperation => "the document has no operation".to_owned(),
            other => other.to_string(),
        };
        let mut body = ErrorBody::new(Code::GraphqlSyntaxError, message);
        if let Some(Pos { line, column }) = places.first() {
            body = body.detail("line", *line as u64).detail("column", *column as u64);
        }
        Refusal { body: Box::new(body), places }
    }
}

/// Returns the last line of the parser's message, which states what the parser expected. The lines before it draw the
/// place in the document.
fn syntax_message(drawn: &str) -> String {
    let last = drawn.lines().rev().map(|line| line.trim().trim_start_matches('=').trim()).find(|line| !line.is_empty());
    last.unwrap_or("the document is not GraphQL").to_owned()
}
