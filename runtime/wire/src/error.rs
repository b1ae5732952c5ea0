//! Errors as clients see them: a code, a message, and the data of the code.
//!
//! In: errors of the compiler, of the use cases and of the readers of bodies. Out: an [`ErrorBody`] in one of the
//! interface's two shapes, `{error: {code, message, details?, …extra, correlation_id}}` and `{detail}`. Fields are
//! beside `message` or inside `details` exactly as in the table of errors in `runtime/docs/reference/query.md`. Not
//! here: status lines and headers (server), and the text of a [`QueryError`] (compiler), whose `Display` is the
//! message.

mod guardrails;
mod use_cases;

use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Map, Value as Json, json};
use terrane_app::cost::GuardrailExceeded;
use terrane_app::ports::warehouse::{RefusalCause, WarehouseErrorKind};
use terrane_app::query::{Denied, QueryRunError};
use terrane_app::security::{Scope, Scopes};
use terrane_compiler::query::{ErrorCode, FactMatch, Operator, QueryError};
use terrane_compiler::types::Granularity;

use crate::pre_aggregation::FactPreAggregation;
use crate::project::Problem;

pub use guardrails::QueryForm;
pub(crate) use guardrails::guardrail_suggestion;

/// The largest number of characters of a client's text that a message repeats.
pub const MAX_ECHO_CHARS: usize = 200;

/// A field that bodies with one code can have.
#[derive(Debug, Clone, Copy)]
pub struct ErrorField {
    pub name: &'static str,
    pub schema: fn(&mut SchemaGenerator) -> Schema,
}

macro_rules! codes {
    ($($variant:ident $name:literal $status:literal
        { $($detail:ident: $detail_type:ty),* } $([$($extra:ident: $extra_type:ty),*])?;)*) => {
        /// The codes of errors.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Code { $($variant),* }

        impl Code {
            pub const ALL: &'static [Code] = &[$(Code::$variant),*];

            /// Returns the code in the form in which it is sent.
            pub fn as_str(self) -> &'static str {
                match self { $(Code::$variant => $name),* }
            }

            /// Returns the name of the variant, which names the code's schema.
            pub fn type_name(self) -> &'static str {
                match self { $(Code::$variant => stringify!($variant)),* }
            }

            /// Returns the HTTP status of the code.
            pub fn status(self) -> u16 {
                match self { $(Code::$variant => $status),* }
            }

            /// Returns the fields that `details` can have.
            pub fn details(self) -> &'static [ErrorField] {
                match self {
                    $(Code::$variant => &[$(ErrorField {
                        name: stringify!($detail),
                        schema: |generator| generator.subschema_for::<$detail_type>(),
                    }),*]),*
                }
            }

            /// Returns the fields that the code may have beside `message`.
            pub fn extra(self) -> &'static [ErrorField] {
                match self {
                    $(Code::$variant => &[$($(ErrorField {
                        name: stringify!($extra),
                        schema: |generator| generator.subschema_for::<$extra_type>(),
                    }),*)?]),*
                }
            }
        }
    };
}

codes! {
    InvalidQuery "INVALID_QUERY" 400 {
        field: String, line: u64, column: u64, known_fields: Vec<String>, available_cubes: Vec<String>,
        available_metrics: Vec<String>, available_granularities: Vec<String>, max_limit: u64,
        hint: String, measures: Vec<String>, pre_aggregation: Vec<FactPreAggregation<'static>>
    };
    InvalidMeasure "INVALID_MEASURE" 400 { field: String } [available_measures: Vec<String>];
    InvalidDimension "INVALID_DIMENSION" 400 { field: String }
        [available_dimensions: Vec<String>, available_segments: Vec<String>];
    InvalidFilter "INVALID_FILTER" 400 { field: String, member: String, expected: String }
        [valid_operators: Vec<String>];
    DaxSyntaxError "DAX_SYNTAX_ERROR" 400 { line: u64, column: u64, problems: Vec<DaxProblem> } [suggestion: String];
    NoJoinPath "NO_JOIN_PATH" 400 { field: String, reachable_cubes: Vec<String> };
    Unauthorized "UNAUTHORIZED" 401 { provider_error: String };
    TokenExpired "TOKEN_EXPIRED" 401 {} [expired_at: String];
    InvalidToken "INVALID_TOKEN" 401 {};
    Forbidden "FORBIDDEN" 403 {
        field: String, required_scope: String, reason: String, hint: String, allowed_functions: Vec<String>,
        findings: Vec<Finding>
    };
    GuardrailExceeded "GUARDRAIL_EXCEEDED" 403 {
        guardrail: String, class: String, limit: f64, requested: f64, excess: f64, remaining: f64, cubes: Vec<String>,
        members: Vec<String>
    } [suggestion: String];
    NotFound "NOT_FOUND" 404 { field: String, nearest: Vec<String>, known: Vec<String> };
    InvalidProjectPath "INVALID_PROJECT_PATH" 400 { project_path: String, hint: String };
    ValidationError "VALIDATION_ERROR" 422 {
        field: String, problems: Vec<Problem>, model: String, missing_ref: String, cube: String,
        available_models: Vec<String>, record_problems: Vec<RecordsProblem>
    };
    CompilationError "COMPILATION_ERROR" 500 { model: String, file: String, line: u64, column: u64 };
    MethodNotAllowed "METHOD_NOT_ALLOWED" 405 { allowed_methods: Vec<String> };
    Conflict "CONFLICT" 409 {
        component: String, limit: String, call: String, state: String, allowed_moves: Vec<String>,
        cycle: Vec<String>, existing_id: String
    };
    Gone "GONE" 410 { reason: String };
    PreconditionFailed "PRECONDITION_FAILED" 412 { current_version: u64 };
    PreconditionRequired "PRECONDITION_REQUIRED" 428 {};
    MisdirectedRequest "MISDIRECTED_REQUEST" 421 {};
    QueryTimeout "QUERY_TIMEOUT" 408 {} [suggestion: String];
    RequestTimeout "REQUEST_TIMEOUT" 408 {};
    PayloadTooLarge "PAYLOAD_TOO_LARGE" 413 { max_bytes: u64 };
    UnsupportedMediaType "UNSUPPORTED_MEDIA_TYPE" 415 { available_types: Vec<String>, available_encodings: Vec<String> };
    InternalError "INTERNAL_ERROR" 500 {};
    WarehouseError "WAREHOUSE_ERROR" 502 { warehouse_message: String };
    WarehouseUnavailable "WAREHOUSE_UNAVAILABLE" 503 { warehouse_message: String };
    PluginFault "PLUGIN_FAULT" 502 { component: String, limit: String, call: String };
    Overloaded "OVERLOADED" 503 {};
    RateLimited "RATE_LIMITED" 429 { scope: String, limit: RateLimit };
    ResultsUnavailable "RESULTS_UNAVAILABLE" 503 {};
    StateUnavailable "STATE_UNAVAILABLE" 503 {};
    GraphqlSyntaxError "GRAPHQL_SYNTAX_ERROR" 400 { line: u64, column: u64 };
    GraphqlValidationFailed "GRAPHQL_VALIDATION_FAILED" 400 { hint: String };
    GraphqlLimitExceeded "GRAPHQL_LIMIT_EXCEEDED" 400 { limit: String, max: u64, hint: String };
}

/// A rule of a governance hook that a change violates.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Finding {
    pub hook: String,
    pub rule: String,
    pub message: String,
}

/// A problem of a file of governed records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "RecordProblem")]
pub struct RecordsProblem {
    /// The place, such as `terms[3].name`; empty for the whole file.
    pub place: String,
    pub message: String,
}

/// A problem of a DAX query.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct DaxProblem {
    pub message: String,
    pub line: u32,
    pub column: u32,
    pub suggestion: Option<String>,
}

/// The rate of requests that is allowed.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub struct RateLimit {
    pub requests_per_second: f64,
    pub burst: u32,
}

/// The shape of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BodyShape {
    Standard,
    /// `{detail}`, for two errors of the metadata routes of cubes: an unknown cube, and a name that already exists.
    Detail,
}

/// An error as a client gets it.
#[derive(Debug, Clone, PartialEq)]
pub struct ErrorBody {
    pub code: Code,
    pub message: String,
    details: Map<String, Json>,
    extra: Map<String, Json>,
    shape: BodyShape,
}

impl ErrorBody {
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        ErrorBody { code, message: message.into(), details: Map::new(), extra: Map::new(), shape: BodyShape::Standard }
    }

    /// Reports an unknown cube in the shape of the metadata routes.
    pub fn cube_not_found(name: &str) -> Self {
        ErrorBody::new(Code::NotFound, format!("cube `{}` not found", shorten(name))).in_detail_shape()
    }

    /// Reports a duplicate cube in the shape of the metadata routes.
    pub fn cube_exists(name: &str) -> Self {
        ErrorBody::new(Code::InvalidQuery, format!("cube `{}` already exists", shorten(name))).in_detail_shape()
    }

    pub fn missing_scope(scope: Scope) -> Self {
        ErrorBody::new(Code::Forbidden, format!("scope `{}` is required", scope.as_str()))
            .detail("required_scope", scope.as_str())
    }

    fn in_detail_shape(self) -> Self {
        ErrorBody { shape: BodyShape::Detail, ..self }
    }

    /// Adds a field to `details`. The field must be listed for the code.
    pub fn detail(mut self, name: &'static str, value: impl Into<Json>) -> Self {
        debug_assert!(is_listed(self.code.details(), name), "{} has no detail `{name}`", self.code.as_str());
        self.details.insert(name.to_owned(), value.into());
        self
    }

    /// Adds a field beside `message`. The field must be listed for the code.
    pub fn extra(mut self, name: &'static str, value: impl Into<Json>) -> Self {
        debug_assert!(is_listed(self.code.extra(), name), "{} has no field `{name}`", self.code.as_str());
        self.extra.insert(name.to_owned(), value.into());
        self
    }

    /// Returns a field of `details`, or one beside `message`.
    pub fn field(&self, name: &str) -> Option<&Json> {
        self.details.get(name).or_else(|| self.extra.get(name))
    }

    /// Returns the fields of `details`, then those beside `message`.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &Json)> {
        self.details.iter().chain(&self.extra).map(|(name, value)| (name.as_str(), value))
    }

    /// Returns the body in the interface's shape, for REST.
    pub fn into_json(self, correlation_id: &str) -> Map<String, Json> {
        let ErrorBody { code, message, details, extra, shape } = self;
        let (name, value) = match shape {
            BodyShape::Detail => ("detail", message.into()),
            BodyShape::Standard => {
                let mut error = Map::new();
                error.insert("code".to_owned(), code.as_str().into());
                error.insert("message".to_owned(), message.into());
                if !details.is_empty() {
                    error.insert("details".to_owned(), details.into());
                }
                error.extend(extra);
                error.insert("correlation_id".to_owned(), correlation_id.into());
                ("error", error.into())
            }
        };
        Map::from_iter([(name.to_owned(), value)])
    }

    /// Returns everything but the message, as the extensions of a GraphQL error.
    pub fn extensions(&self, correlation_id: &str) -> Map<String, Json> {
        let mut extensions = self.extra.clone();
        extensions.insert("code".to_owned(), self.code.as_str().into());
        if !self.details.is_empty() {
            extensions.insert("details".to_owned(), self.details.clone().into());
        }
        if !correlation_id.is_empty() {
            extensions.insert("correlation_id".to_owned(), correlation_id.into());
        }
        extensions
    }

    /// Reports an error of a query. Only callers with the scope `admin` see the warehouse's own text, and the misses of
    /// pre-aggregations that policies cause.
    pub fn from_run(error: QueryRunError, scopes: Scopes) -> Self {
        ErrorBody::from_run_in(QueryForm::Json, error, scopes)
    }

    /// Reports an error like [`ErrorBody::from_run`], with suggestions in the words of the query's form.
    pub fn from_run_in(form: QueryForm, error: QueryRunError, scopes: Scopes) -> Self {
        match error {
            QueryRunError::Query(error) => from_query(error, scopes.hold(Scope::Admin)),
            QueryRunError::Timeout { timeout } => {
                let message = format!("query ran longer than {} seconds", timeout.as_secs_f64());
                ErrorBody::new(Code::QueryTimeout, message).extra("suggestion", SHORTEN_QUERY)
            }
            QueryRunError::Guardrail(error) => from_guardrail(&error, form),
            QueryRunError::Overloaded(error) => ErrorBody::new(Code::Overloaded, error.to_string()),
            QueryRunError::Denied(Denied { reason, message }) => {
                ErrorBody::new(Code::Forbidden, &*message).detail("reason", &*reason)
            }
            QueryRunError::Unrecorded(_) | QueryRunError::BudgetUnavailable(_) => {
                ErrorBody::new(Code::StateUnavailable, "the state database cannot be reached")
            }
            QueryRunError::PolicyUnavailable => {
                ErrorBody::new(Code::Forbidden, error.to_string()).detail("reason", "policy_unavailable")
            }
            QueryRunError::Warehouse(error) => {
                let is_admin = scopes.hold(Scope::Admin);
                let body = match error.kind {
                    WarehouseErrorKind::Unavailable if error.cause == RefusalCause::MissingFile => {
                        let message = "a file that the query reads does not exist; the log names it";
                        ErrorBody::new(Code::WarehouseUnavailable, message)
                    }
                    WarehouseErrorKind::Unavailable => {
                        ErrorBody::new(Code::WarehouseUnavailable, "the warehouse cannot be reached")
                    }
                    WarehouseErrorKind::Refused | WarehouseErrorKind::Timeout if is_admin => {
                        ErrorBody::new(Code::WarehouseError, "the warehouse rejected the statement")
                    }
                    WarehouseErrorKind::Refused | WarehouseErrorKind::Timeout => {
                        let message = "the warehouse rejected the statement; the log has its message";
                        ErrorBody::new(Code::WarehouseError, message)
                    }
                };
                if is_admin { body.detail("warehouse_message", error.message) } else { body }
            }
        }
    }

    /// Reports an error of a query to the operator, who sees the warehouse's own text.
    pub fn for_operator(error: QueryRunError) -> Self {
        ErrorBody::from_run(error, Scopes { read: true, write: true, admin: true })
    }
}

/// Reports an exceeded limit: the names of the guardrail and its class, the limit, the value that the query requested
/// if it is known, and a change that makes the query pass.
fn from_guardrail(error: &GuardrailExceeded, form: QueryForm) -> ErrorBody {
    let body = ErrorBody::new(Code::GuardrailExceeded, error.to_string())
        .detail("guardrail", error.guardrail())
        .detail("class", error.class().as_str());
    let amount = |micros: u64| micros as f64 / 1_000_000.0;
    let body = match error {
        GuardrailExceeded::ExecutionTime { limit } => body.detail("limit", limit.as_secs_f64()),
        GuardrailExceeded::Rows { limit, requested } => {
            let body = match requested {
                Some(requested) => body.detail("requested", *requested),
                None => body,
            };
            body.detail("limit", *limit)
        }
        GuardrailExceeded::ResultRows { limit } => body.detail("limit", *limit),
        GuardrailExceeded::Cost { limit_micros, predicted_micros } => {
            body.detail("limit", amount(*limit_micros)).detail("requested", amount(*predicted_micros))
        }
        GuardrailExceeded::ScanBytes { limit, predicted } => {
            let body = body.detail("limit", *limit).detail("requested", *predicted);
            body.detail("excess", predicted.saturating_sub(*limit))
        }
        GuardrailExceeded::Budget { limit_micros, remaining_micros, predicted_micros, .. } => {
            let body = match predicted_micros {
                Some(predicted) => body.detail("requested", amount(*predicted)),
                None => body,
            };
            body.detail("limit", amount(*limit_micros)).detail("remaining", amount(*remaining_micros))
        }
        GuardrailExceeded::TimeFilter { cubes, .. } => {
            let cubes: Vec<&str> = cubes.iter().map(|cube| &**cube).collect();
            body.detail("cubes", cubes)
        }
        GuardrailExceeded::PartitionFilter { partitions } => {
            let members: Vec<&str> = partitions.iter().map(|member| &**member).collect();
            body.detail("members", members)
        }
    };
    body.extra("suggestion", guardrail_suggestion(error, form))
}

const SHORTEN_QUERY: &str = "Run the query as a job (`/api/v1/query/async`, or `createJob` in GraphQL), or use a shorter time range or fewer dimensions. The operator sets the limit with `query.timeout`.";

fn is_listed(fields: &[ErrorField], name: &str) -> bool {
    fields.iter().any(|field| field.name == name)
}

fn shorten(text: &str) -> String {
    text.chars().take(MAX_ECHO_CHARS).collect()
}

impl From<QueryError> for ErrorBody {
    fn from(error: QueryError) -> Self {
        from_query(error, false)
    }
}

fn from_query(error: QueryError, is_admin: bool) -> ErrorBody {
    let code = match error.code() {
        ErrorCode::InvalidQuery => Code::InvalidQuery,
        ErrorCode::InvalidMeasure => Code::InvalidMeasure,
        ErrorCode::InvalidDimension => Code::InvalidDimension,
        ErrorCode::InvalidFilter => Code::InvalidFilter,
        ErrorCode::NoJoinPath => Code::NoJoinPath,
        ErrorCode::Forbidden => Code::Forbidden,
    };
    let body = ErrorBody::new(code, error.to_string());
    match error {
        QueryError::UnknownCube { nearest, .. } => body.detail("available_cubes", names(&nearest)),
        QueryError::UnknownMetric { nearest, .. } => body.detail("available_metrics", names(&nearest)),
        QueryError::UnknownMeasure { nearest, .. } => body.extra("available_measures", names(&nearest)),
        QueryError::UnknownDimension { nearest, .. } => body.extra("available_dimensions", names(&nearest)),
        QueryError::UnknownSegment { nearest, .. } => body.extra("available_segments", names(&nearest)),
        QueryError::UnknownOperator { .. } => {
            body.extra("valid_operators", Operator::ALL.map(Operator::as_str).to_vec())
        }
        QueryError::OperatorNotAllowed { valid_operators, .. } => body.extra("valid_operators", valid_operators),
        QueryError::UnknownGranularity { .. } => {
            body.detail("available_granularities", Granularity::ALL.map(Granularity::as_str).to_vec())
        }
        QueryError::GranularityNotAllowed { allowed, .. } => {
            let allowed: Vec<&str> = allowed.into_iter().map(Granularity::as_str).collect();
            body.detail("available_granularities", allowed)
        }
        QueryError::NoJoinPath { reachable, .. } => body.detail("reachable_cubes", names(&reachable)),
        QueryError::ValueDoesNotFit { member, expected, .. } => {
            body.detail("member", &*member).detail("expected", expected)
        }
        QueryError::AggregateUnsupported { member, hint, .. } => body.detail("field", &*member).detail("hint", hint),
        QueryError::LimitTooLarge { max, .. } => body.detail("max_limit", max),
        QueryError::NotPreAggregated { facts, .. } => {
            body.detail("pre_aggregation", pre_aggregations(&facts, is_admin))
        }
        _ => body,
    }
}

/// Returns the use of pre-aggregations by facts, in the format of answers and explanations. Misses that policies cause
/// are included if `is_admin` is true.
fn pre_aggregations(facts: &[FactMatch], is_admin: bool) -> Json {
    let facts: Vec<FactPreAggregation<'_>> = facts.iter().map(|fact| FactPreAggregation::new(fact, is_admin)).collect();
    // Strings, numbers and lists always serialize.
    serde_json::to_value(facts).unwrap_or_default()
}

fn names(names: &[Arc<str>]) -> Vec<&str> {
    names.iter().map(|name| &**name).collect()
}

/// The body of an error on the metadata routes of cubes.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Detail {
    pub detail: String,
}

/// Adds the schemas of a code's body, and returns a reference to it: `InvalidQueryError` for `INVALID_QUERY`.
pub(crate) fn add_schemas(code: Code, generator: &mut SchemaGenerator, schemas: &mut Map<String, Json>) -> Json {
    let type_name = code.type_name();
    let name = if type_name.ends_with("Error") { type_name.to_owned() } else { format!("{type_name}Error") };
    if schemas.contains_key(&name) {
        return reference(&name);
    }
    let mut properties = Map::new();
    properties.insert("code".to_owned(), json!({ "type": "string", "enum": [code.as_str()] }));
    properties.insert("message".to_owned(), json!({ "type": "string" }));
    if !code.details().is_empty() {
        let details = format!("{type_name}Details");
        properties.insert("details".to_owned(), reference(&details));
        schemas.insert(details, json!({ "type": "object", "properties": fields(code.details(), generator) }));
    }
    properties.extend(fields(code.extra(), generator));
    properties.insert("correlation_id".to_owned(), json!({ "type": "string" }));
    let info = format!("{type_name}Info");
    let body = json!({ "type": "object", "required": ["error"], "properties": { "error": reference(&info) } });
    let required = ["code", "message", "correlation_id"];
    schemas.insert(info, json!({ "type": "object", "required": required, "properties": properties }));
    schemas.insert(name.clone(), body);
    reference(&name)
}

fn reference(name: &str) -> Json {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

fn fields(fields: &[ErrorField], generator: &mut SchemaGenerator) -> Map<String, Json> {
    fields.iter().map(|field| (field.name.to_owned(), (field.schema)(generator).to_value())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reference_names_every_code_with_its_status() {
        let reference = include_str!("../../docs/reference/query.md");
        for code in Code::ALL {
            let (name, status) = (format!("`{}`", code.as_str()), code.status().to_string());
            let row = reference.lines().find(|line| line.starts_with("| ") && line.contains(&name));
            assert!(row.is_some_and(|row| row.contains(&status)), "query.md: {name} with {status}");
        }
    }
}
