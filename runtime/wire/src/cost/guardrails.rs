//! Guardrails: limits of users and groups, and checks of queries.
//!
//! In: bodies, and the use case's records. Out: limits, and JSON.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value as Json;
use terrane_app::cost::{GuardrailCheck, GuardrailSource, Guardrails, effective};
use terrane_app::ports::guardrails::{GuardrailRecord, GuardrailSubject};
use terrane_compiler::query::SemanticQuery;

use crate::body;
use crate::error::{QueryForm, guardrail_suggestion};
use crate::fields::{FieldError, Fields, Path};
use crate::query::{self, ModuleQuery};
use crate::{schema, size};

pub(crate) const LIMITS: &[&str] = &[
    "max_execution_seconds",
    "max_rows_returned",
    "require_time_filter",
    "max_cost_per_query",
    "max_bytes_scanned",
    "require_partition_filter",
    "daily_budget",
    "monthly_budget",
    "alert_at_percent",
];
const SIZE: &str = "a size like \"10GB\"";
const CONDITIONAL_BYTES: &str = "guardrail `max_bytes_scanned` does not refuse queries whose bytes are unknown";
const UNKNOWN_BYTES: &str = "guardrail `max_bytes_scanned` does not refuse the query, because its bytes are unknown";
const SECONDS: &str = "a number from 0.001 to 86400";
const COST: &str = "a number from 0 to 1000000000 with at most six decimals";
const CHECK: &[&str] = &["query", "user_id"];

/// Guardrails to set. An absent or null limit means that no limit applies.
#[derive(Debug, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct GuardrailChange {
    /// The largest number of seconds until the last row of a query, 0.001–86400.
    pub max_execution_seconds: Option<f64>,
    /// The largest number of rows of an answer, at least 1.
    pub max_rows_returned: Option<u64>,
    /// True if every cube whose rows are read needs a lower bound on one of its time dimensions.
    pub require_time_filter: Option<bool>,
    /// True if every partitioned cube whose rows are read needs a filter on a dimension with `partition: true`.
    pub require_partition_filter: Option<bool>,
    /// The highest predicted cost of a query, in the currency of `optimization.prices`, 0–1000000000.
    pub max_cost_per_query: Option<f64>,
    /// The largest stored size of the columns that a query may scan, like `10GB`. A query whose bytes are unknown is
    /// allowed.
    pub max_bytes_scanned: Option<String>,
    /// The costs of a user in a day, 0–1000000000.
    pub daily_budget: Option<f64>,
    /// The costs of a user in a month, 0–1000000000.
    pub monthly_budget: Option<f64>,
    /// The share of a budget at which the server logs an alert, 1–100.
    pub alert_at_percent: Option<u8>,
}

/// Limits of the queries of a caller. Null is none.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "Guardrails")]
pub struct GuardrailLimits {
    /// The largest number of seconds until the last row of a query, 0.001–86400.
    pub max_execution_seconds: Option<f64>,
    /// The largest number of rows of an answer, at least 1.
    pub max_rows_returned: Option<u64>,
    /// True if every cube whose rows are read needs a lower bound on one of its time dimensions.
    pub require_time_filter: bool,
    /// True if every partitioned cube whose rows are read needs a filter on a dimension with `partition: true`.
    pub require_partition_filter: bool,
    /// The highest predicted cost of a query, in the currency of `optimization.prices`, 0–1000000000.
    pub max_cost_per_query: Option<f64>,
    /// The largest stored size of the columns that a query may scan, like `10GB`. A query whose bytes are unknown is
    /// allowed.
    pub max_bytes_scanned: Option<String>,
    /// The costs of a user in a day, 0–1000000000.
    pub daily_budget: Option<f64>,
    /// The costs of a user in a month, 0–1000000000.
    pub monthly_budget: Option<f64>,
    /// The share of a budget at which the server logs an alert, 1–100.
    pub alert_at_percent: Option<u8>,
}

/// The guardrails of a user or a group.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SubjectGuardrails<'a> {
    /// Null for a group.
    pub user_id: Option<&'a str>,
    /// The name of a role or a group of callers; null for a user.
    pub role: Option<&'a str>,
    pub guardrails: GuardrailLimits,
    /// Limits that do not apply to all queries, each with the reason.
    pub warnings: Vec<&'static str>,
    /// The `ETag` without its quotes.
    pub version: u64,
    pub updated_by: &'a str,
    #[schemars(schema_with = "schema::timestamp")]
    pub updated_at: String,
}

/// The guardrails of all users and groups.
#[derive(Debug, Serialize)]
pub struct GuardrailList<'a> {
    pub guardrails: Vec<SubjectGuardrails<'a>>,
}

/// The limits that hold for the queries of a caller.
#[derive(Debug, Serialize, JsonSchema)]
pub struct EffectiveGuardrails<'a> {
    /// The narrowest limits of all sources.
    pub guardrails: GuardrailLimits,
    pub sources: Vec<SourceOfGuardrails<'a>>,
}

/// The limits of one source.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SourceOfGuardrails<'a> {
    /// `project` (the settings), `group` or `user`.
    pub source: &'a str,
    /// The group or the user; null for the project.
    pub name: Option<&'a str>,
    pub guardrails: GuardrailLimits,
}

/// A query to check.
#[derive(Debug, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct GuardrailQuestion {
    pub query: ModuleQuery,
    /// The user whose guardrails apply; other users only with the scope `admin`.
    pub user_id: Option<String>,
}

/// The result of a check.
#[derive(Debug, Serialize, JsonSchema)]
pub struct GuardrailAnswer {
    /// False if a guardrail refuses the query by its plan.
    pub allowed: bool,
    /// The first limit that the query exceeds; null if it is allowed.
    pub reason: Option<String>,
    /// Changes that make the query pass.
    pub suggestions: Vec<String>,
    pub warnings: Vec<String>,
    /// The names of the guardrails that refuse the query.
    pub exceeded: Vec<&'static str>,
    pub guardrails: GuardrailLimits,
}

/// Reads the body of a change.
///
/// # Errors
/// Names the field that is invalid.
pub fn limits_from_wire(body: &[u8]) -> Result<Guardrails, FieldError> {
    let value = body::parse(body)?;
    let path = Path::ROOT;
    let fields = Fields::new(&value, &path, "guardrails, which are a JSON object", LIMITS)?;
    let max_rows_returned = fields.integer("max_rows_returned")?;
    if max_rows_returned == Some(0) {
        return Err(path.field("max_rows_returned").invalid_value("0", "an integer, 1 or more,"));
    }
    Ok(Guardrails {
        max_execution: number(&fields, &path, "max_execution_seconds", SECONDS, 0.001..=86_400.0)?
            .map(Duration::from_secs_f64),
        max_rows_returned,
        require_time_filter: fields.boolean("require_time_filter")? == Some(true),
        require_partition_filter: fields.boolean("require_partition_filter")? == Some(true),
        max_cost_micros: amount(&fields, &path, "max_cost_per_query")?,
        max_scan_bytes: bytes(&fields, &path)?,
        daily_budget_micros: amount(&fields, &path, "daily_budget")?,
        monthly_budget_micros: amount(&fields, &path, "monthly_budget")?,
        alert_at_percent: percent(&fields, &path)?,
    })
}

/// Reads `max_bytes_scanned`.
fn bytes(fields: &Fields<'_>, path: &Path<'_>) -> Result<Option<u64>, FieldError> {
    const NAME: &str = "max_bytes_scanned";
    let Some(text) = fields.string(NAME, SIZE)? else { return Ok(None) };
    let bytes = size::parse(text).filter(|bytes| i64::try_from(*bytes).is_ok());
    bytes.map(Some).ok_or_else(|| path.field(NAME).invalid_value(text, SIZE))
}

fn percent(fields: &Fields<'_>, path: &Path<'_>) -> Result<Option<u8>, FieldError> {
    const NAME: &str = "alert_at_percent";
    let Some(found) = fields.integer(NAME)? else { return Ok(None) };
    let percent = u8::try_from(found).ok().filter(|percent| (1..=100).contains(percent));
    percent.map(Some).ok_or_else(|| path.field(NAME).invalid_value(&found.to_string(), "an integer from 1 to 100"))
}

/// Reads an amount of the currency, and returns it in millionths.
fn amount(fields: &Fields<'_>, path: &Path<'_>, name: &'static str) -> Result<Option<u64>, FieldError> {
    let Some(amount) = number(fields, path, name, COST, 0.0..=1_000_000_000.0)? else { return Ok(None) };
    let micros = terrane_app::cost::micros(amount);
    micros.map(Some).ok_or_else(|| path.field(name).invalid_value(&amount.to_string(), COST))
}

fn number(
    fields: &Fields<'_>,
    path: &Path<'_>,
    name: &'static str,
    expected: &'static str,
    allowed: RangeInclusive<f64>,
) -> Result<Option<f64>, FieldError> {
    let path = path.field(name);
    match fields.get(name) {
        None => Ok(None),
        Some(Json::Number(found)) => {
            let number = found.as_f64().filter(|number| allowed.contains(number));
            number.map(Some).ok_or_else(|| path.invalid_value(&found.to_string(), expected))
        }
        Some(other) => Err(path.invalid_type(other, expected)),
    }
}

/// Reads the body of `POST /api/v1/optimization/check-guardrails`.
///
/// # Errors
/// Names the field that is invalid.
pub fn question_from_wire(body: &[u8]) -> Result<(SemanticQuery, Option<Arc<str>>), FieldError> {
    let value = body::parse(body)?;
    let path = Path::ROOT;
    let fields = Fields::new(&value, &path, "an object like {\"query\": …}", CHECK)?;
    let query = fields.get("query").ok_or_else(|| path.missing("query"))?;
    let query = query::of_module(query, &path.field("query"))?;
    Ok((query, fields.string("user_id", "a user's id")?.map(Into::into)))
}

impl From<&Guardrails> for GuardrailLimits {
    fn from(guardrails: &Guardrails) -> Self {
        GuardrailLimits {
            max_execution_seconds: guardrails.max_execution.map(|limit| limit.as_secs_f64()),
            max_rows_returned: guardrails.max_rows_returned,
            require_time_filter: guardrails.require_time_filter,
            require_partition_filter: guardrails.require_partition_filter,
            max_cost_per_query: guardrails.max_cost_micros.map(super::currency),
            max_bytes_scanned: guardrails.max_scan_bytes.map(size::text),
            daily_budget: guardrails.daily_budget_micros.map(super::currency),
            monthly_budget: guardrails.monthly_budget_micros.map(super::currency),
            alert_at_percent: guardrails.alert_at_percent,
        }
    }
}

/// Returns a warning if limits contain one that does not apply to all queries.
fn conditional(limits: &Guardrails) -> Option<&'static str> {
    limits.max_scan_bytes.map(|_| CONDITIONAL_BYTES)
}

impl<'a> From<&'a GuardrailRecord> for SubjectGuardrails<'a> {
    fn from(record: &'a GuardrailRecord) -> Self {
        let name = |is_wanted: bool| is_wanted.then(|| &**record.subject.name());
        let is_user = matches!(record.subject, GuardrailSubject::User(_));
        SubjectGuardrails {
            user_id: name(is_user),
            role: name(!is_user),
            guardrails: (&record.limits.unwrap_or_default()).into(),
            warnings: record.limits.iter().filter_map(conditional).collect(),
            version: record.version,
            updated_by: &record.updated_by,
            updated_at: record.updated_at.to_string(),
        }
    }
}

impl<'a> From<&'a [GuardrailRecord]> for GuardrailList<'a> {
    fn from(records: &'a [GuardrailRecord]) -> Self {
        GuardrailList { guardrails: records.iter().map(SubjectGuardrails::from).collect() }
    }
}

impl<'a> From<&'a [GuardrailSource]> for EffectiveGuardrails<'a> {
    fn from(sources: &'a [GuardrailSource]) -> Self {
        let source = |source: &'a GuardrailSource| SourceOfGuardrails {
            source: source.subject.as_ref().map_or("project", GuardrailSubject::kind),
            name: source.subject.as_ref().map(|subject| &**subject.name()),
            guardrails: (&source.limits).into(),
        };
        EffectiveGuardrails { guardrails: (&effective(sources)).into(), sources: sources.iter().map(source).collect() }
    }
}

impl GuardrailAnswer {
    /// Returns the result of a check, with suggestions in the words of the query's form.
    pub fn new(check: &GuardrailCheck, form: QueryForm) -> Self {
        let mut warnings = Vec::new();
        if check.is_of_other_user {
            warnings.push("the guardrails of the user's groups are not known here".to_owned());
        }
        if check.guardrails.daily_budget_micros.or(check.guardrails.monthly_budget_micros).is_some() {
            warnings.push("budgets are checked again when the query runs".to_owned());
        }
        warnings.extend(check.has_unknown_bytes.then(|| UNKNOWN_BYTES.to_owned()));
        GuardrailAnswer {
            allowed: check.exceeded.is_empty(),
            reason: check.exceeded.first().map(ToString::to_string),
            suggestions: check.exceeded.iter().map(|exceeded| guardrail_suggestion(exceeded, form)).collect(),
            warnings,
            exceeded: check.exceeded.iter().map(|exceeded| exceeded.guardrail()).collect(),
            guardrails: (&check.guardrails).into(),
        }
    }
}
