//! Reads JSON objects by the names of their fields. Every error names the place, the found value and the expected one.
//!
//! In: a parsed value and the names of the fields that it may have. Out: typed fields, or a [`FieldError`].

use serde_json::{Map, Value as Json};
use terrane_compiler::query::QueryError;
use terrane_compiler::text::nearest::likely;

use crate::error::{Code, ErrorBody};

/// A part of a body or of a query string that is invalid.
#[derive(Debug)]
pub struct FieldError {
    /// The place, like `filters[0].operator`; empty for the whole body.
    path: String,
    problem: FieldProblem,
}

#[derive(Debug)]
enum FieldProblem {
    /// The text is not JSON.
    Syntax {
        message: String,
        line: usize,
        column: usize,
    },
    Type {
        found: &'static str,
        expected: &'static str,
    },
    UnknownField {
        nearest: Option<&'static str>,
        known: &'static [&'static str],
    },
    UnknownParameter {
        nearest: Option<&'static str>,
        known: Vec<&'static str>,
    },
    MissingField {
        name: &'static str,
    },
    /// Both fields are missing, and one of them is required.
    MissingBoth {
        names: [&'static str; 2],
    },
    MissingParameter {
        name: &'static str,
    },
    /// A name that occurs twice in an object. JSON parsers differ in which of the two values they use.
    Duplicate,
    /// A query parameter that occurs twice.
    DuplicateParameter,
    /// Both of two fields with the same meaning are set.
    Both {
        names: [&'static str; 2],
    },
    Value {
        found: String,
        expected: String,
    },
    Query(QueryError),
    /// A form of a request that the interface does not support.
    Unsupported(&'static str),
}

/// The place of a value.
#[derive(Clone, Copy)]
pub(crate) struct Path<'p> {
    parent: Option<&'p Path<'p>>,
    step: Step<'p>,
}

#[derive(Clone, Copy)]
enum Step<'p> {
    Root,
    Field(&'p str),
    Item(usize),
}

impl<'p> Path<'p> {
    pub(crate) const ROOT: Path<'static> = Path { parent: None, step: Step::Root };

    pub(crate) fn field(&'p self, name: &'p str) -> Path<'p> {
        Path { parent: Some(self), step: Step::Field(name) }
    }

    pub(crate) fn item(&'p self, index: usize) -> Path<'p> {
        Path { parent: Some(self), step: Step::Item(index) }
    }

    fn text(&self) -> String {
        let mut text = self.parent.map(Path::text).unwrap_or_default();
        match self.step {
            Step::Root => {}
            Step::Field(name) => {
                if !text.is_empty() {
                    text.push('.');
                }
                text.extend(name.chars().take(100));
            }
            Step::Item(index) => text.push_str(&format!("[{index}]")),
        }
        text
    }

    fn error(&self, problem: FieldProblem) -> FieldError {
        FieldError { path: self.text(), problem }
    }

    pub(crate) fn invalid_type(&self, found: &Json, expected: &'static str) -> FieldError {
        self.error(FieldProblem::Type { found: kind(found), expected })
    }

    pub(crate) fn invalid_value(&self, found: &str, expected: impl Into<String>) -> FieldError {
        self.error(FieldProblem::Value { found: found.chars().take(100).collect(), expected: expected.into() })
    }

    pub(crate) fn rejected(&self, error: QueryError) -> FieldError {
        self.error(FieldProblem::Query(error))
    }

    pub(crate) fn unsupported(&self, message: &'static str) -> FieldError {
        self.error(FieldProblem::Unsupported(message))
    }

    pub(crate) fn missing(&self, name: &'static str) -> FieldError {
        self.error(FieldProblem::MissingField { name })
    }

    pub(crate) fn missing_both(&self, names: [&'static str; 2]) -> FieldError {
        self.error(FieldProblem::MissingBoth { names })
    }

    pub(crate) fn missing_parameter(&self, name: &'static str) -> FieldError {
        self.error(FieldProblem::MissingParameter { name })
    }

    pub(crate) fn duplicate(&self) -> FieldError {
        self.error(FieldProblem::Duplicate)
    }

    pub(crate) fn duplicate_parameter(&self) -> FieldError {
        self.error(FieldProblem::DuplicateParameter)
    }

    pub(crate) fn both(&self, names: [&'static str; 2]) -> FieldError {
        self.error(FieldProblem::Both { names })
    }

    pub(crate) fn unknown_field(&self, name: &str, known: &'static [&'static str]) -> FieldError {
        self.field(name).error(FieldProblem::UnknownField { nearest: nearest(name, known), known })
    }

    pub(crate) fn unknown_parameter(&self, name: &str, known: Vec<&'static str>) -> FieldError {
        self.field(name).error(FieldProblem::UnknownParameter { nearest: nearest(name, &known), known })
    }
}

/// Returns the known name that this name probably misspells.
fn nearest(name: &str, known: &[&'static str]) -> Option<&'static str> {
    likely(name, known.iter().copied())
}

/// An object whose fields are all known.
pub(crate) struct Fields<'a> {
    object: &'a Map<String, Json>,
    path: &'a Path<'a>,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(
        value: &'a Json,
        path: &'a Path<'a>,
        expected: &'static str,
        known: &'static [&'static str],
    ) -> Result<Self, FieldError> {
        let Json::Object(object) = value else { return Err(path.invalid_type(value, expected)) };
        match object.keys().find(|name| !known.contains(&name.as_str())) {
            Some(name) => Err(path.unknown_field(name, known)),
            None => Ok(Fields { object, path }),
        }
    }

    /// Returns the fields of an object, and a problem for each unknown field.
    pub(crate) fn with_unknown(
        value: &'a Json,
        path: &'a Path<'a>,
        expected: &'static str,
        known: &'static [&'static str],
    ) -> Result<(Self, Vec<FieldError>), FieldError> {
        let Json::Object(object) = value else { return Err(path.invalid_type(value, expected)) };
        let unknown = object.keys().filter(|name| !known.contains(&name.as_str()));
        let problems = unknown.map(|name| path.unknown_field(name, known)).collect();
        Ok((Fields { object, path }, problems))
    }

    /// Returns a field, unless it is missing or null.
    pub(crate) fn get(&self, name: &str) -> Option<&'a Json> {
        self.object.get(name).filter(|value| !value.is_null())
    }

    /// Returns a field, even if it is null.
    pub(crate) fn get_or_null(&self, name: &str) -> Option<&'a Json> {
        self.object.get(name)
    }

    pub(crate) fn string(&self, name: &'static str, expected: &'static str) -> Result<Option<&'a str>, FieldError> {
        match self.get(name) {
            None => Ok(None),
            Some(Json::String(text)) => Ok(Some(text)),
            Some(other) => Err(self.path.field(name).invalid_type(other, expected)),
        }
    }

    pub(crate) fn required_string(&self, name: &'static str, expected: &'static str) -> Result<&'a str, FieldError> {
        self.string(name, expected)?.ok_or_else(|| self.path.missing(name))
    }

    pub(crate) fn boolean(&self, name: &'static str) -> Result<Option<bool>, FieldError> {
        match self.get(name) {
            None => Ok(None),
            Some(Json::Bool(value)) => Ok(Some(*value)),
            Some(other) => Err(self.path.field(name).invalid_type(other, "true or false")),
        }
    }

    pub(crate) fn integer(&self, name: &'static str) -> Result<Option<u64>, FieldError> {
        const EXPECTED: &str = "an integer, 0 or more,";
        match self.get(name) {
            None => Ok(None),
            Some(Json::Number(number)) => match number.as_u64() {
                Some(number) => Ok(Some(number)),
                None => Err(self.path.field(name).invalid_value(&number.to_string(), EXPECTED)),
            },
            Some(other) => Err(self.path.field(name).invalid_type(other, EXPECTED)),
        }
    }

    /// Reads each item of a list; a missing list is empty.
    pub(crate) fn list<T>(
        &self,
        name: &'static str,
        expected: &'static str,
        read: impl Fn(&Json, &Path<'_>) -> Result<T, FieldError>,
    ) -> Result<Vec<T>, FieldError> {
        let path = self.path.field(name);
        match self.get(name) {
            None => Ok(Vec::new()),
            Some(Json::Array(items)) => {
                items.iter().enumerate().map(|(index, item)| read(item, &path.item(index))).collect()
            }
            Some(other) => Err(path.invalid_type(other, expected)),
        }
    }
}

fn kind(value: &Json) -> &'static str {
    match value {
        Json::Null => "null",
        Json::Bool(_) => "a boolean",
        Json::Number(_) => "a number",
        Json::String(_) => "a string",
        Json::Array(_) => "a list",
        Json::Object(_) => "an object",
    }
}

impl FieldError {
    pub(crate) fn syntax(error: &serde_json::Error) -> Self {
        let (line, column) = (error.line(), error.column());
        let text = error.to_string();
        let message = match text.split(" at line ").next().unwrap_or_default() {
            "recursion limit exceeded" => "nested deeper than 127 levels".to_owned(),
            other => other.to_owned(),
        };
        FieldError { path: String::new(), problem: FieldProblem::Syntax { message, line, column } }
    }

    /// Returns the place, such as `filters[0].operator`; empty for the whole body.
    pub(crate) fn place(&self) -> &str {
        &self.path
    }

    /// Returns whether the request has a form that the interface does not support. In this case, no field is invalid.
    pub(crate) fn is_unsupported(&self) -> bool {
        matches!(self.problem, FieldProblem::Unsupported(_))
    }
}

impl From<FieldError> for ErrorBody {
    fn from(FieldError { path, problem }: FieldError) -> Self {
        let place = if path.is_empty() { "the body".to_owned() } else { format!("`{path}`") };
        let invalid = |message: String| ErrorBody::new(Code::InvalidQuery, message);
        let body = match problem {
            FieldProblem::Syntax { line: line @ 1, column: column @ 0, .. } => {
                return invalid("the body is empty".to_owned()).detail("line", line).detail("column", column);
            }
            FieldProblem::Syntax { message, line, column } => {
                let message = format!("line {line}, column {column}: the body is not JSON: {message}");
                return invalid(message).detail("line", line).detail("column", column);
            }
            FieldProblem::Query(error) => error.into(),
            FieldProblem::Unsupported(message) => return invalid(message.to_owned()),
            FieldProblem::Type { found, expected } if path.is_empty() => {
                invalid(format!("the body must be {expected}, found {found}"))
            }
            FieldProblem::Type { found, expected } => invalid(format!("expected {expected} at {place}, found {found}")),
            FieldProblem::Value { found, expected } => {
                invalid(format!("expected {expected} at {place}, found `{found}`"))
            }
            FieldProblem::MissingField { name } if path.is_empty() => {
                return invalid(format!("{place} lacks `{name}`")).detail("field", name);
            }
            FieldProblem::MissingField { name } => invalid(format!("{place} lacks `{name}`")),
            FieldProblem::MissingBoth { names: [one, other] } => invalid(format!("{place} lacks `{one}` or `{other}`")),
            FieldProblem::MissingParameter { name } => invalid(format!("missing query parameter `{name}`")),
            FieldProblem::Duplicate => invalid(format!("duplicate key {place}")),
            FieldProblem::DuplicateParameter => invalid(format!("duplicate query parameter {place}; send it once")),
            FieldProblem::Both { names: [one, other] } => {
                invalid(format!("{place} has both `{one}` and `{other}`; send one"))
            }
            FieldProblem::UnknownField { nearest, known } => {
                invalid(unknown("field", &place, nearest, known)).detail("known_fields", known.to_vec())
            }
            FieldProblem::UnknownParameter { nearest, known } => {
                invalid(unknown("query parameter", &place, nearest, &known)).detail("known_fields", known)
            }
        };
        if path.is_empty() { body } else { body.detail("field", path) }
    }
}

fn unknown(kind: &str, place: &str, nearest: Option<&str>, known: &[&str]) -> String {
    match (nearest, known) {
        (Some(nearest), _) => format!("unknown {kind} {place}; did you mean `{nearest}`?"),
        (None, []) => format!("unknown {kind} {place}; this route takes none"),
        (None, known) => format!("unknown {kind} {place}; expected one of {}", known.join(", ")),
    }
}
