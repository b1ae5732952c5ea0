//! The response of an operation: `{errors, data, extensions}` as JSON.
//!
//! In: the executor's values and errors, and the shape of the operation. Out: the bytes of a response. The fields are
//! in the order of the document, even if they were resolved in a different order. A failed field is null, with an
//! error. If a failed field must not be null, the object that contains it becomes null instead. The bytes of rows that
//! the encoder wrote are appended as they are. Not here: status codes and headers (server).

pub(crate) mod write;

use async_graphql::{PathSegment, Pos, Response as Executed, ServerError};
use bytes::Bytes;
use serde_json::{Map, Value as Json, json};
use terrane_wire::{Code, ErrorBody};

use crate::failure::Failure;
use crate::refusal::Refusal;
use crate::schema::FieldWarning;
use crate::shape::ResultShape;

/// A response that any transport can send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    body: Bytes,
    codes: Vec<Code>,
    has_data: bool,
}

impl Response {
    /// Returns the response of a request that was not executed.
    pub fn refused(refusal: &Refusal, correlation_id: &str) -> Self {
        let error = error_json(refusal.body(), refusal.places(), &[], correlation_id);
        let body = json!({ "errors": [error] }).to_string();
        Response { body: body.into(), codes: vec![refusal.body().code], has_data: false }
    }

    /// Returns the response of an executed operation.
    pub(crate) fn new(
        executed: Executed,
        shape: &ResultShape,
        warnings: &[FieldWarning],
        correlation_id: &str,
    ) -> Self {
        let Executed { data, errors, .. } = executed;
        let (codes, errors): (Vec<Code>, Vec<Json>) =
            errors.iter().map(|error| field_error(error, correlation_id)).unzip();
        // An error of validation has no path. In that case nothing was resolved.
        let has_data = errors.is_empty() || errors.iter().any(|error| error.get("path").is_some());
        let mut body = Vec::with_capacity(512);
        body.push(b'{');
        if !errors.is_empty() {
            body.extend_from_slice(b"\"errors\":");
            body.extend_from_slice(Json::Array(errors).to_string().as_bytes());
        }
        if has_data {
            if body.len() > 1 {
                body.push(b',');
            }
            body.extend_from_slice(b"\"data\":");
            write::data(&data, shape.fields(), &mut body);
            append_warnings(warnings, &mut body);
        }
        body.push(b'}');
        Response { body: body.into(), codes, has_data }
    }

    /// Returns the response of an operation without errors. `data` is the JSON of its result.
    pub(crate) fn with_data(data: &[u8]) -> Self {
        let body = [b"{\"data\":", data, b"}"].concat();
        Response { body: body.into(), codes: Vec::new(), has_data: true }
    }

    /// Returns `{"errors": […], "data": …, "extensions": {…}}`, each part only if it exists.
    pub fn body(&self) -> &Bytes {
        &self.body
    }

    pub fn into_body(self) -> Bytes {
        self.body
    }

    /// Returns the codes of the errors, in the order of the errors.
    pub fn codes(&self) -> &[Code] {
        &self.codes
    }

    /// Returns false if the operation was not executed, because the document, the variables or the caller were refused.
    pub fn has_data(&self) -> bool {
        self.has_data
    }
}

fn field_error(error: &ServerError, correlation_id: &str) -> (Code, Json) {
    match error.source::<Failure>() {
        Some(Failure(body)) => (body.code, error_json(body, &error.locations, &error.path, correlation_id)),
        // An error that comes from the library is about the document or its variables.
        None => {
            let body = ErrorBody::new(Code::GraphqlValidationFailed, error.message.clone());
            (body.code, error_json(&body, &error.locations, &error.path, correlation_id))
        }
    }
}

/// Appends the warnings of fields, each with the path of its field.
fn append_warnings(warnings: &[FieldWarning], body: &mut Vec<u8>) {
    if warnings.is_empty() {
        return;
    }
    let warning = |one: &FieldWarning| json!({ "message": one.message, "path": [one.field] });
    let warnings: Vec<Json> = warnings.iter().map(warning).collect();
    body.extend_from_slice(b",\"extensions\":");
    body.extend_from_slice(json!({ "warnings": warnings }).to_string().as_bytes());
}

/// Returns an error as JSON. Its `extensions` contain what REST sends in addition to the message.
fn error_json(body: &ErrorBody, places: &[Pos], path: &[PathSegment], correlation_id: &str) -> Json {
    let mut error = Map::new();
    error.insert("message".to_owned(), body.message.clone().into());
    if !places.is_empty() {
        let places = places.iter().map(|Pos { line, column }| json!({ "line": line, "column": column }));
        error.insert("locations".to_owned(), places.collect());
    }
    if !path.is_empty() {
        let path = path.iter().map(|segment| match segment {
            PathSegment::Field(name) => Json::from(name.as_str()),
            PathSegment::Index(index) => Json::from(*index),
        });
        error.insert("path".to_owned(), path.collect());
    }
    error.insert("extensions".to_owned(), body.extensions(correlation_id).into());
    error.into()
}
