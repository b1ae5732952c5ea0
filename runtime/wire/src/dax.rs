//! DAX: queries to check, positions to complete, functions and tables.
//!
//! In: bodies of requests; problems, completions and functions of the DAX language; rows of queries. Out: queries,
//! positions, and JSON. Positions count characters from the start of the query; lines and columns count from 1.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::array::AsArray as _;
use arrow::datatypes::Float64Type;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Value as Json, json};
use terrane_app::dax::{DaxAnswer, DaxError, Parameters, sessions};
use terrane_app::governance::ArtifactNotes;
use terrane_app::ports::governance_records::ArtifactType;
use terrane_app::query::QueryRunError;
use terrane_app::security::Scopes;
use terrane_compiler::Access;
use terrane_compiler::model::{Dimension, Measure, Metric, Model, Presentation};
use terrane_compiler::types::Value;
use terrane_dax::functions::{FUNCTIONS, Presence};
use terrane_dax::listing::{self, Listing};
use terrane_dax::{Completion, CompletionKind, Position, Problem};

use crate::answer::Row;
use crate::body::parse;
use crate::error::{Code, DaxProblem, ErrorBody, QueryForm};
use crate::fields::{FieldError, Fields, Path};
use crate::json::{Numbers, write_rows};
use crate::{number, schema};

pub(crate) const QUERY: &[&str] = &["query"];
pub(crate) const EXECUTION: &[&str] = &["query", "parameters"];
pub(crate) const POSITION: &[&str] = &["query", "position"];
const TEXT: &str = "the text of a DAX query";
/// The suggestion for a query that ran for too long. Jobs do not run DAX.
const SHORTEN_QUERY: &str = "Add filters, or group by fewer columns. The operator sets the limit with `query.timeout`.";

/// A DAX query.
#[derive(Debug, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct DaxQuery {
    pub query: String,
}

/// A DAX query with the values of its parameters.
#[derive(Debug, JsonSchema)]
#[schemars(deny_unknown_fields, extend("required" = json!(["query"])))]
pub struct DaxExecution {
    pub query: String,
    /// The value of each `@name` of the query, by its name: a string, a number, a boolean or null.
    #[schemars(schema_with = "parameter_values")]
    pub parameters: Option<()>,
}

fn parameter_values(_: &mut SchemaGenerator) -> Schema {
    schemars::json_schema!({ "type": "object", "additionalProperties": true })
}

/// A session of a DAX client.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DaxSession {
    /// The value of the header `X-Session-ID`.
    pub session_id: String,
    #[schemars(schema_with = "schema::timestamp")]
    pub created_at: String,
    /// The time without use after which the session ends.
    pub timeout_seconds: u64,
}

/// The sessions of a caller.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DaxSessions {
    pub sessions: Vec<DaxSession>,
}

/// A position of a DAX query, which may be incomplete.
#[derive(Debug, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct DaxPosition {
    pub query: String,
    /// The number of characters before the position; the end of the query if it is absent.
    pub position: Option<u64>,
}

/// The result of checking a DAX query without running it.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DaxValidation {
    /// True if the query has no errors.
    pub valid: bool,
    /// Each with line, column, and an action that solves the problem.
    pub errors: Vec<String>,
    pub warnings: Vec<String>,
}

/// The rows of a DAX query.
#[derive(Debug, JsonSchema)]
pub struct DaxResult {
    pub columns: Vec<DaxColumn>,
    /// The rows, each an object with the names of the columns as keys.
    pub data: Vec<Row>,
    pub row_count: u64,
    pub execution_time_ms: f64,
    /// True if the rows are from the cache.
    pub from_cache: bool,
    /// The rows are at least as new as the data at this time. Null if the query reads no rows.
    #[schemars(schema_with = "schema::optional_timestamp")]
    pub as_of: Option<String>,
    pub warnings: Vec<String>,
}

/// A column of the rows.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DaxColumn {
    /// `Table[Column]`, or `[Name]` for what the query names.
    pub name: String,
    /// The type, for example `String`, `Integer`, `Double` or `DateTime`.
    pub data_type: &'static str,
    pub is_measure: bool,
}

/// The functions that DAX queries can call.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DaxFunctions {
    pub functions: Vec<DaxFunction>,
}

/// A function of DAX.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DaxFunction {
    pub name: &'static str,
    /// The category, for example `aggregation`, `filter` or `table`.
    pub category: &'static str,
    /// The call with its parameters, such as `DIVIDE(<numerator>, <denominator>[, <alternate>])`.
    pub signature: String,
    pub description: &'static str,
    /// `Table`, `Filter`, or the type of a value.
    pub return_type: &'static str,
    pub parameters: Vec<DaxParameter>,
}

/// A parameter of a function.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DaxParameter {
    pub name: &'static str,
    pub required: bool,
    /// True if it can be given several times.
    pub repeats: bool,
}

/// Completions at a position of a query.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DaxCompletions {
    /// The best ones first.
    pub items: Vec<DaxCompletion>,
}

/// A completion.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DaxCompletion {
    #[schemars(schema_with = "kinds")]
    pub kind: &'static str,
    pub label: String,
    /// The text that replaces the characters from `start` to `end`.
    pub insert_text: String,
    pub documentation: Option<String>,
    pub start: u64,
    pub end: u64,
}

fn kinds(_: &mut SchemaGenerator) -> Schema {
    schema::words(&CompletionKind::ALL.map(CompletionKind::as_str))
}

/// The tables that DAX queries can name.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DaxCubes<'m> {
    pub cubes: Vec<DaxCube<'m>>,
    /// Measures of no single table: `[name]`.
    pub metrics: Vec<DaxMember<'m>>,
}

/// A table: a cube of the project.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DaxCube<'m> {
    pub name: &'m str,
    pub title: &'m str,
    pub description: Option<Cow<'m, str>>,
    pub columns: Vec<DaxMember<'m>>,
    pub measures: Vec<DaxMember<'m>>,
}

/// A column or a measure.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DaxMember<'m> {
    pub name: &'m str,
    pub title: &'m str,
    pub description: Option<Cow<'m, str>>,
    /// The type, for example `String`, `Integer`, `Double` or `DateTime`.
    pub data_type: &'static str,
}

/// Reads the body of a request with a query.
///
/// # Errors
/// Names the field that is invalid.
pub fn query_from_wire(body: &[u8]) -> Result<String, FieldError> {
    let value = parse(body)?;
    let fields = Fields::new(&value, &Path::ROOT, "an object like {\"query\": \"EVALUATE orders\"}", QUERY)?;
    fields.required_string("query", TEXT).map(str::to_owned)
}

/// Reads the body of a request to run a query: the query, and the values of its parameters.
///
/// # Errors
/// Names the field that is invalid.
pub fn execution_from_wire(body: &[u8]) -> Result<(String, Parameters), FieldError> {
    let value = parse(body)?;
    let expected = "an object like {\"query\": \"EVALUATE orders\", \"parameters\": {}}";
    let fields = Fields::new(&value, &Path::ROOT, expected, EXECUTION)?;
    let query = fields.required_string("query", TEXT)?.to_owned();
    let path = Path::ROOT.field("parameters");
    let parameters = match fields.get("parameters") {
        None => Parameters::new(),
        Some(Json::Object(values)) => {
            values.iter().map(|(name, value)| parameter(name, value, &path)).collect::<Result<_, _>>()?
        }
        Some(other) => return Err(path.invalid_type(other, "an object of names and values")),
    };
    Ok((query, parameters))
}

/// Reads the value of a parameter, whose name may begin with `@`.
fn parameter(name: &str, value: &Json, path: &Path<'_>) -> Result<(Arc<str>, Value), FieldError> {
    let path = path.field(name);
    let value = match value {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::Boolean(*value),
        Json::String(text) => Value::Text(text.as_str().into()),
        Json::Number(number) => {
            number::from_wire(number).ok_or_else(|| path.invalid_value(&number.to_string(), "a finite number"))?
        }
        other => return Err(path.invalid_type(other, "a string, a number, a boolean or null")),
    };
    Ok((name.strip_prefix('@').unwrap_or(name).into(), value))
}

/// Reads the body of a request for completions: the query, and the position in bytes.
///
/// # Errors
/// Names the field that is invalid. A position after the end of the query is invalid too.
pub fn position_from_wire(body: &[u8]) -> Result<(String, usize), FieldError> {
    let value = parse(body)?;
    let expected = "an object like {\"query\": \"EVALUATE ord\", \"position\": 12}";
    let fields = Fields::new(&value, &Path::ROOT, expected, POSITION)?;
    let query = fields.required_string("query", TEXT)?;
    let characters = query.chars().count() as u64;
    let position = fields.integer("position")?.unwrap_or(characters);
    if position > characters {
        let expected = format!("an integer from 0 to {characters}");
        return Err(Path::ROOT.field("position").invalid_value(&position.to_string(), expected));
    }
    let offset = query.char_indices().nth(position as usize).map_or(query.len(), |(at, _)| at);
    Ok((query.to_owned(), offset))
}

/// Converts a session to the object that the interface sends.
pub fn session(session: &sessions::DaxSession) -> DaxSession {
    DaxSession {
        session_id: session.id.to_string(),
        created_at: session.created_at.to_string(),
        timeout_seconds: sessions::IDLE_TIMEOUT.as_secs(),
    }
}

/// Returns the sessions of a caller.
pub fn sessions(list: &[sessions::DaxSession]) -> DaxSessions {
    DaxSessions { sessions: list.iter().map(session).collect() }
}

/// Returns the problems of a query.
pub fn validation(query: &str, problems: &[Problem]) -> DaxValidation {
    let errors: Vec<String> = problems.iter().map(|problem| problem.in_text(query).to_string()).collect();
    DaxValidation { valid: errors.is_empty(), errors, warnings: Vec::new() }
}

/// Returns the body of a result. The rows are written straight from their columns.
pub fn result(answer: &DaxAnswer) -> Vec<u8> {
    let columns: Vec<DaxColumn> = answer
        .columns
        .iter()
        .zip(&answer.types)
        .map(|(column, ty)| DaxColumn {
            name: column.key.to_string(),
            data_type: ty.as_str(),
            is_measure: column.is_measure,
        })
        .collect();
    // The values have string keys, so they always serialize.
    let text = |value: serde_json::Result<String>| value.unwrap_or_default();
    let mut body = format!("{{\"columns\":{},\"data\":", text(serde_json::to_string(&columns))).into_bytes();
    write_rows(&answer.columns, &answer.batches, Numbers::Plain, &mut body);
    let warnings: Vec<Cow<'_, str>> =
        answer.warnings.iter().map(Cow::from).chain(warnings_of_numbers(answer).map(Cow::from)).collect();
    let milliseconds = answer.duration.as_secs_f64() * 1_000.0;
    let end = format!(
        ",\"row_count\":{},\"execution_time_ms\":{},\"from_cache\":{},\"as_of\":{},\"warnings\":{}}}",
        answer.rows,
        text(serde_json::to_string(&milliseconds)),
        answer.is_cached,
        text(serde_json::to_string(&answer.as_of.map(|as_of| as_of.to_string()))),
        text(serde_json::to_string(&warnings)),
    );
    body.extend_from_slice(end.as_bytes());
    body
}

/// Returns a warning for each column with numbers that JSON cannot represent. XMLA has words for them.
fn warnings_of_numbers(answer: &DaxAnswer) -> impl Iterator<Item = String> {
    let is_lossy = |at: usize| {
        let arrays = answer.batches.iter().filter_map(move |batch| batch.columns().get(at));
        let mut doubles = arrays.filter_map(|array| array.as_primitive_opt::<Float64Type>());
        doubles.any(|array| array.iter().flatten().any(|number| !number.is_finite()))
    };
    let lossy = answer.columns.iter().enumerate().filter(move |(at, _)| is_lossy(*at));
    lossy.map(|(_, column)| format!("`{}` has infinite or undefined numbers, which are null in JSON", column.key))
}

/// Returns the error of a query that was refused or failed.
pub fn refusal(query: &str, error: DaxError, scopes: Scopes) -> ErrorBody {
    match error {
        DaxError::Problems(problems) => of_problems(query, &problems),
        DaxError::TooManyRows { limit } => {
            let message = format!("the result has more than {limit} rows; add filters or TOPN");
            ErrorBody::new(Code::InvalidQuery, message).detail("max_limit", limit)
        }
        DaxError::TooManyRowsRead { limit } => {
            let message = format!("{error}; narrow it with FILTER or CALCULATETABLE, or iterate over groups");
            ErrorBody::new(Code::InvalidQuery, message).detail("max_limit", limit)
        }
        DaxError::TooManyBytes { .. } => {
            let message = format!("{error}; add filters, or group by fewer columns");
            ErrorBody::new(Code::InvalidQuery, message)
        }
        DaxError::Run(error) => {
            let is_timeout = matches!(error, QueryRunError::Timeout { .. });
            let body = ErrorBody::from_run_in(QueryForm::Dax, error, scopes);
            if is_timeout { body.extra("suggestion", SHORTEN_QUERY) } else { body }
        }
        DaxError::Rows(error) => ErrorBody::new(Code::InternalError, error.to_string()),
    }
}

/// Reports the first problem, with its suggestion, and all problems as details.
fn of_problems(query: &str, problems: &[Problem]) -> ErrorBody {
    let to_wire = |problem: &Problem| {
        let Position { line, column } = problem.place.position(query);
        DaxProblem { message: problem.kind.to_string(), line, column, suggestion: problem.suggestion() }
    };
    let all: Vec<DaxProblem> = problems.iter().map(to_wire).collect();
    let Some(first) = all.first() else { return ErrorBody::new(Code::DaxSyntaxError, "the query has no EVALUATE") };
    let message = format!("line {}, column {}: {}", first.line, first.column, first.message);
    let body = ErrorBody::new(Code::DaxSyntaxError, message).detail("line", first.line).detail("column", first.column);
    let body = match &first.suggestion {
        Some(suggestion) => body.extra("suggestion", suggestion.as_str()),
        None => body,
    };
    body.detail("problems", serde_json::to_value(&all).unwrap_or_default())
}

/// Returns all functions.
pub fn functions() -> DaxFunctions {
    let functions = FUNCTIONS.iter().map(|function| DaxFunction {
        name: function.name,
        category: function.category.as_str(),
        signature: function.signature(),
        description: function.description,
        return_type: function.returns.as_str(),
        parameters: function
            .parameters
            .iter()
            .map(|parameter| DaxParameter {
                name: parameter.name,
                required: matches!(parameter.presence, Presence::Required | Presence::Repeated),
                repeats: !matches!(parameter.presence, Presence::Required | Presence::Optional),
            })
            .collect(),
    });
    DaxFunctions { functions: functions.collect() }
}

/// Converts completions. Their places are offsets in bytes of the query, and become offsets in characters.
pub fn completions(query: &str, items: Vec<Completion>) -> DaxCompletions {
    let characters = |offset: u32| query.get(..offset as usize).map_or(0, |before| before.chars().count() as u64);
    let items = items.into_iter().map(|item| DaxCompletion {
        kind: item.kind.as_str(),
        label: item.label,
        insert_text: item.insert_text,
        documentation: item.documentation,
        start: characters(item.replaces.start),
        end: characters(item.replaces.end),
    });
    DaxCompletions { items: items.collect() }
}

/// Returns the tables and metrics that the caller may see, with their notes about certifications and terms.
pub fn cubes<'m>(access: &'m Access<'m>, notes: &ArtifactNotes) -> DaxCubes<'m> {
    let model = access.model();
    let metrics = listing::metrics(access).into_iter().map(|id| {
        let Metric { name, presentation, .. } = model.metric(id);
        let description = notes.describe(ArtifactType::Metric, name, presentation.description.as_deref());
        DaxMember { name, title: &presentation.title, description, data_type: terrane_dax::Type::Double.as_str() }
    });
    DaxCubes {
        cubes: listing::tables(access).iter().map(|table| cube(model, table, notes)).collect(),
        metrics: metrics.collect(),
    }
}

fn cube<'m>(model: &'m Model, table: &Listing<'m>, notes: &ArtifactNotes) -> DaxCube<'m> {
    let of = table.cube;
    let member = |kind: ArtifactType, name: &'m str, presentation: &'m Presentation, data_type: &'static str| {
        let description = notes.describe_member(kind, &of.name, name, presentation.description.as_deref());
        DaxMember { name, title: &presentation.title, description, data_type }
    };
    let columns = table.columns.iter().map(|(id, ty)| {
        let Dimension { name, presentation, .. } = model.dimension(*id);
        member(ArtifactType::Dimension, name, presentation, ty.as_str())
    });
    let measures = table.measures.iter().map(|(id, ty)| {
        let Measure { name, presentation, .. } = model.measure(*id);
        member(ArtifactType::Measure, name, presentation, ty.as_str())
    });
    DaxCube {
        name: &of.name,
        title: &of.title,
        description: notes.describe(ArtifactType::Cube, &of.name, of.description.as_deref()),
        columns: columns.collect(),
        measures: measures.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_characters() {
        let (query, offset) = position_from_wire("{\"query\": \"é[x]\", \"position\": 2}".as_bytes()).unwrap();
        assert_eq!((&*query, offset), ("é[x]", 3));
        let (_, end) = position_from_wire("{\"query\": \"é\"}".as_bytes()).unwrap();
        assert_eq!(end, 2);
        assert!(position_from_wire(b"{\"query\": \"ab\", \"position\": 3}").is_err());
        assert!(position_from_wire(b"{\"position\": 3}").is_err());
    }

    #[test]
    fn parameters_are_values() {
        let body = br#"{"query": "q", "parameters": {"@a": 1, "b": 1.5, "c": "x", "d": null, "e": true}}"#;
        let (_, parameters) = execution_from_wire(body).unwrap();
        let values = ["a", "b", "c", "d", "e"].map(|name| parameters[name].clone());
        let expected = [
            Value::Integer(1),
            Value::Decimal("1.5".into()),
            Value::Text("x".into()),
            Value::Null,
            Value::Boolean(true),
        ];
        assert_eq!(values, expected);
        assert!(execution_from_wire(br#"{"query": "q"}"#).unwrap().1.is_empty());
        for invalid in [r#"{"a": []}"#, "[]", "1"] {
            let body = format!("{{\"query\": \"q\", \"parameters\": {invalid}}}");
            assert!(execution_from_wire(body.as_bytes()).is_err(), "{invalid}");
        }
    }
}
