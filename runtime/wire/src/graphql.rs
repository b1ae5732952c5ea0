//! Requests in GraphQL: bodies, query strings, and the messages of sockets.
//!
//! In: a JSON body or a query string (GraphQL over HTTP), or a message of `graphql-transport-ws` ([`messages`]). Out: a
//! [`GraphQlRequest`], or an error that names the place. Fields that the specification does not know are ignored,
//! because clients send fields of their own. Batches and persisted documents are rejected with errors that name them.
//! Not here: the language of documents (`terrane-graphql`).

pub mod messages;

use schemars::JsonSchema;
use serde_json::{Map, Value as Json};

use crate::body::{check_names, parse};
use crate::fields::{FieldError, Path};

/// An operation that a client requests.
#[derive(Debug, Clone, PartialEq)]
pub struct GraphQlRequest {
    /// The document, which may have several operations.
    pub query: String,
    /// The name of the operation to execute.
    pub operation_name: Option<String>,
    pub variables: Map<String, Json>,
}

/// A GraphQL request.
#[derive(Debug, JsonSchema)]
#[schemars(rename_all = "camelCase")]
pub struct GraphQlBody {
    /// The document, with one operation or several.
    pub query: String,
    /// The operation to execute, if the document has several.
    pub operation_name: Option<String>,
    /// The values of the operation's variables.
    pub variables: Option<Map<String, Json>>,
    /// Accepted and ignored; `persistedQuery` is rejected.
    pub extensions: Option<Map<String, Json>>,
}

/// The answer to a GraphQL request.
#[derive(Debug, serde::Serialize, JsonSchema)]
pub struct GraphQlAnswer {
    /// The values of the selected fields; absent if the operation was not executed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Map<String, Json>>,
    /// The errors of the request, or of single fields.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub errors: Option<Vec<GraphQlError>>,
}

/// An error of a GraphQL request.
#[derive(Debug, serde::Serialize, JsonSchema)]
pub struct GraphQlError {
    pub message: String,
    /// Places in the document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub locations: Option<Vec<GraphQlLocation>>,
    /// The response field that failed: names and indexes of lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<Vec<PathStep>>,
    /// `code`, the details that REST sends with the code, and `correlation_id`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extensions: Option<Map<String, Json>>,
}

/// A step of a path: a response field, or the index of an item in a list.
#[derive(Debug, serde::Serialize, JsonSchema)]
#[serde(untagged)]
pub enum PathStep {
    Field(String),
    Item(u64),
}

/// A place in a document.
#[derive(Debug, serde::Serialize, JsonSchema)]
pub struct GraphQlLocation {
    pub line: u64,
    pub column: u64,
}

const EXPECTED: &str = "an object like {\"query\": \"{ cubes { name } }\"}";
const EXPECTED_MAP: &str = "an object";
/// The error message that clients of persisted documents recognize, so that they send the document itself.
const NOT_PERSISTED: &str = "PersistedQueryNotSupported";
/// Fields in which clients send the id of a persisted document.
const DOCUMENT_IDS: [&str; 4] = ["documentId", "doc_id", "id", "queryId"];

/// Reads a body.
///
/// # Errors
/// Names the field that is invalid.
pub fn from_wire(body: &[u8]) -> Result<GraphQlRequest, FieldError> {
    request(parse(body)?, &Path::ROOT, Path::missing)
}

/// Reads a query string, in which `variables` and `extensions` are JSON.
///
/// # Errors
/// Names the parameter that is invalid.
pub fn from_parameters(text: &str) -> Result<GraphQlRequest, FieldError> {
    let mut object = Map::new();
    for (name, value) in form_urlencoded::parse(text.as_bytes()) {
        let path = Path::ROOT.field(&name);
        let value = match &*name {
            "query" | "operationName" => Json::from(&*value),
            "variables" | "extensions" => json_parameter(&value, &path)?,
            _ => continue,
        };
        if object.contains_key(&*name) {
            return Err(path.duplicate());
        }
        object.insert(name.into_owned(), value);
    }
    request(Json::Object(object), &Path::ROOT, Path::missing_parameter)
}

fn json_parameter(text: &str, path: &Path<'_>) -> Result<Json, FieldError> {
    let value = serde_json::from_str(text).map_err(|_| path.invalid_value(text, "a JSON object"))?;
    check_names(text.as_bytes(), path)?;
    Ok(value)
}

/// Reads a parsed request. `missing` creates the error for a required field that is missing.
fn request<'p>(
    value: Json,
    path: &Path<'p>,
    missing: impl Fn(&Path<'p>, &'static str) -> FieldError,
) -> Result<GraphQlRequest, FieldError> {
    let mut object = match value {
        Json::Object(object) => object,
        Json::Array(_) => {
            return Err(path.unsupported("batches of operations are not supported; send one operation per request"));
        }
        other => return Err(path.invalid_type(&other, EXPECTED)),
    };
    let extensions = map(&mut object, "extensions", path)?;
    let variables = map(&mut object, "variables", path)?;
    let operation_name = string(&mut object, "operationName", path)?;
    let query = string(&mut object, "query", path)?;
    let has_document_id = query.is_none() && DOCUMENT_IDS.iter().any(|name| object.contains_key(*name));
    if extensions.contains_key("persistedQuery") || has_document_id {
        return Err(path.unsupported(NOT_PERSISTED));
    }
    let query = query.ok_or_else(|| missing(path, "query"))?;
    Ok(GraphQlRequest { query, operation_name: operation_name.filter(|name| !name.is_empty()), variables })
}

fn string(object: &mut Map<String, Json>, name: &'static str, path: &Path<'_>) -> Result<Option<String>, FieldError> {
    match object.remove(name) {
        None | Some(Json::Null) => Ok(None),
        Some(Json::String(text)) => Ok(Some(text)),
        Some(other) => Err(path.field(name).invalid_type(&other, "a string")),
    }
}

fn map(object: &mut Map<String, Json>, name: &'static str, path: &Path<'_>) -> Result<Map<String, Json>, FieldError> {
    match object.remove(name) {
        None | Some(Json::Null) => Ok(Map::new()),
        Some(Json::Object(map)) => Ok(map),
        Some(other) => Err(path.field(name).invalid_type(&other, EXPECTED_MAP)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Code, ErrorBody};

    fn error(body: &str) -> ErrorBody {
        from_wire(body.as_bytes()).unwrap_err().into()
    }

    #[test]
    fn bodies_and_query_strings_give_equal_requests() {
        let body = json!({"query": "{a}", "operationName": "A", "variables": {"n": 1}, "extensions": {}, "own": 1});
        let read = from_wire(body.to_string().as_bytes()).unwrap();
        assert_eq!((read.query.as_str(), read.operation_name.as_deref()), ("{a}", Some("A")));
        assert_eq!(Json::from(read.variables.clone()), json!({"n": 1}));
        let text = "query=%7Ba%7D&operationName=A&variables=%7B%22n%22%3A1%7D&extensions=%7B%7D&api_key=k";
        assert_eq!(from_parameters(text).unwrap(), read);
        let nulls = r#"{"query": "{a}", "operationName": null, "variables": null, "extensions": null}"#;
        assert_eq!(from_wire(nulls.as_bytes()).unwrap(), from_parameters("query={a}&operationName=").unwrap());
    }

    #[test]
    fn invalid_fields_are_named() {
        for (body, field) in [
            (r#"{"query": 1}"#, "query"),
            (r#"{"query": "{a}", "operationName": {}}"#, "operationName"),
            (r#"{"query": "{a}", "variables": "{}"}"#, "variables"),
            (r#"{"query": "{a}", "variables": []}"#, "variables"),
            (r#"{"query": "{a}", "extensions": 0}"#, "extensions"),
            (r#"{"query": "{a}", "variables": {"n": 1, "n": 2}}"#, "variables.n"),
        ] {
            let error = error(body);
            assert_eq!((error.code, error.field("field")), (Code::InvalidQuery, Some(&json!(field))), "{body}");
        }
        for text in ["query={a}&variables=1", "query={a}&variables={", "query={a}&query={b}", "query={a}&extensions=[]"]
        {
            assert!(from_parameters(text).is_err(), "{text}");
        }
        for text in ["", "operationName=A", "api_key=k"] {
            let error = ErrorBody::from(from_parameters(text).unwrap_err());
            assert_eq!(error.code, Code::InvalidQuery, "{text}");
            assert!(error.message.contains("`query`"), "{text}: {}", error.message);
        }
        // The type of the body is wrong, so the error names neither a field nor a line.
        let other = error("\"{a}\"");
        assert_eq!((other.code, other.fields().count()), (Code::InvalidQuery, 0), "{}", other.message);
    }

    #[test]
    fn batches_and_persisted_documents_are_rejected_by_name() {
        assert!(error(r#"[{"query": "{a}"}]"#).message.contains("batches"));
        for body in [
            r#"{"extensions": {"persistedQuery": {"version": 1, "sha256Hash": "00"}}}"#,
            r#"{"query": "{a}", "extensions": {"persistedQuery": {}}}"#,
            r#"{"documentId": "1"}"#,
        ] {
            assert_eq!(error(body).message, NOT_PERSISTED, "{body}");
        }
    }
}
